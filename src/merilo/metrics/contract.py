"""The contract of a metric, as one check for your own metrics: `check_metric`.

It runs the metric on synthetic samples with synthetic verdicts, always the same ones, and on your own samples. It
raises `ContractViolation` at the first law that does not hold. It asks no judge and needs no network.

The module is long because all laws are in one place: together they are the definition of a metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import isclose, isfinite
from typing import TYPE_CHECKING, Any, Final

from merilo.data.sample import FIELDS, NUGGETS, Sample
from merilo.errors import MeriloError, MissingField
from merilo.judging.ask import AskFailed, together
from merilo.judging.kinds.responses import Completion
from merilo.judging.questions import Question
from merilo.judging.synthetic import Odds, chance
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.metrics.base import DECLARED, Answerer, Metric, Score, Undefined, drive, plan_of
from merilo.metrics.text import NAME, build, metric_text, read_call

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from merilo.judging.ask import Answer, Plan, Step

Ended = Score | Undefined | AskFailed | MissingField
"""The possible results of a plan."""
OwnVerdicts = Callable[[Question[Any]], Verdict | None]
"""A function with the metric author's verdicts; None to use the synthetic one."""

_SEEDS: Final = (0, 1, 2)
_TOLERANCE: Final = 1e-9
_NO_ANSWER: Final = Failure(FailureKind.TEMPORARY, "the contract gives no answer here")


class ContractViolation(MeriloError):
    """A metric breaks a law of the contract; `law` is the name of the law."""

    def __init__(self, metric: Metric, law: str, what: str) -> None:
        name = getattr(metric, "name", type(metric).__name__)
        super().__init__(f"Metric {name!r} breaks the law '{law}': {what}")
        self.law = law


def check_metric(metric: Metric, samples: Iterable[Sample] | None = None, *, answer: OwnVerdicts | None = None) -> None:
    """Check a metric against the contract; return None if it complies. Raises ContractViolation with the observation.

    `samples`: used in addition to the synthetic ones, for a metric that needs special data. `answer`: verdicts for
    questions without a useful synthetic one, such as the free text of a Completion. It must depend on the question
    alone, and not on the order of contexts unless the metric does.

    The laws, in the order in which they are checked:

    - **declarations**: a frozen dataclass whose name, version, range and card are valid;
    - **range**: a value is a finite number in `range`;
    - **driving**: the same outcome with every driver, and no exception except MissingField and AskFailed;
    - **questions**: of the kinds and roles declared, answerable, no more than `max_questions`, in a dry run too;
    - **needs**: without a needed field MissingField; with only the needed fields a score is possible;
    - **nothing to judge**: a sample whose fields are all empty is Undefined;
    - **order**: contexts (unless `ranked`) and statements may come in any order;
    - **better verdicts**: none makes the value worse, except for the kinds in `not_monotone_in`;
    - **failures**: a plan that gets no answer at all raises AskFailed;
    - **closing**: a plan closes at every question and catches nothing broader than AskFailed.

    A metric that breaks one of them on purpose, as published definitions do, names it in `breaks`.
    """
    for broken in _broken(metric, samples, answer):
        if broken.law == "declarations" or broken.law not in metric.breaks:
            raise broken


def broken_laws(
    metric: Metric, samples: Iterable[Sample] | None = None, *, answer: OwnVerdicts | None = None
) -> dict[str, ContractViolation]:
    """Return the laws that a metric breaks, on purpose or not, each with the observation; arguments as
    `check_metric`.

    Broken declarations are reported alone, because the other checks rely on them.
    """
    return {each.law: each for each in reversed([*_broken(metric, samples, answer)])}


def _broken(
    metric: Metric, samples: Iterable[Sample] | None, answer: OwnVerdicts | None
) -> Iterator[ContractViolation]:
    case = _Case(metric, (*synthetic_samples(), *(samples or ())), answer)
    for law, check in LAWS:
        try:
            what = next(check(case), None)
        except ContractViolation as broken:  # the law `driving` may be broken in any check
            yield broken
            continue
        if what is not None:
            yield ContractViolation(metric, law, what)
            if law == "declarations":
                return


