"""Small edits of the files of a run, and the commands that must notice them or print what they printed before."""

import contextlib
import io
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from merilo.cli import outcome

Printed = tuple[int, str]
"""The exit code of a command, and what it printed on standard output."""


def printed(*words: object) -> Printed:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = outcome([*map(str, words)])
        except SystemExit as stop:
            code = int(stop.code or 0)
    if code in {1, 70} and "Traceback" in err.getvalue() + out.getvalue():
        code = 70
    return code, out.getvalue() if code != 70 else err.getvalue()


def byte_edits(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yield copies with one byte changed, removed or added."""
    source = random.Random(seed)
    for _ in range(count):
        at = source.randrange(len(content))
        new = bytes([source.choice([source.randrange(256), *b'0123456789.,:"{}[] \n'])])
        match source.randrange(4):
            case 0:
                yield content[:at] + content[at + 1 :]
            case 1:
                yield content[:at] + new + content[at:]
            case _:
                yield content[:at] + new + content[at + 1 :]


def value_edits(text: str, count: int, seed: int) -> Iterator[str]:
    """Yield copies of a JSON text, or of JSON lines, with one value changed, or one field renamed or removed."""
    source = random.Random(seed)
    lines = text.splitlines() if "\n{" in text else [text]
    indent = None if len(lines) > 1 else 2
    for _ in range(count):
        at = source.randrange(len(lines))
        record = json.loads(lines[at])
        holder, key = source.choice([*_places(record)])
        value = holder[key]
        new = source.choice([*_others(value, source)])
        if isinstance(holder, dict) and source.random() < 0.25:
            del holder[key]
            if source.random() < 0.5:
                holder[f"{key}x"] = value
        else:
            holder[key] = new
        changed = [*lines]
        changed[at] = json.dumps(record, ensure_ascii=False, indent=indent, separators=None if indent else (",", ":"))
        yield "\n".join(changed) + "\n"


def line_edits(text: str) -> Iterator[str]:
    """Yield copies of JSON lines with a line that is there twice, is missing, or has another place."""
    lines = text.splitlines(keepends=True)
    yield "".join([lines[0], *lines])
    yield "".join([*lines, lines[0]])
    yield "".join(lines[:-1])
    yield "".join(lines[1:])
    yield "".join([lines[1], lines[0], *lines[2:]])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:  # Any: JSON
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield value, key
        yield from _places(each)


def _others(value: Any, source: random.Random) -> Iterator[Any]:  # Any: JSON
    yield from (None, "x", [], {}, -1, 0, True, float("nan"), float("inf"), 10**400)
    if isinstance(value, int | float):
        yield from (value + 1, value * 2, -value, source.random())
    if isinstance(value, list) and value:
        yield value[:-1]
        yield [*value, value[0]]


def readers(run: Path, other: Path, folder: Path, *, sample: str, metric: str) -> dict[str, Sequence[object]]:
    """Every command that reads a run, by a name; `folder` is for what they write."""
    return {
        "show": ("show", run),
        "show --json": ("show", run, "--json"),
        "show --sample": ("show", run, "--sample", sample, "--full"),
        "show --worst": ("show", run, "--worst", 3, "--metric", metric),
        "report": ("report", run, "--out", folder / "run.html"),
        "compare": ("compare", other, run),
        "gate": ("gate", run, "--min", f"{metric}=0.3"),
        "gate --baseline": ("gate", other, "--baseline", run, "--max-drop", 0.5),
        "label": ("label", run, "--metric", metric, "-o", folder / "tasks.jsonl", "--number", 4),
        "verify": ("runs", "verify", run, "--reread"),
    }
