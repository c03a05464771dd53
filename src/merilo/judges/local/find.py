"""Where a local model is on this machine: a folder, a model that was fetched, or the cache of the Hugging Face hub.

Nothing is downloaded, and nothing is written. `merilo judge check local:NAME` stores what it downloads in
`judges_home()/NAME`: at least `judge.lock`, and the files themselves unless they are in the cache of the hub.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.errors import UsageError
from merilo.judges.local.card import (
    CARD_NAME,
    NAME_PATTERN,
    builtin_card_for,
    builtin_cards,
    label_problem,
    read_card,
)
from merilo.judges.local.lock import read_lock
from merilo.judges.local.model_config import read_config

if TYPE_CHECKING:
    from merilo.judges.local.card import Card
    from merilo.judges.local.lock import Lock

FORMS: Final = "local:FOLDER, local:ORG/NAME[@REVISION] or local:NAME"
_MODEL: Final = re.compile(r"(?P<org>[\w-][\w.-]*)/(?P<name>[\w-][\w.-]*)(?:@(?P<revision>[\w-][\w.-]*))?")
_NAME: Final = re.compile(NAME_PATTERN)
_FOLDER_NAME: Final = re.compile(r"[\w-][\w.-]*")
_MAX_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model on this machine and its card."""

    name: str
    """What the user called it, or the folder."""
    card: Card
    folder: Path
    """The folder that contains all files."""
    model: Path
    """The ONNX file."""
    tokenizer: Path
    lock: Lock | None
    """The digests that the download recorded; None for other models."""
    revision: str
    """The revision of the hub; empty for a folder."""
    home: Path
    """The folder for what merilo stores about the model: its lock and its agreement with human labels."""


def judges_home() -> Path:
    """Return the folder for fetched models: `$MERILO_JUDGES`, or `merilo/judges` in the user's data directory."""
    if named := os.environ.get("MERILO_JUDGES"):
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "merilo" / "judges"


def fetched_folder(name: str) -> Path:
    """Return the folder of a fetched model, which may not exist. `name`: a card's name or ORG/NAME."""
    return judges_home() / name.replace("/", "--")


def hub_cache() -> Path:
    """Return the cache of the Hugging Face hub: `$HF_HUB_CACHE`, `$HF_HOME/hub` or `~/.cache/huggingface/hub`."""
    if cache := os.environ.get("HF_HUB_CACHE"):
        return Path(cache).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser() / "huggingface" / "hub"


def hub_snapshot(model: str, revision: str = "main") -> Path | None:
    """Return the folder of a revision (a branch, a tag or a commit) of ORG/NAME in the hub's cache; None if absent."""
    root = _hub_folder(model)
    try:
        commit = (root / "refs" / revision).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        commit = revision
    folder = root / "snapshots" / commit
    return folder if _FOLDER_NAME.fullmatch(commit) and folder.is_dir() else None


def _hub_folder(model: str) -> Path:
    return hub_cache() / f"models--{model.replace('/', '--')}"


def card_for(spec: str) -> Card | None:
    """Return the card of a spec without its model: the user's or a shipped one. None if there is none.

    `spec` is a card's name or ORG/NAME[@REVISION]. Raises UsageError for an invalid card.
    """
    named = _MODEL.fullmatch(spec)
    name = f"{named['org']}/{named['name']}" if named else spec
    if (named or _NAME.fullmatch(name)) and (own := fetched_folder(name) / CARD_NAME).is_file():
        return read_card(own)
    return builtin_card_for(name) if named else builtin_cards().get(name)


def find_model(spec: str) -> FoundModel:
    """Return the model that the text after `local:` names. Raises UsageError if a part of it is missing or wrong.

    A name without a separator is a fetched model or a shipped card, otherwise a folder. A text with a separator is a
    folder if there is one, otherwise ORG/NAME.
    """
    spec = spec.strip()
    if not spec:
        raise UsageError(f"A local judge needs a model: {FORMS}.")
    card = card_for(spec)
    if card is not None and "/" not in spec:
        return _named(spec, card)
    folder = Path(spec).expanduser()
    if folder.is_dir():
        return _in_folder(folder)
    if folder.is_file():
        raise UsageError(f"{folder} is a file. Name its folder: local:{folder.parent}.")
    named = _MODEL.fullmatch(spec)
    if named is not None:
        return _of_hub(f"{named['org']}/{named['name']}", named["revision"] or "", card)
    if _NAME.fullmatch(spec):
        raise UsageError(f"No local model {spec!r}. Use {FORMS}; names: {', '.join(builtin_cards())}.")
    raise UsageError(f"No such folder: {folder}.")


