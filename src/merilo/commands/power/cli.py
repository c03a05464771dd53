"""The options of `merilo plan` for a pilot run: samples needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from merilo.errors import UsageError

if TYPE_CHECKING:
    from merilo.commands.power.result import Power

Pilots = Annotated[
    list[str] | None,
    typer.Option("--power", metavar="RUN", help="Pilot run to estimate the needed samples from; twice: paired runs."),
]
Difference = Annotated[float | None, typer.Option(metavar="D", help="With --power: difference of means to detect.")]
PilotCluster = Annotated[
    str | None,
    typer.Option(metavar="FIELD", help="With --power: samples with the same value of this field form one cluster."),
]


Labelled = Annotated[
    list[str] | None,
    typer.Option("--labels", metavar="RUN", help="Run to estimate the needed human labels for; twice: a pair."),
]
Gates = Annotated[str | None, typer.Option(metavar="SUITE", help="With --labels: the gates that labels decide.")]


class Pilot(NamedTuple):
    """The options about pilot runs."""

    runs: list[str]
    difference: float | None
    cluster: str | None
    labels: tuple[str, ...] = ()
    gates: str | None = None

    def check(self, data: str | None) -> None:
        """Raise UsageError for options that need a pilot, and if there are neither data nor a pilot."""
        if self.gates is not None and not self.labels:
            raise UsageError("--gates needs a run: add --labels RUN.")
        if self.runs or (self.labels and data is None):
            return
        named = {
            "--difference": None if self.labels else self.difference,
            "--cluster": self.cluster,
        }
        for name, value in named.items():
            if value is not None:
                raise UsageError(f"{name} needs a pilot run: add --power RUN.")
        if data is None:
            raise UsageError("Give a file to evaluate (DATA) or a pilot run (--power RUN); see merilo plan --help.")

    def estimates(self, metrics: list[str] | None) -> Power | None:
        """Return the estimates from the pilots; None without a pilot."""
        if not self.runs:
            return None
        from merilo.commands.power.run import power_of

        return power_of(self.runs, self.difference, metrics=metrics, cluster=self.cluster)


def report_labels(pilot: Pilot, metrics: list[str] | None, *, json: bool) -> None:
    """Print the number of labels that decide."""
    from merilo.commands.gate.suite import read_suite
    from merilo.commands.power.labels import labels_plan, labels_record, labels_section
    from merilo.rendering.page import Page
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    suite = None if pilot.gates is None else read_suite(pilot.gates)
    found = labels_plan(pilot.labels, suite, pilot.difference, metrics)
    if json:
        write(json_text({"labels": labels_record(found)}) + "\n")
        return
    page = Page(page_width())
    labels_section(page, found)
    show(page)


def report_power(found: Power, *, json: bool) -> None:
    """Print the estimates from a pilot, for a plan without data."""
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
