"""`merilo watch`: judge a random part of live traffic and report if something changed."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from merilo.commands.command import Command, Json, Quiet, Section, takes_options
from merilo.commands.evaluate.options import Options
from merilo.commands.exit_codes import Exit
from merilo.commands.option import Flag, OptionGroup, share
from merilo.errors import ProviderError, RunError, UsageError

if TYPE_CHECKING:
    from merilo.commands.watch.journal import Journal
    from merilo.commands.watch.settings import Watch
    from merilo.commands.watch.standard_input import StandardInput

HELP = """Judge a part of live traffic and report what changed: system, questions or judge.

SOURCE is a JSON Lines file that grows, a folder of such files or of traces (.gz accepted, rotated or renamed), or "-"
for standard input. The first 2,000 judged units and seven days are the reference (--learn, --baseline). False alarms
have a limit: 0.05 a year in simulations, however often you look (--false-alarms).

Exit codes with --once: 0 nothing changed, 1 system or questions changed, 2 usage error, 3 learning, too few new units
or cannot tell, 4 too many failed outcomes, 5 limit reached, 7 judge changed.
"""
EXAMPLES = """\b
Examples:
  merilo watch traces/ --state prod.watch --judge decisions:gpt-6-luna --metrics faithfulness
  merilo watch answers.jsonl --state prod.watch --once --prometheus watch.prom
  merilo watch answers.jsonl --state prod.watch --rebase 14d --once
"""
_WITHOUT: Final = (
    "limit draws out reading.skip_invalid reading.shard reading.qrels reading.documents "
    "limits.runner limits.workers limits.max_requests limits.max_seconds storage.retry_failed storage.batch "
    "storage.batch_files"
)
_A_DAY: Final = Flag(
    help="Maximum cost per day.", group=OptionGroup.LIMITS, metavar="USD", name="--max-cost", type=float
)
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_LONGEST_S: Final = 3_650 * 86_400
_ALARM_S: Final = 30


@takes_options(Options, without=tuple(_WITHOUT.split()), limits_max_cost_usd=_A_DAY)
def watch(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="File, folder, or - to watch.", show_default=False)],
    options: Options,
    state: Annotated[str, typer.Option(metavar="DIR", help="State directory.")],
    rate: Annotated[str, typer.Option(metavar="RATE", help="Fraction to judge.")] = "0.1",
    baseline: Annotated[str | None, typer.Option(metavar="RUN", help="Reference run.")] = None,
    learn: Annotated[int | None, typer.Option(metavar="N", help="Judged units of the reference.", min=1)] = None,
    anchors: Annotated[int, typer.Option(metavar="N", help="Samples that show if the judge changed.", min=0)] = 200,
    by: Annotated[str | None, typer.Option(metavar="FIELD", help="Compare each value with itself.")] = None,
    every: Annotated[str, typer.Option(metavar="TIME", help="Time between looks.")] = "1h",
    once: Annotated[bool, typer.Option("--once", help="Look once.")] = False,
    tolerance: Annotated[
        float | None, typer.Option(metavar="X", help="Allowed drop. [default: 0; 0.15 within a day]", min=0.0, max=1.0)
    ] = None,
    false_alarms: Annotated[float, typer.Option(metavar="X", help="False alarms per year.", min=0.001, max=1.0)] = 0.05,
    settle: Annotated[str, typer.Option(metavar="TIME", help="Wait after the last span.")] = "10m",
    prometheus: Annotated[str | None, typer.Option(metavar="FILE", help="Write a .prom file.")] = None,
    on_alarm: Annotated[str | None, typer.Option(metavar="CMD", help="Run at an alarm, with JSON as input.")] = None,
    rebase: Annotated[str | None, typer.Option(metavar="TIME", help="Make the last 14d the reference.")] = None,
    now: Annotated[
        datetime | None,
        typer.Option(metavar="TIME", help="UTC time of the look, to replay traffic.", formats=["%Y-%m-%dT%H:%M"]),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Watch."""
    from merilo.commands.watch.journal import Journal
    from merilo.commands.watch.look import Watcher
    from merilo.commands.watch.settings import Watch
    from merilo.commands.watch.standard_input import StandardInput

    if prometheus is not None and not prometheus.endswith(".prom"):
        raise UsageError(f"The node exporter reads .prom files only, got {prometheus} (--prometheus).")
    every_s = _seconds(every)
    settings = Watch(
        source=Path(state, "input") if source == "-" else Path(source),
        evaluation=options,
        rate=share(rate, above=0.0),
        learn=learn,
        baseline=None if baseline is None else Path(baseline),
        anchors=anchors,
        by=by,
        tolerance=tolerance,
        false_alarms=false_alarms,
        settle_s=_seconds(settle),
    )
    fixed = None if now is None else now.replace(tzinfo=UTC).timestamp()
    with Journal(Path(state)) as journal:
        if rebase is not None:
            watcher = Watcher(settings, journal, fixed or time.time())
            watcher.rebase(watcher.now - _seconds(rebase))
        arriving = StandardInput(settings.source) if source == "-" else None
        looks = _Looks(settings, journal, arriving, prometheus, on_alarm, json, quiet)
        if once or fixed is not None:
            if arriving is not None:
                arriving.ended.wait()
            raise typer.Exit(looks.look(fixed or time.time()))
        looks.repeat(every_s)


