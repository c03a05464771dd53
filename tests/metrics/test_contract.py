import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest
from each_case import each_case

from merilo.data.sample import Sample
from merilo.errors import MeriloError
from merilo.judging.ask import AskFailed, Plan, ask, ask_each, attempt, both
from merilo.judging.kinds.contexts import Relevance, Support
from merilo.judging.kinds.measured import Embeddings, Similarities
from merilo.judging.kinds.responses import Completion, CompletionVerdict, Statements, StatementsVerdict
from merilo.judging.questions import Question
from merilo.judging.synthetic import chance
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.metrics import contract
from merilo.metrics.base import Card, Kinds, Metric, MetricDefaults, Score, Undefined
from merilo.metrics.contract import ContractViolation, SyntheticAnswers, check_metric
from merilo.metrics.registry import parse_metric

TEXTS = (
    "context_relevance",
    "context_relevance(unit=context)",
    "context_relevance(unit=context, at=2)",
    "context_relevance(unit=sentence)",
    "context_ranking",
    "context_ranking@1",
    "context_ranking@3",
    "context_precision",
    "context_precision(against=reference)",
    "context_recall",
    "context_sufficiency",
    "context_utilization",
    "faithfulness",
    "answer_relevancy",
    "answer_completeness",
    "answer_correctness",
    "answer_correctness(beta=2.0, similarity_weight=0.25)",
    "answer_correctness(similarity_weight=1.0)",
    "noise_sensitivity",
    "noise_sensitivity(of=irrelevant)",
    "context_entity_recall",
    "critique(aspect=conciseness)",
    'critique(aspect=politeness, definition="Does it (always) say \\"please\\", and thank?")',
    "id_precision",
    "id_recall",
    "reciprocal_rank",
    "reciprocal_rank@2",
    "average_precision",
    "nDCG",
    "nDCG@2",
    "hit_rate@1",
    "precision@2",
    "recall@2",
)


@pytest.mark.usefixtures("seeds")
@each_case("text", TEXTS)
def test_native_metrics_keep_the_law(text: str) -> None:
    """Every native metric, in every form, keeps the law that others are held to."""
    check_metric(parse_metric(text))


@dataclass(frozen=True)
class Lawful(MetricDefaults):
    """Share of the contexts that are relevant; keeps the law, so that each metric below breaks one alone."""

    name: ClassVar[str] = "lawful"
    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = frozenset({"user_input", "retrieved_contexts"})
    asks: ClassVar[Kinds] = frozenset({Relevance})
    card: ClassVar[Card] = Card("Share of the contexts that are relevant.")

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        grades = yield from self.grades(sample)
        return self.score(grades) if grades else Undefined("no context can be judged")

    def grades(self, sample: Sample) -> Plan[list[int]]:
        user_input = sample.require("user_input")
        questions = [Relevance(user_input, context.sentences) for context in sample.contexts if context.sentences]
        verdicts = yield from ask_each(questions)
        return [verdict.grade for verdict in verdicts]

    def score(self, grades: list[int]) -> Score | Undefined:
        return Score(sum(grade > 0 for grade in grades) / len(grades))


def broken(**declared: object) -> type[Metric]:
    """The lawful metric with other declarations."""
    return type("Broken", (Lawful,), declared)


def scoring(score: Callable[[list[int]], object]) -> type[Metric]:
    """The lawful metric with another score."""
    return broken(score=lambda _, grades: score(grades))


# -- declarations -------------------------------------------------------------------------------------


@dataclass
class NotFrozen(MetricDefaults):
    name: ClassVar[str] = "not_frozen"
    card: ClassVar[Card] = Card("Can be changed.")


@dataclass(frozen=True)
class Bare:
    """Not even a name."""


