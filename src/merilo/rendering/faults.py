"""The faults of a run in one sentence, the same in terminal, report, Markdown and notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.metrics.answering import Category
from merilo.rendering.wording import count
from merilo.results.faults import CANNOT_TELL, FAULTS, PLACES, Answer, Held

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.results.faults import Faults

_OF_CONTEXTS: Final = {
    Category.EVIDENCE_MISSING.value,
    CANNOT_TELL,
    *(each.key for each in FAULTS if each.held is Held.ENOUGH and each.answer is Answer.UNKNOWN),
}
"""The faults of a run without responses."""


def fault_sentence(faults: Faults) -> str:
    """Return how many samples have each fault, such as `57 answers: 19 right, 21 beyond the evidence.`

    Human labels turn the counts into shares with intervals. Empty if the run has no fault table.
    """
    if not faults:
        return ""
    things = count(len(faults.samples), "question" if faults.keys() <= _OF_CONTEXTS else "answer")
    if faults.checked:
        rest = f"; {faults[CANNOT_TELL]:,} cannot tell" if faults[CANNOT_TELL] else ""
        shares = ", ".join(_share(faults, key) for key in fault_order(faults))
        return f"{things}, corrected by human labels: {shares}{rest}."
    return f"{things}: {', '.join(f'{faults[key]:,} {_name(key)}' for key in fault_order(faults))}."


def fault_order(faults: Faults) -> Sequence[str]:
    """Return the faults that samples have: right answers first, then the most frequent fault, "cannot tell" last."""
    shares = {key: found for key, each in faults.corrected.items() if (found := each.value)} or faults
    return sorted(shares, key=lambda key: (key == CANNOT_TELL, key != Category.RIGHT, -shares[key], PLACES[key]))


def fault_count(faults: Faults, key: str) -> str:
    """Return the number of samples with a fault."""
    return f"{faults[key]:,}"


def fault_share(faults: Faults, key: str) -> str:
    """Return the share of samples with a fault and its interval, such as `33 % (23 to 46 %)`."""
    share = faults.share(key)
    if share.value is None:
        return ""
    ends = share.interval.ends
    interval = f" ({100 * ends[0]:.0f} to {100 * ends[1]:.0f} %)" if ends else ""
    return f"{100 * share.value:.0f} %{interval}"


def _share(faults: Faults, key: str) -> str:
    return f"{_name(key)} {fault_share(faults, key)}"


def _name(key: str) -> str:
    return FAULTS[PLACES[key]].name.lower()
