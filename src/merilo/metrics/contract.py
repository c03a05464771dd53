"""The contract of a metric, as one check for your own metrics: `check_metric`.

It runs the metric on synthetic samples with synthetic verdicts, always the same ones, and on your own samples. It
raises `ContractViolation` at the first law that does not hold. It asks no judge and needs no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from math import isclose, isfinite
from typing import TYPE_CHECKING, Any, Final

from merilo.data.sample import FIELDS, NUGGETS, Sample
from merilo.errors import MeriloError, MissingField
from merilo.judging.ask import Answer, AskFailed, Plan, together
from merilo.judging.kinds.responses import Completion
from merilo.judging.questions import Question
from merilo.judging.synthetic import Odds, chance
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.metrics.base import DECLARED, Answerer, Metric, Score, Undefined, drive, plan_of
from merilo.metrics.text import NAME, build, metric_text, read_call

if TYPE_CHECKING:
    from collections.abc import Iterable


Ended = Score | Undefined | AskFailed | MissingField
"""The possible results of a plan."""
OwnVerdicts = Callable[[Question[Any]], Verdict | None]
"""A function with the metric author's verdicts; None to use the synthetic one."""

_SEEDS: Final = (0, 1, 2)
_OWN: Final = "the contract's own"
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
    - **questions**: of the kinds and roles declared, answerable, in a dry run too;
    - **needs**: without a needed field MissingField; with only the needed fields a score is possible;
    - **nothing to judge**: a sample whose fields are all empty is Undefined;
    - **order**: contexts (unless `ranked`) and statements may come in any order;
    - **better verdicts**: none makes the value worse, except for the kinds in `not_monotone_in`;
    - **failures**: a plan that gets no answer at all raises AskFailed;
    - **closing**: a plan closes at every question and catches nothing broader than AskFailed.

    A metric that breaks one of them on purpose, as published definitions do, names it in `breaks`.
    """
    for broken in violations(metric, samples, answer=answer):
        if broken.law == "declarations" or broken.law not in metric.breaks:
            raise broken


def violations(
    metric: Metric, samples: Iterable[Sample] | None = None, *, answer: OwnVerdicts | None = None
) -> Iterator[ContractViolation]:
    """Yield the first violation of each law, on purpose or not; broken declarations alone, since all others need them.

    The arguments are those of `check_metric`.
    """
    case = _Case(metric, (*synthetic_samples(), *(samples or ())), answer or (lambda _: None))
    for law, check in LAWS.items():
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
    own: OwnVerdicts

    def trials(self) -> Iterator[tuple[Sample, SyntheticAnswers]]:
        for seed in _SEEDS:
            answers = SyntheticAnswers(seed, own=self.own)
            yield from ((sample, answers) for sample in self.samples)

    def plan(self, sample: Sample) -> Plan[Ended]:
        """Return the result of a plan; anything except the four possible results breaks the law."""
        try:
            outcome: object = yield from plan_of(self.metric, sample)
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
        outcome = drive(self.plan(sample), answer)
        return outcome.value if isinstance(outcome, Score) else None

    def asked(self, sample: Sample, answer: Answerer) -> tuple[Ended, list[Question[Any]]]:
        """Return the result of a plan and its questions in order."""
        questions: list[Question[Any]] = []

        def recording(question: Question[Any]) -> Answer:
            questions.append(question)
            return answer(question)

        return drive(self.plan(sample), recording), questions


# -- the laws: each check yields what it observes if the metric breaks the law; the first observation counts -----------


def _declarations(case: _Case) -> Iterator[str]:
    metric = case.metric
    declared = getattr(type(metric), "__dataclass_params__", None)
    if declared is None or not declared.frozen:
        yield "it is not a frozen dataclass; write @dataclass(frozen=True)."
    if lacking := [name for name in DECLARED if not hasattr(metric, name)]:
        yield f"it lacks {', '.join(lacking)}; inherit MetricDefaults and declare the rest."
    (low, high), text, laws = metric.range, metric_text(metric), [*LAWS]
    no_laws, no_fields = {*metric.breaks} - {*laws[1:]}, {*metric.needs} - {*FIELDS}
    wrong = {
        f"its name {metric.name!r} is invalid; use letters, digits and '_.:/+-'.": not NAME.fullmatch(metric.name),
        f"its version is {metric.version}; versions count from 1.": metric.version < 1,
        f"its range is {metric.range}; expected (low, high) with low below high, maybe infinite.": not low < high,
        f"its `breaks` names {', '.join(sorted(no_laws))}; the laws are {', '.join(laws)}.": no_laws,
        f"it needs {', '.join(sorted(no_fields))}; a sample's fields are {', '.join(FIELDS)}.": no_fields,
        "its card has no summary; write one line on the meaning of the value.": not metric.card.summary.strip(),
    }
    yield from (what for what, holds in wrong.items() if holds)
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
    scored, size = False, len(case.samples)
    for seed in _SEEDS:
        answers = SyntheticAnswers(seed, own=case.own)
        alone, again = ([drive(case.plan(sample), answers) for sample in case.samples] for _ in range(2))
        plans = [case.plan(sample) for sample in (*case.samples, *case.samples)]
        mixed = drive(together(plans), answers)
        for sample, first, *others in zip(case.samples, alone, again, mixed[:size], mixed[size:], strict=True):
            for how, other in zip(("twice", *["together with other plans"] * 2), others, strict=True):
                if repr(first) != repr(other):
                    what = f"on sample {sample.id!r} it ends as {first!r} alone and as {other!r} when driven {how}."
                    yield f"{what} A plan may depend only on its sample and its answers."
        scored = scored or any(isinstance(outcome, Score) for outcome in alone)
    if not scored:
        yield "it has no score on any sample; pass samples= or answer= that give it one."


def _questions(case: _Case) -> Iterator[str]:
    """Check the trials, then dry runs, which must end in an outcome, then an empty sample."""
    metric, kinds, roles = case.metric, set[type[Question[Any]]](), set[str]()
    cases: list[tuple[Sample, Answerer]] = [*case.trials(), *((sample, guessed) for sample in case.samples)]
    cases.append((empty_sample(), SyntheticAnswers(own=case.own)))
    for sample, answers in cases:
        outcome, questions = case.asked(sample, answers)
        where = f"on sample {sample.id!r}"
        # free text has a guess that its metric can parse only if one is given
        failed = outcome.question if answers is guessed and isinstance(outcome, AskFailed) else None
        if failed is not None and (not isinstance(failed, Completion) or failed.likely):
            yield f"{where} a dry run fails: {outcome}"
        for question in questions:
            fault = question.fault(question.guess())
            kind, role = _kinds([type(question)]), question.role
            wrong = {
                f"it asks {kind}, which `asks` does not name.": type(question) not in metric.asks,
                f"it asks the role {role!r}, which `roles` does not name.": role not in metric.roles,
                f"a {question.kind!r} question cannot be answered: its own guess {fault}.": fault,
            }
            yield from (f"{where} {what}" for what, holds in wrong.items() if holds)
        kinds |= {type(question) for question in questions}
        roles |= {question.role for question in questions}
    if never := metric.asks - kinds:
        yield f"it declares that it asks {_kinds(never)}, but never does."
    if unused := metric.roles - roles if kinds else ():
        yield f"it declares the roles {sorted(unused)}, but never asks them."


def _needs(case: _Case) -> Iterator[str]:
    bare_score, needs = False, case.metric.needs
    for sample, answers in case.trials():
        bare = sample
        for name in FIELDS:
            without = drive(case.plan(_without(sample, name)), answers)
            if name in needs and not isinstance(without, MissingField):
                advice = f"read the field with sample.require({name!r})."
                yield f"sample {sample.id!r} without {name!r} ends as {without!r}; {advice}"
            if name not in needs and isinstance(without, MissingField) and sample.present >= needs:
                yield f"on a sample without {name!r} it raises MissingField, but `needs` does not name it."
            bare = bare if name in needs else _without(bare, name)
        bare_score = bare_score or case.value(bare, answers) is not None
    if not bare_score:
        yield f"it has no score on samples with only {', '.join(sorted(needs)) or 'nothing'}."


def _nothing_to_judge(case: _Case) -> Iterator[str]:
    outcome = drive(case.plan(empty_sample()), SyntheticAnswers(own=case.own))
    if not isinstance(outcome, Undefined) or not outcome.reason.strip():
        yield f"a sample whose fields are all empty ends as {outcome!r}; expected Undefined with a reason."


def _order(case: _Case) -> Iterator[str]:
    moved = False
    for sample, answers in case.trials():
        contexts, ids = sample.retrieved_contexts or (), sample.retrieved_context_ids or ()
        turned = replace(sample, retrieved_contexts=contexts[::-1], retrieved_context_ids=ids[::-1])
        before, after = case.value(sample, answers), case.value(turned, answers)
        moved = moved or not _close(before, after)
        if moved and not case.metric.ranked:
            what = f"sample {sample.id!r} has the value {before}, and {after} with its contexts in another order"
            yield f"{what}; declare `ranked` or make the value independent of the order."
        if not _close(before, after := case.value(sample, answers.backwards)):
            yield f"sample {sample.id!r} has the value {before}, and {after} with its statements reversed."
    if case.metric.ranked and not moved:
        what = "it declares `ranked`, but the order of the contexts matters in no sample"
        yield f"{what}; pass a sample in which it does."


def _better_verdicts(case: _Case) -> Iterator[str]:
    metric, lowered = case.metric, set[type[Question[Any]]]()
    for sample, answers in case.trials():
        outcome, questions = case.asked(sample, answers)
        for question in dict.fromkeys(questions) if isinstance(outcome, Score) else ():
            given, before = answers(question), case.value(sample, answers)
            # a verdict of the metric's author may be of any type
            for better in question.better(given) if isinstance(given, type(question).verdict) else ():
                after = case.value(sample, _but(answers, question, better))
                if before is None or after is None or _close(before, after):
                    continue
                if (after < before) == metric.higher_is_better:
                    lowered.add(type(question))
                    if type(question) not in metric.not_monotone_in:
                        yield (
                            f"sample {sample.id!r} goes from {before} to {after} when the verdict on a "
                            f"{question.kind!r} question gets better, {given!r} to {better!r}; fix it, or name the "
                            "kind in `not_monotone_in` and test an example."
                        )
    if never := (metric.not_monotone_in & metric.asks) - lowered:
        yield f"`not_monotone_in` names {_kinds(never)}, but no better verdict made the value worse."


def _close(one: float | None, other: float | None) -> bool:
    return one is other if one is None or other is None else isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def _failures(case: _Case) -> Iterator[str]:
    for sample, answers in case.trials():
        outcome, questions = case.asked(sample, lambda _: _NO_ANSWER)
        if questions and not isinstance(outcome, AskFailed):
            yield f"on sample {sample.id!r} no question is answered; it ends as {outcome!r}, not as AskFailed."
        for lost in dict.fromkeys(case.asked(sample, answers)[1]):
            drive(case.plan(sample), _but(answers, lost, _NO_ANSWER))


def _closing(case: _Case) -> Iterator[str]:
    """Close each plan at each question, and raise there what a plan must pass on."""
    for sample, answers in case.trials():
        for at in count():
            plan: Plan[Score | Undefined] | None = None
            for error in (GeneratorExit(), KeyboardInterrupt(), RuntimeError(_OWN), MeriloError(_OWN)):
                if (plan := _advanced(case.metric.plan(sample), answers, at)) is None:
                    break
                ended = "continues asking"
                try:
                    plan.throw(error)
                except StopIteration:
                    ended = "ends"
                except BaseException as out:  # noqa: BLE001  the one that was raised passes
                    ended = "" if out is error else f"raises {out!r}"
                if ended:
                    caught = type(error).__bases__[0].__name__
                    yield f"on sample {sample.id!r} it catches {caught} and {ended}; catch AskFailed, and no more."
            if plan is None:
                break


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


LAWS: Final[Mapping[str, Callable[[_Case], Iterator[str]]]] = {
    check.__name__.strip("_").replace("_", " "): check
    for check in (
        *(_declarations, _range, _driving, _questions, _needs, _nothing_to_judge, _order, _better_verdicts),
        *(_failures, _closing),
    )
}
"""The checks by the names of their laws, in the order in which they are made."""


# -- synthetic samples and verdicts --------------------------------------------------------------------
# Seeded, always the same, no two texts equal. Verdicts are a function of the texts alone, so they do not depend on the
# position of a context: whether a context supports a statement depends on the two texts, not on its number.

_WORDS: Final = "amber basin copper delta ember fjord glacier harbour island juniper kelp lagoon".split()


def synthetic_samples() -> Iterator[Sample]:
    """Yield full samples of 1 to 5 contexts; some contexts are blank, some occur twice."""
    yield from map(synthetic_sample, range(24))


def synthetic_sample(number: int) -> Sample:
    """Return the full sample with this number: every field and nuggets; only a context is ever blank."""
    contexts = [_text(number, f"context {place}", 4) for place in range(1 + number % 5)]
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


def _without(full: Sample, name: str) -> Sample:
    without: dict[str, Any] = {name: None}  # replace takes any field
    return replace(full, **without)


def empty_sample() -> Sample:
    """Return the sample whose fields are all present and empty."""
    empty: dict[str, Any] = {name: getattr(synthetic_sample(0), name)[:0] for name in FIELDS}  # texts and lists
    return Sample("empty", **empty)


@dataclass(frozen=True)
class SyntheticAnswers:
    """Synthetic verdicts: a callable that always gives the same verdict on the same question."""

    seed: int = 0
    own: OwnVerdicts = lambda _: None
    """Verdicts of the metric's author, which replace the synthetic ones; None if there is no replacement."""

    def __call__(self, question: Question[Any]) -> Verdict:
        """Return the verdict on a question; its guess for kinds without a synthetic verdict."""
        about = (question.kind, question.role, str(question.draw))
        found: Verdict = self.own(question) or question.synthetic(Odds(self.seed, about))
        return found

    def backwards(self, question: Question[Any]) -> Verdict:
        """Return the verdict on a question, with its statements, parts or entities in reverse order."""
        return self(question).reversed()


def guessed(question: Question[Any]) -> Verdict:
    """Return a likely answer, as in dry runs."""
    found: Verdict = question.guess()
    return found


def _but(answers: Answerer, question: Question[Any], answer: Answer) -> Answerer:
    """Return the answers with another one to a question."""
    return lambda each: answer if each == question else answers(each)


def _text(number: int, what: str, max_sentences: int) -> str:
    about = [f"{what} {place}" for place in range(1 + int(max_sentences * chance(number, what)))]
    chosen = [[chance(number, each, str(at)) for at in range(5)] for each in about]
    words = [" ".join(_WORDS[int(len(_WORDS) * odd)] for odd in odds) for odds in chosen]
    return "\n\n".join(f"The {each} of case {number} has {own}." for each, own in zip(about, words, strict=True))
