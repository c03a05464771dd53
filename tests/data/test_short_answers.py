"""Answers too short to be a statement: which they are, and how they stand behind what they answer."""

from each_case import each_case

from merilo.data.short_answers import affirms, stated, taken_apart

ASKED = "When was it built?"


@each_case(
    ("answer", "language", "short"),
    [
        ("In 1889.", "en", True),
        ("Gustave Eiffel", "en", True),
        ("No.", "en", True),
        ("29 May, 1953.", "en", True),
        ("Will Smith", "en", True),
        ("9 am.", "en", True),
        ("Am Freitag.", "en", True),
        ("It may be.", "en", False),
        ("He will, I am told.", "en", False),
        ("It was built in 1889.", "en", False),
        ("In the year in which the world fair was held", "en", False),
        ("В 1889 году.", "ru", True),
        ("埃菲尔", "zh", True),
        ("埃菲尔铁塔建于1889年，位于巴黎的战神广场。", "zh", False),
        ("ทีมช่างทาสีของหอไอเฟล", "th", True),
        ("エッフェル塔の塗装チーム", "ja", True),
        ("ทีมช่างทาสีของหอไอเฟลทาสีหอใหม่ทุก ๆ เจ็ดปีตั้งแต่นั้นมา", "th", False),
        ("  ", "en", False),
    ],
)
def test_a_few_words_without_a_verb_are_no_statement(answer: str, language: str, short: bool) -> None:
    """What cannot be read alone is put behind the question; what can is left."""
    assert (stated(answer, ASKED, language) is not None) is short


def test_what_is_put_together_can_be_taken_apart() -> None:
    """Question and answer come back, also where the question has several paragraphs and the answer line breaks."""
    asked = "I read of a tower.\n\nWhen was it built?"
    assert taken_apart(stated("In\n 1889.", asked, "en") or "") == (asked, "In 1889.")


@each_case(("text", "expected"), [
        ("Yes.", True), ("**Yes** ✅", True), ("Yes, it does.", True), ("sí", True), ("是的", True),
        ("no", False), ("НЕТ!", False), ("No, it doesn’t.", False), ("不是", False),
        ("はい", True), ("Ｙｅｓ", True), ("Yes, it isn't.", None),
        ("Yes, in 1889.", None), ("No problem", None), ("", None), ("?!", None),
    ])  # fmt: skip
def test_a_yes_or_a_no_is_known(text: str, expected: bool | None) -> None:
    """In several languages, with marks around it or said again in a verb; not where something is told besides."""
    assert affirms(text) is expected
