"""Reports for build servers: Markdown that is safe in a comment, GitHub's annotations and step summary.

Text of data and models is always shown as code: in code, mentions notify no user, and links, images and markup have
no effect.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.data.sanitize import clean
from merilo.errors import RunError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_CHARS: Final = 60_000
"""Maximum length of a report in Markdown; a comment on GitHub may have 65,536 characters."""
_MAX_ANNOTATIONS: Final = 10
"""GitHub shows at most 10 errors and 10 warnings of a step."""
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True, slots=True)
class Annotation:
    """A message that GitHub shows on the page of a workflow run."""

    level: str
    """`error`, `warning` or `notice`."""
    title: str
    message: str

    def __str__(self) -> str:
        """Return the workflow command, escaped, so that no text of data starts another command."""
        title = _escaped(clean(self.title)).replace(":", "%3A").replace(",", "%2C")
        lines = "\n".join(clean(line) for line in self.message.split("\n"))
        return f"::{self.level} title={title}::{_escaped(lines)}"


def code(text: str) -> str:
    """Return text as a code span that is also valid in a table cell."""
    text = clean(text).replace("|", "\u2502")  # no way to escape a bar works both inside and outside tables
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    blank = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{blank}{text}{blank}{fence}"


def fenced(text: str) -> str:
    """Return lines as a fenced code block."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}{fence}\n"


def details(summary: str, text: str) -> str:
    """Return a collapsible block with lines of text as code."""
    return f"<details><summary><code>{escape(clean(summary))}</code></summary>\n\n{fenced(text)}\n</details>"


def markdown_table(head: Sequence[str], align: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; `align`: `---` or `---:` for each column. The cells must be safe already."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, align, *rows))


def blocks_within(blocks: Sequence[str], optional: Sequence[str]) -> str:
    """Return blocks as a document, with as many of the optional ones as fit into `MAX_CHARS`."""
    text = "\n\n".join(blocks)
    for block in optional:
        if len(text) + len(block) + 3 > MAX_CHARS:
            break
        text = f"{text}\n\n{block}"
    return text + "\n"


def check_reports(*, markdown: str | None, json: bool, github: bool = False) -> None:
    """Raise UsageError if two reports would use standard output, or if there is no step summary to add to."""
    if json and markdown == "-":
        raise UsageError("--json and --markdown - both write to standard output; give --markdown a file.")
    if github and not os.environ.get(_SUMMARY):
        raise UsageError(f"--github needs a GitHub workflow, which sets {_SUMMARY}. Elsewhere use --markdown FILE.")


def write_markdown(path: str, text: str) -> None:
    """Write a report to a file, or to standard output if the path is `-`. Raises RunError if writing fails."""
    from merilo.rendering.page import write
    from merilo.runs.files import write_file, writing

    if path == "-":
        write(text)
        return
    with writing(path, "choose another file (--markdown)"):
        write_file(Path(path), text)


def publish_on_github(summary: str, annotations: Sequence[Annotation]) -> None:
    """Add a report in Markdown to the step summary, and print annotations on standard error.

    GitHub reads commands from both outputs; standard output stays for the page or the JSON object. Raises RunError if
    the file cannot be written.
    """
    from merilo.rendering.page import tell

    path = Path(os.environ[_SUMMARY])
    try:
        with path.open("a", encoding="utf-8", errors="replace") as out:
            out.write(summary + "\n")
    except OSError as error:
        raise RunError(f"Cannot write {path} ({error.strerror}), which {_SUMMARY} names.") from error
    for level in ("error", "warning", "notice"):
        for each in [each for each in annotations if each.level == level][:_MAX_ANNOTATIONS]:
            tell(str(each))


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
