"""Each formula over our own verdicts equals the published definition that is given the same verdicts as replies."""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
from each_case import each_case

from merilo.data.sample import Sample
from merilo.judging.ask import Answer
from merilo.judging.kinds.contexts import (
    Relevance,
    RelevanceVerdict,
    Support,
    SupportLabel,
    SupportVerdict,
    Usefulness,
    UsefulnessVerdict,
)
from merilo.judging.kinds.measured import Sentences, Similarities, TextsVerdict
from merilo.judging.kinds.responses import (
    Addresses,
    AddressesVerdict,
    Completion,
    CompletionVerdict,
    Noncommittal,
    NoncommittalVerdict,
    Statement,
    Statements,
    StatementsVerdict,
)
from merilo.judging.questions import Question
from merilo.metrics.base import Score, Undefined, drive
from merilo.metrics.registry import known_metric
from merilo_published.lineage import FORMS, Lineage, SameVerdicts

NOT_COMPARABLE: Final = {
    "ragas-0.0.12:answer_relevancy": "the definition compares generated questions; it judges no statements",
    "ragas-0.1.9:answer_relevancy": "the definition compares generated questions; it judges no statements",
}
"""Definitions whose formula replaces a step, so that no replies say the same as our verdicts."""

RATES_THE_WHOLE: Final = {
    "nvidia:response_groundedness": "the definition rates the response; it takes no statements from it",
    "ares:answer_faithfulness": "the definition judges the response; it takes no statements from it",
    "trulens:relevance": "the definition rates the response; it takes no statements from it",
    "ares:answer_relevance": "the definition judges the response; it takes no statements from it",
}
"""Definitions that have another outcome than their formula for a text without statements: they look for none."""

_SENTENCES_EACH: Final = 2
_FOUR_LEVELS: Final = {0: 0, 1: 2, 2: 3}
_LABELS: Final = (SupportLabel.SUPPORTED, SupportLabel.NOT_STATED, SupportLabel.CONTRADICTED)
_CARRIED: Final = {
    SupportLabel.SUPPORTED: "Fully Supported",
    SupportLabel.NOT_STATED: "No Evidence",
    SupportLabel.CONTRADICTED: "Contradictory",
}
_PASSING: Final = {
    SupportLabel.SUPPORTED: "yes",
    SupportLabel.NOT_STATED: "borderline",
    SupportLabel.CONTRADICTED: "no",
}


@dataclass(frozen=True)
class Judgement:
    """All verdicts on one sample: on its contexts, and on the statements of its response, which is its reference."""

    grades: tuple[int, ...]
    useful: tuple[bool, ...]
    labels: tuple[SupportLabel, ...]
    addresses: tuple[bool, ...]

    @classmethod
    def drawn(cls, seed: int, contexts: int, statements: int) -> "Judgement":
        """Return random verdicts."""
        draw = random.Random(seed)
        return cls(
            tuple(draw.randrange(3) for _ in range(contexts)),
            tuple(draw.random() < 0.5 for _ in range(contexts)),
            tuple(draw.choice(_LABELS) for _ in range(statements)),
            tuple(draw.random() < 0.6 for _ in range(statements)),
        )

    @property
    def contexts(self) -> list[str]:
        """The texts of the contexts, of two sentences each."""
        return [f"Fact {at} is here. It has a number {at}." for at in range(len(self.grades))]

    @property
    def statements(self) -> list[str]:
        """The statements of the response."""
        return [f"Statement {at} holds." for at in range(len(self.labels))]

    @property
    def supported(self) -> list[bool]:
        """For each statement, whether the contexts support it."""
        return [label is SupportLabel.SUPPORTED for label in self.labels]

    @property
    def sample(self) -> Sample:
        """The sample that is judged."""
        text = " ".join(self.statements) or "Well."
        return Sample("a", user_input="Where is it?", retrieved_contexts=self.contexts, response=text, reference=text)

    def copied(self) -> list[str]:
        """The relevant sentences of the contexts."""
        sentences = [re.findall(r"[^.]+\.", text) for text in self.contexts]
        return [each.strip() for found, grade in zip(sentences, self.grades, strict=True) for each in found[:grade]]


def native(judgement: Judgement) -> Callable[[Question[Any]], Answer]:
    """Return a judge that answers our own questions with these verdicts."""

    def answer(question: Question[Any]) -> Answer:
        match question:
            case Relevance():
                grade = judgement.grades[judgement.contexts.index(" ".join(question.sentences))]
                return RelevanceVerdict(grade, tuple(range(grade)))
            case Usefulness():
                useful = judgement.useful[judgement.contexts.index(" ".join(question.sentences))]
                return UsefulnessVerdict(useful, (0,) if useful else ())
            case Statements():
                return StatementsVerdict(tuple(Statement(text, at) for at, text in enumerate(judgement.statements)))
            case Support():
                label = judgement.labels[judgement.statements.index(question.statement)]
                return SupportVerdict(label, () if label is SupportLabel.NOT_STATED else (0,))
            case Addresses():
                return AddressesVerdict(judgement.addresses[judgement.statements.index(question.statement)])
            case Noncommittal():
                return NoncommittalVerdict(noncommittal=False)
            case _:
                raise AssertionError(question)

    return answer


