"""Metrics that a run changes: repeated ones, those in another package's words, and those that it cannot measure.

A repeated metric asks its judge several times: the mean over K draws of each question is the score of a sample. The
metric's plan runs once per draw, all plans side by side. Draw k of the plan asks each question with its own draw
number plus `STRIDE * k`, so the first draw asks exactly the questions of a run without draws (same keys, same cached
answers). Questions for vectors, similarities and sentences measure texts; their draw does not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from statistics import mean
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.errors import UsageError
from merilo.judges.routed import is_deterministic
from merilo.judging.ask import AskFailed, Plan, together
from merilo.judging.registry import SPECIAL
from merilo.metrics.base import Failed, Metric, Outcome, Score, Undefined, outcome_of, plan_of
from merilo.plugins import PUBLISHED, Group, plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.engine.answer_store import JudgeRoles
    from merilo.judging.questions import Question

STRIDE: Final = 1_000
"""Distance between the draw numbers of two draws of a plan; a plan may use draws below it."""


@dataclass(frozen=True)
class ChangedMetric:
    """A metric that a run changes; its declarations are the metric's own."""

    metric: Metric

    def __getattr__(self, name: str) -> Any:  # Any: the declarations of the metric
        return getattr(self.metric, name)


def changed(metrics: Mapping[str, Metric], changes: Mapping[str, ChangedMetric]) -> dict[str, Metric]:
    """Return the metrics, some of them changed."""
    # a Protocol with class variables cannot describe a wrapper that forwards them
    return {text: cast("Metric", changes[text]) if text in changes else metric for text, metric in metrics.items()}


@dataclass(frozen=True)
class Repeated(ChangedMetric):
    """A metric whose plan runs once per draw, from draw `first` on."""

    draws: int
    first: int = 0

    def plan(self, sample: Sample) -> Plan[Outcome]:
        """Run the metric's plan once per draw and return the mean; see `outcome_of_draws`."""
        outcomes = yield from together([self._draw(sample, self.first + draw) for draw in range(self.draws)])
        return outcome_of_draws(outcomes)

    def _draw(self, sample: Sample, draw: int) -> Plan[Outcome]:
        plan = plan_of(self.metric, sample)
        try:
            step = next(plan)
            while True:
                shifted = [tuple(_shifted(question, draw) for question in group) for group in step]
                step = plan.send((yield tuple(shifted)))
        except StopIteration as stop:
            outcome: Outcome = stop.value
            return outcome
        except AskFailed as error:
            return outcome_of(error.failure)
        finally:
            plan.close()


@dataclass(frozen=True)
class Unmeasured(ChangedMetric):
    """A metric without a value in a run."""

    reason: str

    def plan(self, sample: Sample) -> Plan[Undefined]:
        """Return the reason for each sample."""
        del sample
        yield from ()
        return Undefined(self.reason)


@dataclass(frozen=True)
class Reworded(ChangedMetric):
    """A metric whose requests are in another package's words."""

    package: str
    """The package and its release."""


def reworded(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return the metrics, with each definition of an installed package in the package's words.

    Raises UsageError if a definition has no installed prompts, or if no metric has.
    """
    reword = plugin(Group.PARTS, "prompts")
    if reword is None:
        raise UsageError(f"--prompts installed needs {PUBLISHED}.")
    return changed(metrics, cast("Callable[[Mapping[str, Metric]], dict[str, Reworded]]", reword)(metrics))


def wordings_of(metrics: Mapping[str, Metric]) -> dict[str, str]:
    """Return the package and release that words each metric, without those in merilo's words."""
    inner = {text: each.metric if isinstance(each, Repeated) else each for text, each in metrics.items()}
    return {text: each.package for text, each in inner.items() if isinstance(each, Reworded)}


def repeated(metrics: Mapping[str, Metric], draws: Mapping[str, int], first: int = 0) -> dict[str, Metric]:
    """Return the metrics, those named in `draws` with that number of draws, from draw `first` on."""
    return changed(metrics, {text: Repeated(metrics[text], draws[text], first) for text in metrics if text in draws})


def unmeasured(metrics: Mapping[str, Metric], reasons: Mapping[str, str]) -> dict[str, Metric]:
    """Return the metrics, those with a reason as undefined for every sample."""
    return changed(metrics, {text: Unmeasured(metrics[text], reasons[text]) for text in metrics if text in reasons})


def reasons_of(metrics: Mapping[str, Metric]) -> dict[str, str]:
    """Return the reason of each metric that the run cannot measure."""
    return {text: metric.reason for text, metric in metrics.items() if isinstance(metric, Unmeasured)}


def draws_for(metrics: Mapping[str, Metric], roles: JudgeRoles, draws: int) -> dict[str, int]:
    """Return the number of draws of each metric that asks a judge whose answers may vary; empty for one draw.

    Raises UsageError if there is no such metric, since more draws would only repeat the same verdicts.
    """
    if draws == 1:
        return {}
    found = {
        text: draws
        for text, metric in metrics.items()
        for kind, role in product(metric.asks, metric.roles)
        if kind not in SPECIAL and (judge := roles.judge(kind, role)) is not None and not is_deterministic(judge)
    }
    if not found:
        name = roles.judges["judge"].name
        raise UsageError(
            f"--draws {draws} needs a judge whose verdicts can vary, and {name} always answers a question equally; use "
            "an LLM judge (--judge openai:MODEL), or leave --draws out."
            if any(kind not in SPECIAL for metric in metrics.values() for kind in metric.asks)
            else f"--draws {draws} needs a metric that asks a judge; leave it out for {', '.join(metrics)}."
        )
    return found


def draws_of(metrics: Mapping[str, Metric]) -> dict[str, int]:
    """Return the number of draws of each metric that has several."""
    return {text: metric.draws for text, metric in metrics.items() if isinstance(metric, Repeated) and metric.draws > 1}


def outcome_of_draws(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of a sample from those of its draws.

    A score is the mean over all draws, with the value of each. If a draw failed, the sample failed. If a draw has no
    value, the sample is undefined: a mean over the other draws would depend on which draws have a value. Evidence,
    counts and flags are those of the first draw.
    """
    failed = [each for each in outcomes if isinstance(each, Failed)]
    if failed:
        return failed[0]
    undefined = [each for each in outcomes if isinstance(each, Undefined)]
    if len(undefined) == len(outcomes):
        return undefined[0]
    if undefined:
        return Undefined(f"{len(undefined)} of {len(outcomes)} draws have no value: {undefined[0].reason}")
    scores = [each for each in outcomes if isinstance(each, Score)]
    if len(scores) < len(outcomes):  # a metric that returned something else; the plan run reports it
        return next(each for each in outcomes if not isinstance(each, Score))
    values = tuple(float(each.value) for each in scores)
    # statistics.mean is exact, so equal draws have their own value as mean, and the mean is within the range
    return replace(scores[0], value=mean(values), draws=values)


def _shifted(question: Question[Any], draw: int) -> Question[Any]:
    if type(question) in SPECIAL or not draw:
        return question
    if question.draw >= STRIDE:
        raise ValueError(f"a plan that is repeated may use draws below {STRIDE}, got {question.draw}")
    return question.at(question.draw + STRIDE * draw)