def _in_folder(folder: Path) -> FoundModel:
    path = folder / CARD_NAME
    if not path.is_file():
        raise UsageError(f"{folder} has no {CARD_NAME}. Write a draft: merilo judge check local:{folder}.")
    card = read_card(path)
    return _checked(_Place(str(folder), folder, folder, read_lock(folder)), card, _missing_in_folder(card))


def _missing_in_folder(card: Card) -> str:
    return f"Copy the file there, or correct files in {CARD_NAME}." + (export_advice(card.model) if card.model else "")


def _named(name: str, card: Card) -> FoundModel:
    """Return the model of a card: fetched, or in the cache of the hub."""
    home = fetched_folder(name)
    lock = read_lock(home)
    if _file(home, card.files.model) is not None:
        return _checked(_Place(name, home, home, lock), card, export_advice(card.model))
    if not card.model:
        raise UsageError(f"{home} has no {card.files.model}. Copy the files of the model there.")
    return _in_hub(card, card.model, lock.revision if lock else card.revision, name, lock)


def _of_hub(model: str, revision: str, card: Card | None) -> FoundModel:
    if card is None:
        raise UsageError(
            f"No card for {model}. Download the model and write a draft: merilo judge check local:{model}."
        )
    home = fetched_folder(model)
    lock = read_lock(home)
    if not revision and _file(home, card.files.model) is not None:
        return _checked(_Place(model, home, home, lock), card, export_advice(model))
    pinned = card.revision if model == card.model else ""
    own = lock is not None and revision in {"", lock.revision}
    return _in_hub(card, model, revision or (lock.revision if lock else pinned), model, lock if own else None)


def _in_hub(card: Card, model: str, revision: str, name: str, lock: Lock | None) -> FoundModel:
    folder = hub_snapshot(model, revision or "main")
    if folder is None:
        there = sorted(path.name for path in (_hub_folder(model) / "snapshots").glob("*"))[:_MAX_NAMED]
        wanted = f"Revision {revision} of {model}" if revision else f"The model {model}"
        option = f"@{revision}" if revision and "/" in name else ""
        present = f" (there: {', '.join(there)})" if there and revision else ""
        raise UsageError(
            f"{wanted} is not in the cache of the hub{present}. Download it: merilo judge check local:{name}{option}."
        )
    return _checked(_Place(name, folder, fetched_folder(name), lock, folder.name), card, export_advice(model))


class _Place(NamedTuple):
    name: str
    folder: Path
    home: Path
    lock: Lock | None
    revision: str = ""


def _checked(place: _Place, card: Card, advice: str) -> FoundModel:
    """Return the model with its files, after comparing its labels with the card."""
    folder = place.folder
    found = {name: _file(folder, name) for name in (card.files.model, card.files.tokenizer)}
    model, tokenizer = found[card.files.model], found[card.files.tokenizer]
    if model is None or tokenizer is None:
        missing = card.files.model if model is None else card.files.tokenizer
        raise UsageError(f"{folder} has no {missing}. {advice}")
    config = read_config(folder)
    if config is not None and (problem := label_problem(card, config.labels)) is not None:
        raise UsageError(f"The card {card.name} does not fit {folder / 'config.json'}: {problem}.")
    revision = place.revision or (place.lock.revision if place.lock is not None else "")
    return FoundModel(place.name, card, folder, model, tokenizer, place.lock, revision, place.home)


def _file(folder: Path, name: str) -> Path | None:
    """Return a file of a model: where its card says, or as exports place it."""
    base = Path(name).name
    options = (folder / name, folder / base, folder / "onnx" / base)
    return next((path for path in options if path.is_file()), None)


def export_advice(model: str) -> str:
    """Return how to export a model to ONNX, as a sentence."""
    return (
        "To export the model: uvx --from optimum-onnx --with torch optimum-cli export onnx "
        f"--model {model or 'MODEL'} --task text-classification FOLDER."
    )
