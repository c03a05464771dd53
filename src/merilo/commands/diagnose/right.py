"""The metric of a diagnosis: whether an answer is right, by the judge or by a function of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.errors import UsageError
from merilo.metrics.answer_metrics import AnswerCorrectness
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.plugins import object_in_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

RIGHT: Final = "right"
_LEAST: Final = 0.5


class Right(AnswerCorrectness):
    """1 if `answer_correctness` is at least 0.5, otherwise 0; without evidence, so that people label the value."""

    name: ClassVar[str] = RIGHT
    version: ClassVar[int] = 1
    decides: ClassVar[tuple[Callable[[str, Sample], object], ...]] = ()
    """The user's function, in place of the judge."""

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        for function in self.decides:
            return Score(float(bool(function(sample.require("response"), sample))))
        found = yield from super().plan(sample)
        return Score(float(found.value >= _LEAST)) if isinstance(found, Score) else found

    def check(self, sample: Sample) -> None:
        """Judge an answer by the user's function, if there is one. Raises UsageError if it cannot."""
        for function in self.decides:
            try:
                found: Any = function(sample.require("response"), sample)  # Any: what the user's function returns
            except Exception as error:
                raise UsageError(f"--right raised {type(error).__name__}: {error}") from error
            if found is None or not hasattr(found, "__bool__"):  # a text, a list or a coroutine has none
                raise UsageError(f"--right must return True, False or a number, got {type(found).__name__}.")


def right_by(named: object) -> Right:
    """Return the metric of a function, or of one in a file; None: the judge decides. Raises UsageError."""
    if named is None:
        return Right()
    function = object_in_file(named) if isinstance(named, str) else named
    if not callable(function):
        raise UsageError(f"right must be a function of an answer and its sample, got {type(function).__name__}.")
    # A class, since a parameter of a metric is a text or a number.
    own: dict[str, object] = {"decides": (function,), "asks": Kinds(), "needs": frozenset({"response"})}
    made: type[Right] = type("RightByFunction", (Right,), own)
    return made()
