"""Decision models: two requests for a sample, whatever the metrics, and every answer under its own key."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from decision_server import DecisionServer
from grouping import grouped

import merilo
from merilo import Sample
from merilo.judging.kinds.responses import Addresses, Parts
from merilo.metrics import Card, Kinds, MetricDefaults, Score

METRICS = ("context_relevance", "context_sufficiency", "faithfulness", "answer_relevancy")
DECLINES = {"match": "decline or avoid", "p": 0.1}  # a rule of the server: no response declines


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"s{n}",
            "user_input": f"How long is river {n}?",
            "retrieved_contexts": [
                f"River {n} is a river. It is {n} km long. Fish live in it.",
                f"The town of {n} has a market.",
            ],
            "response": f"River {n} is {n} km long. It flows through town {n}.",
        }
        for n in range(count)
    ]


def arguments(server: DecisionServer, *metrics: str, **more: Any) -> dict[str, Any]:
    flat = {"metrics": metrics or METRICS, "judge": "systemone:jev-1.13.0", "base_url": server.url, "cache": False}
    return grouped(**flat | more)


def scores(run: merilo.Run) -> list[Any]:
    return [dict(sample.outcomes) for sample in run.samples]


@pytest.mark.parametrize("spec", ["systemone:jev-1.13.0", "decisions:gpt-6-luna"])
def test_a_sample_costs_two_requests(spec: str) -> None:
    """Four metrics send one request about the contexts and one about the response, and the plan says so."""
    with DecisionServer(rules=[DECLINES]) as server:
        base_url = server.url + ("/v1" if spec.startswith("decisions") else "")
        planned = merilo.plan(rows(50), **arguments(server, judge=spec, base_url=base_url))
        assert not server.requests
        run = merilo.evaluate(rows(50), **arguments(server, judge=spec, base_url=base_url))
        assert len(server.requests) == 100
        assert planned.typical.requests == len(server.requests)
        assert planned.typical.input_tokens == pytest.approx(run.usage["input_tokens"], rel=0.03)
    assert all(metric.scored == 50 for metric in run.metrics.values())


def test_a_request_about_the_contexts_never_has_the_response() -> None:
    """Systems with equal contexts get equal verdicts on them: the response, and statements of it, are elsewhere."""
    with DecisionServer(rules=[DECLINES]) as server:
        merilo.evaluate(rows(4), **arguments(server))
        states = {json.dumps(body["state"]) for body in server.requests}
    about_contexts = [state for state in states if "contexts" in state]
    assert len(about_contexts) == 4
    assert not any("flows through" in state for state in about_contexts)
    assert all("Fish live" not in state for state in states if "response" in state)


def test_an_answer_does_not_depend_on_the_metrics_that_ask(tmp_path: Path) -> None:
    """What the cache holds from a run with other metrics is not asked again, and the rest shares one request."""
    with DecisionServer(rules=[DECLINES]) as server:
        shared = {"cache": tmp_path / "cache.sqlite"}
        merilo.evaluate(rows(3), **arguments(server, "context_relevance", **shared))
        server.requests.clear()
        merilo.evaluate(rows(3), **arguments(server, "context_relevance", "context_sufficiency", **shared))
        assert [len(body["questions"]) for body in server.requests] == [1, 1, 1]
        merilo.evaluate(rows(3), **arguments(server, "context_sufficiency", **shared))
        assert len(server.requests) == 3


ASKED = Addresses("It is long.", "How long is the river?")


@dataclass(frozen=True)
class Guessed(MetricDefaults):
    """A metric that takes another step as long as its answers are likely ones, which are not averaged."""

    name: ClassVar[str] = "guessed"
    version: ClassVar[int] = 1
    needs = frozenset({"user_input", "response"})
    asks = Kinds({Addresses})
    card: ClassVar[Card] = Card(summary="Test.", family="mine")
    step: ClassVar[Any] = ()

    def plan(self, sample: Sample) -> Any:
        """Ask one question."""
        del sample
        (verdict,) = yield ((ASKED,),)
        while not verdict.averaged:
            (verdict,) = yield self.step
        return Score(1.0)


@pytest.mark.parametrize("step", [((ASKED,),), ((Parts("How long?"),),), 5, ((1,),), ()], ids=repr)
def test_asking_ahead_ends_no_run(step: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that loops, asks no judge or is invalid with likely answers gets its score from the real ones."""
    monkeypatch.setattr(Guessed, "step", step)
    with DecisionServer() as server:
        run = merilo.evaluate(rows(1), **arguments(server) | {"metrics": [Guessed()]})
    assert run.metrics["guessed"].scored == 1


@pytest.mark.parametrize(
    "faults", [["500@0.05"], ["reset@0.05"], ["429ms@0.05"], ["not_json@0.05"], ["sum@0.05"], ["refuse@0.05"]]
)
def test_no_score_is_lost_by_passing_faults(faults: Sequence[str]) -> None:
    """Failed requests are sent again; an invalid or refused answer is asked again alone."""
    with DecisionServer(rules=[DECLINES]) as server:
        plain = scores(merilo.evaluate(rows(40), **arguments(server)))
    with DecisionServer(faults=faults, rules=[DECLINES]) as server:
        assert scores(merilo.evaluate(rows(40), **arguments(server))) == plain


@pytest.mark.parametrize("fault", ["nan", "missing_option", "text_number", "above_one", "one_based", "wrong_type"])
def test_an_invalid_answer_fails_its_question_only(fault: str) -> None:
    """A question whose answer stays invalid has a failure; it is never a number."""
    with DecisionServer(faults=[fault], rules=[DECLINES]) as server:
        run = merilo.evaluate(rows(2), **arguments(server, "context_sufficiency", limits=merilo.Limits()))
        assert len(server.requests) == 2 * 3
    assert run.metrics["context_sufficiency"].failed == 2


@pytest.mark.parametrize(("packing", "requests"), [("together", 2), ("context", 4), ("each", 8)])
def test_packing_decides_what_shares_a_request(packing: str, requests: int) -> None:
    """Together: two views. Context: each of two contexts, all contexts, the response. Each: every question."""
    with DecisionServer(rules=[DECLINES]) as server:
        run = merilo.evaluate(rows(1), **arguments(server, judged=packing))
        assert len(server.requests) == requests
    assert all(metric.scored == 1 for metric in run.metrics.values())


def test_a_kind_that_decision_models_do_not_answer_names_the_route_to_add() -> None:
    """No request is sent for a metric that needs another judge."""
    with DecisionServer() as server:
        with pytest.raises(merilo.UsageError, match=r"'parts' questions \(add judge='parts=SPEC'\)"):
            merilo.evaluate(rows(1), **arguments(server, "answer_completeness"))
        assert not server.requests
