"""The example data in the package: what its files hold, and that its README tells the truth about them."""

import importlib
import importlib.resources
import json
import os
import re
import subprocess
import sys
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


def found(sample: RetrievalSample) -> bool:
    return sample["reference_context_ids"][0] in sample["retrieved_context_ids"]


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
