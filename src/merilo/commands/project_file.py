"""Settings of a project: `merilo.toml`, or `[tool.merilo]` in `pyproject.toml`, for the command line.

The file may come from someone else's checkout, so it cannot name output files, and it is not trusted with keys or code.
A key that the file names is used, and code that it names runs, only after the user has allowed this content of the file
and of the code (`merilo runs config --allow`). An address in the file without a key variable is sent no key.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.data import check
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from merilo.commands.option import Flag

NAME: Final = "merilo.toml"
PYPROJECT: Final = "pyproject.toml"
SUITE: Final = "suite"
"""The only setting besides the options of an evaluation: the suite file of `merilo gate`."""
NO_KEY: Final = "MERILO_NO_KEY"
"""The key variable of an address in a project file that names none. It is not set, so no key is sent."""
_EMBEDDER: Final = "embedder_"
_JUDGE: Final = ("base_url", "api_key_env", "judged")
"""Settings that belong to the file's judge."""
_ADDRESSES: Final = tuple((f"{whose}base_url", f"{whose}api_key_env") for whose in ("", _EMBEDDER))
_CODE: Final = re.compile(r"(?:^|(?<=[:=>]))[^:=>]+?\.py(?=:)")
"""The path of a code file within a setting; a named judge has more text around it."""


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A project file that was read and checked."""

    path: Path
    settings: Mapping[str, Any]  # Any: the values that the options take
    """Option of an evaluation, or `suite` → its value. Paths are relative to the current directory."""
    digest: str
    """SHA-256 of the settings and of the code files that they name; the user's permission is for this content."""

    @property
    def allowed(self) -> bool:
        """True if the user has allowed this content of this file."""
        return _allowed().get(str(self.path)) == self.digest

    @property
    def name(self) -> str:
        """The file's name for messages."""
        return self.path.name

    def allow(self) -> None:
        """Record that the user trusts this content of this file."""
        path = _allowed_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**_allowed(), str(self.path): self.digest}, indent=2, sort_keys=True)
        part = path.with_suffix(".part")
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(path)

    def needs_permission(self) -> bool:
        """True if the file names code or the environment variable of a key."""
        return any(key in self.settings for _, key in _ADDRESSES) or any(map(_names_code, self.settings.values()))

    def options(self, wanted: Collection[str], given: Collection[str]) -> dict[str, Any]:  # Any: as above
        """Return the file's values of the wanted options, except those given on the command line.

        A judge on the command line comes without the address, key and other settings of the file's judge.

        Raises UsageError if the file needs a permission that it does not have.
        """
        found = {name: value for name, value in self.settings.items() if name in wanted and name not in given}
        if "judge" in given or "base_url" in given:
            found = {name: value for name, value in found.items() if name not in _JUDGE}
        if "embedder" in given or f"{_EMBEDDER}base_url" in given:
            found = {name: value for name, value in found.items() if not name.startswith(_EMBEDDER)}
        if any(map(_names_code, found.values())) and not self.allowed:
            raise UsageError(f"{self.name} names a file with code. {self._advice}")
        for address, key in _ADDRESSES:
            if address in found and key in given:
                flag = "--" + address.replace("_", "-")
                raise UsageError(f"The {address} in {self.name} gets no key from the command line; add {flag}.")
            if key in found and not self.allowed:
                server = found.get(address, "the judge's server")
                raise UsageError(f"{self.name} sends the key in {found[key]} to {server}. {self._advice}")
            if address in found:
                found.setdefault(key, NO_KEY)
        return found

    @property
    def _advice(self) -> str:
        return "Read the file. If you trust it, run: merilo runs config --allow. To ignore it, add --no-config."


def project_file(flags: Mapping[str, Flag], start: Path | None = None) -> ProjectFile | None:
    """Return the nearest project file in the current directory and its parents; None if there is none.

    `flags` are those of an evaluation's options. Raises UsageError for a file that is unreadable or holds an unknown
    setting or a value of the wrong type.
    """
    folder = Path.cwd() if start is None else start
    for place in (folder, *folder.parents):
        table = _table_in(place)
        if table is not None:
            path, found = table
            return _checked(path, found, flags)
    return None


def project_suite() -> tuple[str, str] | None:
    """Return the name of the nearest project file and the suite that it names; None if there is none.

    Raises UsageError for an unreadable file or a suite that is not a text. Other settings are not checked.
    """
    for place in (Path.cwd(), *Path.cwd().parents):
        table = _table_in(place)
        if table is not None:
            path, found = table
            suite = found.get(SUITE)
            if suite is not None and not isinstance(suite, str):
                raise UsageError(f"{path}: {SUITE} must be a text, got {suite!r}.")
            return None if suite is None else (path.name, str(path.parent / suite))
    return None


