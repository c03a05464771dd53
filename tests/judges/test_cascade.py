"""Cascades: who is asked what, the thresholds they take, and what names them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from merilo.errors import UsageError
from merilo.judges.blended import BlendedModel
from merilo.judges.cascade import Cascade, Stage, cascade_of, each_judge, with_stages
from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.llm import LLMJudge
from merilo.judges.reliability import Reliability, Sure
from merilo.judges.scripted import ScriptedJudge
from merilo.judges.spec import Sureness, judge_from, judges_from
from merilo.judging.questions import Completion, Pack, Question, Relevance, Statements, Support
from merilo.judging.verdicts import (
    CompletionVerdict,
    Failure,
    FailureKind,
    RelevanceVerdict,
    StatementsVerdict,
    SupportLabel,
    SupportVerdict,
    Verdict,
)
from merilo.options import Options, judges_of

if TYPE_CHECKING:
    from pathlib import Path

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
SURE = Sure(0.9, 0.5, 100, 1)
CHANCES = {"sure yes": 0.95, "sure no": 0.04, "unsure": 0.7, "at the edge": 0.9}


def cascade(**sure: Sure) -> Cascade:
    return Cascade((Stage(supports(CHANCES), sure or {"support": SURE}),), LAST)


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
    """What the first is never sure of, or does not answer, only the last is asked."""
    judge = cascade(relevance=SURE)
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


def test_a_language_that_the_first_does_not_know_goes_on() -> None:
    """Its own table is of English records; by a table of the user's own labels it is asked in every language."""
    first, sure = EmbeddedJudge(), {"relevance": Sure(0.0, 0.5, 100, 1)}
    german = Relevance("Wie hoch ist der Turm?", ("Der Turm ist 330 Meter hoch.",))
    english = Relevance("How tall is the tower?", ("The tower is 330 metres tall.",))

    def roles(question: Question[Any], *, in_any_language: bool) -> list[str]:
        stage = Stage(first, sure, in_any_language=in_any_language)
        return [each.role for group in next(Cascade((stage,), LAST).consult(question)) for each in group]

    assert roles(english, in_any_language=False) == ["judge>1"]
    assert roles(german, in_any_language=False) == ["judge>2"]
    assert roles(german, in_any_language=True) == ["judge>1"]


def test_a_judge_stands_in_a_cascade_once() -> None:
    """Asked again it would say the same again."""
    with pytest.raises(UsageError, match="embedded stands twice in a cascade"):
        cascade_of([EmbeddedJudge(), EmbeddedJudge()])


def test_a_chain_of_three() -> None:
    """Each judge is asked what the one before was not sure of."""
    second = supports({"unsure": 0.99, "refused": 0.5})
    judge = Cascade((Stage(supports(CHANCES), {"support": SURE}), Stage(second, {"support": SURE})), LAST)
    assert said(judge, Support("unsure", ("Text.",)))[0].probability == 0.99
    assert said(judge, Support("sure yes", ("Text.",)))[0].probability == 0.95
    assert said(judge, Support("refused", ("Text.",)))[0].reason == "the last"
    assert [*each_judge([judge])] == [*judge.judges]
    assert [*with_stages({"judge": judge})] == ["judge", "judge>1", "judge>2", "judge>3"]


def test_what_is_known_of_the_first_judge_is_told_with_the_cascade() -> None:
    """The summary of a cascade gives the first judge's agreement with people: its verdicts stand in the scores."""
    first = supports(CHANCES)
    assert cascade().rates == f"{first.name} answers where it is sure enough (support from 0.90); {LAST.name} all else"
    embedded = EmbeddedJudge()
    told = Cascade((Stage(embedded, {"support": SURE}),), LAST).rates
    assert told is not None
    assert told.endswith(f". embedded: {embedded.rates}")


def test_the_fingerprint_names_judges_thresholds_and_checks() -> None:
    """Another threshold, judge, share or seed is another cascade; the fingerprint is JSON."""
    base = cascade()
    marks = json.dumps(base.fingerprint(), sort_keys=True)
    others = [
        cascade(support=Sure(0.8, 0.5, 100, 1)),
        Cascade(base.stages, EmbeddedJudge()),
        Cascade(base.stages, LAST, checked_share=0.1),
        Cascade(base.stages, LAST, seed=1),
    ]
    assert all(json.dumps(each.fingerprint(), sort_keys=True) != marks for each in others)
    assert base.rates is not None
    assert "support from 0.90" in base.rates


