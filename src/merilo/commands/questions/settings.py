"""The settings of a draw of passages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

NUMBER: Final = 100
SENTENCES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawSettings:
    """The settings of a draw; equal settings and equal verdicts give equal questions."""

    number: int = NUMBER
    """Passages to draw."""
    sentences: int = SENTENCES
    """Maximum sentences of a passage."""
    seed: int = 0
    templates: Path | None = None
    """A file of questions to ask instead of letting the judge write them."""

    def check(self) -> None:
        """Raise UsageError for numbers that cannot be used."""
        if self.number < 1 or self.sentences < 1:
            raise UsageError(f"--number and --sentences are at least 1, got {self.number} and {self.sentences}.")
