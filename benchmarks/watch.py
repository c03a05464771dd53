"""False alarms, delays and verdicts of `merilo watch`, by simulation through the shipped classes.

    python benchmarks/watch.py            about 15 minutes
    python benchmarks/watch.py --quick    a tenth of the streams, with wider limits

100 judged units a day; 20 days are learned, then a year is watched. The seed differs from those used while the code was
written.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from figures import report

from merilo.commands.blocking import run_blocking
from merilo.commands.evaluate.options import Options
from merilo.commands.watch.evidence import DAY_S, SCORED, Evidence, JudgedUnit, State
from merilo.commands.watch.journal import Journal
from merilo.commands.watch.look import Watcher
from merilo.commands.watch.settings import Watch
from merilo.stats.drift import Anchor, changed_p, exchange_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SEED = 590_000
UNITS, LEARNED, YEAR = 100, 20, 365
"""Judged units a day, and days."""
GRID = np.linspace(0, 1, 5)
_CHOOSE = np.array([1, 4, 6, 4, 1])
Array = np.ndarray[Any, np.dtype[np.float64]]


class Check:
    """The figures with their limits."""

    def __init__(self, seed: int, *, quick: bool) -> None:
        self.seed, self.source, self.quick, self.failed = seed, np.random.default_rng(seed), quick, 0

    def streams(self, many: int) -> int:
        """Return the number of streams of a table."""
        return max(many // 10, 10) if self.quick else many

    def rate(self, name: str, found: float, *, at_most: float | None = None, at_least: float | None = None) -> None:
        """Report a figure. With few streams a rate may be off its limit by chance."""
        slack = 0.1 if self.quick else 0.0
        at_most, at_least = (
            None if limit is None else limit + sign * slack for limit, sign in ((at_most, 1), (at_least, -1))
        )
        report(name, round(found, 4), at_most=at_most, at_least=at_least)
        self.failed += (at_most is not None and found > at_most) or (at_least is not None and found < at_least)


# -- streams -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of traffic: the means on a day from -LEARNED (four numbers: parts of the day), and what fails."""

    mean: Callable[[Stream, int], Any] = lambda _, __: 0.8  # Any: numbers or arrays
    size: Callable[[int], int] = lambda _: UNITS
    fails: Callable[[int], tuple[float, float]] = lambda _: (0.0, 0.0)
    """Fractions of the scores up to 0.25, and of all, that fail."""
    talks: bool = False
    """True if five turns share their quality, and are counted singly."""
    alarms: float | None = 0.05
    """The largest fraction of years with an alarm; None if the traffic changes, or is known not to hold."""


def weekly(drop: float, others: tuple[int, ...] = ()) -> Callable[[Stream, int], Any]:
    """Weekends, and other days, are worse."""
    return lambda s, d: 0.8 + drop * 2 / 7 - drop * (((d + s.offset) % 7 >= 5) | (d in others))


def wander(deviation: float, hold: int = 1, correlation: float = 0.0) -> Callable[[Stream, int], Any]:
    """The mean of days wanders."""

    def mean(s: Stream, d: int) -> Any:
        if (d + LEARNED) % hold == 0:
            new = s.source.normal(0, deviation, s.many)
            s.state = correlation * s.state + sqrt(1 - correlation**2) * new
        return np.clip(0.8 + s.state, 0.05, 0.99)

    return mean


