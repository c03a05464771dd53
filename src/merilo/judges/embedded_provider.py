"""The embedded judge's model as a provider: it answers questions in batches, on this machine.

A batch contains the questions of many samples in one round. Equal questions are judged once, short ones first, one
per processor at a time. A verdict never depends on the other questions in the batch.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.cancellation import check_cancelled
from merilo.data.answer import one_form
from merilo.data.history import ASSISTANT, USER
from merilo.data.sentences import Piece, judged_sentences, pieces, sentences, unnumbered
from merilo.data.short_answers import affirms, is_yes_or_no, stated, taken_apart
from merilo.data.values import FUNCTION_WORDS
from merilo.judges.blended import BlendedModel, CannotJudge, ContextResult, Excerpt, excerpts
from merilo.judges.claims import P_ABSENT, Finding, judge_claim, judge_sufficiency
from merilo.judges.copied import P_COPIED, Position, claims, copied_from, noncommittal, quoted
from merilo.judges.encoder.model import Embedder
from merilo.judges.words import is_english, likeness, ngram_vector
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
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict, Similarities
from merilo.judging.kinds.responses import (
    Addresses,
    AddressesVerdict,
    Noncommittal,
    NoncommittalVerdict,
    Statement,
    Statements,
    StatementsVerdict,
)
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.providers.questions import FreeProvider, answer_batch, answer_text, question_length

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from merilo.errors import ProviderError
    from merilo.judging.questions import Question
    from merilo.providers.base import Reply, Request


_log = logging.getLogger("merilo")

MAX_CONTEXT: Final = 1_000_000
"""Maximum characters of all contexts of one question."""
MAX_CONTEXTS: Final = 1_000
MAX_RESPONSE: Final = 100_000
"""Maximum characters of a response to split into statements, and of the texts on one side of a matrix question."""
MAX_ASKED: Final = 20_000
"""Maximum characters of a question, a statement or a reference."""
_ADVICE: Final = "Shorten the text, or use an LLM judge."
_LONG: Final = 50_000
"""Characters from which a question is answered while no other long one is."""
_POLL_S: Final = 0.1
_long_turn: Final = Lock()


@dataclass(frozen=True)
class EmbeddedProvider(FreeProvider):
    """A free local provider for the kinds of question in `RULES`."""

    provider: ClassVar[str] = "embedded"

    def send_batch(self, requests: Sequence[Request]) -> Generator[tuple[int, Reply | ProviderError], None, None]:
        """Answer requests as `BatchProvider` describes; Permanent for a question of another kind."""
        answer = partial(_answered_in_turn, BlendedModel.load())
        return answer_batch(requests, answer, kinds=_KINDS, judge="embedded")


def _answered_in_turn(model: BlendedModel, question: Question[Any]) -> str:
    """Answer a question; long ones one at a time, since each may take much memory."""
    if question_length(question) <= _LONG:
        return answered(model, question)
    # A plain acquire() would block Ctrl-C until the other long question is finished.
    while not _long_turn.acquire(timeout=_POLL_S):
        check_cancelled()
    try:
        return answered(model, question)
    finally:
        _long_turn.release()


def answered(model: BlendedModel, question: Question[Any]) -> str:
    """Return the answer to a question as the text of a reply; a text that is too long and a bug are failures."""
    excess = too_long(question)
    if excess is not None:
        return answer_text(Failure(FailureKind.PERMANENT, excess))
    try:
        return answer_text(_verdict(model, question))
    except CannotJudge as error:
        message = f"the embedded judge cannot judge {error}: use another judge"
        return answer_text(Failure(FailureKind.NOT_JUDGED, message, error.probability))
    except Exception as error:  # noqa: BLE001  a bug in how a text is read is the failure of one question
        _log.exception("the embedded judge raised an exception")
        message = f"the embedded judge raised {type(error).__name__}: {error}"
        return answer_text(Failure(FailureKind.BROKEN, message))


def _verdict(model: BlendedModel, question: Question[Any]) -> Verdict:
    """Return the verdict on a question; of a follow-up, the lower one of its two readings. Raises CannotJudge."""
    if not isinstance(question, Relevance | Sufficiency):
        return RULES[type(question)](model, question)
    rule: Callable[[BlendedModel, Any], Any] = RULES[type(question)]  # Any: a question of either kind, and its verdict
    full = full_question(question.user_input, question.history) or question.user_input
    read: list[RelevanceVerdict | SufficiencyVerdict | CannotJudge] = []
    for asked in dict.fromkeys((question.user_input, full)):
        try:
            read.append(rule(model, replace(question, user_input=asked)))
        except CannotJudge as error:
            read.append(error)
    lowest = min(read, key=lambda each: each.probability or 0.0)
    if isinstance(lowest, CannotJudge):
        raise lowest
    return lowest if lowest is read[0] else replace(lowest, reason=f"{lowest.reason} Read as {full!r}.")


def too_long(question: Question[Any]) -> str | None:
    """Return the reason why a question is too long, as a sentence; None if it is short enough."""
    limits = _LIMITS | {"sentences": MAX_RESPONSE} if isinstance(question, Statements) else _LIMITS
    for name, most in limits.items():
        value: str | tuple[str, ...] = getattr(question, name, ())
        length = len(value) if isinstance(value, str) else sum(map(len, value))
        label = name.replace("_", " ")
        if length > most:
            verb = "has" if isinstance(value, str) else "have"
            return f"The {label} {verb} {length:,} characters; the embedded judge reads at most {most:,}. {_ADVICE}"
        if name == "contexts" and len(value) > MAX_CONTEXTS:
            return f"There are {len(value):,} contexts; the embedded judge reads at most {MAX_CONTEXTS:,}. {_ADVICE}"
    return None


def _relevance(model: BlendedModel, question: Relevance) -> RelevanceVerdict:
    (asked,), own = join_broken_words([question.user_input], question.sentences)
    (read,) = excerpts(model, (asked,), [own])
    found = model.relevance(asked, read.sentences)
    evidence, reason = _of_sentences(("Helps to answer", "Does not help to answer"), asked, own, read, found)
    return RelevanceVerdict(found.level, evidence, reason, found.probability, averaged=True)


def _usefulness(model: BlendedModel, question: Usefulness) -> UsefulnessVerdict:
    (reference,), own = join_broken_words([question.reference], question.sentences)
    (read,) = excerpts(model, (reference, question.user_input), [own])
    found = model.usefulness(question.user_input, reference, read.sentences)
    evidence, reason = _of_sentences(("Useful", "Not useful"), reference, own, read, found)
    return UsefulnessVerdict(found.level > 0, evidence, reason, found.probability, averaged=True)


def _of_sentences(
    verdicts: tuple[str, str], about: str, sentences: Sequence[str], read: Excerpt, found: ContextResult
) -> tuple[tuple[int, ...], str]:
    """Return evidence and reason of a judgement of one context, by the sentences of the whole context."""
    evidence = tuple(map(read.place, found.evidence))
    verdict = f"{verdicts[found.level == 0]} {_figures(found.probability, found.yes_from)}."
    if found.closest is None:
        return evidence, f"{verdict} No sentence is close to it.{_partly(read)}"
    best = evidence[0] if evidence else read.place(found.closest)
    where = "Evidence" if evidence else "Closest"
    return evidence, f"{verdict} {where}: {quoted(sentences[best], best, about)}{_partly(read)}"


def _statements(_: BlendedModel, question: Statements) -> StatementsVerdict:
    """Return one statement per sentence that makes one; questions, courtesies and refusals make none.

    A bare yes or no counts only if nothing else is stated. If all statements are too short to be read alone, each is
    combined with the question that it answers.
    """
    numbered = enumerate(unnumbered(question.sentences, question.language))
    made = [Statement(text, index) for index, text in numbered if claims(text)]
    found = [each for each in made if not is_yes_or_no(each.text)] or made
    behind = [stated(each.text, question.user_input, question.language) for each in found]
    if all(behind):  # nothing in the text is a sentence
        found = [Statement(text or "", each.sentence) for text, each in zip(behind, found, strict=True)]
    return StatementsVerdict(tuple(found))


def _support(model: BlendedModel, question: Support) -> SupportVerdict:
    """Judge a statement; CannotJudge if its values and words leave it open."""
    statement, texts = _compared(question)
    (statement,), *split = join_broken_words(
        [statement], *(judged_sentences(each, question.language) for each in texts)
    )
    found, contexts, places = Finding("Copied from", P_COPIED, holds=True), split, [[*range(len(own))] for own in split]
    cited, rest = copied_from(statement, split), ""
    if not cited:
        divided = [pieces(own) for own in split]
        contexts = [tuple(each.text for each in own) for own in divided]
        places = [[e.place for e in own] for own in divided]
        read = excerpts(model, (statement,), contexts)
        found, rest = _of_content(model, statement, question.user_input, divided, read), _partly(*read)
        cited = (found.place,) if found.place else ()
    return SupportVerdict(
        SupportLabel.SUPPORTED if found.holds else SupportLabel.UNSUPPORTED,
        tuple(dict.fromkeys(each.context for each in cited)) if found.holds else (),
        _support_reason(found, statement, contexts, places, cited) + rest,
        found.probability,
        tells_contradicted=False,
        sentences=tuple(dict.fromkeys((each.context, places[each.context][each.sentence]) for each in cited)),
        averaged=True,
    )


def _of_content(
    model: BlendedModel, statement: str, asked: str, divided: Sequence[Sequence[Piece]], read: Sequence[Excerpt]
) -> Finding:
    """Judge a statement by the excerpts of contexts; the place of a finding is that in the whole contexts."""
    shown = [
        [own[each.place(at)] for at in range(len(each.sentences))] for own, each in zip(divided, read, strict=True)
    ]

    def p_support() -> float | None:
        return model.p_support(statement, [each.sentences for each in read])

    found, at = judge_claim(statement, shown, asked, p_support), None
    if found.place:
        at = Position(found.place.context, read[found.place.context].place(found.place.sentence))
    if found.holds and at and not is_english(statement, divided[at.context][at.sentence].text):
        raise CannotJudge("a statement in a language other than English")
    if found.holds is None or (not found.holds and _partly(*read)):
        probability = p_support() if found.probability is None else found.probability
        raise CannotJudge(f"this statement ({found.reason})", probability)
    return found._replace(place=at)


def _support_reason(
    found: Finding,
    statement: str,
    contexts: Sequence[Sequence[str]],
    places: Sequence[Sequence[int]],
    cited: Sequence[Position],
) -> str:
    """Return the reason of a verdict. `cited`: texts of the contexts, the best one first; `places`: their sentences."""
    if not cited:
        return f"{found.reason}."
    # A single text may be a reference or a response, so it is not called a context.
    where = f"context {cited[0].context + 1}, " if len(contexts) > 1 else ""
    context, at = cited[0]
    where += quoted(contexts[context][at], places[context][at], statement)
    return f"{found.reason} {where}" if found.holds else f"{found.reason}. Closest: {where}"


def _compared(question: Support) -> tuple[str, tuple[str, ...]]:
    """Return a statement and the texts to compare it with.

    Two short answers to the same question are compared without the question, which both share.
    """
    mine, texts = taken_apart(question.statement), question.contexts
    other = taken_apart(texts[0]) if len(texts) == 1 else None
    if mine is None or other is None or mine[0] != other[0]:
        return question.statement, texts
    return _plain(mine[1]), (_plain(other[1]),)


def _plain(answer: str) -> str:
    """Return a short answer; a yes or a no as that word alone."""
    yes = affirms(answer)
    return answer if yes is None else "Yes." if yes else "No."


_P_SUFFICIENT: Final = 0.8
"""The encoder's probability from which contexts hold the answer: 108 of 116 such verdicts were right."""
_P_KNOWN: Final = 0.98
"""The rate at which ids of passages that hold the answer agree with people on whether contexts hold it."""
_OF_GOLD: Final = {
    1: Finding("All passages that are known to hold the answer are retrieved", _P_KNOWN, holds=True),
    -1: Finding("No passage that is known to hold the answer is retrieved", 1 - _P_KNOWN, holds=False),
}


