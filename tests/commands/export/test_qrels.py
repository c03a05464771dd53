"""`merilo export --documents`: labels pooled over runs with different chunks, and what is not judged yet."""

import json
import time
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import merilo
from merilo.cli import app
from merilo.commands.calibrate.human_labels import attach_files
from merilo.commands.export.qrels import pool_qrels
from merilo.commands.label.run import label_run
from merilo.data.span_labels import load_judged
from merilo.errors import DataError, RunError, UsageError
from merilo.judging.questions import Question

TEXT = "The tower was built in 1889. It is made of iron. It is 330 m high. Many people visit it."
DOCUMENTS = [{"id": "rome", "text": "Rome has seven hills."}, {"id": "tower", "text": TEXT}]
BUILT, IRON, HIGH, VISIT = (
    "The tower was built in 1889.",
    "It is made of iron.",
    "It is 330 m high.",
    "Many people visit it.",
)


def judged(question: Question[Any]) -> dict[str, Any]:
    """Only the year is relevant, wherever it is."""
    evidence = [at for at, each in enumerate(question.sentences) if "1889" in each]
    return {"grade": 2 if evidence else 0, "evidence": evidence}


def written(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run_of(path: Path, *contexts: str, asked: bool = True) -> Path:
    """A run of one sample with these contexts, judged or not."""
    sample = {"id": "q", "user_input": "When was it built?", "retrieved_contexts": contexts, "reference_contexts": []}
    metric = "context_relevance" if asked else "span_recall"
    judge = merilo.ScriptedJudge.by(judged, version="1")
    merilo.evaluate([sample], metrics=[metric], judge=judge, out=path, storage={"cache": False})
    return path


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    return written(tmp_path / "documents.jsonl", *DOCUMENTS)


def shown(path: Path) -> list[tuple[str, int, str]]:
    return [(each["text"], each["grade"], ":".join(each["by"].split(":")[:2])) for each in read(path)]


def test_evidence_sentences_become_spans(tmp_path: Path, documents: Path) -> None:
    """The evidence sentence has the verdict's grade and the other sentences 0; other chunks of the text add to them."""
    one = run_of(tmp_path / "one", f"{BUILT}\n{IRON}")
    other = run_of(tmp_path / "other", f"{IRON} {HIGH}")
    out = tmp_path / "qrels.jsonl"
    found = pool_qrels([one, other], documents, out)
    assert shown(out) == [(BUILT, 2, "judge:scripted"), (f"{IRON} {HIGH}", 0, "judge:scripted")]
    assert [TEXT[each["start"] : each["end"]] for each in read(out)] == [BUILT, f"{IRON} {HIGH}"]
    assert (found.spans, found.missing, found.lost) == (2, 0, 0)


def test_the_order_of_runs_changes_nothing(tmp_path: Path, documents: Path) -> None:
    """Three runs in any order give the same bytes, labels and missing sentences alike."""
    runs = [
        run_of(tmp_path / "a", f"{BUILT} {IRON}"),
        run_of(tmp_path / "b", IRON, "1889. It is"),
        run_of(tmp_path / "c", f"{HIGH} {VISIT}", asked=False),
    ]
    for missing in (False, True):
        out = [tmp_path / f"{missing}{number}.jsonl" for number in range(6)]
        for path, order in zip(out, permutations(runs), strict=True):
            pool_qrels(order, documents, path, missing=missing)
        assert len({path.read_bytes() for path in out}) == 1
        assert out[0].read_bytes()


def test_labels_of_people_win(tmp_path: Path, documents: Path) -> None:
    """A person's label replaces the judge's, higher or lower, and only where it is."""
    run = run_of(tmp_path / "run", f"{BUILT} {IRON}")
    labels = written(
        tmp_path / "people.jsonl",
        {"sample": "q", "text": "The tower was built", "grade": 0},
        {"sample": "q", "text": IRON, "grade": 1, "by": "ann"},
    )
    out = tmp_path / "qrels.jsonl"
    found = pool_qrels([run], documents, out, labels=[labels])
    assert shown(out) == [
        ("The tower was built", 0, "people"),
        ("in 1889.", 2, "judge:scripted"),
        (IRON, 1, "ann"),
    ]
    assert sorted(found.by.values()) == [1, 1, 1]


def test_labels_attached_to_a_run_are_included(tmp_path: Path, documents: Path) -> None:
    """A context that a person graded 1 has that grade at the judge's evidence; a grade of 0 is about all of it."""
    run = run_of(tmp_path / "run", f"{BUILT} {IRON}", HIGH)
    tasks = tmp_path / "tasks.jsonl"
    label_run(str(run), str(tasks), metric="context_relevance", samples=1, items=2)
    filled = [{**each, "label": "1" if "1889" in json.dumps(each) else "0"} for each in read(tasks)]
    assert len(filled) == 2
    attach_files([str(run)], [str(written(tasks, *filled))])
    out = tmp_path / "qrels.jsonl"
    pool_qrels([run], documents, out)
    assert shown(out) == [(BUILT, 1, "people"), (IRON, 0, "judge:scripted"), (HIGH, 0, "people")]


def test_only_new_sentences_are_listed_and_judged(tmp_path: Path, documents: Path) -> None:
    """The missing file is a data set for a judge; after its run nothing is missing, and people can fill it in."""
    old = run_of(tmp_path / "old", f"{BUILT} {IRON}")
    new = run_of(tmp_path / "new", "made of iron. It is 330 m", "Not in any document.", asked=False)
    missing = tmp_path / "missing.jsonl"
    found = pool_qrels([old, new], documents, missing, missing=True)
    (line,) = read(missing)
    assert (found.missing, found.lost) == (1, 1)
    assert (line["sample"], line["retrieved_contexts"][0]["text"], line["grade"]) == ("q", HIGH, None)
    judge = merilo.ScriptedJudge.by(judged, version="1")
    answered = merilo.evaluate(
        missing, metrics=["context_relevance"], judge=judge, out=tmp_path / "m", storage={"cache": False}
    )
    out = tmp_path / "qrels.jsonl"
    assert pool_qrels([old, new, answered.path], documents, out).missing == 0
    assert {each["sample"] for each in read(out)} == {"q"}
    assert pool_qrels([old, new], documents, out, labels=[missing]).missing == 1  # a grade of null is no label
    written(missing, {**line, "grade": 1})
    assert pool_qrels([old, new], documents, out, labels=[missing]).missing == 0
    assert shown(out)[-1] == (HIGH, 1, "people")


def test_a_depth_limits_what_needs_a_label(tmp_path: Path, documents: Path) -> None:
    """With characters=20 only the sentence that the first 20 characters are in is listed."""
    run = run_of(tmp_path / "run", f"{BUILT} {IRON}", HIGH, asked=False)
    assert pool_qrels([run], documents, tmp_path / "a.jsonl", missing=True).missing == 3
    pool_qrels([run], documents, tmp_path / "b.jsonl", missing=True, characters=20)
    assert [each["retrieved_contexts"][0]["text"] for each in read(tmp_path / "b.jsonl")] == [BUILT]


def test_the_labels_score_other_chunks(tmp_path: Path, documents: Path) -> None:
    """From the command line: pool a run, then evaluate other chunks of the same text against the labels."""
    run = run_of(tmp_path / "run", f"{BUILT} {IRON} {HIGH} {VISIT}")
    out, trec = tmp_path / "qrels.jsonl", tmp_path / "qrels.trec"
    for path in (trec, out):
        done = CliRunner().invoke(app(), ["export", str(run), "--documents", str(documents), "-o", str(path)])
        assert done.exit_code == 0, done.output
        assert "2 spans of 1 sample in 1 document" in done.output
    assert trec.read_text(encoding="utf-8") == "q 0 tower 2\n"
    data = written(tmp_path / "d.jsonl", {"id": "q", "user_input": "?", "retrieved_contexts": ["1889. It is made of"]})
    judgements = ["--qrels", str(out), "--documents", str(documents)]
    metrics = ["--metrics", "span_recall,span_precision", "--out", str(tmp_path / "scored"), "--quiet"]
    done = CliRunner().invoke(app(), ["run", str(data), *judgements, *metrics])
    assert done.exit_code == 0, done.output
    scored = merilo.Run.open(tmp_path / "scored")
    assert scored.metrics["span_recall"].mean == 5 / 23
    assert scored.metrics["span_precision"].mean == 5 / 15


def test_runs_with_other_labels_are_not_compared(tmp_path: Path, documents: Path) -> None:
    """Two runs over the same text with different labels ask other questions, also if only a grade of 0 was added."""
    data = written(tmp_path / "d.jsonl", {"id": "q", "user_input": "?", "retrieved_contexts": [f"{BUILT} {IRON}"]})
    found = []
    for number, grades in enumerate([{BUILT: 1}, {BUILT: 1, IRON: 0}]):
        lines = [{"sample": "q", "text": text, "grade": grade} for text, grade in grades.items()]
        labels = written(tmp_path / f"{number}.jsonl", *lines)
        source = load_judged(str(data), str(labels), str(documents))
        found.append(merilo.evaluate(source, metrics=["span_recall(unjudged=low)"], out=tmp_path / f"r{number}"))
    with pytest.raises(DataError, match="other span labels"):
        merilo.api.compare(found[0].path, found[1].path)


def test_own_metadata_named_sample_is_no_question(tmp_path: Path, documents: Path) -> None:
    """A column `sample` of the user's data does not change whose question a label is about."""
    sample = {"id": "q", "user_input": "When?", "retrieved_contexts": [BUILT], "metadata": {"sample": "other"}}
    judge = merilo.ScriptedJudge.by(judged, version="1")
    run = merilo.evaluate(
        [sample], metrics=["context_relevance"], judge=judge, out=tmp_path / "run", storage={"cache": False}
    )
    pool_qrels([run.path], documents, tmp_path / "qrels.jsonl")
    assert {each["sample"] for each in read(tmp_path / "qrels.jsonl")} == {"q"}


def test_what_cannot_be_written_is_named(tmp_path: Path, documents: Path) -> None:
    """A file in a directory that does not exist is an error that names it."""
    run = run_of(tmp_path / "run", BUILT)
    with pytest.raises(RunError, match="Cannot write"):
        pool_qrels([run], documents, tmp_path / "nowhere" / "qrels.jsonl")


@pytest.mark.parametrize(
    "options",
    [
        {"out": "documents.jsonl"},
        {"out": "labels.jsonl", "missing": True},
    ],
)
def test_no_file_that_is_read_is_replaced(options: dict[str, Any], tmp_path: Path, documents: Path) -> None:
    """Labels of people and documents are never overwritten by something else."""
    labels = written(tmp_path / "labels.jsonl", {"sample": "q", "document": "rome", "grade": 1})
    before = labels.read_bytes(), documents.read_bytes()
    paths = {name: tmp_path / value if isinstance(value, str) else value for name, value in options.items()}
    with pytest.raises(UsageError, match="Choose another file"):
        pool_qrels([], documents, labels=[labels], **{"out": tmp_path / "out.jsonl", **paths})
    assert (labels.read_bytes(), documents.read_bytes()) == before


def test_pooled_labels_may_replace_the_labels_that_they_include(tmp_path: Path, documents: Path) -> None:
    """One file can collect the labels of all runs."""
    labels = written(tmp_path / "labels.jsonl", {"sample": "q", "document": "rome", "grade": 1, "by": "Ann"})
    pool_qrels([run_of(tmp_path / "run", BUILT)], documents, labels, labels=[labels])
    assert {each["by"] for each in read(labels)} >= {"Ann"}


def test_an_id_that_trec_cannot_hold_leaves_no_file(tmp_path: Path, documents: Path) -> None:
    """A tab in an id would be another column; nothing is written."""
    labels = written(tmp_path / "labels.jsonl", {"sample": "q\t0", "document": "rome", "grade": 1})
    with pytest.raises(DataError, match="without white space"):
        pool_qrels([], documents, tmp_path / "out.trec", labels=[labels])
    assert not (tmp_path / "out.trec").exists()


def test_a_long_document_is_read_where_text_was_retrieved(tmp_path: Path) -> None:
    """500 chunks of a document of 8,000 sentences need no comparison of each with each."""
    sentences = [f"Sentence {n} is here." for n in range(8_000)]
    documents = written(tmp_path / "documents.jsonl", {"id": "book", "text": " ".join(sentences)})
    chunks = [{"text": each, "metadata": {"document": "book"}} for each in sentences[::16]]
    sample = {"id": "q", "user_input": "What?", "retrieved_contexts": chunks, "reference_contexts": []}
    merilo.evaluate([sample], metrics=["span_recall"], out=tmp_path / "run", storage={"cache": False})
    started = time.process_time()
    found = pool_qrels([tmp_path / "run"], documents, tmp_path / "missing.jsonl", missing=True)
    assert (found.missing, time.process_time() - started < 2) == (500, True)
