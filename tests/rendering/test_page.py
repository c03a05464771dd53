"""The parts that pages are made of."""

import json

from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from merilo.data.sanitize import clean, json_text, visible
from merilo.rendering import markup
from merilo.rendering.page import Page, columns, cut, wrap


@each_case(
    ("text", "shown"),
    [
        ("a\r\nb\tc  d", "a b c d"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202eabc\u2069", "\\u202eabc\\u2069"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("می\u200cخواهم 👩\u200d🔬", "می\u200cخواهم 👩\u200d🔬"),
    ],
)
def test_clean_text(text: str, shown: str) -> None:
    """What steers or hides is shown as its code; joiners that belong to writing stay."""
    assert clean(text) == shown


@given(st.text(st.characters(), max_size=200))
def test_json_text_is_whole(text: str) -> None:
    """Whatever a text holds, its JSON reads back as the same text and can be encoded."""
    printed = json_text({"text": text})
    printed.encode()
    assert json.loads(printed) == {"text": text}


@given(st.text(st.sampled_from('a\\b/u0"<\x00\x08\x0b\x1b\x85\r\n\t\u202e\u200b\u2028\ud800\U000e0001é'), max_size=30))
def test_the_data_of_a_page_has_no_unsafe_character(text: str) -> None:
    """Each text of it is `visible`, whatever else the data has."""
    read = json.loads(markup.json_text({"text": [text], text: 1}))
    assert read == {"text": [visible(text)], visible(text): 1}


@given(st.text(st.sampled_from("ab яё 日本 語\u0301 "), max_size=200), st.integers(10, 40))
def test_wrapped_rows_fit_and_lose_nothing(text: str, width: int) -> None:
    """No row is wider than the width, and the rows together hold every sign but blanks."""
    line = clean(text)
    rows = wrap(line, width)
    assert all(cell_len(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == line.replace(" ", "")


@given(st.text(st.sampled_from("ab日本 "), max_size=80), st.integers(4, 40))
def test_cut_text_fits(text: str, width: int) -> None:
    """A cut text is at most as wide as asked."""
    assert cell_len(cut(text, width)) <= width


def test_columns_align_wide_letters() -> None:
    """Cells are padded by what they take on the screen, not by how many letters they have."""
    rows = columns([("日本", "1"), ("a", "100")], left=frozenset({0}))
    assert rows == ["日本    1", "a     100"]


def test_a_label_too_long_has_a_line_of_its_own() -> None:
    """What belongs to it hangs below, in the column that the shorter labels make."""
    page = Page(60)
    page.entries([("context_precision(against=reference)", "0.861"), ("faithfulness", "0.500")])
    assert str(page).splitlines() == [
        "  context_precision(against=reference)",
        "                0.861",
        "  faithfulness  0.500",
    ]


def test_a_page_takes_nothing_in_unclean() -> None:
    """Every way onto a page cleans what is put there."""
    page = Page(60)
    page.line("\x1b[2J")
    page.heading("\x1b[2J")
    page.text("\x1b[2J\n\u202e")
    page.entry("\x1b[2J", "\x1b[2J", column=20)
    page.entries([("\x1b[2J", "\x1b[2J")])
    assert "\x1b" not in str(page)
    assert "\u202e" not in str(page)


def test_letters_that_print_as_blanks_are_shown() -> None:
    """No id looks empty, or like another one, in a terminal or on a page."""
    for each in "\u00ad\u034f\u115f\u1160\u2800\u3164\uffa0\U000e0100":
        assert each not in clean(f"a{each}b")
        assert each not in visible(f"a{each}b")
    assert visible("dé 日本") == "dé 日本"
