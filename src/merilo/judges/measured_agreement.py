"""The measured agreement of a judge with human labels, and the metrics for which it is too weak.

Agreement is a table with one row for each kind of question. A kind is weak if the lower limit of its interval is below
`LOWEST_LIMIT`. A metric is weak with a judge if it asks a weak kind that decides something. Nothing else decides
this, except for a judge that names metrics itself (`Judge.weak_metrics`).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from merilo.judging.verdicts import DecisionVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from merilo.judges.base import Judge
    from merilo.judging.questions import Question
    from merilo.metrics.base import Metric

EMBEDDED_FILE: Final = "embedded_agreement.toml"

LOWEST_LIMIT: Final = 0.6
"""The smallest lower limit of a kind that is not weak: chance (0.5) and a margin of 0.1.

An AUROC of 0.6 means that the judge puts a positive record above a negative one in 60 of 100 pairs. A judge that may
be below this limit cannot be distinguished from chance in practice.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAgreement:
    """The agreement of a judge with human labels on one kind of question, on sources that it was not fitted on."""

    kind: str
    """The kind of question, such as `support`."""
    form: str = ""
    """The part of the kind that the row covers, such as "short answers"; empty for the kind as a whole.

    Only a row for the kind as a whole makes the kind weak: most questions do not have the form.
    """
    value: float
    lower: float | None = None
    upper: float | None = None
    """The ends of the 95 % interval over families of sources; None if there is one family."""
    families: int | None = None
    """Number of families of sources; None if not recorded."""

    @property
    def clears_chance(self) -> bool:
        """True if the lower limit is at least `LOWEST_LIMIT`; one family shows nothing about another."""
        return self.lower is not None and self.lower >= LOWEST_LIMIT

    def __str__(self) -> str:
        interval = "one family" if self.lower is None else f"{self.lower:.2f} - {self.upper:.2f}"
        families = f", {self.families} families" if self.lower is not None and self.families else ""
        return f"{self.form or self.kind} {self.value:.2f} ({interval}{families})"


@cache
def _table() -> dict[str, Any]:  # Any: parsed TOML
    return tomllib.loads(files("merilo.judges").joinpath(EMBEDDED_FILE).read_text(encoding="utf-8"))


@cache
def embedded_agreement() -> tuple[MeasuredAgreement, ...]:
    """Return the measured agreement of the embedded judge."""
    shown = ("kind", "form", "value", "lower", "upper", "families")
    return tuple(
        MeasuredAgreement(**{name: each[name] for name in shown if name in each}) for each in _table()["measured"]
    )


def embedded_right() -> float:
    """Return the fraction of the embedded judge's verdicts on support that are right, on answers that no fit has seen.

    Answers that it does not judge do not count.
    """
    return float(_table()["right"])


def weak_kinds(rows: Iterable[MeasuredAgreement]) -> frozenset[str]:
    """Return the kinds of question whose agreement does not clear chance.

    A kind without a row for the kind as a whole is not among them: nothing is known about it.
    """
    return frozenset(each.kind for each in rows if not each.form and not each.clears_chance)


def decided_kinds(metric: Metric) -> frozenset[type[Question[Any]]]:  # Any: whatever its verdict is
    """Return the kinds of question of a metric whose verdicts decide something.

    A list of statements decides nothing.
    """
    return frozenset(kind for kind in metric.asks if issubclass(kind.verdict, DecisionVerdict))


def is_weak(judge: Judge | None, kind: type[Question[Any]], metric: str) -> bool:  # Any: as above
    """Return True if a judge is weak in this kind of question, or names the metric as weak. None: no judge."""
    weak: frozenset[str] = getattr(judge, "weak_kinds", frozenset())
    named: frozenset[str] = getattr(judge, "weak_metrics", frozenset())
    return kind.kind in weak or metric in named
