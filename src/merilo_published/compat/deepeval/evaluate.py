"""DeepEval's `evaluate`, `assert_test` and data set: metrics over test cases, computed as one run."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.blocking import run_blocking
from merilo.errors import DataError, JudgeError, UsageError
from merilo.metrics.base import Failed, Outcome, Undefined

from ..scoring import MadeOnce, RunSettings, score, tell_report
from .metrics import BaseMetric, judge_of
from .test_case import NAMES, Case, LLMTestCase, MissingTestCaseParamsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.judges.base import Judge
    from merilo.runs.run import Run

SESSION_RUNS: Final = "MERILO_SESSION_RUNS"
"""The variable by which merilo's plugin for pytest names the folder of the session's runs."""
_asserted: Counter[str] = Counter()
"""Id of a test → the number of its test cases so far in this process."""


class AsyncConfig:
    """Settings of concurrency; `max_concurrent` limits the requests in flight, and the others have no effect."""

    def __init__(self, *, max_concurrent: int = 20, **_: object) -> None:
        self.max_concurrent = max_concurrent


class DisplayConfig:
    """Settings of what is printed; only `print_results` has an effect."""

    def __init__(self, *, print_results: bool = True, **_: object) -> None:
        self.print_results = print_results


class CacheConfig:
    """Settings of the cache; only `use_cache` has an effect: it reads and writes merilo's."""

    def __init__(self, *, use_cache: bool = True, **_: object) -> None:
        self.use_cache = use_cache


@dataclass(frozen=True)
class ErrorConfig:
    """What to do about errors: stop (the default), record them, or leave a metric out if a field is missing."""

    ignore_errors: bool = False
    skip_on_missing_params: bool = False


@dataclass(frozen=True)
class MetricData:
    """The result of one metric for one test case."""

    name: str
    score: float | None
    threshold: float | None
    success: bool
    reason: str | None
    strict_mode: bool
    evaluation_model: str
    error: str | None = None
    definition: str = ""
    """The definition of merilo that computed it."""


@dataclass(frozen=True)
class TestResult:
    """The results of one test case."""

    __test__ = False  # pytest collects no class of this name
    name: str
    success: bool
    metrics_data: list[MetricData]
    input: str
    actual_output: str | None = None
    expected_output: str | None = None
    retrieval_context: Sequence[object] | None = None
    index: int = 0


@dataclass(frozen=True)
class EvaluationResult:
    """The results of all test cases, and the runs of merilo in which they were computed."""

    test_results: list[TestResult]
    runs: tuple[Run, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        lines = [
            f"{'pass' if data.success else 'FAIL'}  {result.name}  {data.name}: {_shown(data)}"
            for result in self.test_results
            for data in result.metrics_data
        ]
        passed = sum(result.success for result in self.test_results)
        return "\n".join([*lines, f"{passed} of {len(self.test_results)} test cases pass."])


def evaluate(
    test_cases: Sequence[LLMTestCase],
    metrics: Sequence[BaseMetric] | None = None,
    *,
    async_config: AsyncConfig | None = None,
    display_config: DisplayConfig | None = None,
    cache_config: CacheConfig | None = None,
    error_config: ErrorConfig = ErrorConfig(),
    out: str | PathLike[str] | None = None,
    **unused: object,
) -> EvaluationResult:
    """Measure all metrics on all test cases, also inside a running event loop; prints the results.

    Args:
        test_cases: the cases.
        metrics: the metrics. Their own `score` and `reason` are not changed: the result has those of each case.
        async_config: as in DeepEval.
        display_config: as in DeepEval; `print_results=False` prints nothing.
        cache_config: as in DeepEval.
        error_config: as in DeepEval.
        out: the run directory, as in `merilo.evaluate`.
        unused: the other options of DeepEval, which have no effect.

    Raises:
        MissingTestCaseParamsError: a case lacks a field that a metric needs, unless such are skipped or ignored.
        JudgeError: a metric has no score, unless errors are ignored.
        UsageError: a metric or a judge cannot be used.
    """
    del unused
    cache = cache_config is None or cache_config.use_cache
    concurrency = (async_config or AsyncConfig()).max_concurrent
    settings = RunSettings(kept=True, out=out, cache=cache, concurrency=concurrency)
    result = _evaluated(test_cases, metrics, settings, error_config)
    if display_config is None or display_config.print_results:
        print(result)  # noqa: T201  as DeepEval does
        tell_report(result.runs)
    return result


def _evaluated(
    cases: Sequence[LLMTestCase],
    metrics: Sequence[BaseMetric] | None,
    settings: RunSettings,
    errors: ErrorConfig,
    ids: Sequence[str] | None = None,
) -> EvaluationResult:
    if not cases or not metrics:
        raise UsageError("evaluate needs at least one test case and one metric.")
    for what, kind, given in (
        ("LLMTestCases of merilo.compat.deepeval.test_case", LLMTestCase, cases),
        ("metrics of merilo.compat.deepeval.metrics", BaseMetric, metrics),
    ):
        if wrong := [each for each in given if not isinstance(each, kind)]:
            raise UsageError(f"evaluate takes {what}, got {wrong[0]!r}.")
    return run_blocking(_measured(cases, metrics, settings, errors, ids))


def assert_test(
    test_case: LLMTestCase,
    metrics: Sequence[BaseMetric] | None = None,
    run_async: bool = True,  # noqa: FBT001, FBT002  as in DeepEval
    **_: object,
) -> None:
    """Raise AssertionError, with scores and reasons, unless every metric reaches its threshold on a test case.

    All test cases of a pytest session are in one run, each under the id of its test.
    """
    del run_async
    settings = RunSettings(kept=True, folder=os.environ.get(SESSION_RUNS) or None)
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0] or "1"
    _asserted[test] += 1
    name = test if _asserted[test] == 1 else f"{test} {_asserted[test]}"
    (result,) = _evaluated([test_case], metrics, settings, ErrorConfig(), [name]).test_results
    failed = [f"{data.name} ({_shown(data)})" for data in result.metrics_data if not data.success]
    if failed:
        raise AssertionError(f"Metrics: {', '.join(failed)} failed.")