def published(judgement: Judgement, definition: str) -> Callable[[Question[Any]], Answer]:
    """Return a judge that gives a published definition these verdicts, in the replies that it asks for."""

    def answer(question: Question[Any]) -> Answer:
        match question:
            case Completion():
                rubric = question.rubric.removeprefix("en/published/").removesuffix(".v1")
                values = dict(zip(question.names, question.values, strict=True))
                reply = _reply(judgement, definition, rubric, values)
                return CompletionVerdict(reply if isinstance(reply, str) else json.dumps(reply))
            case Sentences():
                return TextsVerdict(tuple(each.strip() for each in re.findall(r"[^.]+\.", question.text)))
            case Similarities():
                return question.guess()
            case _:
                raise AssertionError(question)

    return answer


def _reply(judgement: Judgement, definition: str, rubric: str, values: dict[str, str]) -> object:
    """Return the reply of one system, as JSON or text."""
    system, _, name = rubric.partition("/")
    if name.endswith(".reason"):
        return {"reason": "A reason."}
    if name == "explanation":
        return {"explanation": "A reason."}
    text = values.get("context") or values.get("document") or values.get("text") or ""
    at = judgement.contexts.index(text) if text in judgement.contexts else None
    if system == "ragchecker":
        return _of_ragchecker(judgement, definition, name, at)
    return _OF_SYSTEM[system](judgement, name, values, at)


def _of_ragas_0_0(judgement: Judgement, name: str, _: dict[str, str], __: int | None) -> object:
    match name:
        case "context_relevancy":
            return "\n".join(judgement.copied()) or "Insufficient Information."
        case "context_recall":
            return "\n".join(f"So [{'Attributed' if each else 'Not Attributed'}]" for each in judgement.supported)
        case "faithfulness.statements":
            return "\n".join(judgement.statements)
        case _:
            verdicts = "".join(" Yes." if each else " No." for each in judgement.supported)
            return f"Final verdict for each statement in order:{verdicts}"


def _of_ragas_0_1(judgement: Judgement, name: str, _: dict[str, str], at: int | None) -> object:
    match name:
        case "context_relevancy":
            return " ".join(judgement.copied()) or "Insufficient Information."
        case "context_precision":
            return {"reason": "", "verdict": int(judgement.useful[at or 0])}
        case "statements":
            return [{"sentence_index": 0, "simpler_statements": judgement.statements}]
        case _:
            key = "attributed" if name == "context_recall" else "verdict"
            pairs = zip(judgement.statements, judgement.supported, strict=True)
            return [{"statement": text, "reason": "", key: int(each)} for text, each in pairs]


def _of_nvidia(judgement: Judgement, name: str, _: dict[str, str], __: int | None) -> object:
    if name.startswith("context_relevance"):
        return str(max(judgement.grades))
    return str(2 if all(judgement.supported) else int(any(judgement.supported)))


def _of_axion(judgement: Judgement, name: str, values: dict[str, str], at: int | None) -> object:
    match name:
        case "relevancy_task":
            of_contexts = json.loads(values["texts"]) == judgement.contexts
            flags = [grade >= 1 for grade in judgement.grades] if of_contexts else judgement.addresses
            return {"verdicts": [{"verdict": _word(flag)} for flag in flags]}
        case "relevancy_joined_task":
            return {"verdict": _word(any(judgement.grades))}
        case "usefulness":
            return {"is_useful": judgement.useful[at or 0]}
        case "statements":
            return {"statements": judgement.statements}
        case "recall_batch":
            return {"verdicts": [{"is_supported": each} for each in judgement.supported]}
        case _:
            return {"verdicts": [{"verdict": _CARRIED[label]} for label in judgement.labels]}


def _of_deepeval(judgement: Judgement, name: str, _: dict[str, str], at: int | None) -> object:
    match name:
        case "contextual_relevancy.verdicts":
            return _verdicts([place < judgement.grades[at or 0] for place in range(_SENTENCES_EACH)])
        case "contextual_precision.verdicts":
            return _verdicts(judgement.useful)
        case "contextual_recall.verdicts":
            return _verdicts(judgement.supported)
        case "faithfulness.truths":
            return {"truths": judgement.contexts}
        case "faithfulness.claims":
            return {"claims": judgement.statements}
        case "faithfulness.verdicts":
            return {"verdicts": [{"verdict": _PASSING[label], "reason": "r"} for label in judgement.labels]}
        case "answer_relevancy.statements":
            return {"statements": judgement.statements}
        case _:
            return _verdicts(judgement.addresses)


