"""Texts as token ids, as the reference tokenizer has them."""

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import TypedDict

import pytest
from each_case import each_case
from hypothesis import example, given
from hypothesis import strategies as st

from merilo.judges.encoder.wordpiece import MAX_WORD, WordPiece

HERE = Path(__file__).parent
BLOCK = 512
SURROGATES = range(0xD800, 0xE000)


class Frozen(TypedDict):
    """What training/encoder/check_wordpiece.py wrote: a small vocabulary and the reference's ids over it."""

    vocabulary: list[str]
    characters: str
    texts: list[tuple[str, list[int]]]


FROZEN: Frozen = json.loads((HERE / "wordpiece.json").read_text(encoding="ascii"))
WORDPIECE = WordPiece(FROZEN["vocabulary"])


@each_case(("text", "ids"), FROZEN["texts"])
def test_the_ids_are_those_of_the_reference(text: str, ids: list[int]) -> None:
    """Texts of many languages, and hostile ones, have the ids that the reference gives."""
    assert WORDPIECE.ids(text) == ids


def test_every_character_is_read_as_by_the_reference() -> None:
    """Code points, between letters and alone, have the reference's ids on every Python; rare planes are sampled."""
    codes = [code for code in range(0x20000) if code not in SURROGATES]
    codes += range(0x20000, sys.maxunicode + 1, 97)
    digest = sha256()
    for start in range(0, len(codes), BLOCK):
        text = " ".join(f"a{chr(code)}b {chr(code)}" for code in codes[start : start + BLOCK])
        digest.update(json.dumps(WORDPIECE.ids(text)).encode())
    assert digest.hexdigest() == FROZEN["characters"]


@pytest.mark.parametrize("mark", ["[CLS]", "[SEP]", "[UNK]"])
def test_a_text_cannot_write_a_mark(mark: str) -> None:
    """A mark spelled out in a text is plain text: brackets and letters."""
    assert WORDPIECE.words(f"a{mark}b") == ["a", "[", mark[1:-1].lower(), "]", "b"]
    assert not {WORDPIECE.first, WORDPIECE.last} & set(WORDPIECE.ids(f"a{mark}b {mark}"))


@given(st.text(), st.text())
@example("İ", "\u0307")
@example("a\ud800b", "\udfff")
def test_texts_side_by_side_are_read_apart(left: str, right: str) -> None:
    """Two texts with a space between them have the ids of the one and then of the other."""
    assert WORDPIECE.ids(f"{left} {right}") == WORDPIECE.ids(left) + WORDPIECE.ids(right)


@given(st.text())
def test_pieces_make_up_their_words(text: str) -> None:
    """The pieces of a word, put together, are the word; or it is one unknown piece."""
    names = FROZEN["vocabulary"]
    for word in WORDPIECE.words(text):
        pieces = WORDPIECE.pieces(word)
        spelled = names[pieces[0]] + "".join(names[piece].removeprefix("##") for piece in pieces[1:])
        assert spelled == word or pieces == (WORDPIECE.unknown,)


def test_a_word_that_is_too_long_is_unknown() -> None:
    """A word of 100 characters is cut into pieces, one of 101 is unknown."""
    assert len(WORDPIECE.ids("a" * MAX_WORD)) > 1
    assert WORDPIECE.ids("a" * (MAX_WORD + 1)) == [WORDPIECE.unknown]
