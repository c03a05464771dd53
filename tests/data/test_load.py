"""Files and records that are in order: every format, every way to name the fields."""

import gzip
import io
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

from merilo.data.context import Context
from merilo.data.load import load
from merilo.data.sample import FIELDS, BadRecord, Sample
from merilo.errors import DataError, UsageError

RECORDS: list[dict[str, Any]] = [
    {"id": "a", "user_input": "Что?", "retrieved_contexts": ["One.", "Two."], "response": "x"},
    {"id": "b", "user_input": "q2", "retrieved_contexts": [], "response": 'y, "z"\nw'},
]
SAMPLES = [Sample(**record) for record in RECORDS]


def samples(dataset: Any) -> list[Sample]:
    """All that is read, which must be good."""
    found = list(dataset)
    assert not [item for item in found if isinstance(item, BadRecord)]
    return found


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def csv_text(separator: str = ",") -> str:
    head = separator.join(["id", "user_input", "retrieved_contexts", "response"])
    first = separator.join(["a", "Что?", '"[""One."", ""Two.""]"', "x"])
    second = separator.join(["b", "q2", "[]", '"y, ""z""\nw"'])
    return f"{head}\n{first}\n{second}\n"


FILES = {
    "d.jsonl": "\n".join(json.dumps(record) for record in RECORDS),
    "d.ndjson": "\ufeff" + "\r\n\r\n".join(json.dumps(record, ensure_ascii=False) for record in RECORDS) + "\n \n",
    "d.json": json.dumps(RECORDS, indent=1),
    "samples.json": json.dumps({"name": {"data": 1}, "samples": RECORDS, "more": [1]}),
    "data.json": " \n" + json.dumps({"data": RECORDS}),
    "rows.json": json.dumps({"rows": RECORDS}) + "\n",
    "d.csv": csv_text(),
    "semicolon.csv": "\ufeff" + csv_text(";").replace("\n", "\r\n", 2),
    "d.tsv": csv_text("\t"),
}


@each_case("is_zipped", [False, True])
@each_case("name", FILES)
def test_every_format_gives_the_same_samples(name: str, is_zipped: bool, tmp_path: Path) -> None:
    """The same records in any format, zipped or not, are the same samples; a file can be read twice."""
    content = FILES[name].encode()
    path = write(tmp_path / (name + ".gz" * is_zipped), gzip.compress(content) if is_zipped else content)
    dataset = load(path)
    assert samples(dataset) == SAMPLES
    assert samples(dataset) == SAMPLES
    assert dataset.name == name.split(".", maxsplit=1)[0]


def test_standard_input_is_json_lines(tmp_path: Path) -> None:
    """A dash reads JSON Lines from standard input, zipped or not."""
    script = "from merilo.data.load import load\nfor sample in load('-'): print(sample.id)"
    for content in (FILES["d.jsonl"].encode(), gzip.compress(FILES["d.jsonl"].encode())):
        done = subprocess.run([sys.executable, "-c", script], input=content, capture_output=True, check=True)
        assert done.stdout.split() == [b"a", b"b"]


def test_standard_input_can_be_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading standard input again is refused, not silently empty."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FILES["d.jsonl"].encode())))
    dataset = load("-")
    assert samples(dataset) == SAMPLES
    with pytest.raises(UsageError, match="Standard input can be read only once"):
        list(dataset)


def test_records_in_memory() -> None:
    """Dicts and samples may be mixed; a list can be read twice."""
    dataset = load([RECORDS[0], SAMPLES[1]])
    assert samples(dataset) == SAMPLES
    assert samples(dataset) == SAMPLES


def test_a_generator_can_be_read_once() -> None:
    """A one-shot source says so the second time."""
    dataset = load(record for record in RECORDS)
    assert samples(dataset) == SAMPLES
    with pytest.raises(UsageError, match="only once"):
        list(dataset)


def test_reading_is_lazy() -> None:
    """A record is taken from the source when its sample is asked for, not before."""
    taken = []

    def source() -> Iterator[dict[str, Any]]:
        for record in RECORDS:
            taken.append(record["id"])
            yield record

    reading = iter(load(source()))
    assert taken == []
    next(reading)
    assert taken == ["a"]


def test_an_unknown_format_is_a_usage_error(tmp_path: Path) -> None:
    """A name that tells no format lists those that do."""
    for name in ("data.orc", "data", "data.gz"):
        with pytest.raises(UsageError, match=r"\.jsonl, \.ndjson, \.json, \.csv, \.tsv"):
            load(write(tmp_path / name, "x"))


