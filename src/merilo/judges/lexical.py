"""The lexical model of the embedded judge: text in, grades with probabilities out.

It compares words, numbers and names of one text with another, and their positions. It does not detect a wrong fact
made of the context's own words. `training/fit_lexical.py` fits its coefficients and its table of word weights
offline; equal input gives equal output.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Self, TypeVar

from merilo.cancellation import check_cancelled
from merilo.judges.lexical_features import (
    ANSWER_FEATURES,
    CONTEXT_FEATURES,
    SENTENCE_FEATURES,
    SUPPORT_FEATURES,
    USEFULNESS_FEATURES,
    answer_features,
    context_features,
    sentence_features,
    support_features,
    usefulness_features,
)
from merilo.judges.lexical_match import Lexicon, Matches, best_window, match, union, window_share
from merilo.judges.lexical_short import (
    ANSWERED_FEATURES,
    YES_OR_NO_FEATURES,
    Answered,
    ShortAnswer,
    short_answer,
    short_rows,
)
from merilo.judges.lexical_text import words
from merilo.judges.lexical_words import CONCESSIONS, CONJUNCTIONS, COURTESIES, REFUSALS
from merilo.judges.model_files import model_file
from merilo.judges.support_evidence import checked, with_evidence
from merilo.judges.support_result import SupportResult
from merilo.judges.word_bags import asks_time, states_time

MODEL_FILE: Final = "lexical.v2.json"
FORMAT: Final = 1
TASKS: Final[Mapping[str, tuple[str, ...]]] = {
    "sentence": SENTENCE_FEATURES,
    "answers": CONTEXT_FEATURES,
    "sufficient": CONTEXT_FEATURES,
    "useful": USEFULNESS_FEATURES,
    "supported": SUPPORT_FEATURES,
    "answered": ANSWERED_FEATURES,
    "yes_or_no": YES_OR_NO_FEATURES,
    "addresses": ANSWER_FEATURES,
}
"""The fitted curves and the features of each, in order."""

DIGITS: Final = 6
_WINDOW: Final = 3
_JOINED: Final = 2
_JOIN_GAIN: Final = 0.1
_REFUSING_SHARE: Final = 0.4
_EVIDENCE_SHARE: Final = 0.6
_COURTESY: Final = re.compile(f"(?:{'|'.join(COURTESIES)})\\W*", re.IGNORECASE)
_REFUSAL: Final = re.compile("|".join(f"(?:{pattern})" for pattern in REFUSALS), re.IGNORECASE | re.UNICODE)
_LEADS_IN: Final = re.compile(r"[:：][\s*_]*\Z")
_CLAUSE_END: Final = re.compile(
    rf"[.,;:!?。！？，\n]+|\b(?:{'|'.join(CONJUNCTIONS)})\b|(?=\b(?:{'|'.join(CONCESSIONS)})\b)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class RelevanceResult:
    """`grade` 0, 1 or 2; `evidence` sentence indices, ascending, empty exactly for grade 0."""

    grade: int
    evidence: tuple[int, ...]
    closest: int | None
    """The sentence that shares most with the user input, if any shares a word."""
    probability: float
    """The probability that the context helps to answer."""
    coverage: float
    """The fraction of the user input, by weight, whose words occur in the context, in [0, 1]."""
    yes_from: float
    """The lowest probability at which the answer is yes."""


@dataclass(frozen=True, slots=True)
class UsefulnessResult:
    """`evidence` sentence indices, ascending, empty exactly when not useful."""

    useful: bool
    evidence: tuple[int, ...]
    closest: int | None
    """The sentence that shares most with the reference, if any shares a word."""
    probability: float
    coverage: float
    """The fraction of the reference, by weight, whose words occur in the context, in [0, 1]."""
    yes_from: float
    """The lowest probability at which the answer is yes."""


_Found = TypeVar("_Found", RelevanceResult, UsefulnessResult)


def placed(places: Sequence[int], found: _Found) -> _Found:
    """Return a result about some sentences with positions in the whole context. `places`: those of the sentences."""
    closest = None if found.closest is None else places[found.closest]
    return replace(found, evidence=tuple(places[at] for at in found.evidence), closest=closest)


@dataclass(frozen=True, slots=True)
class SufficiencyResult:
    """`level` 0 insufficient, 1 partly, 2 sufficient; `probability` of sufficient."""

    level: int
    probability: float
    coverage: float
    """The fraction of the user input, by weight, whose words occur in the contexts, in [0, 1]."""
    yes_from: float
    """The lowest probability at which the answer is yes."""

    def for_time(self, user_input: str, sentences: Iterable[str]) -> "SufficiencyResult":
        """Return the result; insufficient if an English question asks when and no sentence states a time."""
        if self.probability < self.yes_from or not asks_time(user_input) or any(map(states_time, sentences)):
            return self
        return replace(self, level=0, probability=round(self.probability * self.yes_from, DIGITS))


@dataclass(frozen=True, slots=True)
class AddressesResult:
    """The judgement of whether a statement addresses the user input."""

    addresses: bool
    probability: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A logistic regression over clipped, piecewise linear features."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    slopes: tuple[float, ...]
    knots: tuple[tuple[tuple[float, float], ...], ...]
    """(knot, slope) pairs for each feature: the slope times the feature's excess over the knot is added."""
    intercept: float
    thresholds: Mapping[str, float]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:  # Any: parsed JSON
        """Return the curve stored as JSON."""
        return cls(
            low=tuple(fields["low"]),
            high=tuple(fields["high"]),
            slopes=tuple(fields["slopes"]),
            knots=tuple(tuple((knot, slope) for knot, slope in pairs) for pairs in fields["knots"]),
            intercept=fields["intercept"],
            thresholds=dict(fields["thresholds"]),
        )

    def logit(self, row: Sequence[float]) -> float:
        """Return the log odds of yes."""
        total = self.intercept
        for value, low, high, slope, knots in zip(row, self.low, self.high, self.slopes, self.knots, strict=True):
            clipped = low if value < low else min(value, high)
            total += slope * clipped
            for knot, extra in knots:
                if clipped > knot:
                    total += extra * (clipped - knot)
        return total

    def probability(self, row: Sequence[float]) -> float:
        """Return the probability of yes, in (0, 1), rounded to 6 digits."""
        return probability(self.logit(row))

    def level(self, chance: float) -> int:
        """Return 0 below the threshold "partly", 2 from the threshold "yes", otherwise 1."""
        return sum(chance >= self.thresholds[name] for name in ("partly", "yes"))


