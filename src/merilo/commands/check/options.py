"""The options of `merilo judge check`."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.evaluate.options import Options
from merilo.commands.keywords import keyword_options
from merilo.commands.option import Flag, OptionGroup, flags_of, opt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judges.base import JudgeLike


def _one_judge(specs: list[str] | None) -> list[str]:
    from merilo.judges.routed import one_judge

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
    "metrics",
    "judge.prompts",
    "mapping",
    "language",
    "cluster",
    "limit",
    "draws",
    *(name for name in flags_of(Options) if name.startswith(("reading.", "until"))),
    "limits.runner",
    "limits.workers",
    "storage.batch",
    "storage.batch_files",
)
"""Options of an evaluation that say nothing about one judge."""


def _given(texts: list[str] | None) -> Sequence[str]:
    return texts or ()


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Options):
    """The questions with which a judge is checked, and the options of the evaluation.

    Of these, `metrics`, `draws`, `mapping`, `limit` and `language` have no effect.
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


def check_options(
    *,
    labels: str | PathLike[str] | Sequence[str | PathLike[str]] | None,
    tasks: Sequence[str] | None,
    **given: Any,  # Any: fields of the options
) -> CheckOptions:
    """Return the options of a check from the arguments of `merilo.judge_check`. Raises UsageError for another limit."""
    files = [labels] if isinstance(labels, str | PathLike) else labels or ()
    return keyword_options(CheckOptions, {**given, "labels": files, "tasks": tasks or ()})
