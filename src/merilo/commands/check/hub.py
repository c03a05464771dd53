"""The door to the Hugging Face hub: the only module that imports huggingface_hub, and only when it is called.

Tokens, proxies, the address (`HF_ENDPOINT`) and the cache are the affair of that package. merilo stores no token.
"""

from __future__ import annotations

import os
import re
from hashlib import sha1
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from merilo.data import check
from merilo.errors import UsageError
from merilo.judges.local.files import file_digest
from merilo.judges.local.find import hub_cache
from merilo.judging.json_types import as_object

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    kinds = {each.__name__ for each in type(error).__mro__}
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, UsageError):
        raise error
    if "GatedRepoError" in kinds:
        raise UsageError(
            f"{model} is gated: its authors ask for a consent. Give it on the page of the model, and set HF_TOKEN."
        ) from error
    if "RevisionNotFoundError" in kinds:
        raise UsageError(f"{model} has no revision {revision!r}.") from error
    if "RepositoryNotFoundError" in kinds:
        raise UsageError(
            f"The hub has no model {model}, or it is private. Check the name; for a private model set HF_TOKEN."
        ) from error
    if "OfflineModeIsEnabled" in kinds:
        raise UsageError("HF_HUB_OFFLINE is set, so nothing can be downloaded. Unset it.") from error
    if "HFValidationError" in kinds:
        raise UsageError(f"{model!r} is not the name of a model; write ORG/NAME.") from error
    lines = str(error).splitlines()
    first = lines[0][:_MAX_SHOWN] if lines else type(error).__name__
    shown = f"HTTP {status}" if status is not None else f"{type(error).__name__}: {first}"
    raise UsageError(
        f"Cannot read {model} from the hub ({shown}). Repeat the command; finished files are reused."
    ) from error
