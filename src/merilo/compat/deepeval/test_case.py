"""DeepEval's test case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from merilo.data.load import load
from merilo.data.sample import BadRecord, Sample
from merilo.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FIELD_OF: Final[Mapping[str, str]] = {
    "user_input": "input",
    "response": "actual_output",
    "reference": "expected_output",
    "retrieved_contexts": "retrieval_context",
}
"""DeepEval's name of each field of a sample that a metric may need, in the order of messages."""


class MissingTestCaseParamsError(DataError):
    """A test case lacks a field that a metric needs."""


@dataclass(kw_only=True)
class LLMTestCase:
    """One case under DeepEval's names; unknown values are None. Metrics read the first four."""

    input: str
    actual_output: str | None = None
    expected_output: str | None = None
    retrieval_context: Sequence[str] | None = None
    context: Sequence[str] | None = None
    name: str | None = None
    tags: Sequence[str] | None = None
    comments: str | None = None
    metadata: Mapping[str, Any] | None = None
    additional_metadata: Mapping[str, Any] | None = None
    token_cost: float | None = None
    completion_time: float | None = None

    def sample(self, id: str) -> Sample:
        """Return this case as a sample. Raises DataError for a value that does not fit its field."""
        fields = {field: getattr(self, name) for field, name in FIELD_OF.items()}
        (found,) = load([{"id": id, **{name: value for name, value in fields.items() if value is not None}}])
        if isinstance(found, BadRecord):
            raise DataError(f"The test case {self.name or id}: {' '.join(map(str, found.problems))}")
        return found

    def check(self, needs: frozenset[str], metric: str) -> None:
        """Raise MissingTestCaseParamsError if a needed field is None, or if the actual output is empty."""
        missing = [
            name
            for field, name in FIELD_OF.items()
            if field in needs
            and (value := getattr(self, name)) in (None, "")
            and not (value == "" and name != "actual_output")
        ]
        if missing:
            raise MissingTestCaseParamsError(f"{metric} needs {' and '.join(missing)} of the test case.")


class ConversationalTestCase:
    """A conversation in DeepEval, which merilo does not evaluate as one case."""

    def __init__(self, *_: object, **__: object) -> None:
        raise UsageError(
            "merilo does not evaluate a ConversationalTestCase. Give each turn as an LLMTestCase with its own input, "
            "retrieval_context and actual_output."
        )
