"""The standard streams of the command line: open from the start, with an error for output that cannot be written."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from collections.abc import Callable


class OutputLost(Exception):
    """Standard output cannot be written. Not an OSError, which a command would report as an error of its own files."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"Cannot write the standard output ({error.strerror or error}). The output is incomplete.")
        self.no_reader = error.errno == errno.EPIPE


class _Output:
    """Standard output or standard error, which writes nothing after the first error."""

    def __init__(self, stream: Any, *, raises: bool) -> None:  # Any: of text or bytes
        self._stream = stream
        self.raises = raises
        self._lost: OutputLost | None = None

    def __getattr__(self, name: str) -> Any:  # Any: whatever the stream has
        return getattr(self._stream, name)

    @property
    def buffer(self) -> _Output:
        """The stream of bytes, which typer uses if the encoding is ASCII."""
        return _Output(self._stream.buffer, raises=self.raises)

    def write(self, text: Any) -> int:  # Any: text, or bytes for `buffer`
        """Write a text. Raises OutputLost if it `raises`."""
        self._do(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, as `write` does."""
        self._do(self._stream.flush)

    def _do(self, action: Callable[[], object]) -> None:
        if self._lost is None:
            try:
                action()
            except OSError as error:
                self._lost = OutputLost(error)
        if self._lost is not None and self.raises:
            raise self._lost  # again and again: some callers ignore errors of their first write


def prepare_standard_streams() -> None:
    """Open the closed ones of descriptors 0 to 2 on the null device, and wrap standard output and error.

    Otherwise the first file that the command opens, such as a store, becomes its standard output.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            free = os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            os.set_inheritable(free, True)  # noqa: FBT003  it has no keyword
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed when the interpreter started
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115  open until the exit
    sys.stdout = cast("TextIO", _Output(sys.stdout, raises=True))  # has every method of a text stream
    sys.stderr = cast("TextIO", _Output(sys.stderr, raises=False))  # lost messages change no result


def flush_at_exit() -> None:
    """Let the interpreter flush the streams again at its exit without an error, which would replace the exit code."""
    if isinstance(sys.stdout, _Output):
        sys.stdout.raises = False
    sys.stderr.flush()
