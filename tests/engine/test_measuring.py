"""Embedder and cross-encoder in a run: there by default, named where they were asked, cached like verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from embedding_server import EmbeddingServer, vector
from grouping import grouped
from judged_rivers import rows
from server import JudgeServer

import merilo
from merilo.commands.show.summary import run_page
from merilo.data.sample import Sample
from merilo.judging.ask import Plan, ask
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict, Similarities
from merilo.judging.kinds.responses import Completion
from merilo.judging.questions import Question
from merilo.metrics.base import Card, Kinds, MetricDefaults, Score, Undefined
from merilo.metrics.formulas import cosine


@dataclass(frozen=True, slots=True)
class Near(MetricDefaults):
    """The cosine of response and reference."""

    name = "made:near"
    version = 1
    range = (-1.0, 1.0)
    card = Card("How near the response is to the reference.", family="made")
    needs = frozenset({"response", "reference"})
    asks = Kinds({Embeddings})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        verdict = yield from ask(Embeddings((sample.require("response"), sample.require("reference"))))
        found = cosine(verdict.row(0), verdict.row(1))
        return Undefined("a text has no vector") if found is None else Score(found)


@dataclass(frozen=True, slots=True)
class Alike(Near):
    """The likeness of response and reference."""

    name = "made:alike"
    asks = Kinds({Similarities})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        question = Similarities((sample.require("response"),), (sample.require("reference"),))
        verdict = yield from ask(question)
        return Score(verdict.row(0)[0])


def run(out: Path, *metrics: Any, **arguments: Any) -> merilo.Run:
    """A run of these metrics over three samples."""
    return merilo.evaluate(rows(3), **grouped(**{"metrics": metrics, "out": out, "cache": False} | arguments))


def test_both_are_there_by_default(tmp_path: Path) -> None:
    """Vectors and similarities come from the embedded judge, which the manifest names in their roles."""
    found = run(tmp_path / "run", Near(), Alike())
    assert list(found.manifest.judges) == ["judge", "embedder", "similarity"]
    assert found.metrics["made:near"].mean == pytest.approx(found.metrics["made:alike"].mean)
    assert found.usage["requests"] == 0
    assert str(run_page(found, 100, full=True)).count("embedder, similarity") == 1


def test_the_judge_does_not_make_vectors(tmp_path: Path) -> None:
    """Whatever the judge answers, vectors are the embedder's: the same with every judge."""

    def verdict(question: Question[Any]) -> MatrixVerdict:
        raise AssertionError(question.kind)

    found = run(tmp_path / "a", Near(), judge=merilo.ScriptedJudge.by(verdict))
    assert found.metrics["made:near"].mean == run(tmp_path / "b", Near()).metrics["made:near"].mean


def test_a_callable_measures(tmp_path: Path) -> None:
    """An embedder and a cross-encoder may be callables: one takes the question, the other pairs."""

    def embed(question: Question[Any]) -> MatrixVerdict:
        texts: Sequence[str] = question.texts
        return MatrixVerdict.of([vector(text) for text in texts])

    def cross(pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [0.25 for _ in pairs]

    found = run(tmp_path / "run", Near(), Alike(), embedder=embed, cross_encoder=cross)
    assert found.metrics["made:alike"].mean == 0.25
    first = rows(3)[0]
    expected = cosine(vector(first["response"]), vector(first["reference"]))
    assert next(iter(found.samples)).outcomes["made:near"].value == pytest.approx(expected)


def test_vectors_are_cached_by_their_embedder(tmp_path: Path) -> None:
    """A second run asks the endpoint for nothing; another model is asked anew. Tokens are counted."""
    cache = tmp_path / "cache.sqlite"
    with EmbeddingServer() as server:
        arguments = {"base_url": server.base_url, "cache": cache}
        first = run(tmp_path / "a", Near(), embedder="openai:m", **arguments)
        second = run(tmp_path / "b", Near(), embedder="openai:m", **arguments)
        assert (first.usage["requests"], second.usage["requests"]) == (3, 0)
        assert first.usage["input_tokens"] == sum(len(text) for body in server.asked for text in body["input"])
        assert first.usage["output_tokens"] == 0
        assert first.metrics["made:near"] == second.metrics["made:near"]
        run(tmp_path / "c", Near(), embedder="openai:n", **arguments)
        assert [body["model"] for body in server.asked] == ["m"] * 3 + ["n"] * 3
    assert first.manifest.judges["embedder"]["name"] == "openai-embeddings:m"


@dataclass(frozen=True, slots=True)
class Both(Near):
    """Asks the judge and the embedder."""

    name = "made:both"
    asks = Kinds({Embeddings, Completion})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        yield from ask(Completion("en/noncommittal.v1", ("user_input", "response"), ("q", "r")))
        yield from ask(Embeddings((sample.require("response"),)))
        return Score(1.0)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUDGE", "EMBEDDER"):
        monkeypatch.setenv(f"{name}_KEY", f"key-of-the-{name.lower()}")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_an_address_of_its_own_is_not_sent_the_judges_key(tmp_path: Path, keys: None) -> None:
    """With an address of its own the embedder has a key of its own, or none."""
    with JudgeServer() as judges, EmbeddingServer() as server:
        judge = merilo.Model("openai:j", base_url=judges.base_url, api_key_env="JUDGE_KEY")
        own = merilo.Model("openai:e", base_url=server.base_url)
        run(tmp_path / "a", Both(), judge={"embeddings": own, "rest": judge})
        assert set(server.keys) == {None}
        own = replace(own, api_key_env="EMBEDDER_KEY")
        run(tmp_path / "b", Both(), judge={"embeddings": own, "rest": judge})
        assert server.keys[-1] == "Bearer key-of-the-embedder"
        assert {headers["Authorization"] for headers in judges.headers} == {"Bearer key-of-the-judge"}
