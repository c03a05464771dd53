"""What an evaluation tells whoever watches it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path


class Progress(Protocol):
    """Watches one evaluation; called from its thread, in this order."""

    def begin(self, run: Path, samples: int) -> None:
        """The data is read and the first question is about to be asked."""
        ...

    def advance(self, samples: int) -> None:
        """So many more samples have all their outcomes."""
        ...

    def note(self, text: str) -> None:
        """Something the user should know, said once."""
        ...

    def end(self) -> None:
        """Nothing more comes, whether the run finished or not."""
        ...


class Silent:
    """Shows nothing."""

    def begin(self, run: Path, samples: int) -> None:
        """See `Progress`."""

    def advance(self, samples: int) -> None:
        """See `Progress`."""

    def note(self, text: str) -> None:
        """See `Progress`."""

    def end(self) -> None:
        """See `Progress`."""
