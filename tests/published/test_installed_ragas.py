"""The requests of ragas itself, and those of merilo in the words of the installed ragas, at the same server."""

import asyncio
import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import merilo

sys.path.append(str(Path(__file__).parent.parent / "extras"))
from scripted_endpoint import ScriptedEndpoint

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore")]
os.environ["RAGAS_DO_NOT_TRACK"] = "true"

ROW: Final[dict[str, Any]] = {
    "user_input": "Where is the tower, and how tall is it?",
    "response": "It stands in Paris.\nIt is \u201c330 m\u201d tall \u2013 {{so}} they say.",
    "retrieved_contexts": ["The tower stands in Paris.", 'A "quoted"\tcontext with <tags>.'],
    "reference": "It is in Paris and 330 m tall.",
}
_ITEM: Final = {"statement": "It is in Paris.", "reason": "It says so."}
_STATEMENTS: Final = {"statements": ["It is in Paris.", "It is \u201c330 m\u201d tall."]}
REPLIES: Final[dict[str, object]] = {
    "StringIO": {"text": json.dumps(_STATEMENTS)},
    "StatementGeneratorOutput": _STATEMENTS,
    "NLIStatementOutput": {"statements": [{**_ITEM, "verdict": 1}, {**_ITEM, "verdict": 0}]},
    "StatementFaithfulnessOutput": {"statements": [{**_ITEM, "verdict": 1}, {**_ITEM, "verdict": 0}]},
    "ResponseRelevanceOutput": {"question": "Where is it?", "noncommittal": 0},
    "AnswerRelevanceOutput": {"question": "Where is it?", "noncommittal": 0},
    "Verification": {"reason": "It helps.", "verdict": 1},
    "ContextPrecisionOutput": {"reason": "It helps.", "verdict": 1},
    "ContextRecallClassifications": {"classifications": [{**_ITEM, "attributed": 1}]},
    "ContextRecallOutput": {"classifications": [{**_ITEM, "attributed": 1}]},
    "EntitiesList": {"entities": ["Paris", "tower"]},
    "ClassificationWithReason": {"TP": [_ITEM], "FP": [], "FN": []},
    "ClaimDecompositionOutput": {"claims": _STATEMENTS["statements"]},
    "ContextRelevanceOutput": {"rating": 2},
    "ResponseGroundednessOutput": {"rating": 1},
    "AnswerAccuracyOutput": {"rating": 4},
    "AspectCriticOutput": {"reason": "It does.", "verdict": 1},
}
"""The reply to a request by the title of the schema that it shows."""
_LIMIT: Final = {"max_tokens": "the judge's own limit"}
DIFFERENCES: Final = {
    "classes": {**_LIMIT, "stream": "LangChain writes the default, false"},
    "collections": {
        **_LIMIT,
        "response_format": "merilo has no JSON mode for free text; the system message asks for JSON",
        "top_p": "merilo sends no top_p",
    },
}
"""Fields in which the bodies differ, and why. `n` is 1 where it is not sent."""
Asks = Callable[[str], Any]


class Recording(ScriptedEndpoint):
    """A scripted endpoint that keeps the bodies of its chat requests."""

    def __init__(self, *, unreadable: dict[str, str] | None = None) -> None:
        odd = unreadable or {}
        super().__init__(
            [
                {"has": [f'"title": "{title}"'], "replies": [*([odd[title]] if title in odd else []), *[reply] * 50]}
                for title, reply in REPLIES.items()
            ]
            + [{"lacks": ['"title": "'], "replies": ["2"]}]
        )
        self.bodies: list[dict[str, Any]] = []

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if not path.endswith("/embeddings"):
            self.bodies.append(body)
        return super().answer(path, body)


def _legacy(name: str, /, **options: Any) -> Asks:
    def asked(url: str) -> Any:
        import ragas.metrics as classes
        from langchain_openai import ChatOpenAI, OpenAIEmbeddings
        from ragas import SingleTurnSample
        from ragas.embeddings import LangchainEmbeddingsWrapper
        from ragas.llms import LangchainLLMWrapper

        metric = getattr(classes, name)(**options)
        metric.llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o", base_url=url, api_key="none", max_retries=0))
        if hasattr(metric, "embeddings"):
            vectors = OpenAIEmbeddings(
                model="text-embedding-3-small", base_url=url, api_key="none", check_embedding_ctx_length=False
            )
            metric.embeddings = LangchainEmbeddingsWrapper(vectors)
            if name == "AnswerCorrectness":
                from ragas.metrics import AnswerSimilarity

                metric.answer_similarity = AnswerSimilarity(embeddings=metric.embeddings)
        return metric.single_turn_ascore(SingleTurnSample(**ROW))

    return asked


def _collected(name: str, *fields: str, embeds: bool = False) -> Asks:
    def asked(url: str) -> Any:
        import ragas.metrics.collections as classes
        from openai import AsyncOpenAI
        from ragas.embeddings import OpenAIEmbeddings
        from ragas.llms import llm_factory

        client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        more = {"embeddings": OpenAIEmbeddings(client=client)} if embeds else {}
        metric = getattr(classes, name)(llm=llm_factory("gpt-4o", client=client), **more)
        return metric.ascore(**{field: ROW[field] for field in fields})

    return asked


