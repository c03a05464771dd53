"""Metrics of the response: relevancy, completeness, correctness, and the recall of nuggets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum, inf
from typing import Final

from merilo.data.sample import NO_NUGGETS, NUGGETS, NuggetError, Sample, nuggets_in
from merilo.errors import UsageError
from merilo.judging.ask import Plan, ask, ask_each, both, together
from merilo.judging.kinds.contexts import Support
from merilo.judging.kinds.measured import Embeddings
from merilo.judging.kinds.responses import Addresses, Answered, AnsweredVerdict, Noncommittal, Parts, Statements
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.metrics.formulas import cosine, f_measure
from merilo.metrics.steps import (
    BLANK_REFERENCE,
    BLANK_RESPONSE,
    BLANK_USER_INPUT,
    REFERENCE_STATES_NOTHING,
    RESPONSE_STATES_NOTHING,
    DistinctStatement,
    about_statements,
    addressing_of,
    any_averaged,
    credit_score,
    declines,
    distinct,
    is_blank,
    mean_credit,
    most_items,
    statements_of,
    states_nothing,
    support_by,
)
from merilo.metrics.variants import ResponseMetric

_DECLINES = "the response declines to answer"


@dataclass(frozen=True, slots=True)
class AnswerRelevancy(ResponseMetric):
    """Share of the response's statements that address the user input.

    Meaning: statements that address the question
    Formula: Statements that address the user input / distinct statements of the response. Each verdict counts as its
        probability if the judge's probabilities are averaged.
    Questions: One Noncommittal and one Statements question, and one Addresses question for each distinct statement.
    Undefined: the response is blank | the response declines to answer | the response makes no statement | the user
        input is blank
    Use: To find padding and answers to another question; needs neither contexts nor a reference.
    Not: To see whether the answer is right or complete. Also use faithfulness, or a metric with a reference.
    See: faithfulness
    Source: Counted in statements, as in DeepEval. | Not the answer relevance of Es et al. 2023 (arXiv 2309.15217),
        which generates questions.

    Whether they are true is not judged. Unlike in DeepEval, a refusal or a response without a statement is Undefined
    rather than a number, and a statement either addresses the input or does not.
    """

    name = "answer_relevancy"
    needs = frozenset({"user_input", "response"})
    asks = Kinds({Addresses, Noncommittal, Statements})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        if states_nothing(sample, "response"):
            return Undefined(BLANK_RESPONSE)
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        declined, statements = yield from both(declines(sample), statements_of(sample, "response"))
        if declined:
            return Undefined(_DECLINES)
        if not statements:
            return Undefined(RESPONSE_STATES_NOTHING)
        verdicts = yield from addressing_of(sample, statements)
        addressing = sum(verdict.addresses for verdict in verdicts)
        return credit_score(statements, verdicts, {"statements": len(statements), "addressing": addressing})


_NO_PART = "the user input asks for nothing"
_BLANK_RESPONSE = "The response is blank."
_CHARACTERS_PER_PART = 4


@dataclass(frozen=True, slots=True)
class AnswerCompleteness(ResponseMetric):
    """Share of what the user input asks for that the response answers.

    Meaning: parts of the question that are answered
    Formula: Parts of the user input that the response answers / distinct parts of the user input. Each verdict counts
        as its probability if the judge's probabilities are averaged.
    Questions: One Parts question, and one Answered question for each distinct part.
    Undefined: the user input is blank | the user input asks for nothing
    Use: To find answers that leave out a part of what was asked; needs neither contexts nor a reference.
    Not: To see whether the answer is right, or whether the system should have answered: declining a question that the
        contexts do not cover counts as 0. Also use answer_correctness or context_sufficiency.
    See: answer_relevancy | answer_correctness | context_sufficiency
    Source: merilo's own; the answer relevance of Es et al. 2023 (arXiv 2309.15217) penalises incompleteness too.

    A response that declines, or is blank, answers nothing: 0, unlike in answer_relevancy, where it is Undefined.
    Otherwise a system could raise its completeness by declining difficult questions.
    """

    name = "answer_completeness"
    needs = frozenset({"user_input", "response"})
    asks = Kinds({Answered, Parts})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        sample.require("response")
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        question = Parts(user_input, language=sample.resolved_language, history=sample.read_history)
        verdict = yield from ask(question)
        parts = distinct(question, verdict.parts, most=most_items((user_input,), _CHARACTERS_PER_PART))
        if not parts:
            return Undefined(_NO_PART)
        if states_nothing(sample, "response"):
            verdicts = tuple(AnsweredVerdict(answered=False, reason=_BLANK_RESPONSE) for _ in parts)
        else:
            sentences, language, history = sample.sentences("response"), sample.resolved_language, sample.read_history
            verdicts = yield from ask_each(
                Answered(part.text, sentences, user_input, language=language, history=history) for part in parts
            )
        answered = sum(verdict.answered for verdict in verdicts)
        return credit_score(parts, verdicts, {"parts": len(parts), "answered": answered})


_NO_DIRECTION = "the embedder gives the reference or the response no direction"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCorrectness(ResponseMetric):
    """Agreement of the response's statements with those of the reference (F measure).

    Meaning: agreement with the reference
    Formula: F measure of precision (statements of the response that the reference supports) and recall (statements of
        the reference that the response supports); with a similarity_weight w, (1 - w) F + w times the cosine of both
        texts' embeddings, 0 if it is negative. Each verdict counts as its probability if the judge's probabilities are
        averaged.
    Questions: Two Statements questions, and one Support question for each distinct statement of both texts; one
        Embeddings question with a similarity_weight.
    Undefined: the reference is blank | the reference makes no statement | the embedder gives the reference or the
        response no direction (similarity_weight above 0)
    Use: To see whether answers are right, if there are references.
    Not: With references that are only one of many right answers, or without references: faithfulness judges whether the
        contexts support the answer.
    See: faithfulness | noise_sensitivity | answer_completeness
    Source: Answer correctness of the ragas library; statements are judged against the whole text here. | Ru et al.
        2024, RAGChecker (arXiv 2408.08067): claim precision, recall and F1.

    F = (1 + beta²) P R / (beta² P + R), 0 when P or R is. 0 when the response is blank, declines, or states nothing.

    Differences from the ragas library: each statement of one text is judged against the whole other text, not matched
    with its statements; precision and recall count the statements of their own text; and similarity has no weight by
    default.
    """

    name = "answer_correctness"
    version = 2
    needs = frozenset({"response", "reference"})

    beta: float = 1.0
    """The weight of recall relative to precision, above 0."""
    similarity_weight: float = 0.0
    """The weight of the embeddings' similarity in the value, in [0, 1]."""

    def __post_init__(self) -> None:
        if not 0 < self.beta < inf:
            raise UsageError(f"Metric {self.name!r} takes beta=a number above 0, got {self.beta}.")
        if not 0 <= self.similarity_weight <= 1:
            raise UsageError(f"Metric {self.name!r} takes similarity_weight=0 to 1, got {self.similarity_weight}.")

    @property
    def asks(self) -> Kinds:
        """Statements and Support unless the similarity weight is 1; Embeddings if it is above 0."""
        kinds: Kinds = frozenset({Statements, Support}) if self.similarity_weight < 1 else frozenset()
        return kinds | {Embeddings} if self.similarity_weight > 0 else kinds

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("response")
        if states_nothing(sample, "reference"):
            return Undefined(BLANK_REFERENCE)
        agreement, likeness = yield from both(self._agreement(sample), self._likeness(sample))
        if isinstance(agreement, Undefined):
            return agreement
        if likeness is None:
            return Undefined(_NO_DIRECTION)
        weight = self.similarity_weight
        return replace(agreement, value=(1 - weight) * agreement.value + weight * likeness)

    def _agreement(self, sample: Sample) -> Plan[Score | Undefined]:
        """Return the agreement of the statements of both texts, with the verdicts."""
        if self.similarity_weight == 1:
            return Score(0.0)
        # a plan for each text that has a sentence: none or one
        of_response = together([] if states_nothing(sample, "response") else [statements_of(sample, "response")])
        found, reference = yield from both(of_response, statements_of(sample, "reference"))
        response = next(iter(found), ())
        if not reference:
            return Undefined(REFERENCE_STATES_NOTHING)
        right, covered = yield from both(
            support_by(sample, "reference", response), support_by(sample, "response", reference)
        )
        precision = mean_credit(right) if response else 0.0
        return Score(
            f_measure(precision, mean_credit(covered), beta=self.beta),
            about_statements(response, right) + about_statements(reference, covered),
            {
                "statements": len(response),
                "supported": sum(verdict.supported for verdict in right),
                "reference_statements": len(reference),
                "covered": sum(verdict.supported for verdict in covered),
            },
            averaged=any_averaged((*right, *covered)),
        )

    def _likeness(self, sample: Sample) -> Plan[float | None]:
        """Return the cosine of both texts, at least 0; None if it is undefined."""
        if not self.similarity_weight or states_nothing(sample, "response"):
            return 0.0
        texts = (sample.require("reference"), sample.require("response"))
        matrix = yield from ask(Embeddings(texts, language=sample.resolved_language))
        found = cosine(matrix.row(0), matrix.row(1))
        return None if found is None else max(0.0, found)


