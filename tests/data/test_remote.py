"""Data and finished runs at addresses are copied and read; secrets in addresses are in no message."""

import functools
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from edits import printed

import merilo
from merilo.commands.merge.run import merge_runs
from merilo.data.remote import redacted, without_secrets
from merilo.errors import DataError, RunError, UsageError

fsspec = pytest.importorskip("fsspec")

RECORDS = [
    {"id": f"s{n}", "retrieved_context_ids": ["a", f"b{n}"], "reference_context_ids": ["a" if n % 3 else "c"]}
    for n in range(12)
]
DATA = "".join(json.dumps(each) + "\n" for each in RECORDS).encode()
METRICS = ["precision@2", "recall@2"]


@pytest.fixture(autouse=True)
def memory() -> Iterator[Any]:
    """The file system of memory://, empty before and after."""
    found = fsspec.filesystem("memory")
    found.store.clear()
    yield found
    found.store.clear()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "first"
    merilo.evaluate(RECORDS, metrics=METRICS, out=out, storage={"cache": False})
    return out


def upload(memory: Any, run: Path, name: str) -> str:
    for file in run.iterdir():
        memory.pipe_file(f"/{name}/{file.name}", file.read_bytes())
    return f"memory://{name}"


def test_data_at_an_address_gives_the_run_of_the_same_file(memory: Any, tmp_path: Path) -> None:
    """A run of memory://bucket/data.jsonl has the bytes of a run of data.jsonl; the address is in no file of it."""
    (tmp_path / "data.jsonl").write_bytes(DATA)
    memory.pipe_file("/bucket/data.jsonl", DATA)
    for name, data in (("near", tmp_path / "data.jsonl"), ("far", "memory://bucket/data.jsonl")):
        merilo.evaluate(data, metrics=METRICS, out=tmp_path / name, storage={"cache": False})
    for name in ("manifest.json", "outcomes.jsonl", "summary.json", "seal.json"):
        assert (tmp_path / "far" / name).read_bytes() == (tmp_path / "near" / name).read_bytes()
    assert not [file for file in (tmp_path / "far").iterdir() if b"memory://" in file.read_bytes()]


