"""Golden cases as they stand in their files: read, held to their form, nothing interpreted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

VENDORED: Final = Path(__file__).parent / "golden"

ASSERTED: Final = frozenset(
    {"expected_score", "expected_error", "expected_absent", "expected_success", "expected_interval"}
)
"""What a case may expect; another field of this form would be a claim that nobody checks."""


class Level(StrEnum):
    """What a case goes through."""

    SAMPLE = "sample"
    AGGREGATE = "aggregate"
    FUNCTION = "function"
    TABLES = "tables"


@dataclass(frozen=True)
class Case:
    """One golden case; `raw` is the whole object, with what is for information only."""

    file: str
    id: str
    system: str
    metric: str
    version: str
    level: Level
    inputs: Mapping[str, Any]
    outputs: Any
    config: Mapping[str, Any]
    raw: Mapping[str, Any]

    @property
    def expects_error(self) -> bool:
        """True where the published code raises."""
        return self.raw.get("expected_error") is not None


@dataclass(frozen=True)
class Unreadable:
    """A file or an item that is no case, and why; its test fails with the reason."""

    id: str
    reason: str


def read_folder(folder: Path) -> tuple[Case | Unreadable, ...]:
    """Every case of every JSON file in a folder, in the order of the files."""
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not files:
        return (Unreadable(str(folder), f"{folder} holds no JSON file."),)
    return tuple(found for path in files for found in read_file(path))


def read_file(path: Path) -> tuple[Case | Unreadable, ...]:
    """Every case of a JSON file."""
    try:
        items = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return (Unreadable(path.name, f"{path} cannot be read: {error}"),)
    if not isinstance(items, list) or not items:
        return (Unreadable(path.name, f"{path} holds no list of cases."),)
    return tuple(_case(path.name, place, item) for place, item in enumerate(items))


def _case(file: str, place: int, item: Any) -> Case | Unreadable:
    where = f"{file}[{place}]"
    if not isinstance(item, Mapping):
        return Unreadable(where, f"{where} is no object.")
    title = str(item.get("id", where))
    unknown = [name for name in item if name.startswith("expected_") and name not in ASSERTED]
    if unknown:
        return Unreadable(title, f"{title} expects {unknown}, which nobody checks.")
    try:
        return Case(
            file=file,
            id=str(item["id"]),
            system=str(item["system"]),
            metric=str(item["metric"]),
            version=str(item["version"]),
            level=Level(item.get("level", "sample")),
            inputs=dict(item["inputs"]),
            outputs=item["judge_outputs"],
            config=dict(item.get("config") or {}),
            raw={"expected_score": item["expected_score"], **item},
        )
    except (KeyError, TypeError, ValueError) as error:
        return Unreadable(title, f"{title} is no case: {type(error).__name__}: {error}")
