"""Sub-plans that several native metrics share, so that they ask equal questions, each of which is asked once.

Cases that need no judge are decided here: a blank context is irrelevant and supports nothing, and if nothing was
retrieved, no statement is supported. Such verdicts state this in their reason; no question was asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from unicodedata import category

from merilo.data.answer import states
from merilo.data.sample import Sample, matching_id
from merilo.data.short_answers import stated, taken_apart
from merilo.errors import UsageError
from merilo.judging.ask import AskFailed, Plan, ask, ask_each, ask_judged, if_judged
from merilo.judging.json_types import as_mapping
from merilo.judging.kinds.contexts import (
    MentionsVerdict,
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
from merilo.judging.kinds.responses import Addresses, AddressesVerdict, Noncommittal, Statements
from merilo.judging.verdicts import DecisionVerdict, Failure, FailureKind, Verdict
from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined, not_judged
from merilo.metrics.formulas import mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from merilo.data.context import Context
    from merilo.judging.questions import Question, Texts

V = TypeVar("V", bound=Verdict)
E = TypeVar("E", SupportVerdict, MentionsVerdict)

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

ALL_RETRIEVED: Final = "All passages that are known to hold the answer are retrieved."
NONE_RETRIEVED: Final = "No passage that is known to hold the answer is retrieved."
_GOLD: Final[Mapping[bool | None, int]] = {True: 1, False: -1, None: 0}
_STATED: Final = "A sentence has all values and words of the short answer."
_BLANK_CONTEXT: Final = "The context is blank."
_BLANK_TEXT: Final = "The text is blank."

_CHARACTERS_PER_STATEMENT: Final = 4

StatedField = Literal["response", "reference"]


@dataclass(frozen=True, slots=True)
class DistinctStatement:
    """A statement (or a part, or an entity) of a text, once however often it is repeated."""

    index: int
    """The position of its first occurrence in the verdict."""
    text: str
    sentences: tuple[int, ...] = ()
    """Indices of the sentences that make it, if the verdict names them."""


def is_blank(text: str | Context) -> bool:
    """Return True if the text has nothing to read: only white space and invisible characters."""
    words = text if isinstance(text, str) else text.text
    # invisible formatting characters, such as a zero-width space, are of these categories
    return not words[:1].isalnum() and all(char.isspace() or category(char) in {"Cc", "Cf"} for char in words)


# -- verdicts as numbers ------------------------------------------------------------------------------


def mean_credit(verdicts: Sequence[DecisionVerdict]) -> float:
    """Return the mean of the verdicts' credits: the fraction of yes, or the mean probability if `averaged`."""
    return mean(verdict.credit for verdict in verdicts)


def any_averaged(verdicts: Iterable[DecisionVerdict]) -> bool:
    """Return True if the credit of any of the verdicts is a probability."""
    return any(verdict.averaged for verdict in verdicts)


# -- contexts -----------------------------------------------------------------------------------------


def relevance_of_contexts(sample: Sample) -> Plan[tuple[RelevanceVerdict, ...]]:
    """Return the relevance of each retrieved context to the user input, in order; blank ones get grade 0."""
    user_input, language, history = sample.require("user_input"), sample.resolved_language, sample.read_history
    return (
        yield from _of_contexts(
            sample.contexts,
            lambda context: Relevance(user_input, context.sentences, language=language, history=history),
            RelevanceVerdict(grade=0, reason=_BLANK_CONTEXT),
        )
    )


def usefulness_of_contexts(sample: Sample) -> Plan[tuple[UsefulnessVerdict, ...]]:
    """Return the usefulness of each retrieved context for the reference, in order; blank ones are not useful."""
    user_input, reference = sample.require("user_input"), sample.require("reference")
    language, history = sample.resolved_language, sample.read_history
    return (
        yield from _of_contexts(
            sample.contexts,
            lambda context: Usefulness(user_input, reference, context.sentences, language=language, history=history),
            UsefulnessVerdict(useful=False, reason=_BLANK_CONTEXT),
        )
    )


def texts_of(contexts: Iterable[Context]) -> Texts:
    """Return the texts of all contexts, including blank ones, so that a judge's indices are the sample's."""
    return tuple([context.text for context in contexts])


def sufficiency_of(sample: Sample) -> Plan[SufficiencyVerdict]:
    """Return whether all retrieved contexts together are enough to answer; insufficient if there is none to read."""
    if all(is_blank(context) for context in sample.contexts):
        return SufficiencyVerdict(SufficiencyLabel.INSUFFICIENT, reason=NO_CONTEXT)
    return (
        yield from ask(
            Sufficiency(
                sample.require("user_input"),
                texts_of(sample.contexts),
                language=sample.resolved_language,
                history=sample.read_history,
                reference=sample.reference or "",
                gold=_GOLD[gold_of(sample)],
            )
        )
    )


