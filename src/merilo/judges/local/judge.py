"""`local:MODEL`: a model file on this machine as a judge, described by its card.

It answers the kinds of question of its card. A response is divided into statements, and recognised as noncommittal,
by the rules of the embedded judge, because no classifier does that.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from merilo.data.config_files import MAX_BYTES
from merilo.data.language import OTHER_SCRIPTS, identify_language
from merilo.data.sentences import SPLITTER_ID, sentences
from merilo.errors import ProviderDown, ProviderError, UsageError
from merilo.judges.base import Conversation, JudgeDefaults, OutgoingRequest
from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.embedded_provider import EmbeddedProvider
from merilo.judges.local.card import Card, builtin_cards, forbids_commercial_use
from merilo.judges.local.find import FoundModel, digests, find_model
from merilo.judges.local.model import MISSING, ModelSession, PairScore, PairScorer, PairTokens, Unscored
from merilo.judges.words import is_english, split_english
from merilo.judging.json_types import as_object
from merilo.judging.kinds.contexts import (
    Relevance,
    RelevanceVerdict,
    Sufficiency,
    SufficiencyLabel,
    SufficiencyVerdict,
    Support,
    SupportLabel,
    SupportVerdict,
    Usefulness,
    UsefulnessVerdict,
)
from merilo.judging.kinds.measured import MatrixVerdict, Similarities
from merilo.judging.kinds.responses import Addresses, AddressesVerdict, Noncommittal, Statements
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.providers.questions import FreeProvider, QuestionRequest, answer_batch, answer_of, answer_text, thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from merilo.judges.local.model import KindScorer, Window
    from merilo.providers.base import Provider, Reply, Request


AGREEMENT_NAME: Final = "agreement.json"
"""File name of the agreement with human labels, next to `judge.lock` or in the folder of the model."""
_EMBEDDED: Final = EmbeddedProvider()
_BY_RULES: Final[frozenset[type[Question[Any]]]] = frozenset({Statements, Noncommittal})
"""Kinds that the rules of the embedded judge answer."""
_WEAK: Final = {"sufficiency": "context_sufficiency", "addresses": "answer_relevancy"}
"""Metrics whose questions such models are not trained for, by kind."""
_MAX_BEGINNING: Final = 20_000
"""Characters of a text that are read to detect its language."""
_SHOWN_DIGITS: Final = 12
UNPROVED: Final = "its card was written from the named sources and never run on the weights by merilo"


@dataclass(frozen=True, eq=False)
class LocalJudge(JudgeDefaults):
    """A model on this machine. Equal questions always get equal verdicts, whatever other questions are asked."""

    deterministic = True
    supports_batches = True
    """One call takes the questions of many samples."""

    provider: LocalProvider

    @property
    def card(self) -> Card:
        """The card of the model."""
        return self.provider.found.card

    @property
    def name(self) -> str:
        """`local:` and the name of the card."""
        return f"local:{self.card.name}"

    @property
    def answers(self) -> frozenset[type[Question[Any]]]:
        """The kinds of the card, and those that rules answer."""
        return self.model_kinds | _BY_RULES

    @property
    def model_kinds(self) -> frozenset[type[Question[Any]]]:
        """The kinds that the model answers."""
        return frozenset(kind for kind in ANSWERS if kind.kind in self.card.answers.given)

    @property
    def agreement_note(self) -> str | None:
        """The digest of the model, its agreement with human labels if it was checked, and what is not known."""
        card = self.card
        digest = next(iter(digests(self.provider.found).values()))
        checked = read_agreement(self.provider.found.home, self.fingerprint())
        notes = [f"model {digest[:_SHOWN_DIGITS]}", checked or "not checked against human labels"]
        if not card.calibration:
            notes.append("its scores are not calibrated")
        if not card.proved and builtin_cards().get(card.name) == card:
            notes.append(UNPROVED)
        if forbids_commercial_use(card.licence):
            notes.append(f"licence {card.licence}: NO COMMERCIAL USE")
        return "; ".join(notes)

    @property
    def weak_metrics(self) -> frozenset[str]:
        """Metrics whose questions are derived from scores that mean something else."""
        return frozenset(metric for kind, metric in _WEAK.items() if kind in self.card.answers.given)

    @property
    def languages(self) -> frozenset[str]:
        """Those of the card; empty for a model of many languages."""
        listed = frozenset(self.card.languages)
        return frozenset() if "multi" in listed else listed

    def supports_language(self, texts: Sequence[str]) -> bool:
        """Return True if the card lists the language of these texts, as far as it can be detected."""
        if not (languages := self.languages):
            return True
        first, *others = [text[:_MAX_BEGINNING] for text in texts]
        detected = identify_language("\n".join((first, *others)))
        if detected != "en":
            return detected in languages
        english = any(split_english(first, others)) if others else is_english(first)
        # Not English, but too short or too mixed to be identified: any language in Latin script.
        return "en" in languages if english else bool(languages - OTHER_SCRIPTS - {"en"})

    def fingerprint(self) -> Mapping[str, object]:
        """Return the digests of the card and all files, and the versions of the software that affect a verdict.

        Raises UsageError if a file is missing or was changed.
        """
        return {
            "judge": "local",
            "card": self.card.digest,
            "files": sorted(digests(self.provider.found).values()),
            "onnxruntime": ".".join(version("onnxruntime").split(".")[:2]),
            "tokenizers": ".".join(version("tokenizers").split(".")[:2]),
            "device": "CPUExecutionProvider",
            "rules": RULES_VERSION,
            "splitter": SPLITTER_ID,
            "statements": EmbeddedJudge().fingerprint(),
        }

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Return one answer per question, with one request to the model or the rules for each."""
        questions = question.questions if isinstance(question, Pack) else (question,)
        providers: list[Provider] = [_EMBEDDED if type(each) in _BY_RULES else self.provider for each in questions]
        asked = (QuestionRequest((), question=each) for each in questions)
        replies = yield tuple(map(OutgoingRequest, providers, asked))
        return tuple(map(answer_of, questions, replies))


