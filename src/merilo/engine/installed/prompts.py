"""The table of upstream prompts: for each definition and each of its requests, the object that words it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWERED: Final = "answered"
"""The value that is the whole prompt which the value `reply` answered."""
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt object of a package and the values of merilo's request that its input is filled with.

    A value is a text. Written as `[name]` it is a list, from its JSON. The only field of an input may be `**`: its value
    is then an object whose fields are those of the input.
    """

    source: str
    """Module and class, as `module:Class`."""
    fields: Mapping[str, str]
    """Field of the input → value."""
    arguments: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Argument of the class → value; most classes take none."""
    attribute: str = ""
    """The attribute of the made object that holds the prompt; empty if it is the object itself."""
    structured: bool = False
    """True if the package sends it through instructor, which adds the schema of the reply and words the re-asks."""


def _legacy(file: str, class_name: str, **fields: str) -> Prompt:
    return Prompt(f"ragas.metrics.{file}:{class_name}", fields)


def _collected(folder: str, class_name: str, **fields: str) -> Prompt:
    return Prompt(f"ragas.metrics.collections.{folder}.util:{class_name}", fields, structured=True)


_STATEMENTS: Final = {"question": "user_input", "answer": "answer"}
_VERDICTS: Final = {"context": "text", "statements": "[statements]"}
_PRECISION: Final = {"question": "user_input", "context": "context", "answer": "answer"}
_RECALL: Final = {"question": "user_input", "context": "contexts", "answer": "answer"}
_CORRECTNESS: Final = {"question": "user_input", "answer": "[answer]", "ground_truth": "[reference]"}
_DETAIL: Final = {"atomicity": "atomicity", "coverage": "coverage"}

_LEGACY: Final[Mapping[str, Prompt]] = {
    "statements": _legacy("_faithfulness", "StatementGeneratorPrompt", **_STATEMENTS),
    "verdicts": _legacy("_faithfulness", "NLIStatementPrompt", **_VERDICTS),
    "answer_relevancy": _legacy("_answer_relevance", "ResponseRelevancePrompt", response="response"),
    "context_precision": _legacy("_context_precision", "ContextPrecisionPrompt", **_PRECISION),
    "context_recall": _legacy("_context_recall", "ContextRecallClassificationPrompt", **_RECALL),
    "entities": _legacy("_context_entities_recall", "ExtractEntitiesPrompt", text="text"),
    "correctness": _legacy("_answer_correctness", "CorrectnessClassifier", **_CORRECTNESS),
    "claims": Prompt(
        "ragas.metrics._factual_correctness:FactualCorrectness",
        {"response": "text"},
        _DETAIL,
        "claim_decomposition_prompt",
    ),
    "aspect": Prompt(
        "ragas.metrics._aspect_critic:AspectCritic",
        {"**": "[submission]"},
        {"name": "definition", "definition": "definition"},  # the name is not part of the prompt
        "single_turn_prompt",
    ),
    "repair": Prompt(
        "ragas.prompt.pydantic_prompt:FixOutputFormat", {"output_string": "reply", "prompt_value": ANSWERED}
    ),
}
"""The classes of `ragas.metrics`, by merilo's rubric."""

_COLLECTED_PRECISION: Final = {
    "context_precision": _collected("context_precision", "ContextPrecisionPrompt", **_PRECISION)
}
_COLLECTIONS: Final[Mapping[str, Mapping[str, Prompt]]] = {
    "context_precision_with_reference": _COLLECTED_PRECISION,
    "context_precision_without_reference": _COLLECTED_PRECISION,
    "context_precision": _COLLECTED_PRECISION,
    "context_utilization": _COLLECTED_PRECISION,
    "context_recall": {"context_recall": _collected("context_recall", "ContextRecallPrompt", **_RECALL)},
    "context_entity_recall": {"entities": _collected("context_entity_recall", "ExtractEntitiesPrompt", text="text")},
    "faithfulness": {
        "statements": _collected("faithfulness", "StatementGeneratorPrompt", **_STATEMENTS),
        "verdicts": _collected("faithfulness", "NLIStatementPrompt", **_VERDICTS),
    },
    "answer_relevancy": {
        "answer_relevancy": _collected("answer_relevancy", "AnswerRelevancePrompt", response="response")
    },
    "noise_sensitivity": {
        "statements": _collected("noise_sensitivity", "StatementGeneratorPrompt", question="user_input", text="answer"),
        "verdicts": _collected("noise_sensitivity", "StatementFaithfulnessPrompt", **_VERDICTS),
    },
    "answer_correctness": {
        "statements": _collected("answer_correctness", "StatementGeneratorPrompt", **_STATEMENTS),
        "correctness": _collected("answer_correctness", "CorrectnessClassifierPrompt", **_CORRECTNESS),
    },
    "factual_correctness": {
        "claims": _collected("factual_correctness", "ClaimDecompositionPrompt", response="text", **_DETAIL),
        "verdicts": _collected("factual_correctness", "NLIStatementPrompt", **_VERDICTS),
    },
}
"""The classes of `ragas.metrics.collections`, by definition and merilo's rubric."""




@dataclass(frozen=True, slots=True)
class Package:
    """An upstream package in the one release that its definitions are named after."""

    name: str
    release: str
    quiet: Mapping[str, str]
    """Environment variables that turn its telemetry off."""

    def __str__(self) -> str:
        return f"{self.name} {self.release}"


RAGAS: Final = Package("ragas", "0.4.3", MappingProxyType({"RAGAS_DO_NOT_TRACK": "true"}))


class Wording(NamedTuple):
    """What words the requests of a definition: a package, and its prompts by merilo's rubric."""

    package: Package
    prompts: Mapping[str, Prompt]


def wording_for(name: str) -> Wording | None:
    """Return what words the requests of a definition; None if no package is known to have its prompts."""
    system, _, metric = name.partition(":")
    if system != f"{RAGAS.name}-{RAGAS.release}":
        return None
    folder, dot, collected = metric.partition(".")
    found = _COLLECTIONS.get(collected) if dot and folder == "collections" else _LEGACY
    return None if found is None else Wording(RAGAS, found)
