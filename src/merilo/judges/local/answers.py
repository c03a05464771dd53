"""From scores of pairs to verdicts: one function for each kind of question.

A context is read in windows of whole sentences. The best window decides, and names the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.data.sentences import sentences
from merilo.judges.local.scores import PairScore
from merilo.judging.kinds.addresses import Addresses, AddressesVerdict
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.judging.kinds.similarities import Similarities
from merilo.judging.kinds.sufficiency import Sufficiency, SufficiencyLabel, SufficiencyVerdict
from merilo.judging.kinds.support import Support, SupportLabel, SupportVerdict
from merilo.judging.kinds.usefulness import Usefulness, UsefulnessVerdict
from merilo.judging.matrix import MatrixVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.judges.local.card import Evidence
    from merilo.judges.local.scores import KindScorer, Window
    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict

RULES_VERSION: Final = "local-1"
"""Version of the rules in this folder, in the fingerprint of every local judge."""
_CONTRADICTED: Final = 0.5
_MAX_JOINED: Final = 3
"""Contexts that are read together to decide whether they are sufficient."""
_LEVELS: Final = (SufficiencyLabel.INSUFFICIENT, SufficiencyLabel.PARTLY, SufficiencyLabel.SUFFICIENT)


class Reading(NamedTuple):
    """The result of reading one context in windows."""

    context: int
    score: PairScore
    """The best score of a window, or the mean of all."""
    window: Window
    """The window with the best score."""
    contradiction: float
    """The highest probability of the contradiction label."""

    @property
    def place(self) -> str:
        """The window in words, counted from 1."""
        first, last = self.window.first + 1, self.window.last + 1
        what = f"sentence {first}" if first == last else f"sentences {first} to {last}"
        return f"{what} of context {self.context + 1}"


def _read(scorer: KindScorer, texts: Sequence[str], context: int, **other: str) -> Reading | None:
    """Return the result of reading the sentences of one context; None if all are blank."""
    windows = scorer.windows(texts, **other)
    if not windows:
        return None
    scores = [scorer.score(context=window.text, **other) for window in windows]
    best = max(range(len(scores)), key=lambda place: scores[place].probability)
    against = max(score.contradiction for score in scores)
    taken = scores[best]
    if scorer.scorer.card.windows.take == "mean":
        p, highest = (sum(parts) / len(scores) for parts in zip(*(score[:2] for score in scores), strict=True))
        taken = taken._replace(probability=p, highest=highest)
    return Reading(context, taken, windows[best], against)


def _read_all(scorer: KindScorer, contexts: Sequence[str], **other: str) -> list[Reading]:
    """Return the result for each context that is not blank, best first."""
    read = (_read(scorer, sentences(context), place, **other) for place, context in enumerate(contexts))
    return sorted((each for each in read if each is not None), key=lambda each: -each.score.probability)


def _joined(scorer: KindScorer, readings: Sequence[Reading], **other: str) -> PairScore | None:
    """Return the score of the best windows of several contexts as one text; None if it does not fit."""
    ordered = sorted(readings, key=lambda each: each.context)
    text = scorer.scorer.card.windows.joined_by.join(each.window.text for each in ordered)
    words = scorer.scorer.card.windows.words
    if (words is not None and len(text.split()) > words) or not scorer.fits(context=text, **other):
        return None
    return scorer.score(context=text, **other)


def support(scorer: KindScorer, question: Support) -> SupportVerdict:
    """Return the label by the best context; if none is enough, by the best two together."""
    cut: float = scorer.answer.cut
    readings = _read_all(scorer, question.contexts, statement=question.statement)
    found = [each for each in readings if each.score.probability >= cut]
    tells = scorer.scorer.card.output.contradiction is not None
    if found:
        evidence = tuple(sorted(each.context for each in found))
        return _supported(readings[0].score.probability, evidence, readings[0].place, cut, tells=tells)
    both = _joined(scorer, readings[:2], statement=question.statement) if len(readings) > 1 else None
    if both is not None and both.probability >= cut:
        places = " and ".join(each.place for each in sorted(readings[:2], key=lambda each: each.context))
        evidence = tuple(sorted(each.context for each in readings[:2]))
        return _supported(both.probability, evidence, f"{places} together", cut, tells=tells)
    best = max([each.score.probability for each in readings[:1]] + ([both.probability] if both else []), default=0.0)
    against = tuple(sorted(each.context for each in readings if each.contradiction >= _CONTRADICTED))
    reason = _reason(best, readings[0].place if readings else "", cut)
    if tells:
        label = SupportLabel.CONTRADICTED if against else SupportLabel.NOT_STATED
        return SupportVerdict(label, against, reason, best)
    return SupportVerdict(SupportLabel.UNSUPPORTED, (), reason, best, tells_contradicted=False)


def _supported(p: float, evidence: tuple[int, ...], place: str, cut: float, *, tells: bool) -> SupportVerdict:
    return SupportVerdict(SupportLabel.SUPPORTED, evidence, _reason(p, place, cut), p, tells_contradicted=tells)


def relevance(scorer: KindScorer, question: Relevance) -> RelevanceVerdict:
    """Return the grade of one context, and its evidence sentences."""
    cuts: tuple[float, float] = scorer.answer.cuts
    found = _read(scorer, question.sentences, 0, user_input=question.user_input)
    if found is None:
        return RelevanceVerdict(0, (), _reason(0.0, "", *cuts), 0.0)
    p = found.score.probability
    grade = _grade(found.score, cuts)
    reason = _reason(p, _sentences(found), *cuts)
    options: Evidence = scorer.answer.evidence
    evidence = _evidence(scorer, question.sentences, options, user_input=question.user_input) if grade else ()
    return RelevanceVerdict(grade, evidence, reason, p)


def usefulness(scorer: KindScorer, question: Usefulness) -> UsefulnessVerdict:
    """Return whether a context helps to give the reference, and its evidence sentences.

    A model that checks statements reads the sentences of the reference one by one, and the best one decides.
    """
    statements = scorer.slots["reference"] == "hypothesis"
    asked = sentences(question.reference) if statements else (question.reference,)
    read = [(_read(scorer, question.sentences, 0, reference=text), text) for text in asked]
    found = [(reading, text) for reading, text in read if reading is not None]
    cut: float = scorer.answer.cut
    if not found:
        return UsefulnessVerdict(useful=False, reason=_reason(0.0, "", cut), probability=0.0)
    best, text = max(found, key=lambda each: each[0].score.probability)
    p = best.score.probability
    options: Evidence = scorer.answer.evidence
    evidence = _evidence(scorer, question.sentences, options, reference=text) if p >= cut else ()
    return UsefulnessVerdict(p >= cut, evidence, _reason(p, _sentences(best), cut), p)


def sufficiency(scorer: KindScorer, question: Sufficiency) -> SufficiencyVerdict:
    """Return the label by the best context, or by the best three as one text if they fit."""
    cuts: tuple[float, float] = scorer.answer.cuts
    readings = _read_all(scorer, question.contexts, user_input=question.user_input)
    best, place = (readings[0].score, readings[0].place) if readings else (PairScore(0.0, 0.0), "")
    for number in range(min(_MAX_JOINED, len(readings)), 1, -1):
        together = _joined(scorer, readings[:number], user_input=question.user_input)
        if together is not None:
            if together.probability > best.probability:
                best, place = together, f"the best {number} contexts together"
            break
    p = best.probability
    return SufficiencyVerdict(_LEVELS[_grade(best, cuts)], reason=_reason(p, place, *cuts), probability=p)


def addresses(scorer: KindScorer, question: Addresses) -> AddressesVerdict:
    """Return whether the score of the statement for the user input reaches the cut."""
    p = scorer.score(user_input=question.user_input, statement=question.statement).probability
    cut: float = scorer.answer.cut
    return AddressesVerdict(p >= cut, reason=_reason(p, "", cut), probability=p)


def similarities(scorer: KindScorer, question: Similarities) -> MatrixVerdict:
    """Return the score of each left text with each right text."""
    if not question.left:
        return MatrixVerdict(0, len(question.right), b"")
    rows = [[scorer.score(left=one, right=other).probability for other in question.right] for one in question.left]
    return MatrixVerdict.of(rows)


def _grade(score: PairScore, cuts: tuple[float, float]) -> int:
    return (score.probability >= cuts[0]) + (score.highest >= cuts[1])


def _evidence(scorer: KindScorer, texts: Sequence[str], options: Evidence, **other: str) -> tuple[int, ...]:
    """Return the sentences that score best, each read with those before it."""
    places = [place for place, text in enumerate(texts) if text.strip()]
    if len(places) == 1:
        return tuple(places)
    scores: dict[int, float] = {}
    for at, place in enumerate(places):
        before = places[max(0, at + 1 - options.window) : at + 1]
        found = _read(scorer, [texts[each] for each in before], 0, **other)
        scores[place] = found.score.probability if found is not None else 0.0
    least = max(scores.values()) - options.within
    return tuple(place for place in places if scores[place] >= least)


def _sentences(reading: Reading) -> str:
    return reading.place.removesuffix(" of context 1")


def _reason(p: float, place: str, *cuts: float) -> str:
    by = f" by {place}" if place else ""
    named = "cut" if len(cuts) == 1 else "cuts"
    return f"{p:.2f}{by} ({named} {' and '.join(f'{cut:.2f}' for cut in cuts)})."


ANSWERS: Final[Mapping[type[Question[Any]], Callable[[KindScorer, Any], Verdict]]] = {
    Support: support,
    Relevance: relevance,
    Usefulness: usefulness,
    Sufficiency: sufficiency,
    Addresses: addresses,
    Similarities: similarities,
}
"""The function that answers each kind of question."""
