"""The number of questions or labels that would decide a comparison or a gate."""

from __future__ import annotations

from typing import Final

from merilo.stats.intervals import LEVEL
from merilo.stats.label_power import LabelSpread, labels_needed
from merilo.stats.paired import FEWEST_DIFFERENT
from merilo.stats.power import samples_for

MORE_THAN: Final = "More than"
"""Begins the text if labels of all questions would not suffice."""


def more_questions(effect: float, detectable: float, questions: int) -> str:
    """Return the number of questions that show an effect, such as `About 830 questions`.

    `detectable`: the effect that `questions` show. Empty if these suffice, and if too many are needed.
    """
    needed = samples_for(effect, detectable, questions)
    return "" if needed is None or needed <= questions else f"About {_rounded(max(needed, FEWEST_DIFFERENT))} questions"


def more_labels(
    effect: float,
    errors: tuple[float | None, float | None],
    labelled: int,
    questions: int,
    *,
    two_sided: bool,
    level: float = LEVEL,
) -> str:
    """Return the number of labelled questions that show an effect, such as `About 60 labelled questions`.

    `errors`: the standard errors of the corrected number and of the judge's own. Empty if `labelled` suffice.
    """
    corrected, judged = errors
    if corrected is None or judged is None:
        return ""
    spread = LabelSpread.of(corrected, labelled, questions, judged**2 * questions)
    needed = labels_needed(effect, spread, two_sided=two_sided, level=level)
    if needed is None:
        return f"{MORE_THAN} these {questions:,} questions, all labelled"
    return "" if needed <= labelled else f"About {_rounded(needed)} labelled questions"


def _rounded(amount: int) -> str:
    """Return a number with two significant digits."""
    return f"{round(amount, 2 - len(str(amount))) if amount > 99 else amount:,}"
