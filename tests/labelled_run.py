"""Runs of a judge that is too lenient in half of the samples, and people who know better and fill in tasks."""

import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import merilo
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.kinds.contexts import Relevance, Support
from merilo.judging.kinds.responses import Statements
from merilo.judging.questions import Question

Row = dict[str, Any]


def grade_of(text: str) -> int:
    """What people say of a context: it stands in its text."""
    return int(text.split("truly ")[1][0])


def contexts_rows(samples: int, *, contexts: int = 5, seed: int = 1) -> list[Row]:
    """Samples whose contexts share how good they are; each text tells people's grade and the judge's own luck."""
    dice = random.Random(seed)
    rows: list[Row] = []
    for number in range(samples):
        lean = dice.betavariate(1.5, 1.5)
        grades = [min(2, max(0, round(dice.gauss(2 * lean, 0.8)))) for _ in range(contexts)]
        texts = [
            f"Text {number}-{place}, luck {dice.randrange(10)}, is truly {grade}." for place, grade in enumerate(grades)
        ]
        rows.append({"id": f"s{number}", "user_input": f"What is {number}?", "retrieved_contexts": texts})
    return rows


def lenient(question: Question[Any]) -> Row:
    """People's grade, but one more for seven of ten contexts of every second sample."""
    if not isinstance(question, Relevance):
        raise TypeError(question.kind)
    text = " ".join(question.sentences)
    grade = grade_of(text)
    odd = int(question.user_input.removeprefix("What is ").removesuffix("?")) % 2
    if odd and int(text.split("luck ")[1][0]) < 7:
        grade = min(2, grade + 1)
    return {"grade": grade, "evidence": [0] if grade else [], "probability": grade / 2}


def strict(question: Question[Any]) -> Row:
    """Exactly what people say."""
    text = " ".join(question.sentences) if isinstance(question, Relevance) else ""
    return {"grade": grade_of(text), "evidence": [0] if grade_of(text) else []}


def judged_run(
    out: Path, rows: Sequence[Row], metrics: Sequence[str], judge: Callable[[Question[Any]], Row] = lenient
) -> merilo.Run:
    """A finished run of these samples."""
    return merilo.evaluate(
        list(rows), metrics=list(metrics), judge=ScriptedJudge.by(judge), out=out, storage={"cache": False}
    )


def true_mean(rows: Sequence[Row]) -> float:
    """The mean of `context_relevance` that people would give."""
    means = [sum(map(grade_of, row["retrieved_contexts"])) / len(row["retrieved_contexts"]) / 2 for row in rows]
    return sum(means) / len(means)


STATEMENT_ROWS = [
    {
        "id": f"a{number}",
        "user_input": f"Who wrote book {number}?",
        "retrieved_contexts": [f"Ann wrote book {number}."] if number % 4 else [],
        "response": f"Ann wrote book {number}. It sold {number} copies.",
    }
    for number in range(24)
]


def says_statements(question: Question[Any]) -> Row:
    """Each sentence is a statement; the judge takes all but every third one for supported."""
    match question:
        case Statements():
            return {"statements": [{"text": text, "sentence": at} for at, text in enumerate(question.sentences)]}
        case Support():
            yes = sum(map(ord, question.statement)) % 3 > 0
            return {"label": "supported" if yes else "not_stated", "evidence": [0] if yes else []}
        case _:
            return {"noncommittal": False}


def read_tasks(path: Path) -> list[Row]:
    """The tasks of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def fill_in(
    path: Path, label: Callable[[Row], object], *, annotator: str | None = None, out: Path | None = None
) -> Path:
    """A copy of a JSON Lines file of tasks (or the file itself) with labels, as any tool would write them."""
    target = out or path
    tasks = read_tasks(path)
    for task in tasks:
        if task["label"] != "settled":
            task["label"], task["annotator"] = label(task), annotator
    target.write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")
    return target


def fill_in_csv(path: Path, label: Callable[[Row], object]) -> Path:
    """The same for a CSV file, as a spreadsheet saves it."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["label"] = str(label(row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return path


def by_grade(task: Row) -> int:
    """People's label of a context."""
    return grade_of(task["context"])
