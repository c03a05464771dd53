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
from typing import TYPE_CHECKING, Any, Final

from merilo.data.prose import unnumbered
from merilo.data.sentences import sentences
from merilo.data.short_answers import affirms, is_yes_or_no, stated, taken_apart
from merilo.errors import Permanent
from merilo.judges.blended import BlendedModel
from merilo.judges.english import is_english
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

    from merilo.errors import ProviderError
    from merilo.providers.base import Connection, Request

_log = logging.getLogger("merilo")

_LEVELS: Final = (SufficiencyLabel.INSUFFICIENT, SufficiencyLabel.PARTLY, SufficiencyLabel.SUFFICIENT)
_FREE: Final = Usage(0, 0, 0)
_MOST_THREADS: Final = 8
_WHY_SHORT: Final = {
    "answered": "A short answer, judged by whether it stands where the question is answered; ",
    "yes_or_no": "A bare yes or no, judged by how much is said of the question and whether it is denied; ",
}


@dataclass(frozen=True)
class EmbeddedProvider:
    """Answers the kinds of question in `RULES`; free, and on this machine."""

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
            for question, text in zip(ordered, pool.map(partial(_answered, model), ordered), strict=True):
                reply = Reply((text,), usage=_FREE, path=ReplyPath.LOCAL)
                for place in places[question]:
                    yield place, reply
        finally:
            pool.shutdown(cancel_futures=True)  # ends early where whoever asks has stopped


def _threads() -> int:
    """One for each processor that this process may use: the encoder computes outside of Python's lock."""
    usable = getattr(os, "sched_getaffinity", None)
    return min(_MOST_THREADS, len(usable(0)) if usable else os.cpu_count() or 1)


def _length(question: Question[Any]) -> int:
    """Characters in all its texts."""
    return sum(map(len, question.all_texts))


def _answered(model: BlendedModel, question: Question[Any]) -> str:
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


def _relevance(model: BlendedModel, question: Relevance) -> RelevanceVerdict:
    found = model.relevance(question.user_input, question.sentences)
    reason = f"{_percent(found.coverage)} of the user input, by the weight of its words, stands in the context; "
    reason += _cut(found.yes_from)
    return RelevanceVerdict(found.grade, found.evidence, reason, found.probability)


def _usefulness(model: BlendedModel, question: Usefulness) -> UsefulnessVerdict:
    found = model.usefulness(question.user_input, question.reference, question.sentences)
    reason = f"{_percent(found.coverage)} of the reference, by the weight of its words, stands in the context; "
    reason += _cut(found.yes_from)
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
    found = model.support(statement, [sentences(text) for text in texts])
    label = SupportLabel.SUPPORTED if found.supported else SupportLabel.UNSUPPORTED
    reason = _WHY_SHORT.get(found.decided_by)
    if reason is None:
        reason = f"{_percent(found.coverage)} of the statement, by the weight of its words, stands in one place; "
    reason += _cut(found.yes_from)
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
    found = model.sufficiency(question.user_input, [sentences(context) for context in question.contexts])
    reason = f"{_percent(found.coverage)} of the user input, by the weight of its words, stands in the contexts; "
    reason += _cut(found.yes_from)
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


def _cut(yes_from: float) -> str:
    """From which probability on the answer is yes: the cut was fitted, and is not one half."""
    return f"yes from p = {yes_from:.2f}."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
