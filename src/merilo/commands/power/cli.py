"""The part of `merilo plan` that a pilot run tells: samples needed, and whether stopping early can pay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from merilo.errors import UsageError

if TYPE_CHECKING:
    from merilo.commands.power.result import Power

Pilots = Annotated[
    list[str] | None,
    typer.Option("--power", metavar="RUN", help="A pilot that tells how scores spread; twice: how two runs differ."),
]
Difference = Annotated[
    float | None, typer.Option(metavar="D", help="With --power: the difference of means to be shown.")
]
UntilDecided = Annotated[
    str | None, typer.Option(metavar="SUITE", help="With --power: say whether stopping early can pay.")
]
PilotCluster = Annotated[
    str | None,
    typer.Option(metavar="FIELD", help="With --power: samples with the same value of this field count together."),
]


class Pilot(NamedTuple):
    """What is asked of pilot runs."""

    runs: list[str]
    difference: float | None
    until_decided: str | None
    cluster: str | None

    def check(self, data: str | None) -> None:
        """Raises UsageError for what is asked without a pilot, and where there are neither data nor a pilot."""
        if self.runs:
            return
        named = {"--difference": self.difference, "--until-decided": self.until_decided, "--cluster": self.cluster}
        for name, value in named.items():
            if value is not None:
                raise UsageError(f"{name} is told from a pilot; name a run that is there (--power RUN).")
        if data is None:
            raise UsageError("Name the file to evaluate (DATA), or a pilot run (--power RUN); see merilo plan --help.")

    def told(self, metrics: list[str] | None, most: int | None) -> Power | None:
        """What the pilots say of runs of so many samples; None where none was named."""
        if not self.runs:
            return None
        from merilo.commands.gate.suite import until_from
        from merilo.commands.power.run import power_of

        until = None if self.until_decided is None else until_from(self.until_decided)
        return power_of(self.runs, self.difference, metrics=metrics, until=until, most=most, cluster=self.cluster)


def report_power(found: Power, *, json: bool) -> None:
    """Print what a pilot says alone."""
    from merilo.commands.power.result import power_record, power_section
    from merilo.rendering.page import Page
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    if json:
        write(json_text({"power": power_record(found)}) + "\n")
        return
    page = Page(page_width())
    power_section(page, found)
    show(page)
