"""The neighbour test: a run with a decision model asks eight of its questions again at its end, each alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from decider import Decider
from decision_server import DecisionServer

import merilo
from merilo.commands.evaluate.options import Model
from merilo.commands.merge.run import merge_runs
from merilo.commands.show.summary import run_markdown
from merilo.judges.decisions import DecisionJudge, Packing
from merilo.rendering.overview import overview_page, overview_record
from merilo.runs.run import Run

METRICS = ["context_relevance", "context_sufficiency", "faithfulness", "answer_relevancy"]
WARNING = "of 8 decisions changed when asked alone."


def rows(count: int = 4) -> list[dict[str, Any]]:
    return [
        {
            "id": str(n),
            "user_input": f"Who built tower {n}?",
            "retrieved_contexts": [
                f"Tower {n} was built by Ann. It is tall.",
                "Rain falls.",
                "Another text. And more.",
            ],
            "response": f"Ann built tower {n}. It is tall.",
        }
        for n in range(count)
    ]


def evaluated(decider: Decider, out: Path, packing: Packing = Packing.SAMPLE, **limits: float) -> Run:
    judge = DecisionJudge(decider, packing)
    return merilo.evaluate(rows(), METRICS, judge=judge, limits=limits, storage={"cache": False}, out=out)


def test_a_coupled_model_is_reported(tmp_path: Path) -> None:
    """If decisions change without the other questions, the summaries of the run say so and name the remedy."""
    run = evaluated(Decider("coupled"), tmp_path / "run")
    advice = f"{WARNING} Test the judge (merilo judge check SPEC --packing), or use --judged each."
    assert all(advice in " ".join(str(page).split()) for page in (run, overview_page(run, 80), run_markdown(run)))
    assert overview_record(run)["asked_alone"]["changed"] > 1
    assert "решений изменились, когда вопросы заданы по одному" in str(overview_page(run, 200, language="ru"))


def test_requests_of_the_test_are_counted(tmp_path: Path) -> None:
    """The usage of the run counts all requests that its server has received."""
    rules = [{"match": "", "p": 0.42, "probabilities": [0.42, 0.4, 0.18]}]
    with DecisionServer(faults=["coupled"], rules=rules) as server:
        judge = Model("systemone:mock-decider", base_url=server.url)
        run = merilo.evaluate(rows(), METRICS, judge=judge, storage={"cache": False}, out=tmp_path / "run")
        assert run.usage["requests"] == len(server.requests) == 16
    assert WARNING in str(run)


def test_an_ordered_model_is_reported(tmp_path: Path) -> None:
    """Answers that depend on their place in the request change when they are asked alone."""
    assert WARNING in str(evaluated(Decider("ordered"), tmp_path / "run"))


def test_an_independent_model_is_not_reported(tmp_path: Path) -> None:
    """Two requests per sample and eight at the end; no warning if no decision changes."""
    decider = Decider()
    run = evaluated(decider, tmp_path / "run")
    assert [len(request.questions) > 2 for request in decider.requests] == [True] * 8 + [False] * 8
    assert run.usage["requests"] == 16
    assert run.usage["asked_alone"] == {"asked": 8, "changed": 0}
    assert "asked alone" not in str(run)


def test_outcomes_do_not_depend_on_the_test(tmp_path: Path) -> None:
    """The answers of the test are not stored: outcomes keep those of the requests with many questions."""
    decider = Decider("coupled")
    run = evaluated(decider, tmp_path / "run", max_requests=8)
    tested = evaluated(Decider("coupled"), tmp_path / "tested")
    assert (tested.path / "outcomes.jsonl").read_bytes() == (run.path / "outcomes.jsonl").read_bytes()


@pytest.mark.parametrize(("limits", "requests"), [({"max_requests": 8}, 8), ({"max_cost_usd": 0.00085}, 8)])
def test_a_limit_ends_the_test_and_not_the_run(tmp_path: Path, limits: dict[str, float], requests: int) -> None:
    """A run that needs its whole limit is complete; the test is left out."""
    decider = Decider()
    run = evaluated(decider, tmp_path / "run", **limits)
    assert run.complete
    assert (run.usage["stopped"], run.usage["raise_to"]) == (None, None)
    assert len(decider.requests) == requests
    assert "asked_alone" not in run.usage


def test_a_stopped_run_is_not_tested(tmp_path: Path) -> None:
    """After a limit has stopped a run, nothing is asked again; the call that completes it asks."""
    decider = Decider()
    assert not evaluated(decider, tmp_path / "run", max_requests=4).complete
    assert len(decider.requests) == 4
    assert evaluated(decider, tmp_path / "run").usage["asked_alone"]["asked"] == 8
    assert len(decider.requests) == 16


def test_a_finished_run_is_not_tested_again(tmp_path: Path) -> None:
    """The same call later asks nothing and keeps the warning."""
    decider = Decider("coupled")
    evaluated(decider, tmp_path / "run")
    run = evaluated(decider, tmp_path / "run")
    assert len(decider.requests) == 16
    assert WARNING in str(run)


def test_merged_shards_add_up(tmp_path: Path) -> None:
    """Each shard is tested; a merged run has the sums, and verifies."""
    judge = DecisionJudge(Decider("coupled"))
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    shards = [
        merilo.evaluate(data, METRICS, judge=judge, storage={"cache": False}, reading={"shard": f"{n}/2"}, out=out)
        for n, out in ((1, tmp_path / "first"), (2, tmp_path / "second"))
    ]
    merge_runs(shards, tmp_path / "merged")
    merged, parts = merilo.Run.open(tmp_path / "merged").usage["asked_alone"], [s.usage["asked_alone"] for s in shards]
    assert merged == {name: sum(part[name] for part in parts) for name in ("asked", "changed")}
    assert merged["asked"] == 16


def test_questions_that_are_asked_alone_are_not_tested(tmp_path: Path) -> None:
    """Packing each has no neighbours, so nothing is asked again."""
    run = evaluated(Decider("coupled"), tmp_path / "run", Packing.QUESTION)
    assert "asked_alone" not in run.usage


def test_a_plan_counts_the_test(tmp_path: Path) -> None:
    """The estimate has a row for the requests at the end, which the total includes."""
    found = merilo.plan(rows(), METRICS, judge=DecisionJudge(Decider()), storage={"cache": False})
    assert found.metrics[-1].metric == "asked again at the end"
    assert (found.metrics[-1].added.requests, found.typical.requests) == (8, 16)
    alone = merilo.plan(rows(), METRICS, judge=DecisionJudge(Decider(), Packing.QUESTION), storage={"cache": False})
    assert "asked again at the end" not in [each.metric for each in alone.metrics]
