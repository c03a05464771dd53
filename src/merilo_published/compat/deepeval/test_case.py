"""DeepEval's test case and errors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from merilo.data.load import load
from merilo.data.sample import BadRecord, Sample
from merilo.errors import DataError, MeriloError

from ..missing import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DeepEvalError = MeriloError
"""Every error of merilo is one."""


class MissingTestCaseParamsError(DataError):
    """A test case lacks a field that a metric needs."""


FIELD_OF: Final[Mapping[str, str]] = {
    "user_input": "input",
    "response": "actual_output",
    "reference": "expected_output",
    "retrieved_contexts": "retrieval_context",
}
"""DeepEval's name of each field of a sample that a metric may need, in the order of messages."""


SingleTurnParams = StrEnum(
    "SingleTurnParams",
    "INPUT ACTUAL_OUTPUT EXPECTED_OUTPUT CONTEXT RETRIEVAL_CONTEXT METADATA TAGS TOOLS_CALLED EXPECTED_TOOLS "
    "MCP_SERVERS MCP_TOOLS_CALLED MCP_RESOURCES_CALLED MCP_PROMPTS_CALLED",
)
"""The fields of a test case that DeepEval's own rubrics name."""
LLMTestCaseParams = SingleTurnParams
"""Its name up to DeepEval 3."""


@dataclass
class ToolCall:
    """A call of a tool, which no metric here reads."""

    name: str
    type: object = None
    description: str | None = None
    reasoning: str | None = None
    output: Any = None
    input_parameters: Mapping[str, Any] | None = None


@dataclass
class RetrievedContextData:
    """A retrieved text and where it is from; metrics read `source: context`, as in DeepEval."""

    context: str
    source: str

    def __str__(self) -> str:
        return f"{self.source}: {self.context}"


class MLLMImage(Refused):
    """An image in DeepEval, which merilo does not read."""

    advice = "merilo reads text only, and has no MLLMImage. Describe the image in the text of the test case."


_UNREAD: Final = (
    *("tags", "comments", "token_cost", "input_token_count", "output_token_count", "completion_time"),
    *("mcp_servers", "mcp_tools_called", "mcp_resources_called", "mcp_prompts_called", "custom_column_key_values"),
    *("expectations", "expected_labels", "source_file"),
)
_CAPITAL: Final = re.compile("(?=[A-Z])")


@dataclass(init=False)
class Case:
    """The fields of a test case or a golden, in snake or camel case; unknown values are None, other names are ignored.

    Metrics read `input`, `actual_output`, `expected_output` and `retrieval_context`.
    """

    input: str
    actual_output: str | None
    expected_output: str | None
    retrieval_context: Sequence[str | RetrievedContextData] | None
    context: Sequence[str] | None
    name: str | None
    metadata: Mapping[str, Any] | None
    tools_called: Sequence[ToolCall] | None
    expected_tools: Sequence[ToolCall] | None
    multimodal: bool
    flaky: bool

    def __init__(self, *, input: str, **given: Any) -> None:
        named = {_CAPITAL.sub("_", name).lower(): value for name, value in given.items()}
        self.input = input
        for name in NAMES:
            setattr(self, name, named.get(name))
        self.metadata = named.get("metadata", named.get("additional_metadata"))
        self.multimodal, self.flaky = bool(self.multimodal), bool(self.flaky)

    @property
    def additional_metadata(self) -> Mapping[str, Any] | None:
        """The earlier name of `metadata`."""
        return self.metadata


NAMES: Final = (*Case.__annotations__.keys() - {"input"}, *_UNREAD)
"""The names of all fields except the input."""


class LLMTestCase(Case):
    """One case under DeepEval's names."""

    def sample(self, id: str) -> Sample:
        """Return this case as a sample. Raises DataError for a value that does not fit its field."""
        given = {field: getattr(self, name) for field, name in FIELD_OF.items()}
        if isinstance(self.retrieval_context, list | tuple):
            given["retrieved_contexts"] = [
                str(each) if isinstance(each, RetrievedContextData) else each for each in self.retrieval_context
            ]
        (found,) = load([{"id": id, **{name: value for name, value in given.items() if value is not None}}])
        if isinstance(found, BadRecord):
            raise DataError(f"The test case {self.name or id}: {' '.join(map(str, found.problems))}")
        return found

    def lacking(self, needs: frozenset[str], metric: str) -> str:
        """Return the needed fields that are None, and the actual output if it is empty, as a sentence."""
        missing = [
            name
            for field, name in FIELD_OF.items()
            if field in needs
            and (getattr(self, name) is None or (name == "actual_output" and self.actual_output == ""))
        ]
        return f"{metric} needs {' and '.join(missing)} of the test case." if missing else ""


class ConversationalTestCase(Refused):
    """A conversation in DeepEval, which merilo does not evaluate as one case."""

    advice = (
        "merilo does not evaluate a ConversationalTestCase. Give each turn as an LLMTestCase with its own input, "
        "retrieval_context and actual_output."
    )