def evidence_of(sample: Sample) -> Plan[SufficiencyVerdict | Failure]:
    """Return whether the contexts are enough: by ids or grades of people if these decide it, otherwise by the judge.

    The failure if the judge does not judge it.
    """
    gold = gold_of(sample)
    if gold is None or all(is_blank(context) for context in sample.contexts):
        return (yield from if_judged(sufficiency_of(sample)))
    label = SufficiencyLabel.SUFFICIENT if gold else SufficiencyLabel.INSUFFICIENT
    return SufficiencyVerdict(label, reason=ALL_RETRIEVED if gold else NONE_RETRIEVED)


def gold_of(sample: Sample) -> bool | None:
    """Return True if all passages that are known to hold the answer are retrieved, False if none is; None otherwise.

    False also if people grade each retrieved passage 0. None for some passages, and if nothing is known.
    """
    if not {"retrieved_context_ids", "reference_context_ids"} <= sample.present:
        return None
    ranking, grades = ranking_of(sample), grades_of(sample) or {}
    if ranking.ids and all(grades.get(each) == 0 for each in ranking.ids):
        return False
    return all_retrieved(ranking.counts())


def all_retrieved(counts: Mapping[str, int | None]) -> bool | None:
    """Return True if all relevant ids are found, False if none is, by the counts of `id_recall`; None otherwise."""
    relevant, found = counts.get("relevant"), counts.get("found")
    return None if not relevant or found is None or 0 < found < relevant else found > 0


def about_contexts(verdicts: Iterable[Verdict]) -> tuple[Evidence, ...]:
    """Return one piece of evidence for each context, from one verdict for each in order."""
    return tuple([Evidence(EvidenceTarget.CONTEXT, index, verdict) for index, verdict in enumerate(verdicts)])


def _of_contexts(
    contexts: Sequence[Context], question: Callable[[Context], Question[V]], blank: V
) -> Plan[tuple[V, ...]]:
    readable = [index for index, context in enumerate(contexts) if not is_blank(context)]
    verdicts = yield from ask_each([question(contexts[index]) for index in readable])
    if len(readable) == len(contexts):
        return verdicts
    found = dict(zip(readable, verdicts, strict=True))
    return tuple(found.get(index, blank) for index in range(len(contexts)))


# -- statements ---------------------------------------------------------------------------------------


def statements_of(sample: Sample, field: StatedField) -> Plan[tuple[DistinctStatement, ...]]:
    """Return the distinct statements of the response or the reference, in order of their first appearance.

    Repetition does not change a score. Raises AskFailed if the judge names more than one per four
    characters, which cannot be real.
    """
    sentences, language = sample.sentences(field), sample.resolved_language
    if sample.user_input is None:
        question = Statements(sentences, language=language)
    else:
        question = Statements(sentences, sample.user_input, language=language, history=sample.read_history)
    verdict = yield from ask(question)
    found = distinct(question, [each.text for each in verdict.statements], most=most_items(sentences))
    made_by: dict[str, dict[int, None]] = {each.text: {} for each in found}
    for statement in verdict.statements:
        made_by[statement.text.strip()][statement.sentence] = None
    return tuple([DistinctStatement(each.index, each.text, tuple(sorted(made_by[each.text]))) for each in found])


def distinct(question: Question[Any], texts: Iterable[str], *, most: int) -> tuple[DistinctStatement, ...]:
    """Return the distinct items found in a text, in order of first appearance.

    Raises AskFailed if there are more than `most`, which cannot be real.
    """
    found: dict[str, DistinctStatement] = {}
    for index, text in enumerate(map(str.strip, texts)):
        if text not in found:
            found[text] = DistinctStatement(index, text)
    if len(found) > most:
        message = f"{len(found)} {question.kind} were named of a text that can make at most {most}."
        raise AskFailed(question, Failure(FailureKind.UNREADABLE, message))
    return tuple(found.values())


def states_nothing(sample: Sample, field: StatedField) -> bool:
    """Return True if the text has no sentence, so there is nothing to ask about it. Raises MissingField."""
    return all(map(is_blank, sample.sentences(field)))


