"""`merilo judge test`: ask a judge one question of each kind, to see that it works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from merilo.commands.command import Command, Section
from merilo.commands.evaluate.options import Options
from merilo.commands.exit_codes import Exit
from merilo.commands.flags import Debug, Json, given_some
from merilo.commands.option_flags import takes_options

if TYPE_CHECKING:
    from merilo.commands.judge.trial import JudgeTrial
    from merilo.judges.base import Judge
    from merilo.judges.local.golden import GoldenCheck
    from merilo.rendering.page import Page

HELP = """Ask a judge one small question of each kind it supports, and print its answers, time and tokens.

Nothing is stored. Exit codes: 0 every kind works, 2 usage error or judge unreachable, 4 at least one kind fails, or
the golden logits of a local model differ.
"""
EXAMPLES = """\b
Examples:
  merilo judge test embedded
  merilo judge test local:./models/nli
  merilo judge test openai:gpt-4.1-mini
  merilo judge test openai:qwen3 --base-url http://localhost:8000/v1
  merilo judge test anthropic:claude-sonnet-4-5
  merilo judge test azure:my-deployment
  merilo judge test ollama:qwen3
  merilo judge test support=embedded rest=openai:gpt-4.1-mini
"""


@takes_options(Options, names=("base_url", "api_key_env", "judged"))
def try_judge(
    spec: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC...",
            help="embedded, local:MODEL, scripted:FILE, FILE.py:NAME or PROVIDER:MODEL (openai, anthropic, azure, "
            "bedrock, google, ollama); or several KIND,...=SPEC.",
            callback=given_some,
            show_default=False,
        ),
    ],
    options: Options,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Test a judge."""
    del debug  # main reads it
    from merilo.commands.judge.trial import try_out
    from merilo.judges.local.judge import LocalJudge
    from merilo.judges.route_specs import one_judge
    from merilo.judges.routed import parts_of
    from merilo.judges.spec import judges_from
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    judge = judges_from(
        one_judge(spec), base_url=options.base_url, api_key_env=options.api_key_env, judged=options.judged
    )["judge"]
    trials = try_out(judge)
    checks = [part.golden_check() for part in parts_of(judge) if isinstance(part, LocalJudge)]
    golden = next((each for each in checks if each is not None and not each.agree), next(iter(checks), None))
    if json:
        write(json_text(_record(judge, trials, golden)) + "\n")
    else:
        show(_page(judge, trials, golden, page_width()))
    if not all(trial.works for trial in trials) or (golden is not None and not golden.agree):
        raise typer.Exit(Exit.TOO_MANY_FAILED)


def _record(judge: Judge, trials: list[JudgeTrial], golden: GoldenCheck | None) -> dict[str, Any]:  # Any: JSON
    from merilo.commands.judge.trial import unanswered

    return {
        "judge": judge.name,
        "agreement": judge.agreement_note,
        "works": all(trial.works for trial in trials),
        "kinds": [_trial_record(trial) for trial in trials],
        "not_answered": unanswered(judge),
    } | ({} if golden is None else {"golden": {"pairs": golden.pairs, "agree": golden.agree}})


def _trial_record(trial: JudgeTrial) -> dict[str, Any]:  # Any: JSON
    from merilo.judging.verdicts import Failure

    return {
        "kind": trial.kind,
        "works": trial.works,
        "questions": len(trial.answers),
        "answers": [
            {"failure": answer.to_fields()} if isinstance(answer, Failure) else {"verdict": answer.to_fields()}
            for answer in trial.answers
        ],
        "paths": list(trial.paths),
        "requests": len(trial.replies),
        "seconds": round(trial.seconds, 4),
        "input_tokens": trial.tokens("input_tokens"),
        "output_tokens": trial.tokens("output_tokens"),
    }


def _page(judge: Judge, trials: list[JudgeTrial], golden: GoldenCheck | None, width: int) -> Page:
    from merilo.commands.judge.trial import unanswered
    from merilo.rendering.page import Page, Span, Tone, columns
    from merilo.rendering.wording import NONE, said

    page = Page(width)
    page.text(judge.name, tone=Tone.STRONG)
    page.text(judge.agreement_note or "Its agreement with human labels is not known.")
    if golden is not None:
        page.text(golden.note, tone=Tone.PLAIN if golden.agree else Tone.BAD)
    page.blank()
    rows: list[tuple[str, ...]] = [("question", "works", "replied as", "seconds", "tokens")]
    for trial in trials:
        tokens = [trial.tokens(name) for name in ("input_tokens", "output_tokens")]
        shown = NONE if None in tokens else f"{tokens[0]}+{tokens[1]}"
        works = "yes" if trial.works else "NO"
        rows.append((trial.kind, works, ", ".join(trial.paths) or NONE, f"{trial.seconds:.3f}", shown))
    for place, row in enumerate(columns(rows, left=frozenset({0, 1, 2}))):
        failed = place > 0 and not trials[place - 1].works
        page.line(Span(row, Tone.STRONG if not place else Tone.BAD if failed else Tone.PLAIN))
    page.heading("Answers")
    page.entries([(trial.kind, "\n".join(said(answer) for answer in trial.answers)) for trial in trials])
    if missing := unanswered(judge):
        page.blank()
        page.text(f"Kinds of question it does not support: {', '.join(missing)}.")
    return page


COMMAND = Command(
    name="judge test",
    section=Section.JUDGES,
    summary="Ask a judge one question of each kind.",
    help=HELP,
    call=try_judge,
    examples=EXAMPLES,
)
