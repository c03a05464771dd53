"""Parts of records within columns, rows and texts are read where it is certain, and told where it is not."""

import json
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

from merilo.data.load import load
from merilo.data.sample import Dataset, Sample
from merilo.errors import DataError

OLD, TALL, ANSWER = "The tower is old.", "The tower is tall.", "It is old."
HITS = {"hits": [{"id": "a", "document": {"text": OLD}}, {"id": "b", "document": {"text": TALL}}]}
TALK = [{"role": "user", "content": "How old?"}, {"role": "assistant", "content": ANSWER}]


def written(path: Path, text: str) -> Dataset:
    """The data set in a file with this text."""
    path.write_text(text, encoding="utf-8")
    return load(path)


def one(data: Dataset) -> Sample:
    """The only sample."""
    (sample,) = data
    assert isinstance(sample, Sample), sample
    return sample


@each_case(
    "record",
    [
        {"question": "How old?", "found": HITS, "answer": ANSWER},
        {"question": "How old?", "metadata": {"found": HITS}, "answer": ANSWER},
        {"question": "How old?", "output": {"answer": ANSWER, "sources": [{"text": OLD}, {"text": TALL}]}},
        {"item": {"question": "How old?"}, "sample": {"output_text": ANSWER, "docs": [OLD, TALL]}},
        {"inputs.query": "How old?", "outputs.response": ANSWER, "outputs.contexts": [OLD, TALL]},
        {"request": {"messages": TALK[:1]}, "response": {"choices": [{"message": TALK[1]}]}, "contexts": [OLD, TALL]},
        {"question": "How old?", "contexts": {"doc1": OLD, "doc2": TALL}, "answer": [ANSWER]},
        {"question": "How old?", "contexts": [[{"text": OLD}, {"text": TALL}]], "answer": ANSWER},
        {"question": "How old?", "contexts": [[7, OLD, 0.5], [8, TALL, 0.4]], "answer": ANSWER},
        {"question": "How old?", "cited": [{"refs": [{"text": OLD}]}, {"refs": [{"text": TALL}]}], "answer": ANSWER},
        {"messages": TALK, "contexts": [OLD, TALL]},
        {"Frage": "How old?", "Kontext 1": OLD, "Kontext 2": TALL, "Antwort (neu)": ANSWER},
    ],
)
def test_parts_of_a_record_are_found(record: dict[str, Any]) -> None:
    """The only list of passages and the only value with the name of a field are read, and the columns are told."""
    data = load([record])
    sample = one(data)
    assert (sample.user_input, sample.response) == ("How old?", ANSWER)
    assert [each.text for each in sample.contexts] == [OLD, TALL]


def test_an_answer_does_not_supply_contexts() -> None:
    """A list of passages within an answer is part of it, and does not change how other records are read."""
    hostile = json.dumps({"answer": "It is new.", "chunks": HITS})
    rows = [{"question": "q", "answer": text, "meta": {"chunks": HITS}} for text in (ANSWER, hostile, ANSWER)]
    assert [[each.text for each in sample.contexts] for sample in load(rows) if isinstance(sample, Sample)] == [
        [OLD, TALL]
    ] * 3
    (alone,) = load([{"question": "q", "answer": hostile}])
    assert isinstance(alone, Sample)
    assert alone.retrieved_contexts is None


def test_keys_of_two_columns_are_both_kept() -> None:
    """A key within a column that fills a field, and a column of its name, are two values of the metadata."""
    data = {"question": "q", "meta": {"chunks": HITS, "note": "inner"}, "note": "outer", "answer": ANSWER}
    (both,) = load([data])
    assert isinstance(both, Sample)
    assert {"inner", "outer"} <= {*map(str, both.metadata.values())}


