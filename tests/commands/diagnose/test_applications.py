"""Applications that fail: they ignore contexts, raise, hang, return nonsense, die, or answer from a cache."""

import asyncio
import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import merilo
from merilo.commands.diagnose.arms import Question
from merilo.commands.diagnose.arms import retrieved as retrieved_of
from merilo.commands.diagnose.page import Diagnosis
from merilo.errors import RunError, UsageError
from merilo.stats.diagnosis import Arm, Cause

Contexts = list[str] | None


def returning(value: object) -> Callable[..., object]:
    """Return an application that always returns this."""
    return lambda question, contexts=None: value if question else contexts


NUMBER = 30


def passage(number: int) -> str:
    return f"The tower number {number} on the hill was finished by its builders in the year {1200 + 7 * number}."


QUESTIONS = [
    {
        "id": f"t{number}",
        "user_input": f"When was tower number {number} finished?",
        "reference": str(1200 + 7 * number),
        "reference_contexts": [passage(number)],
    }
    for number in range(NUMBER)
]


def right(answer: str, sample: merilo.Sample) -> bool:
    return str(sample.reference) in answer


def retrieved(question: str) -> list[str]:
    """Every third evidence is missing."""
    number = int("".join(filter(str.isdigit, question)) or 0)
    found = [passage((number + step) % NUMBER) for step in (5, 9, 13)]
    return found if number % 3 == 0 else [*found[:2], passage(number)]


def reads(question: str, contexts: list[str]) -> str:
    """Return what the contexts say about the question; empty if they do not."""
    if "access word" in question:
        return next((each for each in contexts if "access word" in each), "")
    number = "".join(filter(str.isdigit, question))
    return next((each for each in contexts if f"number {number} " in each), "")


def plain(question: str, contexts: Contexts = None) -> tuple[str, list[str]]:
    """An application that answers with other words each time."""
    contexts = retrieved(question) if contexts is None else contexts
    return f"{random.random()} {reads(question, contexts) or 'unknown'}", contexts


def page(found: Diagnosis) -> str:
    """Return the printed page without its line breaks."""
    return " ".join(str(found).split())


def diagnosed(app: object, path: Path, **options: Any) -> Diagnosis:  # Any: of `diagnose`
    return merilo.diagnose(app, QUESTIONS, right=right, out=path / "out", **options)


def test_an_application_that_ignores_its_contexts_is_refused(tmp_path: Path) -> None:
    """Nothing but the canary is asked."""
    asked: list[str] = []

    def ignores(question: str, contexts: Contexts = None) -> tuple[str, list[str]]:
        asked.append(question)
        return plain(question)

    with pytest.raises(UsageError, match="The application ignores its contexts"):
        diagnosed(ignores, tmp_path)
    assert len(asked) == 1
    assert diagnosed(plain, tmp_path).failed == 0, "the repaired application is asked again"


@pytest.mark.parametrize(
    ("app", "message"),
    [
        (lambda _: "no contexts", "function takes no contexts, and has no retriever"),
        (lambda question, contexts=None: [question][len(contexts)], "raised IndexError"),
        (returning(42), "cannot be read"),
        (returning(None), "cannot be read"),
        (returning(object()), "cannot be read"),
        (returning(["only", "contexts"]), "returned no answer"),
        ("text", "Code in a file is named"),
        ("http://user:word@127.0.0.1:9/answer", "must have no password, query or fragment"),
        ("http://127.0.0.1:9/answer?token=secret", "must have no password, query or fragment"),
        (3, "must be a function"),
    ],
)
def test_an_application_that_fails_at_once_is_refused(app: object, message: str, tmp_path: Path) -> None:
    """The error of the application is in the message."""
    with pytest.raises(UsageError, match=message):
        diagnosed(app, tmp_path)


def test_an_application_without_contexts_is_refused(tmp_path: Path) -> None:
    """The second call shows it: no contexts were returned with the answer."""
    asked: list[str] = []

    def only_text(question: str, contexts: Contexts = None) -> str:
        asked.append(question)
        return plain(question, contexts)[0]

    with pytest.raises(UsageError, match="The application returned no contexts"):
        diagnosed(only_text, tmp_path)
    assert len(asked) == 2
    assert diagnosed(plain, tmp_path).failed == 0, "the repaired application is asked again"


