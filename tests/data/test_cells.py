"""Printed lists in cells of a table: what JSON, Python, numpy and pandas write is read back exactly or refused."""

import csv
import io
import json
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.data.content import CellError, list_in_cell
from merilo.data.load import load
from merilo.data.sample import BadRecord, Sample

TRICKY = st.sampled_from(
    [
        *("", "'", '"', "\\", "\n", "\r\n", "\t", "[", "]", ",", "...", " ", "{", '{"a": 1}', "it's", "' '", "', '"),
        *("array([", "nan", "None", "\x85", "\u2028", "\u200b", "\ufeff", "\U0001f600", "é", "x" * 80, "\\'", '\\"'),
    ]
)
TEXTS = st.lists(
    st.lists(TRICKY | st.text(max_size=8), max_size=6).map("".join), max_size=8
)  # no lone surrogates: no file holds them


def objects(texts: list[str]) -> Any:
    """What datasets and pandas make of a list of texts."""
    found = np.empty(len(texts), dtype=object)
    found[:] = texts
    return found


FORMS: dict[str, Callable[[list[str]], str]] = {
    "str(list)": str,
    "str(tuple)": lambda texts: str(tuple(texts)),
    "str(list of numpy texts)": lambda texts: str([np.str_(text) for text in texts]),
    "str(deque)": lambda texts: str(deque(texts)),
    "str(deque with a limit)": lambda texts: str(deque(texts, maxlen=9)),
    "json": json.dumps,
    "json, raw": lambda texts: json.dumps(texts, ensure_ascii=False, indent=1),
    "str(array of objects)": lambda texts: str(objects(texts)),
    "repr(array of objects)": lambda texts: repr(objects(texts)),
}


@each_case("form", FORMS)
@given(texts=TEXTS)
def test_a_printed_list_is_read_exactly(form: str, texts: list[str]) -> None:
    """Whatever the texts hold, each printed form gives them back; numpy drops NUL characters at the end of a text."""
    if "numpy texts" in form:
        texts = [text.rstrip("\0") for text in texts]
    assert list_in_cell(FORMS[form](texts)) == texts


@pytest.mark.parametrize("form", [str, repr])
@given(texts=TEXTS)
def test_an_array_of_fixed_width_is_read_as_it_holds_them(form: Callable[[Any], str], texts: list[str]) -> None:
    """Numpy itself drops NUL characters at the end of texts of a fixed width; all else comes back."""
    array = np.array(texts, dtype=np.str_)
    assert list_in_cell(form(array)) == array.tolist()


