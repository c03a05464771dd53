"""`merilo judge check SPEC --packing`: models whose answers depend on other questions are found, others are not."""

import asyncio
import json
from collections import Counter

import pytest
from command_line import Here
from decider import Decider
from decision_server import DecisionServer
from each_case import each_case
from server import Asked, JudgeServer

from merilo.commands.check.options import CheckOptions
from merilo.commands.check.packing import PackingTest, packing_page, packing_record, run_packing
from merilo.commands.evaluate.options import Limits, Model
from merilo.errors import UsageError
from merilo.judges.decisions import DecisionJudge
from merilo.judges.llm import LLMJudge
from merilo.providers.openai import OpenAIProvider


def packed(decider: Decider, **options: object) -> PackingTest:
    return asyncio.run(run_packing(CheckOptions(judge=DecisionJudge(decider), **options)))  # type: ignore[arg-type]  # fields by name


@each_case("wire", ["decisions", "systemone"])
@each_case(
    ("faults", "advice"),
    [
        ([], "Packing together is fine"),
        (["coupled"], "Use --judged each"),
        (["ordered"], "Use --judged each"),
        (["noisy"], "Packing together is fine"),
    ],
)
def test_servers_are_tested_over_both_wires(wire: str, faults: list[str], advice: str) -> None:
    """Answers that depend on other questions or their order are found; noise between requests is not blamed."""
    rules = [{"match": "", "p": 0.42, "probabilities": [0.42, 0.4, 0.18]}]
    with DecisionServer(faults=faults, rules=rules) as server:
        judge = Model(f"{wire}:mock-decider", base_url=f"{server.url}/v1")
        found = asyncio.run(run_packing(CheckOptions(judge=judge, number=12)))
        assert found.advice.startswith(advice)
        assert [each.fine for each in found.results] == ([False, False, True] if "each" in advice else [True] * 3)
        assert (found.noise > 0.03) == (found.limit > 0.05) == ("noisy" in faults)
        assert (found.usage["requests"], found.failed) == (len(server.requests), 0)


def test_answers_that_depend_on_names_need_the_packing_context() -> None:
    """A model that reads the name of a context, not its text, is right about the only context of a request."""
    found = packed(Decider(reads_names=True), tasks=["chunk_relevance"])
    assert [each.fine for each in found.results] == [False, True, True]
    assert found.advice.startswith("Use --judged context: with together, ")


def test_every_request_is_sent_three_times() -> None:
    """Each packing asks about every record; together is one request with eight other questions and five contexts."""
    decider = Decider()
    packed(decider, tasks=["chunk_relevance"], number=2)
    states = [json.loads(request.state)["contexts"] for request in decider.requests]
    assert sorted(map(len, states)) == [1] * 12 + [5] * 6
    assert [len(request.questions) > 8 for request in decider.requests] == [True] * 12 + [False] * 6


def test_the_record_has_all_figures() -> None:
    """The JSON has AUROC, mean move and changed decisions of each packing, the noise and the advice."""
    found = packed(Decider(), number=8)
    record = packing_record(found)
    assert [each["packing"] for each in record["results"]] == ["together", "context", "each"]
    assert {"auroc", "move", "changed", "fine"} < record["results"][0].keys()
    assert json.loads(json.dumps(record))["advice"] == found.advice
    assert "together" in str(packing_page(found, 80))


def test_a_limit_gives_no_comparison() -> None:
    """Some packings without answers cannot be compared with others."""
    with pytest.raises(UsageError, match=r"Not all packings were asked. Limit of 30 requests reached"):
        packed(Decider(), limits=Limits(max_requests=30))


def test_the_command_prints_the_advice(here: Here) -> None:
    """The JSON has the same figures as the page, and the check exits with 0 also if a packing is not fine."""
    with DecisionServer(faults=["coupled"]) as server:
        address = ("--base-url", f"{server.url}/v1", "--number", "6")
        done = here.merilo("judge", "check", "decisions:mock-decider", "--packing", *address)
        record = here.json("judge", "check", "decisions:mock-decider", "--packing", *address)
    assert done.returncode == 0
    assert record["advice"] in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--packing tests models that are asked by requests, not 'embedded'."),
        (["--plan", "--out", "here"], "--packing has no use for --plan, --out."),
    ],
)
def test_wrong_use_is_one_sentence(here: Here, options: list[str], message: str) -> None:
    """Other judges have no packing, and nothing is stored or estimated."""
    done = here.merilo("judge", "check", "embedded", "--packing", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize("steady", [True, False])
def test_a_language_model_is_tested_in_the_prompts_of_a_run(steady: bool) -> None:
    """A model that grades a context by its place among others is found; requests are those of three packings."""

    def grade(asked: Asked) -> int:
        return 1 if steady or asked.number < 5 else 0

    with JudgeServer(grade) as server:
        judge = LLMJudge(OpenAIProvider("test-model", base_url=server.base_url))
        options = CheckOptions(judge=judge, tasks=["chunk_relevance"], number=6)  # type: ignore[list-item]  # names will do
        found = asyncio.run(run_packing(options))
        assert server.count == found.usage["requests"] == 6 * 3 * 3
        assert Counter(each.together for each in server.asked) == {True: 6 * 3, False: 6 * 3 * 2}
    assert [each.fine for each in found.results] == [steady, True, True]
    assert found.advice.startswith("Packing together is fine" if steady else "Use --judged context")