def check_file(folder: Path, judge: Any, errors: int = 0) -> Path:
    """What `merilo judge check --json` writes of a judge, as far as a cascade reads it."""
    table = Reliability.of("r", [(0.97, False)] * 200 + [(0.8, n < errors) for n in range(200)])
    path = folder / f"{judge.name.replace(':', '-').replace('<', '').replace('>', '')[-20:]}-{errors}.json"
    fields = {"name": judge.name, "fingerprint": judge.fingerprint()}
    path.write_text(json.dumps({"judge": fields, "cascade": {"support": table.to_fields()}}), encoding="utf-8")
    return path


def test_thresholds_come_from_a_check(tmp_path: Path) -> None:
    """The file of the first judge gives the smallest threshold; the largest error decides where it lies."""
    first = supports(CHANCES)
    path = check_file(tmp_path, first, errors=30)
    assert cascade_of([first, LAST], checks=[path]).stages[0].sure["support"].least == 0.97
    assert cascade_of([first, LAST], max_error=0.2, checks=[path]).stages[0].sure["support"].least == 0.8
    assert cascade_of([first, LAST]).stages[0].sure == {}


def test_a_model_card_may_hold_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded judge brings the tables that its model file holds under `agreement`, `cascade`."""
    model = BlendedModel.load()
    table = Reliability.of("r", [(0.9, False)] * 100)
    agreement = {**model.agreement, "cascade": {"sufficiency": table.to_fields()}}
    monkeypatch.setattr(BlendedModel, "load", lambda: replace(model, agreement=agreement))
    sure = cascade_of([EmbeddedJudge(), LAST]).stages[0].sure
    assert [*sure] == ["sufficiency"]
    assert sure["sufficiency"].least == 0.9


def test_a_check_of_another_judge_is_refused(tmp_path: Path) -> None:
    """A file about a judge that is none of the first ones, or no such file, is an error."""
    path = check_file(tmp_path, LAST)
    with pytest.raises(UsageError, match="was measured on"):
        cascade_of([supports(CHANCES), LAST], checks=[path])
    strange = tmp_path / "strange.json"
    strange.write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match="is not what merilo judge check"):
        cascade_of([supports(CHANCES), LAST], checks=[strange])
    with pytest.raises(UsageError, match="cannot be read"):
        cascade_of([supports(CHANCES), LAST], checks=[tmp_path / "none.json"])


def test_a_cascade_in_words() -> None:
    """`FIRST>SECOND` names one; address, key and way of judging go to its judges at an address."""
    judge = judge_from("embedded>openai:m", base_url=URL, judged="each")
    assert isinstance(judge, Cascade)
    assert judge.name == "embedded>openai:m"
    assert isinstance(judge.last, LLMJudge)
    assert judge.last.judged.value == "each"
    assert judge.max_error == 0.05
    named = judges_from(["cheap=embedded > openai:m"], base_url=URL, sureness=Sureness(0.1))
    assert [*named] == ["cheap", "judge"]
    assert isinstance(named["judge"], Cascade)
    assert named["judge"].max_error == 0.1


@pytest.mark.parametrize(
    ("spec", "options", "says"),
    [
        ("embedded>", {}, "each side of >"),
        ("openai:a>anthropic:b", {"base_url": URL}, "one kind of provider"),
        ("embedded>embedded", {"base_url": URL}, "can be given for judges at an address"),
        ("embedded>gpt", {}, "A judge is one of"),
    ],
)
def test_wrong_words(spec: str, options: dict[str, str], says: str) -> None:
    """What names no cascade is told."""
    with pytest.raises(UsageError, match=says):
        judge_from(spec, **options)


def test_options_of_cascades_need_one() -> None:
    """max_error and cascade_check without a cascade are an error, as is an error that cannot be."""
    for options in (Options(max_error=0.1), Options(cascade_check="check.json")):
        with pytest.raises(UsageError, match="are for cascades"):
            judges_of(options)
    with pytest.raises(UsageError, match="between 0 and 1"):
        judges_of(Options(judge="embedded>embedded", max_error=1.0))
