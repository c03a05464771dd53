"""Makes text of data and models safe to show: no character can control a terminal or hide from a reader."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

from merilo.data.remote import without_secrets

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_BLANK = "\u00ad\u034f\u115f\u1160\u2800\u3164\uffa0\U000e0100-\U000e01ef"
_INVISIBLE = "\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
_HOSTILE = f"\x7f-\x9f\u2028\u2029\ud800-\udfff{_BIDI}{_BLANK}{_INVISIBLE}"
_SHOWN_AS_CODE = re.compile(f"[\x00-\x08\x0e-\x1f{_HOSTILE}]")
_ESCAPED_IN_JSON = re.compile(f"[{_HOSTILE}]")
_SPACE = re.compile(r"[ \t\v\f\u00a0]+")
_LINE_END = re.compile(r"\r\n?|[\n\u2028\u2029\x85]")
_BROKEN_LINE = re.compile(r"\r\n?|[\v\f\u2028\u2029\x85]")
_BREAK = re.compile(r"\r\n?|[\n\t\v\f\u2028\u2029\x85]")
_LAST_OF_PLANE_0 = 0xFFFF


def clean(text: str) -> str:
    r"""Return the text on one line, with white space collapsed and unsafe characters replaced by their codes.

    Escape sequences, control characters, bidirectional controls and invisible characters are shown as `\x1b` or
    `\u202e`, so a reader sees them. Joiners inside words and emoji are unchanged.
    """
    return _SPACE.sub(" ", harmless(text)).strip()


def harmless(text: str) -> str:
    """Return the text as `clean` does, but with its blanks unchanged, for text that is already laid out."""
    return _SHOWN_AS_CODE.sub(_code, _BREAK.sub(" ", text))


def visible(text: str) -> str:
    """Return the text with its lines and blanks unchanged and unsafe characters shown as `U+202E`, for HTML."""
    if text.isascii() and text.isprintable():
        return text
    return _SHOWN_AS_CODE.sub(lambda found: f"U+{ord(found[0]):04X}", _BROKEN_LINE.sub("\n", text))


def clean_lines(text: str) -> list[str]:
    """Return the lines of a text, each as `clean` returns it; blank lines at the ends and repeated ones are dropped."""
    lines: list[str] = []
    for line in map(clean, _LINE_END.split(text)):
        if line or (lines and lines[-1]):
            lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def json_text(value: object) -> str:
    """Return a value as indented JSON in which characters that could control a terminal are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    return _ESCAPED_IN_JSON.sub(_json_code, text)


def _code(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= _LAST_OF_PLANE_0 else f"\\U{number:08x}"


def _json_code(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def command(*words: str) -> str:
    """Return a quoted command line that the user can copy and run, without passwords and signatures in addresses."""
    return shlex.join([_program(), *map(without_secrets, words)])


def _program() -> str:
    """Return how to call this program: its name if it is on PATH, otherwise its path."""
    typed = Path(sys.argv[0])
    if typed.name != "merilo" or shutil.which("merilo"):
        return "merilo"
    near = typed.absolute()
    return str(near.relative_to(Path.cwd())) if near.is_relative_to(Path.cwd()) else str(near)
