"""Hashed character n-grams: vectors of texts without a model."""

from hashlib import blake2b
from math import hypot, isclose

from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.words import DIMENSIONS, NAME, likeness, ngram_vector
from merilo.judging.kinds.measured import MatrixVerdict

FIXED = "5c023ccf769398bf"
"""Of the bytes of one vector."""

words = st.text("abcdefghij äßя猫", min_size=1, max_size=40).filter(lambda text: any(map(str.isalnum, text)))


def alike(left: str, right: str) -> float:
    """The likeness of two texts."""
    return likeness(ngram_vector(left), ngram_vector(right))


@given(st.text())
def test_a_vector_has_length_1_or_0(text: str) -> None:
    """512 numbers of length 1; zeros for a text without a word."""
    vector = ngram_vector(text)
    assert len(vector) == DIMENSIONS
    assert isclose(hypot(*vector), 1.0) or not any(vector)


@given(words, words)
def test_likeness_is_symmetric_and_bounded(left: str, right: str) -> None:
    """From 0 to 1, the same both ways, and 1 for a text with itself."""
    assert 0 <= alike(left, right) <= 1
    assert alike(left, right) == alike(right, left)
    assert isclose(alike(left, left), 1.0)


@each_case(
    ("near", "text", "far"),
    [
        ("The tower stands in Paris.", "The Eiffel Tower is in Paris.", "Rivers flow into the sea."),
        ("Wo steht der Turm?", "Der Turm steht in Paris.", "Flüsse münden ins Meer."),
        ("Башня стоит в Париже.", "Башни Парижа", "Реки впадают в море."),
        ("東京は日本の首都", "日本の首都は東京です", "川は海に流れる"),
        ("relevance", "relevant", "tower"),
    ],
)
def test_common_words_and_parts_of_words_bring_texts_near(near: str, text: str, far: str) -> None:
    """In any script, and across endings."""
    assert alike(near, text) > alike(far, text) + 0.15


def test_the_numbers_are_fixed() -> None:
    """A vector is the same on every machine; another is another version, whose name stands in the fingerprint."""
    vector = MatrixVerdict.of([ngram_vector("The Eiffel Tower, Эйфелева башня, 東京")])
    assert blake2b(vector.data, digest_size=8).hexdigest() == FIXED
    assert NAME == "hashed character n-grams v1"
    assert NAME in str(EmbeddedJudge().fingerprint()["vectors"])
