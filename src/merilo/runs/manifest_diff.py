"""Differences between two runs, or between a run and the command that resumes it, in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from merilo.errors import RunError
from merilo.runs.run import LABELS, MANIFEST, SEAL, STORE, read_manifest
from merilo.runs.seal import inspect_seal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from merilo.runs.manifest import Manifest

    Judges = Mapping[str, Mapping[str, object]]

_ABSENT = object()
_MAX_SHOWN = 5
_MAX_SHOWN_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Resumed:
    """The run that is resumed or started in a directory."""

    manifest: Manifest
    changed: tuple[str, ...] = ()
    """Files that differ from the seal of the run. They are recomputed."""


def resumed(path: Path, manifest: Manifest) -> Resumed:
    """Return the run in a directory with its own manifest, or with the given one if the directory has none.

    Raises RunError if the run has other data, metrics or judges, or if its store belongs to another run.
    """
    if not (path / MANIFEST).exists():
        return Resumed(manifest)
    broken = broken_files(path)
    earlier = read_manifest(path / MANIFEST)
    differences = earlier.differences(manifest)
    if differences and MANIFEST in broken:
        raise RunError(broken[MANIFEST])
    if differences:
        names = ", ".join({"fingerprint": "data", "until": "when to stop"}.get(name, name) for name in differences)
        judges = judges_difference(earlier.judges, manifest.judges)
        raise RunError(
            f"{path} holds a run that differs in {names}, so it cannot be resumed{f' ({judges})' if judges else ''}. "
            "Choose another directory (--out)."
        )
    changed = tuple(name for name in broken if name not in {LABELS, SEAL})
    return Resumed(manifest if MANIFEST in broken else earlier, changed)


def broken_files(path: Path) -> Mapping[str, str]:
    """Return the broken files of a run that is resumed: file → sentence. Raises RunError if its store is broken."""
    broken = inspect_seal(path).broken
    if STORE in broken:
        raise RunError(broken[STORE])
    return broken


def judges_difference(first: Judges, second: Judges) -> str:
    """Return the differences between the judges of two runs, for each role that both have; empty if there are none.

    `the judge openai:m differs in base_url "http://a" there, "http://b" here`.
    """
    both = [(role, judge_difference(first[role], second[role])) for role in first if role in second]
    return "; ".join(f"the {role} {difference}" for role, difference in both if difference is not None)


def judge_difference(first: Mapping[str, object], second: Mapping[str, object]) -> str | None:
    """Return the difference between two judges as recorded in manifests, without a subject; None if there is none."""
    marks = (_flat(first.get("fingerprint")), _flat(second.get("fingerprint")))
    if marks[0] == marks[1]:
        return None
    names = (str(first.get("name")), str(second.get("name")))
    if names[0] != names[1]:
        return f"is {names[0]} there and {names[1]} here"
    keys = [key for key in sorted({*marks[0], *marks[1]}) if marks[0].get(key, _ABSENT) != marks[1].get(key, _ABSENT)]
    parts = [_part(key, *marks) for key in keys[:_MAX_SHOWN]]
    if len(keys) > _MAX_SHOWN:
        parts.append(f"{len(keys) - _MAX_SHOWN:,} more")
    return f"{names[0]} differs in {'; '.join(parts)}"


def _part(key: str, first: Mapping[str, str], second: Mapping[str, str]) -> str:
    """Return a field of the fingerprint and its two values, without those of a user's body, which may be secret."""
    if "body" in key.split("."):
        return key
    return f"{key or 'fingerprint'} {_shown(first, key)} there, {_shown(second, key)} here"


def _shown(marks: Mapping[str, str], key: str) -> str:
    text = marks.get(key, "not set")
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}..."


def _flat(value: object, name: str = "") -> dict[str, str]:
    """Return the leaves of a fingerprint by their path, as JSON."""
    if not isinstance(value, dict):
        return {name: json.dumps(value, ensure_ascii=False)}
    found: dict[str, str] = {}
    for key, each in cast("dict[str, object]", value).items():
        found |= _flat(each, f"{name}.{key}" if name else key)
    return found
