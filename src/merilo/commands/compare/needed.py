"""The number of questions or labels that would decide a comparison or a gate."""

from __future__ import annotations

from typing import Final

from merilo.rendering.wording import about
from merilo.stats.distributions import normal_quantile
from merilo.stats.intervals import LEVEL
from merilo.stats.paired import FEWEST_DIFFERENT
from merilo.stats.power import POWER, LabelSpread, labels_needed, samples_for

ALL_LABELLED: Final = ", all labelled"
"""Ends the text if labels of all questions so far do not suffice."""


def more_questions(effect: float, detectable: float, questions: int) -> str:
    """Return the number of questions that show an effect, such as `About 830 questions`.

    `detectable`: the effect that `questions` show. Empty if these suffice, and if too many are needed.
    """
    needed = samples_for(effect, detectable, questions)
    return "" if needed is None or needed <= questions else f"About {about(max(needed, FEWEST_DIFFERENT))} questions"


def more_labels(effect: float, errors: tuple[float | None, float | None], labelled: int, questions: int) -> str:
    """Return the number of labelled questions that show an effect, such as `About 60 labelled questions`.

    If all questions so far are too few: `About 830 questions, all labelled`. `errors`: the standard errors of the
    corrected number and of the judge's own. Empty if `labelled` suffice, and if too many are needed.
    """
    corrected, judged = errors
    if corrected is None or judged is None:
        return ""
    spread = LabelSpread.of(corrected, labelled, questions, judged**2 * questions)
    if labelled >= questions or (needed := labels_needed(effect, spread, two_sided=True)) is None:
        error = corrected if labelled >= questions else spread.error(questions)
        detectable = error * (normal_quantile((1 + LEVEL) / 2) + normal_quantile(POWER))
        more = more_questions(effect, detectable, questions)
        return f"{more}{ALL_LABELLED}" if more else ""
    return "" if needed <= labelled else f"About {about(needed)} labelled questions"
