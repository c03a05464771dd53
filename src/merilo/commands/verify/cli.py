"""`merilo runs verify`: check that a run is what merilo wrote, or compute other metrics from its stored answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from merilo.commands.command import Command, Json, Section
from merilo.commands.exit_codes import Exit
from merilo.commands.option import metric_texts
from merilo.results.records import picked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.commands.verify.replay import Replay, Verification
    from merilo.rendering.page import Page
    from merilo.runs.outcomes import OutcomeRecord

HELP = """Check that RUN is as merilo wrote it, and recompute its numbers from its store.

merilo compares every file with the seal of the run, and the manifest with its copy in the store. It computes outcomes
again from the stored answers, and means and intervals from the outcomes. No judge is asked.

With --metrics, other metrics are computed from the stored answers, and with --reread the replies of language models
are parsed again with the current rules. --out keeps the recomputed run.

Exit codes: 0 verified, 1 recomputes to other numbers, 2 a broken seal, not a run or an answer that is not stored, 3
cannot tell, because scores were imported, or a metric is not known here or has another version.
"""
EXAMPLES = """\b
Examples:
  merilo runs verify runs/first
  merilo runs verify runs/first --metrics precision@3 --out runs/precision
  merilo runs verify runs/first --reread
"""
_SHOWN = 10
_DIFFERENCE = "sample metric recorded now"


def verify(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Directory of the run.", show_default=False)],
    metrics: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Compute these metrics from the stored answers.")
    ] = None,
    reread: Annotated[
        bool, typer.Option("--reread", help="Parse the replies of language models again, with the current rules.")
    ] = False,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Store the recomputed run in this new directory.")
    ] = None,
    json: Json = False,
) -> None:
    """Verify a run, or recompute it, and report."""
    from merilo.commands.verify.replay import State, verify_run
    from merilo.rendering.page import print_result

    if metrics or reread or out is not None:
        from merilo.commands.verify.replay import replay_run

        again = replay_run(run, metrics=metric_texts(metrics) if metrics else None, out=out, reread=reread)
        print_result(_replay_record(again, out) if json else _replay_page(again))
        if not again.same:
            raise typer.Exit(Exit.GATE_FAILED)
        return
    found = verify_run(run)
    print_result(_record(found) if json else _page(found))
    codes = {State.DIFFERENT: Exit.GATE_FAILED, State.BROKEN: Exit.WRONG_USE, State.CANNOT_TELL: Exit.CANNOT_TELL}
    if found.state in codes:
        raise typer.Exit(codes[found.state])


def _record(found: Verification) -> dict[str, Any]:  # Any: JSON
    return {
        **picked(found, "run state broken samples answers outcomes recomputed different"),
        "differences": [picked(each, _DIFFERENCE) for each in found.differences],
        **picked(found, "means other notes"),
    }


def _page(found: Verification) -> Page:
    from merilo.commands.verify.replay import State
    from merilo.data.sanitize import clean
    from merilo.numbers import count
    from merilo.rendering.page import Page, Span, Tone, page_width

    page = Page(page_width())
    tone = {State.VERIFIED: Tone.GOOD, State.CANNOT_TELL: Tone.STRONG}.get(found.state, Tone.BAD)
    page.line(Span(f"{clean(str(found.run))}: {found.state.value}", tone))
    page.blank()
    if found.state is State.BROKEN:
        for sentence in found.broken:
            page.text(sentence)
        return page
    rows = [
        ("seal", "every file is as merilo wrote it"),
        ("store", f"{count(found.samples, 'sample')} and {count(found.answers, 'answer')} read"),
    ]
    rows += _results(found.recomputed, found.outcomes, found) if found.outcomes else []
    rows += [("differs", clean(sentence)) for sentence in found.other]
    page.entries([*rows, *(("note", clean(note)) for note in found.notes)])
    _list(page, found)
    return page


def _results(recomputed: int, outcomes: int, found: Verification | Replay) -> list[tuple[str, str]]:
    equal = f"{found.different:,} differ" if found.different else "all equal"
    return [
        ("outcomes", f"{recomputed:,} of {outcomes:,} recomputed, {equal}"),
        ("means", f"other values for {', '.join(found.means)}" if found.means else "all equal"),
    ]


def _list(page: Page, found: Verification | Replay) -> None:
    if found.differences:
        page.heading("Differences")
        rows = list[tuple[str, str]]()
        for each in found.differences[:_SHOWN]:
            old, new = _outcome(each.recorded), _outcome(each.now)
            change = f", now {new}" if old != new else f" unchanged, but different {', '.join(each.fields)}"
            rows.append((f"{each.sample} {each.metric}", f"{old}{change}"))
        page.entries(rows)
        if found.different > _SHOWN:
            page.text(f"... and {found.different - _SHOWN:,} more (--json lists the first 100)", indent=2)


def _outcome(record: OutcomeRecord) -> str:
    if record.get("outcome") == "score":
        return repr(record.get("value"))
    error: Mapping[str, str] = record.get("error") or {}
    return f"{record.get('outcome')} ({record.get('reason') or error.get('message', '')})"


def _replay_record(found: Replay, out: str | None) -> dict[str, Any]:  # Any: JSON
    from merilo.rendering.run_doc import RunView, run_record

    again = found.reread
    return {
        **run_record(RunView(found.run)),
        "run": out,
        "replay": {
            **picked(found, "source same equal different"),
            "differences": [picked(each, _DIFFERENCE) for each in found.differences],
            **picked(found, "means new versions"),
            "reread": again and picked(again, "read different unread"),
        },
    }


def _replay_page(found: Replay) -> Page:
    from merilo.commands.show.summary import run_page
    from merilo.numbers import count
    from merilo.rendering.page import page_width

    page, total = run_page(found.run, page_width(), full=True, commands=False), found.equal + found.different
    page.heading("Recomputed from stored answers")
    rows = [("source", str(found.source)), *_results(total, total, found)]
    if found.new:
        rows.append(("new", f"{', '.join(found.new)}: not in the run, so there is nothing to compare with"))
    rows += [("versions", f"{text} was {old} and is {new} now") for text, (old, new) in found.versions.items()]
    if (again := found.reread) is not None:
        rest = f"; {count(again.unread, 'answer')} used as recorded, because their replies cannot be read"
        differ = f"{again.different:,} of {count(again.read, 'answer')} differ"
        rows.append(("reread", differ + (rest if again.unread else "")))
    page.entries(rows)
    _list(page, found)
    return page


COMMAND = Command(
    name="runs verify",
    section=Section.MAINTAIN,
    summary="Check that a run is as merilo wrote it.",
    help=HELP,
    call=verify,
    options="--metrics --reread --out --json",
    examples=EXAMPLES,
)
