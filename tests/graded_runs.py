"""Runs whose scores are chosen: each context says the grade that it gets, or that no verdict comes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import merilo
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind

FAILS = -1
"""The grade of a context on which the judge fails."""


def judge(question: Question[Any]) -> dict[str, Any] | Failure:
    """The grade that the first sentence of the context names."""
    grade = question.sentences[0].split()[1].rstrip(".")
    if grade == "none":
        return Failure(FailureKind.REFUSED, "It will not.")
    evidence = [1] if int(grade) else []
    return {"grade": int(grade), "evidence": evidence, "reason": f"It says {grade}."}


def graded(
    out: Path,
    grades: Mapping[str, Sequence[int]],
    *,
    metrics: Sequence[str] = ("context_relevance",),
    version: str = "1",
    **fields: Any,  # Any: more fields of every sample
) -> merilo.Run:
    """A run in `out`: by sample id, the grades of its contexts; none: nothing was retrieved, so Undefined."""
    samples = [
        {
            "id": sample,
            "user_input": f"What is {sample}?",
            "retrieved_contexts": [
                f"Grade {'none' if grade == FAILS else grade}. Context {place} of {sample} in {out.name}."
                for place, grade in enumerate(own)
            ],
            **fields,
        }
        for sample, own in grades.items()
    ]
    return merilo.evaluate(
        samples,
        metrics=metrics,
        judge=merilo.ScriptedJudge.by(judge, version=version),
        out=out,
        storage={"cache": False},
    )


def many(count: int, grade: int, *, start: int = 0) -> dict[str, list[int]]:
    """So many samples with one context of this grade."""
    return {f"s{number}": [grade] for number in range(start, start + count)}
