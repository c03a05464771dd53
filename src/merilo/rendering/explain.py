"""One sample as a page: its texts, the verdicts on each part, the values, and the questions with raw replies."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from merilo.data.history import shown_history
from merilo.data.sanitize import clean
from merilo.judging.verdicts import DecisionVerdict, Failure, Verdict, is_not_judged, listed
from merilo.metrics.base import Evidence, EvidenceTarget, Failed, Outcome, Score, Undefined
from merilo.metrics.text import FOREIGN
from merilo.numbers import count, number
from merilo.rendering.own_words import explain
from merilo.rendering.page import Page, Span, Tone, cut, wrap
from merilo.results.faults import FAULTS, PLACES, sample_fault
from merilo.results.means import WeakMarks, counts_text
from merilo.short_repr import short_screen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.results.sample_detail import ContextView, HumanVerdict, Remark, SampleDetail, StatementView
    from merilo.runs.run import SampleResult

_COLUMN = 15
_WIDTH = 80
_REPLY_CHARS = 20_000
MARK = ">"


def case_page(case: SampleDetail, width: int, *, language: str | None = None, marks: WeakMarks | None = None) -> Page:
    """Return the page with everything about the sample; `marks`: marks the names of weak metrics."""
    page, sample = Page(width, language), case.result.sample
    sample_texts(page, sample)
    values(page, case.result.outcomes, marks or WeakMarks())
    for name, outcome in case.result.outcomes.items():
        explain(page, name, outcome, sample)
    if case.whole or case.people_on_whole:
        page.heading("Sample as a whole")
        _said(page, case.whole, case.people_on_whole)
    for view in case.contexts:
        context(page, view)
    for metrics, views in case.statements.items():
        page.heading(f"Statements counted by {', '.join(metrics)}")
        statements(page, views)
    _asked(page, case)
    return page


def sample_texts(page: Page, sample: Sample) -> None:
    """Add the id and the texts of a sample, without its contexts."""
    page.text(f"sample {sample.id}", tone=Tone.STRONG)
    page.blank()
    for label, text in (
        ("earlier turns", shown_history(sample.history)),
        ("user input", sample.user_input),
        ("response", sample.response),
        ("reference", sample.reference),
    ):
        if text is not None:
            page.entry(label, text if text.strip() else "(blank)", column=_COLUMN)
    if sample.reference_context_ids:
        page.entry("reference ids", ", ".join(sample.reference_context_ids), column=_COLUMN)
    if sample.metadata:
        page.entry("metadata", json.dumps(dict(sample.metadata), ensure_ascii=False), column=_COLUMN)


def result_text(found: SampleResult) -> str:
    """Return the id, the fault, the question, the response and each outcome in at most 12 lines, 80 columns wide."""
    page, sample, fault = Page(_WIDTH), found.sample, sample_fault(found)
    page.line(cut(f"{sample.id}: {FAULTS[PLACES[fault]].name}" if fault else sample.id, _WIDTH))
    outcomes = ((name, _value(outcome)) for name, outcome in found.outcomes.items())
    for name, text in (("question", sample.user_input), ("response", sample.response), *outcomes):
        if text is not None:
            page.line(cut(f"{name}: {text}", _WIDTH))
    return short_screen(str(page))


def values(page: Page, outcomes: Mapping[str, Outcome], marks: WeakMarks) -> None:
    """Add each metric's value, or why it has none."""
    page.heading("Values")
    column = 4 + min(max((len(marks.name(name)) for name in outcomes), default=0), 40)
    for name, outcome in outcomes.items():
        page.entry(marks.name(name), _value(outcome), column=column, indent=2)
    if legend := marks.legend(outcomes):
        page.text(legend, indent=2, tone=Tone.QUIET)


def context(page: Page, view: ContextView) -> None:
    """Add one context: the verdicts on it, then its numbered sentences, evidence marked at the left."""
    page.heading(f"Context {view.index + 1}")
    page.text(_about(view), indent=2, tone=Tone.QUIET)
    _said(page, view.said, view.people)
    if not view.sentences:
        page.text("(blank)", indent=2, tone=Tone.QUIET)
        return
    digits = len(str(len(view.sentences)))
    for index, text in enumerate(view.sentences):
        marked = index in view.evidence
        start = f"{MARK if marked else ' '} {index + 1:>{digits}}  "
        for row in wrap(clean(text), page.width - len(start)):
            page.line(
                Span(start, Tone.STRONG if marked else Tone.QUIET), Span(row, Tone.STRONG if marked else Tone.PLAIN)
            )
            start = " " * len(start)


