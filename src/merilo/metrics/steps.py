"""Sub-plans that several native metrics share, so that they ask *equal* questions and each is asked once.

Whatever needs no judge is settled here: a blank context is irrelevant and supports nothing, and nothing
supports a statement where nothing was retrieved. Such verdicts say so in their reason and were never asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from unicodedata import category

from merilo.data.short_answers import stated
from merilo.errors import UsageError
from merilo.judging.ask import AskFailed, ask, ask_each
from merilo.judging.questions import Noncommittal, Question, Relevance, Statements, Support, Usefulness
from merilo.judging.verdicts import (
    Failure,
    FailureKind,
    RelevanceVerdict,
    SupportLabel,
    SupportVerdict,
    UsefulnessVerdict,
    Verdict,
)
from merilo.metrics.base import About, Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from merilo.data.sample import Context, Sample
    from merilo.judging.ask import Plan
    from merilo.judging.questions import Texts

V = TypeVar("V", bound=Verdict)

NOTHING_RETRIEVED: Final = "no context was retrieved"
NOTHING_RELEVANT: Final = "no retrieved context is relevant"
NOTHING_TO_FIND: Final = "no context is named as relevant"
BLANK_USER_INPUT: Final = "the user input is blank"
BLANK_RESPONSE: Final = "the response is blank"
BLANK_REFERENCE: Final = "the reference is blank"
RESPONSE_STATES_NOTHING: Final = "the response makes no statement"
REFERENCE_STATES_NOTHING: Final = "the reference makes no statement"

NO_CONTEXT: Final = "No context was retrieved, or every one is blank."
BLANK_EVIDENCE: Final = "Only blank contexts were named."

_BLANK_CONTEXT: Final = "The context is blank."
_BLANK_TEXT: Final = "The text is blank."

_CHARACTERS_PER_STATEMENT: Final = 4

StatedField = Literal["response", "reference"]


@dataclass(frozen=True, slots=True)
class Distinct:
    """A statement that a text makes (or a part, or an entity), once however often it is repeated."""

    index: int
    """Where it first stands among those of the verdict."""
    text: str


def is_blank(text: str | Context) -> bool:
    """True when there is nothing to read: no text but white space and signs that are not seen."""
    return all(map(_unseen, text if isinstance(text, str) else text.text))


def _unseen(sign: str) -> bool:
    """White space, and what steers how text is shown without being seen itself, such as a zero-width space."""
    return sign.isspace() or category(sign) in {"Cc", "Cf"}


# -- contexts -----------------------------------------------------------------------------------------


def relevance_of_contexts(sample: Sample) -> Plan[tuple[RelevanceVerdict, ...]]:
    """The relevance of each retrieved context to the user input, in their order; blank ones get grade 0."""
    user_input, language = sample.require("user_input"), sample.resolved_language
    return (
        yield from _of_contexts(
            sample.contexts,
            lambda context: Relevance(user_input, context.sentences, language=language),
            RelevanceVerdict(grade=0, reason=_BLANK_CONTEXT),
        )
    )


def usefulness_of_contexts(sample: Sample) -> Plan[tuple[UsefulnessVerdict, ...]]:
    """The usefulness of each retrieved context for the reference, in their order; blank ones have none."""
    user_input, reference = sample.require("user_input"), sample.require("reference")
    language = sample.resolved_language
    return (
        yield from _of_contexts(
            sample.contexts,
            lambda context: Usefulness(user_input, reference, context.sentences, language=language),
            UsefulnessVerdict(useful=False, reason=_BLANK_CONTEXT),
        )
    )


def texts_of(contexts: Iterable[Context]) -> Texts:
    """The texts of all contexts, blank ones too, so that a judge's numbers are the sample's."""
    return tuple(context.text for context in contexts)


def most_contexts(sample: Sample) -> int:
    """How many questions one of each readable context makes; 0 where the field is missing."""
    return sum(not is_blank(context) for context in sample.retrieved_contexts or ())


def about_contexts(verdicts: Iterable[Verdict]) -> tuple[Evidence, ...]:
    """One piece of evidence for each context, from one verdict for each in order."""
    return tuple(Evidence(About.CONTEXT, index, verdict) for index, verdict in enumerate(verdicts))


def _of_contexts(
    contexts: Sequence[Context], question: Callable[[Context], Question[V]], blank: V
) -> Plan[tuple[V, ...]]:
    readable = [index for index, context in enumerate(contexts) if not is_blank(context)]
    verdicts = yield from ask_each(question(contexts[index]) for index in readable)
    found = dict(zip(readable, verdicts, strict=True))
    return tuple(found.get(index, blank) for index in range(len(contexts)))


# -- statements ---------------------------------------------------------------------------------------


def statements_of(sample: Sample, field: StatedField) -> Plan[tuple[Distinct, ...]]:
    """The distinct statements of the response or the reference, in order of their first appearance.

    A text that repeats itself gains or loses nothing by it. Raises AskFailed when the judge names more than
    `most_statements`, which can only be made up.
    """
    sentences, language = sample.sentences(field), sample.resolved_language
    if sample.user_input is None:
        question = Statements(sentences, language=language)
    else:
        question = Statements(sentences, sample.user_input, language=language)
    verdict = yield from ask(question)
    return distinct(question, (each.text for each in verdict.statements), most=_most(sentences))


def distinct(question: Question[Any], texts: Iterable[str], *, most: int) -> tuple[Distinct, ...]:
    """What a text was found to hold, each once, in order of first appearance.

    Raises AskFailed when there are more than `most`, which can only be made up.
    """
    found: dict[str, Distinct] = {}
    for index, text in enumerate(texts):
        found.setdefault(text.strip(), Distinct(index, text.strip()))
    if len(found) > most:
        message = f"{len(found)} {question.kind} were named of a text that can make at most {most}."
        raise AskFailed(question, Failure(FailureKind.UNREADABLE, message))
    return tuple(found.values())


def states_nothing(sample: Sample, field: StatedField) -> bool:
    """True when the text has no sentence, so that there is nothing to ask about it. Raises MissingField."""
    return not any(not is_blank(sentence) for sentence in sample.sentences(field))


def most_statements(sample: Sample, field: StatedField) -> int:
    """How many distinct statements the text can make at most, one for every four characters; 0 if missing."""
    value = sample.response if field == "response" else sample.reference
    return 0 if value is None or states_nothing(sample, field) else _most(sample.sentences(field))


def about_statements(statements: Iterable[Distinct], verdicts: Iterable[Verdict]) -> tuple[Evidence, ...]:
    """One piece of evidence for each statement, from one verdict for each in order."""
    return tuple(
        Evidence(About.STATEMENT, statement.index, verdict, statement.text)
        for statement, verdict in zip(statements, verdicts, strict=True)
    )


def _most(sentences: Texts) -> int:
    return 1 + sum(len(sentence) for sentence in sentences) // _CHARACTERS_PER_STATEMENT


# -- what the contexts support ------------------------------------------------------------------------


def support_of(sample: Sample, statements: Sequence[Distinct]) -> Plan[tuple[SupportVerdict, ...]]:
    """Whether all retrieved contexts together support each statement, and which of them do."""
    contexts, language = sample.contexts, sample.resolved_language
    blank = frozenset(index for index, context in enumerate(contexts) if is_blank(context))
    if len(blank) == len(contexts):
        return tuple(SupportVerdict(SupportLabel.NOT_STATED, reason=NO_CONTEXT) for _ in statements)
    texts = texts_of(contexts)
    verdicts = yield from ask_each(Support(each.text, texts, language=language) for each in statements)
    return tuple(_without(blank, verdict) for verdict in verdicts)


def support_by(sample: Sample, field: StatedField, statements: Sequence[Distinct]) -> Plan[tuple[SupportVerdict, ...]]:
    """Whether the response or the reference itself supports each statement; the verdicts name no context.

    A text too short to say anything by itself ("In 1889.") is read behind the user input that it answers.
    """
    text, language = sample.require(field), sample.resolved_language
    if is_blank(text):
        return tuple(SupportVerdict(SupportLabel.NOT_STATED, reason=_BLANK_TEXT) for _ in statements)
    text = stated(text, sample.user_input, language) or text
    verdicts = yield from ask_each(Support(each.text, (text,), language=language) for each in statements)
    return tuple(replace(verdict, evidence=()) for verdict in verdicts)


def most_support(sample: Sample, field: StatedField) -> int:
    """How many questions `support_of` asks at most about the statements of a text."""
    return most_statements(sample, field) if most_contexts(sample) else 0


def support_counts(verdicts: Sequence[SupportVerdict]) -> dict[str, int | None]:
    """How many statements there are, are supported, and contradicted.

    `contradicted` is None when the judge does not tell contradicted from not stated.
    """
    labels = [verdict.label for verdict in verdicts]
    tells = all(verdict.tells_contradicted for verdict in verdicts)
    return {
        "statements": len(labels),
        "supported": labels.count(SupportLabel.SUPPORTED),
        "contradicted": labels.count(SupportLabel.CONTRADICTED) if tells else None,
    }


def _without(blank: frozenset[int], verdict: SupportVerdict) -> SupportVerdict:
    if blank.isdisjoint(verdict.evidence):
        return verdict
    if evidence := tuple(index for index in verdict.evidence if index not in blank):
        return replace(verdict, evidence=evidence)
    return SupportVerdict(SupportLabel.NOT_STATED, reason=BLANK_EVIDENCE)


# -- the response as a whole --------------------------------------------------------------------------


def declines(sample: Sample) -> Plan[bool]:
    """Whether the response evades or declines to answer the user input."""
    verdict = yield from ask(
        Noncommittal(sample.require("user_input"), sample.require("response"), language=sample.resolved_language)
    )
    return verdict.noncommittal


# -- what stands at which rank, by ids ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ranking:
    """The retrieved ids, each once at its first rank, held against those that are relevant."""

    ids: tuple[str, ...]
    """Best rank first."""
    flags: tuple[bool, ...]
    """One for each id: whether it is relevant."""
    relevant: int
    """How many ids are relevant, retrieved or not."""

    def counts(self, k: int | None = None) -> dict[str, int | None]:
        """How many ids were retrieved and are relevant, and how many of the first k (None: of all) are both."""
        return {"retrieved": len(self.ids), "relevant": self.relevant, "found": sum(self.flags[:k])}


def ranking_of(sample: Sample) -> Ranking:
    """The retrieved ids of a sample as they were ranked. Raises MissingField.

    An id that was retrieved again, as a document is of which several pieces come, keeps its first rank and takes
    no other.
    """
    relevant = frozenset(sample.require("reference_context_ids"))
    ids = tuple(dict.fromkeys(sample.require("retrieved_context_ids")))
    return Ranking(ids, tuple(each in relevant for each in ids), len(relevant))


def checked_cutoff(metric: str, k: int | None) -> None:
    """Nothing. Raises UsageError for a cutoff below 1."""
    if k is not None and k < 1:
        raise UsageError(f"Metric {metric!r} looks at the first k ranks: write {metric}@k with k at least 1, got @{k}.")
