"""Undo the tokenisation of Natural Questions text, so that passages read as their authors wrote them."""

import re
import unicodedata
from typing import NamedTuple

_CLOSING = re.compile(r"(?:[,.;:?!%)\]°\u2032\u2033…]|'')+")
_CONTRACTION = re.compile(r"(?:\)?'(?:s|re|ve|ll|d|m)|n't)[.,]?", re.IGNORECASE)
_OPENING = frozenset({"(", "[", "``", "`", "$", "£", "€", "#"})
_DECADE = re.compile(r"\d0s\b")


class _Joins(NamedTuple):
    """Whether a piece joins what stands before and after it, and whether it opens a single quotation."""

    left: bool
    right: bool
    opens: bool = False


def detokenise(text: str) -> str:
    """The text with spaces as in print, `` and '' as double quotes and -- as an en dash.

    Only spaces, quotation marks, dashes and invisible format characters change; every word stays. What the
    tokeniser lost is guessed: a hyphen between words is closed up, a dash between numbers or between
    capitalised words too, any other dash keeps its spaces.
    """
    pieces = _visible(text).split()
    padded = ["", *pieces, ""]
    parts: list[str] = []
    joined, is_open = True, False
    for place, (before, piece, after) in enumerate(zip(padded, pieces, padded[2:], strict=False)):
        if piece == "'":
            joins = _apostrophe(before, after, is_open=is_open, closes_later="'" in pieces[place + 1 :])
            is_open = joins.opens
        else:
            joins = _joins(piece, before, after)
        parts.append(_printed(piece) if joined or joins.left else " " + _printed(piece))
        joined = joins.right
    return "".join(parts)


def _visible(text: str) -> str:
    return "".join(mark for mark in text if unicodedata.category(mark) != "Cf")


def _printed(piece: str) -> str:
    return "–" if piece == "--" else piece.replace("``", '"').replace("''", '"')


def _joins(piece: str, before: str, after: str) -> _Joins:
    """How any piece but a lone ' stands."""
    numbers = before[-1:].isdigit() and after[:1].isdigit()
    if piece in _OPENING:
        return _Joins(left=False, right=True)
    if piece == "-":
        between = before[-1:].isalnum() and after[:1].isalnum()
        return _Joins(left=between, right=between or after[:1].isdigit())
    if piece == "--":
        between = numbers or (before[:1].isupper() and after[:1].isupper())
        return _Joins(left=between, right=between)
    if piece == "/" or (piece == ":" and numbers):
        return _Joins(left=True, right=True)
    return _Joins(left=bool(_CLOSING.fullmatch(piece) or _CONTRACTION.fullmatch(piece)), right=False)


def _apostrophe(before: str, after: str, *, is_open: bool, closes_later: bool) -> _Joins:
    """How a lone ' stands: the end of a quotation, a decade ('90s), a possessive (boys'), or a beginning."""
    if is_open:
        return _Joins(left=True, right=False)
    if _DECADE.match(after):
        return _Joins(left=False, right=True)
    possessive = before[-1:].lower() == "s" and after[:1].islower()
    if possessive or not closes_later:
        return _Joins(left=True, right=False)
    return _Joins(left=False, right=True, opens=True)