def local_judge(text: str) -> LocalJudge:
    """Return the judge for `local:MODEL`. Raises UsageError if the model or the package tokenizers is missing."""
    if find_spec("tokenizers") is None:
        raise UsageError(f"{MISSING[0].upper()}{MISSING[1:]}.")
    return LocalJudge(LocalProvider(find_model(text)))


_log = logging.getLogger("merilo")


# -- the agreement with human labels ------------------------------------------------------------------


def read_agreement(folder: Path, fingerprint: Mapping[str, object]) -> str | None:
    """Return the agreement of exactly this judge with human labels, as `merilo judge check` stored it.

    None if there is none, or if it is unreadable or of other files, another card or other versions.
    """
    path = folder / AGREEMENT_NAME
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        found = as_object(json.loads(path.read_bytes())) or {}
    except (OSError, ValueError, RecursionError):
        return None
    judge, note = as_object(found.get("judge")) or {}, found.get("note")
    same = judge.get("fingerprint") == json.loads(json.dumps(dict(fingerprint)))
    return note if same and isinstance(note, str) else None


# -- the model as a provider --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LocalProvider(FreeProvider):
    """A free provider for the kinds of question that the card of a model answers, in batches and on this machine.

    Equal questions are answered once, short ones first, so that memory grows late. Each processor runs one pair at a
    time, and a verdict never depends on the other questions in the batch.
    """

    provider: ClassVar[str] = "local"

    found: FoundModel
    _lock: Lock = field(default_factory=Lock, repr=False)
    _loaded: list[PairScorer] = field(default_factory=list[PairScorer], repr=False)

    def scorer(self) -> PairScorer:
        """Return the loaded model; it is loaded once. Raises UsageError if it is damaged or needs too much memory."""
        with self._lock:  # several threads may ask at once
            if not self._loaded:
                self._loaded.append(_load(self.found))
            return self._loaded[0]

    def send_batch(self, requests: Sequence[Request]) -> Generator[tuple[int, Reply | ProviderError], None, None]:
        """Answer requests as `BatchProvider` describes; Permanent for a question of another kind."""
        try:
            scorer = self.scorer()
        except UsageError as error:
            raise ProviderDown(str(error)) from error
        return answer_batch(requests, partial(answered, scorer), kinds=self.found.card.answers.given, judge="local")


def _load(found: FoundModel) -> PairScorer:
    digests(found)
    card = found.card
    session = ModelSession(found.model, len(card.output.labels))
    scorer = PairScorer(card, PairTokens(found.tokenizer, card.input), session.logits)
    scorer.logits(dict.fromkeys(card.input.slots, "a"))  # reports a wrong number of labels before the first question
    return scorer


def answered(scorer: PairScorer, question: Question[Any]) -> str:
    """Return the answer to one question as a reply's text; one that cannot be read is a failure."""
    try:
        return answer_text(ANSWERS[type(question)](scorer.of(question.kind), question))
    except Unscored as error:
        failure = error.failure
    except UsageError as error:  # the model cannot run an input of this length
        failure = Failure(FailureKind.PERMANENT, str(error))
    except Exception as error:  # noqa: BLE001  a bug in how a text is read is the failure of one question
        _log.exception("a local judge raised an exception")
        failure = Failure(FailureKind.BROKEN, f"the local judge raised {type(error).__name__}: {error}")
    return answer_text(failure)


# -- time for some questions --------------------------------------------------------------------------

SHORTEST_S: Final = 60.0
"""Shorter times are not reported."""
_MEASURED: Final = 2
"""Number of questions that are answered for each model and kind. Their pairs stay known, so no work is lost."""