def _sufficiency(model: BlendedModel, question: Sufficiency) -> SufficiencyVerdict:
    """Judge by the passages that are known to hold the answer, otherwise by words, and last by the encoder."""
    found = _OF_GOLD.get(question.gold) or _in_texts(model, question)
    label = SufficiencyLabel.SUFFICIENT if found.holds else SufficiencyLabel.INSUFFICIENT
    return SufficiencyVerdict(label, reason=f"{found.reason}.", probability=found.probability, averaged=True)


def _in_texts(model: BlendedModel, question: Sufficiency) -> Finding:
    known = [question.user_input, question.reference]
    (asked, reference), *split = join_broken_words(known, *map(sentences, question.contexts))
    if not any(split):
        return Finding("No context has text", P_ABSENT, holds=False)
    if noncommittal(reference):
        return Finding("The reference states that there is no answer", 1 - _P_KNOWN, holds=False)
    read = excerpts(model, (asked,), split)
    if not _partly(*read) and is_english(asked, reference):
        found = judge_sufficiency(asked, reference, [pieces(own) for own in split])
        if found.holds is not None:
            return found
    p_enough = model.p_sufficient(asked, [each.sentences for each in read])
    if p_enough is None or p_enough < _P_SUFFICIENT:  # the encoder is wrong in most of its noes
        raise CannotJudge("whether these contexts hold the answer", p_enough)
    figures = _figures(p_enough, _P_SUFFICIENT)
    return Finding(f"Close to the question {figures}{_partly(*read).rstrip('.')}", p_enough, holds=True)


