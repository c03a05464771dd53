"""The settings of a draw of questions, apart from the run so that the command starts without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawSettings:
    """The settings of a draw; equal settings and equal verdicts give equal questions."""

    number: int = 100
    """Passages to draw."""
    sentences: int = 3
    """Maximum sentences of a passage."""
    seed: int = 0
    templates: Path | None = None
    """A file of questions to ask instead of letting the judge write them."""