@pytest.mark.parametrize(
    ("decide", "message"),
    [
        (lambda *_: 1 / 0, "--right raised ZeroDivisionError"),
        (lambda *_: "yes", "--right must return True, False or a number, got str"),
        (lambda *_: None, "got NoneType"),
    ],
)
def test_a_broken_right_is_refused_at_once(decide: Callable[..., object], message: str, tmp_path: Path) -> None:
    """The first answer shows it, and nothing more is asked."""
    with pytest.raises(UsageError, match=message):
        merilo.diagnose(plain, QUESTIONS, right=decide, out=tmp_path / "out")
    assert not (tmp_path / "out" / "calls" / "answers.jsonl").exists()


def test_another_application_needs_another_directory(tmp_path: Path) -> None:
    """Answers of a changed function, or of another --right, are never mixed with stored ones."""
    diagnosed(plain, tmp_path)
    with pytest.raises(UsageError, match="has answers of another application, or of another version; name another"):
        diagnosed(lambda question, contexts=None: plain(question, contexts), tmp_path)
    with pytest.raises(UsageError, match="has answers of another --right"):
        merilo.diagnose(plain, QUESTIONS, right=lambda answer, sample: True, out=tmp_path / "out")  # noqa: ARG005
    assert diagnosed(plain, tmp_path).failed == 0


@pytest.mark.parametrize("name", ["calls", "calls/answers.jsonl"])
def test_nothing_is_written_through_a_link(name: str, tmp_path: Path) -> None:
    """A link in the directory of a diagnosis could lead to any file."""
    link = tmp_path / "out" / name
    link.parent.mkdir(parents=True)
    target = tmp_path / "target"
    target.mkdir() if name == "calls" else target.write_text("")
    link.symlink_to(target)
    with pytest.raises(RunError, match="is not a regular file"):
        diagnosed(plain, tmp_path)
    assert not (list(target.iterdir()) if target.is_dir() else target.read_text())


def test_records_that_are_left_out_are_counted(tmp_path: Path) -> None:
    """The screen has their number by reason; a repeated id is refused with its record before anything is asked."""
    rows = [
        *QUESTIONS,
        {"id": "a", "user_input": "a?", "reference_contexts": ["x y z"]},
        {"id": "b", "user_input": "b?"},
    ]
    found = merilo.diagnose(
        plain, [*rows, {"id": "c", "user_input": "c?", "reference": "d"}], right=right, out=tmp_path
    )
    assert "Left out: 2 records without reference, 1 record without evidence." in page(found)
    assert len(found.questions) == NUMBER
    with pytest.raises(merilo.DataError, match=r"record 31.* expected a unique id, got 't3', the id of sample 4"):
        merilo.diagnose(plain, [*QUESTIONS, QUESTIONS[3]], right=right, out=tmp_path / "other")


def test_answers_without_a_verdict_stop_before_causes(tmp_path: Path) -> None:
    """If the judge leaves more than a third undecided, causes are not paid for, and nothing is told."""

    def mute(question: str, contexts: Contexts = None) -> tuple[str, list[str]]:
        answer, given = plain(question, contexts)
        return (answer if "access word" in question or contexts is None else "I cannot say."), given

    found = merilo.diagnose(mute, QUESTIONS, each=5, out=tmp_path / "out")
    assert "answers have no verdict: use --right or another judge." in page(found)
    assert not found.has_verdict
    assert not found.causes


def test_errors_are_failed_and_leave_the_comparison(tmp_path: Path) -> None:
    """A question with a failed arm is counted and left out there."""

    def breaks(question: str, contexts: Contexts = None) -> tuple[str, list[str]]:
        if contexts is not None and len(contexts) == 4 and "number 4 " in question:
            raise RuntimeError("too long")
        return plain(question, contexts)

    found = diagnosed(breaks, tmp_path, each=20)
    assert found.failed == 1
    assert found.effects["placebo"].comparison.counts.pairs == NUMBER - 1
    assert found.effects["placebo"].estimate.missing.failed == 1
    assert found.effects["only the evidence"].comparison.counts.pairs == NUMBER
    assert "raised RuntimeError: too long" in page(found)
    assert {each.cause for each in found.causes.values()} == {Cause.MISSING}


def test_hanging_calls_are_failed(tmp_path: Path) -> None:
    """A call that gives no answer in time is failed, also if the thread cannot be stopped."""
    released, ended = Event(), list[str]()

    def hangs(question: str, contexts: Contexts = None) -> tuple[str, list[str]]:
        if contexts == [] and "number 1" in question:
            released.wait(60)
            ended.append(question)
        return plain(question, contexts)

    found = diagnosed(hangs, tmp_path, limits={"timeout_s": 3, "concurrency": 32})
    assert not ended
    released.set()
    assert found.failed == 11
    assert "did not answer within 3 s" in page(found)