@pytest.mark.parametrize("record", ["{}", "[1]"])
def test_the_limit_counts_records(record: str, tmp_path: Path) -> None:
    """The limit counts what was looked at, bad records too."""
    path = write(tmp_path / "d.jsonl", f"{record}\n" + '{"response": "a"}\n' * 5)
    found = list(load(path, limit=3))
    assert [type(item) for item in found] == [BadRecord, Sample, Sample]
    with pytest.raises(UsageError, match="at least 1, got 0"):
        load(path, limit=0)


def drawn(size: int, seed: int = 0, records: int = 40) -> list[str]:
    return [each.id for each in samples(load([{"response": "a"}] * records, sample=size, seed=seed))]


def test_a_sample_keeps_numbers_and_order() -> None:
    """Equal seeds draw equal records, other seeds others; ids are the numbers in the data, in its order."""
    assert drawn(9) == drawn(9) != drawn(9, seed=1)
    assert sorted(drawn(9), key=int) == drawn(9)
    assert len(set(drawn(9))) == 9
    assert drawn(50) == [str(number) for number in range(1, 41)]
    with pytest.raises(UsageError, match="The sample must be at least 1, got 0"):
        drawn(0)


def test_each_record_is_equally_likely_to_be_drawn() -> None:
    """Over many seeds, each of 10 records is in a sample of 3 with a rate of 0.3, within 5 standard errors."""
    found = Counter(each for seed in range(2_000) for each in drawn(3, seed, records=10))
    assert all(abs(found[str(number)] / 2_000 - 0.3) < 5 * (0.3 * 0.7 / 2_000) ** 0.5 for number in range(1, 11))


def test_a_sample_is_drawn_from_the_first_records_of_a_limit() -> None:
    """The limit applies first."""
    found = samples(load([{"response": "a"}] * 40, sample=5, limit=8))
    assert len(found) == 5
    assert max(int(each.id) for each in found) <= 8


def test_a_record_without_an_id_gets_its_number(tmp_path: Path) -> None:
    """Numbers count every record from 1, bad ones too, but no blank line; a null id is no id."""
    lines = ['{"response": "a"}', "", '{"id": null, "response": "b"}', "{", '{"response": "c"}']
    found = list(load(write(tmp_path / "d.jsonl", "\n".join(lines))))
    assert [item.id for item in found if isinstance(item, Sample)] == ["1", "2", "4"]


def test_the_language_goes_before_that_of_the_data() -> None:
    """A language given to load replaces that of samples and contexts."""
    record = {"language": "en", "retrieved_contexts": ["a", {"text": "b", "language": "fr"}]}
    for source in ([record], [Sample("1", **record)]):
        (sample,) = samples(load(source, language="ru"))
        assert sample.language == "ru"
        assert [context.language for context in sample.contexts] == ["ru", "ru"]
    with pytest.raises(UsageError, match="language must be a code"):
        load([record], language="russian!")


def expected(**values: Any) -> Sample:
    return Sample("1", **values)


@each_case(
    ("record", "sample"),
    [
        (
            {"question": "q", "contexts": ["c"], "answer": "a", "ground_truth": "g"},
            expected(user_input="q", retrieved_contexts=["c"], response="a", reference="g"),
        ),
        ({"answer": "a", "ground_truths": ["g"]}, expected(response="a", reference="g")),
        ({"answer": "a", "ground_truths": []}, expected(response="a")),
        ({"ground_truth": "g", "ground_truths": ["g"]}, expected(reference="g")),
        (
            {"query": "q", "retrieved_content": ["c"], "actual_output": "a", "expected_output": "g"},
            expected(user_input="q", retrieved_contexts=["c"], response="a", reference="g"),
        ),
        (
            {"input": "q", "retrieval_context": ["c"], "actual_output": "a", "context": ["gold"]},
            expected(user_input="q", retrieved_contexts=["c"], response="a", reference_contexts=["gold"]),
        ),
        (
            {"input": "q", "retrieval_context": ["c"], "context": None},
            expected(user_input="q", retrieved_contexts=["c"]),
        ),
        (
            {"userInput": "q", "retrievedContexts": ["c"], "response": "a", "reference": "g"},
            expected(user_input="q", retrieved_contexts=["c"], response="a", reference="g"),
        ),
        ({"response": "a", "answer": None}, expected(response="a")),
        ({"answer": "a", "lang": "ru"}, expected(response="a", language="ru")),
        (
            {"contexts.1": "two", "contexts.0": "one", "contexts.10": None, "answer": "a"},
            expected(retrieved_contexts=["one", "two"], response="a"),
        ),
        (
            {"contexts[0]": "one", "answer.0": "x"},
            expected(retrieved_contexts=["one"], metadata={"answer.0": "x"}),
        ),
        ({"response": "a", "topic": "t", "none": None}, expected(response="a", metadata={"topic": "t"})),
        (
            {"response": "a", "topic": "t", "metadata": {"topic": "m", "k": [1]}},
            expected(response="a", metadata={"topic": "m", "k": [1], "column topic": "t"}),
        ),
        (
            {"retrieved_contexts": [{"page_content": "c", "doc_id": 3, "title": "t", "metadata": {"k": 1}}]},
            expected(retrieved_contexts=[Context("c", id="3", metadata={"k": 1, "title": "t"})]),
        ),
        (
            {"retrieved_contexts": [{"text": "c", "content": "long", "score": 0.5}]},
            expected(retrieved_contexts=[Context("c", score=0.5, metadata={"content": "long"})]),
        ),
    ],
)
def test_the_names_of_other_systems(record: dict[str, Any], sample: Sample) -> None:
    """Data written for another system loads unchanged, and columns that nobody knows go into the metadata."""
    assert samples(load([record])) == [sample]


