"""Get a local judge ready: download its model from the Hugging Face hub, or draft its card.

::

    plan_fetch    name → ORG/NAME and revision → files and licence, which the user is asked about
    fetch         each file → the cache of the hub → compared with the size and digest that the hub reports
                  all files right → judge.lock, in one step

Without the lock a judge does not count as fetched, so an interrupted download leaves nothing that merilo would use.
Only files of harmless formats are downloaded, from a fixed list. huggingface_hub is imported when it is needed; tokens,
proxies, the address (`HF_ENDPOINT`) and the cache are its affair, and merilo stores no token.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from hashlib import sha1
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from merilo.data import check
from merilo.errors import UsageError
from merilo.judges.local.card import CARD_NAME, UNDECIDED, builtin_cards
from merilo.judges.local.draft import draft_card
from merilo.judges.local.find import (
    LOCK_NAME,
    Lock,
    card_for,
    digests,
    export_advice,
    fetched_folder,
    file_digest,
    find_model,
    hub_cache,
    read_lock,
)
from merilo.judging.json_types import as_object
from merilo.rendering.page import Page, Tone
from merilo.rendering.wording import count, size_text
from merilo.runs.publish import write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
    store(fetched_folder(plan.name) / LOCK_NAME, lock.model_dump_json(indent=1) + "\n")
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


def store(path: Path, text: str) -> None:
    """Write a file about a model in one step, so that a killed command leaves the old one or the new one.

    Raises UsageError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text)
    except OSError as error:
        raise UsageError(f"Cannot write {path} ({error.strerror}).") from error


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


# -- the hub --------------------------------------------------------------------------------------------

MISSING: Final = "A download needs the package huggingface_hub. Install it: pip install 'merilo[local]'"
UNKNOWN: Final = "unknown"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES: Final = 2**20
_MAX_SHOWN: Final = 200
_TIMEOUT_S: Final = 30.0


class HubFile(NamedTuple):
    """A file of a repository, as the hub describes it."""

    name: str
    """Its path in the repository, with `/` between folders."""
    size: int
    """In bytes."""
    sha256: str | None
    """Hex digits; None for a file that is not stored with Git LFS."""
    git_digest: str | None
    """The SHA-1 that Git gives the content, as hex digits."""


class HubModel(NamedTuple):
    """One revision of a repository, as the hub describes it."""

    model: str
    """ORG/NAME."""
    revision: str
    """The commit, 40 hex digits."""
    licence: str
    files: tuple[HubFile, ...]
    """The files whose size the hub reports."""


def describe(model: str, revision: str) -> HubModel:
    """Return what the hub says about a revision (a branch, a tag or a commit) of ORG/NAME.

    Raises UsageError if it cannot be read.
    """
    hub = _hub()
    try:
        info = hub.HfApi(endpoint=_endpoint()).model_info(
            model, revision=revision, files_metadata=True, timeout=_TIMEOUT_S
        )
    except Exception as error:  # noqa: BLE001  the HTTP client of the package depends on its version
        _raise(error, model, revision)
    commit = str(info.sha)
    if _COMMIT.fullmatch(commit) is None:
        raise UsageError(f"The hub names no commit for {model} ({revision}).")
    return HubModel(model, commit, _licence(info), tuple(_files(info)))


def download(model: str, revision: str, name: str) -> Path:
    """Download one file into the cache of the hub, unless it is there; return its path in the folder of the revision.

    An interrupted download is stored under another name and resumed by the next call. Raises UsageError.
    """
    hub = _hub()
    try:
        return Path(hub.hf_hub_download(model, name, revision=revision, cache_dir=hub_cache(), endpoint=_endpoint()))
    except Exception as error:  # noqa: BLE001  as above
        _raise(error, model, revision)


def difference(path: Path, expected: HubFile) -> str | None:
    """Return how a file differs from the description of the hub, as a phrase; None if it does not."""
    size = path.stat().st_size
    if size != expected.size:
        return f"it has {size:,} bytes instead of {expected.size:,}"
    if expected.sha256 is not None:
        return None if file_digest(path) == expected.sha256 else "its SHA-256 differs"
    if expected.git_digest is not None and len(expected.git_digest) == sha1(usedforsecurity=False).digest_size * 2:
        return None if _git_digest(path, size) == expected.git_digest else "its Git digest differs"
    return None


def remove(path: Path) -> None:
    """Remove a file of the cache: the link in the folder of the revision, and the content that it points to.

    Raises UsageError if it cannot be removed.
    """
    content = path.resolve()
    try:
        path.unlink(missing_ok=True)
        content.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"Cannot remove {path}, which was changed ({error.strerror}). Remove it yourself.") from error


def _git_digest(path: Path, size: int) -> str:
    digest = sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _endpoint() -> str | None:
    """Return the address of the hub that the user set; None for the usual one."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None


def _hub() -> Any:  # Any: the package is optional, and its types differ between versions
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when the package is imported
    try:
        return import_module("huggingface_hub")
    except ImportError:
        raise UsageError(f"{MISSING}.") from None


def _files(info: Any) -> Iterator[HubFile]:  # Any: as above
    for each in info.siblings or ():
        lfs = each.lfs
        digest = None if lfs is None else str(lfs["sha256"])
        size = each.size if lfs is None else lfs["size"]
        if isinstance(size, int) and size >= 0 and (digest is None or _SHA256.fullmatch(digest)):
            yield HubFile(str(each.rfilename), size, digest, each.blob_id if lfs is None else None)


def _licence(info: Any) -> str:  # Any: as above
    """Return the licence in the metadata of the model; `other` with the name that the authors gave it."""
    fields = as_object(info.card_data.to_dict() if info.card_data is not None else None) or {}
    found = fields.get("license")
    names = list(map(str, found)) if check.is_list(found) else [str(found)] if found else []
    names = names or [tag.removeprefix("license:") for tag in info.tags or () if tag.startswith("license:")]
    if names == ["other"] and fields.get("license_name"):
        names = [f"other ({fields['license_name']})"]
    return ", ".join(names) or UNKNOWN


def _raise(error: Exception, model: str, revision: str) -> NoReturn:
    """Raise the error of the hub as a sentence with advice."""
    if isinstance(error, UsageError):
        raise error
    known = {
        "GatedRepoError": f"{model} is gated: its authors ask for a consent. Give it on the page of the model, and set "
        "HF_TOKEN.",
        "RevisionNotFoundError": f"{model} has no revision {revision!r}.",
        "RepositoryNotFoundError": f"The hub has no model {model}, or it is private. Check the name; for a private "
        "model set HF_TOKEN.",
        "OfflineModeIsEnabled": "HF_HUB_OFFLINE is set, so nothing can be downloaded. Unset it.",
        "HFValidationError": f"{model!r} is not the name of a model; write ORG/NAME.",
    }
    kinds = {each.__name__ for each in type(error).__mro__}  # a gated repository is also one that is not found
    if message := next((text for name, text in known.items() if name in kinds), None):
        raise UsageError(message) from error
    lines, status = str(error).splitlines(), getattr(getattr(error, "response", None), "status_code", None)
    first = lines[0][:_MAX_SHOWN] if lines else type(error).__name__
    shown = f"HTTP {status}" if status is not None else f"{type(error).__name__}: {first}"
    raise UsageError(
        f"Cannot read {model} from the hub ({shown}). Repeat the command; finished files are reused."
    ) from error
