from dataclasses import fields
from importlib import import_module
from typing import Any

from each_case import each_case
from pydantic import TypeAdapter

from merilo.judging.questions import Question
from merilo.judging.registry import KINDS
from merilo.judging.reply_fields import ReplySchema
from merilo.judging.synthetic import Odds
from merilo.judging.verdicts import DecisionVerdict

QUESTIONS: list[Question[Any]] = [question for kind in KINDS.values() for question in kind.trial()]


def test_each_kind_is_listed() -> None:
    """The registry lists every question class of the modules in kinds/."""
    found = {
        each.kind
        for name in ("contexts", "measured", "responses")
        for each in vars(import_module(f"merilo.judging.kinds.{name}")).values()
        if isinstance(each, type) and issubclass(each, Question) and each.__module__.endswith(name)
    }
    assert found == set(KINDS)


@each_case("question", QUESTIONS)
def test_pydantic_reads_a_stored_question(question: Question[Any]) -> None:
    """A question type can be validated from its fields: all types that its annotations name exist at run time."""
    values = {each.name: getattr(question, each.name) for each in fields(question)}
    assert TypeAdapter(type(question)).validate_python(values) == question


@each_case("question", QUESTIONS)
def test_verdicts_made_by_a_kind_are_valid(question: Question[Any]) -> None:
    """The guessed, best and synthetic verdicts have the kind's type and answer the question."""
    about = (question.kind, question.role, "0")
    for verdict in (question.guess(), question.best(), *(question.synthetic(Odds(seed, about)) for seed in range(9))):
        assert type(verdict) is type(question).verdict
        assert question.fault(verdict) is None


def test_packs_are_of_decisions() -> None:
    """Only kinds with a decision are judged in packs, since a pack's reply has one object for each question."""
    packed = {name for name, kind in KINDS.items() if isinstance(kind.reply, ReplySchema) and kind.reply.pack_item}
    assert packed == {"support", "relevance", "addresses", "answered", "mentions"}
    assert all(issubclass(KINDS[name].verdict, DecisionVerdict) and KINDS[name].shared for name in packed)