@dataclass(frozen=True)
class Forgetful(Lawful):
    """Its text does not hold what it is."""

    hidden: int = field(default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", self.hidden + 1)


# -- driving ------------------------------------------------------------------------------------------

_SEEN: list[str] = []


class Remembers(Lawful):
    """Scores by what was asked last, by whatever plan."""

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        _SEEN.append(sample.id)
        grades = yield from self.grades(sample)
        return Score(float(_SEEN[-1] == sample.id)) if grades else Undefined("no context can be judged")


class Crashes(Lawful):
    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        grades = yield from self.grades(sample)
        return Score(sum(grade > 0 for grade in grades) / (len(grades) - 1) / 5)


# -- questions ----------------------------------------------------------------------------------------


class SecondRole(Lawful):
    def grades(self, sample: Sample) -> Plan[list[int]]:
        first = yield from super().grades(sample)
        question = Relevance(sample.require("user_input"), ("One.",), role="second")
        return [*first, (yield from ask(question)).grade] if first else first


class AsksTheImpossible(Lawful):
    def grades(self, sample: Sample) -> Plan[list[int]]:
        user_input = sample.require("user_input")
        verdicts = yield from ask_each(Relevance(user_input, each.sentences) for each in sample.contexts)
        return [verdict.grade for verdict in verdicts]


class GuessesBadly(Lawful):
    """A dry run ends in a failure, since the guess is taken for unreadable."""

    def grades(self, sample: Sample) -> Plan[list[int]]:
        user_input = sample.require("user_input")
        grades = []
        for context in sample.contexts:
            if context.sentences:
                question = Relevance(user_input, context.sentences)
                verdict = yield from ask(question)
                if verdict.reason:
                    raise AskFailed(question, Failure(FailureKind.UNREADABLE, "it gives a reason"))
                grades.append(verdict.grade)
        return grades


# -- needs and nothing to judge -----------------------------------------------------------------------


class NeedsInSecret(Lawful):
    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("reference")
        return (yield from super().plan(sample))


class ScoresWithMoreOnly(Lawful):
    """Without a reference, which it says it does not need, it never has a score."""

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if sample.reference is None:
            return Undefined("there is no reference")
        return (yield from super().plan(sample))


class MakesUpFields(Lawful):
    def grades(self, sample: Sample) -> Plan[list[int]]:
        known = sample if sample.user_input is not None else replace(sample, user_input="What?")
        return (yield from super().grades(known))


class ScoresNothing(Lawful):
    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        grades = yield from self.grades(sample)
        return self.score(grades) if grades else Score(0.0)


# -- order and better verdicts ------------------------------------------------------------------------


class FirstStatementCounts(Lawful):
    needs: ClassVar[frozenset[str]] = frozenset({"response", "retrieved_contexts"})
    asks: ClassVar[Kinds] = frozenset({Statements, Support})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        contexts = tuple(context.text for context in sample.contexts)
        sentences = sample.sentences("response")
        if not contexts or not sentences:
            return Undefined("nothing to judge")
        found = yield from ask(Statements(sentences))
        verdicts = yield from ask_each(Support(each.text, contexts) for each in found.statements[:1])
        return Score(float(verdicts[0].supported)) if verdicts else Undefined("no statement")


# -- failures and closing -----------------------------------------------------------------------------


class FailureIsZero(Lawful):
    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        try:
            return (yield from super().plan(sample))
        except AskFailed:
            return Score(0.0)


class FailureCrashes(Lawful):
    def grades(self, sample: Sample) -> Plan[list[int]]:
        user_input = sample.require("user_input")
        grades = []
        for context in sample.contexts:
            if context.sentences:
                verdict = yield from attempt(Relevance(user_input, context.sentences))
                grades.append(verdict.grade)  # type: ignore[union-attr]  # what is broken
        return grades


class CatchesErrors(Lawful):
    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if sample.user_input is None or sample.retrieved_contexts is None:
            return (yield from super().plan(sample))
        try:
            return (yield from super().plan(sample))
        except AskFailed:
            raise
        except Exception:  # noqa: BLE001  # what is broken
            return Undefined("something went wrong")


class CatchesOurErrors(Lawful):
    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        try:
            return (yield from super().plan(sample))
        except MeriloError as error:
            if "own" not in str(error):
                raise
            return (yield from super().plan(sample))


class CatchesEverything(Lawful):
    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        try:
            return (yield from super().plan(sample))
        except Exception:
            raise
        except BaseException as error:
            if isinstance(error, GeneratorExit):
                raise
            raise RuntimeError("it was stopped") from None


class AsksWhileClosing(Lawful):
    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        try:
            return (yield from super().plan(sample))
        except GeneratorExit:
            yield ((Relevance("Why?", ("One.",)),),)
            raise


@each_case(
    ("metric", "law", "what"),
    [
        (NotFrozen, "declarations", "it is not a frozen dataclass"),
        (Bare, "declarations", "Metric 'Bare' breaks the law 'declarations': it lacks name, version, card"),
        (broken(name="bad name"), "declarations", "its name 'bad name' is invalid"),
        (broken(version=0), "declarations", "its version is 0; versions count from 1"),
        (broken(range=(1.0, 0.0)), "declarations", "its range is (1.0, 0.0)"),
        (broken(needs=frozenset({"answer"})), "declarations", "it needs answer; a sample's fields are user_input"),
        (broken(card=Card(" ")), "declarations", "its card has no summary"),
        (Forgetful, "declarations", "its text 'lawful(hidden=1)' reads back as"),
        (scoring(lambda grades: Score(sum(grades) / len(grades))), "range", "outside its range 0.0 to 1.0"),
        (
            scoring(lambda grades: Score(sum(grades) / len(grades) / 2 if all(grades) else math.nan)),
            "range",
            "its value is nan, which is not a finite number",
        ),
        (scoring(lambda grades: Score(any(grades))), "range", "which is not a finite number"),
        (scoring(lambda _: Score(random.random())), "driving", "when driven twice"),
        (Remembers, "driving", "when driven together with other plans"),
        (Crashes, "driving", "it raises ZeroDivisionError"),
        (scoring(lambda grades: sum(grades) / len(grades) / 2), "driving", "a plan returns a Score or Undefined"),
        (
            scoring(lambda grades: Undefined(f"{len(grades)} grades say nothing")),
            "driving",
            "it has no score on any sample",
        ),
        (broken(asks=frozenset()), "questions", "it asks Relevance, which `asks` does not name"),
        (broken(asks=frozenset({Relevance, Support})), "questions", "it declares that it asks Support, but never does"),
        (SecondRole, "questions", "the role 'second', which `roles` does not name"),
        (
            broken(roles=frozenset({"judge", "second"})),
            "questions",
            "it declares the roles ['second'], but never asks them",
        ),
        (AsksTheImpossible, "questions", "cannot be answered: its own guess names sentence 1"),
        (GuessesBadly, "questions", "a dry run fails"),
        (broken(needs=Lawful.needs | {"reference"}), "needs", "without 'reference' ends as Score"),
        (NeedsInSecret, "needs", "without 'reference' it raises MissingField, but `needs` does not name it"),
        (ScoresWithMoreOnly, "needs", "it has no score on samples with only retrieved_contexts, user_input"),
        (MakesUpFields, "needs", "read the field with sample.require('user_input')"),
        (ScoresNothing, "nothing to judge", "fields are all empty ends as Score"),
        (scoring(lambda grades: Score(grades[0] / 2)), "order", "with its contexts in another order"),
        (
            broken(ranked=True),
            "order",
            "it declares `ranked`, but the order of the contexts matters in no sample; pass",
        ),
        (
            scoring(lambda grades: Score(1 - sum(grades) / len(grades) / 2)),
            "better verdicts",
            "when the verdict on a 'relevance' question gets better",
        ),
        (broken(higher_is_better=False), "better verdicts", "when the verdict on a 'relevance' question gets better"),
        (
            broken(not_monotone_in=frozenset({Relevance})),
            "better verdicts",
            "`not_monotone_in` names Relevance, but no better verdict",
        ),
        (FailureIsZero, "failures", "no question is answered; it ends as Score"),
        (FailureCrashes, "driving", "it raises AttributeError"),
        (CatchesErrors, "closing", "it catches Exception and ends"),
        (CatchesOurErrors, "closing", "it catches Exception and continues asking"),
        (CatchesEverything, "closing", "it catches BaseException and raises RuntimeError('it was stopped')"),
        (AsksWhileClosing, "closing", "it catches BaseException and continues asking"),
    ],
)
def test_a_broken_metric_is_caught(metric: type[Metric], law: str, what: str) -> None:
    """Each way of breaking the law is caught under that law, with what was seen."""
    with pytest.raises(ContractViolation) as error:
        check_metric(metric())
    assert error.value.law == law
    assert what in str(error.value)


def test_the_order_of_statements_is_tried() -> None:
    """A metric that looks at the first statement alone is caught."""
    with pytest.raises(ContractViolation, match="with its statements reversed"):
        check_metric(FirstStatementCounts())


@dataclass(frozen=True)
class Alike(MetricDefaults):
    """How alike the response is to the likest context, by one model and by another."""

    name: ClassVar[str] = "alike"
    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = frozenset({"response", "retrieved_contexts"})
    asks: ClassVar[Kinds] = frozenset({Embeddings, Similarities})
    card: ClassVar[Card] = Card("How alike the response is to the likest context.")

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        response, contexts = sample.require("response"), tuple(each.text for each in sample.contexts)
        if not response or not contexts:
            return Undefined("there is nothing to compare")
        vectors, alike = yield from both(
            ask(Embeddings((response, *contexts))), ask(Similarities((response,), contexts))
        )
        one, *others = (vectors.row(at) for at in range(vectors.rows))
        nearest = min(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) for other in others)
        return Score((1 / (1 + nearest) + max(alike.row(0))) / 2)