@dataclass(frozen=True)
class LexicalModel:
    """The model that answers each task from text alone. Use `LexicalModel.load()`; all methods are pure."""

    lexicon: Lexicon
    curves: Mapping[str, Curve]
    agreement: Mapping[str, Any]  # Any: nested tables of numbers, printed as they are
    """Agreement with human labels on held-out records, by task; see `training/README.md` for the fields."""
    fingerprint: str
    """The hexadecimal SHA-256 of the model file; `RULES_VERSION` names the code that reads texts for it."""

    @classmethod
    def load(cls) -> "LexicalModel":
        """Return the packaged model, which is read once."""
        return _packaged()

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Return the model from a file's bytes. Raises ValueError for a file of another format."""
        fields = json.loads(content)
        if fields.get("format") != FORMAT:
            raise ValueError(
                f"The lexical model has format {fields.get('format')!r}, expected {FORMAT}: "
                "fit it again with training/fit_lexical.py."
            )
        levels = fields["levels"]
        table = {stem: int(level) / levels for level, stems in fields["weights"].items() for stem in stems.split(" ")}
        return cls(
            lexicon=Lexicon(table),
            curves={name: Curve.of(fields["curves"][name]) for name in TASKS},
            agreement=fields["agreement"],
            fingerprint=hashlib.sha256(content).hexdigest(),
        )

    def relevance(self, user_input: str, sentences: Sequence[str]) -> RelevanceResult:
        """Grade how relevant a context is to the user input, with the sentences that are evidence."""
        found = match(self.lexicon.query(user_input), sentences, drop_copies=True)
        logits, row = self.context_row(found)
        curve = self.curves["answers"]
        chance, evidence, closest = curve.probability(row), self._evidence(found, logits), _closest(found, logits)
        grade = curve.level(chance) if evidence else 0
        return RelevanceResult(
            grade, evidence if grade else (), closest, chance, _short(row[0]), curve.thresholds["partly"]
        )

    def usefulness(self, user_input: str, reference: str, sentences: Sequence[str]) -> UsefulnessResult:
        """Judge whether a context helps to arrive at the reference, with the sentences that are evidence."""
        target = match(self.lexicon.query(reference), sentences, drop_copies=False)
        asked = match(self.lexicon.query(user_input), sentences, drop_copies=True)
        row = usefulness_features(target, asked)
        p_useful = self.curves["useful"].probability(row)
        shares = [target.share(mask) for mask in target.masks]
        best = max(shares, default=0.0)
        yes_from = self.curves["useful"].thresholds["yes"]
        useful = best > 0.0 and p_useful >= yes_from
        owners = {
            owner
            for owner, share in zip(target.owners, shares, strict=True)
            if useful and share >= _EVIDENCE_SHARE * best
        }
        closest = target.owners[shares.index(best)] if best else None
        return UsefulnessResult(useful, tuple(sorted(owners)), closest, p_useful, _short(row[0]), yes_from)

    def support(self, statement: str, contexts: Sequence[Sequence[str]]) -> SupportResult:
        """Judge whether contexts, each given as its sentences, support a statement: one alone, or two together."""
        return self.with_evidence(self.support_by_words, statement, contexts)

    def with_evidence(
        self,
        judge: Callable[[str, Sequence[Sequence[str]]], SupportResult],
        statement: str,
        contexts: Sequence[Sequence[str]],
    ) -> SupportResult:
        """Return what `judge` returns for a statement, as `merilo.judges.support_evidence.with_evidence` changes it."""
        short = short_answer(statement)
        asked, said = ("", statement) if short is None else (short.asked, short.answer)
        result, found = judge(statement, contexts), self.held(f"{asked} {said}".lstrip(), contexts)
        result = with_evidence(
            result, f"{asked} {said}".lstrip(), contexts, found=found, lexicon=self.lexicon,
            judge=lambda text: judge(text, contexts),
        )  # fmt: skip
        return checked(result, said, asked, contexts, found=found, table=self.lexicon.table)

    def support_by_words(self, statement: str, contexts: Sequence[Sequence[str]]) -> SupportResult:
        """Judge the same by the fitted curve alone, without the slots of the statement."""
        short = short_answer(statement)
        if short is not None:
            return self._short(short, contexts)
        curve, query = self.curves["supported"], self.lexicon.query(statement)
        threshold = curve.thresholds["yes"]
        if not query.total:
            return SupportResult(supported=False, evidence=(), probability=0.0, coverage=0.0, yes_from=threshold)
        found = self.held(statement, contexts)
        chances = [
            curve.probability(support_features(each, self.lexicon)) if any(each.masks) else 0.0 for each in found
        ]
        best = max(chances, default=0.0)
        evidence = tuple(i for i, chance in enumerate(chances) if chance and chance >= threshold)
        if not evidence:
            evidence, together = self._joint_support(found, contexts)
            best = max(best, together)
        return SupportResult(bool(evidence), evidence, best, coverage(found), threshold)

    def short_rows(self, short: ShortAnswer, contexts: Sequence[Sequence[str]]) -> list[Answered | None]:
        """Return the evidence in each context for a short answer; None if there is none."""
        return short_rows(short, contexts, self.lexicon, lambda found: self.context_row(found)[0])

    def _short(self, short: ShortAnswer, contexts: Sequence[Sequence[str]]) -> SupportResult:
        found = self.short_rows(short, contexts)
        rows = [None if each is None else each.row for each in found]
        plain = {at for at, each in enumerate(found) if each is not None and each.is_plain}
        curve, covered = self.curves[short.task], coverage(self.held(f"{short.asked} {short.answer}", contexts))
        return short_result(
            short, curve, rows, covered, lambda at: self.relevance(short.asked, contexts[at]), plain=plain
        )

    def sufficiency(self, user_input: str, contexts: Sequence[Sequence[str]]) -> SufficiencyResult:
        """Judge whether contexts, each given as its sentences, together are enough to answer the user input."""
        sentences = [sentence for context in contexts for sentence in context]
        found = match(self.lexicon.query(user_input), sentences, drop_copies=True)
        curve = self.curves["sufficient"]
        row = self.context_row(found)[1]
        chance = curve.probability(row)
        level = curve.level(chance) if any(found.masks) else 0
        result = SufficiencyResult(level, chance, _short(row[0]), curve.thresholds["yes"])
        return result.for_time(user_input, sentences)

    def addresses(self, user_input: str, statement: str) -> AddressesResult:
        """Judge whether a statement addresses the user input; a refusal never does."""
        refuses = self.noncommittal(user_input, statement)
        row = answer_features(self.lexicon.query(user_input), words(statement), self.lexicon, refuses=refuses)
        chance = self.curves["addresses"].probability(row)
        holds = not refuses and bool(words(statement).stems) and chance >= self.curves["addresses"].thresholds["yes"]
        return AddressesResult(holds, chance)

    def noncommittal(self, user_input: str, response: str) -> bool:
        """Return True if a response declines to answer: it consists mostly of phrases of refusal."""
        del user_input
        clauses = [clause.strip() for clause in _CLAUSE_END.split(response.replace("’", "'"))]
        refusing = sum(len(clause) for clause in clauses if _refuses(clause))
        return refusing > 0 and refusing >= _REFUSING_SHARE * sum(map(len, clauses))

    def claims(self, sentence: str) -> bool:
        """Return True if a sentence makes a statement: not a question, courtesy, refusal or introduction of a list."""
        check_cancelled()
        taken, plain = words(sentence), sentence.strip().replace("’", "'")
        if not taken.stems or taken.is_question or _LEADS_IN.search(plain) or _COURTESY.fullmatch(plain):
            return False
        return not self.noncommittal("", sentence)

    def context_row(self, found: Matches) -> tuple[list[float], tuple[float, ...]]:
        """Return the log odds of each unit as evidence, and the CONTEXT_FEATURES of the whole context."""
        rows = sentence_features(found, self.lexicon)
        logits = [
            # A dropped unit (a question or an echo) can never be evidence.
            self.curves["sentence"].logit(row) if mask or not drop else -math.inf
            for row, mask, drop in zip(rows, found.masks, found.dropped, strict=True)
        ]
        kept = [(row, logit) for row, logit in zip(rows, logits, strict=True) if logit > -math.inf]
        return logits, context_features(found, [logit for _, logit in kept], [row for row, _ in kept])

    def _evidence(self, found: Matches, logits: Sequence[float]) -> tuple[int, ...]:
        """Return the sentences that reach the threshold for evidence, or the most likely one if none does.

        No sentence that shares no word with the user input is returned.
        """
        threshold, closest = self.curves["sentence"].thresholds["yes"], _closest(found, logits)
        chosen = {found.owners[at] for at in _sharing(found) if probability(logits[at]) >= threshold}
        return tuple(sorted(chosen)) if chosen or closest is None else (closest,)

    def held(self, statement: str, contexts: Sequence[Sequence[str]]) -> list[Matches]:
        """Return the matches of a statement in each context."""
        query = self.lexicon.query(statement)
        return [match(query, sentences, drop_copies=False) for sentences in contexts]

    def _joint_support(
        self, found: Sequence[Matches], contexts: Sequence[Sequence[str]]
    ) -> tuple[tuple[int, ...], float]:
        """Return the two contexts that cover most and the probability, if together they support the statement."""
        joined = joint(found, contexts)
        if joined is None:
            return (), 0.0
        places, window = joined
        row = support_features(match(found[0].query, window, drop_copies=False), self.lexicon)
        chance = self.curves["supported"].probability(row)
        return (places, chance) if chance >= self.curves["supported"].thresholds["yes"] else ((), 0.0)


