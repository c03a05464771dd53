"""Long texts in windows of whole sentences."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from merilo.judges.encoder.wordpiece import Window, WordPiece, windows

LONGEST = 10
FROZEN = json.loads(Path(__file__).with_name("wordpiece.json").read_text(encoding="ascii"))
WORDPIECE = WordPiece(FROZEN["vocabulary"])
NUMBERS = ("1 2 3", "4 5 6", "7 8", "9 0 1", "2 3 4", "5")
SENTENCES = st.lists(st.integers(0, 30).map(lambda words: " ".join("0123456789"[at % 10] for at in range(words))))


def cut(sentences: list[str] | tuple[str, ...], *, longest: int = LONGEST) -> tuple[Window, ...]:
    """Windows of at most so many pieces."""
    return windows(sentences, WORDPIECE, longest=longest)


def texts(found: tuple[Window, ...]) -> list[str]:
    """The windows as text."""
    return [" ".join(FROZEN["vocabulary"][piece] for piece in window.pieces) for window in found]


def test_windows_have_nearly_equal_lengths() -> None:
    """A text that needs two windows is divided in its middle, not where the first window is full."""
    assert texts(cut(NUMBERS)) == ["1 2 3 4 5 6 7 8", "9 0 1 2 3 4 5"]
    assert [window.sentences for window in cut(NUMBERS)] == [range(3), range(3, 6)]
    assert texts(cut(["1 2 3", "4 5 6", "7 8 9", "0"], longest=9)) == ["1 2 3 4 5 6", "7 8 9 0"]


@given(SENTENCES, st.integers(1, 40))
def test_nothing_is_cut_off(sentences: list[str], longest: int) -> None:
    """Every sentence that fits is whole in one window, every longer one in parts; no window is too long."""
    found = cut(sentences, longest=longest)
    assert max(len(window.pieces) for window in found) <= longest
    for at, sentence in enumerate(sentences):
        pieces = tuple(WORDPIECE.ids(sentence))
        holding = [window.pieces for window in found if at in window.sentences]
        if len(pieces) <= longest:
            assert len(holding) == 1
            assert _within(pieces, holding[0])
        else:
            covered = {
                start + place for each in holding for start in _starts(each, pieces) for place in range(len(each))
            }
            assert covered >= set(range(len(pieces)))


@given(SENTENCES, st.integers(1, 40))
def test_windows_hold_the_sentences_that_they_name(sentences: list[str], longest: int) -> None:
    """The pieces of a window are those of its sentences, in order; windows follow one another."""
    found = cut(sentences, longest=longest)
    for window in found:
        whole = tuple(piece for at in window.sentences for piece in WORDPIECE.ids(sentences[at]))
        assert window.pieces == whole or (len(window.sentences) == 1 and _within(window.pieces, whole))
        for at, start, end in zip(window.sentences, (0, *window.ends), window.ends, strict=False):
            own = tuple(WORDPIECE.ids(sentences[at]))
            assert window.pieces[start:end] == (own if window.pieces == whole else window.pieces)
        assert (0, *window.ends)[-1] == len(window.pieces)
    starts = [window.sentences.start for window in found]
    assert starts == sorted(starts)


def _within(part: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    return bool(_starts(part, whole))


def _starts(part: tuple[int, ...], whole: tuple[int, ...]) -> list[int]:
    return [start for start in range(len(whole) - len(part) + 1) if whole[start : start + len(part)] == part]
