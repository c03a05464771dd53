"""The contract of a metric, as one check for your own metrics: `check_metric`.

It runs the metric on synthetic samples with synthetic verdicts, always the same ones, and on your own samples. It
raises `ContractViolation` at the first law that does not hold. It asks no judge and needs no network.

The module is long because all laws are in one place: together they are the definition of a metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isclose, isfinite
from typing import TYPE_CHECKING, Any, Final

from merilo.data.sample import FIELDS, NUGGETS, Sample
from merilo.errors import MeriloError, MissingField
from merilo.judging.ask import AskFailed, together
from merilo.judging.kinds.completion import Completion
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
    """Check a metric against the contract; return None if it complies. Raises LawBroken with the observation.

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
    found: dict[str, ContractViolation] = {}
    for broken in _broken(metric, samples, answer):
        found.setdefault(broken.law, broken)
    return found


def _broken(
    metric: Metric, samples: Iterable[Sample] | None, answer: OwnVerdicts | None
) -> Iterator[ContractViolation]:
    case = _Case(metric, (*synthetic_samples(), *(samples or ())), answer)
    for checks in LAWS.values():
        for check in checks:
            try:
                check(case)
            except ContractViolation as broken:
                yield broken
                if broken.law == "declarations":
                    return


@dataclass(frozen=True)
class _Case:
    """A metric with everything it is checked on."""

    metric: Metric
    samples: tuple[Sample, ...]
    own: OwnVerdicts | None

    def broken(self, law: str, what: str) -> ContractViolation:
        return ContractViolation(self.metric, law, what)

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
            raise self.broken("driving", what) from error
        if isinstance(outcome, (Score, Undefined)):
            return outcome
        what = f"on sample {sample.id!r} it returns {outcome!r}; a plan returns a Score or Undefined."
        raise self.broken("driving", what)

    def value(self, sample: Sample, answer: Answerer) -> float | None:
        """Return the score's value; None if there is no score."""
        outcome = self.outcome(sample, answer)
        return outcome.value if isinstance(outcome, Score) else None


@dataclass
class _Recorder:
    """A function that answers questions and records them."""

    answer: Answerer
    questions: list[Question[Any]] = field(default_factory=list)

    def __call__(self, question: Question[Any]) -> Answer:
        self.questions.append(question)
        return self.answer(question)


# -- its declarations ---------------------------------------------------------------------------------


def _check_declarations(case: _Case) -> None:
    for problem in _wrong_declarations(case.metric):
        raise case.broken("declarations", problem)


def _wrong_declarations(metric: Metric) -> Iterator[str]:
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
    if unknown_laws := set(metric.breaks) - (set(LAWS) - {"declarations"}):
        yield f"its `breaks` names {', '.join(sorted(unknown_laws))}; the laws are {', '.join(LAWS)}."
    if unknown := metric.needs - set(FIELDS):
        yield f"it needs {', '.join(sorted(unknown))}; a sample's fields are {', '.join(FIELDS)}."
    if not metric.card.summary.strip():
        yield "its card has no summary; write one line on the meaning of the value."
    text = metric_text(metric)
    if (read_back := build(type(metric), read_call(text))) != metric:
        yield f"its text {text!r} reads back as {read_back!r}, not as {metric!r}."


# -- its drivers --------------------------------------------------------------------------------------


def _check_driving(case: _Case) -> None:
    scored = False
    for seed in _SEEDS:
        answers = SyntheticAnswers(seed, own=case.own)
        alone = [case.outcome(sample, answers) for sample in case.samples]
        again = [case.outcome(sample, answers) for sample in case.samples]
        rounds = _in_rounds(case, answers)
        for sample, first, second, third in zip(case.samples, alone, again, rounds, strict=True):
            _same(case, sample, first, second, "driven twice")
            _same(case, sample, first, third, "driven in rounds with other samples")
            _same(case, sample, first, _in_parallel(case, sample, answers), "driven in parallel with itself")
        scored = scored or any(isinstance(outcome, Score) for outcome in alone)
    if not scored:
        what = "it has no score on any sample; pass samples= or answer= that give it one."
        raise case.broken("driving", what)


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


def _in_parallel(case: _Case, sample: Sample, answer: Answerer) -> Ended:
    def run() -> Score | Undefined:
        return drive(together([case.metric.plan(sample), case.metric.plan(sample)]), answer)[1]

    return case.ended(run, sample)


def _same(case: _Case, sample: Sample, first: Ended, other: Ended, how: str) -> None:
    if isinstance(first, (AskFailed, MissingField)):
        same = type(first) is type(other) and str(first) == str(other)
    else:
        same = first == other
    if not same:
        what = f"on sample {sample.id!r} it ends as {first!r} alone and as {other!r} when {how}."
        raise case.broken("driving", f"{what} A plan may depend only on its sample and its answers.")


# -- its questions ------------------------------------------------------------------------------------


