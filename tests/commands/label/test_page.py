"""The labelling page as bytes: what it holds, what it hides, and its content security policy."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hostile_texts import HOSTILE
from labelled_run import STATEMENT_ROWS, by_grade, contexts_rows, fill_in, judged_run, says_statements

import merilo
from merilo.commands.calibrate.human_labels import attach_files, labels_of
from merilo.commands.calibrate.run import label_agreement
from merilo.commands.label.cli import label
from merilo.commands.label.page import label_page
from merilo.commands.label.run import label_run
from merilo.commands.label.task_file import TaskFile
from merilo.judging.kinds.contexts import Relevance
from merilo.judging.questions import Question

Row = dict[str, Any]
METRIC = "context_relevance"
ALLOWED = {"html", "head", "meta", "title", "style", "script", "body", "main", "div", "article"}
ALLOWED |= {"h1", "h2", "h3", "p", "pre", "b"}


def data_of(page: str) -> Any:
    """The data of the page's script."""
    found = re.search('<script type="application/json" id="tasks">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def page_of(run: merilo.Run, **options: Any) -> str:
    """The page for the tasks of a run."""
    return label_page([line.record() for line in label_run(run, **options).lines])


def says(grade: int, word: str) -> Any:
    """A judge that gives every context one grade and one reason."""

    def judge(question: Question[Any]) -> Row:
        assert isinstance(question, Relevance)
        return {"grade": grade, "evidence": [0] if grade else [], "reason": f"zq{word}", "probability": 0.73125}

    return judge


class Elements(HTMLParser):
    """Every element of a page, with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_opposite_judges_give_the_same_page(tmp_path: Path) -> None:
    """A judge that likes everything and one that likes nothing give the same bytes, and neither is in them."""
    rows = contexts_rows(12)
    pages = [
        page_of(judged_run(tmp_path / name, rows, [METRIC], says(grade, name)), samples=8)
        for name, grade in (("liked", 2), ("disliked", 0))
    ]
    assert pages[0] == pages[1]
    for secret in ("zqliked", "zqdisliked", "0.73125", str(tmp_path)):
        assert secret not in pages[0]
    assert all(record["label"] is None and record["annotator"] is None for record in data_of(pages[0])["records"])


def test_a_page_of_a_pair_names_neither_system(tmp_path: Path) -> None:
    """The names and directories of both runs are absent, also in the commands that attach the labels."""
    rows = contexts_rows(10)
    first = judged_run(tmp_path / "zq-old-system", rows, [METRIC])
    changed = [{**row, "retrieved_contexts": row["retrieved_contexts"][:3]} for row in rows]
    second = judged_run(tmp_path / "zq-new-system", changed, [METRIC])
    page = page_of(first, other=second)
    assert "zq-" not in page
    assert data_of(page)["pair"] is True


def test_tasks_are_those_of_the_file(tmp_path: Path) -> None:
    """The page has the tasks that the file for the terminal has, and the page of that file has the same texts."""
    run = judged_run(tmp_path / "run", STATEMENT_ROWS, ["faithfulness"], says_statements)
    tasks = label_run(run, tmp_path / "t.jsonl", samples=10)
    written = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()]
    assert data_of(label_page([line.record() for line in tasks.lines]))["records"] == written
    fill_in(tmp_path / "t.jsonl", lambda _: "yes", annotator="zqann")
    page = label_page(TaskFile(tmp_path / "t.jsonl").records)
    assert [(each["task"], each["label"]) for each in data_of(page)["records"]] == [
        (each["task"], each["label"]) for each in written
    ]
    assert "zqann" not in page


def test_hostile_texts_stay_text(tmp_path: Path) -> None:
    """200 hostile texts in questions, contexts and ids add no element and no attribute to the page."""
    assert len(set(HOSTILE)) == 200
    rows = [
        {"id": f"{at}{text}", "user_input": f"What?{text}", "retrieved_contexts": [f"It is truly 1.{text}"]}
        for at, text in enumerate(HOSTILE)
    ]
    page = page_of(judged_run(tmp_path / "run", rows, [METRIC], says(1, "x")), samples=200)
    found = Elements(page).found
    assert {tag for tag, _ in found} <= ALLOWED
    names = {name for _, attributes in found for name in attributes}
    assert names <= {"lang", "charset", "http-equiv", "content", "name", "id", "class", "dir", "type"}
    assert sum(tag == "script" for tag, _ in found) == 3
    assert not {"\u202e", "\u2066", "\x1b"} & set(page)
    assert len(data_of(page)["records"]) == 200


def test_the_policy_allows_our_own_scripts_and_no_request(tmp_path: Path) -> None:
    """Style and scripts are allowed by digest, and the page may send no request."""
    tasks = [line.record() for line in label_run(judged_run(tmp_path / "run", contexts_rows(4), [METRIC])).lines]
    page = label_page(tasks)
    policy = next(each["content"] for tag, each in Elements(page).found if tag == "meta" and "http-equiv" in each)
    assert policy is not None
    for tag in ("style", "script"):
        for text in re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL):
            hashed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{hashed}'" in policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src" not in policy
    assert not re.search("https?://(?!www.w3.org)", page)


def test_the_plain_copy_lists_every_task(tmp_path: Path) -> None:
    """Without scripts, every question and text is there, each in its own direction, with a note on answers."""
    rows = [
        {"id": "rtl", "user_input": "מי כתב את הספר?", "retrieved_contexts": ["אנה כתבה אותו. It is truly 2."]},
        {"id": "cjk", "user_input": "谁写了这本书?", "retrieved_contexts": ["安娜写了它。 It is truly 2."]},
    ]
    page = page_of(judged_run(tmp_path / "run", rows, [METRIC], says(1, "x")))
    plain = page[page.index('id="plain"') : page.index('id="tasks"')]
    for text in ("מי כתב את הספר?", "אנה כתבה אותו.", "谁写了这本书?", "安娜写了它。"):
        assert re.search(f'<p class="t" dir="auto">{re.escape(text)}', plain)
    assert "Answers need scripts" in plain


def test_filled_in_records_correct_the_run(tmp_path: Path) -> None:
    """The records of the page, with labels, attach to the run, and correct its mean."""
    run = judged_run(tmp_path / "run", contexts_rows(60), [METRIC])
    files = []
    for name in ("ann", "ben"):
        path = tmp_path / f"labels-{name}.jsonl"
        records = data_of(page_of(run))["records"]
        path.write_text("".join(f"{json.dumps(each)}\n" for each in records), encoding="utf-8")
        files.append(fill_in(path, by_grade, annotator=name))
    found = label_agreement(run, files).metrics[METRIC]
    assert found.correction.labelled == 40
    assert found.agreement
    assert found.agreement[0].disputed == 0
    attach_files([str(run.path)], [str(files[0])])
    assert merilo.Run.open(run.path).labels is not None


def test_labels_of_another_annotator_remain(tmp_path: Path) -> None:
    """Attached one after the other, the labels of two annotators count; those of the same annotator are replaced."""
    run = judged_run(tmp_path / "run", contexts_rows(60), [METRIC])
    records = data_of(page_of(run))["records"]
    files = {}
    for name in ("ann", "ben"):
        path = tmp_path / f"labels-{name}.jsonl"
        path.write_text("".join(f"{json.dumps(each)}\n" for each in records), encoding="utf-8")
        files[name] = fill_in(path, by_grade, annotator=name)
        attach_files([str(run.path)], [str(path)])

    def attached() -> list[str]:
        return [each.annotator for each in labels_of(merilo.Run.open(run.path)) if not each.ticket.settled]

    assert sorted(attached()) == ["ann"] * len(records) + ["ben"] * len(records)
    first, *others = files["ann"].read_text(encoding="utf-8").splitlines()
    cleared = json.dumps({**json.loads(first), "label": None})
    files["ann"].write_text("\n".join([cleared, *others]) + "\n", encoding="utf-8")
    attach_files([str(run.path)], [str(files["ann"])])
    assert sorted(attached()) == ["ann"] * (len(records) - 1) + ["ben"] * len(records)


def test_pages_are_written_from_a_run_and_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--html writes the page of a draw, also without its file, or of an existing file."""
    monkeypatch.chdir(tmp_path)
    judged_run(tmp_path / "out", contexts_rows(6), [METRIC])
    capsys.readouterr()
    label("out", out="t.jsonl", number=4, html="a.html")
    shown = capsys.readouterr().out
    assert "Open a.html in a browser" in shown
    assert "label out --labels labels-NAME.jsonl" in shown
    label("out", number=4, html="b.html", json=True)
    assert json.loads(capsys.readouterr().out)["html"] == "b.html"
    label("t.jsonl", html="c.html", json=True)
    assert json.loads(capsys.readouterr().out) == {"file": "t.jsonl", "html": "c.html", "tasks": 20}
    data = [data_of((tmp_path / name).read_text(encoding="utf-8")) for name in ("a.html", "b.html", "c.html")]
    assert len({each["digest"] for each in data}) == 1
