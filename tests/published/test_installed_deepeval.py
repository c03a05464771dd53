"""The requests of DeepEval itself, and those of merilo in the words of the installed DeepEval, at the same server."""

import gc
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import merilo

sys.path.append(str(Path(__file__).parent.parent / "extras"))
from scripted_endpoint import ScriptedEndpoint

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore")]
os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_DISABLE_DOTENV": "1"}

ROW: Final[dict[str, Any]] = {
    "user_input": "Where is the tower, and how tall is it?",
    "response": "It stands in Paris.\nIt is \u201c330 m\u201d tall \u2013 {{so}} they say.",
    "retrieved_contexts": ["The tower stands in Paris.\nIt does.", 'A "quoted"\tcontext with <tags>.'],
    "reference": "It is in Paris and 330 m tall.",
}
_TEXTS: Final = ["It is in Paris.\nIt is.", "It is \u201c330 m\u201d 'tall'."]
_JUDGED: Final = [
    {"statement": "It's in \u201cParis\u201d.", "verdict": "yes", "reason": "It says: so."},
    {"statement": "It is tall.", "verdict": "no", "reason": 'It "does" not.'},
]
_PLAIN: Final = [{"verdict": each["verdict"], "reason": each["reason"]} for each in _JUDGED]
_OPEN: Final = [{"verdict": "borderline", "reason": "Who knows?"}, {"verdict": "no", "reason": None}]
METRICS: Final[dict[str, tuple[str, list[dict[str, Any]], dict[str, Any]]]] = {
    "faithfulness": ("FaithfulnessMetric", _PLAIN, {}),
    "faithfulness(truths_extraction_limit=3)": ("FaithfulnessMetric", _PLAIN, {"truths_extraction_limit": 3}),
    "faithfulness(penalize_ambiguous_claims=true)": (
        "FaithfulnessMetric",
        _OPEN,
        {"penalize_ambiguous_claims": True},
    ),
    "answer_relevancy": ("AnswerRelevancyMetric", _OPEN, {}),
    "contextual_precision": ("ContextualPrecisionMetric", _PLAIN, {}),
    "contextual_recall": ("ContextualRecallMetric", _PLAIN, {}),
    "contextual_relevancy": ("ContextualRelevancyMetric", _JUDGED, {}),
    "contextual_relevancy(include_reason=false)": (
        "ContextualRelevancyMetric",
        _JUDGED,
        {"include_reason": False},
    ),
}
"""Definition → the class of DeepEval, the verdicts that its judge returns, and its options."""


DIFFERENCES: Final = {
    "messages": "DeepEval sends the same text as a list of one part",
    "response_format": "the schema has the same fields; DeepEval's has the titles and definitions of pydantic too",
    "stream": "DeepEval's client writes the default, false",
    "max_tokens": "the judge's own limit; DeepEval sends none",
}
"""Fields in which the bodies differ, and why."""


class Recording(ScriptedEndpoint):
    """An endpoint that replies by the fields of the schema that a request holds, and keeps the bodies."""

    def __init__(self, verdicts: list[dict[str, Any]]) -> None:
        super().__init__([])
        self.bodies: list[dict[str, Any]] = []
        self._by_field: dict[str, Any] = {
            "truths": _TEXTS,
            "claims": _TEXTS,
            "statements": _TEXTS,
            "verdicts": verdicts,
            "reason": "Because.",
        }

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        del path
        self.bodies.append(body)
        (field,) = body["response_format"]["json_schema"]["schema"]["properties"]
        message = {"role": "assistant", "content": json.dumps({field: self._by_field[field]})}
        return 200, {
            "id": "scripted",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }


def texts(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and text of each message; a list of text parts is one text."""
    return [
        (
            each["role"],
            each["content"]
            if isinstance(each["content"], str)
            else "".join(part["text"] for part in each["content"] if part["type"] == "text"),
        )
        for each in body["messages"]
    ]


def differences(own: dict[str, Any], upstream: dict[str, Any]) -> set[str]:
    """The fields of two bodies that differ."""
    return {name for name in {*own, *upstream} if own.get(name) != upstream.get(name)}


@pytest.fixture(autouse=True, scope="module")
def _deepeval() -> None:
    pytest.importorskip("deepeval", reason="DeepEval is not installed")


def upstream_bodies(definition: str) -> list[dict[str, Any]]:
    """The requests that DeepEval sends for the row."""
    import deepeval.metrics as classes
    from deepeval.models import GPTModel
    from deepeval.test_case import LLMTestCase

    class_name, verdicts, options = METRICS[definition]
    with Recording(verdicts) as server:
        model = GPTModel(model="gpt-4o", base_url=server.base_url, api_key="none")
        metric = getattr(classes, class_name)(model=model, async_mode=False, **options)
        case = LLMTestCase(
            input=ROW["user_input"],
            actual_output=ROW["response"],
            expected_output=ROW["reference"],
            retrieval_context=ROW["retrieved_contexts"],
        )
        metric.measure(case, _show_indicator=False)
        del metric, model
        gc.collect()  # its client leaves connections open; here, their warnings are ignored
        return server.bodies


def merilo_bodies(definition: str, tmp_path: Path) -> list[dict[str, Any]]:
    """The requests that merilo sends for the row."""
    os.environ["OPENAI_API_KEY"] = "none"
    with Recording(METRICS[definition][1]) as server:
        run = merilo.evaluate(
            [{"id": "a", **ROW}],
            metrics=[f"deepeval-4.3.1:{definition}"],
            judge={"spec": "openai:gpt-4o", "base_url": server.base_url, "prompts": "installed"},
            storage={"cache": False},
            out=tmp_path / "run",
        )
        assert [aggregate.scored for aggregate in run.metrics.values()] == [1]
        return server.bodies


@pytest.mark.parametrize("definition", METRICS)
def test_the_requests_are_those_of_deepeval(definition: str, tmp_path: Path) -> None:
    """For each definition, the texts and the temperature of all requests are those that DeepEval sends, in order."""
    upstream, own = upstream_bodies(definition), merilo_bodies(definition, tmp_path)
    assert len(upstream) >= 2
    assert [texts(each) for each in own] == [texts(each) for each in upstream]
    for mine, theirs in zip(own, upstream, strict=True):
        assert differences(mine, theirs) == DIFFERENCES.keys()