# -- nuggets -------------------------------------------------------------------------------------------

_NOTHING_COUNTS: Final = "the sample has no vital nugget, and okay ones have the weight 0"


@dataclass(frozen=True, slots=True)
class NuggetRecall(ResponseMetric):
    """Share of the question's nuggets, weighted by importance, that the response states.

    Meaning: expected facts that are stated
    Formula: Weights of the stated nuggets / weights of all nuggets; a vital nugget has the weight 1. Each verdict
        counts as its probability if the judge's probabilities are averaged.
    Questions: One Support question for each nugget.
    Undefined: the sample has no nuggets | nuggets are not a list of texts, or of objects with "text" and "vital" or
        "importance" | the sample has no vital nugget, and okay ones have the weight 0
    Use: To see whether answers say what matters, with facts that are stored once and used for every system.
    Not: To see whether the rest of the answer is true: also use faithfulness.
    See: answer_correctness | answer_completeness
    Source: After the AutoNuggetizer framework, Pradeep et al. 2024 (arXiv 2411.09607); strict scores.

    Nuggets are the facts that a good answer has, in the metadata of the sample or in a column `nuggets`: a list of
    texts, or of objects with `text` and `vital` (or `importance`: "vital" or "okay"). 0 when the response is blank;
    no question is asked then.

    - `okay_weight`: the weight of a nugget that is not vital, in [0, 1]: 0.5 weighted, 0 vital nuggets only, 1 all.

    Differences from the AutoNuggetizer framework: nuggets are judged one by one, and there is no partial support.
    """

    name = "nugget_recall"
    version = 2
    needs = frozenset({"response"})
    truth_in_metadata = frozenset({NUGGETS})
    asks = Kinds({Support})

    okay_weight: float = 0.5
    """The weight of a nugget that is not vital, in [0, 1]."""

    def __post_init__(self) -> None:
        if not 0 <= self.okay_weight <= 1:
            raise UsageError(f"Metric {self.name!r} takes okay_weight=a number from 0 to 1, got {self.okay_weight}.")

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("response")
        try:
            found = nuggets_in(sample.metadata)
        except NuggetError as error:
            return Undefined(str(error))
        weights = [1.0 if nugget.vital else self.okay_weight for nugget in found]
        whole = fsum(weights)
        if not whole:
            return Undefined(_NOTHING_COUNTS if found else NO_NUGGETS)
        statements = [DistinctStatement(index, nugget.text) for index, nugget in enumerate(found)]
        verdicts = yield from support_by(sample, "response", statements)
        stated = fsum(weight * verdict.credit for weight, verdict in zip(weights, verdicts, strict=True))
        vital = [verdict.supported for nugget, verdict in zip(found, verdicts, strict=True) if nugget.vital]
        return Score(
            min(stated / whole, 1.0),
            evidence=about_statements(statements, verdicts),
            counts={
                "nuggets": len(found),
                "stated": sum(verdict.supported for verdict in verdicts),
                "vital": len(vital),
                "vital_stated": sum(vital),
            },
            averaged=any_averaged(verdicts),
        )


METRICS: Final = (AnswerRelevancy, AnswerCompleteness, AnswerCorrectness, NuggetRecall)
