"""Cascades: which judge is asked what, and what names a cascade."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from merilo.commands.evaluate.options import Options
from merilo.commands.evaluate.settings import judges_of
from merilo.errors import UsageError
from merilo.judges.cascade import (
    Cascade,
    Decision,
    Stage,
    cascade_of,
    each_judge,
    is_stage_role,
    min_pilot,
    stage_role,
    with_stages,
)
from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.llm import LLMJudge
from merilo.judges.scripted import ScriptedJudge
from merilo.judges.spec import CascadeOptions, judge_from, judges_from
from merilo.judging.kinds.completion import Completion, CompletionVerdict
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.judging.kinds.statements import Statements, StatementsVerdict
from merilo.judging.kinds.support import Support, SupportLabel, SupportVerdict
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Failure, FailureKind, Verdict

URL = "http://127.0.0.1:9/v1"


def supports(chances: dict[str, float | None]) -> ScriptedJudge:
    """A judge of support with the probability of each statement; yes from one half on."""

    def answer(question: Question[Any]) -> Verdict | Failure:
        if not isinstance(question, Support):
            return Failure(FailureKind.REFUSED, "another kind")
        chance = chances.get(question.statement)
        if chance is None:
            return Failure(FailureKind.REFUSED, "it will not")
        label = SupportLabel.SUPPORTED if chance >= 0.5 else SupportLabel.NOT_STATED
        return SupportVerdict(label, (0,) if chance >= 0.5 else (), probability=chance)

    return ScriptedJudge.by(answer, version="1", answers=frozenset({Support}))


def last_says(question: Question[Any]) -> Verdict:
    match question:
        case Support():
            return SupportVerdict(SupportLabel.SUPPORTED, (0,), reason="the last")
        case Relevance():
            return RelevanceVerdict(2, (0,), "the last")
        case Statements():
            return StatementsVerdict(())
        case _:
            return CompletionVerdict("the last")


LAST = ScriptedJudge.by(last_says, version="1")
CHANCES = {"sure yes": 0.95, "sure no": 0.04, "unsure": 0.7, "at the edge": 0.9}


def from_(kind: str, threshold: float = 0.9) -> dict[Decision, float]:
    """The same threshold for yes and no."""
    return {Decision(kind, yes=True): threshold, Decision(kind, yes=False): threshold}


def cascade(kind: str = "support") -> Cascade:
    return Cascade((Stage(supports(CHANCES), from_(kind)),), LAST)


def said(judge: Cascade, question: Question[Any] | Pack) -> tuple[Any, ...]:
    """The answers of a judge that needs no request."""
    conversation = judge.answer(question)
    with pytest.raises(StopIteration) as stop:
        next(conversation)
    answers: tuple[Any, ...] = stop.value.value
    return answers


@pytest.mark.parametrize(
    ("statement", "by_first"),
    [("sure yes", True), ("sure no", True), ("at the edge", True), ("unsure", False), ("refused", False)],
)
def test_the_first_answers_where_it_is_sure(statement: str, by_first: bool) -> None:
    """From the threshold on its verdict stands, for yes and no alike; all else and its failures go on."""
    (verdict,) = said(cascade(), Support(statement, ("Text.",)))
    assert (verdict.reason != "the last") == by_first


def test_kinds_without_a_threshold_go_on() -> None:
    """Only the last judge is asked what the first has no threshold for, or does not answer."""
    judge = cascade("sufficiency")
    assert judge.places(Support) == (1,)
    assert judge.places(Relevance) == (1,)
    assert said(judge, Support("sure yes", ("Text.",)))[0].reason == "the last"
    assert said(cascade(), Relevance("q", ("s",)))[0].reason == "the last"
    assert said(cascade(), Completion("r", (), ()))[0].text == "the last"


def test_what_the_last_does_not_answer_the_first_does() -> None:
    """A kind that the last judge does not know is answered by whoever does, sure or not."""
    first = supports(CHANCES)
    judge = Cascade((Stage(first),), ScriptedJudge.by(last_says, answers=frozenset({Relevance})))
    assert judge.answers == {Support, Relevance}
    assert judge.places(Support) == (0,)
    assert said(judge, Support("unsure", ("Text.",)))[0].probability == 0.7


def test_a_pack_is_split_by_sureness() -> None:
    """Of statements judged together those that are unsure go on together, and all answers come in their order."""
    asked: list[Any] = []
    plan = cascade().consult(Pack(tuple(Support(each, ("Text.",)) for each in ("unsure", "sure yes", "refused"))))
    step = next(plan)
    answers = [supports(CHANCES).script.find(each) for each in step[0]]
    asked.append([(each.role, each.statement) for each in step[0]])
    step = plan.send(tuple(answers))
    asked.append([(each.role, each.statement) for each in step[0]])
    with pytest.raises(StopIteration) as stop:
        plan.send(tuple(map(last_says, step[0])))
    assert asked == [
        [("judge>1", "unsure"), ("judge>1", "sure yes"), ("judge>1", "refused")],
        [("judge>2", "unsure"), ("judge>2", "refused")],
    ]
    assert [each.reason == "the last" for each in stop.value.value] == [True, False, True]


def test_yes_and_no_have_their_own_thresholds() -> None:
    """A decision without a threshold goes on, however confident it is."""
    judge = Cascade((Stage(supports(CHANCES), {Decision("support", yes=False): 0.9}),), LAST)
    assert said(judge, Support("sure no", ("Text.",)))[0].probability == 0.04
    assert said(judge, Support("sure yes", ("Text.",)))[0].reason == "the last"


def test_a_judge_without_probabilities_has_confidence_0() -> None:
    """It answers if everything of a kind may be answered by it, and nothing otherwise."""

    def plain(question: Question[Any]) -> Verdict:
        del question
        return SupportVerdict(SupportLabel.SUPPORTED, (0,), reason="the first")

    first = ScriptedJudge.by(plain, version="1", answers=frozenset({Support}))
    for threshold, reason in ((0.5, "the last"), (0.0, "the first")):
        judge = Cascade((Stage(first, from_("support", threshold)),), LAST)
        assert said(judge, Support("any", ("Text.",)))[0].reason == reason


def test_a_revoked_kind_goes_to_the_last_judge() -> None:
    """It is asked about confident answers too, apart from those that it was asked about before."""
    judge = replace(cascade(), revoked=frozenset({"support"}))
    assert said(judge, Support("sure yes", ("Text.",)))[0].reason == "the last"
    statements = ("sure yes", "unsure", "sure no", "refused")
    plan = judge.consult(Pack(tuple(Support(each, ("Text.",)) for each in statements)))
    step = next(plan)
    step = plan.send(tuple(supports(CHANCES).script.find(each) for each in step[0]))  # type: ignore[arg-type]
    assert [[each.statement for each in group] for group in step] == [["unsure", "refused"], ["sure yes", "sure no"]]  # type: ignore[attr-defined]
    with pytest.raises(StopIteration) as stop:
        plan.send(tuple(last_says(each) for group in step for each in group))
    assert all(each.reason == "the last" for each in stop.value.value)


def test_pilot_questions_are_asked_alone() -> None:
    """A question that the last judge has answered alone does not join a pack, so it is not paid for again."""
    packing = ScriptedJudge.by(last_says, version="1", packs=frozenset({Support}))
    questions = tuple(Support(each, ("Text.",)) for each in ("a", "b", "c"))
    judge = Cascade((Stage(supports({})),), packing, alone=frozenset({questions[1].content}))
    step = next(judge.consult(Pack(questions)))
    assert [[each.statement for each in group] for group in step] == [["b"], ["a", "c"]]  # type: ignore[attr-defined]


def test_a_language_that_the_first_does_not_support_goes_on() -> None:
    """The embedded judge is asked about English only: a pilot on mixed data would hide its errors elsewhere."""
    german = Relevance("Wie hoch ist der Turm?", ("Der Turm ist 330 Meter hoch.",))
    english = Relevance("How tall is the tower?", ("The tower is 330 metres tall.",))

    def roles(question: Question[Any]) -> list[str]:
        stage = Stage(EmbeddedJudge(), from_("relevance", 0.0))
        return [each.role for group in next(Cascade((stage,), LAST).consult(question)) for each in group]

    assert roles(english) == ["judge>1"]
    assert roles(german) == ["judge>2"]


def test_a_judge_appears_in_a_cascade_once() -> None:
    """Asked again it would answer the same; and a cascade is not a judge of another one."""
    with pytest.raises(UsageError, match="embedded appears twice in a cascade"):
        cascade_of([EmbeddedJudge(), EmbeddedJudge()])
    with pytest.raises(UsageError, match="cannot be a judge of another cascade"):
        cascade_of([cascade(), EmbeddedJudge()])


def test_a_chain_of_three() -> None:
    """Each judge is asked what the one before was not sure of."""
    second = supports({"unsure": 0.99, "refused": 0.5})
    judge = Cascade((Stage(supports(CHANCES), from_("support")), Stage(second, from_("support"))), LAST)
    assert said(judge, Support("unsure", ("Text.",)))[0].probability == 0.99
    assert said(judge, Support("sure yes", ("Text.",)))[0].probability == 0.95
    assert said(judge, Support("refused", ("Text.",)))[0].reason == "the last"
    assert [*each_judge([judge])] == [*judge.judges]
    assert [*with_stages({"judge": judge})] == ["judge", "judge>1", "judge>2", "judge>3"]
    assert is_stage_role(stage_role(judge.name, 0))
    assert not is_stage_role(judge.name)


def test_what_may_be_compared() -> None:
    """A pilot compares decisions that both judges give; lists and texts go to the last judge."""
    judge = cascade_of([EmbeddedJudge(), LAST])
    assert judge.candidates(Relevance) == judge.candidates(Support) == (0,)
    assert judge.candidates(Statements) == judge.candidates(Completion) == ()
    assert cascade_of([EmbeddedJudge(), supports({})]).candidates(Relevance) == ()


def test_the_agreement_of_the_first_judge_is_shown_with_the_cascade() -> None:
    """The summary names the rule and the first judge's agreement with human labels: its verdicts are in the scores."""
    embedded = EmbeddedJudge()
    rates = cascade_of([embedded, LAST]).agreement_note
    assert rates is not None
    assert rates.startswith("embedded answers if a pilot on the run's own data shows that at most 5% of its answers")
    assert rates.endswith(f". embedded: {embedded.agreement_note}")