TURNS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}, {"role": "user", "content": "q"}]
PASSAGES: dict[str, Any] = {"is_selected": [1, 0], "passage_text": ["One.", "Two."]}


@each_case(
    ("record", "sample"),
    [
        ({"Question": "q", "Ground Truth": "g", "Answer": "a"}, expected(user_input="q", reference="g", response="a")),
        ({"question": "q", "ground_truth": ["g"]}, expected(user_input="q", reference="g")),
        ({"question": "q", "ground_truth": ["g", "g"]}, expected(user_input="q", reference="g")),
        ({"question": "q", "chunks": ["c d"]}, expected(user_input="q", retrieved_contexts=["c d"])),
        ({"question": "q", "docs": 3}, expected(user_input="q", metadata={"docs": 3})),
        (
            {"question": "q", "contexts": ["c"], "documents": ["c d"]},
            expected(user_input="q", retrieved_contexts=["c"], metadata={"documents": ["c d"]}),
        ),
        (
            {"question": "q", "Chunk 2": "b c", "Chunk 1": "a"},
            expected(user_input="q", retrieved_contexts=["a", "b c"]),
        ),
        (
            {"query": "q", "gt_answer": "g", "retrieved_context": [{"doc_id": "0", "text": "c"}]},
            expected(user_input="q", reference="g", retrieved_contexts=[Context("c", id="0")]),
        ),
        (
            {"query": "q", "passages": PASSAGES},
            expected(
                user_input="q",
                retrieved_contexts=[
                    Context("One.", metadata={"is_selected": 1}),
                    Context("Two.", metadata={"is_selected": 0}),
                ],
            ),
        ),
        (
            {"question": "q", "contexts": [["Tower", ["One.", " Two."]]]},
            expected(user_input="q", retrieved_contexts=[Context("One. Two.", metadata={"title": "Tower"})]),
        ),
        ({"input": TURNS, "answer": "a"}, expected(user_input="q", history=TURNS[:2], response="a")),
        ({"question": "q", "language": "English"}, expected(user_input="q", language="en")),
        (
            {"question": "q", "answer": "g", "supporting_facts": ["s"]},
            expected(user_input="q", reference="g", metadata={"supporting_facts": ["s"]}),
        ),
    ],
)
def test_usual_names_and_forms(record: dict[str, Any], sample: Sample) -> None:
    """Names and forms that many files share are read if nothing else fills the field and the value has its form."""
    assert samples(load([record])) == [sample]


TEXT, URL = "It is old.", "https://example.org/1"


