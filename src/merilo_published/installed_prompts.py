"""The table of upstream prompts: for each definition and each of its requests, the object that words it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWERED: Final = "answered"
"""The name of the value that holds the whole prompt to which the value `reply` is the reply."""
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class PackageFunction(NamedTuple):
    """A function of the package that makes fields of a prompt from values.

    `fields` names its results; if empty, it returns a mapping of names to results.
    """

    source: str
    values: tuple[str, ...]
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt object of a package, and the values of merilo's request with which its input is filled.

    A value is the name of a text in the request or of a parameter of the metric. `[name]` is that value as a list: the
    texts that merilo lists, or the parsed JSON. `=text` is a fixed text. If the only field is `**`, its value is an
    object with all fields of the input.
    """

    source: str
    """Module and class, as `module:Class`."""
    fields: Mapping[str, str]
    """Field of the input → value."""
    arguments: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Argument of the class → value; most classes take none."""
    attribute: str = ""
    """The attribute of the object that holds the prompt, or the template of the class; empty for the object itself."""
    functions: tuple[PackageFunction, ...] = ()
    """Functions of the package that make more fields."""
    structured: bool = False
    """True if the package sends it through instructor, which adds the schema of the reply and words the re-asks."""


def _legacy(file: str, class_name: str, **fields: str) -> Prompt:
    return Prompt(f"ragas.metrics.{file}:{class_name}", fields)


def _collected(folder: str, class_name: str, **fields: str) -> Prompt:
    return Prompt(f"ragas.metrics.collections.{folder}.util:{class_name}", fields, structured=True)


def _rating(class_name: str, template: str, **fields: str) -> Prompt:
    return Prompt(f"ragas.metrics._nv_metrics:{class_name}", fields, attribute=template)


def _judges(folder: str, class_name: str, **fields: str) -> dict[str, Prompt]:
    """Return the prompts of both ratings of a metric of the collections."""
    return {
        f"{folder}_first": _collected(folder, f"{class_name}Judge1Prompt", **fields),
        f"{folder}_second": _collected(folder, f"{class_name}Judge2Prompt", **fields),
    }


_RELEVANCE: Final = {"query": "user_input", "context": "contexts"}
_GROUNDEDNESS: Final = {"response": "response", "context": "contexts"}
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
    "context_relevance_first": _rating("ContextRelevance", "template_relevance1", **_RELEVANCE),
    "context_relevance_second": _rating("ContextRelevance", "template_relevance2", **_RELEVANCE),
    "response_groundedness_first": _rating("ResponseGroundedness", "template_groundedness1", **_GROUNDEDNESS),
    "response_groundedness_second": _rating("ResponseGroundedness", "template_groundedness2", **_GROUNDEDNESS),
    "answer_accuracy_first": _rating(
        "AnswerAccuracy",
        "template_accuracy1",
        query="user_input",
        answer0="=User Answer",
        answer1="=Reference Answer",
        sentence_inference="answer",
        sentence_true="reference",
    ),
    "answer_accuracy_second": _rating(
        "AnswerAccuracy",
        "template_accuracy2",
        query="user_input",
        answer0="=Reference Answer",
        answer1="=User Answer",
        sentence_inference="reference",
        sentence_true="answer",
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
    "context_relevance": _judges("context_relevance", "ContextRelevance", user_input="user_input", context="contexts"),
    "response_groundedness": _judges("response_groundedness", "ResponseGroundedness", **_GROUNDEDNESS),
    "answer_accuracy": _judges(
        "answer_accuracy", "AnswerAccuracy", query="user_input", user_answer="answer", reference_answer="reference"
    ),
}
"""The classes of `ragas.metrics.collections`, by definition and merilo's rubric."""


@dataclass(frozen=True, slots=True)
class Package:
    """An upstream package, in the release that the names of its definitions contain."""

    name: str
    release: str
    quiet: Mapping[str, str]
    """Environment variables, set before its import, that switch off telemetry and settings files."""

    def __str__(self) -> str:
        return f"{self.name} {self.release}"


ONE_TEXT: Final = "text only"
"""The name of the value that is always False: no prompt contains an image."""
_IMAGES: Final = ((ONE_TEXT,), ("multimodal_instruction",))


