"""The model of the embedded judge behind a provider: questions in batches, verdicts without a request to anybody.

A batch is what a round of many samples asks. Equal questions are judged once, short ones first, several side by side:
one for each processor. No verdict knows of its neighbours.
"""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.cancellation import cancelled_by, cancelling_event, check_cancelled
from merilo.data.prose import unnumbered
from merilo.data.sentences import sentences
from merilo.data.short_answers import affirms, is_yes_or_no, stated, taken_apart
from merilo.errors import Permanent
from merilo.judges.blended import BlendedModel
from merilo.judges.english import is_english
from merilo.judges.excerpts import excerpts
from merilo.judges.ngrams import likeness, ngram_vector
from merilo.judging.questions import (
    Addresses,
    Embeddings,
    Noncommittal,
    Question,
    Relevance,
    Similarities,
    Statements,
    Sufficiency,
    Support,
    Usefulness,
)
from merilo.judging.verdicts import (
    AddressesVerdict,
    Failure,
    FailureKind,
    MatrixVerdict,
    NoncommittalVerdict,
    RelevanceVerdict,
    Statement,
    StatementsVerdict,
    SufficiencyLabel,
    SufficiencyVerdict,
    SupportLabel,
    SupportVerdict,
    UsefulnessVerdict,
    Verdict,
)
from merilo.providers.base import Reply, ReplyPath, Usage
from merilo.providers.batches import gathered
from merilo.providers.questions import QuestionRequest, answer_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from threading import Event

    from merilo.errors import ProviderError
    from merilo.judges.excerpts import Excerpt
    from merilo.providers.base import Connection, Request

_log = logging.getLogger("merilo")

_LEVELS: Final = (SufficiencyLabel.INSUFFICIENT, SufficiencyLabel.PARTLY, SufficiencyLabel.SUFFICIENT)
_FREE: Final = Usage(0, 0, 0)
_MOST_THREADS: Final = 8
MAX_CONTEXT: Final = 1_000_000
"""Characters of all contexts of one question."""
MAX_CONTEXTS: Final = 1_000
MAX_RESPONSE: Final = 100_000
"""Characters of a response to take statements from, and of the texts of one side that vectors are made of."""
MAX_ASKED: Final = 20_000
"""Characters of a question, a statement or a reference."""
_ADVICE: Final = "Shorten the text, or use an LLM judge."
_LONG: Final = 50_000
"""Characters of a question from which on it is answered alone."""
_POLL_S: Final = 0.1
_long_turn: Final = Lock()
_WHY_SHORT: Final = {
    "answered": "A short answer, judged by whether it stands where the question is answered; ",
    "yes_or_no": "A bare yes or no, judged by how much is said of the question and whether it is denied; ",
}


@dataclass(frozen=True)
class EmbeddedProvider:
    """Answers the kinds of question in `RULES`; free, and on this machine."""

    drops_at_limit: ClassVar[bool] = True
    """A limit of the run does not wait for its replies: nothing was paid for them."""

    def fingerprint(self) -> Mapping[str, object]:
        """Its name: what decides a verdict stands in the judge's own."""
        return {"provider": "embedded"}

    def connect(self, *, known: Mapping[str, str] | None = None) -> AbstractAsyncContextManager[Connection]:
        """A connection for runs that ask others too; nothing is opened, and nothing can be known."""
        del known
        return gathered(self)

    def price_usd(self, usage: Usage) -> float | None:
        """Free."""
        del usage
        return 0.0

    def send_batch(self, requests: Sequence[Request]) -> Generator[tuple[int, Reply | ProviderError], None, None]:
        """See `BatchProvider`; Permanent for what is no question of a kind that it answers."""
        model = BlendedModel.load()
        places: dict[Question[Any], list[int]] = {}
        for place, request in enumerate(requests):
            question = request.question if isinstance(request, QuestionRequest) else None
            if type(question) in RULES and question is not None:
                places.setdefault(question, []).append(place)
            else:
                yield place, Permanent("The embedded judge answers questions of its own kinds only.")
        ordered = sorted(places, key=_length)
        pool = ThreadPoolExecutor(_threads(), "embedded")
        try:
            answered = pool.map(partial(_answered_in_turn, model, cancelling_event()), ordered)
            for question, text in zip(ordered, answered, strict=True):
                reply = Reply((text,), usage=_FREE, path=ReplyPath.LOCAL)
                for place in places[question]:
                    yield place, reply
        finally:
            pool.shutdown(cancel_futures=True)  # ends early if the caller takes no more replies