@each_case(
    ("values", "contexts"),
    [
        ([{"context_1": "Italy", "context_2": TEXT, "context_3": "Rome"}], [["Italy", TEXT, "Rome"]]),
        ([{"context.0": "Italy", "context.1": TEXT}], [["Italy", TEXT]]),
        (
            [{"context_1": "Italy", "context_2": None}, {"context_1": "Rome", "context_2": TEXT}],
            [["Italy"], ["Rome", TEXT]],
        ),
        ([{"doc_1": "d17", "doc_2": "d4"}], [None]),
        ([{"docs.0": URL, "docs.1": URL}], [None]),
        ([{"docs": None}, {"docs": URL}, {"docs": 0}], [None] * 3),
        ([{"docs": " "}, {"docs": []}, {"docs": URL}], [None] * 3),
        ([{"docs": None}, {"docs": "d17"}, {"docs": [TEXT]}], [None, ["d17"], [TEXT]]),
        ([{"docs": ["Rome"]}, {"docs": [TEXT]}, {"docs": []}], [["Rome"], [TEXT], []]),
        ([{"docs": URL}] * 20 + [{"docs": [TEXT]}, {"docs": ["Rome"]}], [None] * 20 + [[TEXT], ["Rome"]]),
        ([{"docs": None}] * 20 + [{"docs": URL}, {"docs": 3}], [None] * 22),
    ],
)
@pytest.mark.parametrize("is_stream", [False, True])
def test_columns_are_judged_by_all_their_values(
    values: list[dict[str, Any]], contexts: list[list[str] | None], is_stream: bool
) -> None:
    """Contexts if any value of the first 20 records, or of the columns of one list, is a text; nothing is lost."""

    def named(sample: Sample) -> list[str] | None:
        found = sample.retrieved_contexts
        return None if found is None else [context.text for context in found]

    records = [{"question": "q", **value} for value in values]
    dataset = load(iter(records) if is_stream else records)
    for _ in range(1 if is_stream else 2):
        found = samples(dataset)
        assert [named(each) for each in found] == contexts
        for value, read, sample in zip(values, contexts, found, strict=True):
            kept = {name: each for name, each in value.items() if each is not None} if read is None else {}
            assert sample.metadata == kept
            assert kept.keys() <= dataset.columns.kept.keys()


LAYOUTS: dict[str, Any] = {
    "columns": {"question": ["q", "r"], "contexts": [["c"], ["d"]], "topic": "t"},
    "columns of pandas": {
        "question": {"0": "q", "1": "r"},
        "contexts": {"0": ["c"], "1": ["d"]},
        "topic": {"0": "t", "1": "t"},
    },
    "columns and rows of pandas": {
        "columns": ["question", "contexts", "topic"],
        "index": [0, 1],
        "data": [["q", ["c"], "t"], ["r", ["d"], "t"]],
    },
    "records by id": {
        "1": {"question": "q", "contexts": ["c"], "topic": "t"},
        "2": {"question": "r", "contexts": ["d"], "topic": "t"},
    },
    "a list under another key": {
        "overall": {"recall": 1},
        "results": [
            {"question": "q", "contexts": [{"text": "c"}], "topic": "t"},
            {"question": "r", "contexts": ["d"], "topic": "t"},
        ],
    },
}


@each_case("layout", LAYOUTS)
def test_an_object_of_records(layout: str, tmp_path: Path) -> None:
    """An object that holds records in one of the usual layouts gives the same samples in memory and in a file."""
    wanted = [
        Sample(str(place), user_input=question, retrieved_contexts=[context], metadata={"topic": "t"})
        for place, question, context in ((1, "q", "c"), (2, "r", "d"))
    ]
    assert samples(load(LAYOUTS[layout])) == wanted
    assert samples(load(write(tmp_path / "d.json", json.dumps(LAYOUTS[layout])))) == wanted


def test_one_record_is_a_data_set(tmp_path: Path) -> None:
    """An object with a question, whose contexts are a list, is one record and no table of columns."""
    record = {"question": "q", "contexts": ["c", "d"]}
    wanted = [expected(user_input="q", retrieved_contexts=["c", "d"])]
    assert samples(load(record)) == wanted
    assert samples(load(write(tmp_path / "d.json", json.dumps(record)))) == wanted


@pytest.mark.parametrize("head", ["question\tanswer, a", "sep=;\nquestion;answer, a", "question|answer a"])
def test_the_separator_of_a_table_is_detected(head: str, tmp_path: Path) -> None:
    """Tabs, a separator line of Excel and bars are recognised in a .csv file."""
    row = head.rpartition("\n")[2].replace("question", "q").replace("answer", "b")
    (sample,) = samples(load(write(tmp_path / "d.csv", f"{head}\n{row}\n")))
    assert sample.user_input == "q"
    assert list(sample.metadata.values()) == [row[2:]]


@each_case(
    ("record", "doubts"),
    [
        ({"question": "q", "answer": "a"}, {"answer": "reference"}),
        ({"question": "q", "answer": "a", "ground_truth": "g"}, {}),
        ({"question": "q", "response": "a", "docs": ["c d"]}, {}),
        ({"question": "q", "docs": ["c d"]}, {"docs": "reference_contexts"}),
        ({"question": "q", "answer": "a", "supporting_facts": []}, {"answer": "response"}),
    ],
)
def test_a_doubtful_column_is_reported(record: dict[str, Any], doubts: dict[str, str]) -> None:
    """A column that other data fills with another field is reported with its mapping unless the record decides."""
    data = load([record])
    samples(data)
    assert data.columns.doubtful == doubts
    assert [each.rpartition("--map ")[2] for each in data.columns.doubts(FIELDS, data.columns.recognised.values())] == [
        f"{column}={field}." for column, field in doubts.items()
    ]


