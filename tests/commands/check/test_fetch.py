"""What a download takes from a hub, and what it leaves behind when something goes wrong."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from each_case import each_case
from hub_server import COMMIT, HubServer

from merilo.commands.check.run import download, plan_download
from merilo.errors import UsageError
from merilo.judges.local.card import builtin_cards, forbids_commercial_use
from merilo.judges.local.find import find_model, read_lock

ONNX = b"weights" * 500
FILES = {
    "model.onnx": ONNX,
    "model.onnx_data": b"external",
    "model_int8.onnx": b"not needed",
    "tokenizer.json": b'{"version": "1.0"}',
    "config.json": b'{"model_type": "bert"}',
    "README.md": b"A model.",
    "LICENSE": b"MIT",
    "pytorch_model.bin": b"pickle",
    "modeling.py": b"import os",
    "model.safetensors": b"not needed",
}
TAKEN = {"model.onnx", "model.onnx_data", "tokenizer.json", "config.json", "README.md", "LICENSE"}


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
    return download(plan_download(name))


def lock_of(tmp_path: Path) -> Path:
    return tmp_path / "judges" / "org--name" / "judge.lock"


def test_only_harmless_files_are_taken_at_the_pinned_commit(hub: HubServer, tmp_path: Path) -> None:
    """One ONNX file with its weights and the texts; no pickle, no code, and no second set of weights."""
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


def test_files_may_be_in_the_folder_of_exports(hub: HubServer) -> None:
    """The model in `onnx/` is taken if there is none at the top; a repository without one needs an export."""
    hub.add("org/deep", {f"onnx/{name}" if "model" in name else name: content for name, content in FILES.items()})
    assert (fetched("org/deep") / "onnx" / "model.onnx").read_bytes() == ONNX
    hub.add("org/plain", {"model.safetensors": b"s", "config.json": b"{}", "pytorch_model.bin": b"x"})
    with pytest.raises(UsageError, match=r"org/plain has no model\.onnx\. To export the model: "):
        plan_download("org/plain")


def test_a_damaged_judge_is_downloaded_again(hub: HubServer) -> None:
    """A changed file of an installed judge is replaced."""
    folder = fetched()
    (folder / "model.onnx").resolve().write_bytes(bytes(len(ONNX)))
    assert (fetched() / "model.onnx").read_bytes() == ONNX


def test_the_name_of_a_card_leads_to_its_model(hub: HubServer) -> None:
    """`local:NAME` then finds the files with their lock."""
    card = builtin_cards()["ms-marco"]
    hub.add(card.model, {**FILES, "config.json": b"{}"}, commit=card.revision or COMMIT)
    found = fetched("ms-marco")
    model = find_model("ms-marco")
    assert model.folder == found
    assert model.lock is not None


def test_a_revision_is_resolved_to_a_commit(hub: HubServer, tmp_path: Path) -> None:
    """The lock has the commit of a tag, and later calls keep it when the branch moves on, unless it is named."""
    hub.repositories["org/name"].revisions = ("main", "v1")
    assert fetched("org/name@v1").name == COMMIT
    moved = COMMIT[::-1]
    hub.add("org/name", {**FILES, "model.onnx": b"new"}, commit=moved)
    assert fetched("org/name@main").name == moved
    lock = read_lock(lock_of(tmp_path).parent)
    assert lock is not None
    assert lock.revision == moved


def test_a_truncated_body_leaves_no_judge_and_is_resumed(hub: HubServer, tmp_path: Path) -> None:
    """A connection that breaks in the middle of a file is an error, and the next call completes the file."""
    hub.faults["model.onnx"] = "truncated"
    with pytest.raises(UsageError, match="Cannot get org/name from the hub"):
        fetched()
    assert not lock_of(tmp_path).exists()
    hub.faults.clear()
    assert (fetched() / "model.onnx").read_bytes() == ONNX


def test_a_failed_update_keeps_the_old_judge(hub: HubServer, tmp_path: Path) -> None:
    """Content that the hub does not describe is an error, and the lock stays that of the old revision."""
    fetched()
    before = lock_of(tmp_path).read_bytes()
    hub.add("org/name", {**FILES, "model.onnx": b"new"}, commit=COMMIT[::-1])
    hub.faults["model.onnx"] = "changed"
    with pytest.raises(UsageError, match=r"model\.onnx is not the file that the hub describes"):
        fetched("org/name@main")
    assert lock_of(tmp_path).read_bytes() == before


@each_case(
    ("licence", "forbids"),
    [
        ("mit", False),
        ("cc-by-nc-4.0", True),
        ("CC BY-NC-SA 4.0", True),
        ("bespoke-non-commercial", True),
        ("ncsa", False),
    ],
)
def test_licences_that_forbid_commercial_use(licence: str, forbids: bool) -> None:
    """They are shown in capitals before anything is downloaded."""
    assert forbids_commercial_use(licence) is forbids
