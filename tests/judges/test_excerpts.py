"""Texts that the embedded judge does not read whole, or not at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

import merilo
from merilo.data.sentences import sentences
from merilo.judges import blended, embedded_provider
from merilo.judges.blended import BlendedModel, CannotJudge
from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.embedded_provider import MAX_ASKED, MAX_CONTEXT, MAX_CONTEXTS, MAX_RESPONSE, RULES, too_long
from merilo.judges.encoder.model import Encoded, Encoder
from merilo.judges.encoder.wordpiece import Window
from merilo.judges.words import stems
from merilo.judging import digests
from merilo.judging.kinds.contexts import Relevance, Sufficiency, Support, Usefulness
from merilo.judging.kinds.measured import Embeddings, Similarities
from merilo.judging.kinds.responses import Addresses, Noncommittal, Statements
from merilo.judging.questions import Question

ASKED = "How tall is the tower of Larkham?"
ANSWER = "The tower of Larkham is 61 metres tall."


def filler(sentences_wanted: int) -> list[str]:
    """Sentences about other things, no two alike."""
    return [f"Ship number {n} brought grain and wool to harbour {n % 7} in spring." for n in range(sentences_wanted)]


def read_of(contexts: list[list[str]], *asked: str) -> list[blended.Excerpt]:
    """What is read of these contexts for these texts."""
    return blended.excerpts(BlendedModel.load(), asked or (ASKED,), contexts)


def tokens(excerpt: blended.Excerpt) -> int:
    """The size of an excerpt in tokens."""
    return sum(map(len, map(BlendedModel.load().features.encodings.encoder.wordpiece.ids, excerpt.sentences)))


def test_a_long_context_is_read_where_it_shares_words_with_the_question() -> None:
    """Of 100,000 characters more than a quarter is left out, and the passage with the answer is not."""
    texts = filler(3_000)
    texts[2_345] = ANSWER
    (found,) = read_of([texts])
    assert found.places is not None
    assert list(found.places) == sorted(set(found.places))
    assert found.sentences == tuple(texts[place] for place in found.places)
    assert 2_345 in found.places
    assert blended.CONTEXT_SIZE - blended._PASSAGE_SIZE <= tokens(found) <= blended.CONTEXT_SIZE


def test_evidence_is_numbered_by_the_whole_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict about an excerpt points at the sentence of the context, and its reason says what was read."""
    monkeypatch.setattr(blended, "CONTEXT_SIZE", 500)
    texts = filler(300)
    texts[234] = ANSWER
    model = BlendedModel.load()
    relevance = embedded_provider._relevance(model, Relevance(ASKED, tuple(texts)))
    assert relevance.grade > 0
    assert relevance.evidence == (234,)
    assert "passages that share most words" in relevance.reason
    useful = embedded_provider._usefulness(model, Usefulness(ASKED, ANSWER, tuple(texts)))
    assert (useful.useful, useful.evidence) == (True, (234,))
    supported = embedded_provider._support(model, Support(ANSWER, ("Rain fell.", " ".join(texts))))
    assert (supported.label, supported.evidence) == ("supported", (1,))


