"""The command `merilo`: what was typed in, an exit code out."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from merilo.commands.exit_codes import Exit
from merilo.errors import Interrupted, MeriloError

if TYPE_CHECKING:
    from collections.abc import Sequence


def main() -> None:
    """Run the command line and leave with its exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # schedulers stop with it: what Ctrl-C does, it does too
    code = outcome(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _no_reader()
    try:
        sys.stderr.flush()
    except BrokenPipeError:  # nobody reads the progress: no reason to fail
        _no_reader()
    if any(thread.name == "merilo" for thread in threading.enumerate()):
        os._exit(code)  # it waits for something that never comes (standard input, a judge that hangs)
    sys.exit(code)


def outcome(arguments: Sequence[str]) -> int:
    """The exit code of one command; every error has been told to the user."""
    debug = "--debug" in arguments
    _prepare_logging(debug=debug)
    try:
        return _dispatch(arguments)
    except BrokenPipeError:
        return _no_reader()
    except SystemExit as stop:  # how typer and rich leave when nobody reads
        if isinstance(stop.__context__, BrokenPipeError):
            return _no_reader()
        raise
    except (KeyboardInterrupt, Interrupted) as error:
        return _told(error, Exit.INTERRUPTED, str(error) or "Stopped.", debug=debug)
    except MeriloError as error:
        return _told(error, Exit.WRONG_USE, str(error), debug=debug)
    except Exception as error:  # noqa: BLE001  # the last place where anyone can say what happened
        said = f"{type(error).__name__}: {error}"
        advice = "" if debug else " Run it again with --debug and report what it prints."
        return _told(error, Exit.BUG, f"This is a bug in merilo ({said}).{advice}", debug=debug)


def _dispatch(arguments: Sequence[str]) -> int:
    import typer

    from merilo.cli.app import app

    try:
        code = typer.main.get_command(app).main(list(arguments), prog_name="merilo", standalone_mode=False)
    except typer.Abort:
        return Exit.INTERRUPTED
    except Exception as error:
        message = _usage_message(error)
        if message is None:
            raise
        _tell(message)
        return Exit.WRONG_USE
    return int(code) if isinstance(code, int) else Exit.DONE


def _usage_message(error: Exception) -> str | None:
    """What typer says of a wrong command line; None when the error is none of its own.

    Known by its method, since typer carries click's classes under different names in different versions.
    """
    format_message = getattr(error, "format_message", None)
    if format_message is None:
        return None
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "merilo")
    message = str(format_message())
    return f"{message if message.endswith(('.', '?', ')')) else message + '.'} See {path} --help."


def _told(error: BaseException, code: Exit, message: str, *, debug: bool) -> Exit:
    if debug:
        import traceback

        traceback.print_exception(error)
    _tell(message)
    return code


def _tell(message: str) -> None:
    from merilo.rendering.terminal import tell

    try:
        tell(message)
    except BrokenPipeError:
        _no_reader()


def _no_reader() -> Exit:
    """Quietly give up writing: without this Python complains once more when it closes its streams."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    return Exit.NO_READER


def _prepare_logging(*, debug: bool) -> None:
    """Tracebacks of a broken judge and news of each retry are for --debug; what matters stands in the summary."""
    import logging

    handler = logging.StreamHandler() if debug else logging.NullHandler()
    for name in ("merilo", "asyncio"):
        log = logging.getLogger(name)
        log.addHandler(handler)
        if debug:
            log.setLevel(logging.INFO)
        log.propagate = False
