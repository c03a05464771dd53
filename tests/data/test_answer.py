"""Answers as they are judged: frames that are removed, content that looks like one, and the laws of reading."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from hypothesis import given, settings
from hypothesis import strategies as st

from merilo.data.answer import Reading, judged, one_form, read_answer
from merilo.data.citations import Contexts
from merilo.data.sample import Sample

PLAIN = "The mill opens at nine on weekdays and closes at six in the evening."
ROWS: list[dict[str, Any]] = [  # Any: texts and lists of texts
    json.loads(line) for line in Path(__file__).with_name("answers.jsonl").read_text("utf-8").splitlines()
]


MILL = Contexts(("The mill opened in 1990.", "When did the mill open?"), (None, None))


@pytest.mark.parametrize(
    "text",
    [
        "No source says that the mill opened in 1990.",
        "In no document it is stated that the mill opened in 1990.",
        "Only one document says that the mill opened in 1990.",
        "The mill opened in 1990, based on no document.",
        "No se indica en el contexto que el molino abrió en 1990.",
        "The mill opened in 1990. I am confident that Napoleon burned it down in winter.",
        "The mill opened in 1990. Sorry, the mill burned down last year.",
        "The mill opened in 1990. I hope this helps, the mill was built by Napoleon.",
        "The mill opened in 1990. Was it not Napoleon who built the mill?",
        "I have read that Napoleon burned it. The mill opened in 1990.",
        "The mill is [not] open.",
        '{"answer": "The mill opened in 1990."} Napoleon built it.',
        '{"answer": "The mill opened.", "answer": "It burned."}',
        '["The mill opened in 1990.", {"x": "Napoleon", "y": "Paris"}]',
        '"x"' + "]" * 3,
    ],
)
def test_claims_in_the_form_of_frames_stay(text: str) -> None:
    """A negation, a name, a value or a word of the question is a claim, wherever a frame may be."""
    assert read_answer(text, MILL) == text


@pytest.mark.parametrize("levels", [10, 500, 900, 5_000])
def test_nested_json_is_read_up_to_a_limit(levels: int) -> None:
    """An answer of nested lists is left as it is."""
    text = f'<think>a</think>{"[" * levels}"x y"{"]" * levels}'
    assert read_answer(text).startswith("[")


@each_case("frame", [each["frame"] for each in ROWS if "frame" in each])
def test_a_frame_around_an_answer_is_removed(frame: str) -> None:
    """The answer in each frame is read as the answer alone; `{l}` and `{b}` are its text within a sentence."""
    framed = frame.replace("{p}", PLAIN).replace("{l}", PLAIN[0].lower() + PLAIN[1:]).replace("{b}", PLAIN[:-1])
    assert read_answer(framed, Contexts((PLAIN,), ("faq-7",))) == PLAIN


@each_case(("content", "context"), [(each["content"], each.get("context", "")) for each in ROWS if "content" in each])
def test_content_that_looks_like_a_frame_stays(content: str, context: str) -> None:
    """What a context has too, code, variables, names and sentences that only begin like a frame are the answer."""
    assert read_answer(content, Contexts((context,))) == content


@given(st.text(alphabet="ab .,:\n[](){}<>/&;`*_#-|12„“”'\"†【】¹", max_size=80))
@settings(max_examples=400, deadline=None)
def test_any_text_is_read(text: str) -> None:
    """Reading never fails, a text with a word keeps one, and nothing is left for a second reading."""
    once = read_answer(text)
    assert any(map(str.isalnum, once)) is any(map(str.isalnum, text))
    assert read_answer(once) == once


@given(st.lists(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=9), min_size=1, max_size=30))
@settings(max_examples=200, deadline=None)
def test_a_text_of_letters_is_unchanged(words: list[str]) -> None:
    """Without signs and words of a frame there is nothing to remove."""
    text = " ".join(f"z{word}" for word in words) + "."
    assert read_answer(text) == text


@each_case(
    ("text", "expected"),
    [
        ("Sources:\n- Sun [1]\n- Wind [2]", "Sources:\n\nSun\n\nWind"),
        ("Answer:", "Answer:"),
        ("<think>It is old", "It is old"),
        ("**Answer:** [1]", "[1]"),
        ("I hope this helps!", "I hope this helps!"),
    ],
)
def test_a_step_that_would_leave_no_word_is_not_done(text: str, expected: str) -> None:
    """A list that is the answer stays, and so does an answer of frames alone."""
    assert read_answer(text) == expected


def test_a_table_is_read_by_its_cells() -> None:
    """Each cell has the name of its row and the header of its column."""
    table = "Here it is:\n\n| Town | Founded |\n|---|---|\n| Lund | 990 |\n| Visby | 900 |"
    assert read_answer(table) == "Here it is:\n\nTown: Lund; Founded: 990\n\nTown: Visby; Founded: 900"


def test_a_sample_is_read_as_a_metric_declares() -> None:
    """Citation marks stay for metrics of citations; the reference is read without the contexts."""
    sample = Sample(
        "s", retrieved_contexts=("Article [1] is old.",), response="**It** is [1].", reference="Article [1]"
    )
    assert judged(sample, Reading.RAW) is sample
    assert judged(sample, Reading.MARKED).response == "It is [1]."
    assert judged(sample).response == "It is."
    assert judged(sample).reference == "Article"
    assert judged(plain := Sample("s", response="It is old.")) is plain


def test_texts_have_one_form() -> None:
    """Spaces, quotes and ligatures of other programs are those of plain text; zero-width characters are removed."""
    assert one_form("\u201cof\ufb01ce\u201d\u00a0\u200bis\u202fit\u2019s") == '"office" is it\'s'


@each_case(
    "piece",
    [
        *("[1]", "(doc 1) ", "Sure! ", "source: a.pdf\n", "?", "<b>", "*a ", "| a | b |\n", "according to the text, "),
        *('{"a": "', "<details>", "<think>", "\\boxed{", "Question: x\n", "\nUser: ", "[[", "```", "a.1 ", " .", "“"),
    ],
)
def test_a_hostile_text_takes_linear_time(piece: str) -> None:
    """Tens of thousands of characters of frames are read at once; of a longer text only reasoning is removed."""
    for length in (30_000, 200_000):
        started = time.process_time()
        read_answer(piece * (length // len(piece)))
        assert time.process_time() - started < 3
