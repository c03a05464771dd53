"""Text that was written by others, made safe to show: nothing in it can steer a terminal or hide from a reader."""

from __future__ import annotations

import json
import re

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = "\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
_HOSTILE = f"\x7f-\x9f\u2028\u2029\ud800-\udfff{_BIDI}{_INVISIBLE}"
_SHOWN_AS_CODE = re.compile(f"[\x00-\x08\x0e-\x1f{_HOSTILE}]")
_ESCAPED_IN_JSON = re.compile(f"[{_HOSTILE}]")
_SPACE = re.compile(r"[ \t\v\f\u00a0]+")
_LINE_END = re.compile(r"\r\n?|[\n\u2028\u2029\x85]")
_BREAK = re.compile(r"\r\n?|[\n\t\v\f\u2028\u2029\x85]")
_LAST_OF_PLANE_0 = 0xFFFF


def clean(text: str) -> str:
    r"""The text on one line: white space folded, and what a terminal would obey or hide as its code.

    Escape sequences, controls, marks that turn the direction of writing and invisible signs are shown as
    `\x1b`, `\u202e`: a reader sees that they are there. Joiners inside words and emoji stay.
    """
    return _SPACE.sub(" ", harmless(text)).strip()


def harmless(text: str) -> str:
    """As `clean`, but with its blanks as they are, for text that is laid out already."""
    return _SHOWN_AS_CODE.sub(_code, _BREAK.sub(" ", text))


def clean_lines(text: str) -> list[str]:
    """The lines of a text, each as `clean` gives it, without blank ones at the ends and doubled ones."""
    lines: list[str] = []
    for line in map(clean, _LINE_END.split(text)):
        if line or (lines and lines[-1]):
            lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def json_text(value: object) -> str:
    """A value as JSON for people and programs: readable, yet without a sign that a terminal would obey."""
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
