"""Get a local judge ready: download its model from the Hugging Face hub, or draft its card.

::

    plan_fetch    name → ORG/NAME and revision → files and licence, which the user is asked about
    fetch         each file → the cache of the hub → compared with the size and digest that the hub reports
                  all files right → judge.lock, in one step

Without the lock a judge does not count as fetched, so an interrupted download leaves nothing that merilo would use.
Only files of harmless formats are downloaded, from a fixed list.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from merilo.commands.check.hub import UNKNOWN, HubFile, HubModel, describe, difference, download, remove
from merilo.errors import UsageError
from merilo.judges.local.card import CARD_NAME, UNDECIDED, builtin_cards
from merilo.judges.local.draft import draft_card
from merilo.judges.local.files import digests, file_digest
from merilo.judges.local.find import card_for, export_advice, fetched_folder, find_model
from merilo.judges.local.lock import LOCK_NAME, Lock, read_lock
from merilo.rendering.page import Page, Tone
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from merilo.judges.local.card import Card

ALLOWED: Final = ("*.onnx", "*.onnx_data", "*.onnx.data", "tokenizer.json", "config.json", "README.md", "LICENSE*")
"""Patterns of file names that are downloaded."""
_FORBIDDEN: Final = (".bin", ".ckpt", ".pt", ".pth", ".pkl", ".pickle", ".py", ".sh", ".so", ".dll", ".exe")
"""Suffixes of files that may contain code. They are never downloaded, whatever else their name matches."""
_FOLDER: Final = "onnx"
"""The folder in which exports are usually stored."""
_DATA: Final = (".onnx_data", ".onnx.data")
_MODEL: Final = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_NON_COMMERCIAL: Final = re.compile(r"(?:^|[^a-z])nc(?:$|[^a-z])|non-?commercial|research-only", re.IGNORECASE)
_ATTEMPTS: Final = 2
"""A file that is in the cache already and differs from the hub is downloaded once more."""
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")
_STEP: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Download:
    """The files to take from one revision of a repository."""

    name: str
    """What the user called the judge: the name of a card, or ORG/NAME."""
    source: HubModel
    files: tuple[HubFile, ...]
    card: Card | None
    """The card of the judge; None if the user has to write one."""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(each.size for each in self.files)

    @property
    def licence(self) -> str:
        """The licence of the hub and of the card; in capitals with a warning if one forbids commercial use."""
        hub, card = self.source.licence, UNKNOWN if self.card is None else self.card.licence
        text = f"{hub} (card: {card})" if UNKNOWN not in {hub, card} and hub.casefold() != card.casefold() else hub
        text = card if hub == UNKNOWN else text
        forbids = _NON_COMMERCIAL.search(f"{hub} {card}") is not None
        return f"{text.upper()}: NOT FOR COMMERCIAL USE" if forbids else text


def missing_model(spec: str) -> str | None:
    """Return the name of the model of the hub that `local:...` needs and that is not on this machine, else None."""
    text = spec.strip().removeprefix("local:")
    if not spec.strip().startswith("local:") or Path(text).expanduser().is_dir():
        return None
    try:
        digests(find_model(text))
    except UsageError:
        name = text.partition("@")[0]
        card = card_for(text)
        return text if _MODEL.fullmatch(name) or (card is not None and card.model) else None
    return None


def plan_fetch(text: str) -> Download:
    """Return the files to download for a card's name or ORG/NAME[@REVISION], as the hub describes them.

    Raises UsageError.
    """
    name, _, revision = text.partition("@")
    card = card_for(name)
    model = name if _MODEL.fullmatch(name) else card.model if card is not None else ""
    if not model:
        raise UsageError(
            f"No local judge {name!r}. Name a model of the hub (ORG/NAME) or: {', '.join(builtin_cards())}."
        )
    lock = read_lock(fetched_folder(name))
    locked = lock.revision if lock is not None and lock.model == model else None
    pinned = card.revision if card is not None and card.model == model else None
    return _chosen(name, describe(model, revision or locked or pinned or "main"), card)


def _chosen(name: str, source: HubModel, card: Card | None) -> Download:
    allowed = {each.name: each for each in source.files if is_allowed(each.name)}
    weights = _onnx_files(allowed, card)
    if not weights:
        raise UsageError(f"{source.model} has no .onnx file. {export_advice(source.model)}")
    tokenizer = _first(allowed, "tokenizer.json" if card is None else card.files.tokenizer)
    if tokenizer is None:
        raise UsageError(f"{source.model} has no tokenizer.json. {export_advice(source.model)}")
    texts = [each for each in allowed if each in {"config.json", "README.md"} or fnmatchcase(each, "LICENSE*")]
    return Download(name, source, tuple(allowed[each] for each in sorted({*weights, *texts, tokenizer})), card)


def is_allowed(name: str) -> bool:
    """Return True if a file may be downloaded: at the top or in `onnx/`, and of a format that contains no code."""
    path = PurePosixPath(name)
    return (
        path.parts in {(path.name,), (_FOLDER, path.name)}
        and name == path.as_posix()
        and "\\" not in name
        and name.isprintable()
        and not path.name.startswith(".")
        and path.suffix.casefold() not in _FORBIDDEN
        and any(fnmatchcase(path.name, pattern) for pattern in ALLOWED)
    )


def _onnx_files(allowed: Iterable[str], card: Card | None) -> list[str]:
    """Return the ONNX file of the card or the usual one, otherwise all, each with its external weights."""
    names = list(allowed)
    model = _first(names, "model.onnx" if card is None else card.files.model)
    models = [each for each in names if each.endswith(".onnx")] if model is None and card is None else [model]
    found = [each for each in models if each is not None]
    return [*found, *(data for each in found for data in _external(names, each))]


def _external(names: Sequence[str], model: str) -> list[str]:
    """Return the files with external weights of an ONNX file: those with its name, otherwise all in its folder."""
    folder = PurePosixPath(model).parent
    data = [each for each in names if each.endswith(_DATA) and PurePosixPath(each).parent == folder]
    stem = model.removesuffix(".onnx")
    own = [each for each in data if each.removesuffix(_DATA[0]).removesuffix(_DATA[1]) == stem]
    others = {each.removesuffix(".onnx") for each in names if each.endswith(".onnx")} - {stem}
    return own or [each for each in data if each.removesuffix(_DATA[0]).removesuffix(_DATA[1]) not in others]


def _first(names: Iterable[str], wanted: str) -> str | None:
    """Return a file: where the card says, at the top, or in `onnx/`; None if it is in none of these places."""
    base = PurePosixPath(wanted).name
    there = set(names)
    return next((each for each in (wanted, base, f"{_FOLDER}/{base}") if each in there), None)


def fetch(plan: Download, advance: Callable[[str], None] = lambda _: None) -> Path:
    """Download the files, compare them with the hub, and write the lock; return the folder of the files.

    `advance` is called with the name of each file before it is downloaded. Raises UsageError.
    """
    found: dict[str, str] = {}
    paths: list[Path] = []
    for each in plan.files:
        advance(each.name)
        path = _downloaded(plan, each)
        paths.append(path)
        found[each.name] = each.sha256 or _digest(path)
    today = datetime.now(UTC).date().isoformat()
    source = plan.source
    lock = Lock(model=source.model, revision=source.revision, licence=source.licence, date=today, files=found)
    _write(lock, fetched_folder(plan.name))
    return paths[0].parents[plan.files[0].name.count("/")]


def _downloaded(plan: Download, file: HubFile) -> Path:
    """Return the path of a file that agrees with the hub. Raises UsageError if two downloads do not."""
    problem: str | None = None
    for _ in range(_ATTEMPTS):
        path = download(plan.source.model, plan.source.revision, file.name)
        problem = difference(path, file)
        if problem is None:
            return path
        remove(path)
    raise UsageError(
        f"{file.name} of {plan.source.model} differs from the description of the hub: {problem}. "
        "It was removed, and the judge is not installed."
    )


def _digest(path: Path) -> str:
    try:
        return file_digest(path)
    except OSError as error:
        raise UsageError(f"Cannot read {path} ({error.strerror}).") from error


def _write(lock: Lock, home: Path) -> None:
    """Write the lock in one step, so that a killed command leaves the old one or the new one."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=home) as folder:
            lock.write(Path(folder))
            Path(folder, LOCK_NAME).replace(home / LOCK_NAME)
    except OSError as error:
        raise UsageError(f"Cannot write {home / LOCK_NAME} ({error.strerror}).") from error