HOLIDAYS = (*(day for day in range(YEAR) if day % 33 == 20), 54, 120)
KINDS: Mapping[str, Kind] = {
    "constant": Kind(),
    "weekends -.06": Kind(weekly(0.06)),
    "weekends -.15": Kind(weekly(0.15)),
    "weekends -.15 and 13 holidays like them": Kind(weekly(0.15, HOLIDAYS)),
    "daily cycle of .10": Kind(lambda _, __: 0.8 + 0.1 * np.sin(np.arange(4) * np.pi / 2 + 1)),
    "30 easier days (+.06), then as before": Kind(lambda _, d: 0.8 + 0.06 * (20 <= d < 50)),
    "rises by .06 in a year": Kind(lambda _, d: 0.8 + 0.06 * max(d, 0) / YEAR),
    "days wander, deviation .03": Kind(wander(0.03)),
    "wander of .05, two days at a time": Kind(wander(0.05, hold=2)),
    "traffic grows fourfold, days wander by .02": Kind(wander(0.02), lambda d: int(UNITS * 4 ** (max(d, 0) / YEAR))),
    "conversations of 5 turns, counted singly": Kind(talks=True),
    "the same with weekends -.06": Kind(weekly(0.06), talks=True),
    "40 % of low answers fail while learning": Kind(fails=lambda d: (0.4 * (d < 0), 0)),
    "10 % of low answers fail while learning": Kind(fails=lambda d: (0.1 * (d < 0), 0)),
    "10 % of low answers always fail": Kind(fails=lambda _: (0.1, 0)),
    "1 % always fail": Kind(fails=lambda _: (0, 0.01)),
    "8 % fail on one day a month": Kind(fails=lambda d: (0, 0.08 * (d % 30 == 7))),
    "20 units a day, mean .95": Kind(lambda _, __: 0.95, lambda _: 20),
    "mean .998": Kind(lambda _, __: 0.998),
    "mean .06": Kind(lambda _, __: 0.06),
    "days wander, deviation .03, autocorrelation .7": Kind(wander(0.03, correlation=0.7), alarms=None),
    "change: nine days of -.06": Kind(lambda _, d: 0.8 - 0.06 * (150 <= d < 159), alarms=None),
    "change: 14 days of -.09": Kind(lambda _, d: 0.8 - 0.09 * (30 <= d < 44), alarms=None),
    "change: falls by .10 in a year": Kind(lambda _, d: 0.8 - 0.10 * max(d, 0) / YEAR, alarms=None),
}


def grades(mean: Any, kind: str) -> Array:
    """Return the probabilities of five grades; graded: beta-binomial with deviation .26 at .8; binomial: turns."""
    if kind == "binary":
        return np.stack([1 - mean, 0 * mean, 0 * mean, 0 * mean, mean], -1)
    if kind == "binomial":
        return np.stack([count * mean**k * (1 - mean) ** (4 - k) for k, count in enumerate(_CHOOSE)], -1)
    rise = [[np.prod([x + i for i in range(k)], axis=0) if k else np.ones_like(x) for k in range(5)]
            for x in (3 * mean, 3 - 3 * mean)]  # fmt: skip
    return np.stack([count * rise[0][k] * rise[1][4 - k] for k, count in enumerate(_CHOOSE)], -1) / 360


