"""Small configuration files (YAML, TOML or JSON) as plain objects; errors name file and line."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from merilo.data import check
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping
    from os import PathLike

    from pydantic import BaseModel
    from yaml import MappingNode, SafeLoader

M = TypeVar("M", bound="BaseModel")

MAX_BYTES: Final = 2**20
_MAX_YAML: Final = 2**17
"""Characters of YAML, which is read a hundred times more slowly than the other forms."""
MAX_PROBLEMS: Final = 5
"""Maximum number of problems of one file in a message."""
_SHOWN: Final = 200
_MAX_DOTS: Final = 500
_MAX_MERGED: Final = 10_000
_PLACES: Final = {
    "cache": ("XDG_CACHE_HOME", ".cache", "Caches"),
    "data": ("XDG_DATA_HOME", ".local/share", "Application Support"),
}
_FORMS: Final = ".yaml, .yml, .toml or .json"


def user_directory(kind: str) -> Path:
    """Return merilo's directory for the user's `cache` or `data`, as the system places it."""
    xdg, default, library = _PLACES[kind]
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / library
    else:
        base = Path(os.environ.get(xdg) or Path.home() / default)
    return base / "merilo"


def read_document(source: str | PathLike[str]) -> Mapping[str, object]:
    """Return the object in a file, as text keys and plain values. Raises UsageError that names file and line."""
    path = Path(source)
    text = _text(path)
    suffix = path.suffix.lower()
    if suffix not in _PARSERS:
        raise UsageError(f"{path.name}: expected a file name with {_FORMS}, got {suffix or 'no suffix'!r}.")
    name, parse = _PARSERS[suffix]
    try:
        value = parse(text)
    except ValueError as error:  # also a date such as 2024-13-40, or a number of thousands of digits
        line = f", line {error.line}" if isinstance(error, _FaultInLine) else ""
        raise UsageError(f"{path}{line}: not valid {name} ({error}).") from error
    except RecursionError:
        raise UsageError(f"{path.name} is nested too deeply.") from None
    if not check.is_record(value):
        raise UsageError(f"{path.name} must contain one object with text keys, got {check.shown(value)}.")
    return value


def validated(make: type[M], fields: Mapping[str, object], source: str) -> M:
    """Return the model with the fields of a file. Raises UsageError that starts with `source`."""
    from pydantic import ValidationError

    try:
        return make.model_validate(fields)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        shown = [_problem(".".join(map(str, each["loc"])), each["msg"]) for each in problems[:MAX_PROBLEMS]]
        more = f" (and {len(problems) - MAX_PROBLEMS} more)" if len(problems) > MAX_PROBLEMS else ""
        raise UsageError(f"{source}: {'; '.join(shown)}{more}.") from None


def _problem(place: str, message: str) -> str:
    text = message.removeprefix("Value error, ").removesuffix(".")
    if text == "Extra inputs are not permitted":
        text = "no such key"
    return " ".join(f"{place[:_SHOWN]}: {text}".split()) if place else text  # a key may be long or have line breaks


def _text(path: Path) -> str:
    try:
        if path.is_fifo():  # reading would wait for a writer
            raise UsageError(f"{path} is a pipe, not a file.")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)  # a link may lead to a device without an end
        if len(content) > MAX_BYTES:
            raise UsageError(f"{path.name} must be at most {MAX_BYTES:,} bytes long.")
        text = content.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError(f"No such file: {path}.") from error
    except OSError as error:
        raise UsageError(f"Cannot read {path} ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name} is not UTF-8 (byte {error.start + 1}); save it as UTF-8.") from error
    return text


class _FaultInLine(ValueError):
    """A fault of a text with its line."""

    def __init__(self, fault: str, line: int) -> None:
        super().__init__(fault)
        self.line = line


def _json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=check.without_repeated_keys)
    except json.JSONDecodeError as error:
        raise _FaultInLine(error.msg, error.lineno) from error


def _toml(text: str) -> object:
    if any(line.count(".") > _MAX_DOTS for line in text.splitlines()):
        raise RecursionError  # tomllib would take minutes for a key with this many parts
    return tomllib.loads(text)


def _yaml(text: str) -> object:
    """Return the value of a YAML text, read by the safe loader: no Python objects and no duplicate keys."""
    import yaml

    if len(text) > _MAX_YAML:
        raise ValueError(f"more than {_MAX_YAML:,} characters; use .toml or .json")
    try:
        return yaml.load(text, Loader=_loader())  # noqa: S506  a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise ValueError(error.problem) if mark is None else _FaultInLine(error.problem or "", mark.line + 1) from error
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _loader() -> type[SafeLoader]:
    import yaml

    class NoKeyTwice(yaml.SafeLoader):
        """A safe loader that rejects duplicate keys; PyYAML itself silently uses the last one."""

        def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002  PyYAML's own signature
            seen: set[str] = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        problem = f"duplicate key {key.value!r}"
                        raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                    seen.add(key.value)
            return super().construct_mapping(node, deep=deep)

        def flatten_mapping(self, node: MappingNode) -> None:
            """Merge keys with a limit: a few merges of merges could create millions of keys."""
            super().flatten_mapping(node)
            if len(node.value) > _MAX_MERGED:
                raise yaml.MarkedYAMLError(problem="too many keys are merged", problem_mark=node.start_mark)

    return NoKeyTwice


_PARSERS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    ".yaml": ("YAML", _yaml),
    ".yml": ("YAML", _yaml),
    ".toml": ("TOML", _toml),
    ".json": ("JSON", _json),
}
