"""Runs whose samples are in chosen cells of the fault table; the judge reads the cell in the texts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import merilo
from merilo.judging.kinds.contexts import Relevance, Sufficiency, Support
from merilo.judging.kinds.responses import Noncommittal, Statements
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind

METRICS = ("context_sufficiency", "faithfulness", "context_relevance")
AMOUNTS = {
    ("enough", "supported"): 5,
    ("enough", "strayed"): 4,
    ("enough", "declined"): 3,
    ("short", "supported"): 2,
    ("short", "strayed"): 1,
    ("short", "declined"): 2,
    ("enough", "fails"): 1,
}


def judge(question: Question[Any]) -> dict[str, Any] | Failure:
    """The verdicts that the texts name."""
    match question:
        case Sufficiency():
            return {"label": "sufficient" if "enough" in question.contexts[0] else "insufficient"}
        case Noncommittal():
            return {"noncommittal": "declined" in question.response}
        case Statements():
            return {"statements": [{"text": text, "sentence": at} for at, text in enumerate(question.sentences)]}
        case Support():
            if "fails" in question.statement:
                return Failure(FailureKind.REFUSED, "It will not <b>.")
            if "strayed" in question.statement:
                return {"label": "not_stated", "sentences": [[1, 0]]}
            return {"label": "supported", "evidence": [0], "sentences": [[0, 1]]}
        case Relevance():
            good = "enough" in question.sentences[0]
            return {"grade": 2 if good else 0, "evidence": [1] if good else [], "reason": "It says so."}
        case _:
            raise TypeError(question.kind)


def rows(amounts: Mapping[tuple[str, str], int] = AMOUNTS, extra: str = "") -> list[dict[str, Any]]:
    """The samples of each cell; `extra` is added to every text."""
    return [
        {
            "id": f"{held}-{answer}-{number}{extra}",
            "user_input": f"What is {held} {answer} {number}?{extra}",
            "retrieved_contexts": [
                {"id": f"p{number}{extra}", "text": f"This holds {held}. It is number {number}.{extra}"},
                {"id": f"q{extra}", "text": f"Another text.{extra}"},
            ],
            "response": f"A first sentence. It is {answer} {number}.{extra}",
            "reference": f"It is {number}.{extra}",
        }
        for (held, answer), amount in amounts.items()
        for number in range(amount)
    ]


def faulty(out: Path, samples: list[dict[str, Any]] | None = None, *, metrics: tuple[str, ...] = METRICS) -> merilo.Run:
    """A run of these samples."""
    return merilo.evaluate(
        rows() if samples is None else samples,
        metrics=list(metrics),
        judge=merilo.ScriptedJudge.by(judge, version="1"),
        out=out,
        storage={"cache": False},
    )
