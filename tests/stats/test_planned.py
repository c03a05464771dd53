"""Gates at planned looks: their looks and levels, and how often all looks together are wrong."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from merilo.stats.column import Column
from merilo.stats.gate import GateVerdict, gate_drop, gate_minimum
from merilo.stats.looks import look_levels
from merilo.stats.planned import Look, Looks, planned_drop, planned_minimum, planned_units

if TYPE_CHECKING:
    from collections.abc import Iterable

UNIT = (0.0, 1.0)
WORST = 0.055
"""Largest rate of wrong decisions that passes: 5 % and the error of the simulation."""


def column(values: object) -> Column:
    """A column of scores between 0 and 1."""
    return Column.of(np.asarray(values, dtype=float).tolist(), UNIT)


@pytest.mark.parametrize(
    ("count", "units"),
    [
        (5, (5,)),
        (49, (49,)),
        (50, (40, 50)),
        (300, (40, 80, 160, 300)),
        (320, (40, 80, 160, 320)),
        (2_000, (40, 80, 160, 320, 640, 1_280, 2_000)),
    ],
)
def test_looks_double_and_the_last_has_all(count: int, units: tuple[int, ...]) -> None:
    """No look is within a fifth of the end, where it would decide little."""
    assert planned_units(count) == units


def test_levels_are_those_of_the_spending_function() -> None:
    """Levels follow the fractions of clusters, and only looks that are reached are returned."""
    looks = Looks((40, 80, 100), (110, 205, 260))
    levels = look_levels((0.4, 0.8, 1.0), 0.95)
    assert looks.levels(0.95) == levels
    assert looks.reached(205, 0.95) == (Look(1, 110, levels[0]), Look(2, 205, levels[1]))
    assert looks.reached(109, 0.95) == ()


def test_the_first_look_that_decides_gives_the_decision() -> None:
    """Limits and level are those of that look, whatever comes later; no look is an error."""
    good, bad = [1.0] * 75 + [0.0] * 5, [0.0] * 80
    looks = Looks((40, 80, 160), (40, 80, 160)).reached(160, 0.95)
    found = planned_minimum(column(good + bad), 0.8, looks)
    assert (found.decision.verdict, found.look) == (GateVerdict.PASS, looks[0])
    at_look = gate_minimum(column(good[:40]), 0.8, level=looks[0].level)
    assert (found.decision.lower, found.decision.upper) == (at_look.lower, at_look.upper)
    assert found.decision.reason.endswith(f"which passes at look 1 (one-sided level {looks[0].level:.3f}).")
    with pytest.raises(ValueError, match="at least one look"):
        planned_minimum(column(good), 0.8, [])


def test_a_drop_is_decided_on_the_pairs_of_the_look() -> None:
    """Undecided at 40 pairs, failed at 80; the limits are those of `gate_drop` over 80 pairs."""
    base, new = [1.0] * 160, [0.0, 1.0, 1.0, 1.0] * 40
    looks = Looks((40, 80, 160), (40, 80, 160)).reached(160, 0.95)
    found = planned_drop(column(base), column(new), 0.13, looks)
    assert (found.decision.verdict, found.look.number) == (GateVerdict.FAIL, 2)
    at_look = gate_drop(column(base[:80]), column(new[:80]), 0.13, level=looks[1].level)
    assert (found.decision.lower, found.decision.upper) == (at_look.lower, at_look.upper)
    assert gate_drop(column(base[:40]), column(new[:40]), 0.13, level=looks[0].level).verdict is GateVerdict.CANNOT_TELL


@pytest.mark.parametrize(("loss", "gain"), [(0.15, 0.1), (0.05, 0.0), (0.3, 0.25)])
def test_drops_are_rarely_decided_wrongly(loss: float, gain: float) -> None:
    """If the true drop is the allowed one, each wrong verdict has a rate of at most 5 % over all looks."""
    looks = Looks(planned_units(320), planned_units(320)).reached(320, 0.95)
    steps = np.diff([0, *(look.size for look in looks)])
    source = np.random.default_rng(7)
    pairs = np.stack([source.multinomial(step, [loss, gain, 1 - loss - gain], 2_000) for step in steps], axis=1)
    paths = pairs.cumsum(axis=1)[:, :, :2].tolist()

    @cache
    def verdict(number: int, losses: int, gains: int) -> GateVerdict:
        look = looks[number]
        ties = look.size - losses - gains
        base, new = np.repeat([1, 0, 1], [losses, gains, ties]), np.repeat([0, 1, 1], [losses, gains, ties])
        return planned_drop(column(base), column(new), loss - gain, [look]).decision.verdict

    found = [_first_verdict(verdict(at, *counts) for at, counts in enumerate(path)) for path in paths]
    for wrong in (GateVerdict.PASS, GateVerdict.FAIL):
        assert found.count(wrong) / len(found) <= WORST


@pytest.mark.parametrize(("shape", "clusters", "seed"), [((3.0, 1.0), 160, 1), ((6.0, 2.0), 160, 2)])
def test_clusters_are_rarely_decided_wrongly(shape: tuple[float, float], clusters: int, seed: int) -> None:
    """The same for the mean of clusters of 1 to 5 samples that share a rate, at looks after whole clusters."""
    source = np.random.default_rng(seed)
    units = planned_units(clusters)
    found: list[GateVerdict] = []
    for _ in range(700):
        sizes = source.integers(1, 6, clusters)
        codes = np.repeat(np.arange(clusters), sizes)
        scores = source.random(len(codes)) < source.beta(*shape, clusters)[codes]
        ends = sizes.cumsum()
        looks = Looks(units, tuple(int(ends[each - 1]) for each in units)).reached(len(codes), 0.95)
        asked = shape[0] / sum(shape)
        found.append(planned_minimum(column(scores), asked, looks, clusters=codes.tolist()).decision.verdict)
    for wrong in (GateVerdict.PASS, GateVerdict.FAIL):
        assert found.count(wrong) / len(found) <= WORST


def _first_verdict(verdicts: Iterable[GateVerdict]) -> GateVerdict:
    """Return the first verdict that decides."""
    return next((each for each in verdicts if each is not GateVerdict.CANNOT_TELL), GateVerdict.CANNOT_TELL)
