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
"""The flag of a command that tests one judge, which may have a route for each kind of question."""
RETRY_FAILED: Final = Flag(
    help="Retry questions that failed in --out.", type=bool, default=False, group=OptionGroup.OUTPUT
)
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
    """The labelled records with which a judge is compared, and the options of the evaluation.

    Of these, `metrics`, `draws`, `prompts`, `mapping`, `limit` and `language` have no effect.
    """

    labels: Sequence[str | PathLike[str]] = field(
        default=(),
        metadata=repeatable_option(
            "files of labelled records. Empty: the sample that ships with merilo.",
            help="File of human labels. Repeatable.",
            metavar="FILE",
        ),
    )
    tasks: Sequence[str] = field(
        default=(),
        metadata=repeatable_option(
            "only these tasks. Empty: all.",
            help="Only this task. Repeatable.",
            metavar="NAME",
            name="--task",
        ),
    )
    sources: Sequence[str] = field(
        default=(),
        metadata=repeatable_option(
            "only these sources. Empty: all.",
            help="Only this source. Repeatable.",
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
    each_sentence: bool | None = field(
        default=None,
        metadata=call_option(
            "also judge every labelled sentence alone, which gives it a probability. None: only if it is free.",
            help="Also judge every labelled sentence alone. [default: only if it is free]",
            name="--each-sentence/--no-each-sentence",
            type=bool,
        ),
    )
    sample: int | None = field(
        default=None,
        metadata=call_option(
            "maximum number of records per task and source. The same ones are chosen each time. None: all.",
            help="Maximum records per task and source.",
            metavar="N",
            type=int,
        ),
    )
