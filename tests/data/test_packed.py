"""Gzip files that unpack to more than anyone wants: a limit, an error of one sentence, and little memory."""

import cProfile
import gzip
import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from each_case import each_case
from imported import import_scores
from pyarrow import parquet

from merilo.data import source
from merilo.data.labels import read_labels
from merilo.data.load import load
from merilo.data.sample import BadRecord
from merilo.data.trec import load_trec
from merilo.errors import DataError

LIMIT = 20_000
TREC = "".join(f"q1 Q0 d{number} 1 {number} tag\n" for number in range(2000))
QRELS = "".join(f"q1 0 d{number} 1\n" for number in range(4000))
LINES = "".join(f'{{"id": {number}, "response": "a"}}\n' for number in range(2000))
CONTENTS: dict[str, str] = {
    "d.jsonl.gz": LINES,
    "d.json.gz": json.dumps([json.loads(line) for line in LINES.splitlines()]),
    "d.csv.gz": "id,response,s\n" + "".join(f"{number},a,1\n" for number in range(5000)),
    "d.tsv.gz": "id\tresponse\n" + "".join(f"{number}\ta\n" for number in range(5000)),
    "run.trec": TREC,
    "judged.qrels": QRELS,
    "small.qrels": "q1 0 d1 1\n",
}
READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "JSON Lines": ("d.jsonl.gz", lambda here: list(load(here / "d.jsonl.gz"))),
    "JSON": ("d.json.gz", lambda here: list(load(here / "d.json.gz"))),
    "CSV": ("d.csv.gz", lambda here: list(load(here / "d.csv.gz"))),
    "TSV": ("d.tsv.gz", lambda here: list(load(here / "d.tsv.gz"))),
    "labels": ("d.jsonl.gz", lambda here: read_labels([here / "d.jsonl.gz"])),
    "imported scores": ("d.csv.gz", lambda here: import_scores(here / "d.csv.gz", scores=["s"], out=here / "run")),
    "a TREC run": ("run.trec", lambda here: load_trec(here / "run.trec", here / "small.qrels")),
    "qrels": ("judged.qrels", lambda here: load_trec(here / "small.qrels", here / "judged.qrels")),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of gzip files, all but the small one beyond the limit that holds in the test."""
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(gzip.compress(content.encode(), mtime=0))
    monkeypatch.setattr(source, "MAX_UNPACKED_BYTES", LIMIT)
    return tmp_path


@pytest.mark.parametrize("kind", READERS)
def test_every_reader_of_gzip_files_stops_at_the_limit(kind: str, here: Path) -> None:
    """The error names the file and the limit in one sentence, and says what to do."""
    name, read = READERS[kind]
    with pytest.raises(DataError) as caught:
        read(here)
    assert str(caught.value) == (
        f"{name}: expected at most 20,000 bytes when it is unpacked, got more. "
        "Unpack the file first (gunzip) if it is meant to be this large."
    )


def test_a_file_of_exactly_the_limit_is_read(here: Path) -> None:
    """The limit is exact."""
    line = b'{"response": "a"}\n'
    content = line + b" " * (LIMIT - len(line))
    (here / "d.jsonl.gz").write_bytes(gzip.compress(content))
    assert len(list(load(here / "d.jsonl.gz"))) == 1
    (here / "d.jsonl.gz").write_bytes(gzip.compress(content + b" "))
    with pytest.raises(DataError, match="got more"):
        list(load(here / "d.jsonl.gz"))


ENDLESS = {
    "one line of blanks": ("d.jsonl.gz", b" " * 2**20),
    "one text": ("d.jsonl.gz", b'{"response": "' + b"x" * 2**20),
    "blank lines": ("d.jsonl.gz", (b" " * 1023 + b"\n") * 2**10),
    "a cell that is not closed": ("d.csv.gz", b'id,response\n1,"' + b"x\n" * 2**19),
    "a row of many cells": ("d.csv.gz", b"id,response\n1," + b'"x\n",' * 2**18),
    "one line of a table": ("d.csv.gz", b"id,response\n1," + b"x" * 2**20),
}


@each_case("kind", ENDLESS)
def test_endless_content_takes_little_memory(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a line nor a row is held beyond its limit, however much there is to unpack."""
    name, begin = ENDLESS[kind]
    monkeypatch.setattr(source, "MAX_UNPACKED_BYTES", 48 * 2**20)
    path = tmp_path / name
    with gzip.open(path, "wb", compresslevel=1) as out:
        out.write(begin)
        for _ in range(63):
            out.write(begin[-(2**20) :])
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"expected (at most|a row of at most|a record of at most)"):
            list(load(path, max_line_bytes=2**18))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * 2**20


def test_a_row_that_is_too_long_names_its_first_line(tmp_path: Path) -> None:
    """A quote that is not closed swallows the rest of the file; the error says where to look."""
    path = tmp_path / "d.csv"
    path.write_text('id,response\n1,a\n2,"b\n' + "c\n" * 1000)
    with pytest.raises(DataError) as caught:
        list(load(path, max_line_bytes=500))
    assert str(caught.value) == (
        "d.csv, line 3: expected a row of at most 500 bytes, got a longer one. Check for a quote that is not closed."
    )


