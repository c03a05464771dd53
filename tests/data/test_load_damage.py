"""Files that are not in order: everything wrong is said, everything good is read."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.data.load import load
from merilo.data.sample import BadRecord, Sample
from merilo.errors import DataError, UsageError

GOOD = '{"id": "good", "response": "a"}'


def read(path: Path, content: str | bytes, **options: Any) -> list[str]:
    """What was read: a sample's id, or a bad record's sentences."""
    path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    return told(load(path, **options))


def told(dataset: Any) -> list[str]:
    return [
        item.id if isinstance(item, Sample) else " ".join(problem.message for problem in item.problems)
        for item in dataset
    ]


@each_case(("line", "problem"), [
        ('{"response": "a"', "got invalid JSON (expecting ',' delimiter at character 17)."),
        ("[1, 2]", "expected an object, got a list of 2."),
        ("null", "expected an object, got null."),
        ("{}", "expected at least one of the fields user_input"),
        ('{"foo": 1}', "got an object with 'foo'. Map columns with --map COLUMN=FIELD."),
        ('{"response": "a"} {"response": "b"}', "one JSON object per line, got more text at character 19."),
        ('{"response": "a", "response": "b"}', "expected each key once, got the key 'response' again."),
        ('{"response": [NaN]}', "got a list of 1 in the column 'response'. Use --map response=response to join"),
        ('{"response": "a", "x": -Infinity}', "'metadata.x': expected a finite number, got the number -inf."),
        ('{"response": "a", "x": 1e999}', "'metadata.x': expected a finite number, got the number inf."),
        ('{"response": "a\\u0000"}', "clean Unicode text, got a NUL character at character 2."),
        ('{"response": "a\\ud800b"}', "(lone surrogate U+D800) at character 2."),
        ('{"response": "a\x00"}', "got invalid JSON (invalid control character at character 16)."),
        ('{"response": ' + "9" * 5000 + "}", "got one with a number of thousands of digits"),
        ('{"response": ' + "[" * 100_000, "got one that is nested too deeply."),
        ('{"response": "a", "x": ' + "[" * 200 + "]" * 200 + "}", "at most 64 levels of nesting, got more."),
        ('{"retrieved_contexts": 3}', "a list of strings or objects with 'text', got the number 3."),
        ('{"retrieved_contexts": [{"txt": "c"}]}', "got an object with 'txt'."),
        ('{"retrieved_context_ids": "c"}', "field 'retrieved_context_ids': expected a list of ids"),
        ('{"id": {"a": 1}, "response": "a"}', "an id (text or a whole number), got an object with 'a'."),
        ('{"response": "a", "metadata": 3}', "field 'metadata': expected an object, got the number 3."),
        ('{"response": "a", "answer": "b"}', "Choose one with --map response=response or --map answer=response."),
        ('{"answer": ["a", "b"]}', "answer=response to join the texts, or --map answer=reference to take the first"),
        ('{"input": [{"role": "assistant", "content": "a"}]}', "ends with the user's question, got a turn of the"),
        ('{"question_id": "c10b", "question_type": "a b", "gold": "g"}', "--map question_id=id --map gold=reference."),
        ('{"wording": "c10b", "my_context": "c d", "pages": 3}', "columns with --map my_context=retrieved_contexts."),
        ('{"ground_truths": ["a", "b"]}', "in the column 'ground_truths'. Use --map ground_truths=ref"),
    ])  # fmt: skip
def test_a_bad_line_is_told_and_the_rest_is_read(line: str, problem: str, tmp_path: Path) -> None:
    """A bad line gives its problem with its place; the lines around it are read."""
    before, bad, after = read(tmp_path / "data.jsonl", f"{GOOD}\n\n{line}\n{GOOD}\n")
    assert (before, after) == ("good", "good")
    assert bad.startswith("data.jsonl, line 3")
    assert problem in bad


@each_case(
    ("content", "found"),
    [
        (f"[{GOOD}, 3, {GOOD}]", ["good", "record 2: expected an object, got the number 3", "good"]),
        (f"[{GOOD}, {GOOD[:-1]}", ["good", "record 2: expected a complete file, got one that ends inside this record"]),
        (f"[{GOOD}", ["good", "record 2: expected ',' or ']' after a record, got the end of the file"]),
        (f"[{GOOD} {GOOD}]", ["good", "record 2: expected ',' or ']' after a record, got the text '{'"]),
        (f"[{GOOD}] x", ["good", "record 2: expected the end of the JSON value after the array, got more text"]),
        (f'{{"samples": [{GOOD}, [], {GOOD}]}}', ["good", "record 2: expected an object", "good"]),
        (
            f'[{{"a": 1, "a": 2}}, {GOOD}]',
            ["record 1: expected each key once, got the key 'a' again", "good"],
        ),
    ],
)
def test_damaged_json_files(content: str, found: list[str], tmp_path: Path) -> None:
    """What stands before the damage in a JSON file is read, and the damage is told."""
    got = read(tmp_path / "d.json", content)
    assert len(got) == len(found)
    assert all(words in one for words, one in zip(found, got, strict=True))


@each_case(
    ("content", "message"),
    [
        (
            '{"a": [1]}',
            "expected an array of objects, or an object that contains one as 'samples', 'data' or 'rows'",
        ),
        ("3", "d.json: expected an array of objects"),
        ('{"a": ', "d.json: expected a complete file, got one that ends inside this record (line 1)."),
        (f'{{"samples": [{GOOD}]', "d.json: expected a complete file, got one that ends inside this record (line 1)."),
        ('{"a": 1 2', "got invalid JSON (expecting ',' delimiter at character 9)"),
        ("{", "expected a complete file"),
        (b'["\xe9"]', "expected UTF-8 text, got byte 0xE9 at byte 3"),
    ],
)
def test_json_files_without_records(content: str | bytes, message: str, tmp_path: Path) -> None:
    """A JSON file in which no record can be found is refused as a whole."""
    with pytest.raises(DataError) as caught:
        read(tmp_path / "d.json", content)
    assert message in str(caught.value)
    assert "d.json" in str(caught.value)


@each_case(
    ("content", "message"),
    [
        (GOOD.encode("utf-16"), "got UTF-16 or UTF-32; save the file as UTF-8"),
        (GOOD.encode("utf-16-be"), "got UTF-16 or UTF-32 without a byte order mark"),
        (GOOD.encode("utf-32"), "got UTF-16 or UTF-32"),
        (b"PK\x03\x04 and so on", "a zip archive or an Excel workbook"),
        (b"PAR1xxxx", "a Parquet file"),
        (bytes(range(1, 32)) * 20, "a binary file"),
        (
            gzip.compress(b"", mtime=0)[:6],
            "d.jsonl: expected a readable file, got a truncated gzip file",
        ),
        (b"\x1f\x8bnot really", "d.jsonl: expected a readable file"),
    ],
)
def test_files_that_are_no_text(content: bytes, message: str, tmp_path: Path) -> None:
    """A file that is no UTF-8 text at all is refused when it is opened, with what it seems to be."""
    path = tmp_path / "d.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        load(path)
    assert message in str(caught.value)


def test_files_that_do_not_open(tmp_path: Path) -> None:
    """A missing file and a directory are told as such."""
    with pytest.raises(DataError, match=r"No such file: .*gone\.jsonl"):
        load(tmp_path / "gone.jsonl")
    (tmp_path / "dir.jsonl").mkdir()
    with pytest.raises(DataError, match=r"dir\.jsonl: expected a readable file, got a directory"):
        load(tmp_path / "dir.jsonl")


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    """A file without permission is told as such."""
    path = tmp_path / "d.jsonl"
    path.write_text(GOOD)
    path.chmod(0)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)  # root may read everything, nobody may not
        with pytest.raises(DataError, match="without read permission"):
            load(path)
    finally:
        os.seteuid(user)


def test_a_wrong_byte_spoils_its_line_only(tmp_path: Path) -> None:
    """A byte that is no UTF-8 is told with its place, in JSON Lines and in CSV."""
    found = read(tmp_path / "d.jsonl", GOOD.encode() + b'\n{"response": "caf\xe9"}\n' + GOOD.encode())
    assert found[::2] == ["good", "good"]
    assert "d.jsonl, line 2: expected UTF-8 text, got byte 0xE9 at byte 18. Save the file as UTF-8." in found[1]
    found = read(tmp_path / "d.csv", b"id,response\n1,a\n2,caf\xe9\n3,b\n")
    assert found[::2] == ["1", "3"]
    assert "d.csv, line 3, field 'response': expected UTF-8 text, got byte 0xE9" in found[1]


def test_a_zip_that_breaks_off_gives_what_it_has(tmp_path: Path) -> None:
    """The records before the end of a truncated gzip file are read, and the break is told."""
    lines = [json.dumps({"id": f"{number}", "response": os.urandom(300).hex()}) for number in range(2000)]
    zipped = gzip.compress("\n".join(lines).encode())
    found = read(tmp_path / "d.jsonl.gz", zipped[: len(zipped) * 3 // 4])
    assert 500 < len(found) < 2000
    assert found[:-1] == [str(number) for number in range(len(found) - 1)]
    assert "got a truncated gzip file" in found[-1]


def test_a_long_line_is_read_and_a_longer_one_refused(tmp_path: Path) -> None:
    """The line limit is exact; what is over it is skipped to the next line."""
    long = json.dumps({"id": "long", "response": "x" * 1000})
    content = f"{long}\n{GOOD}\n"
    assert read(tmp_path / "d.jsonl", content, max_line_bytes=len(long) + 1) == ["long", "good"]
    assert read(tmp_path / "d.jsonl", content, max_line_bytes=len(long)) == [
        f"d.jsonl, line 1: expected a line of at most {len(long):,} bytes, got a longer one.",
        "good",
    ]
    rows = f'id,response\n1,{"x" * 1000}\n2,"{"y" * 1000}"\n3,b\n'
    found = read(tmp_path / "d.csv", rows, max_line_bytes=500)
    assert ["line of at most 500 bytes" in one for one in found] == [True, True, False]


def test_contexts_of_any_length(tmp_path: Path) -> None:
    """A context may be blank or have a million characters, and a line fifty megabytes."""
    contexts = ["", "x" * 1_000_000, "y" * 50_000_000]
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({"retrieved_contexts": contexts}))
    (sample,) = load(path)
    assert isinstance(sample, Sample)
    assert [len(context.text) for context in sample.contexts] == [0, 1_000_000, 50_000_000]
    (tmp_path / "d.csv").write_text("id,response\n1," + "x" * 1_000_000)
    (sample,) = load(tmp_path / "d.csv")
    assert isinstance(sample, Sample)
    assert len(sample.require("response")) == 1_000_000


@each_case(("content", "found"), [
        ("id,response\n1,a,b\n2,c\n", ["line 2: expected a row of 2 cells, as in the header", "2"]),
        ("id,response\n1\n2,c\n", ["line 2: expected a row of 2 cells, as in the header, got one of 1", "2"]),
        ('id,response\n1,"a\nb\nc"\n\n3\n4,d\n', ["1", "line 6: expected a row of 2 cells", "4"]),
        ('id,response\n1,"a" b\n2,c\n', ["line 2: expected a CSV row, got one that is damaged", "2"]),
        ('id,response\n1,a\n2,"b\n3,c\n', ["1", "line 3: expected a CSV row, got one that is damaged"]),
        ("id,response\n1,a\x00b\n2,c\n", ["field 'response': expected clean Unicode text, got a NUL", "2"]),
        ("id,contexts\n1,[said]\n2,c\n", ["a list, got the text '[said]'. Write the list as JSON", "2"]),
        ("id,contexts\n1,[1] said\n,\n2,c\n", ["1", "2"]),
        ("id,contexts\n1,['a' b]\n2,c\n", ["line 2, field 'retrieved_contexts': expected a list", "2"]),
        ("id,contexts\n1,[3]\n2,c\n", ["line 2, field 'retrieved_contexts[0]': expected a string", "2"]),
        ("id,response,retrieved_context_ids\n1,a,x y\n2,b,x\n", ["expected a list of ids", "2"]),
    ])  # fmt: skip
def test_damaged_tables(content: str, found: list[str], tmp_path: Path) -> None:
    """A bad row is told with the line where it begins; the other rows are read."""
    got = read(tmp_path / "d.csv", content)
    assert len(got) == len(found)
    assert all(words in one for words, one in zip(found, got, strict=True))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("id,response,id", "d.csv, line 1: expected each column once, got the column 'id' again"),
        ('id,"response', "d.csv, line 1: expected a CSV header, got one that is damaged"),
        (b"id,r\xe9ponse", "d.csv, line 1: expected column names in UTF-8"),
    ],
)
def test_headers_that_say_nothing(header: str | bytes, message: str, tmp_path: Path) -> None:
    """A table whose header cannot be understood is refused as a whole."""
    with pytest.raises(DataError) as caught:
        read(tmp_path / "d.csv", header)
    assert message in str(caught.value)


@given(st.binary(max_size=300), st.sampled_from([".jsonl", ".json", ".csv", ".tsv"]))
def test_no_bytes_bring_a_traceback(tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str) -> None:
    """Any bytes under any name give samples, bad records or a DataError, and nothing else."""
    check(tmp_path_factory.getbasetemp() / f"fuzz{suffix}", content)


FRAGMENTS = st.sampled_from([
    '{"response": "a"}', "[", "]", "{", "}", ",", ":", '"', "'", "\\", "\n", "\r", '"data"', "1", "NaN", "null",
    "\\ud800", ";", "\t", " ", "contexts", "id", "é", "\ufeff", "\x00",
])  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=25).map("".join), st.sampled_from([".jsonl", ".json", ".csv", ".tsv"]))
def test_no_text_brings_a_traceback(tmp_path_factory: pytest.TempPathFactory, content: str, suffix: str) -> None:
    """Any arrangement of the formats' own signs gives samples, bad records or a DataError."""
    check(tmp_path_factory.getbasetemp() / f"fuzz-text{suffix}", content.encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from([
    "id", "response", "answer", "contexts", "context", "contexts.0", "metadata", "lang", "x", "ground_truths",
])  # fmt: skip


@given(st.lists(st.dictionaries(KEYS, JSON, max_size=5), min_size=1, max_size=3))
def test_no_values_bring_a_traceback(records: list[dict[str, Any]]) -> None:
    """Any values in any columns give a sample or a bad record each, in their order."""
    found = list(load(records))
    assert len(found) == len(records)
    assert all(item.problems for item in found if isinstance(item, BadRecord))


def check(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        found = list(load(path))
    except DataError as error:
        found = [BadRecord(error.problems)]
    assert all(isinstance(item, Sample) or item.problems for item in found)


def test_lines_stream_in_constant_memory(tmp_path: Path) -> None:
    """Reading twenty times more lines takes no more memory."""
    script = (
        "import resource, sys\nfrom merilo.data.load import load\n"
        "for _ in load(sys.argv[1]): pass\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    kilobytes = []
    for count in (3000, 60_000):
        path = tmp_path / f"{count}.jsonl"
        with path.open("w") as file:
            file.writelines(f'{{"id": {number}, "contexts": ["Some text {number}."]}}\n' for number in range(count))
        done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, check=True)
        kilobytes.append(int(done.stdout))
    assert kilobytes[1] - kilobytes[0] < 5000


@pytest.mark.parametrize(("name", "head"), [("rows.jsonl", ""), ("rows.csv", "id,response\n"), ("rows.jsonl.gz", "")])
def test_a_file_of_blank_lines_is_not_read_to_its_end(tmp_path: Path, name: str, head: str) -> None:
    """100,000 blank lines in a row are skipped. One more ends the file, so that Ctrl-C is never held up for minutes."""
    row = "good,a\n" if head else f"{GOOD}\n"

    def after(blank: int) -> list[str]:
        content = (head + row + "\n" * blank + row.replace("good", "next")).encode()
        return read(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content)

    assert after(100_000) == ["good", "next"]
    with pytest.raises(DataError, match=r"rows\.\w+(\.gz)?, line 1\d+: expected at most 100,000 blank lines in a row"):
        after(100_001)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"train": [{"question": "q"}], "test": [{"question": "q"}] * 2}, "got several: 'train' (1), 'test' (2)"),
        ({"question": ["q", "r"], "answer": ["a"]}, "columns of equal length, got 'question' (2), 'answer' (1)"),
        ({"contexts": ["c", "d"]}, "which may be one record or columns of several"),
    ],
)
def test_an_ambiguous_object_is_refused(content: dict[str, object], message: str, tmp_path: Path) -> None:
    """An object that may be read in two ways is refused with what was found, in a file and in memory."""
    path = tmp_path / "d.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=re.escape(message)):
        list(load(path))
    with pytest.raises(UsageError, match=re.escape(message)):
        load(content)


def test_several_data_sets_are_refused_with_their_names() -> None:
    """A dictionary of frames, such as the splits of a data set, is refused with the expression to pass."""
    frame = pd.DataFrame({"question": ["q"]})
    with pytest.raises(UsageError, match=re.escape("2 of them: train, test. Pass one, such as data['train'].")):
        load({"train": frame, "test": frame})
