"""`merilo verify`: check that a run is what merilo wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from merilo.commands.command import Command, Section
from merilo.commands.exit_codes import Exit
from merilo.commands.flags import Debug, Json, given

if TYPE_CHECKING:
    from merilo.commands.verify.run import Verification
    from merilo.rendering.page import Page

HELP = """Check that RUN is as merilo wrote it, and recompute its numbers from its store.

merilo compares every file with the seal of the run. It computes outcomes again from the stored answers, means and
intervals from the outcomes, and the usage from the ledger. It compares all other fields with copies in the store. No
judge is asked. A run of merilo 0.1.0 has no seal; it gets one if it recomputes.

Exit codes: 0 verified, 1 recomputes to other numbers, 2 a broken seal or not a run, 3 cannot tell, because a metric of
the run is not known here or an earlier version computed intervals by another method.
"""
EXAMPLES = """\b
Examples:
  merilo verify runs/first
  merilo verify runs/first --json
"""
_SHOWN = 10


def verify(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Directory of the run.", callback=given, show_default=False)
    ],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Verify a run and report."""
    del debug  # read in main, which reports errors
    from merilo.commands.verify.run import State, verify_run
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    found = verify_run(run)
    if json:
        write(json_text(_record(found)) + "\n")
    else:
        show(_page(found, page_width()))
    codes = {State.DIFFERENT: Exit.GATE_FAILED, State.BROKEN: Exit.WRONG_USE, State.CANNOT_TELL: Exit.CANNOT_TELL}
    if found.state in codes:
        raise typer.Exit(codes[found.state])


def _record(found: Verification) -> dict[str, Any]:  # Any: JSON
    return {
        "run": str(found.run),
        "state": found.state.value,
        "sealed": found.sealed,
        "sealed_now": found.sealed_now,
        "broken": list(found.broken),
        "samples": found.samples,
        "answers": found.answers,
        "outcomes": found.outcomes,
        "recomputed": found.recomputed,
        "different": found.different,
        "differences": [
            {"sample": each.sample, "metric": each.metric, "recorded": each.recorded, "now": each.now}
            for each in found.differences
        ],
        "means": list(found.means),
        "other": list(found.other),
        "notes": list(found.notes),
    }


def _page(found: Verification, width: int) -> Page:
    from merilo.commands.verify.run import State
    from merilo.rendering.page import Page, Span, Tone
    from merilo.rendering.sanitize import clean

    page = Page(width)
    tone = {State.VERIFIED: Tone.GOOD, State.CANNOT_TELL: Tone.STRONG}.get(found.state, Tone.BAD)
    page.line(Span(f"{clean(str(found.run))}: {found.state.value}", tone))
    page.blank()
    if found.state is State.BROKEN:
        for sentence in found.broken:
            page.text(sentence)
        return page
    page.entries(_rows(found))
    if found.differences:
        page.heading("Differences")
        page.entries([(f"{each.sample} {each.metric}", ", ".join(each.fields)) for each in found.differences[:_SHOWN]])
        if found.different > _SHOWN:
            page.text(f"... and {found.different - _SHOWN:,} more (--json lists the first 100)", indent=2)
    return page


def _rows(found: Verification) -> list[tuple[str, str]]:
    from merilo.rendering.sanitize import clean
    from merilo.rendering.wording import count

    seal = "every file is as merilo wrote it" if found.sealed else "none; none was written"
    if found.sealed_now:
        seal = "was missing or damaged; written now"
    rows = [("seal", seal), ("store", f"{count(found.samples, 'sample')} and {count(found.answers, 'answer')} read")]
    if found.recomputed:
        equal = "all equal" if not found.different else f"{found.different:,} differ"
        rows.append(("outcomes", f"{found.recomputed:,} of {found.outcomes:,} recomputed, {equal}"))
    if found.outcomes:
        rows.append(("means", f"other values for {', '.join(found.means)}" if found.means else "all equal"))
    differs = (("differs", clean(sentence)) for sentence in found.other)
    return [*rows, *differs, *(("note", clean(note)) for note in found.notes)]


COMMAND = Command(
    name="verify",
    section=Section.MAINTAIN,
    summary="Check that a run is as merilo wrote it.",
    help=HELP,
    call=verify,
    examples=EXAMPLES,
)
