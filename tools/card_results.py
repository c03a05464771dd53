"""The results that `benchmarks/card.py` stores for the embedded judge: one file per step, all of one model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    JSON = Mapping[str, Any]  # Any: JSON

STEPS: Final = ("check", "evidence", "languages", "baselines", "mined", "probe", "surest", "speed", "fitted")
ENCODER: Final = ("encoder", "held_out")
"""Steps of models with an encoder: its speed, and agreement on records that their curves were not fitted on."""


@dataclass(frozen=True, slots=True)
class Results:
    """The records of all steps."""

    steps: Mapping[str, JSON]

    @classmethod
    def read(cls, folder: Path) -> Results:
        """Read the records. Raises SystemExit if a step is missing, unreadable, or of another model than the others."""
        found = {name: _step(folder / f"{name}.json", name) for name in STEPS}
        if not _words_alone(found["check"]["model"]):
            found |= {name: _step(folder / f"{name}.json", name) for name in ENCODER}
        model = found["check"]["model"]
        for name, each in found.items():
            told = (each["record"].get("judge") or {}).get("fingerprint", model)
            if each["model"] != model or (told["judge"] == model["judge"] and told != model):
                raise SystemExit(
                    f"{folder / name}.json measured another model than check.json "
                    f"({each['model'].get('sha256')}, not {model.get('sha256')}); {_again(name)}"
                )
        return cls(found)

    def __getitem__(self, step: str) -> Any:  # Any: parsed JSON
        """Return the output of a step's command."""
        return self.steps[step]["record"]

    @property
    def model(self) -> JSON:
        """The judge's fingerprint, which identifies everything that affects a verdict."""
        return self.steps["check"]["model"]

    @property
    def fair(self) -> str:
        """The step with agreement on records that no part of the model was fitted on."""
        return "held_out" if "held_out" in self.steps else "check"

    @property
    def words_alone(self) -> bool:
        """True if the model has no encoder."""
        return _words_alone(self.model)


def _words_alone(model: JSON) -> bool:
    return str(model["model"]).startswith("lexical")


def _step(path: Path, name: str) -> JSON:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if {"command", "seconds", "model", "record"} <= found.keys():
            return found
        fault = "a field is missing"
    except OSError:
        fault = "it is not there"
    except (ValueError, AttributeError) as error:
        fault = str(error)
    raise SystemExit(f"{path} cannot be read ({fault}); {_again(name)}") from None


def _again(name: str) -> str:
    return f"measure it with python benchmarks/card.py --only {name}."
