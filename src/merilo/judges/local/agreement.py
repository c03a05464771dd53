"""`agreement.json`: how well a local model agrees with human labels, as `merilo judge check` measured it.

The file is the record of `merilo judge check` without `usage`. It is stored next to `judge.lock`, or in the model's
folder. It counts only for the judge whose fingerprint it contains: the same files, card and versions.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from merilo.data.config_files import MAX_BYTES
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

AGREEMENT_NAME: Final = "agreement.json"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Value(_Part):
    value: float | None
    interval: tuple[float, float] | None

    def __str__(self) -> str:
        ends = "" if self.interval is None else f" [{self.interval[0]:.2f}, {self.interval[1]:.2f}]"
        return f"κ {self.value:.2f}{ends}"


class _Kappa(_Part):
    kappa: _Value


class _Pooled(_Kappa):
    n: int


class _Task(_Part):
    sources: tuple[str, ...]
    macro: _Kappa
    pooled: _Pooled


class _Tasks(_Part):
    people: dict[str, _Task]


class _Judge(_Part):
    fingerprint: dict[str, object]


class Agreement(_Part):
    """The agreement of a judge with human labels."""

    judge: _Judge
    tasks: _Tasks

    @property
    def note(self) -> str:
        """Cohen's kappa of each task, in one line: the mean over sources, or that over all records if they are few."""
        rated: list[str] = []
        for name, task in self.tasks.people.items():
            called = name.replace("_", " ")
            if task.macro.kappa.value is not None:
                rated.append(f"{called} {task.macro.kappa}")
            elif task.pooled.kappa.value is not None:
                rated.append(f"{called} {task.pooled.kappa} (only {task.pooled.n:,} labels)")
            else:
                rated.append(f"{called} unknown" if task.pooled.n else f"{called} unknown (trained on these labels)")
        return f"agreement with human labels: {', '.join(rated) or 'unknown'}"


def read_agreement(folder: Path, fingerprint: Mapping[str, object]) -> Agreement | None:
    """Return the agreement in a folder; None if there is none, or if it is unreadable or of another fingerprint."""
    path = folder / AGREEMENT_NAME
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        found = Agreement.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return found if found.judge.fingerprint == json.loads(json.dumps(dict(fingerprint))) else None


def write_agreement(folder: Path, record: Mapping[str, object]) -> Path:
    """Write the record of a check in one step; return the path. Raises UsageError."""
    path = folder / AGREEMENT_NAME
    text = json.dumps({name: value for name, value in record.items() if name != "usage"}, indent=1, ensure_ascii=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".check-", dir=folder) as made:
            written = Path(made, AGREEMENT_NAME)
            written.write_text(text + "\n", encoding="utf-8")
            written.replace(path)
    except OSError as error:
        raise UsageError(f"Cannot write {path} ({error.strerror}).") from error
    return path