def _check_questions(case: _Case) -> None:
    kinds: set[type[Question[Any]]] = set()
    roles: set[str] = set()
    for sample, answers in _with_guesses(case):
        recorder = _Recorder(answers)
        case.outcome(sample, recorder)
        _check_asked(case, sample, recorder.questions)
        kinds.update(type(question) for question in recorder.questions)
        roles.update(question.role for question in recorder.questions)
    if never := case.metric.asks - kinds:
        raise case.broken("questions", f"it declares that it asks {_kinds(never)}, but never does.")
    if unused := case.metric.roles - roles if kinds else ():
        raise case.broken("questions", f"it declares the roles {sorted(unused)}, but never asks them.")


def _with_guesses(case: _Case) -> Iterator[tuple[Sample, Answerer]]:
    """Yield the trials, then dry runs, which must end in an outcome, then a flood of statements, then an empty
    sample.
    """
    yield from case.trials()
    for sample in case.samples:
        outcome = case.outcome(sample, guessed)
        if isinstance(outcome, AskFailed) and _likely(outcome.question):
            raise case.broken("questions", f"on sample {sample.id!r} a dry run fails: {outcome}")
        yield sample, guessed
    yield case.samples[0], SyntheticAnswers(statements_flood=True, own=case.own)
    yield empty_sample(), SyntheticAnswers(own=case.own)


def _likely(question: Question[Any]) -> bool:
    """Return True if the question has a guess that its metric can parse: free text only has one if it is given."""
    return not isinstance(question, Completion) or bool(question.likely)


def _check_asked(case: _Case, sample: Sample, questions: Sequence[Question[Any]]) -> None:
    metric, where = case.metric, f"on sample {sample.id!r} it asks"
    bound = metric.max_questions(sample)
    if len(questions) > bound:
        raise case.broken("questions", f"{where} {len(questions)} questions, but max_questions says {bound}.")
    for question in questions:
        if type(question) not in metric.asks:
            raise case.broken("questions", f"{where} {_kinds([type(question)])}, which `asks` does not name.")
        if question.role not in metric.roles:
            what = f"{where} the role {question.role!r}, which `roles` does not name."
            raise case.broken("questions", what)
        if fault := question.fault(question.guess()):
            what = f"{where} a {question.kind!r} question that cannot be answered: its own guess {fault}."
            raise case.broken("questions", what)


# -- its values ---------------------------------------------------------------------------------------


def _check_range(case: _Case) -> None:
    low, high = case.metric.range
    for sample, answers in case.trials():
        value = case.value(sample, answers)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
            raise case.broken("range", f"on sample {sample.id!r} its value is {value!r}, which is not a finite number.")
        if not low <= value <= high:
            what = f"on sample {sample.id!r} its value is {value}, outside its range {low} to {high}."
            raise case.broken("range", what)


def _check_needs(case: _Case) -> None:
    bare_score = False
    for sample, answers in case.trials():
        bare = sample
        for name in FIELDS:
            without = case.outcome(sample_without(sample, name), answers)
            if name in case.metric.needs:
                _check_missed(case, sample, name, without)
            elif isinstance(without, MissingField) and sample.present >= case.metric.needs:
                what = f"on a sample without {name!r} it raises MissingField, but `needs` does not name it."
                raise case.broken("needs", what)
            else:
                bare = sample_without(bare, name)
        case.metric.max_questions(Sample("bare"))
        bare_score = bare_score or isinstance(case.outcome(bare, answers), Score)
    if not bare_score:
        needs = ", ".join(sorted(case.metric.needs)) or "nothing"
        raise case.broken("needs", f"it has no score on samples with only {needs}.")


def _check_missed(case: _Case, sample: Sample, name: str, without: Ended) -> None:
    if not isinstance(without, MissingField):
        what = (
            f"sample {sample.id!r} without {name!r} ends as {without!r}; read the field with sample.require({name!r})."
        )
        raise case.broken("needs", what)


def _check_nothing_to_judge(case: _Case) -> None:
    outcome = case.outcome(empty_sample(), SyntheticAnswers(own=case.own))
    if not isinstance(outcome, Undefined) or not outcome.reason.strip():
        what = f"a sample whose fields are all empty ends as {outcome!r}; expected Undefined with a reason."
        raise case.broken("nothing to judge", what)


# -- changes of its values ----------------------------------------------------------------------------


def _check_order_of_contexts(case: _Case) -> None:
    moved = False
    for sample, answers in case.trials():
        before = case.value(sample, answers)
        after = case.value(in_other_order(sample), answers)
        moved = moved or not _close(before, after)
        if moved and not case.metric.ranked:
            what = (
                f"sample {sample.id!r} has the value {before}, and {after} with its contexts in another "
                "order; declare `ranked` or make the value independent of the order."
            )
            raise case.broken("order", what)
    if case.metric.ranked and not moved:
        raise case.broken(
            "order",
            "it declares `ranked`, but the order of the contexts matters in no sample; pass a sample in which it does.",
        )


def _check_order_of_statements(case: _Case) -> None:
    for sample, answers in case.trials():
        before = case.value(sample, answers)
        after = case.value(sample, replace(answers, statements_reversed=True))
        if not _close(before, after):
            what = f"sample {sample.id!r} has the value {before}, and {after} with its statements reversed."
            raise case.broken("order", what)


