"""Several answers to the same words: each is kept by itself, and only those that are missing are asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grouping import grouped
from server import JudgeServer, status

import merilo
from merilo.data.sample import Sample
from merilo.engine.answer_store import AnswerStore, JudgeRoles
from merilo.engine.drivers import drive_rounds
from merilo.engine.plan_run import PlanRun
from merilo.judges.base import OutgoingRequest
from merilo.judges.llm import LLMJudge
from merilo.judging.ask import Plan, draws
from merilo.judging.kinds.responses import Completion
from merilo.judging.verdicts import Failure
from merilo.metrics.base import Card, Kinds, MetricDefaults, Score, Undefined
from merilo.providers.base import Reply
from merilo.providers.openai import OpenAIProvider
from merilo.runs.store import Store


@dataclass(frozen=True, slots=True)
class Sampled(MetricDefaults):
    """The share of different texts among several replies to the same words, from one draw on."""

    name = "made:sampled"
    version = 1
    card = Card("How much replies differ.", family="made")
    needs = frozenset({"user_input"})
    asks = Kinds({Completion})

    samples: int = 2
    first: int = 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        values = (sample.require("user_input"), "r")
        question = Completion("en/noncommittal.v1", ("user_input", "response"), values, draw=self.first)
        answers = yield from draws(question, self.samples)
        texts = [answer.text for answer in answers if not isinstance(answer, Failure)]
        return Score(len(set(texts)) / len(texts), counts=dict.fromkeys(texts, 1))


def evaluate(server: JudgeServer, folder: Path, *metrics: Sampled, **arguments: Any) -> merilo.Run:
    """A run of these metrics over one sample, asked of the server."""
    judge = LLMJudge(OpenAIProvider("m", base_url=server.base_url), seed=100)
    return merilo.evaluate(
        [{"id": "1", "user_input": "q?"}],
        **grouped(metrics=metrics, judge=judge, **{"cache": folder / "cache.sqlite"} | arguments),
    )


def sampled(server: JudgeServer) -> list[tuple[int, int]]:
    """How many replies each request wanted, and its seed."""
    return [(asked.body.get("n", 1), asked.body["seed"]) for asked in server.asked]


def test_draws_are_one_request(tmp_path: Path) -> None:
    """Several samples of one question are asked for in one request, with the seed of the first draw."""
    with JudgeServer() as server:
        evaluate(server, tmp_path, Sampled(3), out=tmp_path / "a")
        assert sampled(server) == [(3, 100)]


def test_more_draws_cost_what_is_missing(tmp_path: Path) -> None:
    """After a run with two samples, one with three asks for the third alone, with the seed of its draw."""
    with JudgeServer() as server:
        evaluate(server, tmp_path, Sampled(2), out=tmp_path / "a")
        run = evaluate(server, tmp_path, Sampled(3), out=tmp_path / "b")
        assert sampled(server) == [(2, 100), (1, 102)]
        assert run.usage["requests"] == 1
        assert run.usage["cached"] == 2


def test_metrics_side_by_side_share_their_draws(tmp_path: Path) -> None:
    """What one metric has in the air, another does not ask for again."""
    with JudgeServer(delay_s=0.05) as server:
        run = evaluate(server, tmp_path, Sampled(2), Sampled(3), Sampled(4), out=tmp_path / "a", cache=False)
        assert sorted(sampled(server)) == [(1, 102), (1, 103), (2, 100)]  # each comes on a connection of its own
        assert run.usage["requests"] == 3


def test_failed_draws_alone_are_asked_again(tmp_path: Path) -> None:
    """A request for draws that failed is asked again in the same run; what was known stays."""
    with JudgeServer() as server:
        evaluate(server, tmp_path, Sampled(2), out=tmp_path / "a")
        server.fail_next(status(400))
        evaluate(server, tmp_path, Sampled(4), out=tmp_path / "b")
        run = evaluate(server, tmp_path, Sampled(4), out=tmp_path / "b", retry_failed=True)
        assert sampled(server) == [(2, 100), (2, 102), (2, 102)]
        assert run.metrics["made:sampled"].scored == 1


class Teller:
    """Sends nothing and gives each sample another text."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def __call__(self, send: OutgoingRequest) -> Reply:
        before = sum(self.sent)
        self.sent.append(send.request.samples)
        return Reply(tuple(f"reply {before + n}" for n in range(send.request.samples)))

    def batch(self, sends: Sequence[OutgoingRequest]) -> Iterator[tuple[int, Reply]]:
        """The replies to a round."""
        return enumerate(map(self, sends))


def walks() -> list[PlanRun]:
    """Plans that want the draws 0 and 1, 0 to 2, and 1 to 4 of one question."""
    sample = Sample("1", user_input="q?")
    return [PlanRun(metric, "m", sample) for metric in (Sampled(2), Sampled(3), Sampled(4, first=1))]


def test_rounds_ask_for_the_missing_draws(tmp_path: Path) -> None:
    """Each draw is asked for once and every plan sees the same text for it."""
    store = Store.open(tmp_path / "s", create=True)
    answers = AnswerStore(JudgeRoles({"judge": LLMJudge(OpenAIProvider("m", base_url="http://h/v1"))}), store, None)
    teller = Teller()
    done = drive_rounds(walks(), answers, teller.batch)
    assert teller.sent == [2, 1, 2]
    assert [list(walk.result().outcome.counts) for walk in done] == [
        ["reply 0", "reply 1"],
        ["reply 0", "reply 1", "reply 2"],
        ["reply 1", "reply 2", "reply 3", "reply 4"],
    ]
    store.close()
