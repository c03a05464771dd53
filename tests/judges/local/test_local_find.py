"""Where a local model is found: folders, fetched models and the cache of the hub, all made by hand."""

import json
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from each_case import each_case
from tiny_models import NLI_CARD, nli, random_model, rigged

from merilo.errors import UsageError
from merilo.judges.local.find import (
    LOCK_NAME,
    Lock,
    digests,
    external_files,
    fetched_folder,
    find_model,
    hub_cache,
)
from merilo.judges.local.judge import local_judge

MODEL = "cross-encoder/nli-deberta-v3-base"
REVISION = "a" * 40


def cached(model: str = MODEL, revision: str = REVISION, *, external: bool = False) -> Path:
    """Write a model into the cache of the hub as its client does: blobs, links from snapshots, refs."""
    root = hub_cache() / f"models--{model.replace('/', '--')}"
    made = root / "made"
    labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
    random_model(made, labels, "a b c", external=True) if external else rigged(made, labels)
    snapshot = root / "snapshots" / revision
    (root / "blobs").mkdir(parents=True, exist_ok=True)
    (root / "refs").mkdir(exist_ok=True)
    snapshot.mkdir(parents=True)
    for path in made.iterdir():
        blob = root / "blobs" / sha256(path.read_bytes()).hexdigest()
        path.rename(blob)
        (snapshot / path.name).symlink_to(blob)
    made.rmdir()
    (root / "refs" / "main").write_text(revision)
    return snapshot


def refused(spec: str) -> str:
    """The error for a spec, which is one line."""
    with pytest.raises(UsageError) as error:
        find_model(spec)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_folder_is_used_with_its_card(tmp_path: Path) -> None:
    """A folder needs a card of its own."""
    folder = nli(tmp_path / "mine")
    found = find_model(str(folder))
    assert found.card.name == "rigged"
    assert found.model == folder / "model.onnx"
    (folder / "judge.toml").unlink()
    assert refused(str(folder)) == f"{folder} has no judge.toml. Write a draft: merilo judge check local:{folder}."


@each_case(
    ("spec", "message"),
    [
        ("", "A local judge needs a model: local:FOLDER, local:ORG/NAME[@REVISION] or local:NAME."),
        ("nli", f"The model {MODEL} is not in the cache of the hub. Download it: merilo judge check local:nli."),
        (MODEL, f"The model {MODEL} is not in the cache of the hub. Download it: merilo judge check local:{MODEL}."),
        (
            f"{MODEL}@v2",
            f"Revision v2 of {MODEL} is not in the cache of the hub. Download it: merilo judge check local:{MODEL}@v",
        ),
        ("somebody/model", "No card for somebody/model. Download the model and write a draft"),
        ("nlj", "No local model 'nlj'. Use local:FOLDER"),
        ("./none", "No such folder: none."),
        ("../../none", "No such folder: ../../none."),
        ("a/../b", "No such folder: a/../b."),
        ("a/b@../../c", "No such folder"),
    ],
)
def test_what_is_missing_is_named(spec: str, message: str) -> None:
    """An absent model names the command that downloads it."""
    assert message in refused(spec)


def test_the_cache_of_the_hub_is_read(tmp_path: Path) -> None:
    """A shipped card, ORG/NAME, a branch and a commit lead to the same files behind links."""
    snapshot = cached()
    for spec in ("nli", MODEL, f"{MODEL}@main", f"{MODEL}@{REVISION}"):
        found = find_model(spec)
        assert found.model == snapshot / "model.onnx"
    assert tmp_path in found.model.parents


def test_another_revision_is_not_used() -> None:
    """A revision that is not in the cache is refused."""
    cached()
    assert f"Revision {'b' * 40} of {MODEL} is not in the cache of the hub." in refused(f"{MODEL}@{'b' * 40}")


def test_weights_behind_links_are_found() -> None:
    """External data is read next to the link, not next to the blob."""
    snapshot = cached(external=True)
    assert external_files(snapshot / "model.onnx") == (snapshot / "model.onnx_data",)
    assert {*digests(find_model("nli"))} == {"model.onnx", "model.onnx_data", "tokenizer.json"}
    (snapshot / "model.onnx_data").unlink()
    with pytest.raises(UsageError, match=r"model.onnx_data is missing: model.onnx stores its weights there"):
        digests(find_model("nli"))


@pytest.mark.parametrize("name", ["../weights", "/etc/passwd", "a/b", "..", "C:weights", "a\\b"])
def test_weights_outside_of_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    """An ONNX file that names a path for its weights is refused before onnxruntime reads it."""
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x0a\x08location\x12" + bytes([len(name)]) + name.encode())
    with pytest.raises(UsageError, match="which is not a file in its folder"):
        external_files(path)