def statements(page: Page, views: Sequence[StatementView]) -> None:
    """Add numbered statements, each with the verdicts on it."""
    digits = len(str(len(views)))
    for place, view in enumerate(views, start=1):
        start = f"  {place:>{digits}}  "
        for row in wrap(clean(view.text), page.width - len(start)):
            page.line(start, row)
            start = " " * len(start)
        _said(page, view.said, view.people, indent=len(start))


def _value(outcome: Outcome) -> str:
    match outcome:
        case Score():
            counted = counts_text(outcome.counts)
            averaged = [AVERAGED] if outcome.averaged else []
            each = ", ".join(map(number, outcome.draws))
            drawn = [f"mean of {len(outcome.draws)} draws: {each}; evidence of the first"] if each else []
            value = number(outcome.value) + (f" ({counted})" if counted else "")
            return "\n".join([value, *drawn, *averaged, *outcome.flags])
        case _:
            return without_score(outcome)


def _about(view: ContextView) -> str:
    parts = [f"id {view.context.id}"] if view.context.id is not None else []
    if view.context.score is not None:
        parts.append(f"retriever's score {view.context.score:g}")
    parts.append(count(len(view.sentences), "sentence"))
    return ", ".join(parts)


def _said(page: Page, answers: Sequence[Remark], people: Sequence[HumanVerdict], indent: int = 2) -> None:
    for each in answers:
        reason = reason_of(each.answer)
        text = f"{remark_kind(each)}: {said(each.answer)}" + (f". {reason}" if reason else "")
        page.text(text, indent=indent, tone=Tone.QUIET)
    for person in people:
        page.text(by_person(person), indent=indent, tone=Tone.PLAIN if person.agrees else Tone.BAD)


# -- questions and replies ----------------------------------------------------------------------------


def asked_of(case: SampleDetail) -> list[tuple[str, str, str, list[str]]]:
    """Return each question of the judge: its kind, what it is about, the answer, and the raw replies as JSON."""
    found: list[tuple[str, str, str, list[str]]] = []
    for asked in case.asked:
        index = case.context_of(asked)
        about = asked.question.subject or "" if index is None else f"context {index + 1}"
        raw = (json.dumps(each, ensure_ascii=False, indent=1) for each in asked.replies)
        replies = [each if len(each) <= _REPLY_CHARS else f"{each[:_REPLY_CHARS]} ..." for each in raw]
        found.append((asked.question.kind, about, said(asked.answer), replies))
    return found


def _asked(page: Page, case: SampleDetail) -> None:
    page.heading(f"Questions asked: {len(case.asked):,}")
    before, column = list[str](), 5 + len(str(len(case.asked)))
    for place, (kind, about, answer, replies) in enumerate(asked_of(case), start=1):
        of = f" of {cut(about, max(page.width - column - 30, 20))}" if about else ""
        page.entry(f"{place}.", f"{kind}{of}: {answer}", column=column, indent=2)
        for reply in ["answered in the reply above"] if replies and replies == before else replies:
            page.text(reply, indent=column, verbatim=True)
        before = replies
    for text in dict.fromkeys(asked.rubric for asked in case.asked if asked.rubric):
        page.heading("Rubric")
        page.text(text, indent=2, verbatim=True)


# -- evidence in short ---------------------------------------------------------------------------------

_QUOTED: Final = 200
_SHOWN_PIECES: Final = 6


@dataclass(frozen=True, slots=True)
class EvidenceGroup:
    """Equal verdicts on one or several contexts, on a statement, or on the sample as a whole."""

    about: str
    """For example `context 1`, `contexts 2, 3`, `statement 4`; empty for the sample as a whole."""
    said: str
    text: str = ""
    """The statement; empty for contexts."""
    quotes: tuple[str, ...] = ()
    """The sentences that the verdict names as evidence."""


def evidence_groups(case: SampleDetail, metric: str) -> tuple[EvidenceGroup, ...]:
    """Return the verdicts behind the value, or why there is none. Contexts without a quoted sentence are grouped."""
    outcome = case.result.outcomes.get(metric)
    if outcome is None:
        return (EvidenceGroup("", "not computed"),)
    if not isinstance(outcome, Score):
        return (EvidenceGroup("", without_score(outcome)),)
    if found := _pieces(case, outcome):
        return found
    counted = counts_text({name: each for name, each in outcome.counts.items() if each is not None})
    # a comparison also lists an imported score under the definition that computed it
    imported = any(text.startswith(FOREIGN) and each is outcome for text, each in case.result.outcomes.items())
    own = "the score was imported" if imported else "the score is computed from the data"
    return (EvidenceGroup("", counted or f"no verdict: {own}"),)


