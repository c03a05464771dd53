"""The options of `merilo judge check`."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.evaluate.options import Options
from merilo.commands.option import Flag, OptionGroup, flags_of, opt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judges.base import JudgeLike


def _one_judge(specs: list[str] | None) -> list[str]:
    from merilo.judges.route_specs import one_judge

    return one_judge(specs or ["embedded"])


ONE_JUDGE: Final = Flag(
    help="embedded (the default), local:MODEL, PROVIDER:MODEL (as openai:MODEL), scripted:FILE or FILE.py:NAME. "
    "Repeat KIND,...=SPEC for a judge per kind of question.",
    metavar="SPEC",
    many=True,
    read=_one_judge,
    group=OptionGroup.JUDGES,
)
"""The flag of a command that asks one judge, which may have a route for each kind of question."""
ABOUT_DATA: Final = (
    *(name for name in flags_of(Options) if name.startswith("embedder")),
    "metrics",
    "cross_encoder",
    "draws",
    "prompts",
    "limit",
    "shard",
    "language",
    "cluster",
    "skip_invalid",
    "until_decided",
    "batch",
    "batch_files",
    "runner",
    "workers",
    "baseline",
)
"""Options of an evaluation that say nothing about one judge."""


def _given(texts: list[str] | None) -> Sequence[str]:
    return texts or ()


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Options):
    """The questions with which a judge is checked, and the options of the evaluation.

    Of these, `metrics`, `draws`, `prompts`, `mapping`, `limit` and `language` have no effect.
    """

    labels: Sequence[str | PathLike[str]] = opt(
        (),
        OptionGroup.DATA,
        "File of human labels. Repeatable. [default: the sample in merilo]",
        metavar="FILE",
        many=True,
        read=_given,
        in_project_file=False,
    )
    tasks: Sequence[str] = opt(
        (),
        OptionGroup.DATA,
        "Only trial, edits, a task of the labels or one edit. Repeatable.",
        name="--task",
        metavar="NAME",
        many=True,
        read=_given,
        in_project_file=False,
    )
    number: int | None = opt(
        None,
        OptionGroup.DATA,
        "Maximum records per task and source, and pairs per edit, always the same ones. [default: all, 40]",
        metavar="N",
        type=int,
        in_project_file=False,
    )
    against: JudgeLike | None = opt(
        None,
        OptionGroup.JUDGES,
        "Also ask this judge about the labels, and compare the two.",
        metavar="SPEC",
        in_project_file=False,
    )


LIMITS: Final = (
    "max_cost_usd",
    "max_requests",
    "max_seconds",
    "concurrency",
    "requests_per_minute",
    "tokens_per_minute",
    "timeout_s",
    "unanswered",
    "prices",
)
"""The options of an evaluation that `limits` of `merilo.judge_check` may contain."""


def check_options(
    *,
    labels: str | PathLike[str] | Sequence[str | PathLike[str]] | None,
    tasks: Sequence[str] | None,
    limits: Mapping[str, object] | None,
    **given: Any,  # Any: fields of the options
) -> CheckOptions:
    """Return the options of a check from the arguments of `merilo.judge_check`. Raises TypeError for another limit."""
    if unknown := next((name for name in limits or () if name not in LIMITS), None):
        close = get_close_matches(unknown, LIMITS, n=1)
        advice = f"did you mean {close[0]!r}?" if close else f"limits are {', '.join(LIMITS)}."
        raise TypeError(f"judge_check() has no limit {unknown!r}; {advice}")
    files = [labels] if isinstance(labels, str | PathLike) else labels or ()
    fields: dict[str, Any] = {**given, **(limits or {})}  # Any: as above
    return CheckOptions(labels=files, tasks=tasks or (), **fields)
