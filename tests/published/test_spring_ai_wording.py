"""The words of spring-ai-ragas' context relevance, and where they are shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Here
from each_case import each_case

from merilo_published.spring_ai_ragas.ratings import band, explain_contexts, result_line, wordings, words

METRIC = "spring-ai-ragas:context_relevance"
RUBRIC = "{language}/published/spring-ai-ragas/context_relevance.v1"


@each_case(
    ("score", "russian", "english"),
    [
        (1.0, "Отлично — все контексты высоко релевантны", "Excellent — all contexts are highly relevant"),
        (0.9, "Отлично — все контексты высоко релевантны", "Excellent — all contexts are highly relevant"),
        (
            0.8999,
            "Хорошо — большинство контекстов содержат релевантную информацию",
            "Good — most contexts contain relevant information",
        ),
        (
            0.7,
            "Хорошо — большинство контекстов содержат релевантную информацию",
            "Good — most contexts contain relevant information",
        ),
        (0.6999, "Средне — смешанная релевантность контекстов", "Medium — mixed relevance of contexts"),
        (0.5, "Средне — смешанная релевантность контекстов", "Medium — mixed relevance of contexts"),
        (0.4999, "Плохо — контексты в основном нерелевантны", "Poor — contexts are mostly irrelevant"),
        (0.0, "Плохо — контексты в основном нерелевантны", "Poor — contexts are mostly irrelevant"),
    ],
)
def test_bands(score: float, russian: str, english: str) -> None:
    """The score is put into its band as it is, before anything is rounded."""
    assert band(score, "ru")[0] == russian
    assert band(score, "en")[0] == english


@each_case(
    ("score", "line"),
    [
        (0.5, "0.5 (50%) — Смешанная релевантность"),
        (1.0, "1.0 (100%) — Высокая релевантность"),
        (0.0, "0.0 (0%) — Низкая релевантность"),
        (2 / 3, "0.666 (66.6%) — Смешанная релевантность"),
        (0.57, "0.57 (57%) — Смешанная релевантность"),
        (0.89999, "0.899 (89.9%) — Преимущественно релевантные контексты"),
    ],
)
def test_result_line(score: float, line: str) -> None:
    """Numbers are cut, not rounded, so that the line never shows a score of the next band."""
    assert result_line(score, "ru") == line


def test_languages() -> None:
    """Regions do not matter, an unknown language is told in English, and every language says all."""
    assert words("ru-RU") is wordings()["ru"]
    assert words("de") is wordings()["en"]
    assert result_line(0.5, "de") == "0.5 (50%) — Mixed relevance"
    for each in wordings().values():
        assert [lowest for lowest, *_ in each["bands"]] == [0.9, 0.7, 0.5, 0.0]


def test_contexts() -> None:
    """Each context has its ratings in words and numbers, one for each model, and their score; or says it has none."""
    rows = explain_contexts([((2.0, 1.0), 0.75), ((), None)], "ru")
    assert rows == [
        (
            "Контекст 1",
            "Полностью релевантен, Частично релевантен\nсырая оценка (0–2): 2, 1, нормализованная оценка (0–1): 0.75",
        ),
        ("Контекст 2", "нет оценки"),
    ]


# -- through the command line --------------------------------------------------------------------------


def _script(here: Here, name: str, replies: dict[str, int | None], language: str) -> str:
    """A judge that rates contexts by a text in them; None is a call that fails."""
    entries: list[dict[str, Any]] = []
    for text, rating in replies.items():
        found: dict[str, Any] = {"failure": {"kind": "temporary", "message": "No answer."}}
        if rating is not None:
            found = {"verdict": {"text": json.dumps({"score": rating, "reasoning": "r"})}}
        match = {"rubric": RUBRIC.format(language=language), "values": {"contains": text}}
        entries.append({"kind": "completion", "match": match, **found})
    return f"scripted:{here.write(name, entries)}"


LEARNING = {
    "id": "ml",
    "user_input": "Что такое машинное обучение и как оно работает?",
    "retrieved_contexts": [
        "Машинное обучение — это область искусственного интеллекта, в которой программа учится на данных.",
        "Завтра синоптики обещают переменную облачность.",
    ],
}
CONTEXT_TEXTS = LEARNING["retrieved_contexts"]
RESULT = """\
Оценка релевантности (spring-ai-ragas:context_relevance)
  0.5 (50%) — Смешанная релевантность
  Интерпретация: Средне — смешанная релевантность контекстов