def plan_page(plan: Download, width: int) -> Page:
    """Return what a download would take, for the user to decide."""
    page = Page(width)
    page.text(
        f"local:{plan.name} is not on this machine. From the Hugging Face hub: {plan.source.model}", tone=Tone.STRONG
    )
    page.entries(
        [
            ("revision", plan.source.revision),
            ("licence", plan.licence),
            ("card", "ships with merilo or is yours" if plan.card is not None else "none; a draft is written"),
            ("files", f"{count(len(plan.files), 'file')}, {size_text(plan.size)}"),
            *(("", f"{each.name}, {size_text(each.size)}") for each in plan.files),
        ]
    )
    return page


def size_text(size: int) -> str:
    """Return a number of bytes in a readable unit."""
    value, unit = float(size), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{size:,} {_UNITS[0]}" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"


def write_draft(folder: Path, path: Path) -> int:
    """Write the draft of a card for the model in `folder`; return the number of places that the user has to fill in.

    Raises UsageError if the folder has no `config.json`, or the file cannot be written.
    """
    text = draft_card(folder)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"Cannot write {path} ({error.strerror}).") from error
    return text.count(f'"{UNDECIDED}"') - 1  # the first line names the sign


def folder_without_card(spec: str) -> Path | None:
    """Return the folder that `local:FOLDER` names if it has no card, else None."""
    folder = Path(spec.strip().removeprefix("local:")).expanduser()
    is_folder = spec.strip().startswith("local:") and folder.is_dir() and not (folder / CARD_NAME).exists()
    return folder if is_folder and card_for(str(folder)) is None else None
