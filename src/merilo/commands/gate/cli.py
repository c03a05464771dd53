"""`merilo gate`: check a run against minimum scores or a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import AcrossData, Cluster, Command, GitHub, Json, JudgeOnly, Markdown, Section
from merilo.commands.exit_codes import Exit
from merilo.commands.option import split_texts
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.gate.result import Gates

HELP = """Check a run against minimum scores or a baseline: pass, fail or cannot tell.

A gate decides by the 95 % interval that show and compare print. It passes if all of it is on the allowed side. It fails
if all of it is on the other side, or if the run is worse than the baseline and the interval reaches past the allowed
drop. Human labels attached to the runs correct means and drops (merilo label). Without labels the judge alone decides.
The embedded judge alone decides nothing; trust_judge = true in a suite lets it decide minimums.

Samples are paired with the baseline by id if their question is equal. A baseline with another judge, rubric or metric
version, or with other questions under the same ids, is rejected.

--cannot-tell counts every "cannot tell" as pass or fail. A baseline that does not exist yet is not an error:
--first-run says what it counts as.

Exit codes: 0 pass, 1 fail, 2 usage error or runs not comparable, 3 cannot tell or no baseline.
"""
EXAMPLES = """\b
Examples:
  merilo gate runs/new --min faithfulness=0.8
  merilo gate runs/new --baseline runs/main --max-drop 0.05
  merilo gate runs/new --baseline runs/main --max-drop faithfulness=0.05 --cannot-tell pass
  merilo gate runs/new --suite gates.toml --junit gates.xml
"""


def gate(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Directory of the run.", show_default=False)],
    minimum: Annotated[
        list[str] | None, typer.Option("--min", metavar="M=X", help="Minimum mean of a metric. Repeatable.")
    ] = None,
    maximum: Annotated[
        list[str] | None,
        typer.Option("--max", metavar="M=X", help="Maximum mean of a metric if lower is better. Repeatable."),
    ] = None,
    baseline: Annotated[str | None, typer.Option(metavar="RUN", help="The run to compare with.")] = None,
    max_drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="D|M=D", help="Largest allowed drop from the baseline, for all metrics or one. Repeatable."
        ),
    ] = None,
    suite: Annotated[
        str | None, typer.Option(metavar="FILE", help="Gates in a .toml, .yaml or .json file; options override it.")
    ] = None,
    cannot_tell: Annotated[
        str | None,
        typer.Option(metavar="pass|fail", help='Treat "cannot tell" as pass or fail. [default: exit code 3]'),
    ] = None,
    first_run: Annotated[
        str | None,
        typer.Option(
            metavar="pass|cannot tell|fail",
            help="What a baseline that does not exist counts as. [default: cannot tell]",
        ),
    ] = None,
    undefined: Annotated[
        str | None,
        typer.Option(
            metavar="drop|worst",
            help="Leave undefined outcomes out, or count as worst. [default: must hold either way]",
            hidden=True,
        ),
    ] = None,
    cluster: Cluster = None,
    across_data: AcrossData = False,
    judge_only: JudgeOnly = False,
    no_config: Annotated[
        bool, typer.Option("--no-config", help="Ignore the suite of merilo.toml.", hidden=True)
    ] = False,
    junit: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the gates as JUnit XML, one test per gate.")
    ] = None,
    markdown: Markdown = None,
    github: GitHub = False,
    json: Json = False,
) -> None:
    """Gate a run."""
    from merilo.commands.gate.run import gate_run
    from merilo.commands.gate.suite import suite_from
    from merilo.commands.gate.text import gates_page, gates_record
    from merilo.rendering.ci import check_reports
    from merilo.rendering.page import page_width, print_result

    check_reports(markdown=markdown, json=json, github=github)
    if suite is None and not no_config and not (minimum or maximum or max_drop):
        suite = _suite_of_project()
    asked = suite_from(
        suite,
        minimums=_pairs(minimum or (), "--min"),
        maximums=_pairs(maximum or (), "--max"),
        max_drop=_drops(max_drop) if max_drop else None,
        cannot_tell=cannot_tell,
        undefined=undefined,
        cluster=cluster,
        first_run=first_run,
    )
    found = gate_run(run, asked, baseline=baseline, across_data=across_data, judge_only=judge_only)
    _write(found, junit, markdown, github=github)
    if markdown != "-":
        print_result(gates_record(found) if json else gates_page(found, page_width()))
    raise typer.Exit({"pass": Exit.DONE, "fail": Exit.GATE_FAILED}.get(found.verdict.value, Exit.CANNOT_TELL))


def _suite_of_project() -> str | None:
    """Return the suite file that merilo.toml names, if it names one."""
    from merilo.commands.project_file import project_suite
    from merilo.rendering.page import tell

    found = project_suite()
    if found is None:
        return None
    tell(f"Suite from {found[0]}: {found[1]}")
    return found[1]


def _drops(texts: list[str]) -> float | dict[str, float]:
    alone = [text for text in texts if "=" not in text]
    if not alone:
        return _pairs(texts, "--max-drop")
    if len(texts) > 1:
        raise UsageError("--max-drop: give either one number for all metrics, or METRIC=D for each metric.")
    return _number(alone[0], "--max-drop", "0.05 or faithfulness=0.05")


def _pairs(texts: Sequence[str], option: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for metric, number in (_pair(part, option, text) for text in texts for part in split_texts(text)):
        if metric in found:
            raise UsageError(f"{option} has two values for {metric}: {found[metric]:g} and {number:g}. Give one.")
        found[metric] = number
    return found


def _pair(part: str, option: str, text: str) -> tuple[str, float]:
    """Return the metric and its number; splits at the last "=", since the metric's text may contain others."""
    metric, sign, number = part.rpartition("=")
    if not (metric.strip() and sign):
        raise UsageError(f"{option} expects METRIC=NUMBER, such as faithfulness=0.8, got {text!r}.")
    return metric.rstrip(">" if option == "--min" else "<").strip(), _number(number, option, "faithfulness=0.8")


def _number(text: str, option: str, example: str) -> float:
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise UsageError(f"{option} expects a number, such as {example}, got {text!r}.") from None


def _write(found: Gates, junit: str | None, markdown: str | None, *, github: bool) -> None:
    from merilo.commands.gate.text import gates_annotations, gates_markdown, junit_text
    from merilo.rendering.ci import publish_on_github, write_markdown
    from merilo.runs.files import write_file, writing

    if junit is not None:
        with writing(junit, "choose another file (--junit)"):
            write_file(Path(junit), junit_text(found))
    if markdown is not None:
        write_markdown(markdown, gates_markdown(found))
    if github:
        publish_on_github(gates_markdown(found), gates_annotations(found))


COMMAND = Command(
    name="gate",
    section=Section.DECIDE,
    summary="Check a run: pass, fail or cannot tell.",
    help=HELP,
    call=gate,
    options="--min --max --baseline --max-drop --suite --first-run --cannot-tell --cluster --junit --markdown --json",
    examples=EXAMPLES,
)
