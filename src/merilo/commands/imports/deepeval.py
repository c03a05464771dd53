"""Scores from a test run of DeepEval (`.deepeval/.latest_test_run.json`, or a file of a results folder)."""

from __future__ import annotations

import json
from array import array
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.result_rows import deepeval_metrics, deepeval_record
from merilo.commands.imports.tables import Rows, number_of
from merilo.data import check
from merilo.data.json_records import MAX_JSON_BYTES
from merilo.data.load import load
from merilo.data.sample import BadRecord, Dataset
from merilo.errors import DataError, Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike

    from merilo.data.sample import Sample

_LOWER: Final = ("Hallucination", "Bias", "Toxicity", "Misuse")
"""Names with which DeepEval metrics begin that pass at or below their threshold."""
_UNIT: Final = "test case"


def deepeval_rows(source: str | PathLike[str], *, id: str | None, scores: Mapping[str, object]) -> Rows | None:
    """Return the test cases of a test run as rows; None if the file is not a test run.

    Raises DataError if it has no single-turn test cases, UsageError for a metric that no test case has.
    """
    path = Path(source)
    cases = _cases(path)
    if cases is None:
        return None
    offered: dict[str, None] = {}
    for case in cases:
        offered.update(dict.fromkeys(str(each.get("name")) for each in deepeval_metrics(case)))
    unknown = [name for name in scores if name not in offered]
    if unknown:
        raise UsageError(f"No metric {unknown[0]!r} in {path.name}; it has {', '.join(offered)}.")
    chosen = tuple(scores) or tuple(offered)
    values = {name: array("d") for name in chosen}
    problems: list[Problem] = []
    for place, case in enumerate(cases, start=1):
        own = {str(each.get("name")): each.get("score") for each in deepeval_metrics(case)}
        for name in chosen:
            value = number_of(own.get(name))
            if value is None:
                got = check.shown(own.get(name))
                problems.append(Problem("a number or nothing", got, name, path.name, place, _UNIT))
            values[name].append(nan if value is None else value)
    records = [deepeval_record(case, id) for case in cases]
    loaded = load(records)

    def outside(name: str, span: tuple[float, float]) -> Problem:
        place, value = next(
            (place, value)
            for place, value in enumerate(values[name], start=1)
            if not isnan(value) and not span[0] <= value <= span[1]
        )
        return Problem(f"a number from {span[0]:g} to {span[1]:g}", f"{value:g}", name, path.name, place, _UNIT)

    return Rows(
        dataset=Dataset(
            path.name.removesuffix(".json").lstrip("."), lambda: _placed(iter(loaded), path), loaded.columns
        ),
        origin=f"DeepEval, {path.name}",
        offered=tuple(offered),
        scores=lambda: values,
        problems=problems,
        outside=outside,
        package="deepeval",
        judges={
            str(each.get("name")): str(each["evaluationModel"])
            for case in cases
            for each in deepeval_metrics(case)
            if each.get("evaluationModel")
        },
        lower_is_better=frozenset(name for name in offered if name.startswith(_LOWER)),
    )


def _cases(path: Path) -> list[dict[str, Any]] | None:  # Any: JSON of DeepEval
    """Return the test cases of a test run; None if the file is not JSON or not a test run."""
    if path.suffix != ".json" or not path.is_file() or path.stat().st_size > MAX_JSON_BYTES:
        return None
    try:
        found: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None  # the table reader reports the problem
    if check.is_record(found) and check.is_record(found.get("testRunData")):
        found = found["testRunData"]
    if not check.is_record(found) or "testCases" not in found:
        return None
    cases = found["testCases"]
    if not check.is_list(cases):
        raise DataError.of(Problem("a list of test cases as 'testCases'", check.shown(cases), source=path.name))
    if not cases:
        advice = "merilo does not import conversations"
        raise DataError.of(Problem("single-turn test cases", "none", source=path.name, advice=advice))
    records = [dict(case) for case in cases if check.is_record(case)]
    if len(records) < len(cases):
        raise DataError.of(Problem("objects as 'testCases'", "something else", source=path.name))
    return records


def _placed(samples: Iterator[Sample | BadRecord], path: Path) -> Iterator[Sample | BadRecord]:
    """Yield the samples; problems of bad records name the file."""
    for sample in samples:
        if isinstance(sample, BadRecord):
            yield BadRecord(tuple(replace(each, source=path.name, unit=_UNIT) for each in sample.problems))
        else:
            yield sample