def _sharing(found: Matches) -> list[int]:
    """Return the units that share a word with the query."""
    return [place for place, mask in enumerate(found.prefix_masks) if mask]


def _closest(found: Matches, logits: Sequence[float]) -> int | None:
    """Return the sentence most likely to be evidence among those that share a word; None if there is none."""
    best = max(_sharing(found), key=lambda place: (logits[place], -place), default=None)
    return None if best is None else found.owners[best]


def short_result(
    short: ShortAnswer,
    curve: Curve,
    rows: Sequence[Sequence[float] | None],
    covered: float,
    relevance: Callable[[int], RelevanceResult],
    *,
    plain: Collection[int],
) -> SupportResult:
    """Judge whether a short answer is supported, from each context's row (None: no evidence in this context).

    A context that does not help to answer the question supports no answer: the probability is at most that of
    relevance, scaled so that the thresholds of both are equal. `plain`: contexts that state the answer plainly, see
    `Answered.is_plain`.
    """
    yes_from = curve.thresholds["yes"]

    def at_most(context: int) -> float:
        found = relevance(context)
        return min(1.0, round(found.probability / found.yes_from * yes_from, DIGITS))

    chances = [0.0 if row is None else min(curve.probability(row), at_most(at)) for at, row in enumerate(rows)]
    # Above the threshold, in the order of their probabilities.
    chances = [round(yes_from + (1 - yes_from) * p, DIGITS) if at in plain else p for at, p in enumerate(chances)]
    evidence = tuple(place for place, chance in enumerate(chances) if chance >= yes_from)
    return SupportResult(bool(evidence), evidence, max(chances, default=0.0), covered, yes_from, short.task)