@dataclass(slots=True)
class _Questions:
    """The questions of one kind to one model."""

    provider: LocalProvider
    characters: int = 0
    count: int = 0
    first: list[Question[Any]] = field(default_factory=list["Question[Any]"])


@dataclass(frozen=True, slots=True)
class LocalTime:
    """An estimate of the time that local models take on this machine."""

    seconds: float
    questions: int
    """Number of questions it was measured on."""


@dataclass(slots=True)
class LocalWork:
    """Counts questions to local models."""

    _by_kind: dict[tuple[int, str], _Questions] = field(default_factory=dict[tuple[int, str], _Questions])

    def add(self, send: OutgoingRequest) -> None:
        """Count a request, if it is for a local model."""
        if not isinstance(send.provider, LocalProvider) or not isinstance(send.request, QuestionRequest):
            return
        question = send.request.question
        if question is None:
            return
        kind = self._by_kind.setdefault((id(send.provider), question.kind), _Questions(send.provider))
        kind.characters += sum(map(len, question.all_texts))
        kind.count += 1
        if len(kind.first) < _MEASURED:
            kind.first.append(question)

    def time(self, scale: float = 1.0, clock: Callable[[], float] | None = None) -> LocalTime | None:
        """Return the time for all questions, `scale` times as many; None if it is below `SHORTEST_S`.

        Time is proportional to the characters of a kind. Loads the models; None if one cannot be loaded, which a run
        reports as an error.
        """
        now = perf_counter if clock is None else clock
        total, measured = 0.0, 0
        for kind in self._by_kind.values():
            try:
                kind.provider.scorer()
            except UsageError:
                return None
            began = now()
            for question in kind.first:
                answered(kind.provider.scorer(), question)
            spent = now() - began
            read = sum(len(text) for question in kind.first for text in question.all_texts)
            total += spent * kind.characters * scale / max(read, 1) / min(thread_count(), max(kind.count, 1))
            measured += len(kind.first)
        return LocalTime(total, measured) if total >= SHORTEST_S else None


# -- answers -------------------------------------------------------------------------------------------
# From scores of pairs to verdicts: one function for each kind of question. A context is read in windows of whole
# sentences. The best window decides, and names the evidence.

RULES_VERSION: Final = "local-2"
"""Version of the rules in this folder, in the fingerprint of every local judge."""
_CONTRADICTED: Final = 0.5
_EVIDENCE_WINDOW: Final = 2
"""Sentences that are read together for evidence; the last one is scored."""
_EVIDENCE_WITHIN: Final = 0.15
"""Sentences are named whose score is at most this much below the best one."""
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
    p, place = (readings[0].score.probability, readings[0].place) if readings else (0.0, "")
    evidence = {each.context for each in readings if each.score.probability >= cut}
    both = None if evidence or len(readings) < 2 else _joined(scorer, readings[:2], statement=question.statement)
    if both is not None:
        p = max(p, both.probability)
        if both.probability >= cut:
            two = sorted(readings[:2], key=lambda each: each.context)
            evidence, place = {each.context for each in two}, f"{' and '.join(each.place for each in two)} together"
    label, tells = SupportLabel.SUPPORTED, scorer.scorer.card.output.contradiction is not None
    if not evidence:
        label = SupportLabel.NOT_STATED if tells else SupportLabel.UNSUPPORTED
        evidence = {each.context for each in readings if tells and each.contradiction >= _CONTRADICTED}
        label = SupportLabel.CONTRADICTED if evidence else label
    return SupportVerdict(label, tuple(sorted(evidence)), _reason(p, place, cut), p, tells_contradicted=tells)


def relevance(scorer: KindScorer, question: Relevance) -> RelevanceVerdict:
    """Return the grade of one context, and its evidence sentences."""
    cuts: tuple[float, float] = scorer.answer.cuts
    found = _read(scorer, question.sentences, 0, user_input=question.user_input)
    if found is None:
        return RelevanceVerdict(0, (), _reason(0.0, "", *cuts), 0.0)
    p = found.score.probability
    grade = _grade(found.score, cuts)
    reason = _reason(p, _sentences(found), *cuts)
    evidence = _evidence(scorer, question.sentences, user_input=question.user_input) if grade else ()
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
    evidence = _evidence(scorer, question.sentences, reference=text) if p >= cut else ()
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


def _evidence(scorer: KindScorer, texts: Sequence[str], **other: str) -> tuple[int, ...]:
    """Return the sentences that score best, each read with those before it."""
    places = [place for place, text in enumerate(texts) if text.strip()]
    if len(places) == 1:
        return tuple(places)
    scores: dict[int, float] = {}
    for at, place in enumerate(places):
        before = places[max(0, at + 1 - _EVIDENCE_WINDOW) : at + 1]
        found = _read(scorer, [texts[each] for each in before], 0, **other)
        scores[place] = found.score.probability if found is not None else 0.0
    least = max(scores.values()) - _EVIDENCE_WITHIN
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