def _threads() -> int:
    """One for each processor that this process may use: the encoder computes outside of Python's lock."""
    usable = getattr(os, "sched_getaffinity", None)
    return min(_MOST_THREADS, len(usable(0)) if usable else os.cpu_count() or 1)


def _length(question: Question[Any]) -> int:
    """Characters in all its texts."""
    return sum(map(len, question.all_texts))


def _answered_in_turn(model: BlendedModel, event: Event | None, question: Question[Any]) -> str:
    """Answer a question until the event is set; long ones one at a time, since each may take much memory."""
    with cancelled_by(event):
        if _length(question) <= _LONG:
            return _answered(model, question)
        while not _long_turn.acquire(timeout=_POLL_S):
            check_cancelled()
        try:
            return _answered(model, question)
        finally:
            _long_turn.release()


def _answered(model: BlendedModel, question: Question[Any]) -> str:
    excess = too_long(question)
    if excess is not None:
        return answer_text(Failure(FailureKind.PERMANENT, excess))
    try:
        verdict = RULES[type(question)](model, question)
    except Exception as error:  # noqa: BLE001  a bug in how a text is read is the failure of one question
        _log.exception("the embedded judge broke")
        told = f"the judge embedded raised {type(error).__name__}: {error}"
        return answer_text(Failure(FailureKind.BROKEN, told))
    try:
        return answer_text(verdict)
    except ValueError:
        told = "the verdict holds half a character, which cannot be kept"
        return answer_text(Failure(FailureKind.BROKEN, told))


def too_long(question: Question[Any]) -> str | None:
    """Return why a question is too long to be answered, as a sentence; None if it is not."""
    limits = _LIMITS[type(question)]
    for name, most in limits.items():
        value: str | tuple[str, ...] = getattr(question, name)
        length = len(value) if isinstance(value, str) else sum(map(len, value))
        called = name.replace("_", " ")
        if length > most:
            verb = "has" if isinstance(value, str) else "have"
            return f"The {called} {verb} {length:,} characters; the embedded judge reads at most {most:,}. {_ADVICE}"
        if name == "contexts" and len(value) > MAX_CONTEXTS:
            return f"There are {len(value):,} contexts; the embedded judge reads at most {MAX_CONTEXTS:,}. {_ADVICE}"
    return None


def _relevance(model: BlendedModel, question: Relevance) -> RelevanceVerdict:
    (excerpt,) = excerpts(model, (question.user_input,), [question.sentences])
    found = excerpt.placed(model.relevance(question.user_input, excerpt.sentences))
    reason = f"{_percent(found.coverage)} of the user input, by the weight of its words, stands in the context; "
    reason += _cut(found.yes_from, excerpt)
    return RelevanceVerdict(found.grade, found.evidence, reason, found.probability)


def _usefulness(model: BlendedModel, question: Usefulness) -> UsefulnessVerdict:
    (excerpt,) = excerpts(model, (question.reference, question.user_input), [question.sentences])
    found = excerpt.placed(model.usefulness(question.user_input, question.reference, excerpt.sentences))
    reason = f"{_percent(found.coverage)} of the reference, by the weight of its words, stands in the context; "
    reason += _cut(found.yes_from, excerpt)
    return UsefulnessVerdict(found.useful, found.evidence, reason, found.probability)


def _statements(model: BlendedModel, question: Statements) -> StatementsVerdict:
    """One statement for each sentence that claims something: questions, courtesies and refusals do not.

    A yes or no does where nothing is said besides. Where all is too short to be read alone, each stands behind what it
    answers.
    """
    said = enumerate(unnumbered(question.sentences, question.language))
    claims = [Statement(text, index) for index, text in said if model.claims(text)]
    found = [each for each in claims if not is_yes_or_no(each.text)] or claims
    behind = [stated(each.text, question.user_input, question.language) for each in found]
    if all(behind):  # nothing in the text is a sentence
        found = [Statement(text or "", each.sentence) for text, each in zip(behind, found, strict=True)]
    return StatementsVerdict(tuple(found))


def _support(model: BlendedModel, question: Support) -> SupportVerdict:
    statement, texts = _compared(question)
    read = excerpts(model, (statement,), [sentences(text) for text in texts])
    found = model.support(statement, [each.sentences for each in read])
    label = SupportLabel.SUPPORTED if found.supported else SupportLabel.UNSUPPORTED
    reason = _WHY_SHORT.get(found.decided_by)
    if reason is None:
        reason = f"{_percent(found.coverage)} of the statement, by the weight of its words, stands in one place; "
    reason += _cut(found.yes_from, *read)
    return SupportVerdict(label, found.evidence, reason, found.probability, tells_contradicted=False)


