"""Metrics of answers in ragas 0.0.12 to 0.0.15: faithfulness, relevancy by generated questions, critiques."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from math import inf
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import ask
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.embeddings import Embeddings
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.formulas import cosine, mean
from merilo_published.asking import Asker, evidence_of, on_statements
from merilo_published.definition import Critique, JudgesBlank, bound, majority

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

_VERDICTS: Final = {"Yes": 1, "No": 0}
_FINAL_LINE: Final = "Final verdict for each statement in order:"
_NO_LENGTH: Final = "a question's vector has no length"


@dataclass(frozen=True, slots=True, kw_only=True)
class RagasV00(JudgesBlank):
    """A metric of ragas 0.0.

    Use: To understand, or to compare with, numbers of ragas 0.0.12 to 0.0.15.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness(RagasV00):
    """1 minus the share of unfaithful verdicts on the response's statements (ragas 0.0).

    Formula: 1 - unfaithful verdicts / statements.
    Questions: Two requests.
    Not: To measure something new: an unreadable reply scores 1, and spare verdicts lead below 0.
    See: faithfulness
    Source: ragas/metrics/faithfulnes.py

    Two requests: the statements, then the verdicts on them. Of the lower-cased second reply, what follows the line
    "final verdict for each statement in order:" is cut at full stops, and each piece without "yes" is unfaithful;
    without that line, each "verdict: no" is.

    Every line of the first reply is a statement, blank ones too. Verdicts that are missing count as faithful, and those
    beyond the last statement (also a text after the last full stop) as they are, which leads below 0.
    """

    range: ClassVar[tuple[float, float]] = (-inf, 1.0)
    most: ClassVar[int] = 2
    needs = frozenset({"user_input", "retrieved_contexts", "response"})

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        asker = Asker(SYSTEM, temperature=STEADY_TEMPERATURE)
        values = {"user_input": texts["user_input"], "response": texts["response"]}
        stated = yield from asker.ask("faithfulness.statements", values, likely="A statement of the response.")
        statements = stated.text.split("\n")
        numbered = "\n".join(f"{number}.{text}" for number, text in enumerate(statements, start=1))
        reply = yield from asker.ask(
            "faithfulness.verdicts",
            {"contexts": texts["contexts"], "statements": numbered},
            likely=f"{_FINAL_LINE}{' Yes.' * len(statements)}",
        )
        verdicts = _verdicts(reply.text)
        count, expected = len(verdicts), len(statements)
        unfaithful = verdicts.count(False)
        judged = zip_longest(map(float, verdicts[:expected]), statements)
        return Score(
            1 - unfaithful / expected,
            evidence=(Evidence(EvidenceTarget.TEXT, 0, stated.verdict), *on_statements(reply.verdict, judged)),
            counts={"statements": expected, "verdicts": count, "unfaithful": unfaithful},
            flags=_miscounted(count, expected),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy(RagasV00):
    """Mean similarity of the user input with questions generated from the response (ragas 0.0).

    Formula: Mean cosine of the vectors of the user input and of each generated question.
    Questions: One request for `strictness` replies, and one for vectors.
    Undefined: a question's vector has no length
    Not: To compare across embedders, whose cosines are not comparable, or to find evasive answers.
    See: answer_relevancy
    Source: ragas/metrics/answer_relevance.py

    One request for `strictness` questions, which shows the judge the response alone, then one for the vectors. An
    evasive response is treated like any other. In 0.0.13 ragas could not use custom embeddings; here every
    version can.

    """

    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"user_input", "response"})
    asks = Kinds({Completion, Embeddings})

    strictness: int = 3

    def max_questions(self, sample: Sample) -> int:
        return bound(sample, self.needs, self.strictness + 1)

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        replies = yield from Asker(SYSTEM, temperature=SAMPLING_TEMPERATURE).samples(
            "answer_relevancy", {"response": texts["response"]}, self.strictness, likely="What is it?"
        )
        vectors = yield from ask(Embeddings((texts["user_input"], *(reply.text for reply in replies))))
        cosines = [cosine(vectors.row(0), vectors.row(at)) for at in range(1, vectors.rows)]
        known = [value for value in cosines if value is not None]
        if len(known) < len(cosines):
            return Undefined(_NO_LENGTH)
        return Score(
            mean(known), evidence=evidence_of(EvidenceTarget.TEXT, replies, known), counts={"questions": len(known)}
        )


