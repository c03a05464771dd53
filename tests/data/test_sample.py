import json
from typing import Any

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.data.context import Context
from merilo.data.language import detect_language
from merilo.data.sample import Fingerprint, Sample
from merilo.errors import DataError

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
IDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
LANGUAGE = st.none() | st.sampled_from(["en", "ru", "pt-BR"])
METADATA = st.dictionaries(TEXT, JSON, max_size=2)
CONTEXT = st.builds(
    Context,
    TEXT,
    id=st.none() | IDS,
    score=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    language=LANGUAGE,
    metadata=METADATA,
)
CONTEXTS = st.none() | st.lists(CONTEXT, max_size=3)
SAMPLES = st.builds(
    Sample,
    IDS,
    user_input=st.none() | TEXT,
    retrieved_contexts=CONTEXTS,
    response=st.none() | TEXT,
    reference=st.none() | TEXT,
    reference_contexts=CONTEXTS,
    retrieved_context_ids=st.none() | st.lists(IDS, max_size=3),
    reference_context_ids=st.none() | st.lists(IDS, max_size=3),
    language=LANGUAGE,
    metadata=METADATA,
)


@given(SAMPLES)
def test_a_sample_comes_back_from_its_record(sample: Sample) -> None:
    """Writing a sample as JSON and reading it again gives an equal sample with an equal digest."""
    again = Sample.from_record(json.loads(json.dumps(sample.to_record())))
    assert again == sample
    assert hash(again) == hash(sample)
    assert again.digest == sample.digest


def test_blank_is_present_and_none_is_missing() -> None:
    """A blank text and an empty list are values; only None is missing."""
    sample = Sample("1", response="", retrieved_contexts=[])
    assert sample.present == {"response", "retrieved_contexts", "retrieved_context_ids"}
    assert sample.require("response") == ""
    assert sample.contexts == ()
    assert Sample.from_record(sample.to_record()) == sample


def test_a_context_takes_the_language_of_its_sample() -> None:
    """A context's own language stays; one without takes the sample's."""
    sample = Sample("1", language="ru", retrieved_contexts=["a", Context("b"), Context("c", language="en")])
    assert [context.language for context in sample.contexts] == ["ru", "ru", "en"]


def test_whole_number_ids_become_text() -> None:
    """Ids given as whole numbers are written out; a truth value is no id."""
    sample = Sample(7, retrieved_context_ids=[1, "b"])
    assert (sample.id, sample.retrieved_context_ids) == ("7", ("1", "b"))
    with pytest.raises(DataError, match=r"'id': expected an id .*, got true"):
        Sample(True)


def test_ids_of_contexts_stand_in_for_missing_ids() -> None:
    """Ids are required from the contexts when the sample names none and every context has one."""
    assert Sample("1", retrieved_contexts=[Context("a", id="x")]).require("retrieved_context_ids") == ("x",)
    assert "retrieved_context_ids" not in Sample("1", retrieved_contexts=[Context("a", id="x"), "b"]).present


@each_case(
    ("values", "message"),
    [
        ({"user_input": 3}, "Field 'user_input': expected text, got the number 3."),
        (
            {"response": "a\0b"},
            "Field 'response': expected clean Unicode text, got a NUL character at character 2.",
        ),
        ({"reference": "ab\ud800"}, "lone surrogate U+D800) at character 3"),
        ({"retrieved_contexts": "one"}, "got the text 'one'."),
        (
            {"retrieved_contexts": {"text": "a"}},
            "expected a list of strings or objects with 'text', got an object",
        ),
        ({"retrieved_contexts": {"a", "b"}}, "got a value of type set."),
        ({"retrieved_contexts": ["a", 3]}, "Field 'retrieved_contexts[1]': expected a string or an object"),
        ({"retrieved_contexts": [None]}, "Field 'retrieved_contexts[0]': expected a string or an object"),
        ({"retrieved_contexts": ["\0"]}, "Field 'retrieved_contexts[0].text'"),
        ({"retrieved_contexts": [{"id": 1}]}, "expected an object with 'text'"),
        (
            {"retrieved_contexts": [{"text": None}]},
            "Field 'retrieved_contexts[0].text': expected text, got null.",
        ),
        (
            {"reference_contexts": [{"text": "a", "score": float("inf")}]},
            "expected a finite number, got the number inf",
        ),
        ({"reference_contexts": [{"text": "a", "score": 10**400}]}, "expected a finite number"),
        ({"retrieved_context_ids": "a,b"}, "Field 'retrieved_context_ids': expected a list of ids"),
        ({"retrieved_context_ids": ["a", None]}, "Field 'retrieved_context_ids[1]'"),
        ({"retrieved_context_ids": [1.5]}, "Field 'retrieved_context_ids[0]'"),
        ({"language": "english, please"}, "Field 'language': expected a language code"),
        ({"metadata": []}, "Field 'metadata': expected an object, got an empty list."),
        ({"metadata": {"a": [float("inf")]}}, "Field 'metadata.a[0]': expected a finite number"),
        ({"metadata": {"a": object()}}, "got a value of type object"),
        ({"metadata": {1: 2}}, "expected keys that are text, got the number 1"),
        ({"metadata": {"a": "\udc00"}}, "Field 'metadata.a': expected clean Unicode text"),
        ({"metadata": {"a": 10**5000}}, "got a number too long to show"),
    ],
)
def test_a_wrong_value_is_refused_with_its_field(values: dict[str, Any], message: str) -> None:
    """What a field cannot hold is refused at the door, in one sentence with field and value."""
    with pytest.raises(DataError) as caught:
        Sample("1", **values)
    assert len(caught.value.problems) == 1
    assert message in str(caught.value)


