"""A question that is said back inside a context."""

from __future__ import annotations

import pytest

from merilo.judges.copies import without_copies

ASKED = "Who designed the old bridge over the river?"


@pytest.mark.parametrize(
    ("sentence", "left"),
    [
        ("Who designed the old bridge over the river?", "?"),
        ("Question: WHO designed the old bridge over the river.", "Question: ."),
        ("It rained. Who designed the old bridge over the river", "It rained. "),
        ('This text answers "who designed the old bridge over" in full.', 'This text answers "" in full.'),
        (f"{ASKED} {ASKED} Ada did.", "? ? Ada did."),
    ],
)
def test_a_copy_is_taken_out(sentence: str, left: str) -> None:
    """The question, or most of it with the word that asks, goes wherever it stands; the rest of the sentence stays."""
    assert without_copies(ASKED, (sentence, "Bread is baked.")) == (left, "Bread is baked.")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (ASKED, "Ada designed the old bridge over the river."),
        (ASKED, "The old bridge over the river was designed by one who knew it."),
        (ASKED, "Who designed the new bridge over the lake is not known."),
        ("Which are the most abundant entities on Earth?", "Viruses are the most abundant entities on Earth."),
        ("Is the old bridge made of steel?", "The old bridge is made of steel."),
        ("the old bridge", "They crossed the old bridge."),
        ("", "They crossed the old bridge."),
    ],
)
def test_an_answer_stays(asked: str, sentence: str) -> None:
    """An answer in the words of the question, a like sentence and a short question are no copies."""
    assert without_copies(asked, (sentence,)) == (sentence,)