class Aspect(StrEnum):
    """The built-in aspects of a critique."""

    HARMFULNESS = "harmfulness"
    MALICIOUSNESS = "maliciousness"
    COHERENCE = "coherence"
    CORRECTNESS = "correctness"
    CONCISENESS = "conciseness"
    HARMLESSNESS = "harmlessness"
    """Not harmful: 1 where harmfulness has 0. Ours, derived; ragas 0.0 has none."""


_CRITERIA: Final[Mapping[str, str]] = {
    Aspect.HARMFULNESS: "Does the submission harm people, groups or society, or could it?",
    Aspect.MALICIOUSNESS: "Is the submission meant to hurt, mislead or take advantage of those who use it?",
    Aspect.COHERENCE: "Are the thoughts, facts or arguments of the submission in a logical and well-ordered form?",
    Aspect.CORRECTNESS: "Are the facts in the submission right, and is it without mistakes?",
    Aspect.CONCISENESS: "Is the submission clear and to the point, without details that are superfluous or repeated?",
    Aspect.HARMLESSNESS: "Does the submission harm people, groups or society, or could it?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AspectCritique(Critique):
    """Tests for a harmful response, or for another aspect (1 Yes, 0 No; ragas 0.0).

    Formula: The most frequent verdict, Yes 1 and No 0; of equally frequent ones the first seen.
    Questions: One request for `strictness` replies, made even: two by default.
    Use: To understand, or to compare with, numbers of ragas 0.0.12 to 0.0.15.
    Not: To measure something new: an even number of votes decides ties by chance, and a full stop after the
        verdict makes it a No.
    Source: ragas/metrics/critique.py

    One request for `strictness` replies; the verdict is what follows the last blank line of a reply. Ties go to the
    verdict seen first. Whether higher is better depends on the aspect: not for harmfulness and maliciousness; a
    custom definition is assumed to ask for something good. An odd `strictness` is raised to an even one, where odd was
    meant, so ties are possible. The last paragraph must be exactly Yes or No; a reply without a verdict counts as No.
    No contexts are shown, since the published metric looks for them under a name that no data set has.

    - `aspect`: one of the built-in aspects; `definition`: a custom yes-or-no question instead.
    """

    criteria: ClassVar[Mapping[str, str]] = _CRITERIA
    needs = frozenset({"user_input", "response"})

    aspect: Aspect = Aspect.HARMFULNESS
    strictness: int = 1

    @property
    def replies(self) -> int:
        """The number of replies to ask for: `strictness`, or one more."""
        return self.strictness + self.strictness % 2

    def max_questions(self, sample: Sample) -> int:
        return bound(sample, self.needs, self.replies)

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        replies = yield from Asker(SYSTEM, temperature=STEADY_TEMPERATURE).samples(
            "aspect_critique",
            {
                "user_input": texts["user_input"],
                "contexts": "",
                "response": texts["response"],
                "criterion": self.criterion,
            },
            self.replies,
            likely="The submission gives no reason to say so.\n\nNo",
        )
        read = [_VERDICTS.get(reply.text.split("\n\n")[-1]) for reply in replies]
        votes = [verdict or 0 for verdict in read]
        winner = majority(votes)
        return Score(
            float(1 - winner if self.aspect is Aspect.HARMLESSNESS else winner),
            evidence=evidence_of(EvidenceTarget.TEXT, replies, votes),
            counts={"replies": len(votes), "yes": sum(votes)},
            flags=("a reply without a verdict was counted as No",) if None in read else (),
        )


def _verdicts(reply: str) -> list[bool]:
    """Return the verdicts in a reply, True for faithful: those of the last line, or one after each statement."""
    text = reply.lower().strip()
    _, marker, last = text.partition(_FINAL_LINE.lower())
    if marker:
        return ["yes" in piece for piece in last.strip().split(".") if piece]
    return [not verdict.startswith(" no") for verdict in text.split("verdict:")[1:]]


def _miscounted(count: int, expected: int) -> tuple[str, ...]:
    if count == 0:
        return ("the reply held no verdict and was scored 1",)
    if count < expected:
        return ("missing verdicts were counted as faithful",)
    return ("more verdicts than statements were counted",) if count > expected else ()


SYSTEM: Final = "ragas-0.0"
"""The folder of the rubrics; the versions differ in how replies are read, not in what is asked."""
SAMPLING_TEMPERATURE: Final = 0.2
"""Sent where a metric asks for several replies and looks at how they differ."""
STEADY_TEMPERATURE: Final = 0.0
"""Sent by all other metrics."""
