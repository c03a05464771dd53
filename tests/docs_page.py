"""Runs one page of the documentation: `python docs_page.py PAGE`, in the folder where its files shall lie.

Fences run in the order of the page: `python` ones in one namespace, `console` ones line by line where a
line starts with `$ `. A comment on the line before a fence says more:

- `<!-- norun: REASON -->`: it is not run;
- `<!-- exit: 2 -->`: each command of this console fence ends with that status;
- `<!-- file: NAME -->`: the fence, of any language, is written to that file;
- `<!-- output -->`: what is shown must be printed: the lines between commands in a console fence, or, before
  a `text` fence, that fence's lines, by the fence run last. Spaces count once; `...` stands for anything.

After a line `<!-- needs: MODULE -->`, the fences up to the next heading are run only where that module is installed. A
page that begins with one is run only there (`make test-extras`).

`python docs_page.py PAGE --outputs` writes what is printed into the page instead of comparing it (`renewed_output`).
"""

import contextlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import traceback
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from forked_commands import PAGE, SERVER, can_fork, run_forked, server_address

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```\s*$", re.MULTILINE | re.DOTALL
)
COMMENT = re.compile(r"<!-- (norun|exit|file|output)(?:: (.*?))? -->\s*\Z")

FOR_A_SHELL = re.compile(r"[|&;<>()*~$`]")
"""What only a shell understands, in a command without its quoted texts."""

NEEDS = re.compile(r"^<!-- needs: ([\w.]+) -->$|^## ", re.MULTILINE)

RUN_ELSEWHERE = {
    "make": "the recipes are what CI itself runs",
    "git": "fetching the project is not for a test",
    "pip": "installing needs the network; `make test` does it",
    "uv": "as pip",
    "cd": "the page runs in one folder",
}
"""Commands of the documentation that its tests pass over, and why."""


ALIKE = 0.6
"""Least similarity of a shown line and a printed one that may be its new form."""


class PageError(AssertionError):
    """What a page shows is not what happens; the message names page, line and difference."""


@dataclass(frozen=True)
class Fence:
    """One fenced block. `directive` is one of norun, exit, file, output or ''; `line` counts from 1, `span` is the
    body's place in the page, `needs` a module or ''.
    """

    language: str
    body: str
    line: int
    directive: str
    argument: str
    indent: str
    span: tuple[int, int]
    needs: str


def fences(text: str) -> list[Fence]:
    """The fenced blocks of a page, in order."""
    found: list[Fence] = []
    for match in FENCE.finditer(text):
        comment = COMMENT.search(text[: match.start()])
        indent = match["indent"]
        body = "\n".join(line.removeprefix(indent) for line in match["body"].splitlines())
        line = text.count("\n", 0, match.start()) + 1
        directive, argument = (comment[1], comment[2] or "") if comment else ("", "")
        if directive == "norun" and not argument:
            raise PageError(f"line {line}: norun needs a reason: <!-- norun: REASON -->.")
        needs = _needs(text, match.start())
        found.append(Fence(match["language"], body, line, directive, argument, indent, match.span("body"), needs))
    return found


def _needs(text: str, at: int) -> str:
    """Return the module that a fence at this place needs, or ''."""
    return ([found[1] or "" for found in NEEDS.finditer(text, 0, at)] or [""])[-1]


def needed(page: Path) -> str | None:
    """The module that a whole page needs beside merilo; None if it needs none."""
    found = NEEDS.match(page.read_text(encoding="utf-8"))
    return found[1] if found else None


def needed_somewhere(page: Path) -> list[str]:
    """The modules that the page or one of its sections needs."""
    return [found[1] for found in NEEDS.finditer(page.read_text(encoding="utf-8")) if found[1]]


