"""`merilo diagnose`: find which part of an application is at fault, by experiments."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import typer

from merilo.commands.command import Command, Json, Quiet, Section, check_whole, takes_options
from merilo.commands.diagnose.settings import DiagnoseOptions
from merilo.commands.exit_codes import Exit
from merilo.errors import LimitReached

HELP = """Find which part of your application is at fault, by experiments with its contexts.

APP is FILE.py:NAME, a function answer(question, contexts=None) or an object whose retriever merilo replaces; or a URL
that takes {"question", "contexts"}. It returns the answer and its contexts. DATA has questions with a reference and
their evidence, such as the output of merilo questions.

Every question is asked with unchanged contexts, with another passage first, with the evidence first, with the evidence
only and without any context. --each N also draws the arms of N failing questions again, 20 calls each on average, and
names the cause of each. Repeat the command with --out DIR to resume.

Exit codes: 0 done, 2 usage error, invalid data or no usable provider, 3 no effect or cause is shown, 4 more than 1%
of the answers failed, 5 limit reached, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo diagnose app.py:answer questions.jsonl --judge openai:gpt-4.1-mini --each 20 --plan
  merilo diagnose http://127.0.0.1:8000/answer questions.jsonl --right checks.py:right --out diagnosis
  merilo diagnose questions.jsonl --retrieve app.py:search --generate app.py:write
"""
_WITHOUT: Final = (
    "metrics judge.prompts draws limits.runner limits.workers storage.retry_failed storage.batch storage.batch_files "
    "reading.shard reading.tools"
)


@takes_options(DiagnoseOptions, without=tuple(_WITHOUT.split()))
def diagnose(
    options: DiagnoseOptions,
    app: Annotated[str, typer.Argument(metavar="APP", help="FILE.py:NAME, or a URL.", show_default=False)],
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="Questions with their evidence.", show_default=False)
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Count calls, requests and cost only.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Diagnose."""
    from merilo.commands.blocking import run_blocking
    from merilo.commands.diagnose.page import Diagnosis, diagnosis_page, diagnosis_record
    from merilo.commands.diagnose.run import run_diagnosis
    from merilo.rendering.page import page_width, print_result, tell
    from merilo.rendering.progress_line import progress_line

    named, source = (None, app) if data is None else (app, data)
    if plan:
        _print_plan(source, options, json=json)
        return
    options = replace(options, progress=progress_line(quiet=quiet))
    try:
        found = Diagnosis(run_blocking(run_diagnosis(named, source, options)))
    except LimitReached as error:
        tell(f"{error} All answers are stored. To resume, repeat the command with --out and a higher limit.")
        raise typer.Exit(Exit.LIMIT_REACHED) from error
    print_result(diagnosis_record(found) if json else diagnosis_page(found, page_width()))
    if not found.has_verdict:
        raise typer.Exit(Exit.CANNOT_TELL)
    check_whole(None, found.failed, len(found.samples), "answers", retry="start again in another directory")


def _print_plan(source: str, options: DiagnoseOptions, *, json: bool) -> None:
    from merilo.commands.blocking import run_blocking
    from merilo.commands.diagnose.run import LEVEL_1, TYPICAL, estimate_diagnosis
    from merilo.commands.plan.run import plan_page, plan_record
    from merilo.rendering.page import page_width, print_result
    from merilo.stats.diagnosis import MOST, power

    questions, judged = run_blocking(estimate_diagnosis(source, options))
    failing = min(options.each or len(options.ids), questions)
    calls = {"level_1": 1 + len(LEVEL_1) * questions, "level_2": TYPICAL * failing, "level_2_at_most": MOST * failing}
    page = plan_page(judged, page_width(), thing="answer")
    page.blank()
    more = f", then about {calls['level_2']:,} (at most {calls['level_2_at_most']:,}) for causes" if failing else ""
    page.text(f"Calls of the application: {calls['level_1']:,} for {questions:,} questions{more}.")
    page.text(f"A true gain of 14 right answers in 100 is shown in about {power(questions):.0%} of such studies.")
    print_result({"questions": questions, "calls": calls, "judge": plan_record(judged)} if json else page)


COMMAND = Command(
    name="diagnose",
    section=Section.MEASURE,
    summary="Find which part of an application is at fault.",
    help=HELP,
    call=diagnose,
    options="--retrieve --generate --right --each --judge --documents --plan --max-calls --out --json",
    examples=EXAMPLES,
)
