"""`merilo watch`: judge a random part of live traffic and report if something changed."""

from __future__ import annotations

import queue
import re
import shlex
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from merilo.commands.command import Command, Json, Quiet, Section, given, takes_options
from merilo.commands.evaluate.options import Options
from merilo.commands.exit_codes import Exit
from merilo.commands.option import Flag, OptionGroup
from merilo.commands.option_values import share
from merilo.errors import ProviderError, UsageError

if TYPE_CHECKING:
    from merilo.commands.watch.journal import Journal
    from merilo.commands.watch.look import Watcher
    from merilo.commands.watch.settings import Watch

HELP = """Judge a part of live traffic and report what changed: system, questions or judge.

SOURCE is a JSON Lines file that grows, a folder of such files or of traces (.gz accepted, rotated or renamed), or "-"
for standard input. The first 2,000 judged units and seven days are the reference (--learn, --baseline). False alarms
have a limit that holds whenever you look: 0.05 a year (--false-alarms).

Exit codes with --once: 0 nothing changed, 1 system or questions changed, 2 usage error, 3 learning, too few new units
or cannot tell, 4 too many failed outcomes, 5 limit reached, 7 judge changed.
"""
EXAMPLES = """\b
Examples:
  merilo watch traces/ --state prod.watch --judge decisions:gpt-6-luna --metrics faithfulness
  merilo watch answers.jsonl --state prod.watch --once --prometheus watch.prom
  merilo watch answers.jsonl --state prod.watch --plan
  merilo watch answers.jsonl --state prod.watch --rebase 14d
"""
_WITHOUT: Final = (
    "limit draws out until.suite until.baseline reading.skip_invalid reading.shard reading.qrels reading.documents "
    "limits.runner limits.workers limits.max_requests limits.max_seconds storage.retry_failed storage.log_json "
    "storage.batch storage.batch_files"
)
_A_DAY: Final = Flag(
    help="Maximum cost per day.", group=OptionGroup.LIMITS, metavar="USD", name="--max-cost", type=float
)
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_REBASE_S: Final = 7 * 86_400
_ALARM_S: Final = 30
_LINES: Final = 1_000
"""Lines of standard input that wait for their choice at most."""