def about_statements(statements: Iterable[DistinctStatement], verdicts: Iterable[Verdict]) -> tuple[Evidence, ...]:
    """Return one piece of evidence for each statement, from one verdict for each in order."""
    return tuple(
        Evidence(EvidenceTarget.STATEMENT, statement.index, verdict, statement.text)
        for statement, verdict in zip(statements, verdicts, strict=True)
    )


def about_judged(statements: Iterable[DistinctStatement], answers: Iterable[Verdict | Failure]) -> tuple[Evidence, ...]:
    """Return one piece of evidence for each statement that is judged."""
    pairs = [(each, answer) for each, answer in zip(statements, answers, strict=True) if isinstance(answer, Verdict)]
    return about_statements([each for each, _ in pairs], [answer for _, answer in pairs])


def most_items(texts: Iterable[str], characters: int = _CHARACTERS_PER_STATEMENT) -> int:
    """Return the maximum number of items of at least this many characters that texts can hold."""
    return 1 + sum(map(len, texts)) // characters


# -- support by the contexts --------------------------------------------------------------------------


def support_of(sample: Sample, statements: Sequence[DistinctStatement]) -> Plan[tuple[SupportVerdict, ...]]:
    """Judge whether all retrieved contexts together support each statement, and which of them do. Raises AskFailed."""
    answers = yield from judged_support_of(sample, statements)
    if failed := next((answer for answer in answers if isinstance(answer, Failure)), None):
        raise AskFailed(Support("", ()), failed)
    return tuple([answer for answer in answers if not isinstance(answer, Failure)])


def judged_support_of(
    sample: Sample, statements: Sequence[DistinctStatement]
) -> Plan[tuple[SupportVerdict | Failure, ...]]:
    """Return the support of each statement as `support_of`; the failure of one that the judge does not judge."""
    contexts, language = sample.contexts, sample.resolved_language
    blank = blank_in(contexts)
    if len(blank) == len(contexts):
        return tuple(SupportVerdict(SupportLabel.NOT_STATED, reason=NO_CONTEXT) for _ in statements)
    texts, none = texts_of(contexts), SupportVerdict(SupportLabel.NOT_STATED, reason=BLANK_EVIDENCE)
    asked = [Support(each.text, texts, language=language, user_input=sample.user_input or "") for each in statements]
    answers = yield from ask_judged(asked)
    return tuple([each if isinstance(each, Failure) else without(blank, each, none) for each in answers])


def support_by(
    sample: Sample, field: StatedField, statements: Sequence[DistinctStatement]
) -> Plan[tuple[SupportVerdict, ...]]:
    """Judge whether the response or the reference itself supports each statement; the verdicts name no context.

    No judge is asked about a short answer ("75 dollars") that a sentence of the text states, and about a sentence that
    states the short answer that is the text. Any other text too short to be a statement is combined with the user input
    that it answers.
    """
    text, language = sample.require(field), sample.resolved_language
    if is_blank(text):
        return tuple(SupportVerdict(SupportLabel.NOT_STATED, reason=_BLANK_TEXT) for _ in statements)
    asked = sample.user_input or ""
    known = [_agrees(text, each.text, asked, language) for each in statements]
    text = stated(text, asked, language) or text
    verdicts = yield from ask_each(
        Support(each.text, (text,), language=language)
        for each, is_stated in zip(statements, known, strict=True)
        if not is_stated
    )
    judged = (replace(verdict, evidence=(), sentences=()) for verdict in verdicts)
    return tuple(SupportVerdict(SupportLabel.SUPPORTED, reason=_STATED) if each else next(judged) for each in known)


def _agrees(text: str, statement: str, asked: str, language: str) -> bool:
    """Return True if a text states a short statement, or is the short answer that a statement consists of."""
    question, short = taken_apart(statement) or (asked, statement)
    return states(text, short, question, language) or states(statement, text, asked, language, only=True)


def check_evidence(kind: Question[Any], verdicts: Iterable[DecisionVerdict]) -> None:
    """Raise AskFailed if a verdict lacks evidence, for formulas that count it. `kind`: a question of the kind."""
    if flag := next((verdict.flag for verdict in verdicts if verdict.flag), ""):
        raise AskFailed(kind, Failure(FailureKind.UNREADABLE, f"a verdict {flag}, which this metric counts"))


def support_counts(verdicts: Sequence[SupportVerdict]) -> dict[str, int | None]:
    """Return the number of judged statements, of supported and of contradicted ones.

    `contradicted` is None if the judge does not distinguish contradicted from not stated.
    """
    labels = [verdict.label for verdict in verdicts]
    tells = all(verdict.tells_contradicted for verdict in verdicts)
    return {
        "statements": len(labels),
        "supported": labels.count(SupportLabel.SUPPORTED),
        "contradicted": labels.count(SupportLabel.CONTRADICTED) if tells else None,
    }