def _compared(question: Support) -> tuple[str, tuple[str, ...]]:
    """A statement and what it is held against; two short answers to one question without it, since it tells nothing."""
    mine, texts = taken_apart(question.statement), question.contexts
    other = taken_apart(texts[0]) if len(texts) == 1 else None
    if mine is None or other is None or mine[0] != other[0]:
        return question.statement, texts
    return _plain(mine[1]), (_plain(other[1]),)


def _plain(answer: str) -> str:
    """A short answer, a yes or a no as that word alone."""
    yes = affirms(answer)
    return answer if yes is None else "Yes." if yes else "No."


def _sufficiency(model: BlendedModel, question: Sufficiency) -> SufficiencyVerdict:
    read = excerpts(model, (question.user_input,), [sentences(context) for context in question.contexts])
    found = model.sufficiency(question.user_input, [each.sentences for each in read])
    reason = f"{_percent(found.coverage)} of the user input, by the weight of its words, stands in the contexts; "
    reason += _cut(found.yes_from, *read)
    return SufficiencyVerdict(_LEVELS[found.level], reason=reason, probability=found.probability)


def _addresses(model: BlendedModel, question: Addresses) -> AddressesVerdict:
    found = model.addresses(question.user_input, question.statement)
    return AddressesVerdict(found.addresses, probability=found.probability)


def _noncommittal(model: BlendedModel, question: Noncommittal) -> NoncommittalVerdict:
    declines = model.noncommittal(question.user_input, question.response)
    return NoncommittalVerdict(declines, reason="It holds a phrase of refusal and little else." if declines else "")


def _embeddings(model: BlendedModel, question: Embeddings) -> MatrixVerdict:
    """The encoder's vectors where all texts are English, else those of n-grams, zeros for a text without a word."""
    if not is_english(*question.texts):
        return MatrixVerdict.of([ngram_vector(text) for text in question.texts])
    return MatrixVerdict.of(model.embedder.vectors(question.texts).tolist())


def _similarities(model: BlendedModel, question: Similarities) -> MatrixVerdict:
    """The cosine of the same vectors, 0 where it is negative."""
    left, right = question.left, question.right
    if not left:
        return MatrixVerdict(0, len(right), b"")
    if is_english(*left, *right):
        return MatrixVerdict.of(model.embedder.similarities(left, right).clip(0, 1).tolist())
    vectors = [ngram_vector(text) for text in right]
    return MatrixVerdict.of([[likeness(one, other) for other in vectors] for one in map(ngram_vector, left)])


RULES: Final[Mapping[type[Question[Any]], Callable[[BlendedModel, Any], Verdict]]] = {
    Relevance: _relevance,
    Usefulness: _usefulness,
    Statements: _statements,
    Support: _support,
    Sufficiency: _sufficiency,
    Addresses: _addresses,
    Noncommittal: _noncommittal,
    Embeddings: _embeddings,
    Similarities: _similarities,
}
"""How each kind of question is answered."""


_LIMITS: Final[Mapping[type[Question[Any]], Mapping[str, int]]] = {
    Relevance: {"user_input": MAX_ASKED, "sentences": MAX_CONTEXT},
    Usefulness: {"user_input": MAX_ASKED, "reference": MAX_ASKED, "sentences": MAX_CONTEXT},
    Statements: {"user_input": MAX_ASKED, "sentences": MAX_RESPONSE},
    Support: {"statement": MAX_ASKED, "contexts": MAX_CONTEXT},
    Sufficiency: {"user_input": MAX_ASKED, "contexts": MAX_CONTEXT},
    Addresses: {"user_input": MAX_ASKED, "statement": MAX_ASKED},
    Noncommittal: {"user_input": MAX_ASKED, "response": MAX_RESPONSE},
    Embeddings: {"texts": MAX_RESPONSE},
    Similarities: {"left": MAX_RESPONSE, "right": MAX_RESPONSE},
}
"""The most characters of each field of a question."""


def _cut(yes_from: float, *read: Excerpt) -> str:
    """Return the threshold, which was fitted and is not one half, and whether passages of long contexts were read."""
    partly = " Of long contexts, the passages that share most words with it were read."
    return f"yes from p = {yes_from:.2f}.{partly if any(each.places is not None for each in read) else ''}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
