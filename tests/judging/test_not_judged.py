"""Questions that a judge states it cannot judge: no error, and no value."""

import pytest

from merilo.data.sample import Sample
from merilo.engine.plan_run import PlanRun
from merilo.judging.ask import AskFailed, ask_each, ask_judged, if_judged
from merilo.judging.kinds.contexts import Support, SupportLabel, SupportVerdict
from merilo.judging.kinds.responses import Noncommittal, NoncommittalVerdict, Statement, Statements, StatementsVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Failed, Undefined, drive, outcome_of
from merilo.metrics.statement_metrics import Faithfulness
from merilo.runs.outcomes import outcome_from

NOT_JUDGED = Failure(FailureKind.NOT_JUDGED, "it cannot judge this: use another judge")
BROKEN = Failure(FailureKind.TEMPORARY, "the server is down")
YES = SupportVerdict(SupportLabel.SUPPORTED, (0,))
QUESTIONS = [Support(text, ("The tower is tall.",)) for text in ("one", "two", "three")]


def answered(*answers: SupportVerdict | Failure) -> tuple[SupportVerdict | Failure, ...]:
    """What `ask_judged` returns for these answers."""
    left = iter(answers)
    return drive(ask_judged(QUESTIONS[: len(answers)]), lambda _: next(left))


def test_what_is_not_judged_is_returned_among_the_verdicts() -> None:
    """It is not an error, even if nothing is judged."""
    assert answered(YES, NOT_JUDGED, YES) == (YES, NOT_JUDGED, YES)
    assert answered(NOT_JUDGED) == (NOT_JUDGED,)


def test_one_that_is_not_judged_ends_a_plan_that_needs_all() -> None:
    """`ask_each` returns verdicts only."""
    with pytest.raises(AskFailed) as raised:
        drive(ask_each(QUESTIONS[:1]), lambda _: NOT_JUDGED)
    assert raised.value.failure is NOT_JUDGED
    assert drive(if_judged(ask_each(QUESTIONS[:1])), lambda _: NOT_JUDGED) is NOT_JUDGED


def test_it_is_undefined_and_not_failed() -> None:
    """The reason is the judge's; any other failure stays one."""
    assert outcome_of(NOT_JUDGED) == Undefined(NOT_JUDGED.message)
    assert outcome_of(BROKEN) == Failed(BROKEN)


def test_one_open_statement_leaves_faithfulness_undefined() -> None:
    """Its evidence has the verdicts that were given; the lowest probability orders the samples."""
    sample = Sample(
        id="a", user_input="How is it?", retrieved_contexts=["It is tall."], response="It is tall. It is red."
    )

    def answer(question: Question) -> object:  # type: ignore[type-arg]  # of any verdict
        match question:
            case Statements():
                return StatementsVerdict((Statement("It is tall.", 0), Statement("It is red.", 1)))
            case Noncommittal():
                return NoncommittalVerdict(noncommittal=False)
            case Support(statement="It is tall."):
                return YES
            case _:
                return Failure(FailureKind.NOT_JUDGED, "open", 0.3)

    run = PlanRun(Faithfulness(), "faithfulness", sample).start()
    while run.step is not None:
        run.send([(b"key", answer(question)) for group in run.step for question in group])  # type: ignore[misc]
    outcome = run.result().outcome
    assert isinstance(outcome, Undefined)
    assert (outcome.reason, outcome.probability) == ("1 of 2 statements is not judged", 0.3)
    assert [piece.text for piece in outcome.evidence] == ["It is tall."]
    assert outcome_from(run.result().record()) == outcome