def _addresses(_: BlendedModel, question: Addresses) -> AddressesVerdict:
    if not noncommittal(question.statement):
        raise CannotJudge("whether a statement addresses a question")
    return AddressesVerdict(addresses=False, reason="A statement that declines to answer never addresses the question.")


def _noncommittal(_: BlendedModel, question: Noncommittal) -> NoncommittalVerdict:
    declines = noncommittal(question.response)
    return NoncommittalVerdict(declines, reason="It consists mostly of phrases of refusal." if declines else "")


def vectors_of(model: BlendedModel, texts: Sequence[str]) -> list[list[float]]:
    """Return the encoder's vectors if all texts are English, otherwise those of n-grams (zeros for no words)."""
    # One method for all texts of a question: cosines between vectors of different methods mean nothing.
    if not is_english(*texts):
        return [ngram_vector(text) for text in texts]
    found: list[list[float]] = Embedder(model.features.encodings).vectors(texts).tolist()
    return found


def _embeddings(model: BlendedModel, question: Embeddings) -> MatrixVerdict:
    return MatrixVerdict.of(vectors_of(model, question.texts))


def _similarities(model: BlendedModel, question: Similarities) -> MatrixVerdict:
    """Return the cosines of the same vectors, 0 if negative."""
    left, right = question.left, question.right
    if not left:
        return MatrixVerdict(0, len(right), b"")
    if is_english(*left, *right):
        return MatrixVerdict.of(Embedder(model.features.encodings).similarities(left, right).clip(0, 1).tolist())
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
"""The function that answers each kind of question."""
_KINDS: Final = frozenset(kind.kind for kind in RULES)
_LIMITS: Final = {
    **dict.fromkeys(("user_input", "statement", "reference"), MAX_ASKED),
    **dict.fromkeys(("sentences", "contexts"), MAX_CONTEXT),
    **dict.fromkeys(("response", "texts", "left", "right"), MAX_RESPONSE),
}
"""Maximum characters of each field of a question."""


