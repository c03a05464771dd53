"""Rows as a pandas data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd


def frame(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Return a data frame with one column per name. Raises UsageError if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("to_frame() needs pandas, which is not installed. Run: pip install pandas") from None
    return pd.DataFrame(list(rows))
