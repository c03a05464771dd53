"""`merilo replay`: recompute the scores of a run or a tape without a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from merilo.commands.command import Command, Section
from merilo.commands.exit_codes import Exit
from merilo.commands.flags import Debug, Json, given, metric_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.commands.replay.run import Difference, Replay
    from merilo.rendering.page import Page

HELP = """Recompute the scores of RUN without asking a judge, and report whether they are bit-equal.

RUN is the directory of a run, or a tape that merilo run --record wrote. With --metrics, metrics that the run did
not have are computed from the recorded answers.

Exit codes: 0 every recorded score is bit-equal, 1 a score differs, 2 usage error, damaged run or tape, or an answer
that is not recorded.
"""
EXAMPLES = """\b
Examples:
  merilo replay runs/first
  merilo replay tape.jsonl.gz
  merilo replay tape.jsonl.gz --metrics precision@3 --out runs/precision
"""
_SHOWN = 10


def replay(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Directory of a run, or a tape.", callback=given, show_default=False)
    ],
    metrics: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Metrics to compute. [default: those of the run]")
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Store the recomputed run in this new directory.")
    ] = None,
    reread: Annotated[
        bool, typer.Option("--reread", help="Parse the raw replies of language models again, with the current rules.")
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Replay and report."""
    del debug  # main reads it
    from merilo.commands.replay.run import replay_run
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    found = replay_run(run, metrics=metric_texts(metrics) if metrics else None, out=out, reread=reread)
    if json:
        write(json_text(_record(found, out)) + "\n")
    else:
        show(_page(found, page_width(), out))
    if not found.same:
        raise typer.Exit(Exit.GATE_FAILED)  # the recorded scores serve as the gate


def _record(found: Replay, out: str | None) -> dict[str, Any]:  # Any: JSON
    from merilo.rendering.overview import overview_record

    reread = found.reread
    again = reread and {"read": reread.read, "different": reread.different, "unread": reread.unread}
    return {
        **overview_record(found.run),
        "run": out,
        "replay": {
            "source": str(found.source),
            "same": found.same,
            "equal": found.equal,
            "different": found.different,
            "differences": [
                {"sample": each.sample, "metric": each.metric, "recorded": each.recorded, "now": each.now}
                for each in found.differences
            ],
            "means": list(found.means),
            "new": list(found.new),
            "versions": {text: list(pair) for text, pair in found.versions.items()},
            "reread": again,
        },
    }


def _page(found: Replay, width: int, out: str | None) -> Page:
    from merilo.rendering.overview import overview_page

    page = overview_page(found.run, width, kept=out is not None)
    page.heading("Replayed without a call")
    page.entries(_rows(found))
    if found.differences:
        page.heading("Differences")
        page.entries([(f"{each.sample} {each.metric}", _change(each)) for each in found.differences[:_SHOWN]])
        if found.different > _SHOWN:
            page.text(f"... and {found.different - _SHOWN:,} more (--json lists the first 100)", indent=2)
    return page


def _rows(found: Replay) -> list[tuple[str, str]]:
    from merilo.rendering.wording import count

    total = found.equal + found.different
    rows = [("source", str(found.source))]
    if not found.different:
        rows.append(("outcomes", f"all {total:,} are bit-equal to the recorded ones" if total else "none was recorded"))
    else:
        rows.append(("outcomes", f"{found.equal:,} of {total:,} are bit-equal to the recorded ones"))
    if found.means:
        rows.append(("means", f"of {', '.join(found.means)}: differ from the recorded ones"))
    if found.new:
        rows.append(("new", f"{', '.join(found.new)}: not in the run, so there is nothing to compare with"))
    rows += [("versions", f"{text} was {old} and is {new} now") for text, (old, new) in found.versions.items()]
    if found.reread is not None:
        read, different, unread = found.reread.read, found.reread.different, found.reread.unread
        rest = f"; {count(unread, 'answer')} used as recorded, because their replies cannot be read" if unread else ""
        rows.append(("reread", f"{different:,} of {count(read, 'answer')} differ{rest}"))
    return rows


def _change(difference: Difference) -> str:
    old, new = _outcome(difference.recorded), _outcome(difference.now)
    if old != new:
        return f"{old}, now {new}"
    return f"{old} unchanged, but different {', '.join(difference.fields)}"


def _outcome(record: Mapping[str, Any]) -> str:  # Any: JSON
    if record.get("outcome") == "score":
        return repr(record.get("value"))
    error: Mapping[str, str] = record.get("error") or {}
    return f"{record.get('outcome')} ({record.get('reason') or error.get('message', '')})"


COMMAND = Command(
    name="replay",
    section=Section.MAINTAIN,
    summary="Recompute scores without a call.",
    help=HELP,
    call=replay,
    examples=EXAMPLES,
)
