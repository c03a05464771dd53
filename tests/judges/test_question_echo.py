"""A question that is said back inside a context."""

import time

from each_case import each_case

from merilo.judges.copied import strip_question_echoes

ASKED = "Who designed the old bridge over the river?"


@each_case(
    ("sentence", "left"),
    [
        ("Who designed the old bridge over the river?", "?"),
        ("Question: WHO designed the old bridge over the river.", "Question: ."),
        ("It rained. Who designed the old bridge over the river", "It rained. "),
        ('This text answers "who designed the old bridge over" in full.', 'This text answers "" in full.'),
        (f"{ASKED} {ASKED} Ada did.", "? ? Ada did."),
        ("W\u200bho designed the o\u00adld bridge over the river!", "!"),
        ("Who\u0301 designed the ŏld bridge over the river!", "!"),
        ("Whо dеsignеd the оld bridge оver the rivеr!", "!"),
        ("_Who_ designed _the_ __old__ bridge over the river!", "!"),
        ("Who who designed designed the the old old bridge over the river river!", "!"),
        ("Nobody asked who the old bridge over the river designed!", "Nobody asked !"),
        ("Say w'ho designed the old bridge over the river?", "Say w'ho ?"),
        ("River the over bridge old the designed who.", "."),
        ("Over the river, who designed the old bridge?", "?"),
        ("Designed, bridge, river.", "."),
        ("Designed the old bridge over the river?", "?"),
    ],
)
def test_a_copy_is_taken_out(sentence: str, left: str) -> None:
    """The question, or most of it with the word that asks, goes wherever it stands; the rest of the sentence stays."""
    assert strip_question_echoes(ASKED, (sentence, "Bread is baked.")) == (left, "Bread is baked.")


@each_case(
    ("asked", "sentence"),
    [
        (ASKED, "Ada designed the old bridge over the river."),
        (ASKED, "The old bridge over the river was designed by one who knew it."),
        (ASKED, "Who designed the new bridge over the lake is not known."),
        ("Which are the most abundant entities on Earth?", "Viruses are the most abundant entities on Earth."),
        ("Is the old bridge made of steel?", "The old bridge is made of steel."),
        ("Is the old bridge made of steel?", "Made of steel is the old bridge."),
        (ASKED, "Was the old bridge over the river designed by Ada?"),
        ("Who is older, Ada or Ben?", "Ben is older."),
        ("Which of the bridges is the older one?", "The older of the bridges is one."),
        ("The bridge stands where the river is wide.", "The river is wide."),
        (ASKED, "River?"),
        (ASKED, "Nobody knows who it was that designed the old bridge."),
        ("Which law gave Hitler his dictatorial powers?", "It was the law which gave Hitler his special powers."),
        ("Roman concrete is stronger than modern concrete.", "Roman concrete is stronger than modern concrete."),
        ("the old bridge", "They crossed the old bridge."),
        ("", "They crossed the old bridge."),
    ],
)
def test_an_answer_stays(asked: str, sentence: str) -> None:
    """An answer in the words of the question, a like sentence and a short question are no copies."""
    assert strip_question_echoes(asked, (sentence,)) == (sentence,)


def test_every_copy_is_found_beside_a_longer_stretch_that_is_none() -> None:
    """What lacks the asking word stays, however long, and hides no copy that follows it."""
    asked = "When was the tall iron tower in Paris completed?"
    sentence = "was the tall iron tower in Paris completed then, when was the tall iron tower in Paris"
    assert strip_question_echoes(asked, (sentence,)) == ("was the tall iron tower in Paris completed then, ",)


@each_case("asked", ["who designed the old bridge over the river", f"{ASKED} "])
def test_the_words_of_an_open_question_in_any_order_are_no_evidence(asked: str) -> None:
    """A sentence made only of them answers nothing, with or without a question mark."""
    assert strip_question_echoes(asked, ("bridge old river designed",)) == ("",)


def test_many_copies_take_time_in_proportion() -> None:
    """Fifteen thousand copies in one sentence are taken out in a few seconds."""
    start = time.process_time()
    assert set(strip_question_echoes(ASKED, (f"{ASKED} " * 15_000,))[0]) == {"?", " "}
    assert time.process_time() - start < 12
