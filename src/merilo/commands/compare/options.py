"""The options of a comparison, in Python and on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from merilo.commands.option import metric_texts, opt
from merilo.stats.compare import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence


def _texts(given: list[str] | None) -> list[str] | None:
    return metric_texts(given) if given else None


_opt = partial(opt, group=None, in_project_file=False)
_metrics = partial(_opt, None, metavar="M,...", many=True, read=_texts)


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """The options of a comparison."""

    metrics: str | Sequence[str] | None = _metrics(text="Compare only these metrics. [default: all that every run has]")
    primary: str | Sequence[str] | None = _metrics(
        text="Draw conclusions for these metrics only, corrected together (Holm). [default: all]"
    )
    within: float | None = _opt(
        None, text="Name the cheapest run that is at most D worse than every other one.", metavar="D", type=float
    )
    against: str | None = _opt(None, text="With --within: at most D worse than this run.", metavar="RUN")
    prefer: str | None = _opt(
        None, text="Choose among equally good runs by cost, latency or another measure.", metavar="MEASURE"
    )
    cluster: str | None = _opt(
        None,
        text="Group samples that share this field or metadata key; intervals are over groups.",
        metavar="FIELD",
    )
    undefined: str = _opt(
        Policy.DROP.value,
        text="Undefined in one run only: drop the pair, or count it as worst.",
        metavar="drop|worst",
    )
    across_judges: bool = _opt(False, text="Compare even if judges, rubrics or versions differ.", type=bool)
    across_data: bool = _opt(
        False, text="Compare the samples that match, even if more than one in ten do not.", type=bool
    )
    judge_only: bool = _opt(False, text="Leave human labels out: every number is the judge's own.", type=bool)
    samples: int = 20
    """Maximum number of samples that changed most to include. Set by merilo only."""