def add_evidence(page: Page, case: SampleDetail, metric: str, *, indent: int = 4) -> None:
    """Add the verdicts behind the value, each with the sentences that it names; at most six."""
    pieces = evidence_groups(case, metric)
    for piece in pieces[:_SHOWN_PIECES]:
        about = f"{piece.about}: " if piece.about else ""
        page.text(f"{about}{piece.said}", indent=indent)
        for quote in (*((piece.text,) if piece.text else ()), *piece.quotes):
            page.entry(">", cut(quote, _QUOTED), column=indent + 5, indent=indent + 2)
    if len(pieces) > _SHOWN_PIECES:
        page.text(f"... and {len(pieces) - _SHOWN_PIECES:,} more", indent=indent)


def _pieces(case: SampleDetail, outcome: Score) -> tuple[EvidenceGroup, ...]:
    found: list[EvidenceGroup] = []
    alike: dict[str, list[int]] = {}
    for evidence in outcome.evidence:
        words, quotes = said(_bare(evidence.verdict)), _quotes(case, evidence)
        match evidence.about:
            case EvidenceTarget.CONTEXT if quotes:
                found.append(EvidenceGroup(listed([evidence.index], "context"), words, quotes=quotes))
            case EvidenceTarget.CONTEXT:
                alike.setdefault(words, []).append(evidence.index)
            case EvidenceTarget.STATEMENT:
                found.append(EvidenceGroup(listed([evidence.index], "statement"), words, text=evidence.text))
            case EvidenceTarget.TEXT:
                found.append(EvidenceGroup("", words))
    return (*found, *(EvidenceGroup(listed(indices, "context"), words) for words, indices in alike.items()))


def _bare(verdict: Verdict) -> Verdict:
    """Return the verdict without its probability, which may differ between verdicts that read the same.

    The probability stays if metrics average it, since the scores then follow from it.
    """
    if isinstance(verdict, DecisionVerdict) and verdict.averaged:
        return verdict
    return replace(verdict, probability=None) if hasattr(verdict, "probability") else verdict  # type: ignore[call-arg]  # the field is there


def _quotes(case: SampleDetail, evidence: Evidence) -> tuple[str, ...]:
    if evidence.about is not EvidenceTarget.CONTEXT:
        return ()
    views = case.contexts
    if evidence.index >= len(views):
        return ()
    sentences = views[evidence.index].sentences
    return tuple(sentences[at] for at in evidence.verdict.context_evidence if at < len(sentences))


# -- answers in words ----------------------------------------------------------------------------------

AVERAGED = "average of the judge's probabilities"


def said(answer: Answer) -> str:
    """Return a judge's answer in a few words, with its probability of a "yes" if it gives one."""
    if isinstance(answer, Failure):
        if is_not_judged(answer):
            return answer.message
        return f"no verdict ({answer.kind.value}): {answer.message}"
    probability = getattr(answer, "probability", None)  # every verdict type has it, but their base class does not
    tail = "" if probability is None else f", p({answer.yes}) = {probability:.2f}"
    flag: str = getattr(answer, "flag", "")  # a field of decisions only
    return answer.in_words() + (f" ({flag})" if flag else "") + tail


def reason_of(answer: Answer) -> str:
    """Return the reason that a judge gave for its verdict; empty if it gave none."""
    return "" if isinstance(answer, Failure) else str(getattr(answer, "reason", ""))


def remark_kind(remark: Remark) -> str:
    """Return the kind of a verdict, with the text that a statement was checked against, if it is not the contexts."""
    return f"{remark.kind}, checked against {remark.against}" if remark.against else remark.kind


def by_person(each: HumanVerdict) -> str:
    """Return an annotator's verdict next to the judge's, such as `ann, support: not supported \u2717 differs`."""
    mark = "\u2713 agrees" if each.agrees else "\u2717 differs"
    return f"{each.annotator}, {each.kind}: {each.verdict.in_words()} {mark}"


def without_score(outcome: Undefined | Failed) -> str:
    """Return why a sample has no score."""
    if isinstance(outcome, Undefined):
        return f"undefined: {outcome.reason}"
    return f"failed ({outcome.error.kind.value}): {outcome.error.message}"