@dataclass(frozen=True)
class _Case:
    """A metric with everything it is checked on."""

    metric: Metric
    samples: tuple[Sample, ...]
    own: OwnVerdicts | None

    def trials(self) -> Iterator[tuple[Sample, SyntheticAnswers]]:
        for seed in _SEEDS:
            answers = SyntheticAnswers(seed, own=self.own)
            for sample in self.samples:
                yield sample, answers

    def outcome(self, sample: Sample, answer: Answerer) -> Ended:
        return self.ended(lambda: drive(plan_of(self.metric, sample), answer), sample)

    def ended(self, run: Callable[[], Score | Undefined], sample: Sample) -> Ended:
        """Return the result of a plan; anything except the four possible results breaks the law."""
        try:
            outcome: object = run()
        except (AskFailed, MissingField) as error:
            return error
        except Exception as error:
            what = f"on sample {sample.id!r} it raises {error!r}; a plan raises MissingField and AskFailed only."
            raise ContractViolation(self.metric, "driving", what) from error
        if isinstance(outcome, (Score, Undefined)):
            return outcome
        what = f"on sample {sample.id!r} it returns {outcome!r}; a plan returns a Score or Undefined."
        raise ContractViolation(self.metric, "driving", what)

    def value(self, sample: Sample, answer: Answerer) -> float | None:
        """Return the score's value; None if there is no score."""
        outcome = self.outcome(sample, answer)
        return outcome.value if isinstance(outcome, Score) else None

    def asked(self, sample: Sample, answer: Answerer) -> tuple[Ended, list[Question[Any]]]:
        """Return the result of a plan and its questions in order."""
        questions: list[Question[Any]] = []

        def recording(question: Question[Any]) -> Answer:
            questions.append(question)
            return answer(question)

        return self.outcome(sample, recording), questions


# -- the laws: each check yields what it observes if the metric breaks the law; the first observation counts -----------


def _declarations(case: _Case) -> Iterator[str]:
    metric = case.metric
    declared = getattr(type(metric), "__dataclass_params__", None)
    if declared is None or not declared.frozen:
        yield "it is not a frozen dataclass; write @dataclass(frozen=True)."
    if lacking := [name for name in DECLARED if not hasattr(metric, name)]:
        yield f"it lacks {', '.join(lacking)}; inherit the defaults from Ordinary and declare the rest."
    if not NAME.fullmatch(metric.name):
        yield f"its name {metric.name!r} is invalid; use letters, digits and '_.:/+-'."
    if metric.version < 1:
        yield f"its version is {metric.version}; versions count from 1."
    low, high = metric.range
    if not low < high:
        yield f"its range is {metric.range}; expected (low, high) with low below high, infinite if there is no limit."
    laws = [*dict(LAWS)]
    if unknown_laws := set(metric.breaks) - set(laws[1:]):
        yield f"its `breaks` names {', '.join(sorted(unknown_laws))}; the laws are {', '.join(laws)}."
    if unknown := metric.needs - set(FIELDS):
        yield f"it needs {', '.join(sorted(unknown))}; a sample's fields are {', '.join(FIELDS)}."
    if not metric.card.summary.strip():
        yield "its card has no summary; write one line on the meaning of the value."
    text = metric_text(metric)
    if (read_back := build(type(metric), read_call(text))) != metric:
        yield f"its text {text!r} reads back as {read_back!r}, not as {metric!r}."


def _range(case: _Case) -> Iterator[str]:
    low, high = case.metric.range
    for sample, answers in case.trials():
        value = case.value(sample, answers)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
            yield f"on sample {sample.id!r} its value is {value!r}, which is not a finite number."
        elif not low <= value <= high:
            yield f"on sample {sample.id!r} its value is {value}, outside its range {low} to {high}."


