"""Judges from what a user wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from merilo.commands.evaluate.options import Model, Options
from merilo.commands.evaluate.preparation import judges_of
from merilo.errors import UsageError
from merilo.judges.base import Judge, Packing
from merilo.judges.callables import CallableJudge
from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.llm import LLMJudge, OpenAIEmbeddingsJudge
from merilo.judges.spec import cross_encoder_from, embedder_from, judge_from
from merilo.judging.kinds.measured import Embeddings, Similarities
from merilo.providers.openai import OpenAIEmbeddingsProvider, OpenAIProvider

URL = "http://127.0.0.1:9/v1"


def judges_from(specs: list[str], **server: str) -> dict[str, Judge]:
    """The judges of these texts, without the models that compare and split texts."""
    judges = judges_of(Options(judge=Model(specs, **server)))
    return {role: judge for role, judge in judges.items() if role not in {"embedder", "similarity", "splitter"}}


def test_openai_names_the_model_and_the_address() -> None:
    """All after the first colon is the model, colons and slashes too."""
    judge = judge_from("openai:org/model:8b", base_url=URL, api_key_env="MY_KEY", judged="each")
    expected = OpenAIProvider("org/model:8b", base_url=URL, api_key_env="MY_KEY")
    assert judge == LLMJudge(expected, judged=Packing.QUESTION)
    assert judge.name == "openai:org/model:8b"


def test_options_that_fit_nothing_are_errors() -> None:
    """A base URL for a judge that has none would be silently lost."""
    with pytest.raises(UsageError, match=r"base_url: only for judges at an address \(anthropic:, .*systemone:\)"):
        judge_from("embedded", base_url=URL)
    with pytest.raises(UsageError, match="judged is one of together, context, each"):
        judge_from("openai:m", base_url=URL, judged="all")
    with pytest.raises(UsageError, match="or a callable, got int"):
        judge_from(7)  # type: ignore[arg-type]  # what is tested


def test_the_first_judge_has_the_role_judge() -> None:
    """Named judges stand under their names, unnamed ones under their own; the first also as `judge`."""
    judges = judges_from(["openai:small", "second=openai:large"], base_url=URL)
    assert list(judges) == ["openai:small", "second", "judge"]
    assert judges["judge"] is judges["openai:small"]
    assert judges["second"].name == "openai:large"


def test_roles_are_told_apart() -> None:
    """Two judges of one name, a later one called `judge`, or none at all are errors."""
    with pytest.raises(UsageError, match="Two judges are named 'openai:m'"):
        judges_from(["openai:m", "openai:m"], base_url=URL)
    with pytest.raises(UsageError, match="Only the first judge may be named 'judge'"):
        judges_from(["a=openai:m", "judge=openai:n"], base_url=URL)
    with pytest.raises(UsageError, match="At least one judge is needed"):
        judges_from([])
    assert list(judges_from(["judge=openai:m"], base_url=URL)) == ["judge"]


# ---------------------------------------------------------------------- embedders and cross-encoders


def test_an_embedder_is_named_as_a_judge_is(tmp_path: Path) -> None:
    """The embedded one, a model behind an address, a script, a judge, or a callable that answers this kind alone."""
    script = tmp_path / "script.jsonl"
    verdict = {"rows": 1, "columns": 1, "data": "AACAPw=="}
    script.write_text(json.dumps({"kind": "embeddings", "verdict": verdict}), encoding="utf-8")

    async def call(_: Any) -> None: ...

    assert embedder_from("embedded") == EmbeddedJudge()
    wired = embedder_from(" openai:m", base_url=URL, api_key_env="KEY")
    assert wired == OpenAIEmbeddingsJudge(
        OpenAIEmbeddingsProvider(OpenAIProvider("m", base_url=URL, api_key_env="KEY"))
    )
    assert wired.name == "openai-embeddings:m"
    assert embedder_from(f"scripted:{script}").answers == {Embeddings}
    assert embedder_from(wired) is wired
    assert embedder_from(call) == CallableJudge(call, answers=frozenset({Embeddings}))


def test_a_cross_encoder_is_here() -> None:
    """The embedded one, a judge, or a callable that answers similarities alone; none behind an address."""

    def call(pairs: Any) -> list[float]:
        return [0.5 for _ in pairs]

    judge = CallableJudge(call, answers=frozenset({Similarities}))
    assert cross_encoder_from("embedded") == EmbeddedJudge()
    assert cross_encoder_from(judge) is judge
    assert cross_encoder_from(call).answers == {Similarities}
    assert cross_encoder_from(call).fingerprint() == judge.fingerprint()
    with pytest.raises(
        UsageError,
        match=r"A cross-encoder is one of embedded, local:MODEL, scripted:FILE, FILE.py:NAME; got 'openai:m'",
    ):
        cross_encoder_from("openai:m")


def test_what_does_not_measure_is_refused(tmp_path: Path) -> None:
    """A judge that answers no vectors, an unknown form, or an address that fits nothing is an error at the door."""
    script = tmp_path / "script.jsonl"
    script.write_text('{"kind": "relevance", "verdict": {"grade": 0}}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"scripted:.* cannot answer questions of kind 'embeddings'"):
        embedder_from(f"scripted:{script}")
    forms = "embedded, openai:MODEL, azure:DEPLOYMENT, scripted:FILE, FILE.py:NAME"
    with pytest.raises(UsageError, match=f"An embedder is one of {forms}; got 'bge'"):
        embedder_from("bge")
    with pytest.raises(UsageError, match=f"An embedder is one of {forms}; got 'anthropic:claude'"):
        embedder_from("anthropic:claude")
    with pytest.raises(UsageError, match=", not for the embedder"):
        embedder_from("embedded", base_url=URL)


def test_an_address_may_be_for_the_embedder_alone() -> None:
    """With an embedder behind an address, `base_url` beside the embedded judge is no mistake; `judged` still is."""
    specs = ["embedded", "embeddings=openai:m"]
    assert judges_from(specs, base_url=URL)["judge"] == EmbeddedJudge()
    with pytest.raises(UsageError, match="judged: only for judges at an address"):
        judges_from(specs, base_url=URL, judged="each")


@pytest.mark.parametrize(
    "judge",
    [
        {"rest": Model("openai:a", base_url=URL), "embeddings": Model("openai:e", base_url="http://127.0.0.1:8/v1")},
        [
            {"spec": "openai:a", "base_url": URL},
            {"embeddings": {"spec": "openai:e", "base_url": "http://127.0.0.1:8/v1"}},
        ],
    ],
)
def test_each_model_has_its_own_server(judge: Any) -> None:
    """A `Model`, or a dict with its fields, may be the judge of a kind; the server of one is not that of another."""
    judges: Any = judges_of(Options(judge=judge))
    assert judges["judge"].provider.base_url == URL
    assert judges["embedder"].provider.endpoint.base_url == "http://127.0.0.1:8/v1"


def test_a_server_is_shared_by_models_of_one_kind_of_provider() -> None:
    """The address of several judges also serves the embedder, unless that is of another kind."""
    judges: Any = judges_of(Options(judge=Model(["openai:a", "embeddings=openai:e"], base_url=URL)))
    assert judges["embedder"].provider.endpoint.base_url == URL
    judges = judges_of(Options(judge=Model(["anthropic:a", "embeddings=openai:e"], base_url=URL)))
    assert judges["embedder"].provider.endpoint.base_url != URL
