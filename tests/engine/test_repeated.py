"""A metric that asks its judge several times: its questions, its mean, and its outcome if draws differ in kind."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from each_case import each_case

from merilo.data.context import Context
from merilo.data.sample import Sample
from merilo.engine.answer_store import JudgeRoles
from merilo.engine.plan_run import PlanRun
from merilo.engine.repeated import STRIDE, Repeated, draws_for, outcome_of_draws, repeated
from merilo.errors import UsageError
from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.llm import LLMJudge
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.ask import Answer, Plan, ask
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict
from merilo.judging.kinds.measured import Embeddings
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Card, Failed, Kinds, MetricDefaults, Outcome, Score, Undefined
from merilo.metrics.registry import parse_metric
from merilo.providers.openai import OpenAIProvider
from merilo.runs.outcomes import Result, outcome_from

SAMPLE = Sample("s", user_input="Where is it?", retrieved_contexts=(Context("It is in Paris."),))
LOST = Failed(Failure(FailureKind.REFUSED, "It will not."))


@dataclass(frozen=True, slots=True)
class Graded(MetricDefaults):
    """Half the grade of the first context; asks for a vector too, and twice for the grade if `often`."""

    name: ClassVar[str] = "graded"
    version: ClassVar[int] = 1
    card: ClassVar[Card] = Card(summary="A grade.")
    needs = frozenset[str]()
    asks = Kinds({Relevance, Embeddings})
    often: bool = False

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        yield from ask(Embeddings(texts=("It is in Paris.",)))
        question = Relevance(user_input=sample.user_input or "", sentences=("It is in Paris.",))
        verdict = yield from ask(question.at(STRIDE) if self.often else question)
        return Score(verdict.grade / 2, counts={"grade": verdict.grade})


def asked(metric: Any, answers: list[Answer]) -> tuple[Outcome, list[Question[Any]]]:  # Any: a metric or a wrapper
    """The outcome with these answers to its relevance questions, and all questions."""
    run, questions, left = PlanRun(metric, "graded", SAMPLE).start(), list[Any](), iter(answers)
    while run.step is not None:
        step = [question for group in run.step for question in group]
        questions += step
        run.send([(b"", each.guess() if isinstance(each, Embeddings) else next(left)) for each in step])
    return run.result().outcome, questions


def test_the_score_is_the_mean_and_the_first_draw_asks_what_one_draw_asks() -> None:
    """Draw k adds 1,000 k to the number of each judged question; a vector is the same question in every draw."""
    once, alone = asked(Graded(), [RelevanceVerdict(2)])
    outcome, questions = asked(Repeated(Graded(), 3), [RelevanceVerdict(2), RelevanceVerdict(1), RelevanceVerdict(0)])
    assert isinstance(once, Score)
    assert once.draws == ()
    assert outcome == Score(0.5, counts={"grade": 2}, draws=(1.0, 0.5, 0.0))
    assert [each.draw for each in questions if isinstance(each, Relevance)] == [0, STRIDE, 2 * STRIDE]
    assert len({each for each in questions if isinstance(each, Embeddings)}) == 1
    assert set(alone) <= set(questions)


def test_a_failed_draw_fails_the_sample() -> None:
    """One question without a verdict in one draw gives the failure of that draw, whatever the others give."""
    answers: list[Answer] = [RelevanceVerdict(2), LOST.error, RelevanceVerdict(0)]
    outcome, _ = asked(Repeated(Graded(), 3), answers)
    assert outcome == LOST


@each_case(("draws", "expected"), [
        ([Score(0.1), Score(0.1), Score(0.1)], Score(0.1, draws=(0.1, 0.1, 0.1))),
        ([Score(1), Score(0.0)], Score(0.5, draws=(1.0, 0.0))),
        ([Score(1.0), Undefined("no statement")], Undefined("1 of 2 draws have no value: no statement")),
        ([Undefined("empty"), Undefined("empty")], Undefined("empty")),
        ([Undefined("empty"), LOST], LOST),
        ([Score(0.2, flags=("first",)), Score(0.4, flags=("second",))],
         Score(0.30000000000000004, flags=("first",), draws=(0.2, 0.4))),
    ])  # fmt: skip
def test_the_outcome_of_draws(draws: list[Outcome], expected: Outcome) -> None:
    """A mean needs a score in every draw; a failure comes before a missing value; details are of the first draw."""
    assert outcome_of_draws(draws) == expected


def test_a_plan_with_too_many_draws_is_an_error_of_the_metric() -> None:
    """A plan that uses draw 1,000 itself would ask the question of another draw, so it fails."""
    outcome, _ = asked(Repeated(Graded(often=True), 2), [RelevanceVerdict(2)] * 2)
    assert isinstance(outcome, Failed)
    assert outcome.error.kind is FailureKind.BROKEN
    assert "draws below 1000" in outcome.error.message


def test_draws_are_stored_only_if_there_are_several() -> None:
    """An outcome with draws reads back equal; its line is its record; without draws the key is absent."""
    outcome = Score(0.5, draws=(1.0, 0.0))
    result = Result("s", "graded", outcome)
    assert outcome_from(result.record()) == outcome
    assert '"evidence":[],"draws":[1.0,0.0],"trail":[]' in result.line()
    assert "draws" not in Result("s", "graded", Score(0.5)).line()
    assert "draws" not in Result("s", "graded", Score(0.5)).record()


def script(folder: Path, match: str) -> ScriptedJudge:
    path = folder / "script.jsonl"
    path.write_text(f'{{"kind": "relevance", "match": {match}, "verdict": {{"grade": 1}}}}\n', encoding="utf-8")
    return ScriptedJudge.from_file(path)


def test_a_judge_that_cannot_vary_is_refused(tmp_path: Path) -> None:
    """The embedded judge and a script that ignores the draw are refused; an LLM and a script by draw are not."""
    metrics = {"context_relevance": parse_metric("context_relevance"), "hit_rate@1": parse_metric("hit_rate@1")}
    wanted: Any = metrics  # neither is a composite
    for judge in (EmbeddedJudge(), script(tmp_path, "{}")):
        with pytest.raises(UsageError, match="always answers a question equally"):
            draws_for(wanted, JudgeRoles({"judge": judge}), 2)
        assert draws_for(wanted, JudgeRoles({"judge": judge}), 1) == {}
    llm = LLMJudge(OpenAIProvider("m", base_url="http://127.0.0.1:9/v1"))
    for varying in (llm, script(tmp_path, '{"draw": 1000}')):
        assert draws_for(wanted, JudgeRoles({"judge": varying}), 2) == {"context_relevance": 2}
    with pytest.raises(UsageError, match="needs a metric that asks a judge; leave it out for hit_rate@1"):
        draws_for({"hit_rate@1": wanted["hit_rate@1"]}, JudgeRoles({"judge": llm}), 2)


def test_only_the_named_metrics_are_repeated() -> None:
    """The others stay the same objects."""
    metric = Graded()
    found = repeated({"a": metric, "b": metric}, {"b": 2})
    assert found["a"] is metric
    assert isinstance(found["b"], Repeated)
