"""The words of texts: stems in every language, and the share of a text that others contain."""

from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.judges.words import coverage, shares, stems, weight


@each_case(
    ("one", "other"),
    [
        ("constructed", "constructing"),
        ("built", "builds"),
        ("cities", "city"),
        ("ＡＢＣ１２", "abc12"),
        ("naïve", "naive"),
        ("1,250", "1250"),
        ("٢٥٠", "250"),
        ("башнями", "башня"),
        ("Two", "2"),
    ],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    """Endings, accents, width, digits of other scripts and irregular forms make no difference."""
    assert stems(one) == stems(other)


def test_text_without_spaces_is_pairs_of_characters() -> None:
    """Words of Chinese are not separated, so its pairs are compared."""
    assert stems("埃菲尔铁塔") == ("埃菲", "菲尔", "尔铁", "铁塔")
    assert coverage("铁塔高", ["埃菲尔铁塔高330米"]) == 1.0


def test_rare_words_weigh_more() -> None:
    """A function word says nothing; a word that no table has, and a number, say most."""
    assert weight(*stems("the")) < 0.1 < weight(*stems("tower")) < weight(*stems("zyxomma")) == 1.0
    assert coverage("the tower", ["a tower"]) > 0.9
    assert coverage("the tower", ["the house"]) < 0.1


def test_shares_count_a_window_of_consecutive_texts() -> None:
    """Words in two adjacent sentences count together with a window of two."""
    texts = ["The bridge is old.", "It is red.", "Rome is far."]
    assert max(shares("old red", texts)) < 1.0
    assert shares("old red", texts, window=2)[0] == 1.0
    assert coverage("old Rome", texts) == 1.0


@given(st.text(max_size=60), st.lists(st.text(max_size=60), max_size=4))
def test_a_share_is_a_fraction(asked: str, texts: list[str]) -> None:
    """Of any texts, in whatever script, the share is between 0 and 1, and no part has more than the whole."""
    found = shares(asked, texts)
    assert len(found) == len(texts)
    assert all(0.0 <= each <= 1.0 + 1e-9 for each in found)
    assert max(found, default=0.0) <= coverage(asked, texts) + 1e-9