@each_case(
    ("record", "mapping", "sample"),
    [
        ({"context": ["c"]}, {"context": "retrieved_contexts"}, expected(retrieved_contexts=["c"])),
        ({"context": "c"}, {"context": "retrieved_contexts"}, expected(retrieved_contexts=["c"])),
        ({"answer": "a", "gen": "b"}, {"gen": "response"}, expected(response="b", metadata={"answer": "a"})),
        (
            {"docs.0": "a", "docs.1": "b"},
            {"docs": "retrieved_contexts"},
            expected(retrieved_contexts=["a", "b"]),
        ),
        ({"ground_truths": ["a", "b"]}, {"ground_truths": "reference"}, expected(reference="a")),
        ({"answer": "a", "note": {"k": 1}}, {"note": "metadata"}, expected(response="a", metadata={"k": 1})),
    ],
)
def test_a_mapping_decides(record: dict[str, Any], mapping: dict[str, str], sample: Sample) -> None:
    """What the user says of a column goes before what other systems mean by its name."""
    assert samples(load([record], mapping=mapping)) == [sample]


@each_case(
    ("value", "contexts"),
    [
        ("One text. Two sentences.", ["One text. Two sentences."]),
        ("", [""]),
        ("nan", ["nan"]),
        ("['One.' 'Two.']", ["One.", "Two."]),
        (["One.", "Two."], ["One.", "Two."]),
    ],
)
def test_contexts_of_early_ragas_may_be_one_text(value: object, contexts: list[str], tmp_path: Path) -> None:
    """Context recall of ragas up to 0.1 takes one text as it is; a printed list of texts is still that list."""
    path = write(tmp_path / "d.jsonl", json.dumps({"question": "q", "contexts": value, "ground_truth": "g"}))
    dataset = load(path)
    assert samples(dataset) == [Sample("1", user_input="q", retrieved_contexts=contexts, reference="g")]
    assert ("only item of retrieved_contexts" in dataset.columns.sentence()) is (len(contexts) == 1)


def test_a_mapping_to_no_field_is_a_usage_error() -> None:
    """A wrong field in the mapping is refused with the field that is meant."""
    with pytest.raises(UsageError, match=r"No field 'answer'\. Did you mean --map gen=response\?"):
        load([], mapping={"gen": "answer"})


@each_case(
    ("cell", "contexts"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['it''s', \"b\\n\", 'c, d',]".replace("''", "\\'"), ["it's", "b\n", "c, d"]),
        ("[]", []),
        ("[ ]", []),
        ('[{"text": "a", "id": 1}]', [Context("a", id="1")]),
        ("[{'text': 'a', 'score': None}]", ["a"]),
        ("just text", ["just text"]),
    ],
)
def test_lists_in_cells(cell: str, contexts: list[Any], tmp_path: Path) -> None:
    """A cell holds a list as JSON or as Python writes it; plain text is one context."""
    quoted = '"' + cell.replace('"', '""') + '"'
    path = write(tmp_path / "d.csv", f"question,contexts\nq,{quoted}\n")
    assert samples(load(path)) == [Sample("1", user_input="q", retrieved_contexts=contexts)]


def test_other_cells(tmp_path: Path) -> None:
    """A blank cell is missing; ids and metadata in cells are read as JSON."""
    head = "id,response,reference,reference_context_ids,metadata,ground_truths,contexts.0,contexts.1\n"
    row = ',,r,"[""a"", 1]","{""k"": 1}","[\'r\']",one,\n'
    (sample,) = samples(load(write(tmp_path / "d.csv", head + row)))
    assert sample == Sample(
        "1", reference="r", reference_context_ids=["a", "1"], metadata={"k": 1}, retrieved_contexts=["one"]
    )


def test_no_record_is_an_error(tmp_path: Path) -> None:
    """Data without a single record is refused when it is read."""
    for name, content in {
        "a.jsonl": "",
        "b.jsonl": "\n \n",
        "c.json": "",
        "d.json": "[ ]",
        "e.csv": "",
        "f.csv": "id\n",
    }.items():
        with pytest.raises(DataError, match=f"{name}: expected at least one record, got none"):
            list(load(write(tmp_path / name, content)))
    with pytest.raises(DataError, match="records: expected at least one record"):
        list(load([]))