@given(rows=st.lists(TEXTS, min_size=1, max_size=3))
def test_columns_that_pandas_writes_are_read_exactly(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    """Through a file written by pandas the contexts are the same, or, for NUL characters, refused with their place."""
    pandas = pytest.importorskip("pandas")
    path = tmp_path_factory.getbasetemp() / "pandas.csv"
    for form in (list, tuple, objects, json.dumps):
        frame = pandas.DataFrame({"user_input": ["q"] * len(rows), "contexts": [form(texts) for texts in rows]})
        frame.to_csv(path, index=False)
        for texts, item in zip(rows, load(path), strict=True):
            if any("\0" in text for text in texts):
                assert isinstance(item, BadRecord)
            else:
                assert isinstance(item, Sample)
                assert [context.text for context in item.contexts] == texts


def cell(text: str) -> str:
    """The text as one quoted cell of a CSV file."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerow([text])
    return out.getvalue().rstrip("\r\n")


def contexts_of(path: Path, text: str) -> list[str] | str:
    """The contexts that a cell holds, or the message of its problem."""
    path.write_text(f"user_input,contexts\nq,{cell(text)}\n", encoding="utf-8")
    (item,) = load(path)
    if isinstance(item, BadRecord):
        return " ".join(problem.message for problem in item.problems)
    return [context.text for context in item.contexts] if item.retrieved_contexts is not None else "missing"


@each_case(("text", "contexts"), [
        ("""['A plain text.' 'Some JSON: {"a": 1}']""", ["A plain text.", 'Some JSON: {"a": 1}']),
        ("['The tower is of iron.'\n 'Completed in 1889.']", ["The tower is of iron.", "Completed in 1889."]),
        ("['a'\r\n 'b']", ["a", "b"]),
        ("""["it's" 'b']""", ["it's", "b"]),
        ("array(['a', 'b'], dtype=object)", ["a", "b"]),
        ("array(['a', 'b'],\n      dtype='<U1')", ["a", "b"]),
        ("numpy.array(['a'])", ["a"]),
        ("array([], dtype=float64)", []),
        ("array([], shape=(0,), dtype=StringDType())", []),
        ("[{'text': 'a', 'score': np.float64(0.5)} {'text': 'b', 'score': nan}]", ["a", "b"]),
        ("('a', 'b')", ["a", "b"]),
        ("('a',)", ["a"]),
        ("['...']", ["..."]),
        ('[\n "a",\n "b"\n]', ["a", "b"]),
        ("('a')", ["('a')"]),
        ("(see above) It was built in 1889.", ["(see above) It was built in 1889."]),
        ("arrays ['a']", ["arrays ['a']"]),
        ('{"text": "a"}', ["a"]),
        ('{"matches": [{"id": 1, "metadata": {"text": "a"}}]}', ["a"]),
        ("{'text': 'a'}", ["a"]),
        ("[1] It was built in 1889.", ["[1] It was built in 1889."]),
        ("[Note] It is [very] old.", ["[Note] It is [very] old."]),
        ("{}", ["{}"]),
        ("{1, 2} is a set.", ["{1, 2} is a set."]),
        ('"The tower", he said.', ['"The tower", he said.']),
        ('"[1]" is a footnote.', ['"[1]" is a footnote.']),
        ("\ufeff['a']", ["a"]),
        ("list([1]) makes a copy.", ["list([1]) makes a copy."]),
        (json.dumps("['a', 'b']"), ["a", "b"]),
        ("[Document(metadata={'page': 1}, page_content='a')]", ["a"]),
    ])  # fmt: skip
def test_what_a_cell_holds(text: str, contexts: list[str], tmp_path: Path) -> None:
    """Lists as they are printed are lists; other text is one context, also in parentheses or braces."""
    assert contexts_of(tmp_path / "d.csv", text) == contexts


@each_case(
    ("text", "reason"),
    [
        ("['a' 'b', 'c']", "with a comma missing between two items"),
        ("""["a" "b"]""", "with a comma missing between two items"),
        ("['a''b']", "got the text"),
        ("array(['a' 'b'])", "with a comma missing between two items"),
        ("['a' 'b' ... 'y' 'z']", "shortened to '...' when it was printed"),
        ("['a', ..., 'z']", "shortened to '...' when it was printed"),
        ("['C:\\data']", "with the unknown escape"),
        ("['\\N{BULLET}']", "with the unknown escape"),
        ("[b'a' b'b']", "got the text"),
        ("[f'a']", "got the text"),
        ("['a' + 'b']", "got the text"),
        ("['a'] and more", "got the text"),
        ("['a'", "got the text"),
        ("['a\nb']", "got the text"),
        ("['''a''']", "got the text"),
        ("[Paris is nice]", "got the text"),
        ("<StringArray>\n['a', 'b']\nLength: 2, dtype: str", "got the text"),
        ("[" * 5000 + "]" * 5000, "nested too deeply"),
        ("{'a', 'b'}", "a set, which has no order"),
        ("Index(['a', 'b'], dtype='object')", "got the text"),
        ("frozenset({'a', 'b'})", "got the text"),
        ("[['a' 'b']\n ['c' 'd']]", "field 'retrieved_contexts[0]': expected a string"),
        ('[{"text": "a", "text": "b"}]', "got the text"),
        ("['\\ud83d\\ude00']", "lone surrogate"),
        ("['a\\x00']", "NUL character"),
        ("['a', None]", "field 'retrieved_contexts[1]': expected a string or an object with 'text', got null"),
        ("['a' nan]", "field 'retrieved_contexts[1]': expected a string or an object with 'text', got NaN"),
        ('["a", NaN]', "field 'retrieved_contexts[1]': expected a string or an object with 'text', got NaN"),
        ("['a' <NA>]", "field 'retrieved_contexts[1]': expected a string or an object with 'text', got NaN"),
    ],
)
def test_what_is_not_printed_exactly_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    """A cell that begins like a list and cannot be read exactly is an error, never some other list."""
    found = contexts_of(tmp_path / "d.csv", text)
    assert isinstance(found, str)
    assert reason in found
    assert found.startswith("d.csv, line 2")


def test_a_list_that_numpy_shortened_is_refused() -> None:
    """Numpy prints three items of each end of a list of more than a thousand: the others are lost."""
    for form in (str, repr):
        with pytest.raises(CellError, match="items are lost"):
            list_in_cell(form(objects(["a"] * 1001)))


@pytest.mark.parametrize("ids", [[3, 10, 200], ["d1", "d2"]])
def test_ids_that_numpy_printed_are_read(ids: list[Any], tmp_path: Path) -> None:
    """Ids may be numbers, which numpy pads with spaces."""
    path = tmp_path / "d.csv"
    path.write_text(f"user_input,retrieved_context_ids\nq,{cell(str(np.array(ids)))}\n", encoding="utf-8")
    (sample,) = load(path)
    assert isinstance(sample, Sample)
    assert sample.retrieved_context_ids == tuple(map(str, ids))


@given(st.text(alphabet="[]()'\", \n\\anN.x0{}:", max_size=30))
def test_any_cell_is_a_list_a_text_or_refused(text: str) -> None:
    """No arrangement of the signs of lists brings another error, and a list that was read is not implicitly joined."""
    try:
        found = list_in_cell(text)
    except CellError:
        return
    if found is not None and all(isinstance(item, str) for item in found):
        joined = "".join(str(item) for item in found)
        assert len(joined) + 2 * len(found) <= len(text)


@each_case(
    ("column", "mapping", "text", "reference"),
    [
        ("ground_truths", None, "['Eiffel.']", "Eiffel."),
        ("ground_truths", None, "array(['Eiffel.'], dtype=object)", "Eiffel."),
        ("ground_truths", None, "['Eiffel.' 'G. Eiffel.']", "got a list of 2 in the column 'ground_truths'"),
        ("ground_truths", None, "[1] Eiffel.", "[1] Eiffel."),
        ("ground_truths", {"ground_truths": "reference"}, "['Eiffel.' 'G. Eiffel.']", "Eiffel."),
        ("gold", {"gold": "reference"}, "['Eiffel.' 'G. Eiffel.']", "Eiffel."),
        ("gold", {"gold": "reference"}, "[1] Eiffel.", "[1] Eiffel."),
        ("gold", {"gold": "reference"}, "[]", "[]"),
        ("gold", {"gold": "reference"}, '[{"a": 1}]', '[{"a": 1}]'),
        ("ground_truths", None, '[{"a": 1}]', "field 'reference': expected text, got an object with 'a'"),
        ("ground_truths", None, "[1889]", "1889"),
    ],
)
def test_a_text_field_keeps_a_text_in_brackets(
    column: str, mapping: dict[str, str] | None, text: str, reference: str, tmp_path: Path
) -> None:
    """A text is never lost for looking like a list; a column of lists whose cell cannot be read is an error."""
    path = tmp_path / "d.csv"
    path.write_text(f"user_input,{column}\nq,{cell(text)}\n", encoding="utf-8")
    (item,) = load(path, mapping=mapping)
    if isinstance(item, BadRecord):
        assert reference in item.problems[0].message
    else:
        assert item.reference == reference


@pytest.mark.parametrize("opening", ["{", "{[", "{('x',), "])
def test_nested_sets_are_read_once(opening: str) -> None:
    """A cell of nested sets is read in steps that grow with its length, not with two to the depth."""
    closing = "".join({"{": "}", "[": "]"}.get(char, "") for char in reversed(opening.replace("(", "")))
    levels = 30 // len(closing)
    began = time.process_time()
    with suppress(CellError):
        list_in_cell(f"[{opening * levels}'a'{closing * levels}]")
    assert time.process_time() - began < 1
