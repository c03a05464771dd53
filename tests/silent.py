"""A `Progress` that shows nothing: tests override what they want to know."""

from pathlib import Path


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