def _driving(case: _Case) -> Iterator[str]:
    scored = False
    for seed in _SEEDS:
        answers = SyntheticAnswers(seed, own=case.own)
        alone = [case.outcome(sample, answers) for sample in case.samples]
        again = [case.outcome(sample, answers) for sample in case.samples]
        rounds = _in_rounds(case, answers)
        for sample, first, second, third in zip(case.samples, alone, again, rounds, strict=True):
            ways = {"driven twice": second, "driven in rounds with other samples": third}
            ways["driven in parallel with itself"] = _in_parallel(case, sample, answers)
            for how, other in ways.items():
                if _differ(first, other):
                    what = f"on sample {sample.id!r} it ends as {first!r} alone and as {other!r} when {how}."
                    yield f"{what} A plan may depend only on its sample and its answers."
        scored = scored or any(isinstance(outcome, Score) for outcome in alone)
    if not scored:
        yield "it has no score on any sample; pass samples= or answer= that give it one."


def _differ(first: Ended, other: Ended) -> bool:
    if isinstance(first, (AskFailed, MissingField)):
        return type(first) is not type(other) or str(first) != str(other)
    return first != other


def _in_parallel(case: _Case, sample: Sample, answers: Answerer) -> Ended:
    plans = [case.metric.plan(sample), case.metric.plan(sample)]
    return case.ended(lambda: drive(together(plans), answers)[1], sample)


def _in_rounds(case: _Case, answer: Answerer) -> list[Ended]:
    """Return the results of all samples in rounds; each round answers one step of each plan, last question first."""
    plans = {at: case.metric.plan(sample) for at, sample in enumerate(case.samples)}
    ended: dict[int, Ended] = {}
    answers: dict[int, tuple[Answer, ...] | None] = dict.fromkeys(plans)
    while answers:
        reached = {at: _next(case, case.samples[at], plans[at], given) for at, given in answers.items()}
        answers = {}
        for at, step in reversed(reached.items()):
            if isinstance(step, tuple):
                backwards = [answer(question) for group in step[::-1] for question in group[::-1]]
                answers[at] = tuple(backwards[::-1])
            else:
                ended[at] = step
    return [ended[at] for at in plans]


def _next(
    case: _Case, sample: Sample, plan: Plan[Score | Undefined], answers: tuple[Answer, ...] | None
) -> Step | Ended:
    steps: list[Step] = []

    def run() -> Score | Undefined:
        try:
            steps.append(next(plan) if answers is None else plan.send(answers))
        except StopIteration as stop:
            result: Score | Undefined = stop.value
            return result
        return Undefined("it waits for answers")

    outcome = case.ended(run, sample)
    return steps[0] if steps else outcome


def _questions(case: _Case) -> Iterator[str]:
    """Check the trials, then dry runs, which must end in an outcome, then a flood of statements, then an empty
    sample.
    """
    kinds: set[type[Question[Any]]] = set()
    roles: set[str] = set()
    cases: list[tuple[Sample, Answerer]] = [*case.trials(), *((sample, guessed) for sample in case.samples)]
    cases.append((case.samples[0], SyntheticAnswers(statements_flood=True, own=case.own)))
    cases.append((empty_sample(), SyntheticAnswers(own=case.own)))
    for sample, answers in cases:
        outcome, questions = case.asked(sample, answers)
        # free text has a guess that its metric can parse only if one is given
        failed = outcome.question if answers is guessed and isinstance(outcome, AskFailed) else None
        if failed is not None and (not isinstance(failed, Completion) or failed.likely):
            yield f"on sample {sample.id!r} a dry run fails: {outcome}"
        yield from _wrong_questions(case.metric, sample, questions)
        kinds.update(type(question) for question in questions)
        roles.update(question.role for question in questions)
    if never := case.metric.asks - kinds:
        yield f"it declares that it asks {_kinds(never)}, but never does."
    if unused := case.metric.roles - roles if kinds else ():
        yield f"it declares the roles {sorted(unused)}, but never asks them."