def test_an_application_that_dies_on_the_way_is_told(tmp_path: Path) -> None:
    """After half of the calls everything fails: the effects are over the rest, and no cause is named."""
    left = 3 * NUMBER

    def dies(question: str, contexts: Contexts = None) -> tuple[str, list[str]]:
        nonlocal left
        left -= 1
        if left < 0:
            raise ConnectionError("gone")
        return plain(question, contexts)

    found = diagnosed(dies, tmp_path, each=5, limits={"concurrency": 1})
    pairs = found.effects["placebo"].comparison.counts.pairs
    assert 0 < pairs < NUMBER
    assert {each.cause for each in found.causes.values()} <= {Cause.NOT_SHOWN}
    assert {each.reason for each in found.causes.values()} <= {"an answer has no verdict"}


def test_an_arm_with_the_same_contexts_is_not_asked_again(tmp_path: Path) -> None:
    """Evidence that is already first has no cause by order, and no draws are spent on it."""

    def first(question: str, contexts: Contexts = None) -> tuple[str, list[str]]:
        if contexts is None and "number 1 " in question:
            contexts = [passage(1), passage(9)]
        answer, given = plain(question, contexts)
        return (answer if "access word" in question else f"{random.random()} unknown"), given

    found = diagnosed(first, tmp_path, ids=["t1", "t2"])
    assert "evidence first" in found.causes["t2"].arms
    assert "evidence first" not in found.causes["t1"].arms
    assert found.causes["t1"].cause is Cause.ELSEWHERE


def test_healthy_and_failed_questions_of_ids_are_named(tmp_path: Path) -> None:
    """A question that is right in all draws is right, not unstable; one that failed is named with its error."""

    def breaks(question: str, contexts: Contexts = None) -> tuple[str, list[str]]:
        if "number 2 " in question:
            raise RuntimeError("too long")
        return plain(question, contexts)

    found = diagnosed(breaks, tmp_path, ids=["t1", "t2"])
    assert {id_: each.cause for id_, each in found.causes.items()} == {"t1": Cause.RIGHT}
    assert "1 question: 1 right." in page(found)
    assert found.question("t2").reason == "an answer has no verdict"
    assert "5 answers failed and left out (t2). The first: The application raised" in page(found)


def test_async_applications_are_asked_together(tmp_path: Path) -> None:
    """At most `concurrency` calls are in flight."""
    now = most = 0

    async def slow(question: str, contexts: Contexts = None) -> dict[str, object]:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        answer, given = plain(question, contexts)
        return {"answer": answer, "contexts": given}

    found = diagnosed(slow, tmp_path, limits={"concurrency": 4})
    assert (most, found.failed) == (4, 0)