def is_installed(module: str) -> bool:
    """Whether a module, such as `haystack` or `llama_index.core`, can be imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def commands(body: str) -> list[tuple[str, str]]:
    r"""Each `$ ` line of a console fence, joined over `\` line ends, with the output shown below it."""
    found: list[tuple[str, str]] = []
    continued = False
    for line in body.splitlines():
        if continued:
            command, shown = found[-1]
            found[-1] = (f"{command}\n{line}", shown)
            continued = line.endswith("\\")
        elif line.startswith("$ "):
            found.append((line.removeprefix("$ "), ""))
            continued = line.endswith("\\")
        elif found:
            command, shown = found[-1]
            found[-1] = (command, f"{shown}{line}\n")
    return found


def shows(shown: str, printed: str) -> bool:
    """Whether every shown line was printed, in order; spaces count once, `...` stands for anything."""
    lines = printed.splitlines()
    position = 0
    for wanted in (line for line in shown.splitlines() if line.strip() not in {"", "..."}):
        while position < len(lines) and not _is_line(wanted, lines[position]):
            position += 1
        if position == len(lines):
            return False
        position += 1
    return True


def _is_line(wanted: str, line: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in " ".join(wanted.split()).split("..."))
    return re.fullmatch(pattern, " ".join(line.split())) is not None


def renewed_output(shown: str, printed: str) -> str:
    """Return the printed lines in the form of an outdated block.

    A line `...` is kept if a similar line was printed for the first and the last line of each part around it. A line
    that still fits, as one with `...` inside may, stays as it is.
    """
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    parts = re.split(r"^ *\.\.\. *\n", shown, flags=re.MULTILINE)
    found, begin = [], 0
    for number, part in enumerate(parts):
        old = [line for line in part.splitlines() if line.strip()]
        if not old:
            found.append([])
            continue
        first = _similar(old[0], lines, begin) if number else 0
        last = _similar(old[-1], lines, first or 0) if number < len(parts) - 1 else len(lines) - 1
        if first is None or last is None or first > last:
            return "".join(f"{line}\n" for line in lines)
        found.append([next((each for each in old if _is_line(each, new)), new) for new in lines[first : last + 1]])
        begin = last + 1
    return "...\n".join("".join(f"{line}\n" for line in part) for part in found)


def _similar(wanted: str, lines: list[str], begin: int) -> int | None:
    """Return the index of the line most like `wanted` from `begin` on, numbers aside; None if none is like it."""

    def words(line: str) -> str:
        return re.sub(r"[\d.+-]+", "0", " ".join(line.split()))

    ratios = {
        number: SequenceMatcher(None, words(wanted), words(line), autojunk=False).ratio()
        for number, line in enumerate(lines[begin:], begin)
    }
    best = max(ratios, key=lambda number: ratios[number], default=None)
    return best if best is not None and ratios[best] >= ALIKE else None


def run_page(page: Path, folder: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a page in its own process, in an empty folder that is also its home, without any key.

    `more`: further variables of the environment.
    """
    kept = {"PATH", "PYTHONPATH", "SYSTEMROOT", "TMPDIR", "CI"}
    environment = {name: value for name, value in os.environ.items() if name in kept}
    environment |= {"HOME": str(folder), "COLUMNS": "110", "NO_COLOR": "1", "PYTHONUTF8": "1", **more}
    if can_fork(None):
        environment[SERVER] = server_address()
        given = [PAGE, str(page), *options]
        return run_forked(given, folder=folder, environment=environment, stdin="", timeout=280)
    return subprocess.run(
        [sys.executable, __file__, str(page), *options],
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )


def run_command(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of a page: in a fork if it is a plain call of merilo and a server is at hand, else in a shell."""
    line = command.replace("\\\n", " ")
    bare = re.sub(r"'[^']*'|\"[^\"$`]*\"", "", line)
    if line.startswith("merilo ") and SERVER in os.environ and not FOR_A_SHELL.search(bare):
        return run_forked(shlex.split(line)[1:], folder=Path.cwd(), environment=dict(os.environ), stdin="", timeout=180)
    return subprocess.run(  # noqa: S602 - the page is ours
        command, shell=True, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


class Page:
    """A page while it is run: the namespace of its Python fences, what was printed last, and with `outputs` the blocks
    that show something else.
    """

    def __init__(self, path: Path, *, outputs: bool = False) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.namespace: dict[str, object] = {"__name__": "__main__"}
        self.printed = ""
        self.outputs = outputs
        self.renewed: dict[Fence, str] = {}

    def run(self) -> None:
        """Run all fences; raises PageError at the first that does not do what the page shows."""
        for fence in fences(self.text):
            if fence.directive == "norun" or (fence.needs and not is_installed(fence.needs)):
                continue
            if fence.directive == "file":
                target = Path(fence.argument)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(fence.body + "\n", encoding="utf-8")
            elif fence.language == "python":
                self.run_python(fence)
            elif fence.language == "console":
                self.run_console(fence)
            elif fence.directive == "output":
                self.compare(fence, f"{fence.body}\n")

    def write(self) -> None:
        """Write the page with its renewed blocks."""
        for fence, body in reversed(self.renewed.items()):
            lines = [fence.indent + line if line else "" for line in body.splitlines()]
            begin, end = fence.span
            self.text = self.text[:begin] + "".join(f"{line}\n" for line in lines) + self.text[end:]
        if self.renewed:
            self.path.write_text(self.text, encoding="utf-8", newline="\n")

    def run_python(self, fence: Fence) -> None:
        """Run a Python fence in the page's namespace; its line numbers are those of the page."""
        source = "\n" * fence.line + fence.body
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output):
                exec(compile(source, str(self.path), "exec"), self.namespace)  # noqa: S102 - the page is ours
        except Exception as error:
            raise PageError(f"{self.path}:{fence.line}:\n{traceback.format_exc()}") from error
        self.printed = output.getvalue()

    def run_console(self, fence: Fence) -> None:
        """Run the commands of a console fence and compare their exit status, and their output if asked to."""
        expected = int(fence.argument) if fence.directive == "exit" else 0
        for command, shown in commands(fence.body):
            if command.split()[0] in RUN_ELSEWHERE:
                continue
            done = run_command(command)
            self.printed = done.stdout + done.stderr
            if done.returncode != expected:
                ended = f"`{command}` ended with {done.returncode}, not {expected}"
                raise PageError(f"{self.path}:{fence.line}: {ended}:\n{self.printed}")
            if fence.directive == "output":
                self.compare(fence, shown)

    def compare(self, fence: Fence, shown: str) -> None:
        """Compare what the page shows with what was printed last; with `outputs`, renew what differs."""
        if shows(shown, self.printed):
            return
        if not self.outputs:
            places = f"{self.path}:{fence.line}: the page shows\n{shown}"
            raise PageError(f"{places}\nbut this was printed:\n{self.printed}")
        body = self.renewed.get(fence, f"{fence.body}\n")
        self.renewed[fence] = body.replace(shown, renewed_output(shown, self.printed), 1)


def main() -> None:
    """Run the page that the first argument names."""
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    page = Page(Path(sys.argv[1]), outputs="--outputs" in sys.argv[2:])
    try:
        page.run()
        page.write()
    except PageError as failure:
        sys.exit(str(failure))


if __name__ == "__main__":
    main()