@takes_options(Options, without=tuple(_WITHOUT.split()), limits_max_cost_usd=_A_DAY)
def watch(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="File, folder, or - to watch.", callback=given, show_default=False)
    ],
    options: Options,
    state: Annotated[str | None, typer.Option(metavar="DIR", help="State directory.", callback=given)] = None,
    rate: Annotated[str, typer.Option(metavar="RATE", help="Fraction to judge.")] = "0.1",
    baseline: Annotated[str | None, typer.Option(metavar="RUN", help="Reference run.")] = None,
    learn: Annotated[int | None, typer.Option(metavar="N", help="Judged units of the reference.")] = None,
    anchors: Annotated[str, typer.Option(metavar="N|FILE", help="Samples that show if the judge changed.")] = "200",
    by: Annotated[str | None, typer.Option(metavar="FIELD", help="Compare each value with itself.")] = None,
    every: Annotated[str, typer.Option(metavar="TIME", help="Time between looks.")] = "1h",
    once: Annotated[bool, typer.Option("--once", help="Look once.")] = False,
    tolerance: Annotated[
        float | None, typer.Option(metavar="X", help="Allowed drop. [default: daily variation]")
    ] = None,
    false_alarms: Annotated[float, typer.Option(metavar="X", help="False alarms per year.", max=1.0)] = 0.05,
    settle: Annotated[str, typer.Option(metavar="TIME", help="Wait after the last span.")] = "10m",
    prometheus: Annotated[str | None, typer.Option(metavar="FILE", help="Write a .prom file.")] = None,
    on_alarm: Annotated[str | None, typer.Option(metavar="CMD", help="Run at an alarm, with JSON as input.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print what is found, and when.")] = False,
    rebase: Annotated[str | None, typer.Option(metavar="TIME", help="Make the last 14d the reference.")] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Allow another --rebase within 7 days.")] = False,
    now: Annotated[str | None, typer.Option(metavar="TIME", help="Time of the look, to replay traffic.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Watch."""
    from merilo.commands.watch.journal import Journal
    from merilo.commands.watch.look import Watcher
    from merilo.commands.watch.report import plan_page
    from merilo.commands.watch.settings import Watch
    from merilo.rendering.page import page_width, show

    if source == "-" and once:
        raise UsageError("Standard input is read until it ends. Leave out --once, or name a file.")
    if prometheus is not None and not prometheus.endswith(".prom"):
        raise UsageError(f"The node exporter reads .prom files only, got {prometheus} (--prometheus).")
    settings = Watch(
        source=None if source == "-" else Path(source),
        evaluation=options,
        rate=share(rate),
        learn=learn,
        baseline=None if baseline is None else Path(baseline),
        anchors=int(anchors) if anchors.isdecimal() else Path(anchors),
        by=by,
        tolerance=tolerance,
        false_alarms=false_alarms,
        settle_s=_seconds(settle),
    )
    fixed = None if now is None else _at(now)
    with Journal(Path(given(state))) as journal:
        if rebase is not None:
            _rebase(Watcher(settings, journal, fixed or time.time(), []), _seconds(rebase), anyway=anyway)
        if plan:
            show(plan_page(Watcher(settings, journal, fixed or time.time(), []), page_width()))
            return
        looks = _Looks(settings, journal, prometheus, on_alarm, json, quiet)
        if once or fixed is not None:
            raise typer.Exit(looks.look(fixed or time.time(), []))
        looks.repeat(_seconds(every))


class _Looks(NamedTuple):
    """The looks of a command, and what is done with their results."""

    settings: Watch
    journal: Journal
    prometheus: str | None
    on_alarm: str | None
    json: bool
    quiet: bool

    def repeat(self, every_s: float) -> None:
        """Look again and again, until standard input ends or the command is stopped."""
        from merilo.commands.watch.look import Watcher
        from merilo.rendering.page import tell

        arriving = None if self.settings.source is not None else _input_lines()
        pending: list[bytes] = []
        while True:
            until = time.monotonic() + every_s
            try:
                self.look(time.time(), pending)
            except ProviderError as error:
                tell(f"{error} The next look is in {every_s:g} s.")
            if arriving is None:
                time.sleep(max(0.0, until - time.monotonic()))
                continue
            while (left := until - time.monotonic()) > 0:
                with suppress(queue.Empty):
                    pending.append(arriving.get(timeout=left))
                if pending[-1:] == [b""]:
                    self.look(time.time(), pending[:-1])
                    return
                if len(pending) >= _LINES:
                    Watcher(self.settings, self.journal, time.time(), pending).arrive()

    def look(self, now: float, lines: list[bytes]) -> int:
        """Look once, report, and return the exit code."""
        from merilo.commands.blocking import run_blocking
        from merilo.commands.watch.evidence import State
        from merilo.commands.watch.look import Watcher
        from merilo.commands.watch.report import EXITS, watch_record

        watcher = Watcher(self.settings, self.journal, now, lines)
        watcher.arrive()
        run_blocking(watcher.look())
        found = watch_record(watcher)
        self._write(found)
        if watcher.problem and not found["alarm"]:
            return Exit.TOO_MANY_FAILED if watcher.failed else Exit.LIMIT_REACHED
        too_few = found["state"] == State.NOTHING and not watcher.looks
        return Exit.CANNOT_TELL if too_few else EXITS[State(found["state"])]

    def _write(self, found: dict[str, Any]) -> None:  # Any: JSON
        from merilo.commands.watch.report import alarm_json, prometheus_text, watch_page
        from merilo.rendering.page import page_width, show, tell, write
        from merilo.rendering.sanitize import json_text
        from merilo.runs.publish import write_file

        if self.json:
            write(json_text(found) + "\n")
        elif not self.quiet:
            show(watch_page(found, page_width()))
        if self.prometheus is not None:
            write_file(Path(self.prometheus), prometheus_text(found))
        if not (found["alarm"] and self.on_alarm) or self.journal.facts.get("notified") == found["alarm"]["id"]:
            return
        words = shlex.split(self.on_alarm)
        try:  # the user's own command, without a shell
            subprocess.run(words, input=alarm_json(found), text=True, timeout=_ALARM_S, check=True)  # noqa: S603
        except (OSError, subprocess.SubprocessError) as error:
            tell(f"The command of --on-alarm failed ({error}). It is run again at the next look.")
            return
        with self.journal.writing() as facts:
            facts["notified"] = found["alarm"]["id"]


def _rebase(watcher: Watcher, since_s: float, *, anyway: bool) -> None:
    if watcher.now - max(watcher.journal.facts.get("rebases", []), default=0.0) < _REBASE_S and not anyway:
        raise UsageError(
            "The last --rebase was less than 7 days ago, and a reference that is chosen until it is quiet promises "
            "nothing. Wait, or add --anyway."
        )
    watcher.rebase(watcher.now - since_s)


def _input_lines() -> queue.Queue[bytes]:
    """Return the queue of the lines of standard input, at last an empty one."""
    lines: queue.Queue[bytes] = queue.Queue(_LINES)

    def read() -> None:
        for line in chain(sys.stdin.buffer, [b""]):
            lines.put(line)

    Thread(target=read, daemon=True).start()
    return lines


def _seconds(text: str) -> float:
    """Return a duration such as 90s, 10m, 1h or 14d in seconds. Raises UsageError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd])\s*", text)
    if found is None:
        raise UsageError(f"A time is a number with s, m, h or d, such as 10m, got {text!r}.")
    return float(found[1]) * _UNITS[found[2]]


def _at(text: str) -> float:
    """Return a time, UTC without another zone. Raises UsageError."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--now is a time such as 2026-11-25T14:00, got {text!r}.") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


COMMAND = Command(
    name="watch",
    section=Section.MEASURE,
    summary="Judge a sample of live traffic and report drift.",
    help=HELP,
    call=watch,
    options="--state --judge --metrics --rate --baseline --learn --anchors --every --once --by --cluster --tolerance "
    "--false-alarms --max-cost --prometheus --on-alarm --plan --rebase --json",
    examples=EXAMPLES,
)
