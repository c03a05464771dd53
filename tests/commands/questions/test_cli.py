"""`merilo questions` as people type it."""

import json
from typing import Any

import pytest
from command_line import Here
from server import Asked, JudgeServer

from merilo.cli import outcome

KEY = {"OPENAI_API_KEY": "sk-test"}
COUNT = 8
DOCUMENTS = [{"id": f"d{n}", "text": f"Tower T{n}x was built in 1{200 + n}."} for n in range(COUNT)]


def writes(asked: Asked) -> object:
    """A model that asks for the year of the tower in the passage, and finds it only in a text with that tower."""
    tower = next(word for word in asked.user.replace("?", " ").split() if word.startswith("T") and word.endswith("x"))
    match asked.kind:
        case "passage_question":
            return {"question": f"When was {tower} built?", "answer": f"Tower {tower} was built then."}
        case "sufficiency":
            question = asked.user.split("<<<user input")[1]
            tower = next(word for word in question.replace("?", " ").split() if word.startswith("T"))
            return "sufficient" if f"Tower {tower} " in asked.user.split("<<<user input")[0] else "insufficient"
        case "support":
            return "supported"
        case _:
            return "UNKNOWN"


def questions(here: Here, server: JudgeServer, *more: str) -> Any:  # Any: a finished process
    here.write("documents.jsonl", DOCUMENTS)
    words = ["questions", "documents.jsonl", "--judge", "openai:test-model", "--base-url", server.base_url]
    return here.merilo(*words, "--quiet", *more, env=KEY)


def content(here: Here, name: str = "questions.jsonl") -> bytes:
    return (here.path / name).read_bytes()


def test_a_model_writes_and_checks_the_questions(here: Here) -> None:
    """Five requests for each passage give a question and a twin; the reduced documents have no passage left."""
    with JudgeServer(writes) as server:
        done = questions(here, server, "--number", "3", "--without", "reduced.jsonl", "--json")
        assert done.returncode == 0, done.stderr
        assert server.count == 15
    found = json.loads(done.stdout)
    assert (found["drawn"], found["kept"], found["passages"], found["closed_book"]) == (3, 3, COUNT, True)
    rows = [json.loads(line) for line in content(here).splitlines()]
    assert [row["metadata"]["answerable"] for row in rows] == [True, False] * 3
    left = {row["id"]: row["text"] for row in map(json.loads, content(here, "reduced.jsonl").splitlines())}
    assert len(left) == COUNT
    assert [name for name, text in left.items() if not text] == [row["metadata"]["document"] for row in rows[::2]]


def test_no_question_is_no_success(here: Here) -> None:
    """The status is 3 if all passages are dropped, with a hint."""

    def never(asked: Asked) -> object:
        return "insufficient" if asked.kind == "sufficiency" else writes(asked)

    with JudgeServer(never) as server:
        done = questions(here, server, "--number", "2")
    assert (done.returncode, "No question is left." in done.stderr) == (3, True), done.stderr


def test_a_limit_stops_it_and_the_same_command_resumes(here: Here) -> None:
    """The status is 5 and the file has fewer questions; repeated, only the rest is sent, and the bytes are equal to
    those of a draw without interruption.
    """
    with JudgeServer(writes) as server:
        done = questions(here, server, "--max-requests", "12", "--concurrency", "1")
        assert done.returncode == 5, done.stderr
        assert server.count == 12
        part = content(here)
        done = questions(here, server)
        assert done.returncode == 0, done.stderr
        assert server.count == 5 * COUNT
        whole = content(here)
        assert len(part) < len(whole)
        assert questions(here, server, "--no-cache", "-o", "again.jsonl").returncode == 0
    assert content(here, "again.jsonl") == whole


def test_a_dry_call_sends_nothing(here: Here) -> None:
    """--plan estimates the requests for the drawn passages and writes no file."""
    with JudgeServer(writes) as server:
        found = json.loads(questions(here, server, "--plan", "--json").stdout)
        assert server.count == 0
    assert found["typical"]["requests"] >= 3 * COUNT
    assert not (here.path / "questions.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "cannot write questions"),
        (("--number", "0"), "--number"),
        (("-o", "documents.jsonl"), "are different files"),
        (("--without", "./questions.jsonl"), "are different files"),
    ],
)
def test_wrong_use(
    here: Here,
    arguments: tuple[str, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A usage error is one sentence with exit code 2."""
    here.write("documents.jsonl", DOCUMENTS)
    monkeypatch.chdir(here.path)
    assert outcome(["questions", "documents.jsonl", "--no-config", *arguments]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_failed_passages_are_retried_by_the_same_command(here: Here) -> None:
    """If passages failed, the message names a command that exists: the same one again, which asks only what failed."""
    broken = True

    def fails(asked: Asked) -> object:
        return {"text": "?"} if broken and asked.kind == "support" else writes(asked)

    with JudgeServer(fails) as server:
        done = questions(here, server, "--number", "2")
        assert done.returncode == 4
        assert "2 of 2 passages failed (more than 1%). To retry them, repeat the command" in done.stderr
        before, broken = server.count, False
        assert questions(here, server, "--number", "2").returncode == 0
        assert server.count - before < 10
    assert len(content(here).splitlines()) == 4