def test_deep_metadata_is_refused() -> None:
    """Metadata nested beyond the limit is a problem, not an exhausted stack."""
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(DataError, match="at most 64 levels"):
        Sample("1", metadata={"a": deep})


def test_all_problems_are_told_at_once() -> None:
    """A sample with several faults names them all, in the order of the checks."""
    with pytest.raises(DataError) as caught:
        Sample("", user_input=1, retrieved_contexts=[1, "ok", 2], metadata=3)
    assert [problem.field for problem in caught.value.problems] == [
        "id",
        "user_input",
        "retrieved_contexts[0]",
        "retrieved_contexts[2]",
        "metadata",
    ]


def test_from_record_takes_only_its_own_names() -> None:
    """Names of other systems are for ``load``; here they are told apart from a missing field."""
    with pytest.raises(DataError, match="got an object with 'answer'"):
        Sample.from_record({"id": "1", "answer": "a"})
    with pytest.raises(DataError, match="Field 'id': expected an id"):
        Sample.from_record({"response": "a"})


def test_the_digest_is_fixed() -> None:
    """The digest of a known sample never changes, since stored runs hold it."""
    sample = Sample("1", user_input="вопрос", retrieved_contexts=["a", Context("b", score=0.5)])
    assert sample.digest == "5818d4858cb6c78f6cfcc7c790bd1c5f"


def test_the_fingerprint_tells_order_and_content() -> None:
    """Two data sets have one fingerprint exactly when they hold equal samples in the same order."""

    def fingerprint(*samples: Sample) -> str:
        taken = Fingerprint()
        for sample in samples:
            taken.add(sample)
        return taken.hexdigest()

    one, two = Sample("1", response="a"), Sample("2", response="b")
    assert fingerprint(one, two) == fingerprint(one, two)
    assert len({fingerprint(), fingerprint(one), fingerprint(one, two), fingerprint(two, one)}) == 4


@each_case(
    ("text", "language"),
    [
        ("", "en"),
        ("Plain text", "en"),
        ("Voilà une réponse", "en"),
        ("Что такое Kubernetes?", "ru"),
        ("The word мерило is Russian, of course", "en"),
        ("什么是Kubernetes?", "zh"),
        ("これは本です", "ja"),
        ("東京タワー", "ja"),
        ("이것은 책입니다", "ko"),
        ("ما هذا؟", "ar"),
        ("Τι είναι αυτό;", "el"),
        ("מה זה?", "he"),
        ("यह क्या है?", "hi"),
        ("นี่คืออะไร", "th"),
        ("→ 3.5 €", "en"),
        ("𝔸𝔹 👍", "en"),
    ],
)
def test_the_script_tells_the_language(text: str, language: str) -> None:
    """The language is told from the script that stands out."""
    assert detect_language(text) == language


@each_case(
    ("values", "language"),
    [
        ({"language": "de", "user_input": "Что?"}, "de"),
        ({"user_input": "Что?", "response": "What"}, "ru"),
        ({"response": "Это ответ"}, "ru"),
        ({"retrieved_contexts": ["Это текст"]}, "ru"),
        ({"retrieved_contexts": []}, "en"),
        ({}, "en"),
    ],
)
def test_a_sample_resolves_its_language(values: dict[str, Any], language: str) -> None:
    """A stated language counts, else the script of the first text that the sample has."""
    assert Sample("1", **values).resolved_language == language