class _Looks(NamedTuple):
    """The looks of a command, and what is done with their results."""

    settings: Watch
    journal: Journal
    arriving: StandardInput | None
    prometheus: str | None
    on_alarm: str | None
    json: bool
    quiet: bool

    def repeat(self, every_s: float) -> None:
        """Look again and again, until the command is stopped or standard input ends."""
        from merilo.rendering.page import tell

        code: int = Exit.CANNOT_TELL
        while True:
            until = time.monotonic() + every_s
            try:
                code = self.look(time.time())
            except (ProviderError, RunError) as error:  # a full disk is waited for too
                tell(f"{error} The next look is in {every_s:g} s.")
            wait_s = max(1.0, until - time.monotonic())
            if self.arriving is None:
                time.sleep(wait_s)
            elif self.arriving.ended.wait(wait_s):
                raise typer.Exit(self.look(time.time()) if self.arriving.waiting else code)

    def look(self, now: float) -> int:
        """Look once, report, and return the exit code."""
        from merilo.commands.blocking import run_blocking
        from merilo.commands.watch.evidence import State
        from merilo.commands.watch.look import Watcher
        from merilo.commands.watch.report import watch_record
        from merilo.commands.watch.tail import Position
        from merilo.rendering.page import tell

        watcher = Watcher(self.settings, self.journal, now)
        if watcher.behind_s:
            tell(f"The clock is {watcher.behind_s:,.0f} s behind the last look. The times of the watch are set back.")
        if self.arriving is not None:
            self.arriving.rotate()
        watcher.arrive()
        if self.arriving is not None:
            self.arriving.drop(Position(**each) for each in self.journal.facts["positions"])
        run_blocking(watcher.look())
        found = watch_record(watcher)
        self._write(found)
        if watcher.problem and not found["alarm"]:
            return Exit.TOO_MANY_FAILED if watcher.failed else Exit.LIMIT_REACHED
        match State(found["state"]):
            case State.SYSTEM | State.QUESTIONS:
                return Exit.GATE_FAILED
            case State.JUDGE:
                return Exit.JUDGE_CHANGED
            case State.NOTHING if watcher.looks:
                return Exit.DONE
            case _:
                return Exit.CANNOT_TELL

    def _write(self, found: dict[str, Any]) -> None:  # Any: JSON
        from merilo.commands.watch.report import prometheus_text, watch_page
        from merilo.data.sanitize import json_text
        from merilo.rendering.page import page_width, show, write
        from merilo.runs.files import write_file

        if self.json:
            write(json_text(found) + "\n")
        elif not self.quiet:
            show(watch_page(found, page_width()))
        if (alarm := found["alarm"]) and self.on_alarm and self.journal.facts.get("notified") != alarm["id"]:
            self._notify(self.on_alarm, alarm)
        if self.prometheus is not None:
            try:
                write_file(Path(self.prometheus), prometheus_text(found))
            except OSError as error:
                raise UsageError(
                    f"{self.prometheus} cannot be written ({error.strerror}). See --prometheus."
                ) from error

    def _notify(self, command: str, alarm: dict[str, Any]) -> None:  # Any: JSON
        from merilo.data.sanitize import json_text
        from merilo.rendering.page import tell

        try:  # the user's own command, without a shell; standard output is for merilo's own document
            words = shlex.split(command)
            with subprocess.Popen(  # noqa: S603
                words, stdin=subprocess.PIPE, stdout=sys.__stderr__, text=True, start_new_session=True
            ) as process:
                try:
                    process.communicate(json_text(alarm), _ALARM_S)
                finally:
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, words)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            tell(f"The command of --on-alarm failed ({error}). It is run again at the next look.")
            return
        with self.journal.writing() as facts:
            facts["notified"] = alarm["id"]


def _seconds(text: str) -> float:
    """Return a duration such as 90s, 10m, 1h or 14d in seconds. Raises UsageError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd])\s*", text)
    seconds = inf if found is None else float(found[1]) * _UNITS[found[2]]
    if seconds > _LONGEST_S:
        raise UsageError(f"A time is a number with s, m, h or d, such as 10m, up to 3650d, got {text!r:.60}.")
    return seconds


COMMAND = Command(
    name="watch",
    section=Section.MEASURE,
    summary="Judge a sample of live traffic and report drift.",
    help=HELP,
    call=watch,
    options="--state --judge --metrics --rate --by --every --once --max-cost --on-alarm --prometheus --rebase --json",
    examples=EXAMPLES,
)