def coverage(found: Sequence[Matches]) -> float:
    """Return the largest fraction of a statement within a few sentences of one context, in [0, 1]."""
    return _short(max((window_share(each, _WINDOW) for each in found), default=0.0))


def joint(found: Sequence[Matches], contexts: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], list[str]] | None:
    """Return the two contexts that contain most of a statement, with their sentences about it; `found`: from `held`.

    None if the better context alone contains nearly as much.
    """
    covering = sorted((-window_share(each, _WINDOW), index) for index, each in enumerate(found) if any(each.masks))
    if len(covering) < _JOINED:
        return None
    top = covering[:_JOINED]
    window = [text for _, index in top for text in _best_sentences(found[index], contexts[index])]
    together = match(found[0].query, window, drop_copies=False)
    # `top[0][0]` is negative, minus the share of the better context: the difference is the gain of the second one.
    if together.share(union(together.masks)) + top[0][0] < _JOIN_GAIN:
        return None
    return tuple(sorted(index for _, index in top)), window


def _refuses(clause: str) -> bool:
    return not clause.lower().startswith(CONCESSIONS) and _REFUSAL.search(clause) is not None


def _best_sentences(found: Matches, sentences: Sequence[str]) -> list[str]:
    start, size = best_window(found, _WINDOW)
    return [sentences[owner] for owner in dict.fromkeys(found.owners[start : start + size])]


def probability(logit: float) -> float:
    """Return the logistic function of log odds, rounded to 6 digits."""
    # exp() would overflow for large negative log odds; the result is 0 to all digits anyway.
    if logit < -40.0:
        return 0.0
    return round(1.0 / (1.0 + math.exp(-min(logit, 40.0))), DIGITS)


def _short(value: float) -> float:
    return round(value, DIGITS)


@lru_cache(maxsize=1)
def _packaged() -> LexicalModel:
    return LexicalModel.of(model_file(MODEL_FILE))
