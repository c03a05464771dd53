"""The model of the embedded judge in the installed package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merilo.judges.blended import CURVES_FILE, WEIGHTS_FILE, BlendedModel
from merilo.judges.lexical import LexicalModel

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER = Path(str(files("merilo.judges")))


def blended() -> BlendedModel | None:
    """Return the model with an encoder; None if the package has only the model of words."""
    return BlendedModel.load() if (_FOLDER / CURVES_FILE).is_file() else None


def weights() -> Path | None:
    """Return the file of the encoder's weights; None if there is none."""
    path = _FOLDER / WEIGHTS_FILE
    return path if path.is_file() else None


def agreement() -> Mapping[str, Any]:  # Any: parsed JSON
    """Return task → `people` and `all` → figures on records that the curves were not fitted on, from the model's
    file.
    """
    model = blended()
    return LexicalModel.load().agreement if model is None else model.agreement
