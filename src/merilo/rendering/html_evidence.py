"""One sample on a static page: the verdicts on each part, and the sentences with evidence marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.data.history import shown_history
from merilo.metrics.base import Failed, Score, Undefined
from merilo.rendering.explain import shown_sentences
from merilo.rendering.overview import counts_text
from merilo.rendering.wording import NONE, count, number, reason_of, said

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from merilo.metrics.base import Outcome
    from merilo.results.sample_detail import ContextView, Remark, SampleDetail, StatementView

_SENTENCE_CHARS = 800
_TEXT_CHARS = 4_000
_STATEMENTS = 40


@dataclass(frozen=True, slots=True)
class VerdictText:
    """A verdict as text."""

    kind: str
    words: str
    reason: str


@dataclass(frozen=True, slots=True)
class SentenceRow:
    """A numbered sentence; if `skipped` is not empty, a note on sentences that are not shown."""

    number: int = 0
    text: str = ""
    marked: bool = False
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class ContextPart:
    """A context."""

    number: int
    id: str | None
    marked: bool
    """True if a verdict names one of its sentences as evidence."""
    verdicts: tuple[VerdictText, ...]
    rows: tuple[SentenceRow, ...]


@dataclass(frozen=True, slots=True)
class StatementPart:
    """A statement of the response."""

    text: str
    verdicts: tuple[VerdictText, ...]


@dataclass(frozen=True, slots=True)
class StatementGroup:
    """The statements that one or several metrics counted."""

    metrics: str
    statements: tuple[StatementPart, ...]


@dataclass(frozen=True, slots=True)
class EvidencePart:
    """The response, statements and contexts of a sample in one run, with their verdicts."""

    name: str
    response: str | None
    whole: tuple[VerdictText, ...]
    statements: tuple[StatementGroup, ...]
    contexts: tuple[ContextPart, ...]


@dataclass(frozen=True, slots=True)
class TextPart:
    """The texts of a sample that are the same in all runs."""

    user_input: str | None
    reference: str | None
    history: str | None = None
    """The earlier turns of the conversation, shortened."""


def text_part(case: SampleDetail) -> TextPart:
    """Return the user input and the reference."""
    sample = case.result.sample
    return TextPart(
        _cut(sample.user_input, _TEXT_CHARS), _cut(sample.reference, _TEXT_CHARS), shown_history(sample.history)
    )


def evidence_part(case: SampleDetail, name: str = "") -> EvidencePart:
    """Return the response with its statements, and the contexts with their evidence."""
    return EvidencePart(
        name=name,
        response=_cut(case.result.sample.response, _TEXT_CHARS),
        whole=_verdict_texts(case.whole),
        statements=tuple(_group(metrics, views) for metrics, views in case.statements.items()),
        contexts=tuple(_context(view) for view in case.contexts),
    )


def value_cell(outcome: Outcome | None, *, counts: bool = False) -> str:
    """Return the text of a cell: a score, with `counts` also the counts it is based on, or why there is no score."""
    match outcome:
        case None:
            return NONE
        case Undefined():
            return f"undefined: {outcome.reason}" if counts else "undefined"
        case Failed():
            return f"failed: {outcome.error.message}" if counts else "failed"
        case Score():
            text = counts_text(outcome.counts) if counts and outcome.counts else ""
            if counts and outcome.averaged:
                text = "; ".join(filter(None, ("average of the judge's probabilities", text)))
            return f"{number(outcome.value)} ({text})" if text else number(outcome.value)


def _group(metrics: Sequence[str], views: Sequence[StatementView]) -> StatementGroup:
    shown = tuple(
        StatementPart(_cut(view.text, _SENTENCE_CHARS) or "", _verdict_texts(view.said)) for view in views[:_STATEMENTS]
    )
    more = len(views) - len(shown)
    left = (StatementPart(f"... {count(more, 'statement')} not shown", ()),) if more else ()
    return StatementGroup(", ".join(metrics), (*shown, *left))


def _context(view: ContextView) -> ContextPart:
    return ContextPart(
        number=view.index + 1,
        id=view.context.id,
        marked=bool(view.evidence),
        verdicts=_verdict_texts(view.said),
        rows=tuple(_sentences(view)),
    )


def _sentences(view: ContextView) -> Iterable[SentenceRow]:
    last = -1
    for index in shown_sentences(view, full=False):
        if missing := index - last - 1:
            yield SentenceRow(skipped=f"... {count(missing, 'sentence')} not shown")
        text = _cut(view.sentences[index], _SENTENCE_CHARS) or ""
        yield SentenceRow(index + 1, text, index in view.evidence)
        last = index
    if missing := len(view.sentences) - last - 1:
        yield SentenceRow(skipped=f"... {count(missing, 'sentence')} not shown")
    if not view.sentences:
        yield SentenceRow(skipped="(blank)")


def _verdict_texts(remarks: Iterable[Remark]) -> tuple[VerdictText, ...]:
    return tuple(
        VerdictText(
            f"{each.kind}, checked against {each.against}" if each.against else each.kind,
            said(each.answer),
            reason_of(each.answer),
        )
        for each in remarks
    )


def _cut(text: str | None, most: int) -> str | None:
    if text is None or len(text) <= most:
        return text
    return f"{text[:most].rstrip()} ... {len(text) - most:,} characters not shown"