def support_score(
    statements: Sequence[DistinctStatement], answers: Sequence[SupportVerdict | Failure]
) -> Score | Undefined:
    """Return the mean credit of the answers as a score; Undefined if a statement is not judged."""
    verdicts = [answer for answer in answers if not isinstance(answer, Failure)]
    if missing := [answer for answer in answers if isinstance(answer, Failure)]:
        some = f"{len(missing)} of {len(statements)} statements {'is' if len(missing) == 1 else 'are'} not judged"
        counts = {**support_counts(verdicts), "statements": len(statements), "not_judged": len(missing)}
        return not_judged(missing, some if verdicts else "", about_judged(statements, answers), counts)
    return credit_score(statements, verdicts, support_counts(verdicts))


def credit_score(
    statements: Sequence[DistinctStatement], verdicts: Sequence[DecisionVerdict], counts: Mapping[str, int | None]
) -> Score:
    """Return the mean credit of the verdicts on these statements as a score, with the verdicts as its evidence."""
    return Score(mean_credit(verdicts), about_statements(statements, verdicts), counts, averaged=any_averaged(verdicts))


def blank_in(contexts: Sequence[Context]) -> frozenset[int]:
    """Return the indices of the blank contexts."""
    return frozenset([index for index, context in enumerate(contexts) if is_blank(context)])


def without(blank: frozenset[int], verdict: E, nothing: E) -> E:
    """Return a verdict without the blank contexts in its evidence; `nothing` if it names only such."""
    if blank.isdisjoint(verdict.evidence):
        return verdict
    evidence = tuple([index for index in verdict.evidence if index not in blank])
    return replace(verdict, evidence=evidence) if evidence else nothing


# -- the response as a whole --------------------------------------------------------------------------


def declines(sample: Sample) -> Plan[bool]:
    """Ask whether the response evades or declines to answer the user input."""
    verdict = yield from ask(
        Noncommittal(
            sample.require("user_input"),
            sample.require("response"),
            language=sample.resolved_language,
            history=sample.read_history,
        )
    )
    return verdict.noncommittal


def addressing_of(sample: Sample, statements: Sequence[DistinctStatement]) -> Plan[tuple[AddressesVerdict, ...]]:
    """Ask whether each statement of the response addresses the user input."""
    user_input, language, history = sample.require("user_input"), sample.resolved_language, sample.read_history
    return (
        yield from ask_each(Addresses(each.text, user_input, language=language, history=history) for each in statements)
    )


# -- rankings by id -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ranking:
    """The retrieved ids, each once at its first rank, with their relevance."""

    ids: tuple[str, ...]
    """Best rank first."""
    flags: tuple[bool, ...]
    """One for each id: True if it is relevant."""
    relevant: int
    """The number of relevant ids, retrieved or not."""

    def counts(self, k: int | None = None) -> dict[str, int | None]:
        """Return the number of retrieved ids, of relevant ids, and of relevant ids in the first k (None: all) ranks."""
        return {"retrieved": len(self.ids), "relevant": self.relevant, "found": sum(self.flags[:k])}


def ranking_of(sample: Sample) -> Ranking:
    """Return the retrieved ids of a sample as they were ranked. Raises MissingField.

    An id that was retrieved again, for example because several passages come from one document, keeps its first rank
    only.
    """
    relevant = frozenset(map(matching_id, sample.require("reference_context_ids")))
    ids = tuple(dict.fromkeys(map(matching_id, sample.require("retrieved_context_ids"))))
    return Ranking(ids, tuple(each in relevant for each in ids), len(relevant))


def grades_of(sample: Sample) -> Mapping[str, float] | None:
    """Return the grade of each judged id, at least 0; None if the metadata contain something else."""
    found = dict.fromkeys(map(matching_id, sample.require("reference_context_ids")), 1.0)
    given = sample.metadata.get("qrels")
    if given is None:
        return found
    qrels = as_mapping(given)
    if qrels is None:
        return None
    for each, grade in qrels.items():
        if isinstance(grade, bool) or not isinstance(grade, (int, float)) or not isfinite(grade):
            return None
        found[matching_id(str(each))] = max(0.0, float(grade))
    return found


def checked_cutoff(metric: str, k: int | None) -> None:
    """Raise UsageError for a cutoff below 1."""
    if k is not None and k < 1:
        raise UsageError(f"Metric {metric!r} needs a cutoff of at least 1 ({metric}@k), got @{k}.")
