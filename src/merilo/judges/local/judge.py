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
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.data.config_files import MAX_BYTES
from merilo.data.language import OTHER_SCRIPTS, identify_language
from merilo.data.sentences import SPLITTER_ID
from merilo.errors import ProviderDown, UsageError
from merilo.judges.base import JudgeDefaults, OutgoingRequest
from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.embedded_provider import EmbeddedProvider
from merilo.judges.english_detection import is_english, split_english
from merilo.judges.in_process import FreeProvider, answer_batch, thread_count
from merilo.judges.local.answers import ANSWERS, RULES_VERSION
from merilo.judges.local.card import builtin_cards
from merilo.judges.local.find import digests, external_files, find_model
from merilo.judges.local.model import MISSING, ForgedToken, ModelSession, PairTokens, free_memory, memory_problem
from merilo.judges.local.scores import InvalidLogits, PairScorer, TooLong, golden_check
from merilo.judging.json_types import as_object
from merilo.judging.kinds.noncommittal import Noncommittal
from merilo.judging.kinds.statements import Statements
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.questions import QuestionRequest, answer_of, answer_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from merilo.errors import ProviderError
    from merilo.judges.base import Conversation
    from merilo.judges.local.card import Card
    from merilo.judges.local.find import FoundModel
    from merilo.judges.local.scores import GoldenCheck
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
        if card.non_commercial:
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
        languages = self.languages
        if not languages:
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
        providers = [self._provider(type(each)) for each in questions]
        sends = tuple(
            OutgoingRequest(provider, QuestionRequest((), question=each))
            for each, provider in zip(questions, providers, strict=True)
            if provider is not None
        )
        replies = iter((yield sends) if sends else ())
        return tuple(
            self._unknown(each) if provider is None else answer_of(each, next(replies))
            for each, provider in zip(questions, providers, strict=True)
        )

    def _provider(self, kind: type[Question[Any]]) -> Provider | None:
        return self.provider if kind in self.model_kinds else _EMBEDDED if kind in _BY_RULES else None

    def _unknown(self, question: Question[Any]) -> Failure:
        message = f"{self.name} cannot answer questions of kind {question.kind!r}; use an LLM judge."
        return Failure(FailureKind.PERMANENT, message)

    def golden_check(self) -> GoldenCheck | None:
        """Return how the model's logits for the golden pairs of its card differ; None without such pairs.

        Raises UsageError if the model cannot be loaded.
        """
        return golden_check(self.provider.scorer()) if self.card.golden else None


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

    def answer_one(self, question: Question[Any]) -> str:
        """Return the answer to one question as a reply's text, in this thread."""
        return _answered(self.scorer(), question)

    def send_batch(self, requests: Sequence[Request]) -> Generator[tuple[int, Reply | ProviderError], None, None]:
        """Answer requests as `BatchProvider` describes; Permanent for a question of another kind."""
        try:
            scorer = self.scorer()
        except UsageError as error:
            raise ProviderDown(str(error)) from error
        return answer_batch(requests, partial(_answered, scorer), kinds=self.found.card.answers.given, judge="local")


def _load(found: FoundModel) -> PairScorer:
    digests(found)
    files = (found.model, *external_files(found.model))
    problem = memory_problem(files, thread_count(), free_memory())
    if problem is not None:
        raise UsageError(problem)
    card = found.card
    session = ModelSession(found.model, len(card.output.labels))
    scorer = PairScorer(card, PairTokens(found.tokenizer, card.input), session.logits)
    scorer.logits(dict.fromkeys(card.input.slots, "a"))  # reports a wrong number of labels before the first question
    return scorer


def _answered(scorer: PairScorer, question: Question[Any]) -> str:
    return answer_text(_answer(scorer, question))


def _answer(scorer: PairScorer, question: Question[Any]) -> Any:  # Any: a verdict or a failure
    try:
        return ANSWERS[type(question)](scorer.of(question.kind), question)
    except TooLong as error:
        return Failure(FailureKind.PERMANENT, f"{error} Shorten the text, or use another judge.")
    except ForgedToken:
        message = "A text contains a special token of the model that cannot be removed. Use another judge."
        return Failure(FailureKind.PERMANENT, message)
    except UsageError as error:  # the model cannot run an input of this length
        return Failure(FailureKind.PERMANENT, str(error))
    except InvalidLogits:
        return Failure(FailureKind.BROKEN, "the local model returned a number that is not finite")
    except Exception as error:  # noqa: BLE001  a bug in how a text is read is the failure of one question
        _log.exception("a local judge raised an exception")
        return Failure(FailureKind.BROKEN, f"the local judge raised {type(error).__name__}: {error}")


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
                kind.provider.answer_one(question)
            spent = now() - began
            read = sum(len(text) for question in kind.first for text in question.all_texts)
            total += spent * kind.characters * scale / max(read, 1) / min(thread_count(), max(kind.count, 1))
            measured += len(kind.first)
        return LocalTime(total, measured) if total >= SHORTEST_S else None
