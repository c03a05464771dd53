"""Citation markers: every form that is read, what stays in the text, and which sentence a marker belongs to."""

import time

from each_case import each_case
from hypothesis import given, settings
from hypothesis import strategies as st

from merilo.data.citations import Contexts, cited
from merilo.data.sentences import sentences

IDS = Contexts(ids=(None, None, "faq-7"))


@each_case(
    ("marker", "contexts", "unknown"),
    [
        ("[1]", (0,), ()),
        ("[1, 2]", (0, 1), ()),
        ("[1][3]", (0, 2), ()),
        ("[1] [3]", (0, 2), ()),
        ("[1-3]", (0, 1, 2), ()),
        ("[^2]", (1,), ()),
        ("([2])", (1,), ()),
        ("([1], [3])", (0, 2), ()),
        ("([1][2])", (0, 1), ()),
        ("([doc:faq-7]; [1])", (2, 0), ()),
        ("[2](https://example.org/a)", (1,), ()),
        ("[2](https://example.org/a_(b)/c)", (1,), ()),
        ('[2](https://example.org/a "A title (1)")', (1,), ()),
        ("[[2]](https://example.org/a)", (1,), ()),
        ("[[1], [3]]", (0, 2), ()),
        ("[\u200f2\u200b]", (1,), ()),
        ("【3】", (2,), ()),
        ("【3†source】", (2,), ()),
        ("(Doc 3)", (2,), ()),
        ("[doc #2]", (1,), ()),
        ("(Sources 1 and 2)", (0, 1), ()),
        ("(источник 2)", (1,), ()),
        ("[doc:faq-7]", (2,), ()),
        ("(id: faq-7)", (2,), ()),
        ("[faq-7]", (2,), ()),
        ("[1, faq-7]", (0, 2), ()),
        ("[2][2]", (1,), ()),
        ("[4]", (), ("4",)),
        ("[0]", (), ("0",)),
        ("[2, 9]", (1,), ("9",)),
        ("[doc:other]", (), ("other",)),
        ("(Source: Wikipedia)", (), ("Wikipedia",)),
    ],
)
def test_a_marker_is_read_and_removed(marker: str, contexts: tuple[int, ...], unknown: tuple[str, ...]) -> None:
    """Each form of a marker names its contexts, and leaves the sentence as if it had not been there."""
    found = cited(f"Paris is the capital {marker}.", IDS)
    assert found.text == "Paris is the capital."
    assert [tuple(each) for each in found.sentences] == [("Paris is the capital.", contexts, unknown)]


@each_case(
    "text",
    [
        "It ran from [1990-2000] to [2020].",
        "The second (2) of three.",
        "This is [sic] odd [citation needed].",
        "See [the page](https://example.org/1).",
        "Call `a[1]` or ```x[2]``` now.",
        "Call it:\n~~~\na[1]\n~~~",
        "See [[the page]] and [[x]](https://example.org).",
        "Item [999999999999] of [1-1000000].",
        "The (Documents) of a (source unknown).",
        "A footnote[^note] with a name.",
        "Pages [3-90] and [5-2].",
        "(1, Doc 2) is not a list of sources.",
        "An open [1 and a closed 2].",
    ],
)
def test_other_brackets_stay(text: str) -> None:
    """Years, list numbers, links, code and remarks in brackets are not citations, and the text is unchanged."""
    found = cited(text, IDS)
    assert found.text == text
    assert found.citations == 0


@each_case(
    ("text", "expected"),
    [
        ("It is old. [1] It is big. [2]", [(0,), (1,)]),
        ("It is old.[1] It is big.[2]", [(0,), (1,)]),
        ("It is [1] old. It is big.", [(0,), ()]),
        ("- [1] It is old.\n- [2] It is big.", [(0,), (1,)]),
        ("1. [1] It is old.\n2. It is big [2].", [(0,), (1,)]),
        ("It is old and grey.\n[1]\n\nIt is big.", [(0,), ()]),
        ("[1] It is old.", [(0,)]),
    ],
)
def test_a_marker_belongs_to_the_sentence_before_it(text: str, expected: list[tuple[int, ...]]) -> None:
    """At the beginning of a line it belongs to the sentence after it, if the line has one."""
    assert [each.contexts for each in cited(text, IDS).sentences] == expected


def test_a_number_may_be_an_id_or_count_from_zero() -> None:
    """A number is a position first, and an id if there is no such position; `first=0` counts from zero."""
    assert cited("A b [2].", Contexts(ids=("2", "17"))).sentences[0].contexts == (1,)
    assert cited("A b [17].", Contexts(ids=("2", "17"))).sentences[0].contexts == (1,)
    assert cited("A b [0][2].", IDS, first=0).sentences[0].contexts == (0, 2)


@given(st.text(alphabet="ab .,\n[](){}^`1239-–【】†doc:;#*é", max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_is_read(text: str) -> None:
    """The sentences are those of the clean text, and indices are those of contexts."""
    found = cited(text, IDS)
    assert tuple(each.text for each in found.sentences) == sentences(found.text)
    assert all(0 <= index < len(IDS.ids) for each in found.sentences for index in each.contexts)
    assert len(found.text) <= len(text)


@each_case(
    "piece",
    [
        "[",
        "(",
        "```",
        "`",
        "[1]",
        "【1】\n",
        "[doc:x] ",
        "\n[a",
        "[1-999]",
        "[^\n",
        "([",
        "[1](",
        "([1],",
        "([1]) ",
        "([[",
        " [1] a",
        "[1] \n",
    ],
)
def test_a_hostile_text_takes_linear_time(piece: str) -> None:
    """Twelve thousand repetitions of an opening or a marker are read at once."""
    started = time.process_time()
    cited(piece * 12_000, IDS)
    assert time.process_time() - started < 3
