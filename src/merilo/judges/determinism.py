"""Tell judges that always answer equal questions equally from judges whose answers may vary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.judges.routed import each_judge

if TYPE_CHECKING:
    from merilo.judges.base import Judge


def is_deterministic(judge: Judge) -> bool:
    """Return True if asking the judge again cannot change a verdict, for a routed judge: all its parts.

    Judges declare this with the attribute `deterministic`; without it, a judge may vary.
    """
    return all(getattr(each, "deterministic", False) for each in each_judge([judge]))
