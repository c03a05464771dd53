"""Files at addresses such as s3://bucket/data.jsonl, read through fsspec (extra `fsspec`) into a temporary directory.

Keys come from the environment or the configuration of the storage's own package, never from merilo. An address may hold
a password or a signature, so messages and file names have `redacted` forms only, and messages of storage packages,
which may quote the address, are not passed on.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.errors import DataError, MeriloError, RunError, UsageError
from merilo.lazy import optional_module

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,30})://", re.ASCII)
_IN_TEXT: Final = re.compile(
    r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9+.-]{1,30}):/{1,2}[^\s'\"<>`]*[^\s'\"<>`.,:;)]", re.ASCII
)
_SENSITIVE: Final = re.compile(r"sig|token|key|secret|cred|passw|auth", re.IGNORECASE)
"""Parts of the names of parameters that hold a secret."""
_SECRET: Final = "***"  # noqa: S105  what is shown instead of one
_LOCAL: Final = frozenset({"file", "local"})
_UNSAFE: Final = re.compile(r"[^\w.\- ]")
_BLOCK: Final = 1 << 20


def is_url(source: object) -> bool:
    """Return True for an address such as s3://bucket/data.jsonl, False for a path."""
    return isinstance(source, str) and _URL.match(source) is not None


def redacted(url: str) -> str:
    """Return an address without user name, password, query and fragment; any other text as it is."""
    start = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/{1,2}", url)
    if start is None:
        return url
    place, mark, _ = _parts(url[start.end() :])
    host, slash, path = place.partition("/")
    _, at, named = host.rpartition("@")
    return f"{start[0]}{_SECRET + at if at else ''}{named}{slash}{path}{f'{mark}{_SECRET}' if mark else ''}"


def without_secrets(text: str) -> str:
    """Return a text whose addresses have no user name, password or signature."""
    return _IN_TEXT.sub(lambda found: _without_secrets(found[0]), text)


def _without_secrets(url: str) -> str:
    place, _, query = _parts(url)
    host = place.partition(":")[2].lstrip("/").partition("/")[0]
    return redacted(url) if "@" in host or _SENSITIVE.search(query) else url


def _parts(url: str) -> tuple[str, str, str]:
    """Return the part before the query or fragment, the character that begins it, and the rest."""
    found = re.search(r"[?#]", url)
    return (url, "", "") if found is None else (url[: found.start()], found[0], url[found.end() :])


def fetched_file(url: str) -> Path:
    """Return a local copy of the data file at an address, with its name. Raises UsageError and DataError."""
    folder = _folder()
    path = folder / _name_of(url)
    if not _copy(url, path, DataError):
        raise DataError(f"No such file: {redacted(url)}. Check the address and your access to it.")
    return path


def fetched_files(url: str, names: Sequence[str]) -> Path:
    """Copy the files of these names that exist at an address; return their local directory.

    Its name is the last part of the address. Raises UsageError and RunError.
    """
    place, mark, query = _parts(url)
    path = _folder() / _name_of(place)
    path.mkdir()
    for name in names:
        _copy(f"{place.rstrip('/')}/{name}{mark}{query}", path / name, RunError)
    return path


def refuse_url(path: object) -> None:
    """Raise UsageError for an address at which a run would be written."""
    if is_url(path):
        raise UsageError(
            f"A run cannot be written to {redacted(str(path))}: its store is a database and needs a local directory. "
            "Write it there (--out DIRECTORY), then upload the finished directory with the storage's own tool."
        )


def _copy(url: str, path: Path, error: Callable[[str], MeriloError]) -> bool:
    """Copy a file; return False if there is none. Raises `error` without the text of the cause."""
    library = _library(url)
    try:
        with library.open(url, "rb") as source, path.open("wb") as out:
            shutil.copyfileobj(source, out, _BLOCK)
    except FileNotFoundError:
        path.unlink(missing_ok=True)
        return False
    except ImportError:
        scheme = url.partition(":")[0]
        raise UsageError(
            f"Reading {redacted(url)} needs the fsspec package for {scheme}://. Run: pip install 'fsspec[{scheme}]'"
        ) from None
    except Exception as cause:  # noqa: BLE001  each storage raises its own errors, whose texts may quote a signature
        status = getattr(cause, "status", None)
        why = f"{type(cause).__name__}{f' {status}' if isinstance(status, int) else ''}"
        raise error(f"{redacted(url)} cannot be read ({why}). Check the address and your access to it.") from None
    return True


def _library(url: str) -> Any:  # Any: fsspec has no types
    found = _URL.match(url)
    if found is None or found[1].lower() in _LOCAL or "::" in url:
        raise UsageError(
            f"{redacted(url)} is not an address that merilo reads. Name a path, or an address of one scheme."
        )
    return optional_module("fsspec", wanted_by=f"Reading {redacted(url)}", install="merilo[fsspec]")


def _name_of(url: str) -> str:
    """Return the last part of an address as a file name that is safe here. Raises UsageError if there is none."""
    name = _UNSAFE.sub("_", _parts(url)[0].rstrip("/").rpartition("/")[2])
    if not name.strip(". "):
        raise UsageError(f"{redacted(url)} names no file.")
    return name


def _folder() -> Path:
    """Return a new temporary directory, which is removed when this process ends."""
    path = Path(tempfile.mkdtemp(prefix="merilo-fetched-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
