"""`config.json` of a model: its architecture, its labels and the length of its input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from merilo.data.config_files import read_document
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CONFIG_NAME: Final = "config.json"
_MAX_LABELS: Final = 1_000
_MAX_NAME: Final = 100
"""Characters of a label, which messages repeat."""
_MAX_BYTES: Final = 2**20


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The fields that merilo reads; missing ones are empty."""

    architecture: str
    labels: Mapping[int, str]
    """`id2label`: the name of each output."""
    problem_type: str
    max_positions: int | None


def read_config(folder: Path) -> ModelConfig | None:
    """Return the configuration in a folder; None if there is none. Raises UsageError for an invalid file."""
    path = folder / CONFIG_NAME
    if not path.is_file():
        return None
    if path.stat().st_size > _MAX_BYTES:
        raise UsageError(f"{path} must be at most {_MAX_BYTES:,} bytes long.")
    fields = read_document(path)
    architectures, positions = fields.get("architectures"), fields.get("max_position_embeddings")
    first = cast("list[object]", architectures)[0] if isinstance(architectures, list) and architectures else ""
    return ModelConfig(
        architecture=first if isinstance(first, str) else "",
        labels=_labels(fields.get("id2label"), path),
        problem_type=str(fields.get("problem_type") or ""),
        max_positions=positions if isinstance(positions, int) and 0 < positions < 10**7 else None,
    )


def _labels(value: object, path: Path) -> Mapping[int, str]:
    if value is None:
        return {}
    labels: dict[int, str] = {}
    given = cast("dict[str, object]", value) if isinstance(value, dict) else {"": value}
    for key, name in given.items():
        if not (key.isascii() and key.isdigit() and len(key) < 5 and _is_name(name)):
            raise UsageError(f"{path}: id2label must map numbers to names.")
        labels[int(key)] = cast("str", name)
    if sorted(labels) != [*range(len(labels))] or len(labels) > _MAX_LABELS:
        raise UsageError(f"{path}: id2label must number the labels from 0.")
    return labels


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and len(value) <= _MAX_NAME
