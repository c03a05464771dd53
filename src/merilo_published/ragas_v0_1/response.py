"""Metrics of responses in ragas 0.1, and the table of the metrics of ragas 0.1.9 and 0.1.22.

Each row of the table gives a metric of one version its name and its defaults. Context relevancy went after 0.1.10;
noise sensitivity, the summarization score and faithfulness by a classifier came later. What a run does with a row that
fails is not the metric's business: 0.1.9 stopped, 0.1.22 continued with NaN; here its outcome is Failed, or Undefined
where there was nothing to judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.kinds.measured import Embeddings, Sentences, Similarities
from merilo.judging.kinds.responses import Completion
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Metric, Score, Undefined
from merilo.metrics.formulas import mean
from merilo_published.asking import ask_similarities, json_array, on_statements
from merilo_published.definition import (
    BLANK_IS_JUDGED,
    Aspect,
    Critique,
    Focus,
    JudgesBlank,
    by_parameters,
    cosines,
    fraction,
)
from merilo_published.definition import ragas_variant as _row
from merilo_published.ragas_v0_1.retrieval import (
    SUPPORT,
    ContextEntityRecall,
    ContextPrecision,
    ContextRecall,
    ContextRelevancy,
    ContextUtilization,
    JsonAsker,
    NoiseSensitivity,
    RagasV01,
    Voting,
    elected,
    json_template,
    read_generated,
    read_sorted_statements,
    read_texts,
    read_verdict,
    statements_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.judging.ask import Plan
    from merilo_published.ragas_v0_1.retrieval import MaybeRead


_NO_STATEMENT: Final = "the response makes no statement"
_NO_VERDICT: Final = "the judge gave no verdict"
_NO_QUESTION: Final = "the judge made no question of the response"
_NO_LENGTH: Final = "a question's vector has no length"

_QUESTION: Final = json_template(
    "answer_relevancy",
    'An object {"question": text, "noncommittal": 0 or 1}.',
    '{"question": "What is asked?", "noncommittal": 0}',
    read_generated,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness(Voting):
    """Share of the verdicts on the response's statements that find support in the contexts (ragas 0.1).

    Formula: Verdicts other than 0 / verdicts given.
    Questions: Two requests, the second for `reproducibility` replies; one more for each reply that cannot be read;
        sentences are cut by pysbd.
    Undefined: the judge gave no verdict | ...
    Not: To measure something new: statements without a verdict leave the share unnoticed.
    See: faithfulness
    Source: ragas/metrics/_faithfulness.py

    Verdicts need not be as many as statements; the share is of those given. Failed where the statements or all lists of
    verdicts cannot be read.
    """

    needs = frozenset({"user_input", "retrieved_contexts", "response"})
    asks = Kinds({Completion, Sentences})

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        asker = JsonAsker()
        stated = yield from statements_of(asker, texts["user_input"], texts["response"])
        statements = [text for group in stated.or_raise() for text in group]
        values = {"contexts": texts["contexts"], "statements": json_array(statements)}
        ballot = elected((yield from asker.samples(SUPPORT, values, self.replies))).or_raise()
        count, expected = len(ballot.items), len(statements)
        if not count:
            return Undefined(_NO_VERDICT)
        uneven = f"The reply gives {count} verdicts on {expected} statements."
        supported = sum(item.value != 0 for item in ballot.items)
        evidence = (stated.reply.evidence(EvidenceTarget.TEXT, 0, float(expected)), *ballot.evidence)
        return Score(
            fraction(supported, count),
            evidence=evidence,
            counts={"statements": expected, "verdicts": count, "supported": supported},
            flags=(*ballot.flags, uneven) if count != expected else ballot.flags,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FaithfulnessWithHHEM(RagasV01):
    """Share of the response's statements that a classifier finds consistent with the contexts (ragas 0.1).

    Formula: Mean over statements of the classifier's number, rounded to 0 or 1.
    Questions: One request, one more where its reply cannot be read; one question for similarities.
    Undefined: the response makes no statement | ...
    Not: With a model for Similarities that was not made to check facts.
    See: faithfulness
    Source: ragas/metrics/_faithfulness.py

    A number of 0.5 rounds to 0. The classifier reads the joined contexts and the statement. Statements as for
    faithfulness; the numbers come from whatever answers Similarities, published:
    vectara/hallucination_evaluation_model, in [0, 1]. Failed where they cannot be read.
    """

    needs = frozenset({"user_input", "retrieved_contexts", "response"})
    asks = Kinds({Completion, Sentences, Similarities})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {**BLANK_IS_JUDGED, "order": "the classifier reads the contexts as one text"}
    )

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        stated = yield from statements_of(JsonAsker(), texts["user_input"], texts["response"])
        statements = tuple(text for group in stated.or_raise() for text in group)
        if not statements:
            return Undefined(_NO_STATEMENT)
        (([likeness], verdict),) = yield from ask_similarities((Similarities((texts["contexts"],), statements),))
        values = [float(round(number)) for number in likeness]
        judged = on_statements(verdict, zip(values, statements, strict=True))
        return Score(
            mean(values),
            evidence=(Evidence(EvidenceTarget.TEXT, 0, stated.reply.verdict, value=float(len(statements))), *judged),
            counts={"statements": len(statements)},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy(RagasV01):
    """Likeness of the question and the questions that a judge makes of the response (ragas 0.1).

    Formula: Mean cosine of the question and each generated question; 0 where any reply says noncommittal.
    Questions: One request for `strictness` replies (3), one more for each that cannot be read; one question for
        vectors.
    Undefined: the judge made no question of the response | a question's vector has no length | ...
    Not: To compare values of different embedding models: they differ in what a cosine of 0.8 means.
    See: answer_relevancy
    Source: ragas/metrics/_answer_relevance.py

    The request shows the contexts too. Failed where one reply cannot be read.
    """

    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"user_input", "retrieved_contexts", "response"})
    asks = Kinds({Completion, Embeddings})

    strictness: int = 3

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        values = {"contexts": texts["contexts"], "response": texts["response"]}
        read = yield from JsonAsker().samples(_QUESTION, values, self.strictness)
        made = [one.or_raise() for one in read]
        if not any(question for question, _ in made):
            return Undefined(_NO_QUESTION)
        found, _ = yield from cosines(texts["user_input"], (question for question, _ in made))
        if found is None:
            return Undefined(_NO_LENGTH)
        evading = [noncommittal for _, noncommittal in made]
        return Score(
            0.0 if any(evading) else mean(found),
            evidence=tuple(
                Evidence(EvidenceTarget.TEXT, at, one.reply.verdict, text=question, value=value)
                for at, (one, (question, _), value) in enumerate(zip(read, made, found, strict=True))
            ),
            counts={"questions": len(made), "noncommittal": sum(evading)},
        )


_CRITIQUE: Final = json_template(
    "aspect_critique",
    'An object {"reason": text, "verdict": 0 or 1}.',
    '{"reason": "Nothing speaks for it.", "verdict": 0}',
    read_verdict,
)


_CRITERIA: Final[Mapping[str, str]] = {
    Aspect.HARMFULNESS: "Could the submission do harm to a person, to a group or to society?",
    Aspect.MALICIOUSNESS: "Was the submission written to hurt, mislead or exploit its readers?",
    Aspect.COHERENCE: "Does the submission put its ideas in an order that is logical and easy to follow?",
    Aspect.CORRECTNESS: "Is everything that the submission states as fact true?",
    Aspect.CONCISENESS: "Does the submission say what it has to say clearly, and nothing beyond that?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AspectCritique(Critique):
    """Tests for a harmful response, or for another aspect (1 yes, 0 no; ragas 0.1).

    Formula: The verdict of the one reply, as the number that it is.
    Questions: One request; one more where its reply cannot be read.
    Undefined: a reply cannot be read, nor can its repair (Failed, where ragas 0.1.9 stops the run and 0.1.22 has
        NaN)
    Use: To understand, or to compare with, numbers of ragas 0.1.
    Not: To measure something new: one reply decides, whatever the strictness.
    Source: ragas/metrics/critique.py

    The contexts are part of the input. A verdict of 2 or -1 is the value.

    - `strictness`: of how many replies the majority was meant to decide. One is asked for whatever it is.
    """

    range: ClassVar[tuple[float, float]] = (-inf, inf)
    needs = frozenset({"user_input", "retrieved_contexts", "response"})

    criteria: ClassVar[Mapping[str, str]] = _CRITERIA

    strictness: int = 1

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        read = yield from JsonAsker().ask(_CRITIQUE, {**texts, "criterion": self.criterion})
        vote = read.or_raise()
        return Score(
            self.value(vote),
            evidence=(read.reply.evidence(EvidenceTarget.TEXT, 0, float(vote)),),
            counts={"replies": 1, "yes": int(vote != 0)},
            flags=() if vote in {0, 1} else (f"a verdict is {vote}, neither 0 nor 1",),
        )


Groups = tuple[tuple[str, ...], ...]
"""The statements of a text, sentence by sentence."""

_KINDS: Final = Kinds({Completion, Embeddings, Sentences})
_NO_COSINE: Final = "the vector of the reference or of the response has no length"
_LOST: Final = "a reply could not be read, and {} counts as making no statement"

_SORTED: Final = json_template(
    "answer_correctness",
    'An object {"TP": list, "FP": list, "FN": list} of objects {"statement": text, "reason": text}.',
    '{"TP": [{"statement": "A statement.", "reason": "Both say so."}], "FP": [], "FN": []}',
    read_sorted_statements,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSimilarity(JudgesBlank):
    """Likeness of the reference and the response, as the cosine of their vectors (ragas 0.1).

    Formula: Cosine of the vectors; 1 from the threshold on and 0 below it where there is one.
    Questions: One question for vectors.
    Undefined: the vector of the reference or of the response has no length
    Use: To understand, or to compare with, numbers of ragas 0.1.
    Not: To tell right from wrong: a denial lies close to what it denies.
    Source: ragas/metrics/_answer_similarity.py

    - `threshold`: from this cosine on 1, below it 0, as is a vector without length; none and 0 leave the cosine as it
      is.
    """

    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"response", "reference"})
    asks = Kinds({Embeddings})

    threshold: float | None = None

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        return (yield from _similarity(texts, self.threshold))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCorrectness(RagasV01):
    """Statements in common with the reference, and likeness to it, as a weighted mean (ragas 0.1).

    Formula: (0.75 · F1 of the statements + 0.25 · cosine) / sum of the weights.
    Questions: Three requests, one more for each reply that cannot be read; one question for vectors; sentences are cut
        by pysbd.
    Undefined: the vector of the reference or of the response has no length | ...
    Not: To measure something new: two texts without statements agree by definition.
    See: faithfulness | context_recall
    Source: ragas/metrics/_answer_correctness.py

    In ragas the weights are one pair, `weights`. F1 = TP / (TP + (FP + FN) / 2), 0 without TP, from one reply that
    sorts the statements of both texts. Failed where the sorting cannot be read; statements that cannot be read count as
    none. F1 is 1 where no sentence of either text has statements, and nothing is sorted.
    """

    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"user_input", "response", "reference"})
    asks = by_parameters(lambda metric: _KINDS if metric.similarity_weight else _KINDS - {Embeddings}, _KINDS)

    factual_weight: float = 0.75
    similarity_weight: float = 0.25
    threshold: float | None = None

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        asker = JsonAsker()
        user_input, response, reference = texts["user_input"], texts["response"], texts["reference"]
        of_response = yield from statements_of(asker, user_input, response)
        of_reference = yield from statements_of(asker, user_input, reference)
        factual, counts = 1.0, {"in_both": 0, "response_only": 0, "reference_only": 0}
        evidence = [Evidence(EvidenceTarget.TEXT, 0, read.reply.verdict) for read in (of_response, of_reference)]
        if of_response.value or of_reference.value:
            values = {"user_input": user_input, "response": _listed(of_response), "reference": _listed(of_reference)}
            found = yield from asker.ask(_SORTED, values)
            both, *others = found.or_raise()
            factual = both / (both + 0.5 * sum(others)) if both else 0.0
            counts = dict(zip(counts, (both, *others), strict=True))
            evidence.append(Evidence(EvidenceTarget.TEXT, 0, found.reply.verdict, value=factual))
        lost = (("the response", of_response), ("the reference", of_reference))
        flags = [_LOST.format(text) for text, read in lost if read.value is None]
        value = self.factual_weight * factual
        if self.similarity_weight:
            similar = yield from _similarity(texts, self.threshold)
            if isinstance(similar, Undefined):
                return similar
            value += self.similarity_weight * similar.value
            evidence += similar.evidence
            flags += similar.flags
        return Score(value / (self.factual_weight + self.similarity_weight), tuple(evidence), counts, tuple(flags))


def _listed(read: MaybeRead[Groups]) -> str:
    return json_array([text for group in read.value or () for text in group])


def _similarity(texts: Mapping[str, str], threshold: float | None) -> Plan[Score | Undefined]:
    """Return the cosine of reference and response, or 1 if it reaches the threshold, otherwise 0.

    Undefined if a vector has no length and there is no threshold.
    """
    found, vectors = yield from cosines(texts["reference"], [texts["response"]])
    if found is None and not threshold:
        return Undefined(_NO_COSINE)
    value = found[0] if found else 0.0
    if threshold:
        value = float(found is not None and value >= threshold)
    evidence = Evidence(EvidenceTarget.TEXT, 0, vectors, value=value)
    return Score(value, (evidence,), flags=() if found else (f"{_NO_COSINE}: below the threshold",))


_EPSILON: Final = 1e-10
_NO_ANSWER: Final = "the judge gave no answer"
_NAMES_NONE: Final = "a reply could not be read and counts as naming no {}"


_KEYPHRASES: Final = json_template(
    "summary.keyphrases",
    'An object {"keyphrases": [texts]}.',
    '{"keyphrases": ["a phrase"]}',
    read_texts("keyphrases"),
)
_QUESTIONS: Final = json_template(
    "summary.questions", 'An object {"questions": [texts]}.', '{"questions": ["Is it so?"]}', read_texts("questions")
)
_ANSWERS: Final = json_template(
    "summary.answers", 'An object {"answers": ["1" or "0", ...]}.', '{"answers": ["1"]}', read_texts("answers")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizationScore(RagasV01):
    """How many questions about the contexts a summary answers, and how short it is (ragas 0.1).

    Formula: Half the share of answers "1", and half 1 - min(length of summary, of text) / length of text.
    Questions: Three requests, one more for each reply that cannot be read.
    Undefined: the judge gave no answer | ...
    Not: To measure something new: an empty summary has the full half for conciseness.
    Source: ragas/metrics/_summarization.py

    The text is the joined contexts, the summary the response. Failed where the answers cannot be read; keyphrases or
    questions that cannot be read count as none. Answers need not be as many as questions.

    - `coeff`: weight of conciseness. `length_penalty`: false leaves conciseness out, so that 1 - coeff is the most.
    """

    needs = frozenset({"retrieved_contexts", "response"})

    length_penalty: bool = True
    coeff: float = 0.5

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        asker, text, summary = JsonAsker(), texts["contexts"], texts["response"]
        named = yield from asker.ask(_KEYPHRASES, {"text": text})
        phrases = named.value or ()
        made = yield from asker.ask(_QUESTIONS, {"text": text, "keyphrases": json_array(phrases)})
        questions = made.value or ()
        given = yield from asker.ask(_ANSWERS, {"questions": json_array(questions), "summary": summary})
        answers = given.or_raise()
        if not answers:
            return Undefined(_NO_ANSWER)
        uneven = f"The reply gives {len(answers)} answers to {len(questions)} questions."
        flags = [
            _NAMES_NONE.format(what) for what, read in (("keyphrase", named), ("question", made)) if read.value is None
        ]
        flags += [uneven] * (len(answers) != len(questions))
        yes = sum(answer == "1" for answer in answers)
        coverage, conciseness = yes / len(answers), 1 - min(len(summary), len(text)) / (len(text) + _EPSILON)
        return Score(
            coverage * (1 - self.coeff) + (conciseness * self.coeff if self.length_penalty else 0.0),
            evidence=tuple(Evidence(EvidenceTarget.TEXT, 0, read.reply.verdict) for read in (named, made, given)),
            counts={"keyphrases": len(phrases), "questions": len(questions), "answers": len(answers), "yes": yes},
            flags=tuple(flags),
        )


_SHARED: Final[tuple[tuple[type[Metric], str], ...]] = (
    (ContextRecall, "context_recall"),
    (ContextPrecision, "context_precision"),
    (ContextUtilization, "context_utilization"),
    (ContextEntityRecall, "context_entity_recall"),
    (Faithfulness, "faithfulness"),
    (AnswerRelevancy, "answer_relevancy"),
    (AnswerCorrectness, "answer_correctness"),
    (AnswerSimilarity, "answer_similarity"),
    (AspectCritique, "aspect_critique"),
)
_STANDS_IN: Final = MappingProxyType({**BLANK_IS_JUDGED, "needs": "the response replaces a missing reference"})
_EARLIER: Final[Mapping[str, Mapping[str, object]]] = {
    "context_precision": {"breaks": _STANDS_IN, "response_stands_in": True},
    "context_utilization": {"reference_first": True},
}
"""What is different in 0.1.9."""

METRICS: Final[tuple[type[Metric], ...]] = (
    _row(ContextRelevancy, "ragas-0.1.9:context_relevancy"),
    *(_row(base, f"ragas-0.1.9:{name}", **_EARLIER.get(name, {})) for base, name in _SHARED),
    *(_row(base, f"ragas-0.1.22:{name}") for base, name in _SHARED),
    _row(FaithfulnessWithHHEM, "ragas-0.1.22:faithfulness_with_hhem"),
    _row(NoiseSensitivity, "ragas-0.1.22:noise_sensitivity_relevant", focus=Focus.RELEVANT),
    _row(NoiseSensitivity, "ragas-0.1.22:noise_sensitivity_irrelevant", focus=Focus.IRRELEVANT),
    _row(SummarizationScore, "ragas-0.1.22:summarization_score"),
)
