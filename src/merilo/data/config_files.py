"""Small configuration files (YAML, TOML or JSON) as plain objects; errors name file and line."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.data import check
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from os import PathLike

    from yaml import MappingNode, SafeLoader

MAX_BYTES: Final = 2**20
_MAX_DOTS: Final = 500
_MAX_MERGED: Final = 10_000
_FORMS: Final = ".yaml, .yml, .toml or .json"


def read_document(source: str | PathLike[str]) -> Mapping[str, object]:
    """Return the object in a file, as text keys and plain values. Raises UsageError that names file and line."""
    path = Path(source)
    text = _text(path)
    match path.suffix.lower():
        case ".yaml" | ".yml":
            value = _yaml(text, path.name)
        case ".toml":
            value = _toml(text, path.name)
        case ".json":
            value = _json(text, path.name)
        case suffix:
            raise UsageError(f"{path.name}: expected a file name with {_FORMS}, got {suffix or 'no suffix'!r}.")
    if not check.is_record(value):
        raise UsageError(f"{path.name} must contain one object with text keys, got {check.shown(value)}.")
    return value


def _text(path: Path) -> str:
    try:
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


def _json(text: str, name: str) -> object:
    try:
        value: object = json.loads(text, object_pairs_hook=_no_key_twice)
    except json.JSONDecodeError as error:
        raise UsageError(f"{name}, line {error.lineno}: not valid JSON ({error.msg}).") from error
    except ValueError as error:  # a duplicate key, or a number of thousands of digits
        raise UsageError(f"{name}: not valid JSON ({error}).") from error
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply.") from None
    return value


def _no_key_twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"duplicate key {next(name for name in names if names.count(name) > 1)!r}")
    return fields


def _toml(text: str, name: str) -> object:
    if any(line.split("=", 1)[0].count(".") > _MAX_DOTS for line in text.splitlines()):
        raise UsageError(f"{name} is nested too deeply.")  # tomllib would take minutes for a key with this many parts
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        raise UsageError(f"{name}: not valid TOML ({error}).") from error
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply.") from None


def _yaml(text: str, name: str) -> object:
    """Return the value of a YAML text, read by the safe loader: no Python objects and no duplicate keys."""
    import yaml

    try:
        value: object = yaml.load(text, Loader=_loader())  # noqa: S506  a safe loader
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
        raise UsageError(f"{name}{line}: not valid YAML ({error.problem}).") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2024-13-40
        raise UsageError(f"{name}: not valid YAML ({error}).") from error
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply.") from None
    return value


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
