"""The options of an estimate."""

from __future__ import annotations

from dataclasses import dataclass, field

from merilo.commands.evaluate.options import Options
from merilo.commands.option import Flag, OptionGroup, option
from merilo.engine.amounts import LOOKED_AT
from merilo.errors import UsageError


def _samples(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--sample takes a number of samples or all, got {text!r}.")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class PlanOptions(Options):
    """The options of an evaluation that is estimated, and those of the estimate."""

    sample: int | None = field(
        default=LOOKED_AT,
        metadata=option(
            "number of samples to read, spread evenly over the data. Counts are scaled up. None: all.",
            Flag(
                help="Number of samples to read, spread evenly, or all; counts are scaled up.",
                metavar="N",
                default=str(LOOKED_AT),
                read=_samples,
                group=OptionGroup.DATA,
                in_project_file=False,
            ),
        ),
    )
    latency_s: float | None = field(
        default=None,
        metadata=option(
            "seconds per reply, if the run in `out` has not measured them.",
            Flag(
                help="Seconds per reply, if the run has not measured them.",
                metavar="SECONDS",
                name="--latency",
                type=float,
                group=OptionGroup.LIMITS,
                in_project_file=False,
            ),
        ),
    )