def _partly(*read: Excerpt) -> str:
    partly = " Of long contexts, the passages that share most words with it were read."
    return partly if any(each.places is not None for each in read) else ""


def _figures(probability: float, yes_from: float) -> str:
    return f"({probability:.2f}; threshold {yes_from:.2f})"


# -- words hyphenated at the end of a line ------------------------------------------------------------

_BROKEN: Final = re.compile(
    r"(?<![^\W\d_])(?P<first>[^\W\d_]++)(?P<hyphen>[-\u2010\u00ad])[ \t]*+\r?\n[ \t>]*+(?P<second>[^\W\d_]++)"
)
"""Possessive, so that the time is in proportion to the text."""
# -- follow-up questions ------------------------------------------------------------------------------
# A follow-up has a pronoun, at most two content words, or begins like "And ..." or "What about ...". To it are added
# the content words of the user's turn before and the names in the answer to that. Both readings are judged, and the
# verdict with the lower probability counts: a context must fit the question as it is written, and the topic of the
# conversation. `design/embedded-judge.md` has the measurement.

_WORD: Final = re.compile(r"[^\W\d_]++(?:-[^\W\d_]++)*+")
_LINE_END: Final = re.compile(r"[-\u2010\u00ad][ \t]*+\r?\n")


def join_broken_words(*groups: Sequence[str]) -> list[tuple[str, ...]]:
    r"""Return groups of texts in one form, in which each word that a line end divides is whole.

    A part that begins with a capital keeps its hyphen ("Saint-", "Denis"). Any other word loses it, unless only the
    hyphenated word occurs elsewhere in the texts.

    >>> join_broken_words(["two broth-\ners"], ["a well-\nknown house"], ["well-known"])
    [('two brothers',), ('a well-known house',), ('well-known',)]
    """
    if not any("\n" in text and _LINE_END.search(text) for group in groups for text in group):
        return [tuple(map(one_form, group)) for group in groups]
    whole = {
        word for group in groups for text in group for word in _WORD.findall(text.replace("\u2010", "-").casefold())
    }

    def joined(found: re.Match[str]) -> str:
        one, two = found["first"], found["second"]
        plain, compound = one + two, f"{one}-{two}"
        if found["hyphen"] == "\u00ad" or plain.casefold() in whole:
            return plain
        return compound if compound.casefold() in whole or two[0].isupper() else plain

    return [tuple(one_form(_joined(text, joined)).replace("\u00ad", "") for text in group) for group in groups]


