"""The options of `merilo judge check`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypedDict

from merilo.commands.evaluate.options import Options
from merilo.commands.option import Flag, OptionGroup, flags_of, opt

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from merilo.commands.evaluate.options import AsDict, Limits, Storage
    from merilo.engine.progress import Progress


def _one_judge(specs: list[str] | None) -> list[str]:
    from merilo.judges.route_specs import one_judge

    return one_judge(specs or ["embedded"])


def _texts(texts: list[str] | None) -> Sequence[str]:
    return texts or ()


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


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Options):
    """The questions with which a judge is checked, and the options of the evaluation.

    Of these, `metrics`, `draws`, `mapping`, `limit` and `language` have no effect.
    """

    labels: Sequence[str | PathLike[str]] = opt(
        (),
        OptionGroup.DATA,
        "File of human labels. Repeatable. [default: the sample in merilo]",
        details="files of labelled records. Empty: the sample that ships with merilo.",
        metavar="FILE",
        many=True,
        read=_texts,
        in_project_file=False,
    )
    tasks: Sequence[str] = opt(
        (),
        OptionGroup.DATA,
        "Only trial, edits, a task of the labels or one edit. Repeatable.",
        details='"trial", "edits", tasks of the labels, such as "nli", or single edits, such as "order". Empty: all.',
        metavar="NAME",
        name="--task",
        many=True,
        read=_texts,
        in_project_file=False,
    )
    sources: Sequence[str] = opt(
        (),
        OptionGroup.DATA,
        "Only labels from this source. Repeatable.",
        details="only labels from these sources. Empty: all.",
        metavar="NAME",
        name="--source",
        many=True,
        read=_texts,
        in_project_file=False,
    )
    include_constructed: bool = opt(
        False,
        OptionGroup.DATA,
        "Also use records with rule-generated labels, in separate tables.",
        type=bool,
        in_project_file=False,
    )
    number: int | None = opt(
        None,
        OptionGroup.DATA,
        "Maximum records per task and source, and pairs per edit. [default: all, 40]",
        details="maximum number of records per task and source, and of pairs per edit. The same ones are chosen each "
        "time. None: all records, 40 pairs.",
        metavar="N",
        type=int,
        in_project_file=False,
    )


class CheckKeywords(TypedDict, total=False):
    """The keywords of `judge_check` besides the judge."""

    out: str | PathLike[str] | None
    limits: Limits | AsDict | None
    storage: Storage | AsDict | None
    progress: Progress | None

    labels: Sequence[str | PathLike[str]]
    tasks: Sequence[str]
    sources: Sequence[str]
    include_constructed: bool
    number: int | None
