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


def read_file(path: Path) -> list[Case]:
    """Every case of a JSON file. Raises ValueError for a case that expects what nobody checks."""
    return [_case(item) for item in json.loads(path.read_text(encoding="utf-8"))]


def _case(item: Mapping[str, Any]) -> Case:
    unknown = [name for name in item if name.startswith("expected_") and name not in ASSERTED]
    if unknown or "expected_score" not in item:
        raise ValueError(f"{item['id']} expects {unknown or 'nothing'}, which nobody checks.")
    return Case(
        id=item["id"],
        system=item["system"],
        metric=item["metric"],
        version=item["version"],
        level=Level(item.get("level", "sample")),
        inputs=item["inputs"],
        outputs=item["judge_outputs"],
        config=item.get("config") or {},
        raw=item,
    )