def _check_better_verdicts(case: _Case) -> None:
    lowered: set[type[Question[Any]]] = set()
    for sample, answers in case.trials():
        recorder = _Recorder(answers)
        before = case.value(sample, recorder)
        if before is None:
            continue
        for question, changed in _improved(recorder.questions, answers):
            after = case.value(sample, changed)
            if after is None or not _worse(case.metric, before, after):
                continue
            lowered.add(type(question))
            if type(question) not in case.metric.not_monotone_in:
                what = (
                    f"sample {sample.id!r} goes from {before} to {after} when the verdict on a "
                    f"{question.kind!r} question gets better, {answers(question)!r} to "
                    f"{changed(question)!r}; fix it, or name the kind in `not_monotone_in` and test an "
                    "example."
                )
                raise case.broken("better verdicts", what)
    if never := (case.metric.not_monotone_in & case.metric.asks) - lowered:
        what = f"`not_monotone_in` names {_kinds(never)}, but no better verdict made the value worse."
        raise case.broken("better verdicts", what)


def _improved(
    questions: Iterable[Question[Any]], answers: SyntheticAnswers
) -> Iterator[tuple[Question[Any], SyntheticAnswers]]:
    for question in dict.fromkeys(questions):
        given = answers(question)
        if not isinstance(given, type(question).verdict):  # a verdict of the metric's author may be of any type
            continue
        for verdict in question.better(given):
            yield question, replace(answers, known={question: verdict})


def _worse(metric: Metric, before: float, after: float) -> bool:
    return not _close(before, after) and (after < before) == metric.higher_is_better


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


# -- failures and closing -----------------------------------------------------------------------------


def _check_failures(case: _Case) -> None:
    for sample, answers in case.trials():
        recorder = _Recorder(lambda _: _NO_ANSWER)
        outcome = case.outcome(sample, recorder)
        if recorder.questions and not isinstance(outcome, AskFailed):
            what = f"on sample {sample.id!r} no question is answered; it ends as {outcome!r}, not as AskFailed."
            raise case.broken("failures", what)
        recorder = _Recorder(answers)
        case.outcome(sample, recorder)
        for failing in dict.fromkeys(recorder.questions):
            case.outcome(sample, _AllBut(failing, answers))


@dataclass(frozen=True)
class _AllBut:
    """A function that answers every question except one."""

    failing: Question[Any]
    answer: Answerer

    def __call__(self, question: Question[Any]) -> Answer:
        return _NO_ANSWER if question == self.failing else self.answer(question)


class _Stop(BaseException):
    """An exception that a plan must not catch, like that of a stopped run or a closed program."""


def _check_closing(case: _Case) -> None:
    for sample, answers in case.trials():
        at = 0
        while (plan := _advanced(case.metric.plan(sample), answers, at)) is not None:
            _check_closed(case, sample, plan)
            for error in (_Stop(), RuntimeError("the contract's own"), MeriloError("the contract's own")):
                thrown = _advanced(case.metric.plan(sample), answers, at)
                if thrown is not None:
                    _check_thrown(case, sample, thrown, error)
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


def _check_closed(case: _Case, sample: Sample, plan: Plan[Score | Undefined]) -> None:
    try:
        plan.close()
    except BaseException as error:
        what = f"on sample {sample.id!r} it raises {error!r} instead of closing; ask nothing while closing."
        raise case.broken("closing", what) from error


def _check_thrown(case: _Case, sample: Sample, plan: Plan[Score | Undefined], error: BaseException) -> None:
    """Check that an exception at a question is passed on: a plan catches nothing broader than AskFailed."""
    law, what = "closing", f"on sample {sample.id!r} it catches {type(error).__bases__[0].__name__}"
    advice = "catch AskFailed, and nothing broader."
    try:
        plan.throw(error)
    except StopIteration:
        raise case.broken(law, f"{what} and ends; {advice}") from None
    except BaseException as out:
        if out is not error:
            raise case.broken(law, f"{what} and raises {out!r}; {advice}") from out
    else:
        raise case.broken(law, f"{what} and continues asking; {advice}")


def _kinds(kinds: Iterable[type[Question[Any]]]) -> str:
    return ", ".join(sorted(kind.__name__ for kind in kinds))


LAWS: Final[Mapping[str, tuple[Callable[[_Case], None], ...]]] = {
    "declarations": (_check_declarations,),
    "range": (_check_range,),
    "driving": (_check_driving,),
    "questions": (_check_questions,),
    "needs": (_check_needs,),
    "nothing to judge": (_check_nothing_to_judge,),
    "order": (_check_order_of_contexts, _check_order_of_statements),
    "better verdicts": (_check_better_verdicts,),
    "failures": (_check_failures,),
    "closing": (_check_closing,),
}
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
    return "\n\n".join(_sentence(number, f"{what} {place}") for place in range(count))


def _sentence(number: int, what: str) -> str:
    words = [_WORDS[int(len(_WORDS) * chance(number, what, str(at)))] for at in range(5)]
    return f"The {what} of case {number} has {' '.join(words)}."
