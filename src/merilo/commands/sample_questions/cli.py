"""`merilo sample-questions`: draw test questions from your documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from merilo.commands.check.one_judge import check_whole, progress_line, until_done
from merilo.commands.check.options import ABOUT_DATA, ONE_JUDGE
from merilo.commands.command import Command, Section
from merilo.commands.evaluate.options import Options
from merilo.commands.flags import Debug, Json, Quiet
from merilo.commands.option_flags import takes_options
from merilo.commands.sample_questions.settings import NUMBER, SENTENCES, DrawSettings
from merilo.errors import UsageError

if TYPE_CHECKING:
    from merilo.commands.sample_questions.run import SampledQuestions

HELP = """Draw passages of your documents and write a test question about each.

CORPUS is a file of documents (`id` and `text`, optionally `title`) or a folder of .txt and .md files. A judge that is a
language model writes the questions, or you give templates. Kept are questions that the passage answers, that similar
passages do not answer, and that the model cannot answer without any text. Each question has an unanswerable twin: the
same question for the documents without the passage. Each record has the probability of its passage and the weight.

Exit codes: 0 done, 2 usage error, invalid data or no usable provider, 4 more than 1% of the passages failed, 5 limit
reached, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo sample-questions docs/ --judge openai:gpt-4.1-mini --dry
  merilo sample-questions docs/ --judge openai:gpt-4.1-mini --number 200 --without reduced.jsonl
  merilo sample-questions documents.jsonl --judge anthropic:claude-haiku-4-5 --max-cost 2 -o questions.jsonl
  merilo sample-questions documents.jsonl --templates templates.txt
"""
_JUDGE: Final = replace(
    ONE_JUDGE,
    help="Judge that writes and checks the questions, such as openai:gpt-4.1-mini. embedded (the default) only checks "
    "them.",
)


@takes_options(Options, without=(*ABOUT_DATA, "mapping", "out", "retry_failed"), judge=_JUDGE)
def sample_questions(
    options: Options,
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help="File of documents, or folder of text files.")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="File for the questions.")
    ] = "questions.jsonl",
    without: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write the documents without the passages.", show_default=False),
    ] = None,
    number: Annotated[int, typer.Option(metavar="N", min=1, help="Passages to draw.")] = NUMBER,
    sentences: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum sentences of a passage.")] = SENTENCES,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the draw; another seed draws other passages.")] = 0,
    stratify: Annotated[
        bool, typer.Option("--stratify", help="Draw at least one passage of each document, so that weights differ.")
    ] = False,
    templates: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File of questions, one on each line, such as: What is {title}?"),
    ] = None,
    dry: Annotated[bool, typer.Option("--dry", help="Estimate requests and cost only.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Draw questions."""
    from merilo.commands.sample_questions.run import estimate_sample_questions, run_sample_questions

    _check_files(corpus, output, without)
    options = replace(options, progress=progress_line(quiet=quiet, debug=debug))
    settings = DrawSettings(
        number=number,
        sentences=sentences,
        seed=seed,
        stratify=stratify,
        templates=None if templates is None else Path(templates),
    )
    if dry:
        from merilo.commands.plan.cli import report

        report(until_done(estimate_sample_questions(Path(corpus), settings, options)), json=json)
        return
    found = until_done(run_sample_questions(Path(corpus), settings, options))
    _write(found, output, without)
    _report(found, output, without, json=json)
    check_whole(found, "passages", retry="repeat the command: verdicts are cached")


def _write(found: SampledQuestions, output: str, without: str | None) -> None:
    from merilo.commands.sample_questions.rows import document_rows, rows_of, write_rows

    write_rows(Path(output), [row for each in found.kept for row in rows_of(each)])
    if without is not None:
        write_rows(Path(without), document_rows(found.reduced), replaces=True)


def _check_files(corpus: str, output: str, without: str | None) -> None:
    """Raise UsageError if a file would be overwritten by another one."""
    named = [Path(each).resolve() for each in (corpus, output, without) if each is not None]
    if len(set(named)) < len(named):
        raise UsageError("CORPUS, --output and --without are different files.")


def _report(found: SampledQuestions, output: str, without: str | None, *, json: bool) -> None:
    from merilo.commands.sample_questions.rows import questions_page, questions_record
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    if json:
        write(json_text(questions_record(found, output, without)) + "\n")
    else:
        show(questions_page(found, output, without, page_width()))


COMMAND = Command(
    name="sample-questions",
    section=Section.MEASURE,
    summary="Draw test questions from your documents.",
    help=HELP,
    call=sample_questions,
    examples=EXAMPLES,
)