def test_vectors_and_similarities_can_be_made_up() -> None:
    """Metrics over embeddings and similarities are checked with made-up numbers that follow the texts."""
    check_metric(Alike())


@dataclass(frozen=True)
class Rated(MetricDefaults):
    """A number that the judge writes as free text."""

    name: ClassVar[str] = "rated"
    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = frozenset({"response"})
    asks: ClassVar[Kinds] = frozenset({Completion})
    card: ClassVar[Card] = Card("A number from 0 to 1 that the judge writes.")

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        response = sample.require("response")
        if not response.strip():
            return Undefined("the response is blank")
        question = Completion("rate", ("response",), (response,))
        verdict = yield from ask(question)
        try:
            return Score(float(verdict.text))
        except ValueError:
            failure = Failure(FailureKind.UNREADABLE, "no number was written")
            raise AskFailed(question, failure) from None


def written(question: Question[Any]) -> Verdict | None:
    if isinstance(question, Completion):
        return CompletionVerdict(f"{chance(0, *question.values):.2f}")
    return None


def test_free_text_is_checked_with_answers_of_ones_own() -> None:
    """Free text cannot be made up: the check says so, and takes the author's answers."""
    with pytest.raises(ContractViolation, match="pass samples= or answer= that give it one"):
        check_metric(Rated())
    check_metric(Rated(), answer=written)


