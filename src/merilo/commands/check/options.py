"""The options of `merilo judge check`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from merilo.commands.evaluate.options import Options
from merilo.commands.option import Flag, OptionGroup, call_option, flags_of, repeatable_option

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike


def _one_judge(specs: list[str] | None) -> list[str]:
    from merilo.judges.route_specs import one_judge

    return one_judge(specs or ["embedded"])


ONE_JUDGE: Final = Flag(
    help="embedded (the default), local:MODEL, PROVIDER:MODEL (as openai:MODEL), scripted:FILE, FILE.py:NAME or "
    "FIRST>SECOND. Repeat KIND,...=SPEC for a judge per kind of question.",
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
    "record",
    "outcomes",
    "until_decided",
    "batch",
    "batch_files",
    "runner",
    "workers",
    "baseline",
)
"""Options of an evaluation that say nothing about one judge."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Options):
    """The questions with which a judge is checked, and the options of the evaluation.

    Of these, `metrics`, `draws`, `prompts`, `mapping`, `limit` and `language` have no effect.
    """

    labels: Sequence[str | PathLike[str]] = field(
        default=(),
        metadata=repeatable_option(
            "files of labelled records. Empty: the sample that ships with merilo.",
            help="File of human labels. Repeatable. [default: the sample in merilo]",
            metavar="FILE",
        ),
    )
    tasks: Sequence[str] = field(
        default=(),
        metadata=repeatable_option(
            '"trial", "edits", tasks of the labels, such as "nli", or single edits, such as "order". Empty: all.',
            help="Only trial, edits, a task of the labels or one edit. Repeatable.",
            metavar="NAME",
            name="--task",
        ),
    )
    sources: Sequence[str] = field(
        default=(),
        metadata=repeatable_option(
            "only labels from these sources. Empty: all.",
            help="Only labels from this source. Repeatable.",
            metavar="NAME",
            name="--source",
        ),
    )
    include_constructed: bool = field(
        default=False,
        metadata=call_option(
            "also use records whose label was generated from a rule; their tables are separate.",
            help="Also use records with rule-generated labels, in separate tables.",
            type=bool,
            default=False,
        ),
    )
    number: int | None = field(
        default=None,
        metadata=call_option(
            "maximum number of records per task and source, and of pairs per edit. The same ones are chosen each time. "
            "None: all records, 40 pairs.",
            help="Maximum records per task and source, and pairs per edit. [default: all, 40]",
            metavar="N",
            type=int,
        ),
    )