def _of_spring(judgement: Judgement, name: str, _: dict[str, str], at: int | None) -> object:
    flags = zip(judgement.statements, judgement.supported, strict=True)
    match name:
        case "context_relevance":
            return {"score": judgement.grades[at or 0]}
        case "context_precision.reference":
            return {"relevant": judgement.useful[at or 0]}
        case "context_recall":
            return {"classifications": [{"statement": text, "attributed": int(each)} for text, each in flags]}
        case "faithfulness.statements":
            return {"statements": judgement.statements}
        case _:
            return {"verdicts": [{"statement": text, "verdict": int(each)} for text, each in flags]}


def _of_trulens(judgement: Judgement, name: str, _: dict[str, str], at: int | None) -> object:
    if name == "context_relevance":
        return str(_FOUR_LEVELS[judgement.grades[at or 0]])
    share = sum(judgement.addresses) / len(judgement.addresses)
    return str(3 if share == 1 else 2 if share >= 0.5 else 1 if share else 0)


def _of_ares(judgement: Judgement, name: str, _: dict[str, str], at: int | None) -> object:
    said = {
        "context_relevance": judgement.grades[at or 0] >= 1,
        "answer_faithfulness": all(judgement.supported),
        "answer_relevance": any(judgement.addresses),
    }
    return f"[[{_word(said[name]).capitalize()}]]"


def _of_ragchecker(judgement: Judgement, definition: str, name: str, at: int | None) -> object:
    if name == "claims":
        return {"claims": judgement.statements}
    entailed = judgement.supported if at == 0 else [False] * len(judgement.labels)
    if definition == "ragchecker:context_precision":
        entailed = [judgement.useful[at or 0]] * len(judgement.labels)
    return {"labels": ["Entailment" if each else "Neutral" for each in entailed]}


_OF_SYSTEM: Final = {
    "ragas-0.0": _of_ragas_0_0,
    "ragas-0.1": _of_ragas_0_1,
    "nvidia": _of_nvidia,
    "axion": _of_axion,
    "deepeval": _of_deepeval,
    "spring-ai-ragas": _of_spring,
    "trulens": _of_trulens,
    "ares": _of_ares,
}


def _word(flag: object) -> str:
    return "yes" if flag else "no"


def _verdicts(flags: Sequence[bool]) -> object:
    return {"verdicts": [{"statement": "s", "verdict": _word(flag), "reason": "r"} for flag in flags]}


def outcomes(definition: str, judgement: Judgement) -> tuple[Score | Undefined, Score | Undefined]:
    """Return the outcome of the formula over our verdicts, and that of the published definition."""
    metric = known_metric(definition)
    assert metric is not None
    ours = drive(SameVerdicts(of=definition).plan(judgement.sample), native(judgement))
    return ours, drive(metric.plan(judgement.sample), published(judgement, definition))


def assert_equal(definition: str, judgement: Judgement) -> None:
    """Assert that both are Undefined, or have one value."""
    ours, theirs = outcomes(definition, judgement)
    if isinstance(ours, Undefined) or isinstance(theirs, Undefined):
        assert type(ours) is type(theirs), (ours, theirs)
    elif definition == "ragas-0.0.12:faithfulness":  # 1 - 2/3 and 1/3 differ in the last digit
        assert ours.value == pytest.approx(theirs.value, abs=1e-15)
    else:
        assert ours.value == theirs.value, judgement


COMPARED: Final = [definition for definition in FORMS if definition not in NOT_COMPARABLE]
OF_CONTEXTS: Final = [
    definition
    for definition in COMPARED
    if FORMS[definition].lineage in {Lineage.CONTEXT_RELEVANCE, Lineage.CONTEXT_PRECISION}
]
OF_STATEMENTS: Final = [definition for definition in COMPARED if definition not in OF_CONTEXTS]


@each_case("definition", COMPARED)
def test_a_formula_equals_its_definition(definition: str) -> None:
    """On the same verdicts, the formula of a definition and the definition itself give one number."""
    for seed in range(24):
        assert_equal(definition, Judgement.drawn(seed, contexts=1 + seed % 4, statements=1 + seed % 5))


@each_case("definition", [each for each in OF_STATEMENTS if each not in RATES_THE_WHOLE])
def test_a_formula_equals_its_definition_without_statements(definition: str) -> None:
    """A text that makes no statement has the same outcome by the formula and by the definition."""
    assert_equal(definition, Judgement.drawn(1, contexts=2, statements=0))


@each_case("definition", OF_CONTEXTS)
def test_a_formula_equals_its_definition_without_contexts(definition: str) -> None:
    """A retriever that found nothing has the same outcome by the formula and by the definition."""
    assert_equal(definition, Judgement.drawn(1, contexts=0, statements=2))
