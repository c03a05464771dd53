"""The cause of a failing answer from repeated draws in the arms of an experiment, for many failures together.

A failing question has three arms, by its form: controls, then one candidate or two. Each arm is drawn 4 times, then 8
times if the first look is open. A candidate is compared with its best control by Boschloo's exact one-sided test
(Statistica Neerlandica 24, 1970); the larger of two valid p-values is valid (Berger, Technometrics 24, 1982). The
p-value of a question is the smallest over candidates, times 1.25 if there are two, and looks, each divided by its
weight. A cause is named if it is at most 0.05 and Benjamini & Hochberg (JRSS B 57, 1995) reject it at 0.1 among all
failing questions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.stats.means import paired_test

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

LOOKS: Final = (4, 8)
"""Draws of an arm at the first and the second look."""
MOST: Final = 28
"""Maximum draws of a question."""
_WEIGHTS: Final = (0.4, 0.6)
_FDR, _CAP = 0.1, 0.05
_TWO: Final = 1.25
"""Factor for two candidates: the exact worst case of either, over all probabilities, is 1.23 for p up to 0.04."""
_FEWEST: Final = 2
"""Right answers in four draws that a candidate needs to continue."""
_DULL: Final = 1
"""Maximum right answers, in four and in eight draws, with which the evidence alone does not heal."""


class Arm(StrEnum):
    """A condition of the experiment."""

    UNCHANGED = "unchanged"
    PLACEBO = "placebo"
    FIRST = "evidence first"
    CHUNK = "chunk first"
    ONLY = "only evidence"
    NONE = "no context"


class Cause(StrEnum):
    """The verdict on a failing question."""

    UNSTABLE = "unstable"
    MISSING = "evidence missing"
    ORDER = "order"
    OTHERS = "other passages"
    WORDING = "wording of the chunk"
    ELSEWHERE = "not retrieval"
    NOT_SHOWN = "not shown"
    RIGHT = "right"


NO_CAUSES: Final = frozenset({Cause.UNSTABLE, Cause.NOT_SHOWN, Cause.RIGHT})
"""The verdicts that name no cause."""


class Form(StrEnum):
    """What was retrieved of the evidence of a question."""

    MISSING = "missing"
    WHOLE = "whole"
    CUT = "cut"


ARMS: Final[Mapping[Form, tuple[Arm, Arm, Arm]]] = {
    Form.MISSING: (Arm.UNCHANGED, Arm.PLACEBO, Arm.FIRST),
    Form.WHOLE: (Arm.UNCHANGED, Arm.FIRST, Arm.ONLY),
    Form.CUT: (Arm.UNCHANGED, Arm.CHUNK, Arm.FIRST),
}
_CAUSES: Final = {Form.MISSING: Cause.MISSING, Form.WHOLE: Cause.OTHERS, Form.CUT: Cause.WORDING}


@dataclass(frozen=True, slots=True)
class Case:
    """The draws of one failing question: right or wrong, by arm, in the order of asking."""

    form: Form
    right: Mapping[Arm, Sequence[bool]] = field(default_factory=dict[Arm, "Sequence[bool]"])
    usable: bool = True
    """False if a draw failed, or if draws are copies of one another: nothing is shown."""
    idle: frozenset[Arm] = frozenset()
    """The arms that cannot heal, since they have the contexts of a control. They are not candidates."""

    def drawn(self, arm: Arm) -> int:
        """Return the number of draws of an arm."""
        return len(self.right.get(arm, ()))

    def counts(self, draws: int) -> tuple[int, ...] | None:
        """Return the right answers of the three arms among the first draws, 0 for an idle one; None if some lack."""
        arms = ARMS[self.form]
        lacks = any(arm not in self.idle and self.drawn(arm) < draws for arm in arms)
        return None if lacks else tuple(sum(self.right.get(arm, ())[:draws]) for arm in arms)

    @property
    def unstable(self) -> bool:
        """True if the unchanged application is right in half of the draws or more, at a look."""
        right = self.right.get(Arm.UNCHANGED, ())
        return any(2 * sum(right[:look]) >= look for look in LOOKS)

    @property
    def candidates(self) -> tuple[bool, bool]:
        """Which of the two arms after the first may heal."""
        one, two = (arm is not Arm.PLACEBO and arm not in self.idle for arm in ARMS[self.form][1:])
        return one, two

    def ahead(self) -> tuple[bool, bool]:
        """Return which candidates may still be shown after the first look."""
        control, middle, last = self.counts(LOOKS[0]) or (0, 0, 0)
        one, two = self.candidates
        return one and middle > control and middle >= _FEWEST, two and last > max(control, middle) and last >= _FEWEST

    @property
    def may_be_dull(self) -> bool:
        """True if the last arm heals so seldom that the evidence alone may not heal either."""
        counts = self.counts(LOOKS[0])
        return self.usable and not self.unstable and counts is not None and not self.ahead()[1] and counts[2] <= _DULL

    def p_values(self, looks: int) -> tuple[float, float]:
        """Return the p-values of both candidates after one look or two; 1 for a candidate that is not there."""
        if self.unstable or not self.usable:
            return 1.0, 1.0
        best, going = [1.0, 1.0], self.candidates
        factor = _TWO if all(going) else 1.0
        for draws, weight in list(zip(LOOKS, _WEIGHTS, strict=True))[:looks]:
            arms = ARMS[self.form]
            counts = [sum(self.right.get(arm, ())[:draws]) for arm in arms]
            pairs = (counts[1], counts[0]), (counts[2], max(counts[:2]))
            for at, pair in enumerate(pairs):
                if going[at] and not _lacking(self, arms[: at + 2], draws):
                    best[at] = min(best[at], factor * float(exact_table(draws)[pair]) / weight)
            going = self.ahead()
        return best[0], best[1]


class Verdict(NamedTuple):
    """The cause of one failure, and the p-value of the question, in [0, 1]."""

    cause: Cause
    p: float


def wanted(cases: Sequence[Case]) -> list[dict[Arm, int]]:
    """Return, for each question, the arms that lack draws and the number of draws that they should have.

    Ask them, add them to the cases and call again, until all are empty.
    """
    if any(each.counts(LOOKS[0]) is None for each in cases if each.usable):
        return [_lacking(each, ARMS[each.form], LOOKS[0]) for each in cases]
    stopped = _rejected([min(each.p_values(1)) for each in cases])
    found: list[dict[Arm, int]] = []
    for each, stop in zip(cases, stopped, strict=True):
        one, two = (False, False) if stop or each.unstable else each.ahead()
        found.append(_lacking(each, ARMS[each.form][: 3 if two else 2 if one else 0], LOOKS[1]))
    if any(found):
        return found
    found = []
    for case, verdict in zip(cases, verdicts(cases), strict=True):
        dull = verdict.cause is Cause.NOT_SHOWN and case.may_be_dull
        found.append({Arm.ONLY: LOOKS[1]} if dull and case.drawn(Arm.ONLY) < LOOKS[1] else {})
    return found


def verdicts(cases: Sequence[Case]) -> list[Verdict]:
    """Return the verdict on each of the questions, which are judged together."""
    values = [each.p_values(2) for each in cases]
    limits = _rejected([min(each) for each in values])
    return [Verdict(_cause(*each), min(each[1])) for each in zip(cases, values, limits, strict=True)]


def _cause(case: Case, p: tuple[float, float], limit: float) -> Cause:
    if case.usable and case.unstable:
        return Cause.UNSTABLE
    if limit and min(p) <= limit:
        return Cause.ORDER if p[0] <= limit else _CAUSES[case.form]
    only = case.right.get(Arm.ONLY, ())
    if case.may_be_dull and len(only) >= LOOKS[1] and sum(only[: LOOKS[1]]) <= _DULL:
        return Cause.ELSEWHERE
    return Cause.NOT_SHOWN


def _lacking(case: Case, arms: Sequence[Arm], draws: int) -> dict[Arm, int]:
    return {arm: draws for arm in arms if case.usable and arm not in case.idle and case.drawn(arm) < draws}


def _rejected(p_values: Sequence[float]) -> list[float]:
    """Return for each p-value the limit if Benjamini & Hochberg reject it, otherwise 0; no limit is above the cap."""
    ranked = sorted(p_values)
    steps = [_FDR * (rank + 1) / len(ranked) for rank in range(len(ranked))]
    limit = min(max((step for p, step in zip(ranked, steps, strict=True) if p <= step + 1e-12), default=0.0), _CAP)
    return [limit + 1e-12 if limit and p <= limit + 1e-12 else 0.0 for p in p_values]


@lru_cache(maxsize=4)
def exact_table(draws: int) -> NDArray[np.float64]:
    """Return p[a, b], in (0, 1]: a of `draws` right in the candidate against b in the control, one-sided.

    Boschloo's test: the largest probability, over all common chances to be right, of a Fisher p-value as small.
    """
    import numpy as np

    def fisher(a: int, b: int) -> float:
        ways = sum(comb(draws, k) * comb(draws, a + b - k) for k in range(a, min(draws, a + b) + 1))
        return ways / comb(2 * draws, a + b)

    found = np.array([[fisher(a, b) for b in range(draws + 1)] for a in range(draws + 1)])
    chance, k = np.linspace(0.001, 0.999, 999)[:, None], np.arange(draws + 1)
    mass = np.array([comb(draws, each) for each in k]) * chance**k * (1 - chance) ** (draws - k)
    worst = [[np.einsum("ga,ab,gb->g", mass, (found <= p + 1e-12) * 1.0, mass).max() for p in row] for row in found]
    return np.minimum(1.0, np.array(worst))


def power(questions: int, gain: float = 0.14, changed: float = 0.2) -> float:
    """Return how often a true gain of right answers is shown among five effects, in 100 simulated studies.

    `changed`: the fraction of answers that differ between the arms. Each effect has a fifth of the error (Holm's first
    step).
    """
    import numpy as np

    rng, chances = np.random.default_rng(0), [(changed - gain) / 2, 1 - changed, (changed + gain) / 2]
    drawn = (rng.choice([-1.0, 0.0, 1.0], questions, p=chances) for _ in range(100))
    tests = [paired_test(each, (-1.0, 1.0), level=0.99).interval.ends for each in drawn]
    return sum(each is not None and each[0] > 0 for each in tests) / len(tests)
