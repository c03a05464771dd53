"""The language of the screen: `--language ru`."""

import re

import pytest
from command_line import Here
from server import JudgeServer

DATA = [
    {
        "id": f"р{n}",
        "user_input": f"Когда построили дом {n}?",
        "retrieved_contexts": [f"Дом {n} построили в 19{n:02} году.", "В Риме семь холмов."] if n else [],
        "response": f"Дом {n} построили в 19{n:02} году." if n % 3 else "Я не знаю.",
    }
    for n in range(7)
]
NAMES = {
    *(
        "AUROC",
        "context_relevance",
        "context_ranking",
        "context_precision",
        "context_sufficiency",
        "context_utilization",
    ),
    *("context_recall", "context_entity_recall", "id_precision", "id_recall", "reciprocal_rank", "average_precision"),
    *(
        "faithfulness",
        "answer_relevancy",
        "answer_completeness",
        "answer_correctness",
        "noise_sensitivity",
        "nDCG",
        "answering",
    ),
    *"merilo run runs show data jsonl out worst metric sample report label full language ru".split(),
    *"judge openai test model base url http v1 localhost max requests cost prices FILE NAME".split(),
    *("until", "decided", "gates", "toml", "seed", "embedded", "USD", "limit", "seconds", "cache", "no", "metrics"),
    *("reference", "reference_context_ids", "retrieved_context_ids", "answered", "retry", "failed", "json_schema"),
    *("limited", "gated", "p"),
}
"""Words that are the same in every language: names of metrics, fields, options, files, commands and judges."""


def english(text: str) -> set[str]:
    """The words of a text in Latin letters that are no names; digests and numbers are not words."""
    text = re.sub(r"\b[0-9a-f]{12}\b", "", text)
    return {word for word in re.findall(r"[A-Za-z_][\w]*", text) if word not in NAMES}


@pytest.fixture
def data(here: Here) -> Here:
    """A directory with Russian data."""
    here.write("data.jsonl", DATA)
    return here


def test_a_run_and_its_pages_are_russian(data: Here) -> None:
    """No English word is left in the summary, the full pages, the worst samples and a sample, apart from names."""
    ran = data.merilo("run", "data.jsonl", "--language", "ru", "--out", "runs/ru", "--no-cache")
    assert ran.returncode == 0
    assert "7 из 7 образцов (100%)" in ran.stderr
    assert ran.stdout.startswith(
        "7 ответов, встроенный судья (бесплатно, без сети; 8 из 10 его оценок верны).\n"
        "4 сказано в контексте, отказ 3.\n"
    )
    pages = [("show", "runs/ru"), ("show", "runs/ru", "--worst", "2"), ("show", "runs/ru", "--sample", "р1")]
    shown = [data.merilo(*page) for page in pages]
    full = data.merilo("run", "data.jsonl", "--language", "ru", "--out", "runs/ru", "--full")
    for done in (ran, full, *shown):
        assert english(done.stdout + done.stderr) == set()
        assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_limits_are_russian(data: Here) -> None:
    """A limit, how to resume and requests are in Russian; the exit codes stay."""
    with JudgeServer() as server:
        judge = ("--judge", "openai:test-model", "--base-url", server.base_url, "--language", "ru", "--no-cache")
        limited = data.merilo("run", "data.jsonl", *judge, "--max-requests", "5", "--out", "runs/limited")
        empty = data.merilo("run", "data.jsonl", *judge, "--max-requests", "0")
        whole = data.merilo("run", "data.jsonl", *judge, "--metrics", "faithfulness", "--out", "runs/ru")
        sample = data.merilo("show", "runs/ru", "--sample", "р1")
    assert (limited.returncode, empty.returncode, whole.returncode) == (5, 5, 0)
    assert "Достигнут лимит: 5 запросов (--max-requests)" in limited.stderr
    assert "Продолжить с большим лимитом: merilo run data.jsonl" in limited.stderr
    assert empty.stderr.endswith("Запуск не сохранён.\n")
    for done in (limited, empty, whole):
        assert english(done.stdout + done.stderr) == set()
    foreign = r"\{.*?\}|As the test wants it\.|ru/\w+\.v\d"  # raw replies, the judge's reason, and files of rubrics
    assert english(re.sub(foreign, "", sample.stdout, flags=re.DOTALL)) == set()


def test_stored_files_and_json_do_not_change(data: Here) -> None:
    """Only the screen is Russian: outcomes and summary equal those of a run whose samples name their language."""
    data.write("named.jsonl", [{**row, "language": "ru"} for row in DATA])
    data.merilo("run", "data.jsonl", "--language", "ru", "--out", "a", "--no-cache")
    data.merilo("run", "named.jsonl", "--out", "b", "--no-cache")
    for name in ("outcomes.jsonl", "summary.json"):
        assert (data.path / "a" / name).read_bytes() == (data.path / "b" / name).read_bytes()
    shown = data.merilo("show", "a", "--json").stdout
    assert "no context was retrieved" in shown
    assert "образ" not in shown


def test_show_takes_another_language(data: Here) -> None:
    """--language of show sets the screen alone; without it, the page is in the language of the run."""
    data.merilo("run", "data.jsonl", "--out", "en", "--no-cache", "--metrics", "faithfulness")
    data.merilo("run", "data.jsonl", "--out", "ru", "--no-cache", "--metrics", "faithfulness", "--language", "ru")
    assert "by the embedded judge" in data.merilo("show", "en").stdout
    assert "встроенный судья" in data.merilo("show", "en", "--language", "ru").stdout
    assert "by the embedded judge" in data.merilo("show", "ru", "--language", "en").stdout
    assert "встроенный судья" in data.merilo("show", "ru").stdout
