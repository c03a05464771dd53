"""Settings of a project: `merilo.toml`, or `[tool.merilo]` in `pyproject.toml`, for the command line.

The file may come from someone else's checkout. So it cannot name output files, and a file that another user could have
written is refused. Whatever sends data, costs money or runs code (`ProjectFile.uses`) needs the user's consent to this
content of the file and of the files that it names (`merilo runs config --allow`). Addresses of this machine need it
too: a local port can forward what it receives. An address in the file without a key variable is sent no key.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from merilo.commands.keywords import wrong_type
from merilo.commands.option import Flag, flag_name
from merilo.data import check
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


NAME: Final = "merilo.toml"
PYPROJECT: Final = "pyproject.toml"
SUITE: Final = "suite"
"""The only setting besides the options of an evaluation: the suite file of `merilo gate`."""
NO_KEY: Final = "MERILO_NO_KEY"
"""The key variable of an address in a project file that names none. It is not set, so no key is sent."""
_JUDGE: Final = "judge"
_ADDRESS: Final = "judge.base_url"
_KEY: Final = "judge.api_key_env"
_OF_JUDGE: Final = (_ADDRESS, _KEY, "judge.judged")
_PRICES: Final = "limits.prices"
_CONSENT: Final = {
    _ADDRESS: "the server {}",
    _KEY: "the key in {}",
    "draws": "{} draws of each question",
    "limits.unanswered": "the cost of unanswered requests as {}",
    _PRICES: "the prices {}",
}
"""Settings other than judges that need consent, in words. The last three change what a run costs or is charged."""
_USUAL: Final = (1, "charged")
"""Values of these settings that need no consent: one draw, and requests that are charged."""
_NO_CONSENT: Final = re.compile(r"(?:[\w\s,-]+=)?\s*(?:embedded|(?:local|scripted):[^=>]*)")
"""Judges that send nothing and cost nothing. A plug-in or a provider, also one on this machine, is none of them."""
_SHOWN: Final = 200
"""Maximum length of a used thing in a message."""
_CODE: Final = re.compile(r"(?:^|(?<=[:=>]))[^:=>]+?\.py(?=:)")
"""The path of a code file within a setting; a named judge has more text around it."""


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A project file that was read and checked."""

    path: Path
    settings: Mapping[str, Any]  # Any: the values that the options take
    """Option of an evaluation, or `suite` → its value. Paths are relative to the current directory."""
    digest: str
    """SHA-256 of the settings, code and prices that the file names; the user's consent is for this content."""

    @property
    def allowed(self) -> bool:
        """True if the user has allowed this content of this file, or if it needs no consent."""
        return not uses(self.settings) or _allowed().get(str(self.path)) == self.digest

    @property
    def name(self) -> str:
        """The file's name for messages."""
        return self.path.name

    def allow(self) -> None:
        """Record that the user trusts this content of this file."""
        path = _allowed_path()
        text = json.dumps({**_allowed(), str(self.path): self.digest}, indent=2, sort_keys=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.unlink(missing_ok=True)
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(text + "\n")
            part.replace(path)
        except OSError as error:
            raise UsageError(f"Cannot write {path} ({error.strerror}).") from error

    def options(self, wanted: Collection[str], given: Collection[str]) -> dict[str, Any]:  # Any: as above
        """Return the file's values of the wanted options, except those given on the command line.

        A judge on the command line comes without the address, key and other settings of the file's judge.

        Raises UsageError if these values need a consent that the user has not given.
        """
        found = {name: value for name, value in self.settings.items() if name in wanted and name not in given}
        if _JUDGE in given or _ADDRESS in given:
            found = {name: value for name, value in found.items() if name not in _OF_JUDGE}
        if _ADDRESS in found and _KEY in given:
            raise UsageError(f"The base_url in {self.name} gets no key from the command line; add --base-url.")
        if (used := uses(found)) and not self.allowed:
            raise UsageError(
                f"{self.path} needs your consent to use {'; '.join(used)}. Read the file. If you trust it, run: "
                "merilo runs config --allow. To ignore it, add --no-config."
            )
        if _ADDRESS in found:
            found.setdefault(_KEY, NO_KEY)
        return found


def uses(settings: Mapping[str, Any]) -> list[str]:  # Any: values of options
    """Return what the settings use that sends data, costs money or runs code; each needs the user's consent."""
    found: list[str] = []
    for name, value in settings.items():
        texts = [text for text in (value if check.is_list(value) else [value]) if isinstance(text, str)]
        for text in texts:
            if ".py:" in text:  # anywhere: a named judge may contain a file too
                found.append(f"the code in {text}")
            elif name == _JUDGE and _NO_CONSENT.fullmatch(text) is None:
                found.append(f"the judge {text}")
        if name in _CONSENT and value not in _USUAL:
            found.append(_CONSENT[name].format("of the file" if check.is_list(value) else value))
    return [text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ... ({len(text):,} characters)" for text in found]


def project_file(flags: Mapping[str, Flag], start: Path | None = None) -> ProjectFile | None:
    """Return the nearest project file in the current directory and its parents; None if there is none.

    `flags` are those of an evaluation's options. Raises UsageError for a file that is unreadable or holds an unknown
    setting or a value of the wrong type.
    """
    found = _nearest(Path.cwd() if start is None else start)
    return None if found is None else _checked(*found, flags)


def project_suite() -> tuple[str, str] | None:
    """Return the name of the nearest project file and the suite that it names; None if there is none.

    Raises UsageError for an unreadable file or a suite that is not a text. Other settings are not checked.
    """
    path, table = _nearest(Path.cwd()) or (Path(), {})
    if (suite := table.get(SUITE)) is None:
        return None
    if not isinstance(suite, str):
        raise UsageError(f"{path}: {SUITE} must be a text, got {suite!r}.")
    return path.name, str(path.parent / suite)


def _nearest(folder: Path) -> tuple[Path, Mapping[str, object]] | None:
    return next((found for place in (folder, *folder.parents) if (found := _table_in(place)) is not None), None)


def _table_in(folder: Path) -> tuple[Path, Mapping[str, object]] | None:
    from merilo.data.config_files import MAX_BYTES, read_document

    own, shared = folder / NAME, folder / PYPROJECT
    if own.is_file():
        _refuse_if_unsafe(own)
        return own, read_document(own)
    found = b""
    with suppress(OSError):
        if shared.is_file():
            with shared.open("rb") as file:
                found = file.read(MAX_BYTES)
    if b"tool.merilo" not in found:
        return None
    tool = read_document(shared).get("tool")
    table = tool.get("merilo") if check.is_record(tool) else None
    if not check.is_record(table):
        return None
    _refuse_if_unsafe(shared)
    return shared, table


def _refuse_if_unsafe(path: Path) -> None:
    """Raise UsageError for a file that another user of the machine could have written."""
    if problem := _unsafe(path) or _unsafe(path.parent):
        raise UsageError(f"{path}: {problem}, so merilo does not read it. To ignore it, add --no-config.")


def _unsafe(path: Path) -> str:
    """Return how another user could change a file or folder; empty if none could.

    root is trusted, since it could change merilo itself; under sudo, the user who called it is trusted too. Windows
    has no such owners, so only the consent protects there.
    """
    if sys.platform == "win32":
        return ""
    user = os.geteuid()
    trusted = {0, user}
    if user == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        trusted.add(int(os.environ["SUDO_UID"]))
    try:
        link, found = path.lstat(), path.stat()
    except OSError as error:
        return f"its owner is not known ({error.strerror})"
    what = "it is" if path.is_file() else "its directory is"
    for owner in (link.st_uid, found.st_uid):
        if owner not in trusted:
            return f"{what} owned by another user (uid {owner})"
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        return f"{what} writable by all users (chmod o-w)"
    if path.is_file() and found.st_mode & stat.S_IWGRP and found.st_gid != os.getegid():
        return f"{what} writable by a group (chmod g-w)"
    return ""


def _checked(path: Path, table: Mapping[str, object], flags: Mapping[str, Flag]) -> ProjectFile:
    known = {name: flag for name, flag in flags.items() if flag.in_project_file}
    settings: dict[str, Any] = {}  # Any: checked below
    for name, value in _flat(table, flags):
        if name != SUITE and name not in known:
            raise UsageError(f"{path}: unknown setting {name!r}. {_advice(name, flags)}")
        flag = known.get(name)
        if problem := wrong_type(_TYPES.get(name) or ("str" if flag is None else flag.type.__name__), value):
            raise UsageError(f"{path}: {name} must be {problem}, got {value!r}.")
        settings[name] = _relative(name, value, path.parent)
    return ProjectFile(path, settings, _digest(table, settings))


def _flat(table: Mapping[str, object], flags: Mapping[str, Flag]) -> Iterator[tuple[str, object]]:
    """Yield option and value; those in a table such as [limits] as `limits.max_cost_usd`."""
    parts = {name.partition(".")[0] for name in flags if "." in name}
    for name, value in table.items():
        if name in parts and check.is_record(value):
            yield from ((_JUDGE if inner == "spec" else f"{name}.{inner}", each) for inner, each in value.items())
        else:
            yield name, value


def _advice(name: str, flags: Mapping[str, Flag]) -> str:
    """Return where an unknown setting belongs, or the name that it resembles."""
    known = [*(option for option, flag in flags.items() if flag.in_project_file), SUITE]
    if name in flags:
        return f"It belongs on the command line ({flag_name(name, flags[name])})."
    within = next((option for option in known if option.endswith(f".{name}")), None)
    if within is not None:
        return f"It belongs under [{within.partition('.')[0]}]."
    if name == f"{_JUDGE}.model":
        return "Did you mean 'judge.spec'?"
    flag = "--" + name.rpartition(".")[2].replace("_", "-")
    named = [option for option in known if option in flags and flag_name(option, flags[option]) == flag]
    close = named or get_close_matches(name, known, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Settings: {', '.join(sorted(known))}."


def _digest(table: Mapping[str, object], settings: Mapping[str, object]) -> str:
    """Return a digest of the settings and of the content of the code files and price table that they name.

    Raises UsageError for one of these that another user could have written.
    """
    digest = hashlib.sha256(json.dumps(table, sort_keys=True, ensure_ascii=False, default=str).encode())
    for name, value in settings.items():
        for text in value if check.is_list(value) else [value]:
            for path in filter(isfile, _files_in(text, name) if isinstance(text, str) else ()):
                _refuse_if_unsafe(Path(path))
                digest.update(hashlib.sha256(Path(path).read_bytes()).digest())
    return digest.hexdigest()


def _files_in(text: str, setting: str) -> list[str]:
    """Return the paths of a price table, or of the files that run for a metric or a judge.

    They are read as a metric and as a judge are, with and without `NAME=`, since a path may contain any of the signs.
    """
    from merilo.plugins import names_file, split_file

    if setting == _PRICES:
        return [text]
    specs = {spec.strip() for spec in (text, text.partition("=")[2])}
    named = {each for spec in specs for each in (spec, split_file(spec)[0]) if names_file(each)}
    return sorted({each.rpartition(":")[0] for each in named})


_TYPES: Final = {
    "metrics": "str | list[str]",
    _JUDGE: "str | list[str]",
    "mapping": "Mapping[str, str]",
    _PRICES: "prices",
}
"""Option → its type in the file, if that is not its flag's."""


def _relative(name: str, value: object, folder: Path) -> object:
    """Return the value with the paths that it names relative to the project file's folder."""
    if check.is_list(value) and name != _PRICES:
        return [_relative(name, each, folder) for each in value]
    if not isinstance(value, str):
        return value
    if name in {_PRICES, SUITE}:
        return str(folder / value)
    return _CODE.sub(lambda code: str(folder / code[0].strip()), value)


def _allowed_path() -> Path:
    return Path(typer.get_app_dir("merilo"), "allowed.json")


def _allowed() -> dict[str, str]:
    """Return path → digest of the allowed files; empty if there are none, or if another user could have listed them."""
    try:
        if _unsafe(_allowed_path()):
            return {}
        found = json.loads(_allowed_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {path: str(digest) for path, digest in found.items()} if check.is_record(found) else {}