def _templates(
    metric: str, class_name: str, functions: Mapping[str, tuple[PackageFunction, ...]], **rows: Mapping[str, str]
) -> dict[str, Prompt]:
    """Return the templates of a metric of DeepEval by merilo's rubric, such as `faithfulness.verdicts`.

    `functions`: those of the metric's module that make more fields of a template. `rows`: the fields of each template.
    """
    module = f"deepeval.metrics.{metric}.{metric}"
    return {
        f"{metric}.{name}": Prompt(
            f"{module}:{class_name}",
            fields,
            attribute=f"generate_{name}",
            functions=tuple(each._replace(source=f"{module}:{each.source}") for each in functions.get(name, ())),
        )
        for name, fields in rows.items()
    }


_DEEPEVAL: Final[Mapping[str, Mapping[str, Prompt]]] = {
    "faithfulness": _templates(
        "faithfulness",
        "FaithfulnessMetric",
        {
            "truths": (
                PackageFunction("_faithfulness_truths_limit_phrase", ("truths_extraction_limit",), ("limit",)),
                PackageFunction("_faithfulness_truths_multimodal_instruction", *_IMAGES),
            ),
            "claims": (PackageFunction("_faithfulness_claims_multimodal_instruction", *_IMAGES),),
        },
        truths={"retrieval_context": "retrieval_context"},
        claims={"actual_output": "actual_output"},
        verdicts={"claims": "[claims]", "retrieval_context": "facts"},
        reason={"contradictions": "[contradictions]", "score": "score"},
    ),
    "answer_relevancy": _templates(
        "answer_relevancy",
        "AnswerRelevancyMetric",
        {},
        statements={"actual_output": "actual_output"},
        verdicts={"input": "user_input", "statements": "[statements]"},
        reason={"input": "user_input", "irrelevant_statements": "[irrelevant]", "score": "score"},
    ),
    "contextual_precision": _templates(
        "contextual_precision",
        "ContextualPrecisionMetric",
        {
            "verdicts": (
                PackageFunction(
                    "_contextual_precision_verdict_fields",
                    ("[nodes]", ONE_TEXT),
                    ("document_count_str", "context_to_display", "multimodal_note"),
                ),
            )
        },
        verdicts={"input": "user_input", "expected_output": "expected_output"},
        reason={"input": "user_input", "verdicts": "[verdicts]", "score": "score"},
    ),
    "contextual_recall": _templates(
        "contextual_recall",
        "ContextualRecallMetric",
        {"verdicts": (PackageFunction("_contextual_recall_verdict_kwargs", ("[nodes]", ONE_TEXT)),)},
        verdicts={"expected_output": "expected_output"},
        reason={
            "expected_output": "expected_output",
            "supportive_reasons": "[supportive]",
            "unsupportive_reasons": "[unsupportive]",
            "score": "score",
            "content_type": "=sentence",
        },
    ),
    "contextual_relevancy": _templates(
        "contextual_relevancy",
        "ContextualRelevancyMetric",
        {"verdicts": (PackageFunction("_contextual_relevancy_verdict_kwargs", (ONE_TEXT,)),)},
        verdicts={"input": "user_input", "context": "context"},
        reason={
            "input": "user_input",
            "irrelevant_statements": "[irrelevant]",
            "relevant_statements": "[relevant]",
            "score": "score",
        },
    ),
}
"""The templates of DeepEval, by definition and merilo's rubric."""

DEEPEVAL: Final = Package(
    "deepeval",
    "4.3.1",
    MappingProxyType(
        {
            "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
            "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",  # its import would ask a server for a newer version
            "DEEPEVAL_DISABLE_DOTENV": "1",  # its import would read the keys in .env files
        }
    ),
)
RAGAS: Final = Package("ragas", "0.4.3", MappingProxyType({"RAGAS_DO_NOT_TRACK": "true"}))


class Wording(NamedTuple):
    """The upstream prompts that word the requests of a definition."""

    package: Package
    prompts: Mapping[str, Prompt]
    """By merilo's rubric."""
    fixed: Mapping[str, object]
    """Parameter of the definition → its only value for which the package sends these requests."""


def wording_for(name: str) -> Wording | None:
    """Return the upstream prompts of a definition; None if no package is known to have them."""
    system, _, metric = name.partition(":")
    folder, dot, collected = metric.partition(".")
    if system == f"{RAGAS.name}-{RAGAS.release}":
        if not dot:
            return Wording(RAGAS, _LEGACY, {"reasks": None})
        found = _COLLECTIONS.get(collected) if folder == "collections" else None
        return None if found is None else Wording(RAGAS, found, {"repairs": 0})
    if system == f"{DEEPEVAL.name}-{DEEPEVAL.release}" and metric in _DEEPEVAL:
        return Wording(DEEPEVAL, _DEEPEVAL[metric], _NOTHING)
    return None