def _joined(text: str, joined: Callable[[re.Match[str]], str]) -> str:
    return _BROKEN.sub(joined, text) if "\n" in text and _LINE_END.search(text) else text


_FOLLOWING_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_POINTING: Final = frozenset(
    "it its they them their theirs he him his she her hers this that these those one ones there then else same other "
    "both former latter".split()
)
_ASKING: Final = frozenset(
    "who what when where which how why whose whom does do did is are was were can could will would should has have had "
    "much many long often old tall high far large".split()
)
_OPENINGS: Final = (("and",), ("or",), ("but",), ("what", "about"), ("how", "about"))
_FEW: Final = 2
"""A question with at most this many content words is a follow-up."""
_MOST_ADDED: Final = 30


def full_question(question: str, history: Sequence[str]) -> str | None:
    """Return an English follow-up question with the words that it leaves out; None if it can be read alone.

    `history`: the earlier turns as `role: text`.
    """
    asked, answered = _last(history, USER), _last(history, ASSISTANT)
    if not asked or not _is_follow_up(question) or not is_english(f"{asked} {answered} {question}"):
        return None
    known = {word.lower() for word in _FOLLOWING_WORD.findall(question)}
    found = [*_content(asked), *(word for word in _content(answered) if word[0].isupper())]
    added = [word for word in dict.fromkeys(found) if word.lower() not in known]
    return f"{question.rstrip(' ?')} {' '.join(added[:_MOST_ADDED])}?" if added else None


def _is_follow_up(question: str) -> bool:
    words = [word.lower() for word in _FOLLOWING_WORD.findall(question)]
    opens = any(tuple(words[: len(opening)]) == opening for opening in _OPENINGS)
    return opens or not _POINTING.isdisjoint(words) or len(_content(question)) <= _FEW


def _content(text: str) -> list[str]:
    empty = FUNCTION_WORDS | _ASKING | _POINTING
    return [word for word in _FOLLOWING_WORD.findall(text) if word.lower() not in empty]


def _last(history: Sequence[str], role: str) -> str:
    opening = f"{role}: "
    return next((turn.removeprefix(opening) for turn in reversed(history) if turn.startswith(opening)), "")
