"""Questions that a judge states it cannot judge: no error, and no value."""

import pytest

from merilo.data.sample import Sample
from merilo.engine.plan_run import PlanRun
from merilo.judging.ask import AskFailed, ask_each, ask_judged
from merilo.judging.kinds.noncommittal import Noncommittal, NoncommittalVerdict
from merilo.judging.kinds.statements import Statement, Statements, StatementsVerdict
from merilo.judging.kinds.support import Support, SupportLabel, SupportVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Failed, Undefined, drive, outcome_of
from merilo.metrics.statement_metrics import Faithfulness

NOT_JUDGED = Failure(FailureKind.NOT_JUDGED, "it cannot judge this: use another judge")
BROKEN = Failure(FailureKind.TEMPORARY, "the server is down")
YES = SupportVerdict(SupportLabel.SUPPORTED, (0,))
QUESTIONS = [Support(text, ("The tower is tall.",)) for text in ("one", "two", "three")]


def answered(*answers: SupportVerdict | Failure, partly: bool = True) -> tuple[SupportVerdict | None, ...]:
    """What `ask_judged` returns for these answers."""
    left = iter(answers)
    return drive(ask_judged(QUESTIONS[: len(answers)], partly=partly), lambda _: next(left))


def test_what_is_judged_is_returned() -> None:
    """A question without a verdict is None among the others."""
    assert answered(YES, NOT_JUDGED, YES) == (YES, None, YES)
    assert answered(YES, YES) == (YES, YES)


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ((NOT_JUDGED, NOT_JUDGED), FailureKind.NOT_JUDGED),
        ((NOT_JUDGED, BROKEN, YES), FailureKind.TEMPORARY),
        ((BROKEN, YES), FailureKind.TEMPORARY),
    ],
)
def test_nothing_judged_and_errors_end_the_plan(
    answers: tuple[SupportVerdict | Failure, ...], kind: FailureKind
) -> None:
    """An error comes first, since asking again may help; if nothing is judged, there is nothing to average."""
    with pytest.raises(AskFailed) as raised:
        answered(*answers)
    assert raised.value.failure.kind is kind


def test_one_that_is_not_judged_ends_a_plan_that_needs_all() -> None:
    """`ask_each` returns verdicts only."""
    with pytest.raises(AskFailed):
        answered(YES, NOT_JUDGED, partly=False)
    with pytest.raises(AskFailed):
        drive(ask_each(QUESTIONS[:1]), lambda _: NOT_JUDGED)


def test_it_is_undefined_and_not_failed() -> None:
    """The reason is the judge's; any other failure stays one."""
    assert outcome_of(NOT_JUDGED) == Undefined(NOT_JUDGED.message)
    assert outcome_of(BROKEN) == Failed(BROKEN)


@pytest.mark.parametrize("judged", [1, 0])
def test_faithfulness_is_undefined_if_a_statement_is_open(judged: int) -> None:
    """The verdicts that were given are kept as its evidence."""
    sample = Sample(
        id="a", user_input="How is it?", retrieved_contexts=["It is tall."], response="It is tall. It is red."
    )

    def answer(question: Question) -> object:  # type: ignore[type-arg]  # of any verdict
        match question:
            case Statements():
                return StatementsVerdict((Statement("It is tall.", 0), Statement("It is red.", 1)))
            case Noncommittal():
                return NoncommittalVerdict(noncommittal=False)
            case Support(statement="It is tall.") if judged:
                return YES
            case _:
                return NOT_JUDGED

    run = PlanRun(Faithfulness(), "faithfulness", sample).start()
    while run.step is not None:
        run.send([(b"key", answer(question)) for group in run.step for question in group])  # type: ignore[misc]
    outcome = run.result().outcome
    assert isinstance(outcome, Undefined)
    assert [piece.text for piece in outcome.evidence] == ["It is tall."] * judged
