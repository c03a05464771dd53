"""Windows of whole sentences."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from merilo.judges.local.card import Windows
from merilo.judges.local.model import windows


def up_to(tokens: int) -> Callable[[str], bool]:
    """A model for which each character is a token."""
    return lambda text: len(text) <= tokens


def test_words_limit_a_window() -> None:
    """The number of words limits a window before the tokens do."""
    found = windows(["a b c d", "e f g h", "i"], Windows(words=8, joined_by="\n"), up_to(100))
    assert [each.text for each in found] == ["a b c d\ne f g h", "i"]


def test_windows_overlap() -> None:
    """Each window repeats the last sentences of the one before."""
    found = windows(["aa", "bb", "cc", "dd"], Windows(overlap=1), up_to(5))
    assert [(each.first, each.last) for each in found] == [(0, 1), (1, 2), (2, 3)]


def test_a_long_sentence_is_divided() -> None:
    """A sentence that is too long is read in parts, between words where it has words."""
    found = list(windows(["aaaa bbbb", "cccccccccc"], Windows(), up_to(6)))
    assert [each.text for each in found] == ["aaaa", "bbbb", "ccccc", "ccccc"]
    assert [each.first for each in found] == [0, 0, 1, 1]


SENTENCES = st.lists(st.text(st.characters(codec="ascii", categories=["L", "Zs"]), max_size=30), max_size=12)


@given(SENTENCES, st.integers(2, 40), st.none() | st.integers(8, 20), st.integers(0, 3))
def test_everything_is_read_and_everything_fits(texts: list[str], tokens: int, words: int | None, overlap: int) -> None:
    """Every word is in a window, every window fits, and without overlap windows are in order."""
    found = list(windows(texts, Windows(words=words, overlap=overlap), up_to(tokens)))
    read = "".join("".join(each.text.split()) for each in found)
    assert all(len(each.text) <= tokens for each in found)
    assert all(words is None or len(each.text.split()) <= words for each in found)
    if not overlap:
        assert [each.first for each in found] == sorted(each.first for each in found)
        assert read == "".join("".join(text.split()) for text in texts)
    covered = {place for each in found for place in range(each.first, each.last + 1) if texts[place].strip()}
    assert covered == {place for place, text in enumerate(texts) if text.strip()}
