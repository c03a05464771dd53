"""The example data in the package: what its files hold, and that its README tells the truth about them."""

import importlib
import importlib.resources
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, cast

import pytest
from each_case import each_case

EXAMPLES = importlib.resources.files("merilo.examples")
SCRIPTS = Path(__file__).parents[1] / "examples"
RETRIEVERS = ("bm25", "opening_overlap")
DATA = os.environ.get("MERILO_DATA")


class Retrieved(TypedDict):
    text: str
    id: str
    score: float


class RetrievalMetadata(TypedDict):
    title: str
    retrieved_titles: list[str]


class RetrievalSample(TypedDict):
    id: str
    user_input: str
    retrieved_contexts: list[Retrieved]
    retrieved_context_ids: list[str]
    reference: str
    reference_contexts: list[str]
    reference_context_ids: list[str]
    metadata: RetrievalMetadata


class Sentence(TypedDict):
    text: str
    supported: int
    errors: list[str]


class AnswerMetadata(TypedDict):
    label: int
    scale: str
    annotators: int
    model: str
    missing: list[str]
    sentences: list[Sentence]


class AnswerSample(TypedDict):
    id: str
    user_input: str
    retrieved_contexts: list[str]
    response: str
    metadata: AnswerMetadata


def lines(part: str, name: str) -> list[object]:
    text = EXAMPLES.joinpath(part, name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def retrieval(name: str) -> list[RetrievalSample]:
    return cast("list[RetrievalSample]", lines("retrieval", f"{name}.jsonl"))


def answers() -> list[AnswerSample]:
    return cast("list[AnswerSample]", lines("generation", "answers.jsonl"))


def readme() -> str:
    return EXAMPLES.joinpath("README.md").read_text(encoding="utf-8")


def asked(sample: RetrievalSample) -> dict[str, object]:
    same = ("id", "user_input", "reference", "reference_contexts", "reference_context_ids")
    return {field: value for field, value in sample.items() if field in same}


def found(sample: RetrievalSample) -> bool:
    return sample["reference_context_ids"][0] in sample["retrieved_context_ids"]


@pytest.mark.parametrize("name", RETRIEVERS)
def test_retrieval_fields(name: str) -> None:
    """Every retrieval sample has all its fields, none blank, and exactly one gold passage."""
    samples = retrieval(name)
    assert len(samples) == 60
    for sample in samples:
        assert set(sample) == RetrievalSample.__required_keys__
        assert sample["user_input"].strip()
        assert sample["reference"].strip()
        assert len(sample["reference_contexts"]) == len(sample["reference_context_ids"]) == 1


@pytest.mark.parametrize("name", RETRIEVERS)
def test_retrieved_contexts_are_ranked(name: str) -> None:
    """One to five contexts are retrieved, each once, best score first, with their ids and titles."""
    for sample in retrieval(name):
        contexts = sample["retrieved_contexts"]
        ids = [context["id"] for context in contexts]
        scores = [context["score"] for context in contexts]
        assert 1 <= len(contexts) <= 5
        assert ids == sample["retrieved_context_ids"]
        assert len(set(ids)) == len(ids)
        assert scores == sorted(scores, reverse=True)
        assert scores[-1] > 0
        assert len(sample["metadata"]["retrieved_titles"]) == len(ids)


def test_both_files_ask_the_same() -> None:
    """The two retrieval files differ only in what was retrieved: ids, order, questions and gold are equal."""
    first, second = ([asked(sample) for sample in retrieval(name)] for name in RETRIEVERS)
    assert first == second
    assert len({sample["id"] for sample in retrieval(RETRIEVERS[0])}) == len(first)


def test_an_id_is_one_text() -> None:
    """A passage id means one text wherever it occurs, retrieved or gold, and one text has one id."""
    seen = set[tuple[str, str]]()
    for name in RETRIEVERS:
        for sample in retrieval(name):
            seen.update((context["id"], context["text"]) for context in sample["retrieved_contexts"])
            seen.update(zip(sample["reference_context_ids"], sample["reference_contexts"], strict=True))
    assert len({name for name, _ in seen}) == len({text for _, text in seen}) == len(seen)


@pytest.mark.parametrize("name", RETRIEVERS)
def test_readme_figures(name: str) -> None:
    """Hit rate@1, hit rate@5 and MRR@5 in the README are those of the file."""
    samples = retrieval(name)
    ranks = [
        sample["retrieved_context_ids"].index(sample["reference_context_ids"][0]) + 1
        for sample in samples
        if found(sample)
    ]
    expected = (ranks.count(1), len(ranks), sum(1 / rank for rank in ranks))
    row = re.search(rf"^\| `{name}\.jsonl` \| (.*) \| (.*) \| (.*) \|$", readme(), re.MULTILINE)
    assert row is not None
    assert row.groups() == tuple(f"{total / len(samples):.3f}" for total in expected)


def test_one_retriever_is_better() -> None:
    """BM25 finds the gold passage for at least 15 in 100 questions more, and some questions defeat both."""
    better, poorer = ([found(sample) for sample in retrieval(name)] for name in RETRIEVERS)
    neither = sum(not (a or b) for a, b in zip(better, poorer, strict=True))
    assert (sum(better) - sum(poorer)) / len(better) >= 0.15
    assert neither >= 3
    assert f"Neither retriever finds it for {neither} questions." in readme()


@pytest.mark.parametrize("name", RETRIEVERS)
def test_no_trace_of_tokenisation(name: str) -> None:
    """No text of the retrieval part holds Penn-style quotes or a space before a comma or a bracket's end."""
    for sample in retrieval(name):
        texts = [sample["user_input"], sample["reference"], *sample["reference_contexts"]]
        texts += [context["text"] for context in sample["retrieved_contexts"]]
        for text in texts:
            assert not re.search(r"``|''| [,.;:?!)](?:\s|$)|\( | n't\b", text), text


def test_answer_fields() -> None:
    """Every answer has all its fields, its own id, and sentences that together are the whole response."""
    samples = answers()
    assert len({sample["id"] for sample in samples}) == len(samples)
    for sample in samples:
        assert set(sample) == AnswerSample.__required_keys__
        assert set(sample["metadata"]) == AnswerMetadata.__required_keys__
        parts = "".join(sentence["text"] for sentence in sample["metadata"]["sentences"])
        assert "".join(parts.split()) == "".join(sample["response"].split())
        assert sample["retrieved_contexts"][0].strip()


def test_answer_labels() -> None:
    """A sentence marked as wrong or unverifiable is unsupported, and so is an answer with such a sentence."""
    for sample in answers():
        sentences = sample["metadata"]["sentences"]
        for sentence in sentences:
            wrong = {"Wrong-Grounding", "Unverifiable"} & set(sentence["errors"])
            assert sentence["supported"] == int(not wrong)
        assert sample["metadata"]["label"] == min(sentence["supported"] for sentence in sentences)


def test_labels_are_balanced() -> None:
    """Good and bad answers are as many, and as many as the README says."""
    count = Counter(sample["metadata"]["label"] for sample in answers())
    assert count[0] == count[1] >= 20
    assert f"{count[1]} with a label of 1 and {count[0]} with 0" in readme()


def test_attribution() -> None:
    """The README names both sources at a commit and both licences, and the licence text lies beside it."""
    text = readme()
    for source in ("primeqa/clapnq", "allenai/FineGrainedRLHF"):
        assert re.search(rf"{source}.*`[0-9a-f]{{40}}` \| Apache-2\.0 \|", text)
    assert "CC BY-SA 3.0" in text
    licence = EXAMPLES.joinpath("LICENSE-Apache-2.0.txt").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in licence


def test_size() -> None:
    """All example files together take at most 1,030,000 bytes, for they travel in the wheel."""
    with importlib.resources.as_file(EXAMPLES) as folder:
        files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        assert sum(path.stat().st_size for path in files) <= 1_030_000


@each_case(
    ("tokenised", "printed"),
    [
        ("`` Rex Anglorum '' ( `` King of the English '' ) .", '"Rex Anglorum" ("King of the English").'),
        ("the besiegers ' aims , Carter 's appeal , was n't", "the besiegers' aims, Carter's appeal, wasn't"),
        ("the line ' I cry ' is sung", "the line 'I cry' is sung"),
        ("in the ' 90s", "in the '90s"),
        ("a long - term view of the 19th - century wall", "a long-term view of the 19th-century wall"),
        ("( 1856 -- 1915 ) and Hindu -- Arabic", "(1856–1915) and Hindu–Arabic"),
        ("at hand -- and thus", "at hand – and thus"),
        ("$ 12.6 million , 7 % and / or # 3", "$12.6 million, 7% and/or #3"),
        ("the ten digits : 0 , 1 at 8 : 30", "the ten digits: 0, 1 at 8:30"),
        ("zero\u200b width \ufeff marks", "zero width marks"),
        (
            'Printed text, "as it is" (1999), isn\'t changed.',
            'Printed text, "as it is" (1999), isn\'t changed.',
        ),
        ("", ""),
    ],
)
def test_detokenise(tokenised: str, printed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokenised text reads as in print again, and printed text stays as it is."""
    monkeypatch.setattr(sys, "path", [str(SCRIPTS), *sys.path])
    detokenise = cast("Callable[[str], str]", importlib.import_module("detokenise").detokenise)
    assert detokenise(tokenised) == printed
    assert detokenise(printed) == printed


# The labelled records are too large for the repository: whoever has them names their folder in MERILO_DATA.
@pytest.mark.skipif(DATA is None, reason="MERILO_DATA does not name the folder of labelled records")
def test_rebuild(tmp_path: Path) -> None:
    """Building again from the labelled records gives the shipped bytes, file by file."""
    script = [sys.executable, str(SCRIPTS / "build.py"), "--data", str(DATA), "--out", str(tmp_path)]
    subprocess.run(script, check=True, timeout=120)
    built = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert [str(path) for path in built] == [
        "README.md",
        "generation/answers.jsonl",
        "retrieval/bm25.jsonl",
        "retrieval/opening_overlap.jsonl",
    ]
    for path in built:
        assert (tmp_path / path).read_bytes() == EXAMPLES.joinpath(*path.parts).read_bytes(), path
