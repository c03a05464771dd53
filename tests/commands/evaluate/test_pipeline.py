"""`evaluate_pipeline` asks the user's pipeline each question, keeps its outputs, and judges them."""

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from grouping import grouped

import merilo
from merilo.commands.evaluate.pipeline import fields_of
from merilo.errors import DataError, UsageError
from merilo.metrics.base import Failed, Score

QUESTIONS = [
    {"id": "tower", "user_input": "When?", "reference_context_ids": ["a"], "reference": "1889", "source": "faq"},
    {"id": "fails", "user_input": "Fail?", "reference_context_ids": ["a"]},
    {"id": "city", "user_input": "Where?", "reference_context_ids": ["b"]},
]
FOUND = [{"text": "It was built in 1889.", "id": "a"}, {"text": "It is in Paris.", "id": "b"}]


@dataclass
class Pipeline:
    """A pipeline that counts its questions; it fails on "Fail?" while `broken`."""

    broken: bool = True
    asked: list[str] = field(default_factory=list)

    def __call__(self, question: str) -> dict[str, object]:
        self.asked.append(question)
        if self.broken and question == "Fail?":
            raise RuntimeError("no index\x1b[31m")
        return {"answer": f"{question} 1889.", "contexts": FOUND[:1], "latency": 0.5}


def run(pipeline: object, tmp_path: Path, questions: Any = QUESTIONS, **options: Any) -> merilo.Run:
    """Evaluate without a judge or a cache."""
    given: dict[str, Any] = {"metrics": ["recall@1"], "cache": False, "out": tmp_path / "run", **options}
    return merilo.evaluate_pipeline(pipeline, questions, **grouped(**given))


def outcomes(done: merilo.Run) -> dict[str, Any]:
    """The outcome of each sample."""
    return {each.sample.id: each.outcomes["recall@1"] for each in done.samples}


def test_answers_are_judged_and_an_error_fails_its_sample_only(tmp_path: Path) -> None:
    """The outcome of a question that the pipeline failed on is Failed with its message, made safe to show."""
    done = run(Pipeline(), tmp_path)
    found = outcomes(done)
    assert found["tower"].value == 1.0
    assert found["city"].value == 0.0
    assert isinstance(found["fails"], Failed)
    assert found["fails"].error.message == r"The pipeline raised RuntimeError: no index\x1b[31m"
    assert found["fails"].error.kind == "pipeline"


def test_the_samples_hold_question_and_output(tmp_path: Path) -> None:
    """The fields of the question stay, the output fills the answer, and its other columns are metadata."""
    record = run(Pipeline(), tmp_path).sample("tower").sample.to_record()
    record.pop("language", None)
    assert record["metadata"].pop("merilo:latency_s") >= 0
    assert record == {
        "id": "tower",
        "user_input": "When?",
        "retrieved_contexts": FOUND[:1],
        "response": "When? 1889.",
        "reference": "1889",
        "reference_context_ids": ["a"],
        "metadata": {"source": "faq", "latency": 0.5},
    }


def test_a_repeated_call_asks_nothing_twice(tmp_path: Path) -> None:
    """With a version the outputs are stored, errors too; the run is resumed, and another version asks again."""
    pipeline = Pipeline()
    stored: dict[str, Any] = {"pipeline_version": "v1", "outputs": tmp_path / "outputs.jsonl"}
    first = run(pipeline, tmp_path, **stored)
    again = run(pipeline, tmp_path, **stored)
    assert sorted(pipeline.asked) == ["Fail?", "When?", "Where?"]
    assert outcomes(first) == outcomes(again)
    run(pipeline, tmp_path, **{**stored, "pipeline_version": "v2"})
    assert len(pipeline.asked) == 6