def _gzipped(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content))
    return path


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    parquet.write_table(pa.table(columns), path, compression="zstd", **options)
    return path


def _saved(path: Path, columns: dict[str, Any], compression: str | None = None) -> Path:
    path.mkdir()
    table = pa.table(columns)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path / "a.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema, options=options) as out:
        out.write_table(table)
    (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "a.arrow"}]}))
    return path


def _repeated(text: str, number: int) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array([0] * number, pa.int16()), pa.array([text]))


def _contexts(texts: Any) -> dict[str, Any]:
    return {"question": ["q"], "contexts": pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)}


def _read_good(path: Path) -> None:
    for item in load(path):
        if isinstance(item, BadRecord):
            raise DataError.of(*item.problems)


BOMBS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "rows of gzip": (lambda here: _gzipped(here / "d.csv.gz", b"response\n" + b"a\n" * 500_000), "10,000 rows, or one"),
    "rows of Parquet": (
        lambda here: _parquet(here / "d.parquet", {"response": _repeated("a", 500_000)}),
        "10,000 rows",
    ),
    "a long text in each row": (
        lambda here: _parquet(here / "d.parquet", {"response": _repeated("x" * 2**20, 1000)}, store_schema=False),
        "at most 200 times more bytes than the file",
    ),
    "a long text in each context": (
        lambda here: _parquet(here / "d.parquet", _contexts(_repeated("x" * 2**20, 1000))),
        "at most 200 times more bytes than the file",
    ),
    "a long column": (
        lambda here: _parquet(here / "d.parquet", {"response": ["x" * 2**27]}, use_dictionary=False),
        "at most 200 times larger when they are unpacked",
    ),
    "wide Parquet": (lambda here: _parquet(here / "d.parquet", {f"{n}": [1] for n in range(20_000)}), "16,384 columns"),
    "compressed Arrow": (lambda here: _saved(here / "d", {"response": ["x" * 2**27]}, "zstd"), "compressed batches"),
    "rows of Arrow": (lambda here: _saved(here / "d", {"response": pa.nulls(10**9)}), "10,000 rows"),
    "a long text in each row of Arrow": (
        lambda here: _saved(here / "d", {"response": _repeated("x" * 2**20, 5000)}),
        "at most 200 times more bytes than the file",
    ),
    "values": (lambda here: _gzipped(here / "d.jsonl.gz", b'{"x":[' + b"[]," * 2**20 + b"0]}"), "500,000 values"),
    "contexts": (
        lambda here: _gzipped(here / "d.json", b'[{"contexts":[' + b'"c",' * 9999 + b'"c"]}]'),
        "2,000 contexts",
    ),
    "columns": (lambda here: _gzipped(here / "d.csv", b",".join(b"c%d" % n for n in range(20_000))), "16,384 columns"),
    "keys": (
        lambda here: _gzipped(here / "d.jsonl", json.dumps(dict.fromkeys(map(str, range(20_000)))).encode()),
        "16,384 columns",
    ),
}


SLOW: dict[str, tuple[Callable[[Path], Path], str]] = {
    "empty parts of gzip": (
        lambda here: _written(here / "d.jsonl.gz", gzip.compress(b"", mtime=0) * 100_000),
        "expected a gzip file with content, got 262,",
    ),
    "lines of a row": (
        lambda here: _written(here / "d.csv", b'id,response\n1,"' + b"x,y\n" * 2_000_000),
        "d.csv, line 2: expected a row of at most 100,000 lines",
    ),
    "a million keys": (
        lambda here: _written(here / "d.jsonl", json.dumps(dict.fromkeys(map(str, range(10**6)))).encode()),
        "500,000 values",
    ),
    "many keys": (
        lambda here: _written(here / "d.json", json.dumps([dict.fromkeys(map(str, range(200_000)))]).encode()),
        "16,384 columns",
    ),
    "empty rows of Parquet": (
        lambda here: _parquet(here / "d.parquet", {"response": pa.nulls(50 * 10**6, pa.string())}),
        "10,000 rows",
    ),
}


@each_case("kind", SLOW)
def test_a_file_cannot_take_long_to_refuse(kind: str, tmp_path: Path) -> None:
    """At most a million calls, which take less than a second, whatever the size of the file."""
    make, message = SLOW[kind]
    path, profile = make(tmp_path), cProfile.Profile()
    with pytest.raises(DataError, match=re.escape(message)):
        profile.runcall(_read_good, path)
    assert sum(each.callcount for each in profile.getstats()) < 10**6


@each_case("kind", BOMBS)
def test_a_small_file_cannot_become_large(kind: str, tmp_path: Path) -> None:
    """Rows, texts, values, contexts and columns have bounds, which are checked before the memory is taken."""
    make, message = BOMBS[kind]
    path = make(tmp_path)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=re.escape(message)):
            _read_good(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20
    assert pa.total_allocated_bytes() - before < 64 * 2**20