def write_lock(home: Path, files: dict[str, str]) -> None:
    """Write what a download of these files leaves."""
    lock = Lock(model=MODEL, revision=REVISION, licence="MIT", date="2026-11-23", files=files)
    (home / LOCK_NAME).write_text(lock.model_dump_json(), encoding="utf-8")


def test_a_fetched_model_is_checked_against_its_lock() -> None:
    """One changed byte is refused, even though size and name are the same."""
    home = rigged(fetched_folder("nli"))
    files = {name: sha256((home / name).read_bytes()).hexdigest() for name in ("model.onnx", "tokenizer.json")}
    write_lock(home, files)
    found = find_model("nli")
    assert digests(found) == files
    content = bytearray((home / "model.onnx").read_bytes())
    content[-1] ^= 1
    (home / "model.onnx").write_bytes(content)
    with pytest.raises(UsageError, match=r"differs from the file that was fetched. Fetch it again: merilo judge check"):
        digests(found)


def test_a_lock_alone_leads_to_its_revision_in_the_cache() -> None:
    """The files of a fetched model may be in the cache of the hub; another revision there is not used."""
    cached(revision="b" * 40)
    home = fetched_folder("nli")
    home.mkdir(parents=True)
    write_lock(home, {})
    assert f"Revision {REVISION}" in refused("nli")
    cached(revision=REVISION)
    assert find_model("nli").folder.name == REVISION


@pytest.mark.parametrize("content", ["{", "[]", '{"model": 1}', '{"a\\nb": 1}', "[" * 100_000])
def test_a_damaged_lock_is_one_line(content: str) -> None:
    """A lock that is not the recorded object is refused."""
    home = rigged(fetched_folder("nli"))
    (home / "judge.lock").write_text(content)
    assert "judge.lock is invalid" in refused("nli")


def test_an_own_card_goes_before_the_shipped_one() -> None:
    """`judge.toml` in the folder of a fetched model replaces the shipped card."""
    rigged(fetched_folder("nli"))
    (fetched_folder("nli") / "judge.toml").write_text(NLI_CARD)
    assert find_model("nli").card.name == "rigged"


def test_a_card_of_the_uploader_is_not_read() -> None:
    """A judge.toml in the cache of the hub is somebody else's."""
    snapshot = cached()
    (snapshot / "judge.toml").write_text("card = [")
    assert find_model("nli").card.name == "nli"


def test_labels_in_another_order_are_refused(tmp_path: Path) -> None:
    """config.json decides the order of the labels; a card that contradicts it is an error."""
    folder = nli(tmp_path / "mine", labels={0: "entailment", 1: "neutral", 2: "contradiction"})
    assert "The card rigged does not fit" in refused(str(folder))


@each_case(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[1]", "must contain one object"),
        ("[" * 100_000, "nested too deeply"),
        (json.dumps({"id2label": ["a"]}), "id2label must map the numbers from 0 to names"),
        (json.dumps({"id2label": {"0": 1}}), "id2label must map the numbers from 0 to names"),
        (json.dumps({"id2label": {"0": "a\nb"}}), "id2label must map the numbers from 0 to names"),
        (json.dumps({"id2label": {"0": "\x1b[2J"}}), "id2label must map the numbers from 0 to names"),
        (json.dumps({"id2label": {"1": "a"}}), "id2label must map the numbers from 0 to names"),
        (json.dumps({"id2label": {"9" * 5000: "a"}}), "id2label must map the numbers from 0 to names"),
        (" " * (2**20 + 1), "at most 1,048,576 bytes"),
    ],
)
def test_a_malformed_configuration_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    """Damaged, huge and deeply nested JSON gives an error in one line."""
    folder = nli(tmp_path / "mine")
    (folder / "config.json").write_text(content)
    assert message in refused(str(folder))


def test_only_the_files_of_the_card_are_opened(tmp_path: Path) -> None:
    """Pickles and code next to a model are never opened: pipes in their place would block."""
    folder = nli(tmp_path / "mine")
    opened: list[str] = []
    for name in ("pytorch_model.bin", "model.py", "configuration_x.py", "model.ckpt"):
        (folder / name).write_bytes(b"\x80\x04cos\nsystem\n(S'echo'\ntR.")

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(str(folder)):
            opened.append(arguments[0].rpartition("/")[2])

    sys.addaudithook(note)
    judge = local_judge(str(folder))
    judge.fingerprint()
    judge.provider.scorer()
    assert {*opened} <= {"judge.toml", "config.json", "model.onnx", "tokenizer.json"}
    assert "model.onnx" in opened
