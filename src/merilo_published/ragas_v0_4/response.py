"""Metrics of the response in ragas 0.2 to 0.4: faithfulness, answer relevancy, a custom aspect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import ask
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.embeddings import Embeddings
from merilo.judging.kinds.similarities import Similarities
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.formulas import cosine, mean
from merilo_published.asking import ask_similarities, on_statements
from merilo_published.ragas_v0_4.prompter import (
    VERDICT,
    JudgedMetric,
    Prompter,
    RagasV04ReplySchema,
    RefusesEmpty,
    ask_statements,
    ask_verdicts,
)
from merilo_published.replies import text_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo_published.asking import ReadReply
    from merilo_published.ragas_v0_4.prompter import Whole
    from merilo_published.replies import Fields

_NO_STATEMENT: Final = "the response makes no statement"
_ASPECT_FIELDS: Final = ("user_input", "response", "retrieved_contexts", "reference", "reference_contexts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness(RefusesEmpty):
    """Which share of the response's statements the contexts support, as ragas scores it.

    Formula: Supported / verdicts returned.
    Questions: Two requests: the statements of the response, then a verdict on each in one reply.
    Undefined: the response makes no statement | the judge returned no verdict | an input is empty (collections)
    Use: To compare with faithfulness of ragas 0.2 to 0.4.
    Not: For new work: take faithfulness, which notices when a verdict is missing.
    See: faithfulness | ragas-0.4.3:faithfulness_with_hhem | nvidia:response_groundedness
    Source: ragas 0.4.3, metrics/_faithfulness.py

    Quirks: fewer or more verdicts than statements are scored as they are, with a flag. `refuses_empty`: an empty input
    is undefined (collections), not judged.
    """

    name: ClassVar[str] = "ragas-0.4.3:faithfulness"
    most: ClassVar[int] = 2
    needs = frozenset({"user_input", "response", "retrieved_contexts"})

    def judged(self, sample: Sample, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        del sample
        prompter = self._prompter()
        found = yield from ask_statements(prompter, texts["user_input"], texts["response"])
        if not found.value:
            return Undefined(_NO_STATEMENT)
        return (yield from self._scored(prompter, found.value, texts["contexts"]))

    def _scored(self, prompter: Prompter, statements: tuple[str, ...], contexts: str) -> Plan[Score | Undefined]:
        read = yield from ask_verdicts(prompter, statements, contexts)
        returned, asked = len(read.value), len(statements)
        if not returned:
            return Undefined("the judge returned no verdict")
        flagged = [(int(item.value != 0), item.statement) for item in read.value]
        supported = sum(flag for flag, _ in flagged)
        flags = () if returned == asked else (f"{returned} verdicts came for {asked} statements",)
        counts = {"statements": asked, "verdicts": returned, "supported": supported}
        return Score(supported / returned, on_statements(read.reply.verdict, flagged), counts, flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaithfulnessWithHHEM(Faithfulness):
    """Which share of the response's statements a classifier finds consistent with the contexts.

    Formula: Mean over statements of the classifier's number, rounded to 0 or 1.
    Questions: One request for the statements of the response, and one for similarities.
    Undefined: the response makes no statement
    Use: To compare with faithfulness with HHEM of ragas 0.2 to 0.4.
    Not: With a model for similarities that was not made to check facts.
    See: faithfulness | ragas-0.4.3:faithfulness

    ragas uses Vectara's HHEM as the classifier; here it is the model that answers similarities, from the joined
    contexts to each statement. `refuses_empty` as in `Faithfulness`.
    """

    name: ClassVar[str] = "ragas-0.4.3:faithfulness_with_hhem"
    asks = Kinds({Completion, Similarities})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"nothing to judge": "refuses_empty", "order": "the contexts are compared as one text"}
    )

    def max_questions(self, sample: Sample) -> int:
        del sample
        return self._bound(1) + 1

    def _scored(self, prompter: Prompter, statements: tuple[str, ...], contexts: str) -> Plan[Score | Undefined]:
        del prompter
        (likeness,) = yield from ask_similarities((Similarities((contexts,), statements),))
        rounded = [round(number) for number in likeness.rows[0]]
        evidence = on_statements(likeness.verdict, zip(rounded, statements, strict=True))
        counts = {"statements": len(statements), "supported": sum(rounded)}
        return Score(mean(rounded), evidence, counts)


class Zeroes(StrEnum):
    """The noncommittal replies that make the score 0."""

    ALL = "all"
    """All of them (since 0.3.6)."""
    ANY = "any"
    """One is enough."""


@dataclass(frozen=True, slots=True)
class _Guessed:
    """A question that the judge made up for the response."""

    question: str
    noncommittal: bool


def _guessed(fields: Fields, whole: Whole) -> _Guessed:
    return _Guessed(text_in(fields, "question"), whole(fields, "noncommittal") != 0)


_GUESSED: Final = RagasV04ReplySchema(
    '{"question": text, "noncommittal": integer}', _guessed, '{"question": "What is it?", "noncommittal": 0}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy(RefusesEmpty):
    """How near the user input is to the questions that the response would answer, as ragas scores it.

    Formula: Mean cosine of the user input with the generated questions; 0 when they are noncommittal.
    Questions: One request for `strictness` replies (3), and one for the embeddings.
    Undefined: every generated question is empty | an embedding has no length | an input is empty (collections)
    Use: To compare with answer relevancy of ragas 0.2 to 0.4.
    Not: Across embedding models: the value moves with the model.
    See: answer_relevancy
    Source: ragas 0.4.3, metrics/_answer_relevance.py

    Quirks: `strictness`: how many questions. `one_request`: all are samples of one request at temperature 0.3,
    else one request follows another. `zeroed_by`: whether all replies must be noncommittal or one is enough (up
    to 0.3.5). `drops_empty`: empty questions are left out with their flags, and none left scores 0
    (collections); else they are embedded like the others. `refuses_empty` as in `Faithfulness`.
    Differs: a noncommittal response is not embedded, since its score is known.
    """

    name: ClassVar[str] = "ragas-0.4.3:answer_relevancy"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"user_input", "response"})
    asks = Kinds({Completion, Embeddings})

    strictness: int = 3
    one_request: bool = True
    zeroed_by: Zeroes = Zeroes.ALL
    drops_empty: bool = False

    def max_questions(self, sample: Sample) -> int:
        del sample
        return self._bound(self.strictness) + 1

    def judged(self, sample: Sample, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        del sample
        replies = yield from self._made_up(texts["response"])
        kept = [read for read in replies if read.value.question or not self.drops_empty]
        declined = [read.value.noncommittal for read in kept]
        evidence = tuple(read.evidence(EvidenceTarget.TEXT, 0, int(not read.value.noncommittal)) for read in replies)
        counts = {"questions": len(kept), "noncommittal": sum(declined)}
        if not any(read.value.question for read in kept):
            if not self.drops_empty:
                return Undefined("every generated question is empty")
            return Score(0.0, evidence, counts, ("every generated question was empty and scored 0",))
        if any(declined) if self.zeroed_by is Zeroes.ANY else all(declined):
            return Score(0.0, evidence, counts)
        vectors = yield from ask(Embeddings((texts["user_input"], *(read.value.question for read in kept))))
        found = [cosine(vectors.row(0), vectors.row(row)) for row in range(1, vectors.rows)]
        cosines = [each for each in found if each is not None]
        if len(cosines) < len(found):
            return Undefined("an embedding has no length")
        return Score(mean(cosines), (*evidence, Evidence(EvidenceTarget.TEXT, 0, vectors)), counts)

    def _made_up(self, response: str) -> Plan[tuple[ReadReply[_Guessed], ...]]:
        prompter, values = self._prompter(), {"response": response}
        if self.one_request:
            return (yield from prompter.samples("answer_relevancy", values, _GUESSED, self.strictness))
        found: list[ReadReply[_Guessed]] = []
        for _ in range(self.strictness):
            found.append((yield from prompter.ask("answer_relevancy", values, _GUESSED)))  # noqa: PERF401 - it yields
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class AspectCritic(JudgedMetric):
    """Whether a custom criterion holds, as one reply of the judge says.

    Formula: The integer verdict of the reply.
    Questions: One request, which shows every field that the sample has.
    Use: To compare with an aspect critic of ragas 0.2 to 0.4.
    Not: To vote: strictness has no effect.
    Source: ragas 0.4.3, metrics/_aspect_critic.py

    `definition`: the criterion, which upstream has no default for. Quirk: `strictness` changes nothing: one reply
    is asked for whatever it is.
    """

    name: ClassVar[str] = "ragas-0.4.3:aspect_critic"
    range: ClassVar[tuple[float, float]] = (float("-inf"), float("inf"))
    needs = frozenset[str]()
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "whatever is there is judged"})

    definition: str = "Does the response answer what the user asked, and is it right?"
    strictness: int = 1

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        submission: dict[str, object] = {}
        for field in _ASPECT_FIELDS:
            if field in sample.present:
                value = sample.require(field)
                submission[field] = value if isinstance(value, str) else [getattr(item, "text", item) for item in value]
        values = {"definition": self.definition, "submission": json.dumps(submission, ensure_ascii=False)}
        read = yield from self._prompter().ask("aspect", values, VERDICT)
        return Score(float(read.value), (read.evidence(EvidenceTarget.TEXT, 0, read.value),))