def test_the_fingerprint_names_judges_and_procedure() -> None:
    """Another judge, rate, pilot or seed is another cascade; the measured thresholds are not, they are a result."""
    base = cascade_of([EmbeddedJudge(), LAST])
    marks = json.dumps(base.fingerprint(), sort_keys=True)
    others = [
        cascade_of([EmbeddedJudge(), LAST], max_error=0.1),
        cascade_of([EmbeddedJudge(), LAST], pilot=300),
        cascade_of([supports(CHANCES), LAST]),
        replace(base, seed=1),
        replace(base, audit_rate=0.1),
    ]
    assert all(json.dumps(each.fingerprint(), sort_keys=True) != marks for each in others)
    measured = replace(base, stages=(Stage(EmbeddedJudge(), from_("relevance")),), revoked=frozenset({"support"}))
    assert json.dumps(measured.fingerprint(), sort_keys=True) == marks


def test_a_pilot_must_be_able_to_show_something() -> None:
    """200 questions at 5 %, more for less; with fewer than 72 nothing could ever pass at 5 %."""
    assert cascade_of([EmbeddedJudge(), LAST]).pilot == 200
    assert cascade_of([EmbeddedJudge(), LAST], max_error=0.01).pilot == 1_000
    assert (min_pilot(0.05), min_pilot(0.01)) == (72, 368)
    assert cascade_of([EmbeddedJudge(), LAST], pilot=72).pilot == 72
    with pytest.raises(UsageError, match=r"A pilot of 71 questions cannot show .* at least 72"):
        cascade_of([EmbeddedJudge(), LAST], pilot=71)