async def _measured(
    cases: Sequence[LLMTestCase],
    metrics: Sequence[BaseMetric],
    settings: RunSettings,
    errors: ErrorConfig,
    ids: Sequence[str] | None,
) -> EvaluationResult:
    """Return the results; a case that lacks a field of a metric has that error, or no result of it."""
    made = MadeOnce()  # metrics that name the same model share one judge, and so one run
    judges = [made.of(metric.model, judge_of) for metric in metrics]
    lacking = [[metric.problem(case) for metric in metrics] for case in cases]
    problems = [problem for row in lacking for problem in row if problem]
    if problems and not (errors.ignore_errors or errors.skip_on_missing_params):
        raise MissingTestCaseParamsError(problems[0])
    wanted = [metric.wanted(judge) for metric, judge in zip(metrics, judges, strict=True)]
    samples = [case.sample(ids[at] if ids else str(at + 1)) for at, case in enumerate(cases)]
    found = await score(samples, wanted, settings, lacking)
    results: list[TestResult] = []
    for at, (case, outcomes) in enumerate(zip(cases, found.outcomes, strict=True)):
        data = [
            _data(metric, outcome, judge, problem, errors)
            for metric, outcome, judge, problem in zip(metrics, outcomes, judges, lacking[at], strict=True)
            if not (errors.skip_on_missing_params and problem)
        ]
        success, name = all(each.success for each in data), case.name or f"test_case_{at}"
        shown = (case.input, case.actual_output, case.expected_output, case.retrieval_context)
        results.append(TestResult(name, success, data, *shown, at))
    return EvaluationResult(results, found.runs)


def _data(metric: BaseMetric, outcome: Outcome, judge: Judge, missing: str, errors: ErrorConfig) -> MetricData:
    metric.take(outcome, judge)
    error = missing or metric.error or (outcome.reason if isinstance(outcome, Undefined) else None)
    if error is not None and not errors.ignore_errors and not missing:
        raise JudgeError(f"{type(metric).__qualname__} has no score: {error}")
    return MetricData(
        metric.__name__,
        None if error else metric.score,
        metric.threshold,
        bool(metric.success) and error is None,
        None if error or isinstance(outcome, Failed) else metric.reason,
        metric.strict_mode,
        judge.name,
        error,
        metric.definition,
    )


def _shown(data: MetricData) -> str:
    if data.error is not None:
        return f"error: {data.error}"
    shown = f"score: {data.score}, threshold: {data.threshold}"
    return f"{shown}, reason: {data.reason}" if data.reason else shown


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