def _wrong_questions(metric: Metric, sample: Sample, questions: Sequence[Question[Any]]) -> Iterator[str]:
    where, bound = f"on sample {sample.id!r} it asks", metric.max_questions(sample)
    if len(questions) > bound:
        yield f"{where} {len(questions)} questions, but max_questions says {bound}."
    for question in questions:
        if type(question) not in metric.asks:
            yield f"{where} {_kinds([type(question)])}, which `asks` does not name."
        if question.role not in metric.roles:
            yield f"{where} the role {question.role!r}, which `roles` does not name."
        if fault := question.fault(question.guess()):
            yield f"{where} a {question.kind!r} question that cannot be answered: its own guess {fault}."


def _needs(case: _Case) -> Iterator[str]:
    bare_score = False
    for sample, answers in case.trials():
        bare = sample
        for name in FIELDS:
            without = case.outcome(sample_without(sample, name), answers)
            if name in case.metric.needs:
                if not isinstance(without, MissingField):
                    advice = f"read the field with sample.require({name!r})."
                    yield f"sample {sample.id!r} without {name!r} ends as {without!r}; {advice}"
            elif isinstance(without, MissingField) and sample.present >= case.metric.needs:
                yield f"on a sample without {name!r} it raises MissingField, but `needs` does not name it."
            else:
                bare = sample_without(bare, name)
        case.metric.max_questions(Sample("bare"))
        bare_score = bare_score or isinstance(case.outcome(bare, answers), Score)
    if not bare_score:
        needs = ", ".join(sorted(case.metric.needs)) or "nothing"
        yield f"it has no score on samples with only {needs}."


def _nothing_to_judge(case: _Case) -> Iterator[str]:
    outcome = case.outcome(empty_sample(), SyntheticAnswers(own=case.own))
    if not isinstance(outcome, Undefined) or not outcome.reason.strip():
        yield f"a sample whose fields are all empty ends as {outcome!r}; expected Undefined with a reason."


def _order_of_contexts(case: _Case) -> Iterator[str]:
    moved = False
    for sample, answers in case.trials():
        before = case.value(sample, answers)
        after = case.value(in_other_order(sample), answers)
        moved = moved or not _close(before, after)
        if moved and not case.metric.ranked:
            what = f"sample {sample.id!r} has the value {before}, and {after} with its contexts in another order"
            yield f"{what}; declare `ranked` or make the value independent of the order."
    if case.metric.ranked and not moved:
        what = "it declares `ranked`, but the order of the contexts matters in no sample"
        yield f"{what}; pass a sample in which it does."


def _order_of_statements(case: _Case) -> Iterator[str]:
    for sample, answers in case.trials():
        before = case.value(sample, answers)
        after = case.value(sample, replace(answers, statements_reversed=True))
        if not _close(before, after):
            yield f"sample {sample.id!r} has the value {before}, and {after} with its statements reversed."


def _better_verdicts(case: _Case) -> Iterator[str]:
    metric = case.metric
    lowered: set[type[Question[Any]]] = set()
    for sample, answers in case.trials():
        outcome, questions = case.asked(sample, answers)
        if not isinstance(outcome, Score):
            continue
        before = outcome.value
        for question, changed in _improved(questions, answers):
            after = case.value(sample, changed)
            if after is None or _close(before, after) or (after < before) != metric.higher_is_better:
                continue
            lowered.add(type(question))
            if type(question) not in metric.not_monotone_in:
                given, better = answers(question), changed(question)
                yield (
                    f"sample {sample.id!r} goes from {before} to {after} when the verdict on a {question.kind!r} "
                    f"question gets better, {given!r} to {better!r}; fix it, or name the kind in `not_monotone_in` "
                    "and test an example."
                )
    if never := (metric.not_monotone_in & metric.asks) - lowered:
        yield f"`not_monotone_in` names {_kinds(never)}, but no better verdict made the value worse."