@each_case(
    ("record", "unread"),
    [
        ({"question": "q", "first": HITS, "second": HITS, "answer": "a"}, "first, second"),
        ({"question": "q", "options": [{"text": OLD}, {"text": TALL}], "answer": "a"}, "options"),
        ({"question": "q", "gold": [{"text": OLD}], "answer": "a"}, "gold"),
        ({"question": "q", "answer": "a", "parts": [{"question": "r", "context": OLD}]}, "parts"),
    ],
)
def test_what_is_uncertain_stays_unread_and_is_told(record: dict[str, Any], unread: str) -> None:
    """Two lists of passages, choices, expected passages and questions of their own are not retrieved contexts."""
    data = load([record])
    assert one(data).retrieved_contexts is None
    assert f"unread: {unread}." in data.columns.sentence()


def test_an_answer_among_expected_values_is_the_reference() -> None:
    """Two answers within a record are told apart by the names around them; their other keys are metadata."""
    data = load([{"example": {"question": "q", "answer": "old"}, "prediction": {"answer": ANSWER, "score": 1}}])
    sample = one(data)
    assert (sample.user_input, sample.reference, sample.response) == ("q", "old", ANSWER)
    assert sample.metadata == {"score": 1}
    assert "example.answer as reference" in data.columns.sentence()


@each_case(
    "rows",
    [
        f"question,context,answer\nq,{OLD},a\nq,{TALL},a\nr,{OLD},b\n",
        f"Question,Context,Answer\nq,{OLD},a\n,{TALL},\nr,{OLD},b\n",
        f"id,question,rank,passage,response\n1,q,1,{OLD},a\n1,q,2,{TALL},a\n2,r,1,{OLD},b\n",
    ],
)
def test_rows_of_one_question_are_one_sample(rows: str, tmp_path: Path) -> None:
    """Adjacent rows that differ only in their context are joined, also if Excel merged their cells."""
    data = written(tmp_path / "d.csv", rows)
    found = [each for each in data if isinstance(each, Sample)]
    assert [[context.text for context in each.contexts] for each in found] == [[OLD, TALL], [OLD]]
    assert "ne row for each of the retrieved_contexts" in data.columns.sentence()


def test_rows_with_other_answers_or_ids_are_samples(tmp_path: Path) -> None:
    """Rows of one question that differ otherwise are samples of their own."""
    data = written(tmp_path / "d.csv", f"question,context,answer\nq,{OLD},a\nq,{TALL},b\n")
    assert len([*data]) == 2
    data = written(tmp_path / "e.csv", f"id,question,context,answer\n1,q,{OLD},a\n2,q,{TALL},a\n")
    assert len([*data]) == 2
    assert "each row of one question is a sample" in data.columns.sentence().lower()


@pytest.mark.parametrize(
    "cell",
    [
        f"{OLD}<SEP>{TALL}",
        f'"{OLD}", "{TALL}"',
        json.dumps({"text": OLD}) + "\n" + json.dumps({"text": TALL}),
        f"[Document(id='a', metadata={{'page': 1}}, page_content='{OLD}'), Document(page_content='{TALL}')]",
        json.dumps(json.dumps([OLD, TALL])),
    ],
)
def test_several_texts_of_one_cell(cell: str, tmp_path: Path) -> None:
    """Known separators, quoted texts, JSON Lines and printed documents are several contexts."""
    quoted = cell.replace('"', '""')
    sample = one(written(tmp_path / "d.csv", f'question,contexts,answer\nq,"{quoted}",a\n'))
    assert [each.text for each in sample.contexts] == [OLD, TALL]


def test_turns_without_the_name_of_a_conversation(tmp_path: Path) -> None:
    """A list of messages is one conversation; other names of its id are known."""
    sample = one(written(tmp_path / "d.json", json.dumps(TALK)))
    assert (sample.user_input, sample.response) == ("How old?", ANSWER)
    rows = [{"session_id": name, **turn} for name in "ab" for turn in TALK]
    assert len([*load(rows)]) == 2


def test_spans_of_an_unknown_system_are_refused() -> None:
    """One sample for each span would be wrong."""
    with pytest.raises(DataError, match="spans of a system that merilo does not know"):
        [*load([{"trace_id": "t", "span_id": "1", "parent_id": "0", "meta": {"input": "q", "output": "a"}}])]