def test_failed_questions_are_asked_again_on_request(tmp_path: Path) -> None:
    """`retry_failed` asks what failed, and only that."""
    pipeline = Pipeline()
    stored: dict[str, Any] = {"pipeline_version": "v1", "outputs": tmp_path / "outputs.jsonl"}
    run(pipeline, tmp_path, **stored)
    pipeline.broken = False
    done = run(pipeline, tmp_path, **stored, out=tmp_path / "second", retry_failed=True)
    assert pipeline.asked.count("Fail?") == 2
    assert len(pipeline.asked) == 4
    assert isinstance(outcomes(done)["fails"], Score)


def test_outputs_survive_a_killed_call(tmp_path: Path) -> None:
    """Whole lines of an interrupted file are used; its torn last line is asked again and does not damage the next."""
    pipeline = Pipeline()
    path = tmp_path / "outputs.jsonl"
    run(pipeline, tmp_path, pipeline_version="v1", outputs=path, pipeline_concurrency=1)
    text = path.read_text()
    path.write_text(text[: text.index("\n") + 30])
    run(pipeline, tmp_path, pipeline_version="v1", outputs=path, pipeline_concurrency=1)
    assert pipeline.asked == ["When?", "Fail?", "Where?", "Fail?", "Where?"]
    run(pipeline, tmp_path, pipeline_version="v1", outputs=path)
    assert len(pipeline.asked) == 5


def test_without_a_version_nothing_is_stored(tmp_path: Path) -> None:
    """An unnamed pipeline may have changed, so it is asked again; equal questions are asked once."""
    pipeline = Pipeline()
    for name in ("first", "second"):
        run(
            pipeline,
            tmp_path,
            [QUESTIONS[0], {**QUESTIONS[0], "id": "again"}],
            out=tmp_path / name,
            outputs=tmp_path / "outputs.jsonl",
        )
    assert pipeline.asked == ["When?", "When?"]
    assert not (tmp_path / "outputs.jsonl").exists()


def test_calls_in_flight_are_limited(tmp_path: Path) -> None:
    """At most `pipeline_concurrency` questions are in flight, for async and for blocking pipelines."""
    flying, most, lock = 0, [0, 0], threading.Lock()

    def change(by: int, kind: int) -> None:
        nonlocal flying
        with lock:
            flying += by
            most[kind] = max(most[kind], flying)

    async def asynchronous(_: str) -> str:
        change(1, 0)
        await asyncio.sleep(0.01)
        change(-1, 0)
        return "x"

    gate = threading.Barrier(3, timeout=100)

    def blocking(_: str) -> str:
        change(1, 1)
        gate.wait()  # passes only if three calls are in flight
        change(-1, 1)
        return "x"

    questions = [
        {"user_input": f"q{n}", "reference_context_ids": ["a"], "retrieved_context_ids": []} for n in range(12)
    ]
    for number, pipeline in enumerate((asynchronous, blocking)):
        with pytest.raises(UsageError, match="recall@1"):  # a text alone has no contexts
            run(pipeline, tmp_path, questions, pipeline_concurrency=3, out=tmp_path / str(number))
    assert most == [3, 3]


async def test_the_async_form_shares_the_loop(tmp_path: Path) -> None:
    """`aevaluate_pipeline` calls an async pipeline in the loop of its caller."""
    loops = []

    async def pipeline(question: str) -> dict[str, object]:
        loops.append(asyncio.get_running_loop())
        return {"response": question, "retrieved_contexts": FOUND}

    done = await merilo.aevaluate_pipeline(
        pipeline, QUESTIONS[:1], metrics=["recall@1"], storage={"cache": False}, out=tmp_path / "run"
    )
    assert loops == [asyncio.get_running_loop()]
    assert outcomes(done)["tower"].value == 1.0


def test_a_pipeline_that_always_fails_is_an_error(tmp_path: Path) -> None:
    """If no question has an answer there is nothing to judge; the message has the first error."""

    def pipeline(_: str) -> str:
        raise ConnectionError("no route")

    with pytest.raises(DataError, match=r"failed on 3 questions\. The first error: .*ConnectionError: no route$"):
        run(pipeline, tmp_path)


