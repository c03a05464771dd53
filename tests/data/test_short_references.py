"""Short answers that a sentence states."""

import pytest

from merilo.data.answer import states

PRICE = "How much does the ticket cost?"
CAPITAL = "What is the capital of Portugal?"


@pytest.mark.parametrize(
    ("text", "answer", "asked", "expected"),
    [
        ("The ticket costs 75 dollars.", "75 dollars", PRICE, (True, True)),
        ("The ticket costs $75.", "75 dollars", PRICE, (True, True)),
        ("Adults pay 75 dollars, and children enter with them.", "75 dollars", PRICE, (True, False)),
        ("The ticket costs 80 dollars.", "75 dollars", PRICE, (False, False)),
        ("The ticket costs 75 dollars. With a card it costs 60 dollars.", "75 dollars", PRICE, (False, False)),
        ("The ticket costs more than 75 dollars.", "75 dollars", PRICE, (False, False)),
        ("The ticket does not cost 75 dollars.", "75 dollars", PRICE, (False, False)),
        ("It opened in 1907, and it has two doors.", "1907", "When did it open?", (True, False)),
        ("It opened in 1907 or 1908.", "1907", "When did it open?", (False, False)),
        ("The capital of Portugal is Lisbon.", "Lisbon", CAPITAL, (True, True)),
        ("It is lisbon", "The Lisbon", CAPITAL, (True, True)),
        ("The capital isn't Lisbon.", "Lisbon", CAPITAL, (False, False)),
        ("The capital is Lisbonne.", "Lisbon", CAPITAL, (False, False)),
        ("It serves up to 128 devices.", "up to 128", "How many devices does it serve?", (True, True)),
        ("It serves 128 devices.", "up to 128", "How many devices does it serve?", (False, False)),
        ("No, it is closed.", "No", "Is it open?", (False, False)),
        ("The ticket costs 75 dollars.", "The ticket costs 75 dollars.", PRICE, (False, False)),
        ("Anything.", "?", PRICE, (False, False)),
    ],
)
def test_a_short_answer_is_stated_by_one_sentence(
    text: str, answer: str, asked: str, expected: tuple[bool, bool]
) -> None:
    """It has all values and words, no negation and no other value; `only`: and nothing but the question besides."""
    assert (states(text, answer, asked, "en"), states(text, answer, asked, "en", only=True)) == expected


def test_other_languages_are_left_to_the_judge() -> None:
    """Their limits and negations are not known here."""
    assert not states("Der Eintritt kostet 75 Euro.", "75 Euro", "Was kostet der Eintritt?", "de")
