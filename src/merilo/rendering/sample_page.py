"""One sample on one screen: what is wrong, each statement with its verdict, the contexts, people and scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.data.history import shown_history
from merilo.data.sanitize import clean
from merilo.data.short_answers import taken_apart
from merilo.judging.kinds.contexts import SufficiencyVerdict, Support, SupportVerdict
from merilo.judging.verdicts import Failure, is_positive, probability_of
from merilo.metrics.base import Score
from merilo.metrics.steps import ALL_RETRIEVED, NONE_RETRIEVED
from merilo.numbers import count
from merilo.rendering.explain import without_score
from merilo.rendering.own_words import explain
from merilo.rendering.page import BLANK, GAP, Page, Span, Tone, cells_of, cut, pad, wrap
from merilo.results.faults import FAULTS, PLACES, Answer, fault_of, has_faults
from merilo.results.levels import BY_LABELS
from merilo.results.means import WeakMarks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.judging.ask import Answer as Verdict
    from merilo.results.sample_detail import ContextView, HumanVerdict, SampleDetail

MAX_LINES: Final = 25
_COLUMN: Final = 11
_OF_RESPONSE: Final = ("faithfulness", "answering")
_DIFFERS: Final = "Differs in: "


class _Most(NamedTuple):
    """The most to show."""

    statements: int
    rows: int
    """Rows of each statement; if more than one, the sentence closest to one that is not supported is shown too."""
    contexts: int
    people: int


_SIZES: Final = (
    _Most(12, 3, 6, 3),
    _Most(12, 2, 4, 3),
    _Most(9, 1, 4, 3),
    _Most(7, 1, 3, 2),
    _Most(5, 1, 2, 2),
    _Most(4, 1, 1, 1),
)
"""The page has the first of these sizes with which it has at most `MAX_LINES` lines."""


def sample_page(case: SampleDetail, width: int, *, language: str | None = None, marks: WeakMarks | None = None) -> Page:
    """Return the screen of a sample; `marks`: marks the names of weak metrics."""
    pages = (_page(Page(width, language), case, marks or WeakMarks(), size) for size in _SIZES)
    page = next(pages)
    while len(page.lines) > MAX_LINES and (smaller := next(pages, None)) is not None:
        page = smaller
    return page


def _page(page: Page, case: SampleDetail, marks: WeakMarks, most: _Most) -> Page:
    sample = case.result.sample
    judged = [*_judged(case)]
    page.text(_headline(page, case, judged), tone=Tone.STRONG)
    _cut(page, "Earlier", shown_history(sample.history) or None, 1)
    _cut(page, "Question", sample.user_input, 2)
    if judged:
        _statements(page, case, judged, most)
    else:
        _cut(page, "Response", sample.response, 4)
    _cut(page, "Reference", sample.reference, 2)
    _contexts(page, case, most.contexts)
    _people(page, case, [text for text, _ in judged], most.people)
    _scores(page, case, marks)
    for name, outcome in case.result.outcomes.items():
        explain(page, name, outcome, sample)
    page.text("All texts, questions and replies: --full", tone=Tone.QUIET)
    return page


def _scores(page: Page, case: SampleDetail, marks: WeakMarks) -> None:
    scores: list[str] = []
    missing: dict[str, list[str]] = {}
    for name, outcome in case.result.outcomes.items():
        if isinstance(outcome, Score):
            value = f"{outcome.value:.2f}".rstrip("0").rstrip(".")
            scores.append(f"{marks.name(name)} {value}")
        else:
            missing.setdefault(without_score(outcome), []).append(marks.name(name))
    if scores:
        page.entry("Scores", " \u00b7 ".join(scores), column=_COLUMN)
    label = "No score"
    for why, names in missing.items():
        for row in _rows(f"{', '.join(names)}: {page.translation.line(why)}", page.width - _COLUMN, 2):
            _line(page, label, row)
            label = ""


def _cut(page: Page, label: str, text: str | None, rows: int) -> None:
    """Add a text of the user in at most this number of rows."""
    for row in () if text is None else _rows(text, page.width - _COLUMN, rows):
        _line(page, label, row)
        label = ""


def _line(page: Page, label: str, *spans: Span | str) -> None:
    page.line(pad(page.translation.phrase(label), _COLUMN), *spans)


# -- statements ----------------------------------------------------------------------------------------


def _judged(case: SampleDetail) -> Iterator[tuple[str, Verdict]]:
    """Yield the statements of the response with the verdict on each; a `Failure` for one that has none."""
    own = [metric for metric in case.result.records if metric.startswith(_OF_RESPONSE)]
    verdicts: dict[str, Verdict] = {
        view.text: said.answer
        for metrics, views in case.statements.items()
        if {*metrics} & {*own}
        for view in views
        for said in view.said
        if isinstance(said.answer, SupportVerdict) and said.against in {"", "the contexts"}
    }
    keys = {key for metric in own for key in case.result.records[metric].get("trail", [])}
    contexts = {each.context.text for each in case.contexts}
    for asked in case.asked:
        question = asked.question
        if isinstance(question, Support) and asked.key.hex() in keys and {*question.contexts} <= contexts:
            verdicts.setdefault(question.statement, asked.answer)
    order = [each.question.statement for each in case.asked if isinstance(each.question, Support)]
    yield from sorted(verdicts.items(), key=lambda each: order.index(each[0]) if each[0] in order else len(order))


def _headline(page: Page, case: SampleDetail, judged: Sequence[tuple[str, Verdict]]) -> str:
    named = {metric.partition("(")[0]: each for metric, each in [*case.result.records.items()][::-1]}
    if not has_faults(named):
        return f"Sample {case.result.sample.id}"
    fault = FAULTS[PLACES[fault_of(named)]]
    answers = [answer for _, answer in judged]
    unjudged = sum(isinstance(each, Failure) for each in answers)
    wrong = sum(not isinstance(each, Failure) and not is_positive(each) for each in answers)
    amount, what = (unjudged, "judged") if fault.answer is Answer.UNKNOWN else (wrong, "supported")
    if not amount or fault.answer not in {Answer.UNKNOWN, Answer.STRAYED} or fault.key == "wrong":
        return f"{page.translation.phrase(fault.name)}. {page.translation.line(fault.cause)}"
    return (
        f"{fault.name}: {amount:,} of {count(len(answers), 'statement')} {'is' if amount == 1 else 'are'} not {what}."
    )


def _statements(page: Page, case: SampleDetail, judged: Sequence[tuple[str, Verdict]], most: _Most) -> None:
    """Add statements with their verdicts; of too many, those that are not supported first."""
    order = sorted(range(len(judged)), key=lambda at: is_supported(judged[at][1]))
    shown, label, digits = sorted(order[: most.statements]), "Response", len(str(len(judged)))
    for at in shown:
        text, answer = judged[at]
        glyph, tone = _glyph(answer)
        start, verdict = f"{glyph} {at + 1:>{digits}}  ", page.translation.line(_verdict(answer))
        indent = _COLUMN + cells_of(start)
        room = page.width - indent
        apart = taken_apart(text)  # a short answer made into a statement: the rest repeats the question
        first, *rest = _rows(text if apart is None else apart[1], room, most.rows)
        if not rest and cells_of(first) + GAP + cells_of(verdict) <= room:
            _line(page, label, Span(start, tone), first, " " * GAP, Span(verdict, Tone.QUIET))
        else:
            _line(page, label, Span(start, tone), first)
            for row in rest:
                page.line(" " * indent, row)
            for row in _rows(verdict, room, min(most.rows, 2)):
                page.line(" " * indent, Span(row, Tone.QUIET))
        if most.rows > 1 and (quote := _closest(case, answer)):
            page.line(" " * indent, cut(f"\u203a {quote}", room))
        label = ""
    if left := len(judged) - len(shown):
        others = "not shown" if not is_supported(judged[order[most.statements]][1]) else "that the contexts support"
        _line(page, label, Span(page.translation.line(f"+ {count(left, 'statement')} {others}"), Tone.QUIET))


def _rows(text: str, width: int, most: int) -> list[str]:
    """Return a text of the user as at most this number of rows."""
    found = wrap(clean(" ".join(text.split())), width) if text.strip() else [BLANK]
    return found if len(found) <= most else [*found[: most - 1], cut(" ".join(found[most - 1 :]), width)]


def _closest(case: SampleDetail, answer: Verdict) -> str:
    """Return the sentence that is closest to a statement that is not supported; empty if the judge names none."""
    if not isinstance(answer, SupportVerdict) or answer.supported or not answer.sentences:
        return ""
    at, sentence = answer.sentences[0]
    found = case.contexts[at].sentences if at < len(case.contexts) else ()
    return found[sentence] if sentence < len(found) else ""


def is_supported(answer: Verdict) -> bool:
    """Return True if an answer on a statement is a verdict that supports it."""
    return not isinstance(answer, Failure) and is_positive(answer)


def _glyph(answer: Verdict) -> tuple[str, Tone]:
    if isinstance(answer, Failure):
        return "?", Tone.STRONG
    return ("\u2713", Tone.GOOD) if is_positive(answer) else ("\u2717", Tone.BAD)


def _verdict(answer: Verdict) -> str:
    """Return the verdict on a statement, its probability and the sentence that it rests on."""
    if not isinstance(answer, SupportVerdict):
        return f"not judged: {answer.message if isinstance(answer, Failure) else answer.in_words()}"
    places = ", ".join(f"context {context + 1}, sentence {at + 1}" for context, at in answer.sentences[:1])
    words, own, where = answer.in_words().partition(" by ")
    text = f"{words}{_chance(answer)}{f' by {places}' if places and answer.supported else f'{own}{where}'}"
    if answer.supported or answer.probability is None:
        return f"{text}. {answer.reason}" if answer.reason not in {"", BY_LABELS} and not places else text
    differs = answer.reason.partition(_DIFFERS)[2].rstrip(".")
    return "; ".join(
        filter(None, (text, f"closest: {places}" if places else "", f"differs in: {differs}" if differs else ""))
    )


def _chance(answer: Verdict) -> str:
    probability = None if isinstance(answer, Failure) else probability_of(answer)
    by = ", by your labels" if getattr(answer, "reason", "") == BY_LABELS else ""
    return "" if probability is None else f" ({probability:.2f}{by})"


# -- contexts and people -------------------------------------------------------------------------------


def _contexts(page: Page, case: SampleDetail, most: int) -> None:
    if case.result.sample.retrieved_contexts is None:
        return
    relevance = {view.index: said.answer for view in case.contexts for said in view.said if said.kind == "relevance"}
    relevant = [at for at, answer in relevance.items() if is_supported(answer)]
    unjudged = sum(isinstance(answer, Failure) for answer in relevance.values())
    parts = [f"{len(relevant):,} of {len(case.contexts):,} relevant"] if relevance else [f"{len(case.contexts):,}"]
    if relevant:
        parts[0] += f" ({', '.join(str(at + 1) for at in relevant)})"
    parts += [f"{unjudged:,} not judged"] if unjudged else []
    parts += [_enough(each.answer) for each in case.whole if isinstance(each.answer, SufficiencyVerdict)]
    page.entry("Contexts", "; ".join(dict.fromkeys(parts)), column=_COLUMN)
    marked = [view for view in case.contexts if view.evidence]
    for view in marked[:most]:
        _context(page, view)
    if (left := len(marked) - most) > 0:
        _line(page, "", Span(page.translation.line(f"+ {count(left, 'context')} with evidence"), Tone.QUIET))


def _enough(answer: SufficiencyVerdict) -> str:
    """Return whether the contexts hold the answer: what ids show, or the verdict."""
    if answer.reason in {ALL_RETRIEVED, NONE_RETRIEVED}:
        return f"{answer.reason[0].lower()}{answer.reason[1:].rstrip('.')}"
    return f"together they {'hold' if is_positive(answer) else 'do not hold'} the answer{_chance(answer)}"


def _context(page: Page, view: ContextView) -> None:
    """Add the first sentences of evidence of a context in one line, and the number of its other sentences."""
    start, found = f"{view.index + 1:>{_COLUMN - GAP}}", sorted(view.evidence)[:2]
    others = len(view.sentences) - len(found)
    more = page.translation.line(f"+ {count(others, 'sentence')}") if others else ""
    room = page.width - _COLUMN - (cells_of(more) + GAP if more else 0)
    quotes = [cut(view.sentences[at], room // len(found) - 2 * GAP) for at in found]
    page.line(start, " " * GAP, *(f"\u203a {quote}{' ' * GAP}" for quote in quotes), Span(more, Tone.QUIET))


def _people(page: Page, case: SampleDetail, statements: Sequence[str], most: int) -> None:
    """Add the verdicts of annotators, those that the judge does not share first."""
    found = sorted(case.people, key=lambda each: each.agrees)
    label = "People"
    for each in found[:most]:
        ends = "The judge agrees." if each.agrees else "The judge differs."
        text = f"{each.annotator}: {_about(each, statements)} {each.verdict.in_words()}. {ends}"
        _line(
            page,
            label,
            Span(cut(page.translation.line(text), page.width - _COLUMN), Tone.PLAIN if each.agrees else Tone.BAD),
        )
        label = ""
    if (left := len(found) - most) > 0:
        _line(page, label, Span(page.translation.line(f"+ {count(left, 'verdict')}"), Tone.QUIET))


def _about(each: HumanVerdict, statements: Sequence[str]) -> str:
    if each.context is not None:
        return f"context {each.context + 1}"
    return f"statement {statements.index(each.statement) + 1}" if each.statement in statements else each.kind
