"""Labelling in `merilo view`: tasks in the directory, answers sent by a page, and the numbers that they correct."""

import json
import re
from pathlib import Path

import pytest
from asgi import HOST, Got, ask
from graded_runs import graded
from starlette.types import ASGIApp

from merilo.commands.label.run import label_run
from merilo.commands.view.app import create_app
from merilo.runs.files import LABELS
from merilo.runs.run import Run

METRIC = "context_relevance"


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """A directory with two runs and the tasks of the pair."""
    runs = [graded(tmp_path / name, {f"s{number}": [number % 3] for number in range(24)}) for name in ("a", "b")]
    label_run(runs[0], tmp_path / "tasks.jsonl", metric=METRIC, samples=24, other=runs[1])
    return tmp_path


def app_of(directory: Path) -> ASGIApp:
    """The application over a directory."""
    return create_app(directory, "token", 8642)


def page_of(app: ASGIApp) -> str:
    """The address of the only labelling page in the list."""
    (address,) = re.findall(r'href="(labels/[0-9a-f]{16})"', ask(app, "/").text)
    return address


def send(app: ASGIApp, address: str, body: object, *, secret: str = "token") -> Got:  # noqa: S107
    """The response to what a labelling page sends."""
    headers = [("Host", HOST), ("Origin", f"http://{HOST}")]
    return ask(app, address, "POST", headers=headers, body=json.dumps(body).encode(), first=f"/{secret}")


def tasks_in(directory: Path) -> list[dict[str, str]]:
    """The tasks of the file."""
    return [json.loads(line) for line in (directory / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]


def test_answers_correct_the_numbers_of_the_pair(labelled: Path) -> None:
    """Every answer is stored at once; attached, they correct the comparison to which the page then leads."""
    app = app_of(labelled)
    address = page_of(app)
    assert ask(app, address).status == 200
    assert send(app, f"{address}/attach", {}).status == 422
    for task in tasks_in(labelled):
        got = send(app, address, {"annotator": "ann", "task": task["task"], "label": task["labels"].split(":")[0]})
        assert got.status == 200, got.text
    assert len(got.json["labels"]) == len(tasks_in(labelled))
    assert not (labelled / "a" / LABELS).exists()
    found = send(app, f"{address}/attach", {})
    assert found.status == 200, found.text
    assert found.json["href"].startswith("../compare/?run=")
    assert all(Run.open(labelled / name).labels for name in ("a", "b"))
    assert "corrected" in ask(app, found.json["href"]).text
    assert "answers of 1 annotator" in ask(app, "/").text
    assert ask(app, "/").text.count('<span class="delta soft">corrected</span>') == 2
    assert page_of(app) == address


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"annotator": "ann", "task": "unknown", "label": "1"}, 422),
        ({"annotator": "", "task": "unknown", "label": "1"}, 422),
        ([], 422),
    ],
)
def test_other_answers_are_refused_with_a_reason(labelled: Path, body: object, status: int) -> None:
    """An answer to no task has a status after which the page does not send it again, and stores nothing."""
    app = app_of(labelled)
    got = send(app, page_of(app), body)
    assert (got.status, bool(got.json["error"])) == (status, True)
    assert sorted(path.name for path in labelled.iterdir()) == ["a", "b", "tasks.jsonl"]


def test_answers_need_the_secret_and_known_tasks(labelled: Path) -> None:
    """Without the secret nothing is stored; a file of tasks that is not in the list cannot be named."""
    app = app_of(labelled)
    body = {"annotator": "ann", "task": tasks_in(labelled)[0]["task"], "label": "2"}
    assert send(app, page_of(app), body, secret="other").status == 403  # noqa: S106
    assert send(app, "/labels/0123456789abcdef", body).status == 404
    assert ask(app, "/labels/..%2Ftasks.jsonl").status == 404


def test_tasks_whose_runs_are_elsewhere_are_kept(labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Answers are stored next to the tasks, and attaching says that the runs are missing."""
    alone = tmp_path_factory.mktemp("alone")
    (labelled / "tasks.jsonl").rename(alone / "tasks.jsonl")
    app = app_of(alone)
    address, task = page_of(app), tasks_in(alone)[0]
    assert send(app, address, {"annotator": "ann", "task": task["task"], "label": task["labels"].split(":")[0]}).json
    assert "not in this directory" in send(app, f"{address}/attach", {}).json["error"]