class Unreadable(Exception):
    """An error without a readable message."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("error", [StopIteration, asyncio.CancelledError, Unreadable])
@pytest.mark.parametrize("is_async", [False, True])
def test_no_error_of_a_pipeline_ends_or_blocks_the_others(
    error: type[BaseException], is_async: bool, tmp_path: Path
) -> None:
    """Errors that a future cannot hold, that look like a cancellation, or without a message fail one sample."""

    def blocking(question: str) -> dict[str, object]:
        if question == "When?":
            raise error
        return {"answer": question, "contexts": FOUND[:1]}

    async def asynchronous(question: str) -> dict[str, object]:
        return blocking(question)

    found = outcomes(run(asynchronous if is_async else blocking, tmp_path, pipeline_concurrency=1))
    assert isinstance(found["tower"], Failed)
    assert found["tower"].error.kind == "pipeline"
    assert isinstance(found["city"], Score)


@pytest.mark.parametrize("options", [{"metrics": ["fathfulness"]}, {"judge": "nothing:at-all"}, {"draws": 0}])
def test_options_are_checked_before_the_pipeline_is_asked(options: dict[str, Any], tmp_path: Path) -> None:
    """A misspelt metric costs no call of the pipeline."""
    pipeline = Pipeline()
    with pytest.raises(UsageError):
        run(pipeline, tmp_path, **options)
    assert pipeline.asked == []


def test_a_cancelled_evaluation_asks_no_more(tmp_path: Path) -> None:
    """A real cancellation is no error of the pipeline."""

    async def cancelled() -> list[str]:
        asked = []

        async def pipeline(question: str) -> str:
            asked.append(question)
            await asyncio.sleep(60)
            return question

        evaluation = merilo.aevaluate_pipeline(
            pipeline, QUESTIONS, storage={"cache": False}, out=tmp_path, calls={"concurrency": 1}
        )
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(evaluation, 0.5)
        return asked

    assert asyncio.run(cancelled()) == ["When?"]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("Yes.", {"response": "Yes."}),
        (("Yes.", ["a"]), {"response": "Yes.", "retrieved_contexts": ["a"]}),
        (["a", "b"], {"retrieved_contexts": ["a", "b"]}),
        (("Yes.", "a"), {"response": "Yes.", "retrieved_contexts": ["a"]}),
        ([], {"retrieved_contexts": []}),
        (
            [
                {"role": "user", "content": "q?"},
                {"role": "tool", "content": FOUND[0]},
                {"role": "assistant", "content": "Yes."},
            ],
            {"response": "Yes.", "retrieved_contexts": FOUND[:1], "metadata": {"conversation_id": "1"}},
        ),
        (FOUND, {"retrieved_contexts": FOUND}),
        (
            {"input": "other words", "context": ["a"], "answer": "Yes."},
            {"retrieved_contexts": ["a"], "response": "Yes."},
        ),
        (merilo.Sample("7", response="Yes."), {"response": "Yes."}),
    ],
)
def test_outputs_of_each_form_are_read(output: object, expected: dict[str, object]) -> None:
    """A text, a pair, a list of contexts, a dict of any known names or a sample; never the question."""
    assert fields_of(output) == expected


def test_the_mapping_names_the_keys_of_an_output() -> None:
    """The columns that the user maps are those of the questions and of the outputs."""
    assert fields_of({"reply": "Yes."}, mapping={"reply": "response"}) == {"response": "Yes."}


@pytest.mark.parametrize("output", [None, 3, b"x", {"latency": 1}, {"response": [3]}, object()])
def test_an_unusable_output_is_an_error(output: object) -> None:
    """Anything else is refused, so it becomes a failed sample and never an answer."""
    with pytest.raises(DataError):
        fields_of(output)