def test_the_question_repeated_is_no_passage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A context cannot fill its excerpt with the question, so that the answer is left out."""
    monkeypatch.setattr(blended, "CONTEXT_SIZE", 500)
    texts = [ASKED] * 300
    texts[234] = ANSWER
    (found,) = read_of([texts])
    assert found.places is not None
    assert 234 in found.places


@each_case(
    "text",
    [
        "x" * 200_000,
        "1234567890" * 20_000,
        "word " * 40_000,
        "?!.," * 50_000,
        "東京は日本の首都" * 25_000,
        "\u200b" * 200_000,
    ],
)
def test_one_endless_sentence_is_read_in_part(text: str) -> None:
    """A text without ends of sentences has a size too, and a part of it is read."""
    (found,) = read_of([list(sentences(text))])
    assert found.places == (0,)
    assert 0 < sum(map(len, found.sentences)) <= 6.1 * blended.CONTEXT_SIZE
    assert tokens(found) <= blended.CONTEXT_SIZE


@pytest.mark.parametrize("asked", [ASKED, " ".join(filler(40))])
def test_many_contexts_share_what_a_question_may_read(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short ones are read whole, long ones to one length; a long statement leaves less room for all of them."""
    monkeypatch.setattr(blended, "CONTEXT_SIZE", 2_000)
    monkeypatch.setattr(blended, "QUESTION_SIZE", 6_000)
    monkeypatch.setattr(blended, "MAX_PAIRS", 50)
    short, long = filler(3), filler(250)
    read = read_of([long, short, long, long, long, long], asked)
    assert read[1].places is None
    sizes = [tokens(each) for each in read if each.places is not None]
    assert len(sizes) == 5
    assert max(sizes) - min(sizes) <= blended._PASSAGE_SIZE
    size = len(BlendedModel.load().features.encodings.encoder.wordpiece.ids(asked))
    assert sum(map(tokens, read)) <= min(6_000, 50 * 127 // -(-size // 127))


def test_what_is_encoded_does_not_grow_with_a_huge_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """A context of twenty thousand tokens costs the encoder no more than one of four thousand, if that is the limit."""
    monkeypatch.setattr(blended, "CONTEXT_SIZE", 4_000)
    windows = 0
    encode: Callable[[Encoder, Window], Encoded] = Encoder.encode_window

    def counted(encoder: Encoder, window: Window) -> Encoded:
        nonlocal windows
        windows += 1
        return encode(encoder, window)

    monkeypatch.setattr(Encoder, "encode_window", counted)
    with pytest.raises(CannotJudge):
        RULES[Support](BlendedModel.load(), Support("The tower of Larkham is tall.", (" ".join(filler(1_350)),)))
    assert 20 < windows < 30


LONG: dict[str, tuple[Question[Any], str]] = {
    "user input": (Relevance("a" * (MAX_ASKED + 1), ("b",)), "The user input has 20,001 characters"),
    "statement": (Support("a" * (MAX_ASKED + 1), ("b",)), "The statement has 20,001 characters"),
    "reference": (Usefulness("a", "b" * (MAX_ASKED + 1), ("c",)), "The reference has 20,001 characters"),
    "answer": (Addresses("a" * (MAX_ASKED + 1), "b"), "The statement has 20,001 characters"),
    "context": (Relevance("a", ("b" * MAX_CONTEXT, "c")), "The sentences have 1,000,001 characters"),
    "useful": (Usefulness("a", "b", ("b" * MAX_CONTEXT, "c")), "The sentences have 1,000,001 characters"),
    "contexts": (Sufficiency("a", ("b" * MAX_CONTEXT, "c")), "The contexts have 1,000,001 characters"),
    "many": (Support("a", ("b",) * (MAX_CONTEXTS + 1)), "There are 1,001 contexts"),
    "response": (Statements(("a" * MAX_RESPONSE, "b"), "c"), "The sentences have 100,001 characters"),
    "refusal": (Noncommittal("a", "b" * (MAX_RESPONSE + 1)), "The response has 100,001 characters"),
    "texts": (Embeddings(("a" * MAX_RESPONSE, "b")), "The texts have 100,001 characters"),
    "pairs": (Similarities(("a",), ("b" * (MAX_RESPONSE + 1),)), "The right have 100,001 characters"),
}


@each_case("name", LONG)
def test_a_text_beyond_the_maximum_is_named(name: str) -> None:
    """Every kind of question has its limits, and the reason says which text breaks which."""
    question, said = LONG[name]
    assert {type(each) for each, _ in LONG.values()} == set(RULES) == EmbeddedJudge().answers
    found = too_long(question)
    assert found is not None
    assert found.startswith(said)


def test_a_text_beyond_the_maximum_fails_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sample fails with the reason, others do not, and the run that is resumed does not ask again."""
    judged: list[type[Question[Any]]] = []
    monkeypatch.setattr(embedded_provider, "too_long", lambda each: judged.append(type(each)) or too_long(each))
    data = [
        {"id": "long", "user_input": ASKED, "retrieved_contexts": ["x" * (MAX_CONTEXT + 1)]},
        {"id": "short", "user_input": ASKED, "retrieved_contexts": [ANSWER]},
    ]
    run = merilo.evaluate(data, metrics=["context_relevance"], out=tmp_path / "run", storage={"cache": False})
    assert (run.metrics["context_relevance"].scored, run.metrics["context_relevance"].failed) == (1, 1)
    (failed,) = (each for each in run.records() if each["sample"] == "long")
    assert "1,000,001 characters; the embedded judge reads at most 1,000,000" in str(failed)
    assert len(judged) == 2
    again = merilo.evaluate(data, metrics=["context_relevance"], out=tmp_path / "run", storage={"cache": False})
    assert again.metrics["context_relevance"].failed == 1
    assert len(judged) == 2


def test_caches_hold_no_more_than_they_may() -> None:
    """Texts of other numbers each, as many as would take hundreds of MB, leave the caches within their bounds."""
    for n in range(1_500):
        stems(" ".join(str(1_000 * n + each) for each in range(100)))
    cached = stems.__globals__["_cached"]
    assert cached._total <= cached._max_size
    before = len(digests.TUPLES)
    digests.digest_texts(("a" * 40_000, "b"))
    assert len(digests.TUPLES) == before
    for n in range(600):
        digests.digest_texts((f"{n}", "b"))
    assert len(digests.TUPLES) <= 512


def test_the_language_of_a_huge_text_is_told_by_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is counted of a text is bounded, whatever its length."""
    from merilo.judges import words as english

    counted: list[int] = []
    count: Callable[[str], Any] = english._counted
    monkeypatch.setattr(english, "_counted", lambda text: counted.append(len(text)) or count(text))
    assert EmbeddedJudge().supports_language([ASKED, " ".join(filler(20_000))])
    assert max(counted) <= 20_000