"""
CONTEXTS = """\
  Вопрос пользователя  Что такое машинное обучение и как оно работает?
  Контекст 1           Полностью релевантен
                       сырая оценка (0–2): 2, нормализованная оценка (0–1): 1.0
  Контекст 2           Нерелевантен
                       сырая оценка (0–2): 0, нормализованная оценка (0–1): 0.0
"""


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def test_a_russian_run(here: Here) -> None:
    """A definition and a weather forecast make 0.5, told in Russian by the summary and by the sample's page."""
    here.write("data.jsonl", [LEARNING])
    judge = _script(here, "judge.jsonl", {"Машинное обучение — это": 2, "облачность": 0}, "ru")
    ran = here.merilo("run", "data.jsonl", "--judge", judge, "--metrics", METRIC, "--out", "out", "--full")
    assert ran.returncode == 0, ran.stderr
    assert RESULT in ran.stdout
    shown = here.merilo("show", "out", "--sample", "ml").stdout
    assert RESULT + CONTEXTS in shown


def test_several_models(here: Here) -> None:
    """Every judge of the run rates every context; a context shows all ratings, one that failed is not among them."""
    here.write("data.jsonl", [LEARNING])
    first = _script(here, "first.jsonl", {"Машинное обучение — это": 2, "облачность": 0}, "ru")
    second = _script(here, "second.jsonl", {"Машинное обучение — это": 1, "облачность": None}, "ru")
    judges = ("--judge", f"a={first}", "--judge", f"b={second}")
    ran = here.merilo("run", "data.jsonl", *judges, "--metrics", METRIC, "--out", "out", "--full")
    assert ran.returncode == 0, ran.stderr
    shown = here.merilo("show", "out", "--sample", "ml").stdout
    assert "  0.375 (37.5%) — Низкая релевантность\n" in shown
    assert "сырая оценка (0–2): 2, 1, нормализованная оценка (0–1):" in shown
    assert "сырая оценка (0–2): 0, нормализованная оценка (0–1): 0.0" in shown


def test_no_score_no_words(here: Here) -> None:
    """Where there is no score, nothing is said of relevance."""
    here.write("data.jsonl", [{**LEARNING, "retrieved_contexts": []}])
    judge = _script(here, "judge.jsonl", {"": 1}, "ru")
    ran = here.merilo("run", "data.jsonl", "--judge", judge, "--metrics", METRIC, "--out", "out", "--full")
    assert ran.returncode == 0, ran.stderr
    shown = here.merilo("show", "out", "--sample", "ml").stdout
    assert "undefined: no context was retrieved" in " ".join(shown.split())
    for text in (ran.stdout, shown):
        assert "релевантность" not in text


def test_the_report_has_the_words(here: Here) -> None:
    """A report on Russian data has the mean and each sample's score in Russian, with raw and normalised ratings."""
    here.write("data.jsonl", [{"id": "ml", "userInput": LEARNING["user_input"], "retrievedContexts": CONTEXT_TEXTS}])
    judge = _script(here, "judge.jsonl", {"Машинное обучение — это": 2, "облачность": 0}, "ru")
    ran = here.merilo("run", "data.jsonl", "--judge", judge, "--metrics", METRIC, "--out", "out", "--language", "ru")
    assert ran.returncode == 0, ran.stderr
    assert here.merilo("report", "out", "-o", "report.html").returncode == 0
    page = (here.path / "report.html").read_text(encoding="utf-8")
    said = "0.5 (50%) — Смешанная релевантность; Интерпретация: Средне — смешанная релевантность контекстов"
    assert page.count(said) == 2
    assert f"Оценка релевантности ({METRIC})" in page
    assert "Контекст 1: Полностью релевантен, сырая оценка (0–2): 2, нормализованная оценка (0–1): 1.0; " in page
    shown = here.merilo("show", "out", "--full").stdout + here.merilo("show", "out", "--sample", "ml", "--full").stdout
    assert "Прочитано: userInput как user_input, retrievedContexts как" in shown
    assert "контекстов 2, с оценкой 2" in shown
    assert "scored" not in shown
