"""The pages of `merilo judge fetch`: what would be downloaded, and what is there now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.rendering.page import Page, Tone
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from merilo.commands.fetch.result import Download, Fetched, Trial

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")
_STEP: Final = 1000.0


def plan_page(plan: Download, width: int) -> Page:
    """Return what a download would take, for the user to decide."""
    page = Page(width)
    page.text(f"{plan.name}: {plan.source.model}", tone=Tone.STRONG)
    page.blank()
    rows = [
        ("revision", plan.source.revision),
        ("licence", licence_text(plan)),
        ("card", "ships with merilo or is yours" if plan.card is not None else "none; you have to write one"),
        ("export", "needed: there is no ONNX file" if plan.needs_export else "not needed"),
        ("files", f"{count(len(plan.files), 'file')}, {size_text(plan.size)}"),
        *(("", f"{each.name}, {size_text(each.size)}") for each in plan.files),
        *(("note", note) for note in plan.notes),
    ]
    page.entries(rows)
    return page


def fetched_page(found: Fetched, trial: Trial | None, width: int) -> Page:
    """Return where the files are, the results of test and check, and what to do next."""
    page = Page(width)
    done = "downloaded and verified" if found.downloaded else "verified; nothing was downloaded"
    page.text(f"{found.name}: {count(len(found.files), 'file')} {done}", tone=Tone.STRONG)
    page.blank()
    page.entries([("files in", str(found.folder)), ("lock", str(found.lock))])
    if trial is not None:
        _add_trial(page, trial)
    page.heading("Next")
    if found.needs_export:
        page.line(
            "  uvx --from optimum-onnx --with torch optimum-cli export onnx "
            f"--model {found.model} --revision {found.revision} --task text-classification FOLDER"
        )
        page.line("  merilo judge card FOLDER" if not found.has_card else "  merilo judge test local:FOLDER")
    elif not found.has_card:
        page.line(f"  merilo judge card {found.folder} -o {found.lock.parent / 'judge.toml'}")
    elif trial is not None and trial.problem is None and trial.agreement is not None:
        page.line(f"  merilo run answers.jsonl --judge local:{found.name}")
    else:
        page.line(f"  merilo judge test local:{found.name}")
        page.line(f"  merilo judge check --judge local:{found.name}")
    return page


def _add_trial(page: Page, trial: Trial) -> None:
    page.heading("Test")
    golden = "The card has no golden pairs." if trial.golden is None else trial.golden.note
    if trial.problem is None:
        page.text(f"Every kind of question works. {golden}", indent=2)
    else:
        page.text(f"FAILED. {trial.problem}", indent=2, tone=Tone.BAD)
        return
    page.heading("Human labels")
    for note in trial.notes:
        page.text(note, indent=2)
    known = trial.agreement or "not checked against human labels"
    page.text(f"{known[0].upper()}{known[1:]}.", indent=2)


def fetched_record(found: Fetched, trial: Trial | None) -> dict[str, Any]:  # Any: JSON
    """Return the result as JSON. `test` and `agreement` are null if they are unknown."""
    return {
        "name": found.name,
        "model": found.model,
        "revision": found.revision,
        "licence": found.licence,
        "non_commercial": found.non_commercial,
        "needs_export": found.needs_export,
        "downloaded": found.downloaded,
        "bytes": sum(each.size for each in found.files),
        "files": [{"name": each.name, "bytes": each.size} for each in found.files],
        "folder": str(found.folder),
        "lock": str(found.lock),
        "test": None if trial is None else _trial_record(trial),
        "agreement": None if trial is None else trial.agreement,
    }


def _trial_record(trial: Trial) -> dict[str, Any]:  # Any: JSON
    golden = trial.golden
    return {
        "works": trial.problem is None,
        "problem": trial.problem,
        "golden": None if golden is None else {"pairs": golden.pairs, "agree": golden.agree},
    }


def licence_text(plan: Download) -> str:
    """Return the licence; in capitals with a warning if it forbids commercial use."""
    own = plan.card.licence if plan.card is not None else plan.licence
    shown = plan.licence if own.casefold() == plan.licence.casefold() else f"{plan.licence} (card: {own})"
    return f"{shown.upper()}: NOT FOR COMMERCIAL USE" if plan.non_commercial else shown


def size_text(size: int) -> str:
    """Return a number of bytes in a readable unit."""
    value, unit = float(size), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{size:,} {_UNITS[0]}" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"
