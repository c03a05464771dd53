"""What a download takes from a hub, and what it leaves behind when something goes wrong."""

import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from each_case import each_case
from hub_server import COMMIT, HubServer

from merilo.commands.check.fetch import download, fetch, is_allowed, missing_model, plan_fetch
from merilo.errors import UsageError
from merilo.judges.local.card import builtin_cards
from merilo.judges.local.find import find_model, read_lock

ONNX = b"weights" * 500
FILES = {
    "model.onnx": ONNX,
    "tokenizer.json": b'{"version": "1.0"}',
    "config.json": b'{"model_type": "bert"}',
    "README.md": b"A model.",
    "LICENSE": b"MIT",
    "pytorch_model.bin": b"pickle",
    "modeling.py": b"import os",
    "model.safetensors": b"not needed",
}
TAKEN = {"model.onnx", "tokenizer.json", "config.json", "README.md", "LICENSE"}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """A hub with one model, an empty cache and no judges."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MERILO_JUDGES", str(tmp_path / "judges"))
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    with HubServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        server.add("org/name", FILES)
        yield server


def fetched(name: str = "org/name") -> Path:
    return fetch(plan_fetch(name))


def lock_of(tmp_path: Path, name: str = "org--name") -> Path:
    return tmp_path / "judges" / name / "judge.lock"


def test_only_harmless_files_are_taken_at_the_pinned_commit(hub: HubServer, tmp_path: Path) -> None:
    """One ONNX file and the texts; no pickle, no code, and no second set of weights."""
    found = fetched()
    assert {path.name for path in found.iterdir()} == TAKEN
    assert (found / "model.onnx").read_bytes() == ONNX
    asked = {path for path in hub.requests if "/resolve/" in path}
    assert all(COMMIT in path for path in asked)
    assert {path.rpartition("/")[2] for path in asked} == TAKEN
    lock = read_lock(lock_of(tmp_path).parent)
    assert lock is not None
    assert (lock.model, lock.revision, lock.licence) == ("org/name", COMMIT, "mit")
    assert lock.files == {name: sha256(FILES[name]).hexdigest() for name in TAKEN}
    assert [path.name for path in lock_of(tmp_path).parent.iterdir()] == ["judge.lock"]


def test_a_changed_file_is_downloaded_again(hub: HubServer) -> None:
    """Only the changed one is."""
    folder = fetched()
    hub.requests.clear()
    (folder / "model.onnx").resolve().write_bytes(bytes(len(ONNX)))
    assert (fetched() / "model.onnx").read_bytes() == ONNX
    assert {path.rpartition("/")[2] for path in hub.requests if path.endswith(".onnx")} == {"model.onnx"}


def test_a_model_that_was_fetched_is_found(hub: HubServer) -> None:
    """The name of a card leads to its model, and `local:NAME` then finds the files with their lock."""
    card = builtin_cards()["ms-marco"]
    hub.add(card.model, {**FILES, "config.json": b"{}"}, commit=card.revision or COMMIT)
    assert missing_model("local:ms-marco") == "ms-marco"
    found = fetched("ms-marco")
    assert missing_model("local:ms-marco") is None
    model = find_model("ms-marco")
    assert model.folder == found
    assert model.lock is not None


def test_a_revision_is_resolved_to_a_commit_and_stays(hub: HubServer, tmp_path: Path) -> None:
    """A tag is stored as its commit; later calls keep that commit when the branch moves on."""
    hub.repositories["org/name"].revisions = ("main", "v1")
    assert fetched("org/name@v1").name == COMMIT
    moved = COMMIT[::-1]
    old, new = dict(FILES), {**FILES, "model.onnx": b"new"}
    hub.add("org/name", new, commit=moved)
    assert missing_model("local:org/name") == "org/name"  # it has no card yet
    assert fetched("org/name@main").name == moved
    assert json.loads(lock_of(tmp_path).read_text(encoding="utf-8"))["revision"] == moved
    assert old["model.onnx"] == ONNX


def test_other_weights_need_an_export(hub: HubServer) -> None:
    """Without an ONNX file nothing is taken, and the message says how to make one."""
    hub.add("org/plain", {"model.safetensors": b"s", "config.json": b"{}", "pytorch_model.bin": b"x"})
    with pytest.raises(UsageError, match=r"org/plain has no \.onnx file\. To export the model: "):
        plan_fetch("org/plain")


@pytest.mark.parametrize(
    ("licence", "shown"),
    [
        ("mit", "mit"),
        ("cc-by-nc-4.0", "CC-BY-NC-4.0: NOT FOR COMMERCIAL USE"),
        ("CC BY-NC-SA 4.0", "CC BY-NC-SA 4.0: NOT FOR COMMERCIAL USE"),
        ("bespoke-non-commercial", "BESPOKE-NON-COMMERCIAL: NOT FOR COMMERCIAL USE"),
        ("ncsa", "ncsa"),
        (None, "unknown"),
    ],
)
def test_licences_that_forbid_commercial_use_are_in_capitals(hub: HubServer, licence: str | None, shown: str) -> None:
    """The licence of the metadata is shown before anything is downloaded."""
    hub.add("org/licensed", FILES, licence)
    assert plan_fetch("org/licensed").licence == shown


# ----------------------------------------------------------------------------------------- errors


def nothing_half_valid(tmp_path: Path) -> None:
    """No lock, and no model that counts as found."""
    assert not lock_of(tmp_path).exists()
    assert missing_model("local:org/name") == "org/name"


def test_a_truncated_body_leaves_no_judge_and_is_resumed(hub: HubServer, tmp_path: Path) -> None:
    """A connection that breaks in the middle of a file is no success, and the next call completes it."""
    hub.faults["model.onnx"] = "truncated"
    with pytest.raises(UsageError, match="Cannot read org/name from the hub"):
        fetched()
    nothing_half_valid(tmp_path)
    hub.faults.clear()
    assert (fetched() / "model.onnx").read_bytes() == ONNX


def test_an_interruption_between_files_is_resumed(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finished files stay in the cache, but without a lock they are no judge; the next call fetches the others."""

    def interrupted(model: str, revision: str, name: str) -> Path:
        if name == "model.onnx":
            raise KeyboardInterrupt
        return download(model, revision, name)

    with monkeypatch.context() as context:
        context.setattr("merilo.commands.check.fetch.download", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetched()
    nothing_half_valid(tmp_path)
    hub.requests.clear()
    fetched()
    assert not [path for path in hub.requests if path.endswith("/config.json")]


@pytest.mark.parametrize("name", ["model.onnx", "config.json"])
def test_changed_content_of_the_right_size_is_refused(hub: HubServer, tmp_path: Path, name: str) -> None:
    """The digest of the hub's metadata counts, for files in Git LFS and for others; the file is removed."""
    hub.faults[name] = "changed"
    with pytest.raises(UsageError, match=f"{name} of org/name differs from the description of the hub: its"):
        fetched()
    nothing_half_valid(tmp_path)
    assert not [path for path in (tmp_path / "cache").rglob(name) if path.is_file()]


def test_a_wrong_size_is_refused(hub: HubServer, tmp_path: Path) -> None:
    """A file whose size is not the announced one is not installed."""
    hub.repositories["org/name"].sizes["config.json"] = 999
    with pytest.raises(UsageError, match="it has 22 bytes instead of 999"):
        fetched()
    nothing_half_valid(tmp_path)


def test_a_failed_update_keeps_the_old_judge(hub: HubServer, tmp_path: Path) -> None:
    """The lock is replaced only when all files of the new revision are right."""
    fetched()
    before = lock_of(tmp_path).read_bytes()
    hub.add("org/name", {**FILES, "model.onnx": b"new"}, commit=COMMIT[::-1])
    hub.faults["model.onnx"] = "changed"
    with pytest.raises(UsageError, match="differs from the description"):
        fetched("org/name@main")
    assert lock_of(tmp_path).read_bytes() == before


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (401, "GatedRepo", "org/closed is gated: its authors ask for a consent.* set HF_TOKEN"),
        (403, "GatedRepo", "org/closed is gated"),
        (401, "RepoNotFound", "The hub has no model org/closed, or it is private"),
        (404, "RepoNotFound", "The hub has no model org/closed"),
        (500, "", r"Cannot read org/closed from the hub \(HTTP 500\)"),
    ],
)
def test_errors_of_the_hub_are_sentences(hub: HubServer, status: int, code: str, message: str) -> None:
    """Each says what is wrong and what to do."""
    hub.add("org/closed", FILES, status=status, code=code)
    with pytest.raises(UsageError, match=message):
        plan_fetch("org/closed")