def _table_in(folder: Path) -> tuple[Path, Mapping[str, object]] | None:
    from merilo.data.config_files import MAX_BYTES, read_document

    own, shared = folder / NAME, folder / PYPROJECT
    if own.is_file():
        return own, read_document(own)
    if not shared.is_file():
        return None
    try:
        with shared.open("rb") as file:
            if b"tool.merilo" not in file.read(MAX_BYTES):
                return None
    except OSError:
        return None
    tool = read_document(shared).get("tool")
    table = tool.get("merilo") if check.is_record(tool) else None
    return (shared, table) if check.is_record(table) else None


def _checked(path: Path, table: Mapping[str, object], flags: Mapping[str, Flag]) -> ProjectFile:
    known = {name: flag for name, flag in flags.items() if flag.in_project_file}
    settings: dict[str, Any] = {}  # Any: checked below
    for name, value in table.items():
        if name != SUITE and name not in known:
            close = get_close_matches(name, [*known, SUITE], n=1)
            if name in flags:
                advice = f"It belongs on the command line ({flags[name].name or '--' + name.replace('_', '-')})."
            else:
                advice = f"Did you mean {close[0]!r}?" if close else f"Settings: {', '.join([*sorted(known), SUITE])}."
            raise UsageError(f"{path}: unknown setting {name!r}. {advice}")
        problem = _wrong_type(name, value, known.get(name))
        if problem:
            raise UsageError(f"{path}: {name} must be {problem}, got {value!r}.")
        settings[name] = _relative(name, value, path.parent)
    return ProjectFile(path, settings, _digest(table, settings))


def _digest(table: Mapping[str, object], settings: Mapping[str, object]) -> str:
    """Return a digest of the settings and of the content of the code files that they name."""
    digest = hashlib.sha256(json.dumps(table, sort_keys=True, ensure_ascii=False, default=str).encode())
    for value in settings.values():
        for text in value if check.is_list(value) else [value]:
            for path in sorted(_code_files(text) if isinstance(text, str) else ()):
                if isfile(path):  # noqa: PTH113  Path.is_file raises OSError for a long name
                    digest.update(hashlib.sha256(Path(path).read_bytes()).digest())
    return digest.hexdigest()


def _code_files(text: str) -> set[str]:
    """Return the paths of the files that run for a metric or a judge.

    They are read as a metric and as a judge are, with and without `NAME=`, since a path may contain any of the signs.
    """
    from merilo.plugins import names_file, split_file

    specs = {spec.strip() for spec in (text, text.partition("=")[2])}
    named = {each for spec in specs for each in (spec, split_file(spec)[0]) if names_file(each)}
    return {each.rpartition(":")[0] for each in named}


def _wrong_type(name: str, value: object, flag: Flag | None) -> str:
    """Return the expected type in words if the value has another one, otherwise an empty text."""
    expected, test = _TYPES.get(name) or _TYPES_OF_FLAGS[str if flag is None else flag.type]
    return "" if test(value) else expected


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return _is_text(value) or (check.is_list(value) and bool(value) and all(map(_is_text, value)))


def _is_text_table(value: object) -> bool:
    return check.is_mapping(value) and all(map(_is_text, value.values()))


def _is_prices(value: object) -> bool:
    return _is_text(value) or (check.is_list(value) and all(map(check.is_mapping, value)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "metrics": ("a text or a list of texts", _is_texts),
    "judge": ("a text or a list of texts", _is_texts),
    "mapping": ("a table of texts", _is_text_table),
    "prices": ("the path of a file or a list of tables", _is_prices),
}
_TYPES_OF_FLAGS: Final[Mapping[type, tuple[str, Callable[[object], bool]]]] = {
    str: ("a text", _is_text),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    float: ("a number", _is_number),
}


def _relative(name: str, value: object, folder: Path) -> object:
    """Return the value with the paths that it names relative to the project file's folder."""
    if check.is_list(value) and name != "prices":
        return [_relative(name, each, folder) for each in value]
    if not isinstance(value, str):
        return value
    if name in {"prices", SUITE}:
        return str(folder / value)
    return _CODE.sub(lambda code: str(folder / code[0].strip()), value)


def _names_code(value: object) -> bool:
    texts = value if check.is_list(value) else [value]
    # Anywhere in the text: a named judge may contain a file too.
    return any(isinstance(text, str) and ".py:" in text for text in texts)


def _allowed_path() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("APPDATA", Path.home() / "AppData" / "Roaming"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "merilo" / "allowed.json"


def _allowed() -> dict[str, str]:
    """Return path → digest of the allowed files; empty if there are none or the list is unreadable."""
    try:
        found = json.loads(_allowed_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {path: str(digest) for path, digest in found.items()} if check.is_record(found) else {}
