"""Token ids of a pair of texts, by a card: the only module that imports tokenizers.

A text is data: it cannot produce a special token, such as the separator between the two texts. Nothing is truncated;
`windows.py` divides texts that are too long.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tokenizers import Tokenizer

    from merilo.judges.local.card import Input

MISSING: Final = "local judges need the package tokenizers; install it: pip install 'merilo[local]'"
_MAX_FILE_BYTES: Final = 200_000_000
_MAX_ROUNDS: Final = 8
"""Attempts to remove special tokens from a text; each one breaks all those that are left."""
_SLOT: Final = re.compile(r"\{(\w+)\}")
_PROBE: Final = "a"


class TokenIds(NamedTuple):
    """The input of the model for one pair."""

    ids: tuple[int, ...]
    types: tuple[int, ...]
    """`token_type_ids`: which of two texts a token belongs to."""


class ForgedToken(Exception):
    """A text contains a special token that cannot be removed."""


@dataclass(frozen=True, slots=True)
class _Special:
    """A special token of an input."""

    id: int
    type: int


@dataclass(frozen=True, slots=True)
class _Text:
    """A text of an input, with slots."""

    template: str
    type: int


class PairTokens:
    """Turns the texts of a pair into token ids. Threads may share it."""

    def __init__(self, file: Path, form: Input) -> None:
        """Read a `tokenizer.json`. Raises UsageError if it is invalid or lacks a special token of the card."""
        self._tokenizer = _tokenizer(file)
        unknown = _unknown_id(self._tokenizer)
        added = self._tokenizer.get_added_tokens_decoder()
        self._pieces = _explicit(form, self._tokenizer, file) if form.special else _usual(form, self._tokenizer)
        own = {piece.id for piece in self._pieces if isinstance(piece, _Special)}
        self._special = (own | {number for number, token in added.items() if token.special}) - {unknown}

    def encode(self, texts: Mapping[str, str]) -> TokenIds:
        """Return the ids of the pair with these texts, by slot. Raises ForgedToken."""
        ids: list[int] = []
        types: list[int] = []
        for piece in self._pieces:
            new = (piece.id,) if isinstance(piece, _Special) else self._ids(_filled(piece.template, texts))
            ids += new
            types += [piece.type] * len(new)
        return TokenIds(tuple(ids), tuple(types))

    def length(self, text: str) -> int:
        """Return the number of tokens of a text alone. Raises ForgedToken."""
        return len(self._ids(text))

    def _ids(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text, none of them special.

        A vocabulary may contain the letters of a special token, such as `</s>`, as one piece. A space within the
        letters divides it.
        """
        text = text.encode("utf-8", "replace").decode()  # half of a surrogate pair is not text to the tokenizer
        for _ in range(_MAX_ROUNDS):
            encoding = self._tokenizer.encode(text, add_special_tokens=False)
            spans = [span for each, span in zip(encoding.ids, encoding.offsets, strict=True) if each in self._special]
            if not spans:
                return tuple(encoding.ids)
            for start, end in sorted({*spans}, reverse=True):
                # Of one character nothing is left to divide, so it is removed.
                text = text[: start + 1] + " " + text[start + 1 :] if end > start + 1 else text[:start] + text[end:]
        raise ForgedToken


def _filled(template: str, texts: Mapping[str, str]) -> str:
    return _SLOT.sub(lambda match: texts[match[1]], template)  # in one pass: a text may contain the name of a slot


def _tokenizer(file: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    size = file.stat().st_size
    if size > _MAX_FILE_BYTES:
        raise UsageError(f"{file} must be at most {_MAX_FILE_BYTES:,} bytes long, got {size:,}.")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # noqa: BLE001  the package raises this type
        raise UsageError(f"Cannot read {file}: {_one_line(error)}.") from None
    tokenizer.no_truncation()  # many files ship with a limit of 128 or 512 tokens
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # the letters of a special token are letters
    return tokenizer


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id of the token for unknown words, which ordinary text produces."""
    model = json.loads(tokenizer.to_str())["model"]
    token, number = model.get("unk_token"), model.get("unk_id")
    return number if isinstance(number, int) else tokenizer.token_to_id(token) if isinstance(token, str) else None


def _explicit(form: Input, tokenizer: Tokenizer, file: Path) -> tuple[_Special | _Text, ...]:
    """Return the pieces that the card lists."""
    pieces: list[_Special | _Text] = []
    for piece in form.special:
        if piece.startswith("text:"):
            pieces.append(_Text(piece.removeprefix("text:"), 0))
            continue
        number = tokenizer.token_to_id(piece)
        if number is None:
            raise UsageError(f"{file} has no token {piece!r}, which the card lists under input.special.")
        pieces.append(_Special(number, 0))
    return tuple(pieces)


def _usual(form: Input, tokenizer: Tokenizer) -> tuple[_Special | _Text, ...]:
    """Return the pieces of the tokenizer's own form for one or two texts, read from an example."""
    texts = form.texts
    encoding = tokenizer.encode(_PROBE, _PROBE if len(texts) == 2 else None)
    pieces: list[_Special | _Text] = []
    seen: set[int] = set()
    for number, segment, place in zip(encoding.ids, encoding.type_ids, encoding.sequence_ids, strict=True):
        if place is None:
            pieces.append(_Special(number, segment))
        elif place not in seen:
            seen.add(place)
            pieces.append(_Text(texts[place], segment))
    if len(texts) == 2 and not _separated(pieces):
        raise UsageError("The tokenizer puts no special token between two texts; list them in the card: input.special.")
    return tuple(pieces)


def _separated(pieces: list[_Special | _Text]) -> bool:
    places = [place for place, piece in enumerate(pieces) if isinstance(piece, _Text)]
    return len(places) == 2 and places[1] > places[0] + 1
