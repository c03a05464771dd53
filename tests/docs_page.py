"""Runs one page of the documentation: `python docs_page.py PAGE`, in the folder where its files shall lie.

Fences run in the order of the page: `python` ones in one namespace, `console` ones line by line where a
line starts with `$ `. A comment on the line before a fence says more:

- `<!-- norun: REASON -->`: it is not run;
- `<!-- exit: 2 -->`: each command of this console fence ends with that status;
- `<!-- file: NAME -->`: the fence, of any language, is written to that file;
- `<!-- output -->`: what is shown must be printed: the lines between commands in a console fence, or, before
  a `text` fence, that fence's lines, by the fence run last. Spaces count once; `...` stands for anything.

A page that begins with `<!-- needs: MODULE -->` is run only where that module is installed (`make test-extras`).
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

from forked_commands import SERVER, run_forked

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```\s*$", re.MULTILINE | re.DOTALL
)
COMMENT = re.compile(r"<!-- (norun|exit|file|output)(?:: (.*?))? -->\s*\Z")

FOR_A_SHELL = re.compile(r"[|&;<>()*~$`]")
"""What only a shell understands, in a command without its quoted texts."""

NEEDS = re.compile(r"\A<!-- needs: ([\w.]+) -->")

RUN_ELSEWHERE = {
    "make": "the recipes are what CI itself runs",
    "git": "fetching the project is not for a test",
    "pip": "installing needs the network; `make test` does it",
    "uv": "as pip",
    "cd": "the page runs in one folder",
}
"""Commands of the documentation that its tests pass over, and why."""


class PageError(AssertionError):
    """What a page shows is not what happens; the message names page, line and difference."""


@dataclass(frozen=True)
class Fence:
    """One fenced block. `directive` is one of norun, exit, file, output or ''; `line` counts from 1."""

    language: str
    body: str
    line: int
    directive: str
    argument: str


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
        found.append(Fence(match["language"], body, line, directive, argument))
    return found


def needed(page: Path) -> str | None:
    """The module that a page needs beside merilo; None if it needs none."""
    found = NEEDS.match(page.read_text(encoding="utf-8"))
    return found[1] if found else None


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
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    position = 0
    for wanted in (" ".join(line.split()) for line in shown.splitlines()):
        if wanted in {"", "..."}:
            continue
        pattern = ".*".join(re.escape(part) for part in wanted.split("..."))
        while position < len(lines) and not re.fullmatch(pattern, lines[position]):
            position += 1
        if position == len(lines):
            return False
        position += 1
    return True


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
    """A page while it is run: the namespace of its Python fences, and what was printed last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.namespace: dict[str, object] = {"__name__": "__main__"}
        self.printed = ""

    def run(self) -> None:
        """Run all fences; raises PageError at the first that does not do what the page shows."""
        for fence in fences(self.path.read_text(encoding="utf-8")):
            if fence.directive == "norun":
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
                self.compare(fence.line, fence.body)

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
                self.compare(fence.line, shown)

    def compare(self, line: int, shown: str) -> None:
        """Hold what the page shows against what was printed last."""
        if not shows(shown, self.printed):
            raise PageError(f"{self.path}:{line}: the page shows\n{shown}\nbut this was printed:\n{self.printed}")


def main() -> None:
    """Run the page that the first argument names."""
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    try:
        Page(Path(sys.argv[1])).run()
    except PageError as failure:
        sys.exit(str(failure))


if __name__ == "__main__":
    main()
