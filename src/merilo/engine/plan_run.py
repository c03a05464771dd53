"""A plan run: advances a metric's plan for one sample and turns its end into an outcome."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, cast

from merilo.data.sample import PIPELINE_ERROR, UNREADABLE, Sample
from merilo.errors import MissingField
from merilo.judging.ask import AskFailed
from merilo.judging.kinds.responses import CompletionVerdict
from merilo.judging.registry import ANSWERING
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Evidence, Failed, Metric, Outcome, Score, Undefined, outcome_of, plan_of
from merilo.runs.outcomes import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from merilo.judging.ask import Answer, Plan, Step

_log = logging.getLogger("merilo")
_ROUNDING = 1e-9
_WHOLE = {int, bool, type(None)}
_MAX_EVIDENCE = 64 * 2**20
"""Maximum characters of replies in the evidence of one score, where each piece repeats the reply that it is from."""


@dataclass(slots=True)
class PlanRun:
    """A run of a metric's plan for one sample. `step` waits for answers; it is None once there is an outcome."""

    metric: Metric
    text: str
    sample: Sample
    step: Step | None = None
    _outcome: Outcome | None = None
    _plan: Plan[Score | Undefined] | None = None
    _trail: list[bytes] = field(default_factory=list)
    _keys: dict[int, bytes] = field(default_factory=dict)
    _held: list[Answer] = field(default_factory=list)  # keeps the verdicts alive, so that the ids in _keys stay valid
    _reject: Callable[[Sequence[bytes]], None] | None = None

    def start(self, reject: Callable[[Sequence[bytes]], None] | None = None) -> PlanRun:
        """Run the plan up to its first step; return itself. A sample that the pipeline failed on fails at once.

        `reject` receives the keys of all answers if the plan fails although it got them: a reply was unreadable.
        """
        self._reject = reject
        error = self.sample.metadata.get(PIPELINE_ERROR)
        unreadable = self.sample.metadata.get(UNREADABLE)
        if isinstance(error, str):
            self._end(Failed(Failure(FailureKind.PIPELINE, error)))
        elif isinstance(unreadable, str) and unreadable in self.metric.needs:
            self._end(Failed(Failure(FailureKind.PIPELINE, f"unreadable {unreadable}: JSON or a printed object")))
        else:
            self._advance(None)
        return self

    def send(self, answers: Sequence[tuple[bytes, Answer]]) -> None:
        """Pass the answers to the current step to the plan, with their keys, and run it to its next step."""
        keys, given = [key for key, _ in answers], tuple([answer for _, answer in answers])
        self._trail += keys
        self._held += given
        self._keys.update(zip(map(id, given), keys, strict=True))
        self._advance(given)

    @property
    def done(self) -> bool:
        """True if the plan has an outcome; False also before it is started."""
        return self._outcome is not None

    def result(self) -> Result:
        """Return the outcome with its trail. Raises RuntimeError while `step` is not None."""
        if self._outcome is None:
            raise RuntimeError(f"The plan of {self.text} still waits for answers.")
        return Result(self.sample.id, self.text, self._outcome, tuple(self._trail), self._keys)

    def close(self) -> None:
        """Abandon the plan."""
        if self._plan is not None:
            self._plan.close()

    def _advance(self, answers: tuple[Answer, ...] | None) -> None:
        try:
            if answers is None or self._plan is None:
                self._plan = plan_of(self.metric, self.sample)
                self.step = next(self._plan)
            else:
                self.step = self._plan.send(answers)
        except StopIteration as stop:
            self._end(stop.value)
        except MissingField as error:
            self._end(Undefined(f"the sample has no {error.field}"))
        except AskFailed as error:
            self._end(outcome_of(error.failure))
        except Exception as error:  # noqa: BLE001  a bug in a metric must not end the run
            self.broke(error)

    def broke(self, error: Exception) -> None:
        """End the plan with a failure because of its own bug; the traceback is logged."""
        _log.error("%s raised an error on sample %r", self.text, self.sample.id, exc_info=error)
        self._end(Failed(Failure(FailureKind.BROKEN, f"{self.text} raised {type(error).__name__}: {error}")))

    def _end(self, outcome: object) -> None:
        fault = _fault(outcome, self.metric.range)
        if fault is not None:
            outcome = Failed(Failure(FailureKind.BROKEN, f"{self.text} returned {fault}."))
        elif (
            isinstance(outcome, Score)
            and sum(
                [len(each.verdict.text) for each in outcome.evidence if isinstance(each.verdict, CompletionVerdict)]
            )
            > _MAX_EVIDENCE
        ):
            why = f"The replies are too long and list too many items: {len(outcome.evidence):,} pieces of evidence."
            outcome = Failed(Failure(FailureKind.UNREADABLE, why))
        self._outcome = cast("Outcome", outcome)  # a fault would have been found
        self.step = None
        if self._reject is not None and isinstance(outcome, Failed) and outcome.error not in self._held:
            self._reject(self._trail)


def next_step(plan: Plan[Score | Undefined], answers: Sequence[Answer] | None) -> Step | None:
    """Return the next step of a plan that is run with likely answers; None at its end or if it raises an error.

    Such a plan only shows which questions the plan run will ask; that one reports the outcome and all errors.
    """
    try:
        return next(plan) if answers is None else plan.send(tuple(answers))
    except Exception:  # noqa: BLE001  the end of the plan, and whatever else it raises
        return None


def _fault(outcome: object, span: tuple[float, float]) -> str | None:
    """Return the problem of a plan's return value as a phrase; None if it is a valid outcome."""
    if isinstance(outcome, Undefined | Failed):
        return None
    if not isinstance(outcome, Score):
        return f"no outcome but a {type(outcome).__name__}"
    values: tuple[object, ...] = (outcome.value, *outcome.draws)
    for value in values:
        if (
            not isinstance(value, int | float)
            or not isfinite(value)
            or not span[0] - _ROUNDING <= value <= span[1] + _ROUNDING
        ):
            return f"a score of {value!r}, outside its range {span}"
    counts: dict[str, object] = dict(outcome.counts)
    kinds = {*map(type, counts.values())}
    if not (kinds <= _WHOLE or all(count is None or isinstance(count, int) for count in counts.values())):
        return "counts that are not whole numbers"
    pieces: tuple[object, ...] = outcome.evidence
    if not all(isinstance(piece, Evidence) and type(piece.verdict) in ANSWERING for piece in pieces):
        return "evidence without a verdict"
    return None