@contextmanager
def served(app: Callable[[str, Contexts], tuple[str, list[str]]]) -> Iterator[str]:
    """Serve an application on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer, contexts = app(body["question"], body["contexts"])
            text = json.dumps({"answer": answer, "contexts": contexts}).encode()
            self.send_response(500 if "number 7 " in body["question"] else 200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *given: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/answer"
    server.shutdown()
    server.server_close()


def test_a_url_is_an_application(tmp_path: Path) -> None:
    """It takes question and contexts as JSON and returns fields; another status is an error."""
    with served(plain) as url:
        found = diagnosed(url, tmp_path)
    assert found.failed == 5
    assert "status 500" in page(found)
    assert found.effects["evidence always there"].verdict == "better"
    with pytest.raises(UsageError, match="No server at"):
        merilo.diagnose(url, QUESTIONS, right=right, out=tmp_path / "other")


# -- the same bytes each time -------------------------------------------------------------------------


def wording(question: str, contexts: list[str]) -> int:
    return blake2b(repr((question, contexts)).encode(), digest_size=8).digest()[0]


def test_one_prompt_right_by_chance_has_no_cause(tmp_path: Path) -> None:
    """At temperature 0 an answer is right or wrong by its prompt: draws with other passages at the end show that."""

    def by_chance(question: str, contexts: Contexts = None) -> tuple[str, list[str]]:
        contexts = retrieved(question) if contexts is None else contexts
        if "access word" in question:
            return reads(question, contexts), contexts
        good = wording(question, contexts) % 20 < 9
        number = int("".join(filter(str.isdigit, question)))
        return f"{1200 + 7 * number if good else 'unknown'}", contexts

    found = diagnosed(by_chance, tmp_path, each=NUMBER)
    assert len(found.causes) > 8
    assert {each.cause for each in found.causes.values()} <= {Cause.NOT_SHOWN, Cause.UNSTABLE}


@pytest.mark.parametrize("reads_end", [False, True])
def test_the_same_answers_show_a_cause_only_if_the_prompts_differ(tmp_path: Path, *, reads_end: bool) -> None:
    """An application that drops all contexts after the fourth gets one prompt in all draws, so nothing is shown."""

    def steady(question: str, contexts: Contexts = None) -> tuple[str, list[str]]:
        contexts = retrieved(question) if contexts is None else contexts
        return reads(question, contexts if reads_end else contexts[:4]) or "unknown", contexts

    found = diagnosed(steady, tmp_path, each=NUMBER)
    assert len(found.causes) == NUMBER / 3
    causes = {each.cause for each in found.causes.values()}
    assert causes == ({Cause.MISSING} if reads_end else {Cause.NOT_SHOWN})
    if not reads_end:
        assert {each.reason for each in found.causes.values()} == {"the application answers the same every time"}


def test_a_cache_by_question_shows_nothing(tmp_path: Path) -> None:
    """The second canary asks the first question with another fact, so a cache answers it wrongly."""
    known: dict[str, str] = {}

    def cached(question: str, contexts: Contexts = None) -> tuple[str, list[str]]:
        contexts = retrieved(question) if contexts is None else contexts
        return known.setdefault(question, reads(question, contexts) or "unknown"), contexts

    found = diagnosed(cached, tmp_path, each=NUMBER, limits={"concurrency": 1})
    assert {each.cause for each in found.causes.values()} <= {Cause.NOT_SHOWN}
    assert "The application gives the same answer in every arm; is there a cache by question?" in page(found)


def test_the_arms_get_what_their_names_say(tmp_path: Path) -> None:
    """The contexts of each arm, in order."""
    found = diagnosed(plain, tmp_path)
    given = {(each.question, each.arm): list(each.metadata["contexts"]) for each in found.samples}
    for number, form in ((3, "missing"), (4, "whole")):
        own, unchanged = passage(number), given[f"t{number}", Arm.UNCHANGED]
        assert unchanged == retrieved(f"number {number} ")
        assert given[f"t{number}", Arm.NONE] == []
        assert given[f"t{number}", Arm.ONLY] == [own]
        assert given[f"t{number}", Arm.FIRST] == [own, *(each for each in unchanged if each != own)], form
        placebo, *rest = given[f"t{number}", Arm.PLACEBO]
        assert rest == unchanged
        assert placebo != own
        assert abs(len(placebo) - len(own)) < 3


def test_evidence_may_be_ids_of_documents(tmp_path: Path) -> None:
    """Without texts in the data, ids name the evidence and decide if it was retrieved."""
    documents = tmp_path / "documents.jsonl"
    texts = [json.dumps({"id": f"d{number}", "text": passage(number)}) for number in range(NUMBER)]
    documents.write_text("\n".join(texts), encoding="utf-8")
    rows = [{**each, "reference_context_ids": [f"d{each['id'][1:]}"]} for each in QUESTIONS]
    rows.append({**rows[0], "id": "other", "reference_context_ids": ["d0", "unknown"]})
    for each in rows:
        del each["reference_contexts"]

    def named(question: str, contexts: Contexts = None) -> dict[str, object]:
        answer, given = plain(question, contexts)
        ids = [f"d{each.split()[3]}" for each in given if contexts is None and "number" in each]
        return {"answer": answer, "contexts": [f"{each} It is tall." for each in given], "retrieved_context_ids": ids}

    found = merilo.diagnose(named, rows, right=right, reading={"documents": documents}, out=tmp_path / "out")
    assert "Left out: 1 record with ids that the documents lack." in page(found)
    forms = {each.question: each.metadata["form"] for each in found.samples}
    assert forms == {f"t{number}": "whole" if number % 3 else "missing" for number in range(NUMBER)}
    assert found.effects["evidence always there"].verdict == "better"


@pytest.mark.parametrize(
    ("contexts", "form"),
    [
        (
            [
                "A chunk about something else.",
                "It says: the bridge was closed for repairs in May 1975. Traffic went on.",
            ],
            "whole",
        ),
        (["the bridge was closed for rep", "It rained."], "cut"),
        (["Old news. It was closed for repairs in May 1975. Then more."], "missing"),
        (["for repairs in May 1975. Then more text follows."], "cut"),
        (["the bridge"], "missing"),
        ([], "missing"),
    ],
)
def test_a_chunk_holds_cuts_or_misses_the_evidence(contexts: list[str], form: str) -> None:
    """White space does not count; a chunk that cuts the evidence shares its beginning or end, of 20 characters."""
    evidence = "the  bridge was closed\nfor repairs in May 1975."
    asked = Question(merilo.Sample("q"), (evidence,), frozenset(), "other", ())
    assert retrieved_of(asked, contexts, ()).form == form
