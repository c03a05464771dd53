"""Rubrics: the texts that questions are asked through."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import meta

from merilo.errors import RubricError
from merilo.judging import rubric
from merilo.judging.questions import (
    Addresses,
    Answered,
    Choice,
    Completion,
    Embeddings,
    Entities,
    Mentions,
    Noncommittal,
    Pack,
    Parts,
    Question,
    Relevance,
    Statements,
    Sufficiency,
    Support,
    Usefulness,
)
from merilo.judging.reply import schema_for

QUESTIONS: dict[str, Question | Pack] = {
    "relevance": Relevance("Who?", ("One.", "Two.")),
    "usefulness": Usefulness("Who?", "Anna.", ("One.", "Two.")),
    "statements": Statements(("One.", "Two."), "Who?"),
    "support": Support("Anna did.", ("One.", "Two.")),
    "sufficiency": Sufficiency("Who?", ("One.", "Two.")),
    "addresses": Addresses("Anna did.", "Who?"),
    "noncommittal": Noncommittal("Who?", "No idea."),
    "support.together": Pack((Support("Anna did.", ("One.",)), Support("Bert did.", ("One.",)))),
    "parts": Parts("Who, and when?"),
    "answered": Answered("Who was it?", ("One.", "Two."), "Who, and when?"),
    "entities": Entities(("One.", "Two.")),
    "mentions": Mentions("Anna the First", ("One.", "Two.")),
    "choice": Choice("How warm is it?", ("icy", "mild"), ("below 0", ""), ("forecast",), ("It snows.",)),
    "answered.together": Pack(
        (Answered("Who was it?", ("One.",), "Why?"), Answered("When was it?", ("One.",), "Why?"))
    ),
    "mentions.together": Pack((Mentions("Anna the First", ("One.",)), Mentions("Bert the Second", ("One.",)))),
    "addresses.together": Pack((Addresses("Anna did.", "Who?"), Addresses("Bert did.", "Who?"))),
}


def test_released_texts_are_unchanged() -> None:
    """Each rubric has the hash that rubrics.lock gives; a new one is locked before it is released."""
    locked = rubric._root().joinpath(rubric.LOCK).read_text(encoding="utf-8").splitlines()
    assert sorted(rubric.lock_lines()) == sorted(locked), "run python -m merilo.judging.rubric --lock, if meant"


@pytest.mark.parametrize("language", ["en", "ru"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_every_kind_has_a_rubric(name: str, language: str) -> None:
    """Each question and pack renders in both languages, and every text it asks about stands in the user part."""
    question = QUESTIONS[name]
    rendered = rubric.render(question, language=language)
    assert rubric.rubric_for(question, language=language).name == f"{language}/{name}.v1"
    assert rendered.system
    for value in rubric.values_of(question).values():
        for text in filter(None, value if isinstance(value, tuple) else (value,)):
            assert str(text) in rendered.user
            assert str(text) not in rendered.system


@pytest.mark.parametrize("language", ["en", "ru"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_examples_are_sound_replies(name: str, language: str) -> None:
    """The form and each worked example have the schema's fields in its order; the examples fit the schema."""
    kind, _, together = name.partition(".")
    schema = dict(schema_for(kind, together=bool(together)))
    lines = rubric.render(QUESTIONS[name], language=language).system.split("\n")
    form, *examples = (line for line in lines if line.startswith("{"))
    fields = re.findall(r'"(\w+)":', form)
    assert examples
    for example in examples:
        reply = json.loads(example)
        jsonschema.validate(reply, schema)
        assert list(reply) == schema["required"]
        inner = next((value for value in reply.values() if isinstance(value, list)), [])
        first = inner[0] if inner and isinstance(inner[0], dict) else {}
        if first:
            assert fields == [*reply, *first]
        else:
            assert fields[: len(reply)] == list(reply)


def test_an_unknown_language_is_asked_in_english() -> None:
    """A question in a language without rubrics gets the English one; a region does not matter."""
    assert rubric.rubric_for(Relevance("?", (), language="eo")).name == "en/relevance.v1"
    assert rubric.rubric_for(Relevance("?", (), language="ru-RU")).name == "ru/relevance.v1"
    assert rubric.rubric_for(Relevance("?", (), language="../ru")).name == "en/relevance.v1"


def test_a_choice_shows_labels_with_their_meaning_and_then_the_texts() -> None:
    """What to do comes first; a label without a definition stands alone; Russian rubrics name the texts in Russian."""
    question = Choice("How warm?", ("icy", "mild"), ("below 0", ""), ("user input", "context 1"), ("Cold?", "Snow."))
    user = rubric.render(question).user
    assert "\n- icy: below 0\n- mild\n" in user
    assert user.index("How warm?") < user.index("- icy") < user.index("<<<user input") < user.index("<<<context 1")
    russian = rubric.render(question, language="ru").user
    assert russian.index("<<<запрос") < russian.index("<<<контекст 1")


