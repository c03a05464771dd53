"""Results as HTML and SVG that notebooks show, without scripts, styles or external resources, and the writer of pages.

Text of data and models is never markup. It is cleaned as for a terminal, so that no character hides text or reverses
its direction, and then escaped.
"""

from __future__ import annotations

from itertools import chain
from math import isfinite
from typing import TYPE_CHECKING, Final

from merilo.data.history import shown_history
from merilo.errors import RunError
from merilo.metrics.base import Failed, Score
from merilo.renderers import Drawing
from merilo.rendering.aggregate import interval_heading
from merilo.rendering.markup import Markup, el, joined
from merilo.rendering.sanitize import clean_lines, harmless
from merilo.rendering.wording import number, span
from merilo.runs.publish import write_file
from merilo.runs.scales import NO_SCALE, recorded_scale

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from merilo.data.sample import Sample
    from merilo.metrics.base import Outcome
    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run, SampleResult

_TEXT_CHARS: Final = 2_000
_CONTEXTS: Final = 10
_LEFT: Final = 270
"""Where the scale of a drawing begins, after the names, and the end of the scale before it."""
_WIDTH: Final = 300
_ROW: Final = 26
_TOP: Final = 34
_NAME_CHARS: Final = 32
_GREY: Final = "#808080"
_BLUE: Final = "#2b7bba"


def write_page(path: Path, text: str) -> None:
    """Write a page atomically, so that a reader sees the old or the new one. Raises RunError if writing fails."""
    try:
        write_file(path, text)
    except OSError as error:
        raise RunError(f"Cannot write {path} ({error.strerror}); choose another file.") from error


def table_html(
    *,
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    text: Collection[int] = (),
    basis: str | None = None,
) -> str:
    """Return a table; `text`: the columns that are wrapped. `basis`: a paragraph below it."""
    heads = [el("th", harmless(each), cls="text" if at in text else "", scope="col") for at, each in enumerate(head)]
    body = [
        el(
            "tr",
            el("th", harmless(name), scope="row"),
            [el("td", harmless(each), cls="text" if at in text else "nowrap") for at, each in enumerate(cells, 1)],
        )
        for name, *cells in rows
    ]
    whole = el("table", el("caption", harmless(caption)), el("thead", el("tr", heads)), el("tbody", body))
    wide = el("div", whole, cls="wide", tabindex=0, role="group", aria_label=harmless(caption))
    return joined((wide, None if basis is None else el("p", harmless(basis))))


def sample_html(sample: Sample) -> str:
    """Return the texts of a sample, long ones truncated."""
    return _sample(sample, ())


def result_html(found: SampleResult) -> str:
    """Return the outcomes and the texts of a sample, long texts truncated."""
    return _sample(found.sample, [_outcome_row(metric, outcome) for metric, outcome in found.outcomes.items()])


def _sample(sample: Sample, rows: Sequence[tuple[str, ...]]) -> str:
    title = f"Sample {sample.id}"
    texts = (
        ("Earlier turns", shown_history(sample.history)),
        ("User input", sample.user_input),
        ("Response", sample.response),
        ("Reference", sample.reference),
    )
    first = el("p", el("b", harmless(title)))
    if rows:
        head = ("metric", "score", "status", "reason")
        first = Markup(table_html(caption=title, head=head, rows=rows, text=(2, 3)))
    shown = [el("p", el("b", f"{name}:"), " ", _lines(text)) for name, text in texts if text is not None]
    return joined((first, shown, _contexts(sample)))


def _contexts(sample: Sample) -> Markup | None:
    contexts = sample.retrieved_contexts
    if contexts is None:
        return None
    items = [el("li", _lines(each.text)) for each in contexts[:_CONTEXTS]]
    more = el("p", f"The first {len(items)} are shown.") if len(contexts) > len(items) else None
    return el("details", el("summary", f"Retrieved contexts: {len(contexts)}"), el("ol", items), more)


def _outcome_row(metric: str, outcome: Outcome) -> tuple[str, ...]:
    if isinstance(outcome, Score):
        return metric, number(outcome.value), "scored", ""
    if isinstance(outcome, Failed):
        return metric, number(None), "failed", outcome.error.message
    return metric, number(None), "undefined", outcome.reason


def _lines(text: str) -> Markup:
    """Return the lines of a text, a long one truncated."""
    shown = text if len(text) <= _TEXT_CHARS else f"{text[:_TEXT_CHARS]} ... ({len(text):,} characters)"
    lines = clean_lines(shown) or ["(blank)"]
    return joined((lines[0], *chain.from_iterable((el("br"), each) for each in lines[1:])))


def run_plot(run: Run) -> Drawing:
    """Return the means of a run with their intervals as a drawing, one row per metric in the run's order."""
    aggregates = tuple(run.metrics.values())
    title = harmless(f"Means of {run.manifest.data}, {interval_heading(aggregates)}")
    width, height = _LEFT + _WIDTH + 230, _TOP + _ROW * len(aggregates) + 8
    svg = el(
        "svg",
        el("title", title),
        el("text", title, x=0, y=16, font_weight=600),
        [_bar(run, each, _TOP + _ROW * at + _ROW // 2) for at, each in enumerate(aggregates)],
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        role="img",
        font_family="system-ui, sans-serif",
        font_size=13,
        fill=_GREY,
    )
    return Drawing(svg)


def _bar(run: Run, found: Aggregate, y: int) -> Markup:
    """Return one metric: its name, its scale, and the mean with its interval if there are any."""
    low, high = _ends(run, found)
    right = _LEFT + _WIDTH
    name = found.metric if len(found.metric) <= _NAME_CHARS else f"{found.metric[: _NAME_CHARS - 3]}..."
    name, text = harmless(name), number(found.mean)

    def place(value: float) -> str:
        part = (min(max(value, low), high) - low) / (high - low) if high > low else 0.5
        return f"{_LEFT + _WIDTH * part:.1f}"

    drawn = [el("line", x1=_LEFT, x2=right, y1=y, y2=y, stroke=_GREY, stroke_opacity=0.4)]
    if found.interval is not None:
        text = f"{text} ({span(found.interval)})"
        start, end = map(place, found.interval)
        drawn.append(el("line", x1=start, x2=end, y1=y, y2=y, stroke=_BLUE, stroke_width=4))
    if found.mean is not None:
        drawn.append(el("circle", cx=place(found.mean), cy=y, r=5, fill=_BLUE))
    return el(
        "g",
        el("title", f"{name}: {text}"),
        el("text", name, x=0, y=y + 4),
        el("text", f"{low:.3g}", x=_LEFT - 6, y=y + 4, font_size=10, text_anchor="end"),
        el("text", f"{high:.3g}", x=right + 6, y=y + 4, font_size=10),
        drawn,
        el("text", text, x=right + 40, y=y + 4),
    )


def _ends(run: Run, found: Aggregate) -> tuple[float, float]:
    """Return the metric's range; for an infinite end, the outermost of 0, 1 and its numbers."""
    scale = NO_SCALE if found.parts else recorded_scale(run.manifest, found.metric)
    numbers = [each for each in (0.0, 1.0, found.mean, *(found.interval or ())) if each is not None]
    low, high = scale.span
    return low if isfinite(low) else min(numbers), high if isfinite(high) else max(numbers)
