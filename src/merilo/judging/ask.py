"""The protocol of plans: a plan is a generator that yields groups of questions and receives their answers.

For each yielded step, a driver sends a flat tuple with one verdict or `Failure` per question of its groups, in ask
order. It never throws into a plan. The questions of one group (one `ask_each`) may be judged together. Groups are never
merged, so that questions judged together do not depend on other questions asked at that time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from merilo.errors import MeriloError
from merilo.judging.verdicts import Failure, FailureKind, Verdict

if TYPE_CHECKING:
    from merilo.judging.questions import Question

V = TypeVar("V", bound=Verdict)
A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

Answer = Verdict | Failure
"""A driver's answer to one question."""
if TYPE_CHECKING:
    Group = tuple[Question[Any], ...]
    Step = tuple[Group, ...]
    Plan = Generator[Step, tuple[Answer, ...], T]
else:
    Plan = Generator


class AskFailed(MeriloError):
    """A question of the plan got no verdict. The plan fails as a whole unless it catches this."""

    def __init__(self, question: Question[Any], failure: Failure) -> None:
        super().__init__(f"A question of kind '{question.kind}' got no verdict: {failure.message}")
        self.question = question
        self.failure = failure


def attempt_each(questions: Iterable[Question[V]]) -> Plan[tuple[V | Failure, ...]]:
    """Return verdicts or failures, one per question in order; an empty iterable asks nothing."""
    group = tuple(questions)
    if not group:
        return ()
    answers = yield (group,)
    return cast("tuple[V | Failure, ...]", answers)  # the driver's contract: the type of the question's verdict


def ask_each(questions: Iterable[Question[V]]) -> Plan[tuple[V, ...]]:
    """Return verdicts, one per question in order.

    Waits for the whole group; raises AskFailed for the first failure in ask order, errors first.
    """
    group = tuple(questions)
    answers = yield from ask_judged(group)
    for question, answer in zip(group, answers, strict=True):
        if isinstance(answer, Failure):
            raise AskFailed(question, answer)
    return cast("tuple[V, ...]", answers)  # no failure is among them


def ask_judged(questions: Iterable[Question[V]]) -> Plan[tuple[V | Failure, ...]]:
    """Return verdicts, one per question in order; the failure of one that the judge does not judge.

    Raises AskFailed for the first failure of another kind.
    """
    group = tuple(questions)
    answers = yield from attempt_each(group)
    for question, answer in zip(group, answers, strict=True):
        if isinstance(answer, Failure) and answer.kind is not FailureKind.NOT_JUDGED:
            raise AskFailed(question, answer)
    return answers


def if_judged(plan: Plan[T]) -> Plan[T | Failure]:
    """Return the result of a plan; the failure if the judge does not judge a question of it. Raises AskFailed."""
    try:
        return (yield from plan)
    except AskFailed as error:
        if error.failure.kind is not FailureKind.NOT_JUDGED:
            raise
        return error.failure


def attempt(question: Question[V]) -> Plan[V | Failure]:
    """Return the verdict on one question, or its failure."""
    (answer,) = yield from attempt_each((question,))
    return answer


def ask(question: Question[V]) -> Plan[V]:
    """Return the verdict on one question. Raises AskFailed."""
    answer = yield from attempt(question)
    if isinstance(answer, Failure):
        raise AskFailed(question, answer)
    return answer


def draws(question: Question[V], samples: int) -> Plan[tuple[V | Failure, ...]]:
    """Return `samples` answers to one question: its own draw and the following ones, in one request if possible."""
    first = question.draw
    return (yield from attempt_each(replace(question, draw=draw) for draw in range(first, first + samples)))


def together(plans: Sequence[Plan[T]]) -> Plan[tuple[T, ...]]:
    """Run several plans concurrently, with their questions merged into common steps; return their results in order.

    If plans fail in the same step, the first of them in order raises; the others are closed.
    """
    results: dict[int, T] = {}
    waiting: dict[int, tuple[Plan[T], Step]] = {}
    try:
        for index, plan in enumerate(plans):
            _advance(index, plan, None, results, waiting)
        while waiting:
            order = sorted(waiting)
            answers = yield tuple(group for index in order for group in waiting[index][1])
            start = 0
            for index in order:
                plan, step = waiting[index]
                size = sum(len(group) for group in step)
                _advance(index, plan, answers[start : start + size], results, waiting)
                start += size
    finally:
        for plan in plans:
            plan.close()
    return tuple(results[index] for index in range(len(plans)))


def _advance(
    index: int,
    plan: Plan[T],
    answers: tuple[Answer, ...] | None,
    results: dict[int, T],
    waiting: dict[int, tuple[Plan[T], Step]],
) -> None:
    try:
        step = next(plan) if answers is None else plan.send(answers)
    except StopIteration as stop:
        results[index] = stop.value
        waiting.pop(index, None)
    else:
        waiting[index] = (plan, step)


def both(first: Plan[A], second: Plan[B]) -> Plan[tuple[A, B]]:
    """Run two plans with different result types concurrently; return both results."""
    a, b = yield from together(cast("list[Plan[Any]]", [first, second]))  # together wants one result type
    return cast("tuple[A, B]", (a, b))