def test_other_errors_are_sentences_too(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing revision or file, no server, a name that is none, and no package."""
    with pytest.raises(UsageError, match="org/name has no revision 'v9'"):
        plan_fetch("org/name@v9")
    with pytest.raises(UsageError, match=r"No local judge 'nothing'.* or: bge-base,"):
        plan_fetch("nothing")
    plan = plan_fetch("org/name")
    hub.faults["README.md"] = "404"
    with pytest.raises(UsageError, match="Cannot read org/name from the hub"):
        fetch(plan)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UsageError, match=r"Cannot read org/name from the hub \(ConnectError"):
        plan_fetch("org/name")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UsageError, match=r"needs the package huggingface_hub\. Install it: pip install 'merilo\[local"):
        plan_fetch("org/name")


# ------------------------------------------------------------------------------------ what is taken


@each_case(
    "name",
    [
        "model.bin",
        "model.ckpt",
        "model.pt",
        "model.pkl",
        "modeling.py",
        "LICENSE.py",
        "../model.onnx",
        "/model.onnx",
        "onnx/../../model.onnx",
        "a/b/model.onnx",
        "onnx\\model.onnx",
        "onnx//model.onnx",
        ".onnx",
        "model.onnx\n",
        "model.onnx.py",
    ],
)
def test_other_files_are_never_taken(name: str) -> None:
    """Neither formats with code, nor names that leave the folder."""
    assert not is_allowed(name)


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        ({"onnx/model.onnx", "onnx/model_int8.onnx"}, {"onnx/model.onnx"}),
        (
            {"onnx/model.onnx", "onnx/model.onnx_data", "onnx/model_fp16.onnx_data", "onnx/model_fp16.onnx"},
            {"onnx/model.onnx", "onnx/model.onnx_data"},
        ),
        ({"model.onnx", "weights.onnx_data", "onnx/model.onnx"}, {"model.onnx", "weights.onnx_data"}),
        ({"a.onnx", "b.onnx", "model.safetensors"}, {"a.onnx", "b.onnx"}),
    ],
)
def test_one_set_of_weights_is_taken(hub: HubServer, names: set[str], taken: set[str]) -> None:
    """Of several ONNX files the usual one with its own external data, at the top before `onnx/`."""
    hub.add("org/many", dict.fromkeys({*names, "tokenizer.json"}, b"x"))
    assert {each.name for each in plan_fetch("org/many").files} == {*taken, "tokenizer.json"}