def test_a_cascade_in_words() -> None:
    """`FIRST>SECOND` names one; address, key and way of judging go to its judges at an address."""
    judge = judge_from("embedded>openai:m", base_url=URL, judged="each")
    assert isinstance(judge, Cascade)
    assert judge.name == "embedded>openai:m"
    assert isinstance(judge.last, LLMJudge)
    assert judge.last.judged.value == "each"
    assert judge.max_error == 0.05
    named = judges_from(["cheap=embedded > openai:m"], base_url=URL, cascades=CascadeOptions(0.1, 150))
    assert [*named] == ["cheap", "judge"]
    assert isinstance(named["judge"], Cascade)
    assert (named["judge"].max_error, named["judge"].pilot) == (0.1, 150)


@pytest.mark.parametrize(
    ("spec", "options", "says"),
    [
        ("embedded>", {}, "each side of >"),
        ("openai:a>anthropic:b", {"base_url": URL}, "one kind of provider"),
        ("embedded>embedded", {"base_url": URL}, "only for judges at an address"),
        ("embedded>gpt", {}, "Unknown judge"),
    ],
)
def test_wrong_words(spec: str, options: dict[str, str], says: str) -> None:
    """What names no cascade is told."""
    with pytest.raises(UsageError, match=says):
        judge_from(spec, **options)


def test_options_of_cascades_need_one() -> None:
    """max_error and cascade_pilot without a cascade are an error, as is a rate of 1."""
    for options in (Options(max_error=0.1), Options(cascade_pilot=300)):
        with pytest.raises(UsageError, match="are options of a cascade"):
            judges_of(options)
    with pytest.raises(UsageError, match="between 0 and 1"):
        judges_of(Options(judge="embedded>embedded", max_error=1.0))