_Q, _R, _C, _REF = "user_input", "response", "retrieved_contexts", "reference"
UPSTREAM: Final[dict[str, Asks]] = {
    "llm_context_precision_with_reference": _legacy("LLMContextPrecisionWithReference"),
    "llm_context_precision_without_reference": _legacy("LLMContextPrecisionWithoutReference"),
    "context_precision": _legacy("ContextPrecision"),
    "context_utilization": _legacy("ContextUtilization"),
    "context_recall": _legacy("ContextRecall"),
    "llm_context_recall": _legacy("LLMContextRecall"),
    "context_entity_recall": _legacy("ContextEntityRecall"),
    "faithfulness": _legacy("Faithfulness"),
    "answer_relevancy": _legacy("ResponseRelevancy"),
    "noise_sensitivity": _legacy("NoiseSensitivity"),
    "answer_correctness": _legacy("AnswerCorrectness"),
    "factual_correctness": _legacy("FactualCorrectness"),
    "factual_correctness(atomicity=high)": _legacy("FactualCorrectness", atomicity="high"),
    'aspect_critic(definition="Is it polite?")': _legacy("AspectCritic", name="polite", definition="Is it polite?"),
    "collections.context_precision_with_reference": _collected("ContextPrecisionWithReference", _Q, _REF, _C),
    "collections.context_precision_without_reference": _collected("ContextPrecisionWithoutReference", _Q, _R, _C),
    "collections.context_precision": _collected("ContextPrecision", _Q, _REF, _C),
    "collections.context_utilization": _collected("ContextUtilization", _Q, _R, _C),
    "collections.context_recall": _collected("ContextRecall", _Q, _C, _REF),
    "collections.context_entity_recall": _collected("ContextEntityRecall", _REF, _C),
    "collections.faithfulness": _collected("Faithfulness", _Q, _R, _C),
    "collections.answer_relevancy": _collected("AnswerRelevancy", _Q, _R, embeds=True),
    "collections.noise_sensitivity": _collected("NoiseSensitivity", _Q, _R, _REF, _C),
    "collections.answer_correctness": _collected("AnswerCorrectness", _Q, _R, _REF, embeds=True),
    "nv_context_relevance": _legacy("ContextRelevance"),
    "nv_response_groundedness": _legacy("ResponseGroundedness"),
    "nv_accuracy": _legacy("AnswerAccuracy"),
    "collections.context_relevance": _collected("ContextRelevance", _Q, _C),
    "collections.response_groundedness": _collected("ResponseGroundedness", _R, _C),
    "collections.answer_accuracy": _collected("AnswerAccuracy", _Q, _R, _REF),
    "collections.factual_correctness": _collected("FactualCorrectness", _R, _REF),
}
"""Each definition of ragas 0.4.3 that sends prompts, and the upstream metric of that name."""


@pytest.fixture(autouse=True, scope="module")
def _ragas() -> None:
    pytest.importorskip("ragas", reason="ragas is not installed")


def bodies_of(asks: Asks, unreadable: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """The requests that a function sends to a server."""
    with Recording(unreadable=unreadable) as server:
        made = asks(server.base_url)
        if made is not None:
            asyncio.run(_done(made))
            del made
            gc.collect()  # the clients of the package leave connections open; here, their warnings are ignored
        assert server.unmatched == []
        return server.bodies


async def _done(made: Any) -> None:
    await made


def merilo_asks(definition: str, tmp_path: Path) -> Asks:
    """The requests of merilo for the row."""

    def asked(url: str) -> None:
        os.environ["OPENAI_API_KEY"] = "none"
        run = merilo.evaluate(
            [{"id": "a", **ROW}],
            metrics=[f"ragas-0.4.3:{definition}"],
            judge={
                "spec": {"embeddings": "openai:text-embedding-3-small", "rest": "openai:gpt-4o"},
                "base_url": url,
                "prompts": "installed",
            },
            storage={"cache": False},
            out=tmp_path / "run",
        )
        assert [aggregate.scored for aggregate in run.metrics.values()] == [1]

    return asked


def messages(bodies: list[dict[str, Any]]) -> list[str]:
    """The messages of each request with its temperature and its number of samples, in an order of their own."""
    return sorted(
        json.dumps([body["messages"], body["temperature"], body.get("n") or 1], sort_keys=True) for body in bodies
    )


@pytest.mark.parametrize("definition", UPSTREAM)
def test_the_requests_are_those_of_ragas(definition: str, tmp_path: Path) -> None:
    """For each definition, messages, temperature and number of samples are those that the installed ragas sends."""
    upstream = bodies_of(UPSTREAM[definition])
    assert upstream
    own = bodies_of(merilo_asks(definition, tmp_path))
    assert messages(own) == messages(upstream)
    different = {
        name
        for mine, theirs in zip(sorted(own, key=_text), sorted(upstream, key=_text), strict=True)
        for name in {*mine, *theirs} - {"n"}
        if mine.get(name) != theirs.get(name)
    }
    assert different == DIFFERENCES["collections" if "collections." in definition else "classes"].keys()


def _text(body: dict[str, Any]) -> str:
    return json.dumps(body["messages"])


@pytest.mark.parametrize("definition", ["faithfulness", "collections.faithfulness"])
def test_the_requests_after_an_unreadable_reply_are_those_of_ragas(definition: str, tmp_path: Path) -> None:
    """After an unreadable reply, the repair of ragas and the re-ask of instructor are in their words too."""
    unreadable = {"StatementGeneratorOutput": '{"statements": "none"}'}
    upstream = bodies_of(UPSTREAM[definition], unreadable)
    assert len(upstream) == 3
    assert messages(bodies_of(merilo_asks(definition, tmp_path), unreadable)) == messages(upstream)
