"""DeepEval's data set of goldens and test cases."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merilo.errors import DataError, UsageError

from .evaluate import evaluate
from .test_case import NAMES, Case, LLMTestCase

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from .evaluate import EvaluationResult
    from .metrics import BaseMetric


class Golden(Case):
    """An input and what is expected of it, before the pipeline has answered."""


class EvaluationDataset:
    """Goldens, and the test cases that a pipeline made of them."""

    def __init__(self, goldens: Sequence[Golden] = (), test_cases: Sequence[LLMTestCase] = ()) -> None:
        self.goldens = list(goldens)
        self.test_cases = list(test_cases)

    def add_golden(self, golden: Golden) -> None:
        """Add a golden."""
        self.goldens.append(golden)

    def add_test_case(self, test_case: LLMTestCase) -> None:
        """Add a test case."""
        self.test_cases.append(test_case)

    def add_goldens_from_json_file(self, file_path: str | PathLike[str], **keys: str) -> None:
        """Add the goldens of a JSON array. `keys` are DeepEval's, such as `input_key_name="query"`."""
        self.goldens += [_golden(row, keys) for row in json.loads(Path(file_path).read_text(encoding="utf-8"))]

    def add_goldens_from_csv_file(self, file_path: str | PathLike[str], **keys: str) -> None:
        """Add the goldens of a CSV file. `keys` are DeepEval's, such as `input_col_name="query"`."""
        with Path(file_path).open(encoding="utf-8", newline="") as file:
            self.goldens += [_golden(row, keys) for row in csv.DictReader(file)]

    def add_test_cases_from_json_file(self, file_path: str | PathLike[str], **keys: str) -> None:
        """Add the test cases of a JSON array; `keys` as for goldens."""
        rows = json.loads(Path(file_path).read_text(encoding="utf-8"))
        self.test_cases += [LLMTestCase(**_fields(row, keys)) for row in rows]

    def evals_iterator(self, metrics: Sequence[BaseMetric] | None = None, **options: Any) -> Iterator[Golden]:
        """Yield the goldens. Afterwards, evaluate the test cases that were added, if metrics are given."""
        before = len(self.test_cases)
        yield from list(self.goldens)
        if metrics:
            evaluate(self.test_cases[before:], metrics, **options)

    def evaluate(self, metrics: Sequence[BaseMetric], **options: Any) -> EvaluationResult:
        """Evaluate the test cases."""
        return evaluate(self.test_cases, metrics, **options)

    def __iter__(self) -> Iterator[LLMTestCase]:
        return iter(self.test_cases)

    def __len__(self) -> int:
        return len(self.test_cases)

    def __getattr__(self, name: str) -> object:
        """Refuse the methods that need DeepEval's service or generate data."""
        if name in {"pull", "push", "queue", "delete"} or name.startswith("generate_goldens"):
            raise UsageError(f"EvaluationDataset.{name} is not available: merilo neither uploads nor generates data.")
        raise AttributeError(f"'EvaluationDataset' object has no attribute {name!r}")


def _golden(row: Mapping[str, Any], keys: Mapping[str, str]) -> Golden:
    return Golden(**_fields(row, keys))


def _fields(row: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a record, which may have them under other names. Raises DataError without an input."""
    delimiter = next((value for key, value in keys.items() if key.endswith("_delimiter")), "|")
    found: dict[str, Any] = {}
    for name in ("input", *NAMES):
        value = row.get(keys.get(f"{name}_key_name", keys.get(f"{name}_col_name", name)))
        if value not in (None, ""):
            several = name in {"context", "retrieval_context"} and isinstance(value, str)
            found[name] = value.split(delimiter) if several else value
    if "input" not in found:
        raise DataError(f"A record needs an input, got {', '.join(row) or 'no field'}.")
    return found