def _improved(
    questions: Iterable[Question[Any]], answers: SyntheticAnswers
) -> Iterator[tuple[Question[Any], SyntheticAnswers]]:
    for question in dict.fromkeys(questions):
        given = answers(question)
        if not isinstance(given, type(question).verdict):  # a verdict of the metric's author may be of any type
            continue
        for verdict in question.better(given):
            yield question, replace(answers, known={question: verdict})


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def _failures(case: _Case) -> Iterator[str]:
    for sample, answers in case.trials():
        outcome, questions = case.asked(sample, lambda _: _NO_ANSWER)
        if questions and not isinstance(outcome, AskFailed):
            yield f"on sample {sample.id!r} no question is answered; it ends as {outcome!r}, not as AskFailed."
        for failing in dict.fromkeys(case.asked(sample, answers)[1]):
            case.outcome(sample, partial(_all_but, failing, answers))


def _all_but(failing: Question[Any], answer: Answerer, question: Question[Any]) -> Answer:
    return _NO_ANSWER if question == failing else answer(question)


class _Stop(BaseException):
    """An exception that a plan must not catch, like that of a stopped run or a closed program."""


def _closing(case: _Case) -> Iterator[str]:
    for sample, answers in case.trials():
        at, where, advice = 0, f"on sample {sample.id!r} it", "catch AskFailed, and nothing broader."
        while (plan := _advanced(case.metric.plan(sample), answers, at)) is not None:
            try:
                plan.close()
            except BaseException as raised:
                what = f"{where} raises {raised!r} instead of closing; ask nothing while closing."
                raise ContractViolation(case.metric, "closing", what) from raised
            # an exception at a question is passed on: a plan catches nothing broader than AskFailed
            for error in (_Stop(), RuntimeError("the contract's own"), MeriloError("the contract's own")):
                what = f"{where} catches {type(error).__bases__[0].__name__}"
                if (thrown := _advanced(case.metric.plan(sample), answers, at)) is None:
                    continue
                try:
                    thrown.throw(error)
                except StopIteration:
                    yield f"{what} and ends; {advice}"
                except BaseException as out:
                    if out is not error:
                        raise ContractViolation(case.metric, "closing", f"{what} and raises {out!r}; {advice}") from out
                else:
                    yield f"{what} and continues asking; {advice}"
            at += 1


def _advanced(plan: Plan[Score | Undefined], answer: Answerer, steps: int) -> Plan[Score | Undefined] | None:
    """Return the plan after this number of answered steps, waiting; None if it has ended by then."""
    try:
        step = next(plan)
        for _ in range(steps):
            step = plan.send(tuple([answer(question) for group in step for question in group]))
    except (StopIteration, AskFailed, MissingField):
        return None
    return plan


def _kinds(kinds: Iterable[type[Question[Any]]]) -> str:
    return ", ".join(sorted(kind.__name__ for kind in kinds))


LAWS: Final[tuple[tuple[str, Callable[[_Case], Iterator[str]]], ...]] = (
    ("declarations", _declarations),
    ("range", _range),
    ("driving", _driving),
    ("questions", _questions),
    ("needs", _needs),
    ("nothing to judge", _nothing_to_judge),
    ("order", _order_of_contexts),
    ("order", _order_of_statements),
    ("better verdicts", _better_verdicts),
    ("failures", _failures),
    ("closing", _closing),
)
"""The laws by name, in the order in which they are checked, with their checks."""


# -- synthetic samples and verdicts --------------------------------------------------------------------
# Seeded, always the same, no two texts equal. Verdicts are a function of the texts alone, so they do not depend on the
# position of a context: whether a context supports a statement depends on the two texts, not on its number.

COUNT: Final = 24
_MAX_CONTEXTS: Final = 5
_WORDS: Final = "amber basin copper delta ember fjord glacier harbour island juniper kelp lagoon".split()


