"""The command `merilo`: collects the commands, runs one and returns its exit code.

A command's module imports what it works with only when it runs, so that `merilo --help` starts fast.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO, cast

import typer
from typer.core import TyperGroup

from merilo.commands.command import Command, GroupedOptions, Section
from merilo.commands.exit_codes import Exit
from merilo.data.guesses import guesses
from merilo.errors import Interrupted, MeriloError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


_FOLDERS: Final = {
    "run": ("evaluate",),
    "import": ("imports",),
    **{each: (each,) for each in ("questions", "diagnose", "watch", "demo", "show", "export", "report", "view")},
    **{each: (each,) for each in ("metrics", "compare", "gate", "label")},
    "judge": ("check",),
    "runs": ("runs", "verify", "merge", "cache", "config"),
}
"""First word of a command → the folders of the commands that begin with it, in the order of the help."""
_EXIT_SECONDS: Final = 10
"""How long threads of plugins may delay the exit after everything was printed."""
_GROUPS: Final = {
    "judge": "Test judges and compare them with people.",
    "runs": "List, verify and merge runs; show the cache and the settings.",
}
"""Help of the words that several commands begin with."""
_ALONE: Final = {"runs": "list"}
"""First word → the command of the group that it means without another word."""


_NEAR: Final = 0.75


class _Sections(TyperGroup):
    """The command list under headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # Any: click's classes are private in typer
        """Write one list for each section."""
        del ctx
        rows: dict[Section, list[tuple[str, str]]] = {section: [] for section in Section}
        section_of = {each.name.partition(" ")[0]: each.section for each in commands()}
        for name, command in self.commands.items():
            rows[section_of[name]].append((name, command.get_short_help_str(limit=100)))
        for section in Section:
            with formatter.section(section.value):
                formatter.write_dl(rows[section])


def _print_version(wanted: bool) -> None:
    if wanted:
        from merilo.version import version

        typer.echo(f"merilo {version()}")
        raise typer.Exit