class Stream:
    """Many streams of a kind; `drop` from day `at`."""

    def __init__(self, kind: Kind, scale: str, many: int, seed: int, *, drop: float = 0.0, at: int = 0) -> None:
        self.kind, self.scale, self.many, self.drop, self.at = kind, scale, many, drop, at
        self.source = np.random.default_rng(seed)
        self.offset, self.state = self.source.integers(0, 7, many), np.zeros(many)

    def day(self, d: int, more: Any = 1) -> tuple[Array, Array]:
        """Return the counts of the scored units by grade, and of the failed ones. `more`: factor of the rate."""
        size = self.kind.size(d) * np.broadcast_to(more, self.many)
        mean = np.asarray(self.kind.mean(self, d), float)
        parts = mean[None, :] if mean.shape == (4,) else np.broadcast_to(mean, self.many)[:, None]
        parts = np.clip(np.broadcast_to(parts, (self.many, parts.shape[1])) - self.drop * (d >= self.at), 0, 1)
        if self.kind.talks:
            quality = self.source.beta(2 * parts[:, :1], 2 * (1 - parts[:, :1]), (self.many, 20 * int(np.max(more))))
            p = grades(quality, "binary" if self.scale == "binary" else "binomial")
            turns = self.source.multinomial(5, p / p.sum(-1, keepdims=True))
            counts = (turns * (np.arange(quality.shape[1]) < size[:, None] // 5)[:, :, None]).sum(1)
        else:
            p = grades(parts, self.scale).mean(1)
            counts = self.source.multinomial(size, p / p.sum(-1, keepdims=True))
        low, each = self.kind.fails(d)
        failed = self.source.binomial(counts, np.array([low + each] * 2 + [each] * 3))
        return (counts - failed).astype(float), failed.sum(1).astype(float)


def units_of(counts: Array, failed: float) -> list[JudgedUnit]:
    """Return the units of a day."""
    scored = [
        {"m": float(score), SCORED: 1.0} for score, count in zip(GRID, counts, strict=True) for _ in range(int(count))
    ]
    every = [JudgedUnit(0.0, "", each, frozenset()) for each in scored]
    return every + [JudgedUnit(0.0, "", {SCORED: 0.0}, frozenset({"m"}))] * int(failed)


def watched(stream: Stream, days: int = YEAR, learned: int = LEARNED, closer: int = 1) -> tuple[Array, Array]:
    """Return the day of the first alarm of each stream (infinity: none), and if it is one of failures."""
    reference = [stream.day(d) for d in range(-learned, 0)]
    found: list[Evidence] = []
    for row in range(stream.many):
        first = int(stream.offset[row]) + 7 * learned  # so that weekdays agree with those of the stream
        units = [each._replace(at=DAY_S * (first + d)) for d, (counts, failed) in enumerate(reference, -learned)
                 for each in units_of(counts[row], failed[row])]  # fmt: skip
        found.append(Evidence.of(units, None, 0.05, asks_anchors=False, can_blame=True, started=DAY_S * (first - 1)))
    for evidence in found:  # the first day has its weight before its units
        evidence.metrics["m"].start(0, 1 / YEAR)
        evidence.losses.close(1 / YEAR)
    alarm, lost, more = np.full(stream.many, inf), np.zeros(stream.many), np.ones(stream.many, int)
    for d in range(days):
        counts, failed = stream.day(d, more)
        for row, evidence in enumerate(found):
            if alarm[row] < inf:
                continue
            add_day(evidence, counts[row], float(failed[row]), int(stream.offset[row]) + 7 * learned + d)
            more[row] = closer if evidence.value >= 1 else 1
            if evidence.alarms:
                alarm[row], lost[row] = d + 1, evidence.loses
    return alarm, lost


def add_day(evidence: Evidence, counts: Array, failed: float, day: int) -> None:
    """Add the units of a day and close it, as `Evidence.add` does it for units; `same_as_units` compares both."""
    metric, total = evidence.metrics["m"], float(counts.sum())
    metric.units.start(metric.weight)  # at once; units get it bit by bit
    for score, count in zip(GRID, [*counts[:-1], counts[-1] + failed], strict=True):
        factors = ((1 + stake * (metric.line - score)) ** count for stake in metric.units.stakes)
        metric.units.evidence = [min(a * b, 1e300) for a, b in zip(metric.units.evidence, factors, strict=True)]
    metric.days[""].day = [total + failed, failed, float(counts @ GRID)]
    evidence.losses.day = [total + failed, failed]
    metric.start(day, 1 / YEAR)
    evidence.losses.close(1 / YEAR)
    evidence.started = DAY_S * (day + 1)


def same_as_units(seed: int) -> float:
    """Return the largest relative difference of the evidence of days, given as units or as counts."""
    stream = Stream(KINDS["1 % always fail"], "graded", 1, seed, drop=0.05)
    reference = [
        each._replace(at=DAY_S * d) for d in range(LEARNED) for each in units_of(*(x[0] for x in stream.day(d)))
    ]
    more = {"asks_anchors": False, "can_blame": True, "started": DAY_S * (LEARNED - 1)}
    one, other = (Evidence.of(reference, None, 0.05, **more) for _ in range(2))
    found = 0.0
    for d in range(LEARNED, LEARNED + 40):
        counts, failed = (each[0] for each in stream.day(d))
        one.started = DAY_S * d
        one.add(DAY_S * d, 0.0, units_of(counts, failed))
        one.add(DAY_S * (d + 1), 1 / YEAR, [])
        add_day(other, counts, failed, d)
        values = [each.metrics["m"].days[""].value for each in (one, other)]
        found = max(found, abs(values[0] / values[1] - 1), abs(one.losses.evidence / other.losses.evidence - 1))
    return found


def streams(check: Check) -> None:
    """Years with an alarm without a change."""
    check.rate("days and units: relative difference", same_as_units(check.seed), at_most=1e-9)
    many = check.streams(400)
    for name, kind in KINDS.items():
        for scale in ("binary", "graded"):
            alarm, _ = watched(Stream(kind, scale, many, check.seed))
            check.rate(f"years with an alarm, {name}, {scale}", float(np.isfinite(alarm).mean()), at_most=kind.alarms)


def short(check: Check) -> None:
    """Years with an alarm after few learned days."""
    for learned in (1, 7, 10, 14, 28):
        for name in ("constant", "weekends -.06", "weekends -.15", "days wander, deviation .03"):
            alarm, _ = watched(Stream(KINDS[name], "graded", check.streams(300), check.seed), learned=learned)
            check.rate(
                f"years with an alarm, {learned} days learned, {name}", float(np.isfinite(alarm).mean()), at_most=0.05
            )


# -- delays --------------------------------------------------------------------------------------------

LONGEST = 90
FOUND = {("binary", 0.1): 7, ("graded", 0.1): 4, ("binary", 0.5): 2, ("graded", 0.5): 1}
"""Scale, drop → the most days of the median delay without weekends and wander."""


def delays(check: Check) -> None:
    """Days until a drop is found, with the closer look of the command."""
    kinds = ("constant", "weekends -.06", "weekends -.15", "days wander, deviation .03")
    for drop, names in ((0.5, kinds[:1]), (0.1, kinds), (0.05, kinds[:2])):
        for name in names:
            for scale in ("binary", "graded"):
                for at in (0, 100):
                    _delay(check, f"-{drop} on day {at}, {name}, {scale}", KINDS[name], scale, drop=drop, at=at)
    for scale in ("binary", "graded"):
        kind = Kind(fails=lambda d: (0.4 * (d < 0), 0))
        _delay(check, f"-0.1 on day 0, 40 % of low answers fail while learning, {scale}", kind, scale, drop=0.1, at=0)
        kind = Kind(fails=lambda d: (0.45 * (d >= 0), 0))
        lost = _delay(check, f"-0.1 on day 0, 45 % of low answers fail since, {scale}", kind, scale, drop=0.1, at=0)
        check.rate(f"... alarms of failures, {scale}", lost)


def _delay(check: Check, name: str, kind: Kind, scale: str, *, drop: float, at: int) -> float:
    alarm, lost = watched(Stream(kind, scale, check.streams(200), check.seed, drop=drop, at=at), at + LONGEST, closer=5)
    found = np.minimum(alarm[alarm > at] - at, LONGEST)
    for place, quantile in (("median", 0.5), ("90 %", 0.9)):
        limit = FOUND.get((scale, drop)) if kind is KINDS["constant"] and place == "median" else None
        days = float(np.quantile(found, quantile, method="higher"))
        report(f"days until found, {name}: {place}", days, at_most=limit)
        check.failed += limit is not None and days > limit
    return float(lost.mean())


# -- topics and questions ------------------------------------------------------------------------------

TOPICS = {"easy": 0.95, "usual": 0.8, "hard": 0.65}


def topics(check: Check) -> None:
    """Three topics with `--by`: the mix moves, or each topic becomes worse."""
    many = check.streams(100)
    for name, mix, drop in (
        ("mix moves", [1, 1, 6], 0.0),
        ("each falls by .10", [1, 1, 1], 0.1),
        ("same", [1, 1, 1], 0.0),
    ):
        counts = Counter(_by_topic(check.source, mix, drop) for _ in range(many))
        for state in (State.SYSTEM, State.QUESTIONS, State.CANNOT_TELL):
            limit = 0.05 if (state == State.SYSTEM) == (name != "each falls by .10") else None
            check.rate(f"{name}: {state}", counts[state] / many, at_most=limit)


def _by_topic(source: np.random.Generator, mix: list[int], drop: float) -> str:
    def day(at: int, own: list[int], less: float) -> list[JudgedUnit]:
        names = source.choice([*TOPICS], UNITS, p=np.array(own) / sum(own))
        hits = source.random(UNITS) < np.array([TOPICS[each] for each in names]) - less
        rows = zip(names.tolist(), hits.tolist(), strict=True)
        return [JudgedUnit(at * DAY_S, each, {"m": float(hit), SCORED: 1.0}, frozenset()) for each, hit in rows]

    reference = [each for at in range(LEARNED) for each in day(at, [1, 1, 1], 0.0)]
    more = {"asks_anchors": False, "can_blame": True, "started": DAY_S * (LEARNED - 1)}
    evidence, traffic = Evidence.of(reference, None, 0.05, **more), list[JudgedUnit]()
    for at in range(LEARNED, LEARNED + 120):
        units = day(at, mix if at >= LEARNED + 30 else [1, 1, 1], drop if at >= LEARNED + 30 else 0.0)
        evidence.add(at * DAY_S, evidence.weight_at(at * DAY_S), units)
        traffic += units
        if evidence.alarms:
            return str(evidence.conclusion(traffic)["state"])
    return ""


THINGS = (
    "invoice backup password project report account server licence export calendar contract printer holiday refund"
).split()
ASKED = (
    "How do I change my {}?",
    "Where is the {} kept?",
    "Why was the {} deleted?",
    "Who may read the {}?",
    "When is the {} due?",
)


def questions(check: Check) -> None:
    """Studies in which the questions are said to have changed, three days after 20; means of 50 questions a day."""
    from merilo.judges.blended import BlendedModel
    from merilo.judges.embedded_provider import vectors_of

    texts = [form.format(thing) for thing in THINGS for form in ASKED]
    vectors = np.array(vectors_of(BlendedModel.load(), texts)).reshape(len(THINGS), len(ASKED), -1)
    many = check.streams(300)
    for new, limits in ((0.0, (None, 0.08)), (0.15, (None, None)), (0.3, (0.95, None))):
        changed = 0
        for _ in range(many):
            groups = []
            for day in range(LEARNED + 3):
                mix = check.source.dirichlet(np.full(len(THINGS) - 3, 20.0))
                others = np.full(3, new / 3 if day >= LEARNED else 0.0)
                things = check.source.choice(len(THINGS), 50, p=np.concatenate([others, mix * (1 - others.sum())]))
                groups.append(vectors[things, check.source.integers(0, len(ASKED), 50)].mean(axis=0))
            changed += changed_p(np.array(groups), 3) < 0.05
        check.rate(
            f"questions said to have changed, {new:.0%} new", changed / many, at_least=limits[0], at_most=limits[1]
        )


# -- who changed ---------------------------------------------------------------------------------------

CHANGE, DAYS, WEEK = 30, 150, 7
WEEKLY, AT_ALARM, MOST_AT_ALARM = 0.5 / 53, 0.05, 10
"""Weights of the passes; they sum to 1 in a year."""


@dataclass(frozen=True)
class Case:
    """A change of the system and of the judge, as changes of the mean of 0/1 scores."""

    system: float = 0.0
    judge: float = 0.0
    noise: float = 0.0
    """Fraction of verdicts that vary between draws."""
    anchors: int = 200


def verdicts(source: np.random.Generator, many: int, case: Case) -> dict[str, float]:
    """Return the rate of each verdict."""
    found: dict[str, float] = dict.fromkeys((State.NOTHING, State.SYSTEM, State.JUDGE, State.CANNOT_TELL), 0.0)
    for _ in range(many):
        found[_verdict(source, case)] += 1 / many
    return found


def _verdict(source: np.random.Generator, case: Case) -> State:
    def day(at: int, mean: float) -> list[JudgedUnit]:
        hits = (source.random(UNITS) < mean).tolist()
        return [JudgedUnit(at * DAY_S, "", {"m": float(hit), SCORED: 1.0}, frozenset()) for hit in hits]

    reference = [each for at in range(-50, 0) for each in day(at, 0.8)]
    evidence = Evidence.of(reference, None, 0.05, asks_anchors=True, can_blame=True, started=-DAY_S)
    before, after = _chances(source, case)
    old, weekly, asked, traffic = _answers(source, before, 3), np.empty((case.anchors, 0)), 0, list[JudgedUnit]()
    for at in range(DAYS):
        changed = at >= CHANGE
        units = day(at, 0.8 - (case.system + case.judge) * changed)
        evidence.add(at * DAY_S, 1 / YEAR, units)
        traffic += units
        raised = evidence.alarms and asked < MOST_AT_ALARM
        if at % WEEK == 0 or raised:
            asked += raised
            new = _answers(source, after if changed else before, 3 if raised else 1)
            weekly = new if raised else np.concatenate([weekly, new], axis=1)[:, -3:]
            evidence.judge += (AT_ALARM if raised else WEEKLY) * exchange_value(_pairs(old, weekly))
            rows = zip(old.tolist(), weekly.tolist(), strict=True)
            evidence.anchors = {str(n): [{"m": x} for x in (*a, *b)] for n, (a, b) in enumerate(rows)}
        if evidence.judge >= 1 / evidence.judge_alpha:
            return State.JUDGE
        if raised:
            return State(evidence.conclusion(traffic)["state"])
    return State.NOTHING


def _chances(source: np.random.Generator, case: Case) -> tuple[Array, Array]:
    """Return the probability of a yes before and after the judge's change; steady ones of twice as many are chosen."""
    size = 2 * case.anchors
    chance = np.where(source.random(size) < case.noise, source.random(size), source.random(size) < 0.8)
    draws = _answers(source, chance, 3).sum(axis=1)
    before = chance[np.argsort((draws % 3 != 0), kind="stable")[: case.anchors]]
    flips = source.random(case.anchors) < abs(case.judge) / (0.8 if case.judge > 0 else 0.2)
    after = np.where(flips, before * 0 if case.judge > 0 else before * 0 + 1, before)
    return before, after


def _answers(source: np.random.Generator, chance: Array, times: int) -> Array:
    return (source.random((len(chance), times)) < chance[:, None]).astype(float)


def _pairs(old: Array, new: Array) -> list[Anchor]:
    return [Anchor(tuple(sorted(a)), tuple(sorted(b))) for a, b in zip(old.tolist(), new.tolist(), strict=True)]


def who(check: Check) -> None:
    """Table of section "who changed": streams of 150 days with a change after 30."""
    many = check.streams(200)
    for noise, anchors in ((0.0, 200), (0.1, 200), (0.1, 400), (0.3, 400)):
        for system, judge in ((0.10, 0), (0, 0.12), (0, 0.064), (0.06, -0.06), (0, 0)):
            found = verdicts(check.source, many, Case(system, judge, noise, anchors))
            name = f"{noise:.0%} of verdicts vary, {anchors} anchors, system {-system:+}, judge {-judge:+}"
            if judge >= 0.064:
                check.rate(f"{name}: judge", found[State.JUDGE], at_least=0.95)
                check.rate(f"{name}: system", found[State.SYSTEM], at_most=0.02)
            elif not (system or judge):
                check.rate(f"{name}: any alarm", 1 - found[State.NOTHING], at_most=0.05)
            else:
                for verdict, share in found.items():
                    check.rate(f"{name}: {verdict}", share)


# -- the command ---------------------------------------------------------------------------------------

LOOKS = 60


def command(check: Check) -> None:
    """80 days without a change through `Journal` and `Watcher`, a look a day; the metric compares ids."""
    many = check.streams(20)
    for name in ("constant", "weekends -.15"):
        alarms = sum(_looked(check, name) for _ in range(many))
        check.rate(f"command, {name}: alarms", alarms / many, at_most=0.05)


def _looked(check: Check, name: str) -> bool:
    """Return True if there is an alarm."""
    stream = Stream(KINDS[name], "binary", 1, int(check.source.integers(1 << 30)))
    with TemporaryDirectory() as place:
        path = Path(place) / "traffic.jsonl"
        settings = Watch(
            source=path,
            evaluation=Options(metrics=["id_recall"]),
            rate=1.0,
            learn=None,
            baseline=None,
            anchors=0,
            by=None,
            tolerance=None,
            false_alarms=0.05,
            settle_s=600.0,
        )
        with Journal(Path(place) / "state") as journal:
            for look in range(LEARNED + LOOKS):
                counts = stream.day(look - LEARNED)[0][0]
                with path.open("a") as file:
                    for number in range(UNITS):
                        ids = {"retrieved_context_ids": ["ab"[int(number < counts[0])]], "reference_context_ids": ["a"]}
                        print(json.dumps({"id": f"{look}-{number}", "question": "?", **ids}), file=file)
                watcher = Watcher(settings, journal, DAY_S * (20_000 + look + int(stream.offset[0])))
                watcher.arrive()
                run_blocking(watcher.look())
                if "alarm" in journal.facts:
                    return True
    return False


PARTS = (streams, short, delays, topics, questions, who, command)


def main() -> None:
    """Print each figure; exit with 1 if one is beyond its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the streams")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS])
    given = parser.parse_args()
    failed = 0
    for number, part in enumerate(PARTS):
        if given.only in (None, part.__name__):
            check = Check(given.seed + number, quick=given.quick)
            part(check)
            failed += check.failed
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
