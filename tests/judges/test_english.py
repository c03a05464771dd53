"""Which texts the encoder of the embedded judge is asked about."""

from __future__ import annotations

import pytest

from merilo.judges.english import all_english, is_english


@pytest.mark.parametrize(
    "texts",
    [
        ("How tall is the Eiffel Tower?", "It is 330 metres high."),
        ("Łódź and Malmö are cities; which of them lies in Sweden?",),
        ("Bordeaux, Nîmes, Orléans",),
        ("What does the word 'Schadenfreude' mean?", "Die Freude am Schaden: it is the joy that one has of it."),
        ("SELECT name FROM town",),
    ],
)
def test_english_is_english(texts: tuple[str, ...]) -> None:
    """Names with marks, a foreign word or a text without a common word make no text foreign."""
    assert is_english(*texts)


@pytest.mark.parametrize("asked", ["塔有多高？", "Какова высота башни?", "\u200b", "???"])
def test_a_long_english_text_does_not_speak_for_a_question(asked: str) -> None:
    """A question in other letters, or without a sign that can be read, is not English beside whatever texts."""
    texts = ("The tower is 330 metres tall, and it was completed in 1889.",) * 9
    assert is_english(asked, *texts)
    assert not all_english(asked, texts)
    assert all_english("How tall is it?", texts)
    assert all_english("330", texts)
    assert not all_english("How tall is it?", ("Башня построена в 1889 году, её высота 330 метров.",))


@pytest.mark.parametrize(
    "texts",
    [
        ("Wie hoch ist der Turm?", "Der Turm ist 330 Meter hoch."),
        ("¿Qué altura tiene la torre?", "La torre mide 330 metros."),
        ("Quelle est la hauteur de la tour ?",),
        ("Quanto è alta la torre?", "La torre è alta 330 metri e si trova nella città."),
        ("Ce înălțime are turnul?", "Turnul are o înălțime de 330 de metri și este în Paris."),
        ("Kule ne kadar yüksek?", "Kule 330 metre ve bir anıt olarak bilinir."),
        ("Какова высота башни?",),
        ("塔有多高？",),
        ("330", "81 – 12"),
        ("",),
        (),
    ],
)
def test_other_languages_are_not(texts: tuple[str, ...]) -> None:
    """Other letters, or common words of another language; nothing to read is not English either."""
    assert not is_english(*texts)
