"""`merilo questions`: write test questions about your documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from merilo.commands.command import Command, Json, Quiet, Section, check_whole, takes_options
from merilo.commands.evaluate.options import ABOUT_DATA, Options
from merilo.commands.exit_codes import Exit
from merilo.commands.option import Flag, OptionGroup
from merilo.errors import UsageError

HELP = """Draw passages of your documents and write a test question about each.

DOCS is a file of documents (`id` and `text`, optionally `title`) or a folder of .txt and .md files. A judge that is a
language model writes the questions. Kept are questions that the passage answers, that similar passages do not answer,
and that the model cannot answer without any text. Each question has an unanswerable twin: the same question for the
documents without the passage.

Exit codes: 0 done, 2 usage error, invalid data or no usable provider, 3 no question is left, 4 more than 1% of the
passages failed, 5 limit reached, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo questions docs/ --judge openai:gpt-4.1-mini --plan
  merilo questions docs/ --judge openai:gpt-4.1-mini --number 200 --without reduced.jsonl
  merilo questions documents.jsonl --judge anthropic:claude-haiku-4-5 --max-cost 2 --out questions.jsonl
"""


def _one_judge(specs: list[str] | None) -> list[str]:
    from merilo.judges.routed import one_judge

    return one_judge(specs or ["embedded"])


_JUDGE: Final = Flag(
    help="Language model that writes and checks the questions, such as openai:gpt-4.1-mini.",
    metavar="SPEC",
    many=True,
    read=_one_judge,
    group=OptionGroup.JUDGES,
)


@takes_options(Options, without=(*ABOUT_DATA, "out", "storage.retry_failed"), judge=_JUDGE)
def questions(
    options: Options,
    docs: Annotated[str, typer.Argument(metavar="DOCS", help="File of documents, or folder of text files.")],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="File for the questions.")
    ] = "questions.jsonl",
    without: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write the documents without the passages.", show_default=False),
    ] = None,
    number: Annotated[int, typer.Option(metavar="N", min=1, help="Passages to draw.")] = 100,
    sentences: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum sentences of a passage.")] = 3,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the draw; another seed draws other passages.")] = 0,
    plan: Annotated[bool, typer.Option("--plan", help="Estimate requests and cost only.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw questions."""
    from merilo.commands.blocking import run_blocking
    from merilo.commands.questions.run import DrawSettings, estimate_questions, run_questions
    from merilo.commands.questions.text import document_rows, questions_page, questions_record, rows_of, write_rows
    from merilo.rendering.page import page_width, print_result, tell
    from merilo.rendering.progress_line import progress_line

    named = [Path(each).resolve() for each in (docs, out, without) if each is not None]
    if len(set(named)) < len(named):
        raise UsageError("DOCS, --out and --without are different files.")
    options = replace(options, progress=progress_line(quiet=quiet))
    settings = DrawSettings(number, sentences, seed)
    if plan:
        from merilo.commands.plan.run import print_plan

        print_plan(run_blocking(estimate_questions(Path(docs), settings, options)), json=json)
        return
    found = run_blocking(run_questions(Path(docs), settings, options))
    write_rows(Path(out), [row for each in found.kept for row in rows_of(each)])
    if without is not None:
        write_rows(Path(without), document_rows(found.reduced), replaces=True)
    print_result(questions_record(found, out, without) if json else questions_page(found, out, without, page_width()))
    check_whole(found.stopped, *found.failed, "passages", retry="repeat the command: verdicts are cached")
    if not found.kept:
        tell("No question is left. Try a larger --number, or another --judge: a language model, or FILE.py:NAME.")
        raise typer.Exit(Exit.CANNOT_TELL)


COMMAND = Command(
    name="questions",
    section=Section.MEASURE,
    summary="Write test questions about your documents.",
    help=HELP,
    call=questions,
    options="--judge --number --without --plan --max-cost --out --json",
    examples=EXAMPLES,
)
