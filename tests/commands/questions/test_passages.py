"""Passages, the draw from them, and texts without a passage."""

from pathlib import Path

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.commands.questions.run import Corpus, folded
from merilo.data.corpus import SourceDocument, load_corpus
from merilo.data.sentences import split
from merilo.errors import DataError, UsageError

SIZES = (1, 2, 7, 14, 3)
SENTENCE = st.sampled_from(
    ["It is tall.", "it is  TALL.", "Who?", '"Yes."', "# Rome", "Yes. Yes.", "- a", "塔很高。", "\n\n"]
)
TEXTS = st.lists(st.lists(SENTENCE, max_size=7).map(" ".join), min_size=1, max_size=4)


def corpus_of(sizes: tuple[int, ...] = SIZES, size: int = 1) -> Corpus:
    texts = [" ".join(f"Tower {d} has {n} doors." for n in range(count)) for d, count in enumerate(sizes)]
    return Corpus(tuple(SourceDocument(f"d{d}", text, "") for d, text in enumerate(texts)), size)


def documents_of(texts: list[str]) -> tuple[SourceDocument, ...]:
    return tuple(SourceDocument(f"d{n}", text, "") for n, text in enumerate(texts))


@given(TEXTS, st.integers(1, 4))
def test_passages_divide_the_documents(texts: list[str], size: int) -> None:
    """Passages have at most `size` sentences, do not overlap, and leave out nothing but white space."""
    corpus = Corpus(documents_of(texts), size)
    for index, text in enumerate(texts):
        own = [each for each in corpus.passages if each.document == index]
        assert all(each.text == text[each.start : each.end] and 1 <= len(each.sentences) <= size for each in own)
        assert "".join("".join(each.text.split()) for each in own) == "".join(text.split())
    assert len({corpus.id_of(each) for each in corpus.passages}) == len(corpus.passages)


def test_a_larger_draw_contains_the_smaller_one() -> None:
    """With the same seed, more passages are added to those of the smaller draw; another seed draws others."""
    corpus = corpus_of()
    few, more, others = ({*corpus.draw(n, seed=s)} for n, s in ((5, 1), (12, 1), (5, 2)))
    assert few < more
    assert few != others


@given(TEXTS, st.integers(1, 3), st.integers(0, 5))
def test_nothing_of_a_passage_is_left(texts: list[str], size: int, place: int) -> None:
    """Neither the other texts nor the reduced documents have a sentence of the passage, whatever they repeat."""
    corpus = Corpus(documents_of(texts), size)
    if not corpus.passages:
        return
    place %= len(corpus.passages)
    passage = corpus.passages[place]
    left = [*corpus.others(place, 4), *(each.text for each in corpus.without([passage]))]
    for text in left:
        assert not {folded(text[each.start : each.end]) for each in split(text)} & set(passage.sentences)
    assert [each.id for each in corpus.without([passage])] == [each.id for each in corpus.documents]


def test_the_other_texts_are_neighbours_and_similar_passages() -> None:
    """The passages before and after come first, then those that share rare words; unrelated ones are no candidates."""
    texts = ["Alba is old. The Zentrum opened in 1907. Boats pass.", "It rains.", "Its Zentrum was opened in 1907."]
    corpus = Corpus(documents_of(texts), 1)
    assert corpus.others(1, 5) == ("Alba is old.", "Boats pass.", "Its Zentrum was opened in 1907.")
    assert corpus.others(1, 1) == ("Alba is old.",)
    assert corpus.others(3, 5) == ()


def test_a_folder_is_a_corpus(tmp_path: Path) -> None:
    """Text files are documents in the order of their paths, with path and name as id and title; others are ignored."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbfOne.\r\nTwo.")
    (tmp_path / "sub" / "a.MD").write_text("# Three", encoding="utf-8")
    (tmp_path / "c.jsonl").write_text("{", encoding="utf-8")
    assert load_corpus(tmp_path) == (
        SourceDocument("b.txt", "One.\r\nTwo.", "b"),
        SourceDocument("sub/a.MD", "# Three", "a"),
    )


@each_case(
    ("content", "says"),
    [
        ('{"id": "a", "text": "A."}\n{"id": "a", "text": "B."}\n', "expected each id once, got 'a' again"),
        ('{"id": "a"}\n', "text"),
        ('{"id": "a", "text": 7}\n', "expected text, got the number 7"),
        ('{"id": "a", "text": "\\ud800"}\n', "lone surrogate"),
        ('{"id": "a", "text": "A\\u0000"}\n', "NUL"),
        ('{"id": "a", "text": "A.", "title": []}\n', "title"),
        ("[1]\n", "an object"),
        ('{"id": "a", "text": "A."', "expected a complete file"),
        ("", "at least one document"),
    ],
)
def test_a_damaged_document_is_named(tmp_path: Path, content: str, says: str) -> None:
    """Nothing is drawn from a corpus with a damaged document, because its passages could not be drawn."""
    path = tmp_path / "documents.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=says):
        load_corpus(path)


def test_a_folder_without_readable_text_is_an_error(tmp_path: Path) -> None:
    """A file that is not UTF-8 is named, an empty folder has no document, and a missing path is a usage error."""
    with pytest.raises(DataError, match="at least one document"):
        load_corpus(tmp_path)
    (tmp_path / "bad.txt").write_bytes(b"T\xe9")
    with pytest.raises(DataError, match=r"bad\.txt.*UTF-8"):
        load_corpus(tmp_path)
    with pytest.raises(UsageError, match="No such file or folder"):
        load_corpus(tmp_path / "none")