def test_wrong_fields_are_named() -> None:
    """A rubric that is filled with other fields than it needs says which it needs and which came."""
    with pytest.raises(RubricError) as caught:
        rubric.load("en/noncommittal.v1").fill({"user_input": "?", "answer": "!"})
    assert str(caught.value) == (
        "Rubric 'noncommittal.v1' needs the fields ['response', 'user_input'], got ['answer', 'user_input']."
    )


@pytest.mark.parametrize("name", ["../errors", "/etc/passwd", "en/../en/support.v1", "en/none.v1", "", "en"])
def test_only_files_under_rubrics_are_loaded(name: str) -> None:
    """A name that leaves the folder, or names no rubric, is an error."""
    with pytest.raises(RubricError, match="There is no rubric"):
        rubric.load(name)


def test_a_kind_without_rubric_is_an_error() -> None:
    """Vectors are not asked for in words."""
    with pytest.raises(RubricError, match=r"no rubric 'embeddings\.v1'"):
        rubric.render(Embeddings(("a",)))


def test_a_completion_names_its_rubric_itself() -> None:
    """A completion is filled from its own names and values."""
    question = Completion("en/noncommittal.v1", ("user_input", "response"), ("Who?", "No idea."))
    assert rubric.render(question) == rubric.render(Noncommittal("Who?", "No idea."))


def test_braces_in_a_text_stay_text() -> None:
    """A text that looks like a template is not run."""
    assert "{{ 7 * 7 }} {% for %}" in rubric.render(Noncommittal("Who?", "{{ 7 * 7 }} {% for %}")).user


def test_what_repeats_comes_first() -> None:
    """Two packs over the same contexts differ only after the contexts."""
    contexts = ("A long context.", "Another.")
    first = rubric.render(Pack((Support("One.", contexts), Support("Two.", contexts))))
    second = rubric.render(Pack((Support("Three.", contexts), Support("Four.", contexts))))
    assert first.system == second.system
    same = next(n for n, (a, b) in enumerate(zip(first.user, second.user, strict=False)) if a != b)
    assert "Another.\ncontext 2" in first.user[:same]


def test_a_sentence_takes_one_line() -> None:
    """A line break within a sentence cannot begin a line with a number of its own."""
    user = rubric.render(Relevance("?", ("One\n[2] false", "\u2028[3] false\x85[4] false"))).user
    assert re.findall(r"^\[(\d+)\]", user, re.MULTILINE) == ["1", "2"]
    assert len(user.splitlines()) == len(user.split("\n"))


@given(st.text(), st.integers(min_value=0, max_value=3))
def test_no_text_holds_its_own_fence(text: str, rounds: int) -> None:
    """Whatever a text holds, also the token of an earlier fence, its closing line stands once: at the end."""
    fenced = rubric.fenced(text, "context")
    for _ in range(rounds):
        fenced = rubric.fenced(fenced + text, "context")
    closing = fenced.split("\n")[-1]
    assert fenced.count(closing) == 1
    assert fenced.count(closing.removeprefix("context ").removesuffix(">>>")) == 2


def test_a_token_that_stands_in_the_text_is_replaced() -> None:
    """Should a text ever hold its own token, the next one is taken, always the same."""
    digest = bytes.fromhex("ab" * 16)
    plain = rubric._token(digest, "some text")
    other = rubric._token(digest, f"some text {plain}")
    assert plain == "ab" * 6
    assert other != plain
    assert other == rubric._token(digest, f"more text {plain}")


@given(st.lists(st.text(), max_size=5))
def test_equal_content_gives_equal_bytes(texts: list[str]) -> None:
    """Rendering depends on nothing but the content."""
    question = Sufficiency("Who?", tuple(texts))
    assert rubric.render(question) == rubric.render(Sufficiency("Who?", tuple(texts)))


@pytest.mark.parametrize("path", rubric._paths(rubric._root()))
def test_joined_parts_are_what_jinja_makes(path: str) -> None:
    """A part with no markup but filtered fields is joined, to the text that jinja gives, and needs the same fields."""
    text = rubric.load(path).text
    assert rubric.load(path).needs == frozenset(meta.find_undeclared_variables(rubric._environment().parse(text)))
    for part in rubric._divided(text):
        literals, places = rubric._cut(part)
        if not rubric._plain(literals):
            continue
        for value in ("", "plain", "two\n\r\nlines {{ 7 }} {% x %}", "  край\u2028 "):
            values = {name: value if kind == "fenced" else (value, "other") for name, kind, _ in places}
            assert "".join(rubric._filling(part)(values)) == rubric._environment().from_string(part).render(values)


def test_what_is_shared_is_known_by_its_length() -> None:
    """Packs over the same contexts begin alike up to a length that is told; a kind that shares nothing tells none."""
    contexts = ("A long context.", "Another.")
    rendered, shared = rubric.render_shared(Pack((Support("One.", contexts), Support("Two.", contexts))))
    other = rubric.render(Support("Three.", contexts))
    assert rendered.user[:shared] == other.user[:shared]
    assert "Another." in rendered.user[:shared]
    assert "One." not in rendered.user[:shared]
    assert rubric.render_shared(Relevance("?", contexts)).shared == 0
