"""`merilo judge probe`: test the robustness of a judge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.check.one_judge import progress_line, until_done
from merilo.commands.check.options import ABOUT_DATA, ONE_JUDGE, RETRY_FAILED
from merilo.commands.command import Command, Section
from merilo.commands.exit_codes import Exit
from merilo.commands.flags import Debug, Json, Quiet
from merilo.commands.judge.output import check_whole, tell
from merilo.commands.option import Flag, OptionGroup
from merilo.commands.option_flags import takes_options
from merilo.commands.probe.options import MAPPING, ProbeOptions

if TYPE_CHECKING:
    from os import PathLike

    from merilo.commands.probe.run import ProbeReport

HELP = """Test the robustness of a judge: edit its input where the effect on the verdict is known.

Probes that must not change the verdict: the same question again (not for a judge that always answers it equally),
another order of contexts, a duplicate context, padding, an empty context, the question or its words in an unrelated
context, and instructions hidden in a context (compared with neutral text of equal length). Probes that must change the
verdict: a negation, another number, another name. Each probe passes, fails or cannot tell, by its limit. Without files,
uses the labels and examples that ship with merilo.

Exit codes: 0 every probe passes, 1 one fails, 2 usage error, invalid data or no usable provider, 3 none fails but one
cannot tell, 4 more than 1% of the pairs failed, 5 limit reached, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo judge probe
  merilo judge probe --judge openai:gpt-4.1-mini --sample 300 --dry
  merilo judge probe --judge openai:gpt-4.1-mini --sample 300 --max-cost 2 --out probes/mini
  merilo judge probe --probe instructions --sample 2500 --labels ours.jsonl --json
"""


@takes_options(
    ProbeOptions,
    without=ABOUT_DATA,
    judge=ONE_JUDGE,
    mapping=MAPPING,
    retry_failed=RETRY_FAILED,
    out=Flag(help="Directory for probe.json and a run over all pairs.", metavar="DIR", group=OptionGroup.OUTPUT),
)
def probe(
    options: ProbeOptions,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="More files of labels, as with --labels.", show_default=False),
    ] = None,
    dry: Annotated[bool, typer.Option("--dry", help="Estimate requests and cost only.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Probe a judge."""
    from merilo.commands.probe.run import estimate_probes, run_probes
    from merilo.stats.gate import GateVerdict

    options = replace(
        options, labels=(*options.labels, *(more or ())), progress=progress_line(quiet=quiet, debug=debug)
    )
    if dry:
        import asyncio

        from merilo.commands.plan.cli import report

        report(asyncio.run(estimate_probes(options)), json=json)
        return
    found = until_done(run_probes(options))
    _report(found, options.out, json=json)
    check_whole(found, "pairs")
    if found.verdict is GateVerdict.FAIL:
        raise typer.Exit(Exit.GATE_FAILED)
    if found.verdict is GateVerdict.CANNOT_TELL:
        raise typer.Exit(Exit.CANNOT_TELL)


def _report(found: ProbeReport, out: str | PathLike[str] | None, *, json: bool) -> None:
    from merilo.commands.probe.record import probing_record
    from merilo.commands.probe.text import probing_page

    tell(probing_record(found), lambda width: probing_page(found, width), out=out, name="probe.json", json=json)


COMMAND = Command(
    name="judge probe",
    section=Section.JUDGES,
    summary="Test the robustness of a judge.",
    help=HELP,
    call=probe,
    examples=EXAMPLES,
)