def synthetic_samples() -> Iterator[Sample]:
    """Yield full samples of 1 to 5 contexts; some contexts are blank, some occur twice."""
    for number in range(COUNT):
        yield synthetic_sample(number)


def synthetic_sample(number: int) -> Sample:
    """Return the full sample with this number: every field and nuggets; only a context is ever blank."""
    contexts = [_text(number, f"context {place}", 4) for place in range(1 + number % _MAX_CONTEXTS)]
    if number % 7 == 3:
        contexts[-1] = " \n"
    if number % 7 == 5:
        contexts[-1] = contexts[0]
    return Sample(
        f"specimen-{number}",
        user_input=_text(number, "user input", 1),
        retrieved_contexts=contexts,
        response=_text(number, "response", 3),
        reference=_text(number, "reference", 3),
        reference_contexts=[_text(number, f"reference context {place}", 3) for place in range(2)],
        retrieved_context_ids=[f"c{number}-{place}" for place in range(len(contexts))],
        reference_context_ids=[f"c{number}-{place}" for place in range(0, 4, 2)],
        metadata={NUGGETS: [{"text": _text(number, f"nugget {at}", 1), "vital": at != 1} for at in range(3)]},
    )


def sample_without(full: Sample, name: str) -> Sample:
    """Return the sample without one of its fields."""
    without: dict[str, Any] = {name: None}  # replace takes any field
    return replace(full, **without)


def empty_sample() -> Sample:
    """Return the sample whose fields are all present and empty."""
    return Sample(
        "empty",
        user_input="",
        retrieved_contexts=[],
        response="",
        reference="",
        reference_contexts=[],
        retrieved_context_ids=[],
        reference_context_ids=[],
    )


def in_other_order(full: Sample) -> Sample:
    """Return the sample with its retrieved contexts, and their ids, in reverse order."""
    contexts, ids = full.retrieved_contexts, full.retrieved_context_ids
    return replace(
        full,
        retrieved_contexts=None if contexts is None else contexts[::-1],
        retrieved_context_ids=None if ids is None else ids[::-1],
    )


@dataclass(frozen=True)
class SyntheticAnswers:
    """Synthetic verdicts: a callable that always gives the same verdict on the same question."""

    seed: int = 0
    known: Mapping[Question[Any], Verdict] = field(default_factory=dict[Question[Any], Verdict])
    """Verdicts that take precedence over the synthetic ones."""
    own: Callable[[Question[Any]], Verdict | None] | None = None
    """Verdicts of the metric's author, which replace the synthetic ones; None if there is no replacement."""
    statements_reversed: bool = False
    """Return the statements, parts and entities of a text in reverse order."""
    statements_flood: bool = False
    """Return thousands of statements, parts or entities in every text, as a broken judge may."""

    def __call__(self, question: Question[Any]) -> Verdict:
        """Return the verdict on a question; its guess for kinds without a synthetic verdict."""
        found = self.known.get(question)
        if found is None and self.own is not None:
            found = self.own(question)
        if found is None:
            about = (question.kind, question.role, str(question.draw))
            found = question.synthetic(Odds(self.seed, about, flood=self.statements_flood))
        return found.reversed() if self.statements_reversed else found


def guessed(question: Question[Any]) -> Verdict:
    """Return a likely answer, as in dry runs."""
    found: Verdict = question.guess()
    return found


def _text(number: int, what: str, max_sentences: int) -> str:
    count = 1 + int(max_sentences * chance(number, what))
    about = [f"{what} {place}" for place in range(count)]
    chosen = [[chance(number, each, str(at)) for at in range(5)] for each in about]
    words = [" ".join(_WORDS[int(len(_WORDS) * odd)] for odd in odds) for odds in chosen]
    return "\n\n".join(f"The {each} of case {number} has {own}." for each, own in zip(about, words, strict=True))
