"""The options of `merilo judge probe`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from merilo.commands.evaluate.options import Options, mapping_or_none
from merilo.commands.flags import shares_by_name
from merilo.commands.option import Flag, OptionGroup, call_option, repeatable_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

SAMPLE: Final = 400
"""Default number of trials of a probe. With no change in 400 trials the one-sided limit of the rate is 0.7 %."""
MAPPING: Final = Flag(
    help="Read a field of --data from this column. Repeatable.",
    metavar="COLUMN=FIELD",
    name="--map",
    many=True,
    read=mapping_or_none,
    group=OptionGroup.DATA,
)


def _limits(texts: list[str] | None) -> dict[str, float]:
    return shares_by_name(texts or [], "--limit")


@dataclass(frozen=True, kw_only=True)
class ProbeOptions(Options):
    """The probes of a judge, the data that they edit, and the options of the evaluation.

    Of these, `metrics`, `draws`, `prompts`, `limit` and `language` have no effect; `mapping` applies to `data`.
    """

    probes: Sequence[str] = field(
        default=(),
        metadata=repeatable_option(
            'names of probes, such as "instructions". Empty: all.',
            help="Only this probe. Repeatable.",
            metavar="NAME",
            name="--probe",
        ),
    )
    labels: Sequence[str | PathLike[str]] = field(
        default=(),
        metadata=repeatable_option(
            "files of labelled records, as for `judge_check`.",
            help="File of labels, as for judge check. Repeatable.",
            metavar="FILE",
        ),
    )
    data: str | PathLike[str] | None = field(
        default=None,
        metadata=call_option(
            "path of data as `evaluate` takes it. If neither labels nor data are given, the labels and examples that "
            "ship with merilo are used.",
            help="Data as for merilo run, without labels.",
            metavar="DATA",
        ),
    )
    sample: int = field(
        default=SAMPLE,
        metadata=call_option(
            "maximum number of pairs per probe; the same ones for the same seed.",
            help="Maximum pairs per probe.",
            metavar="N",
            type=int,
            default=SAMPLE,
        ),
    )
    seed: int = field(
        default=0,
        metadata=call_option(
            "chooses the pairs and the position of what is inserted.",
            help="Seed that chooses the pairs and positions.",
            metavar="N",
            type=int,
            default=0,
        ),
    )
    limits: Mapping[str, float] = field(
        default_factory=dict[str, float],
        metadata=repeatable_option(
            "name of a probe → largest effect that passes. Default: the limit of each probe.",
            help="Maximum effect with which a probe passes, such as order=2%. Repeatable.",
            metavar="NAME=RATE",
            name="--limit",
            read=_limits,
        ),
    )
