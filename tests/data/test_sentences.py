import time
from unittest.mock import patch

import pytest
from each_case import each_case
from hypothesis import example, given
from hypothesis import strategies as st

from merilo.data import sentences as module
from merilo.data.sentences import sentences, split

PIECES = st.sampled_from([
    "a", "Bc", "1", ". ", ".", "! ", "? ", "\n", "\n\n", " ", "\t", "- ", "1. ", "> ", "# ", "|", "---", "```",
    "~~~", "===", "“", "”", "。", "！", "「", "」", "Я ", "т.е. ", "Dr. ", "...", "…", "\r\n", "\u2028", "\xa0", "👍",
    "(", ")",
])  # fmt: skip
TEXTS = st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=60)
LANGUAGES = st.sampled_from(["en", "ru", "zh", "ja", "de", "ar", "hi", "th", "xx", "pt-BR"])


@given(TEXTS, LANGUAGES)
def test_blocks_of_whole_sentences_are_split_alike(text: str, language: str) -> None:
    """A block whose pieces all have words is split at once, at the places that the loop over its pieces finds."""
    found = split(text, language)
    with patch.object(module, "all", lambda _: False, create=True):
        assert split(text, language) == found


@given(TEXTS, LANGUAGES)
@example("---\n\n```\n", "en")
@example("> 1. \n> ...\n\n.", "ru")
def test_only_white_space_is_left_out(text: str, language: str) -> None:
    """Spans ascend, are not blank, begin and end on a sign, and what lies between them is white space."""
    position = 0
    for start, end in split(text, language):
        assert position <= start < end <= len(text)
        assert not text[position:start].strip()
        assert text[start:end] == text[start:end].strip()
        position = end
    assert not text[position:].strip()


@given(TEXTS, LANGUAGES)
def test_every_sentence_has_a_word_if_the_text_has_one(text: str, language: str) -> None:
    """Marks alone are never a sentence of their own beside real ones."""
    found = sentences(text, language)
    assert len(found) <= 1 or all(any(sign.isalnum() or sign == "_" for sign in one) for one in found)


@each_case(
    ("text", "language", "expected"),
    [
        ("", "en", []),
        (" \n\t ", "en", []),
        ("...", "en", ["..."]),
        ("Dr. Smith came. He paid 3.5 million.", "en", ["Dr. Smith came.", "He paid 3.5 million."]),
        ("A line\nthat goes on. Next.", "en", ["A line\nthat goes on.", "Next."]),
        ("One para\n\nAnother", "en", ["One para", "Another"]),
        ("a\r\nb.\r\n\r\nc", "en", ["a\r\nb.", "c"]),
        ("# Head. Of all\nText. More.", "en", ["# Head. Of all", "Text.", "More."]),
        ("Head\n====\nText.", "en", ["Head\n====", "Text."]),
        ("- One. Two.\n- Three", "en", ["- One.", "Two.", "- Three"]),
        ("1. One.\n2. Two\n   goes on.\n10) Ten", "en", ["1. One.", "2. Two\n   goes on.", "10) Ten"]),
        ("It fell in\n1998. Then it rose.", "en", ["It fell in\n1998.", "Then it rose."]),
        ("> One.\n> Two\n> goes on.", "en", ["> One.", "> Two\n> goes on."]),
        ("| a | b |\n|---|---|\n| 1. x | 2 |", "en", ["| a | b |", "|---|---|\n| 1. x | 2 |"]),
        ("See:\n```py\nx = 1. \n\ny\n```\nDone.", "en", ["See:", "```py\nx = 1. \n\ny\n```", "Done."]),
        ("```\nnever closed. Yes.", "en", ["```\nnever closed. Yes."]),
        ("One.\n\n---\n\nTwo.", "en", ["One.", "---\n\nTwo."]),
        ("Great! 👍", "en", ["Great! 👍"]),
        ("Eiffel Tower\nThe tower was built from 1887 to 1889.", "en", None),
        (
            "Он ушёл, т.е. его нет. А. С. Пушкин пришёл.",
            "ru",
            ["Он ушёл, т.е. его нет.", "А. С. Пушкин пришёл."],
        ),
        ("他走了。2020年他来了！好吗？", "zh", ["他走了。", "2020年他来了！", "好吗？"]),
        ("他说：“好！”她走了。", "zh", ["他说：“好！”", "她走了。"]),
        ("「はい。」と言った。3個ある｡はい", "ja", ["「はい。」と言った。", "3個ある｡", "はい"]),
        ("看http://a.b?c=1吧!好", "zh", ["看http://a.b?c=1吧!", "好"]),
        ("आप कैसे हैं। मैं ठीक हूँ।", "hi", ["आप कैसे हैं।", "मैं ठीक हूँ।"]),
        ("สร้างเมื่อ พ.ศ. 2387 ที่ กทม. โดย ดร. สมชาย", "th", ["สร้างเมื่อ พ.ศ. 2387 ที่ กทม. โดย ดร. สมชาย"]),
        ("วัดนี้เก่าแก่มาก. ใครเป็นผู้สร้าง? ไม่มีใครรู้", "th", ["วัดนี้เก่าแก่มาก.", "ใครเป็นผู้สร้าง?", "ไม่มีใครรู้"]),
        ("ប្រាសាទអង្គរវត្ត។ វានៅសៀមរាប។", "km", ["ប្រាសាទអង្គរវត្ត។", "វានៅសៀមរាប។"]),
        ("Sie wartete. Er war 3.", "de", ["Sie wartete.", "Er war 3."]),
        (
            "Im 3. Jh. v. Chr. begann es. Es endete 1990. Danach kam er.",
            "de",
            ["Im 3. Jh. v. Chr. begann es.", "Es endete 1990.", "Danach kam er."],
        ),
        ("It opens at 5 p.m. Monday. Come early.", "en", ["It opens at 5 p.m. Monday.", "Come early."]),
        ("It opened at 5 p.m. John came late.", "en", ["It opened at 5 p.m.", "John came late."]),
        ("It weighs approx. 4 kg. Lift it.", "en", ["It weighs approx. 4 kg.", "Lift it."]),
        ("Steps: 1. Open it. 2. Close it.", "en", ["Steps:", "1. Open it.", "2. Close it."]),
        ("1) Low pay 2) Long hours", "en", ["1) Low pay", "2) Long hours"]),
        ("**Why:** 1. **Cost:** Low. 2. **Tax.**", "en", ["**Why:**", "1. **Cost:** Low.", "2. **Tax.**"]),
        ("Click Add. 2. Enter the card.", "en", ["Click Add.", "2. Enter the card."]),
        ("See section 1. Go to section 2. Stop.", "en", ["See section 1.", "Go to section 2.", "Stop."]),
        ("It holds (cf. Fig. 1) and again (cf. Fig. 2) in mice.", "en", None),
        ("Vgl. Abb. 1) und Abb. 2) im Anhang.", "de", None),
        ("Шаги: 1. Открыть. 2. Закрыть.", "ru", ["Шаги:", "1. Открыть.", "2. Закрыть."]),
        ("1. Er fuhr im 2. Wagen. 2. Er ging.", "de", ["1. Er fuhr im 2. Wagen.", "2. Er ging."]),
    ],
)
def test_known_splits(text: str, language: str, expected: list[str] | None) -> None:
    """The rules of each language and of markdown, by example."""
    assert list(sentences(text, language)) == (text.split("\n") if expected is None else expected)


