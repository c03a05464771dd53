"""The result of `merilo judge fit` as a page, as lines for a card, and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from merilo.rendering.page import Page, Span, Tone, columns

if TYPE_CHECKING:
    from merilo.commands.fit.result import Fit, KindFit, Quality


def fit_page(fit: Fit, width: int) -> Page:
    """Return the fits, and the lines to put into the card."""
    page = Page(width)
    page.text(f"{fit.judge}: {fit.source}", tone=Tone.STRONG)
    page.blank()
    for each in fit.kinds:
        page.text(f"{each.kind}: {each.records} records, {each.positive} positive")
        rows: list[tuple[str, ...]] = [("", "log loss", "balanced accuracy")]
        rows += [_row("card as it is", each.before), _row("fitted, held out", each.held_out)]
        for place, row in enumerate(columns(rows, left=frozenset({0}))):
            page.line(Span(row, Tone.PLAIN if place else Tone.STRONG))
        if each.curve.scale <= 0:
            page.text("The scores do not rise with the labels, so there is no valid calibration.", tone=Tone.BAD)
        page.blank()
    for kind, reason in fit.left_out.items():
        page.text(f"{kind}: not fitted. {reason}")
    if usable := [each for each in fit.kinds if each.curve.scale > 0]:
        page.heading("Put these lines into judge.toml")
        for line in card_lines(fit, usable):
            page.line(line)
    return page


def card_lines(fit: Fit, usable: list[KindFit]) -> list[str]:
    """Return the cuts and the calibrations as TOML."""
    lines: list[str] = []
    for each in usable:
        cuts = [f"{cut:.3f}" for cut in each.cuts]
        setting = f"cut = {cuts[0]}" if len(cuts) == 1 else f"cuts = [{', '.join(cuts)}]"
        lines += [f"# under [answers.{each.kind}]", setting]
    for each in usable:
        lines += [f"[calibration.{each.kind}]", f"scale = {each.curve.scale:.4f}", f"shift = {each.curve.shift:.4f}"]
        lines += [f"records = {each.records}", f"source = {json.dumps(fit.source)}"]
    return lines


def _row(name: str, quality: Quality) -> tuple[str, ...]:
    return name, f"{quality.log_loss:.3f}", f"{100 * quality.balanced_accuracy:.1f} %"


def fit_record(fit: Fit) -> dict[str, Any]:  # Any: JSON
    """Return the fits as JSON."""
    return {
        "judge": fit.judge,
        "source": fit.source,
        "kinds": {
            each.kind: {
                "records": each.records,
                "positive": each.positive,
                "scale": each.curve.scale,
                "shift": each.curve.shift,
                "cuts": list(each.cuts),
                "before": _quality_record(each.before),
                "held_out": _quality_record(each.held_out),
            }
            for each in fit.kinds
        },
        "left_out": dict(fit.left_out),
    }


def _quality_record(quality: Quality) -> dict[str, float]:
    return {"log_loss": quality.log_loss, "balanced_accuracy": quality.balanced_accuracy}