@pytest.mark.parametrize(
    "command",
    [["show"], ["show", "--worst", "3"], ["show", "--sample", "s3"], ["runs", "verify"], ["export", "-o", "t.csv"]],
)
def test_readers_take_a_run_at_an_address(
    command: list[str], memory: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finished run at an address is shown, verified and exported as the local one."""
    monkeypatch.chdir(tmp_path)
    url = upload(memory, run, "runs/first")
    words = 2 if command[0] == "runs" else 1
    found = [printed(*command[:words], each, *command[words:]) for each in (run, url)]
    assert found[1][0] == 0, found[1][1]
    assert [line for line in found[0][1].splitlines() if str(run) not in line and "/" not in line] == [
        line for line in found[1][1].splitlines() if "/" not in line
    ]


def test_two_runs_are_compared_and_reported_at_addresses(memory: Any, run: Path, tmp_path: Path) -> None:
    """`compare`, `gate` and `report` take addresses, and mix them with local runs."""
    urls = [upload(memory, run, name) for name in ("runs/first", "runs/second")]
    assert printed("compare", *urls)[0] == 0
    assert printed("gate", run, "--baseline", urls[0], "--max-drop", "0.5")[0] == 0
    assert printed("report", *urls, "-o", tmp_path / "page.html")[0] == 0
    assert "first" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_run_that_was_changed_at_its_address_is_refused(memory: Any, run: Path) -> None:
    """The copy is compared with its seal, so a changed file at the address is found."""
    url = upload(memory, run, "runs/first")
    memory.pipe_file("/runs/first/summary.json", (run / "summary.json").read_bytes().replace(b"0.", b"1."))
    with pytest.raises(RunError, match=r"summary\.json was changed"):
        merilo.Run.open(url)


def test_what_is_not_there_is_named(memory: Any, run: Path) -> None:
    """Missing data, a missing run and a run without a seal are refused with the address."""
    with pytest.raises(DataError, match=r"No such file: memory://bucket/none\.jsonl"):
        merilo.evaluate("memory://bucket/none.jsonl", metrics=METRICS, storage={"cache": False})
    url = upload(memory, run, "runs/first")
    memory.rm("/runs/first/seal.json")
    for each in (url, "memory://runs/none"):
        with pytest.raises(RunError, match=f"There is no finished run at {each}"):
            merilo.Run.open(each)


@pytest.mark.parametrize("address", ["memory://runs/new", "s3://user:pass@bucket/new?sig=abc"])
def test_no_run_is_written_to_an_address(address: str, run: Path, tmp_path: Path) -> None:
    """Commands that write a run refuse an address before they evaluate anything, and show no secret of it."""
    for write in (
        lambda: merilo.evaluate(RECORDS, metrics=METRICS, out=address, storage={"cache": False}),
        lambda: merge_runs([run, run], address),
    ):
        with pytest.raises(UsageError, match="needs a local directory") as caught:
            write()
        assert not [secret for secret in ("pass", "abc") if secret in str(caught.value)]


@each_case(
    "address",
    [
        "simplecache::memory://bucket/data.jsonl",
        "memory://a::memory://bucket/data.jsonl",
        "file:///etc/hosts",
        "memory://bucket/..",
        "memory://",
        "nosuchscheme://bucket/data.jsonl",
    ],
)
def test_other_addresses_are_refused(address: str) -> None:
    """Chains of file systems, local files, unknown schemes and addresses without a name are refused."""
    with pytest.raises((UsageError, DataError)):
        merilo.evaluate(address, metrics=METRICS, storage={"cache": False})


def test_a_name_cannot_leave_the_temporary_directory(memory: Any, tmp_path: Path) -> None:
    """Characters of an address that mean something to a file system are replaced in the name of the copy."""
    memory.pipe_file("/bucket/a\\..\\b.jsonl", DATA)
    run = merilo.evaluate(
        "memory://bucket/a\\..\\b.jsonl", metrics=METRICS, out=tmp_path / "run", storage={"cache": False}
    )
    assert run.manifest.data == "a_.._b"


@pytest.fixture
def server(tmp_path: Path, run: Path) -> Iterator[str]:
    """The address of a server on this machine with a data file and a run; it answers 403 under /closed."""
    shutil.copytree(run, tmp_path / "served" / "first")
    (tmp_path / "served" / "data.jsonl").write_bytes(DATA)

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Print nothing."""

        def do_GET(self) -> None:
            if self.path.startswith("/closed"):
                self.send_error(403, f"no: {self.path}")
            else:
                super().do_GET()

    there = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(tmp_path / "served")))
    threading.Thread(target=there.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{there.server_port}"
    there.shutdown()
    there.server_close()


def test_http_is_read(server: str, tmp_path: Path) -> None:
    """Data and a run are read from an HTTP server, with a signature in the address that the manifest does not have."""
    pytest.importorskip("aiohttp")
    run = merilo.evaluate(
        f"http://{server}/data.jsonl?sig=S3CR3T", metrics=METRICS, out=tmp_path / "run", storage={"cache": False}
    )
    assert (run.manifest.data, run.done) == ("data", len(RECORDS))
    assert not [file for file in run.path.iterdir() if b"S3CR3T" in file.read_bytes()]
    assert merilo.Run.open(f"http://{server}/first?sig=S3CR3T").done == len(RECORDS)


def test_a_refusal_shows_no_secret(server: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Errors, also with their traceback, show neither a password nor a signature of the address."""
    address = f"http://me:PASSW0RD@{server}/closed/data.jsonl?X-Amz-Signature=S3CR3T"
    with pytest.raises(DataError, match="Check the address and your access to it"):
        merilo.evaluate(address, metrics=METRICS, storage={"cache": False})
    from merilo.cli import outcome

    words = ["--metrics", METRICS[0], "--out", str(tmp_path / "run"), "--debug"]
    assert outcome(["run", address, *words]) == 2
    for command in ("show", "runs verify", "compare", "report", "gate", "export", "label", "runs list"):
        outcome([*command.split(), address, *([address] if command == "compare" else []), "--debug"])
    shown = capsys.readouterr()
    assert server in shown.err
    assert not [secret for secret in ("PASSW0RD", "S3CR3T") if secret in shown.err + shown.out]


@each_case(
    ("address", "shown"),
    [
        ("s3://bucket/a.jsonl", "s3://bucket/a.jsonl"),
        ("s3://key:secret@bucket/a.jsonl", "s3://***@bucket/a.jsonl"),
        ("https://h/a@b.jsonl?sig=1&x=2#f", "https://h/a@b.jsonl?***"),
        ("https://u:p@ss@h/a#t", "https://***@h/a#***"),
        ("data/a@b.jsonl?x", "data/a@b.jsonl?x"),
    ],
)
def test_an_address_is_shown_without_secrets(address: str, shown: str) -> None:
    """User names, passwords, queries and fragments are replaced; paths are not."""
    assert redacted(address) == shown


def test_a_text_loses_the_secrets_of_its_addresses() -> None:
    """In a longer text, addresses with a password or a signature are redacted, and others stay as they are."""
    text = "No such file: s3:/u:p@b/x. See https://h/y?api-version=1 and 'https://h/z?token=abc'."
    assert without_secrets(text) == "No such file: s3:/***@b/x. See https://h/y?api-version=1 and 'https://h/z?***'."