def test_the_language_is_taken_from_the_script() -> None:
    """Without a language the script decides which rules work."""
    assert sentences("他走了。2020年。") == sentences("他走了。2020年。", "zh")


def test_a_long_text_is_split_like_a_short_one() -> None:
    """Reading in windows moves no boundary of plain prose."""
    once = "The fox jumped over Dr. Smith. Was it 3.5 m? It was!"
    assert sentences(" ".join([once] * 2000), "en") == sentences(once, "en") * 2000
    russian = "Лиса прыгнула, т.е. ушла. Правда ли это? Да!"
    assert sentences(" ".join([russian] * 2000), "ru") == sentences(russian, "ru") * 2000


SIZE = 250_000
HOSTILE = {
    "letters": "a" * SIZE,
    "marks and a letter": "!" * SIZE + "x",
    "items": "1) a " * (SIZE // 5),
    "dots": "." * SIZE,
    "spaced dots": ". " * (SIZE // 2),
    "initials": "A. " * (SIZE // 3),
    "numbers": "3. " * (SIZE // 3),
    "open quotes": "“a. " * (SIZE // 4),
    "straight quotes": '"a. ' * (SIZE // 4),
    "open brackets": "(a. " * (SIZE // 4),
    "line feeds": "\n" * SIZE,
    "blank lines": " \n" * (SIZE // 2),
    "spaces": " " * SIZE + "x",
    "rules": "-" * SIZE + "x",
    "nested lists": "".join("  " * min(level, 500) + "- a\n" for level in range(2000)),
    "list items": "- a\n" * (SIZE // 4),
    "quote marks": "> " * (SIZE // 2),
    "fences": "```\n" * (SIZE // 4),
    "growing fences": "".join("`" * (3 + line % 1000) + "\n" for line in range(2000)),
    "table": "|\n" * (SIZE // 2),
    "titles": "Ab\nAbcdefgh\n" * (SIZE // 12),
}


@pytest.mark.parametrize("language", ["en", *(pytest.param(each, marks=pytest.mark.long) for each in ("ru", "zh"))])
@each_case("name", HOSTILE)
def test_hostile_texts_do_not_hang(name: str, language: str) -> None:
    """A quarter of a million characters of anything take little time (one text takes sentencex alone 3 s)."""
    start_s = time.process_time()
    split(HOSTILE[name], language)
    assert time.process_time() - start_s < 6
