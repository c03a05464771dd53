"""Response and reference in ragas 0.1: similarity and correctness; and the score of summaries."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.ask import ask
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.embeddings import Embeddings
from merilo.judging.kinds.sentences import Sentences
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.formulas import cosine
from merilo_published.definition import JudgesBlank, bound, by_parameters
from merilo_published.ragas_v0_1.asking import (
    JsonAsker,
    RagasV01,
    Sorted,
    json_template,
    read_sorted_statements,
    read_texts,
    statements_of,
)
from merilo_published.replies import json_array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo_published.ragas_v0_1.asking import MaybeRead


Groups = tuple[tuple[str, ...], ...]
"""The statements of a text, sentence by sentence."""

_KINDS: Final = Kinds({Completion, Embeddings, Sentences})
_NO_LENGTH: Final = "the vector of the reference or of the response has no length"
_LOST: Final = "a reply could not be read, and {} counts as making no statement"

_SORTED: Final = json_template(
    "answer_correctness",
    'An object {"TP": list, "FP": list, "FN": list} of objects {"statement": text, "reason": text}.',
    '{"TP": [{"statement": "A statement.", "reason": "Both say so."}], "FP": [], "FN": []}',
    read_sorted_statements,
)


@dataclass(frozen=True, slots=True)
class _Likeness:
    """The similarity of response and reference."""

    value: float
    evidence: Evidence
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSimilarity(JudgesBlank):
    """Likeness of the reference and the response, as the cosine of their vectors (ragas 0.1).

    Formula: Cosine of the vectors; 1 from the threshold on and 0 below it where there is one.
    Questions: One question for vectors.
    Undefined: the vector of the reference or of the response has no length
    Use: To understand, or to compare with, numbers of ragas 0.1.
    Not: To tell right from wrong: a denial lies close to what it denies.
    Source: ragas/metrics/_answer_similarity.py

    No request; one question for vectors.

    - `threshold`: from this cosine on 1, below it 0, as is a vector without length; none and 0 leave the cosine as it
      is.
    """

    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"response", "reference"})
    asks = Kinds({Embeddings})

    threshold: float | None = None

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        similarity = yield from _similarity(texts, self.threshold)
        if similarity is None:
            return Undefined(_NO_LENGTH)
        return Score(similarity.value, evidence=(similarity.evidence,), flags=similarity.flags)


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

    In ragas the weights are one pair, `weights`. In full: (factual_weight · F1 + similarity_weight · cosine) / sum of
    the weights, with F1 = TP / (TP + (FP + FN) / 2), 0 without TP, from one reply that sorts the statements of both
    texts. Statements are made of the response, then of the reference, as for faithfulness. The similarity is that of
    answer_similarity. Failed where the sorting cannot be read; statements that cannot be read count as none. F1 is 1
    where no sentence of either text has statements, and nothing is sorted.

    - `factual_weight`, `similarity_weight`: at least 0, not both 0. Without the second no vector is asked for.
    - `threshold`: as for answer_similarity.
    """

    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"user_input", "response", "reference"})
    asks = by_parameters(lambda metric: _KINDS if metric.similarity_weight else _KINDS - {Embeddings}, _KINDS)

    factual_weight: float = 0.75
    similarity_weight: float = 0.25
    threshold: float | None = None

    def __post_init__(self) -> None:
        weights = (self.factual_weight, self.similarity_weight)
        if not all(isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
            raise UsageError(
                f"Metric {self.name!r} takes factual_weight and similarity_weight of at least 0 and not both 0, "
                f"got {weights[0]!r} and {weights[1]!r}."
            )

    def max_questions(self, sample: Sample) -> int:
        return bound(sample, self.needs, 9 if self.similarity_weight else 8)

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        asker = JsonAsker()
        user_input, response, reference = texts["user_input"], texts["response"], texts["reference"]
        of_response = yield from statements_of(asker, user_input, response)
        of_reference = yield from statements_of(asker, user_input, reference)
        found = None
        if of_response.value or of_reference.value:
            values = {"user_input": user_input, "response": _listed(of_response), "reference": _listed(of_reference)}
            found = yield from asker.ask(_SORTED, values)
            found.or_raise()
        similarity = None
        if self.similarity_weight:
            similarity = yield from _similarity(texts, self.threshold)
            if similarity is None:
                return Undefined(_NO_LENGTH)
        return self._scored(of_response, of_reference, found, similarity)

    def _scored(
        self,
        of_response: MaybeRead[Groups],
        of_reference: MaybeRead[Groups],
        found: MaybeRead[Sorted] | None,
        similarity: _Likeness | None,
    ) -> Score:
        counts = found.or_raise() if found is not None else None
        factual = 1.0 if counts is None else _f1(counts)
        likeness = similarity.value if similarity is not None else 0.0
        value = self.factual_weight * factual + self.similarity_weight * likeness
        evidence = [Evidence(EvidenceTarget.TEXT, 0, read.reply.verdict) for read in (of_response, of_reference)]
        if found is not None:
            evidence.append(Evidence(EvidenceTarget.TEXT, 0, found.reply.verdict, value=factual))
        if similarity is not None:
            evidence.append(similarity.evidence)
        lost = (("the response", of_response), ("the reference", of_reference))
        return Score(
            value / (self.factual_weight + self.similarity_weight),
            evidence=tuple(evidence),
            counts={
                "in_both": counts.both if counts else 0,
                "response_only": counts.response_only if counts else 0,
                "reference_only": counts.reference_only if counts else 0,
            },
            flags=(
                *(_LOST.format(text) for text, read in lost if read.value is None),
                *(similarity.flags if similarity is not None else ()),
            ),
        )


def _f1(counts: Sorted) -> float:
    if not counts.both:
        return 0.0
    return counts.both / (counts.both + 0.5 * (counts.response_only + counts.reference_only))


def _listed(read: MaybeRead[Groups]) -> str:
    return json.dumps([text for group in read.value or () for text in group], ensure_ascii=False)


def _similarity(texts: Mapping[str, str], threshold: float | None) -> Plan[_Likeness | None]:
    """Return the cosine of reference and response, or 1 if it reaches the threshold, otherwise 0.

    None if a vector has no length and there is no threshold.
    """
    vectors = yield from ask(Embeddings((texts["reference"], texts["response"])))
    value = cosine(vectors.row(0), vectors.row(1))
    if value is None and not threshold:
        return None
    likeness = value or 0.0
    if threshold:
        likeness = float(value is not None and value >= threshold)
    evidence = Evidence(EvidenceTarget.TEXT, 0, vectors, value=likeness)
    return _Likeness(likeness, evidence, () if value is not None else (f"{_NO_LENGTH}: below the threshold",))


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

    In full: coverage · (1 - coeff) + conciseness · coeff, with coverage = answers "1" / answers and conciseness = 1 -
    min(characters of the summary, of the text) / (characters of the text + 1e-10). The text is the joined contexts. In
    ragas the summary has its own column. Three requests: keyphrases of the text, questions about them, answers by the
    summary. Failed where the answers cannot be read; keyphrases or questions that cannot be read count as none. Answers
    need not be as many as questions.

    - `coeff`: weight of conciseness, in [0, 1]. `length_penalty`: false leaves conciseness out, so that 1 - coeff is
      the most.
    """

    needs = frozenset({"retrieved_contexts", "response"})
    most: ClassVar[int] = 6

    length_penalty: bool = True
    coeff: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.coeff <= 1:
            raise UsageError(f"Metric {self.name!r} takes coeff=a number from 0 to 1, got {self.coeff!r}.")

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
