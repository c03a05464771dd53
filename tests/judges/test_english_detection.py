"""Which texts the encoder of the embedded judge is asked about."""

import pytest
from each_case import each_case

from merilo.judges.words import is_english, is_english_with_query, split_english


@each_case(
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


@each_case("asked", ["塔有多高？", "Какова высота башни?", "\u200b", "???"])
def test_a_long_english_text_does_not_speak_for_a_question(asked: str) -> None:
    """A question in other letters, or without a sign that can be read, is not English beside whatever texts."""
    texts = ("The tower is 330 metres tall, and it was completed in 1889.",) * 9
    assert is_english(asked, *texts)
    assert not is_english_with_query(asked, texts)
    assert is_english_with_query("How tall is it?", texts)
    assert is_english_with_query("330", texts)
    assert not is_english_with_query("How tall is it?", ("Башня построена в 1889 году, её высота 330 метров.",))


@each_case(
    "texts",
    [
        ("Wie hoch ist der Turm?", "Der Turm ist 330 Meter hoch."),
        ("¿Qué altura tiene la torre?", "La torre mide 330 metros."),
        ("Quelle est la hauteur de la tour ?",),
        ("Quanto è alta la torre?", "La torre è alta 330 metri e si trova nella città."),
        ("Ce înălțime are turnul?", "Turnul are o înălțime de 330 de metri și este în Paris."),
        ("Kule ne kadar yüksek?", "Kule 330 metre ve bir anıt olarak bilinir."),
        ("Torni valmistui vuonna 1889 ja se on kaupungin tunnetuin rakennus.",),
        ("Menara itu selesai dibangun pada tahun 1889 di kota Paris.",),
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


ASKED = "When was the tower that all of the people of the city know, and that is its landmark, completed?"
TOLD = ("The tower was completed in 1889.", "It is 330 metres high.")
CHINESE = "埃菲尔铁塔位于巴黎，于一八八九年完工，是世界上最著名的建筑之一。"


def test_a_context_is_told_by_its_own_words() -> None:
    """A long English question does not make a German paragraph English."""
    german = ("Der Turm wurde 1889 fertiggestellt und ist ein Wahrzeichen.", "Er ist 330 Meter hoch.")
    assert is_english(ASKED, *german)
    assert split_english(ASKED, german) == ("", "")
    assert split_english(ASKED, TOLD) == TOLD


@pytest.mark.parametrize(
    "line", ["Эйфелева башня находится в Париже, в городе.", "埃菲尔铁塔位于巴黎。", "Русский | 中文 | ไทย | עברית"]
)
def test_a_line_in_other_letters_is_left_out_alone(line: str) -> None:
    """The English sentences beside it are still read, wherever it stands, and so is what it is glued to."""
    assert split_english(ASKED, (line * 3, *TOLD)) == ("", *TOLD)
    assert split_english(ASKED, (TOLD[0], line * 3, TOLD[1])) == (TOLD[0], "", TOLD[1])
    assert split_english(ASKED, (f"{line}\n{TOLD[0]}", TOLD[1])) == TOLD


def test_an_english_context_is_read_without_its_lines_in_other_letters() -> None:
    """Also where they are a small part of it; a name in other letters within a sentence leaves the sentence in it."""
    story = ("Moscow (Russian: Москва) is the capital of Russia, and the largest city in it.", *TOLD) * 4
    assert split_english(ASKED, story) == story
    assert split_english(ASKED, (*story, CHINESE)) == (*story, "")


def test_plain_letters_make_no_part_of_a_context_english() -> None:
    """Sentences of another language in plain letters stay with the others, and all do beside a foreign question."""
    turkish = (
        "İkinci çağ, öncekinden çok daha uzun sürdü; büyük göç şöyle başladı.",
        "Bunlar da daha sonra birer kez anlatıldı.",
    )
    assert not any(split_english("İkinci zaman çizelgesi neden gereklidir?", turkish))
    assert split_english(ASKED, (CHINESE,)) == ("",)
    assert not any(split_english("塔有多高？", (CHINESE, *TOLD)))
    assert split_english(ASKED, ()) == ()