@dataclass(frozen=True)
class Chosen(Lawful):
    """Speaks only of samples that have a mark which no made-up sample has."""

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        grades = yield from self.grades(sample)
        if not grades or sample.metadata.get("mark") != 1:
            return Undefined("there is no mark")
        return self.score(grades)


def test_samples_of_ones_own_are_tried_too() -> None:
    """A metric that needs special data passes when it is given some."""
    with pytest.raises(ContractViolation, match="no score on any sample"):
        check_metric(Chosen())
    sample = Sample("marked", user_input="Why?", retrieved_contexts=["One.", "Two."], metadata={"mark": 1})
    check_metric(Chosen(), [sample])


# -- what the contract tries ---------------------------------------------------------------------------


def asked_by_native_metrics() -> Iterator[tuple[Question[Any], Verdict]]:
    for text in TEXTS:
        metric = parse_metric(text)
        for seed in (0, 1):
            answers = SyntheticAnswers(seed)
            for sample in contract.synthetic_samples():
                plan = metric.plan(sample)
                try:
                    step = next(plan)
                    while True:
                        questions = [question for group in step for question in group]
                        yield from ((question, answers(question)) for question in questions)
                        step = plan.send(tuple(answers(question) for question in questions))
                except StopIteration:
                    pass


def test_made_up_verdicts_answer_their_questions() -> None:
    """Made-up verdicts, and the better ones made of them, are such as a judge may give."""
    kinds = set()
    for question, verdict in asked_by_native_metrics():
        assert question.fault(verdict) is None
        for changed in question.better(verdict):
            assert changed != verdict
            assert question.fault(changed) is None
            kinds.add(question.kind)
    assert kinds == {
        "relevance",
        "usefulness",
        "support",
        "sufficiency",
        "addresses",
        "noncommittal",
        "answered",
        "mentions",
    }


def test_made_up_verdicts_cover_what_judges_say() -> None:
    """Every grade and label comes up, statements repeat now and then, and some texts make none."""
    shown = {
        (question.kind, getattr(verdict, name))
        for question, verdict in asked_by_native_metrics()
        for name in ("grade", "useful", "label", "addresses", "noncommittal", "answered", "mentioned")
        if hasattr(verdict, name)
    }
    assert len(shown) == 3 + 2 + 4 + 3 + 2 + 2 + 2 + 2 + 2
    sizes = {
        (len(verdict.statements), len(set(verdict.statements)))
        for _, verdict in asked_by_native_metrics()
        if isinstance(verdict, StatementsVerdict)
    }
    assert (0, 0) in sizes
    assert any(distinct < count for count, distinct in sizes)
