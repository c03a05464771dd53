"""`merilo questions`: write test questions about your documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from merilo.commands.command import Command, Json, Quiet, Section, takes_options
from merilo.commands.evaluate.one_judge import ABOUT_DATA, check_whole, until_done
from merilo.commands.evaluate.options import Options
from merilo.commands.option import Flag, OptionGroup
from merilo.commands.questions.settings import DrawSettings
from merilo.errors import UsageError

if TYPE_CHECKING:
    from merilo.commands.questions.run import SampledQuestions


_USUAL: Final = DrawSettings()
HELP = """Draw passages of your documents and write a test question about each.

DOCS is a file of documents (`id` and `text`, optionally `title`) or a folder of .txt and .md files. A judge that is a
language model writes the questions, or you give templates. Kept are questions that the passage answers, that similar
passages do not answer, and that the model cannot answer without any text. Each question has an unanswerable twin: the
same question for the documents without the passage.

Exit codes: 0 done, 2 usage error, invalid data or no usable provider, 4 more than 1% of the passages failed, 5 limit
reached, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo questions docs/ --judge openai:gpt-4.1-mini --plan
  merilo questions docs/ --judge openai:gpt-4.1-mini --number 200 --without reduced.jsonl
  merilo questions documents.jsonl --judge anthropic:claude-haiku-4-5 --max-cost 2 --out questions.jsonl
  merilo questions documents.jsonl --templates templates.txt
"""


def _one_judge(specs: list[str] | None) -> list[str]:
    from merilo.judges.routed import one_judge

    return one_judge(specs or ["embedded"])


_JUDGE: Final = Flag(
    help="Judge that writes and checks the questions, such as openai:gpt-4.1-mini. embedded (the default) only checks "
    "them.",
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
    number: Annotated[int, typer.Option(metavar="N", min=1, help="Passages to draw.")] = _USUAL.number,
    sentences: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum sentences of a passage.")
    ] = _USUAL.sentences,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the draw; another seed draws other passages.")] = 0,
    templates: Annotated[
        str | None, typer.Option(metavar="FILE", help="File of questions, one on each line, such as: What is {title}?")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Estimate requests and cost only.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw questions."""
    from merilo.commands.questions.rows import questions_page, questions_record
    from merilo.commands.questions.run import estimate_questions, run_questions
    from merilo.rendering.page import page_width, print_result
    from merilo.rendering.progress_line import progress_line

    _check_files(docs, out, without)
    options = replace(options, progress=progress_line(quiet=quiet))
    settings = DrawSettings(
        number=number,
        sentences=sentences,
        seed=seed,
        templates=None if templates is None else Path(templates),
    )
    if plan:
        from merilo.commands.plan.run import print_plan

        print_plan(until_done(estimate_questions(Path(docs), settings, options)), json=json)
        return
    found = until_done(run_questions(Path(docs), settings, options))
    _write(found, out, without)
    print_result(questions_record(found, out, without) if json else questions_page(found, out, without, page_width()))
    check_whole(found.stopped, *found.failed, "passages", retry="repeat the command: verdicts are cached")


def _write(found: SampledQuestions, output: str, without: str | None) -> None:
    from merilo.commands.questions.rows import document_rows, rows_of, write_rows

    write_rows(Path(output), [row for each in found.kept for row in rows_of(each)])
    if without is not None:
        write_rows(Path(without), document_rows(found.reduced), replaces=True)


def _check_files(corpus: str, output: str, without: str | None) -> None:
    """Raise UsageError if a file would be overwritten by another one."""
    named = [Path(each).resolve() for each in (corpus, output, without) if each is not None]
    if len(set(named)) < len(named):
        raise UsageError("DOCS, --out and --without are different files.")


COMMAND = Command(
    name="questions",
    section=Section.MEASURE,
    summary="Write test questions about your documents.",
    help=HELP,
    call=questions,
    options="--judge --base-url --number --templates --without --plan --max-cost --out --json",
    examples=EXAMPLES,
)
