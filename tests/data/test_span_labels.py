"""Labels of spans: precedence, order, and files."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from hypothesis import given, settings
from hypothesis import strategies as st

from merilo.data.corpus import Documents, load_documents
from merilo.data.sample import Sample
from merilo.data.sentences import DenseSpan, Span, dense
from merilo.data.span_labels import (
    SpanLabel,
    load_judged,
    place_of,
    pooled,
    read_span_labels,
)
from merilo.errors import DataError, UsageError

TEXT = "Cafe\u0301 au lait.\r\n\r\nIt is\u00a0hot 😀."
CORPUS = Documents({"menu": TEXT, "empty": " \n", "rome": "Rome has seven hills."})
AUTHORS = ("people", "ann", "judge:a", "judge:b")
label = st.builds(
    lambda a, b, document, grade, by: SpanLabel("s", DenseSpan(document, min(a, b), max(a, b)), grade, by),
    st.integers(0, 12),
    st.integers(0, 12),
    st.sampled_from(["d", "e"]),
    st.sampled_from([0.0, 1.0, 2.0]),
    st.sampled_from(AUTHORS),
)


def written(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return path


@given(st.lists(label, max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_pooling_order_changes_nothing(labels: list[SpanLabel], chance: random.Random) -> None:
    """Labels in any order, and pooled in parts, give the same spans."""
    expected = pooled(labels)
    shuffled = list(labels)
    chance.shuffle(shuffled)
    assert pooled(shuffled) == expected
    half = len(shuffled) // 2
    assert pooled([*pooled(shuffled[:half]), *pooled(shuffled[half:])]) == expected


@given(st.lists(label, max_size=12))
@settings(max_examples=200, deadline=None)
def test_each_character_has_the_label_that_applies(labels: list[SpanLabel]) -> None:
    """People win over judges, then the highest grade, then the name; no character has two labels or loses its one."""
    found = pooled(labels)
    for document in ("d", "e"):
        for at in range(13):
            own = [each for each in labels if each.span.document == document and each.span.start <= at < each.span.end]
            got = [each for each in found if each.span.document == document and each.span.start <= at < each.span.end]
            people = [each for each in own if not each.by.startswith("judge:")]
            best = min(people or own, key=lambda each: (-each.grade, each.by), default=None)
            assert [(each.grade, each.by) for each in got] == ([] if best is None else [(best.grade, best.by)])


def test_many_overlapping_labels_are_pooled_quickly() -> None:
    """20,000 nested spans, of which each inner one has a higher grade, need no quadratic time."""
    size = 20_000
    labels = [SpanLabel("s", DenseSpan("d", at, 2 * size - at), float(at)) for at in range(size)]
    assert len(pooled(labels)) == 2 * size - 1


@given(st.text("a é\u0301界😀\r\n\u200b ", max_size=30), st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=200, deadline=None)
def test_positions_are_code_points(text: str, first: int, second: int) -> None:
    """A span survives the way to dense positions and back, except for white space at its ends."""
    start, end = sorted((first % (len(text) + 1), second % (len(text) + 1)))
    corpus = Documents({"other": "b", "d": text})
    found = corpus["d"].dense_of(Span(start, end))
    assert dense(text)[found.start : found.end] == dense(text[start:end])
    if found.start < found.end:
        own = corpus["d"].span_of(*found)
        assert text[own.start : own.end] == text[start:end].strip()
        place = corpus.find(text[start:end], "d")
        assert place is not None
        assert dense(corpus.text_of(place)) == dense(text[start:end])


@each_case(
    ("fields", "expected"),
    [
        ({"document": "menu", "start": 0, "end": 5}, (0, 5)),
        ({"document": "menu", "start": 5, "end": 18}, (5, 12)),
        ({"document": "menu", "start": 0, "end": 14, "text": "Cafe\u0301  au lait."}, (0, 12)),
        ({"text": "It is hot"}, (12, 19)),
        ({"document": "menu"}, (0, 21)),
    ],
)
def test_ways_to_name_a_span(tmp_path: Path, fields: dict[str, Any], expected: tuple[int, int]) -> None:
    """By offsets, by offsets with the text, by text in any white space, and a whole document."""
    path = written(tmp_path / "a.jsonl", {"sample": "s", "grade": 1, **fields})
    assert read_span_labels(path, CORPUS) == (SpanLabel("s", DenseSpan("menu", *expected), 1.0),)


@each_case(
    ("fields", "message"),
    [
        ({"document": "nowhere"}, "the id of a document"),
        ({"document": "menu", "start": 3, "end": 999}, f"offsets from 0 to {len(TEXT)}"),
        ({"document": "menu", "start": 5, "end": 4}, f"offsets from 0 to {len(TEXT)}"),
        ({"document": "menu", "start": -1, "end": 4}, f"offsets from 0 to {len(TEXT)}"),
        ({"document": "menu", "start": 1.5, "end": 4}, f"offsets from 0 to {len(TEXT)}"),
        ({"document": "menu", "start": 3}, f"offsets from 0 to {len(TEXT)}"),
        ({"document": "menu", "start": 14, "end": 18}, "a span with text"),
        ({"document": "menu", "start": 0, "end": 4, "text": "Rome"}, "at these offsets"),
        ({"text": "Not there."}, "a text that is in the documents"),
        ({"document": "menu", "text": "Rome"}, "a text that is in the document 'menu'"),
        ({}, "the id of a document, or a text"),
        ({"document": "menu", "grade": "high"}, "a finite number"),
        ({"document": "menu", "grade": True}, "a finite number"),
        ({"document": "menu", "grade": 1e308}, "a number up to 1,000,000"),  # its gain would be infinite
        ({"document": "menu", "sample": None}, "an id"),
    ],
)
def test_wrong_labels_are_named(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    """Each wrong label is reported with its file and line."""
    path = written(tmp_path / "a.jsonl", {"sample": "s", "grade": 1, **fields})
    with pytest.raises(DataError, match=r"a\.jsonl, line 1") as caught:
        read_span_labels(path, CORPUS)
    assert message in str(caught.value)


def test_a_grade_of_null_is_no_label(tmp_path: Path) -> None:
    """A line that an annotator has not filled in is skipped."""
    path = written(tmp_path / "a.jsonl", {"sample": "s", "document": "menu", "grade": None})
    assert read_span_labels(path, CORPUS) == ()


def test_a_context_is_found_by_offsets_then_by_text() -> None:
    """Offsets that fit the text are used; others, outside the document or at another text, leave it to the text."""

    def place(text: str, **metadata: Any) -> DenseSpan | None:
        sample = Sample("s", retrieved_contexts=[{"text": text, "metadata": metadata}])
        return place_of(sample.contexts[0], CORPUS)

    assert place("Title: Rome has", document="rome", start=0, end=8) == DenseSpan("rome", 0, 7)
    assert place("Rome has", document="rome", start=0, end=99) == DenseSpan("rome", 0, 7)
    assert place("seven hills.", document="rome", start=0, end=8) == DenseSpan("rome", 7, 18)
    assert place("Rome has", document="unknown") == DenseSpan("rome", 0, 7)
    assert place("Rome has", document="menu") is None
    assert place(" \n") is None


def test_wrong_documents_are_named(tmp_path: Path) -> None:
    """An id twice, a missing text and an empty file are reported."""
    path = written(tmp_path / "d.jsonl", {"id": "a", "text": "x"}, {"_id": "a", "text": "y"}, {"id": "b"})
    with pytest.raises(DataError, match=r"line 2.*'a' again.*line 3.*'id' and 'text'"):
        load_documents(path)
    with pytest.raises(DataError, match="at least one document"):
        load_documents(written(tmp_path / "empty.jsonl"))


def test_span_labels_need_documents() -> None:
    """Span labels without documents, and TREC qrels with them, are refused with what to do."""
    with pytest.raises(UsageError, match="--documents"):
        load_judged("a.jsonl", "b.jsonl", None, mapping=None, language=None)
    with pytest.raises(UsageError, match="Leave out --documents"):
        load_judged("a.jsonl", "b.qrels", "d.jsonl", mapping=None, language=None)


def test_trec_qrels_score_trec_runs_only() -> None:
    """Records with TREC qrels are refused in one sentence, instead of one for each line that is not a TREC line."""
    with pytest.raises(UsageError, match=r"TREC run only \(six fields.*a\.jsonl is read as records.*span labels"):
        load_judged("a.jsonl", "b.trec", None)
