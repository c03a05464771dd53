"""Results as HTML that notebooks show, without scripts, styles or external resources, and the writer of pages.

Text of data and models is never markup. It is cleaned as for a terminal, so that no character hides text or reverses
its direction, and then escaped.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from merilo.data.history import shown_history
from merilo.errors import RunError
from merilo.metrics.base import Failed, Score
from merilo.rendering.markup import Markup, el, joined
from merilo.rendering.sanitize import clean_lines, harmless
from merilo.rendering.wording import number
from merilo.runs.publish import write_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from merilo.data.sample import Sample
    from merilo.metrics.base import Outcome
    from merilo.runs.run import SampleResult

_TEXT_CHARS: Final = 2_000
_CONTEXTS: Final = 10


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