def _root(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Without a command the help is shown."""
    _group(context)


def _collected(commands: Sequence[Command]) -> typer.Typer:
    collected = typer.Typer(
        name="merilo",
        cls=_Sections,
        help="Evaluate retrieval-augmented generation (RAG): did retrieval find the right text, and is the answer "
        "supported by it?",
        epilog="Start with: merilo demo",
        add_completion=False,
        invoke_without_command=True,
        rich_markup_mode=None,  # plain help: rich would cost a third of the start
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    collected.callback()(_root)
    groups: dict[str, typer.Typer] = {}
    for command in commands:
        *group, name = command.name.split()
        place = collected
        if group:
            word = group[0]
            if word not in groups:
                groups[word] = typer.Typer(help=_GROUPS[word], invoke_without_command=True, rich_markup_mode=None)
                groups[word].callback()(_group)
                collected.add_typer(groups[word], name=word)
            place = groups[word]
        place.command(
            name,
            cls=type("Shown", (GroupedOptions,), {"shown": frozenset(command.options.split())}),
            short_help=command.summary,
            help=command.help,
            epilog=command.examples or None,
        )(command.call)
    return collected


def _group(context: typer.Context) -> None:
    commands = getattr(context.command, "commands", {})
    if context.invoked_subcommand is None and len(commands) == 1:
        name, command = next(iter(commands.items()))
        typer.echo(command.get_help(context.__class__(command, info_name=name, parent=context)))
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@cache
def commands(*words: str) -> tuple[Command, ...]:
    """Return the commands that begin with these words, or all, in the order of the help."""
    folders = [folder for word in words or _FOLDERS for folder in _FOLDERS[word]]
    return tuple(import_module(f"merilo.commands.{each}.cli").COMMAND for each in folders)


def app(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the app of the command that the first argument names, or of all commands.

    Importing all commands and reading their options, as typer does, would triple the time of each start.
    """
    return _collected(commands(*(word for word in arguments[:1] if word in _FOLDERS)))


def main() -> None:
    """Run the command line and exit with its code."""
    prepare_standard_streams()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # schedulers send it; treat it like Ctrl-C
    code = outcome(sys.argv[1:])
    if isinstance(sys.stdout, _Output):  # the interpreter flushes it at its exit; an error would replace the exit code
        sys.stdout.raises = False
    sys.stderr.flush()
    if any(thread.name == "merilo" for thread in threading.enumerate()):
        os._exit(code)  # the thread waits for standard input or a hanging judge and would block the exit
    last = threading.Timer(_EXIT_SECONDS, os._exit, [code])  # Python waits for a plugin's threads, also if they hang
    last.daemon = True
    last.start()
    sys.exit(code)


def outcome(arguments: Sequence[str]) -> int:
    """Run one command, print its error if any, and return its exit code."""
    debug = "--debug" in arguments
    _prepare_logging(debug=debug)
    try:
        return _dispatch(arguments)
    except OutputLost as error:
        if error.no_reader:  # as in `merilo show RUN | head`, which needs no message
            return Exit.NO_READER
        return _reported(error, Exit.OUTPUT_LOST, str(error), debug=debug)
    except SystemExit as error:
        message = f"Code that the command used stopped it with SystemExit({error.code}). Remove the call of sys.exit."
        return _reported(error, Exit.WRONG_USE, message, debug=debug)
    except (KeyboardInterrupt, Interrupted) as error:
        return _reported(error, Exit.INTERRUPTED, str(error) or "Stopped.", debug=debug)
    except MeriloError as error:
        return _reported(error, Exit.WRONG_USE, str(error), debug=debug)
    except MemoryError as error:
        return _reported(error, Exit.BUG, "The memory is not sufficient. Try fewer records (--limit).", debug=debug)
    except BaseException as error:  # noqa: BLE001  # the last handler: report it as a bug
        if isinstance(error, FileNotFoundError) and not _working_directory():
            message = "The working directory no longer exists. Change to another one."
            return _reported(error, Exit.WRONG_USE, message, debug=debug)
        problem = f"{type(error).__name__}: {error}"
        advice = "" if debug else " Run it again with --debug and report what it prints."
        return _reported(error, Exit.BUG, f"This is a bug in merilo ({problem}).{advice}", debug=debug)


def _working_directory() -> Path | None:
    with suppress(FileNotFoundError):
        return Path.cwd()
    return None


def _dispatch(arguments: Sequence[str]) -> int:
    words = [each for each in arguments[:2] if not each.startswith("-")]
    if words and Path(words[0]).suffix:
        raise UsageError(f"Did you mean: merilo run {words[0]}?")
    for size in (2, 1):  # a former or guessed command
        if meant := guesses("commands").get(" ".join(words[:size])):
            raise UsageError(meant[0])
    GroupedOptions.shows_all = "--help-all" in arguments
    arguments = ["--help" if each == "--help-all" else each for each in arguments if each != "--debug"]
    first, second = [*arguments, "", ""][:2]
    if first in _ALONE and (not second or (second.startswith("-") and second not in {"-h", "--help"})):
        arguments = [first, _ALONE[first], *arguments[1:]]
    try:
        code = typer.main.get_command(app(arguments)).main(arguments, prog_name="merilo", standalone_mode=False)
    except typer.Abort:
        return Exit.INTERRUPTED
    except Exception as error:
        message = _usage_message(error)
        if message is None:
            raise
        return _reported(error, Exit.WRONG_USE, message, debug=False)
    sys.stdout.flush()
    return int(code) if isinstance(code, int) else Exit.DONE


def _usage_message(error: Exception) -> str | None:
    """Return typer's message about a usage error; None for any other error.

    Recognised by a method, because click's classes are private in typer.
    """
    format_message = getattr(error, "format_message", None)
    if format_message is None:
        return None
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "merilo")
    message = str(format_message())
    if option := getattr(error, "option_name", None):
        if gone := guesses("gone").get(f"{path} {option}".removeprefix("merilo ")):
            return gone[0]
        message = f"No such option: {option}.{_meant(option, context)}"
    elif message.startswith("Got unexpected extra"):
        message = f"{message}. Separate metrics and other lists by commas: --metrics A,B."
    return f"{message if message.endswith(('.', '?', ')')) else message + '.'} See {path} --help."


def _meant(option: str, context: Any) -> str:  # Any: click's classes are private in typer
    """Return a sentence, after a space, that names the option or argument that is meant; empty if none is similar."""
    known = ["--debug", *(name for each in context.command.params for name in each.opts)] if context is not None else []
    guessed = [
        each for each in guesses("options").get(option, ()) if not each.startswith("--") or each.split()[0] in known
    ]
    near = guessed or get_close_matches(option, known, n=1, cutoff=_NEAR)
    return f" Did you mean {near[0]}?" if near else ""


def _reported(error: BaseException, code: Exit, message: str, *, debug: bool) -> Exit:
    from merilo.data.remote import without_secrets
    from merilo.rendering.page import tell

    if debug:
        import traceback

        sys.stderr.write(without_secrets("".join(traceback.format_exception(error))))
    tell(without_secrets(message))
    return code


def _prepare_logging(*, debug: bool) -> None:
    """Show log messages (tracebacks of judges, each retry) only with --debug; the summary has what matters."""
    import logging

    handler = logging.StreamHandler() if debug else logging.NullHandler()
    for name in ("merilo", "asyncio"):
        log = logging.getLogger(name)
        log.addHandler(handler)
        if debug:
            log.setLevel(logging.INFO)
        log.propagate = False


# -- standard streams ----------------------------------------------------------------------------------


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
        self.flush(text)
        return len(text)

    def flush(self, text: Any = None) -> None:  # Any: as above
        """Write a text, or what is buffered, as `write` does."""
        if self._lost is None:
            try:
                _ = self._stream.flush() if text is None else self._stream.write(text)
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
            os.set_inheritable(free, True)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed when the interpreter started
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115  open until the exit
    sys.stdout = cast("TextIO", _Output(sys.stdout, raises=True))  # has every method of a text stream
    sys.stderr = cast("TextIO", _Output(sys.stderr, raises=False))  # lost messages change no result
