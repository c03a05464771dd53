"""A run's aggregates: which interval each mean has, over which units, and what is said beside it."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from grouping import grouped

import merilo
from merilo.commands.show.summary import run_page
from merilo.data.sample import Sample
from merilo.metrics.base import Card, MetricDefaults, Score, Undefined
from merilo.metrics.registry import register
from merilo.results.summary import Tally
from merilo.runs.manifest import Aggregate
from merilo.stats.means import mean_interval, ratio_interval

SOURCE = np.random.default_rng(5)


@dataclass(frozen=True, slots=True)
class Told(MetricDefaults):
    """What the sample's metadata says: a value, with counts, or none."""

    name = "made:told"
    version = 1
    card = Card("What the metadata says.", family="made")
    needs = frozenset({"user_input"})
    asks = frozenset()

    def plan(self, sample: Sample) -> Generator[None, None, Score | Undefined]:
        yield from ()
        data: Any = sample.metadata
        if data["value"] is None:
            return Undefined("it was not told")
        if data["value"] == "broken":
            raise RuntimeError("no value")
        return Score(data["value"], counts=data.get("counts", {}))


@dataclass(frozen=True, slots=True)
class Open(Told):
    """The same in a range whose worst end is infinite."""

    name = "made:open"
    range: ClassVar[tuple[float, float]] = (-float("inf"), 1.0)


@dataclass(frozen=True, slots=True)
class Twice:
    """Twice the mean of one metric."""

    name: ClassVar[str] = "made:twice_told"
    version: ClassVar[int] = 1
    range: ClassVar[tuple[float, float]] = (0.0, 2.0)
    higher_is_better: ClassVar[bool] = True
    card: ClassVar[Card] = Card("Twice a mean.", family="made")
    parts: ClassVar[tuple[str, ...]] = ("made:told",)

    def combine(self, means: Sequence[float]) -> float | None:
        return 2 * means[0]


@pytest.fixture(scope="module", autouse=True)
def known() -> None:
    for metric in (Told, Open, Twice):
        register(metric)


@pytest.fixture
def told(tmp_path: Path) -> Callable[..., merilo.Run]:
    """A run over samples with these values, counts and clusters."""

    def run(
        values: Sequence[float | str | None],
        *,
        counts: Sequence[dict[str, int | None]] = (),
        docs: Sequence[object] = (),
        **arguments: Any,
    ) -> merilo.Run:
        samples = [
            {
                "id": f"s{place}",
                "user_input": "?",
                "metadata": {
                    "value": value,
                    **({"counts": counts[place]} if counts else {}),
                    **({"doc": docs[place]} if docs else {}),
                },
            }
            for place, value in enumerate(values)
        ]
        number = len(list(tmp_path.iterdir()))
        options = {"metrics": [Told()], "out": tmp_path / f"run{number}", "cache": False} | arguments
        return merilo.evaluate(samples, **grouped(**options))

    return run


def only(run: merilo.Run) -> Aggregate:
    return run.metrics["made:told"]


@pytest.mark.parametrize("values", [SOURCE.beta(2, 2, 300).tolist(), [1.0] * 191 + [0.5] * 9, [1.0] * 30])
def test_the_interval_is_that_of_its_units(told: Callable[..., merilo.Run], values: list[float]) -> None:
    """The interval of a run is that of its scores; none is a point."""
    found = only(told(values))
    known = mean_interval(values, (0.0, 1.0)).interval
    assert known.ends is not None
    assert found.interval == pytest.approx(known.ends, abs=1e-8)
    assert (found.method, found.seed) == ("t and exact limits", None)
    assert found.interval is not None
    assert found.interval[0] < found.interval[1]


def test_bounds_are_with_failed_and_with_undefined_outcomes(told: Callable[..., merilo.Run]) -> None:
    """What failed could have been anything; what is undefined is in the second pair only."""
    found = only(told([0.5, 0.5, "broken", None]))
    assert found.bounds == pytest.approx((1 / 3, 2 / 3))
    assert found.bounds_with_undefined == pytest.approx((0.25, 0.75))


def test_clusters_are_the_units_where_they_are_named(told: Callable[..., merilo.Run]) -> None:
    """The interval is the linearised one between clusters, and the manifest keeps the field."""
    docs = SOURCE.permutation(np.arange(120) % 25)
    values = np.clip(SOURCE.normal(0.5, 0.2, 25)[docs] + SOURCE.normal(0, 0.02, 120), 0, 1).tolist()
    run = told(values, docs=docs.tolist(), cluster="doc")
    known = mean_interval(values, (0.0, 1.0), clusters=docs.tolist())
    assert known.interval.ends is not None
    assert only(run).interval == pytest.approx(known.interval.ends, abs=1e-8)
    assert only(run).clusters == known.clusters == 25
    assert run.manifest.cluster == "doc"
    assert "Intervals cover sampling of 25 clusters of questions by doc, not judge error." in shown(run)


@pytest.mark.parametrize(
    ("clusters", "note", "remark"),
    [
        (5, "cannot tell from 5 clusters, at least 6 needed", ""),
        (6, "", "only 6 clusters: the interval is less reliable than its level says"),
        (20, "", ""),
    ],
)
def test_few_clusters_are_told(told: Callable[..., merilo.Run], clusters: int, note: str, remark: str) -> None:
    """Below six there is no interval, below twenty a sentence beside it."""
    values = SOURCE.beta(2, 2, 100).tolist()
    run = told(values, docs=[f"d{place % clusters}" for place in range(100)], cluster="doc")
    assert (only(run).note, only(run).remark) == (note, remark)
    assert (note or remark) in shown(run)


def test_samples_without_a_cluster_stop_the_run_at_the_door(told: Callable[..., merilo.Run], tmp_path: Path) -> None:
    """Before the first question it is said how many and which; nothing is left behind."""
    with pytest.raises(merilo.DataError, match=r"^1 sample has no cluster field 'doc': s1\."):
        told([0.5, 0.6], docs=["d", None], cluster="doc")
    assert not list(tmp_path.iterdir())


def test_a_run_is_not_resumed_with_other_clusters(told: Callable[..., merilo.Run], tmp_path: Path) -> None:
    """The summary of a run has one kind of unit; another needs a directory of its own, or `show`."""
    run = told([0.5, 0.6], docs=["d", "e"], cluster="doc")
    with pytest.raises(merilo.RunError, match=r"differs in cluster"):
        told([0.5, 0.6], docs=["d", "e"], out=run.path)


def test_shares_are_ratios_of_sums(told: Callable[..., merilo.Run]) -> None:
    """Every context counts the same there, whatever sample it is of; samples without any do not count."""
    sizes = SOURCE.integers(0, 9, 80)
    hits = SOURCE.binomial(sizes, 0.4)
    counts = [{"contexts": int(n), "relevant": int(k), "odd": 1} for n, k in zip(sizes, hits, strict=True)]
    found = only(told([0.5] * 80, counts=counts)).shares
    known = ratio_interval(hits.astype(float), sizes.astype(float), (0.0, 1.0))
    assert list(found) == ["relevant/contexts"]
    assert known.interval.ends is not None
    assert found["relevant/contexts"].value == pytest.approx(hits.sum() / sizes.sum())
    assert found["relevant/contexts"].interval == pytest.approx(known.interval.ends, abs=1e-8)


@pytest.mark.parametrize("odd", [{"contexts": 2, "relevant": 3}, {"contexts": 2, "relevant": None}])
def test_what_is_no_share_has_none(told: Callable[..., merilo.Run], odd: dict[str, int | None]) -> None:
    """A count that is larger than its whole, or not known once, is no share of it."""
    counts: list[dict[str, int | None]] = [{"contexts": 2, "relevant": 1}] * 9 + [odd]
    assert only(told([0.5] * 10, counts=counts)).shares == {}


def test_composites_are_over_clusters_too(told: Callable[..., merilo.Run]) -> None:
    """Whole clusters are drawn: where all their samples are alike, the interval is wider than over samples."""
    docs = [place % 25 for place in range(250)]
    values = [float(doc) / 25 for doc in docs]
    alone = told(values, docs=docs, metrics=[Told(), Twice()]).metrics["made:twice_told"]
    found = told(values, docs=docs, cluster="doc", metrics=[Told(), Twice()]).metrics["made:twice_told"]
    assert found.mean == alone.mean
    assert found.clusters == 25
    assert found.interval is not None
    assert alone.interval is not None
    wide, narrow = found.interval[1] - found.interval[0], alone.interval[1] - alone.interval[0]
    assert wide / narrow == pytest.approx(10**0.5, rel=0.1)


def test_a_tally_keeps_little() -> None:
    """Of any number of samples: at most 257 values, and two numbers for each cluster."""
    tally = Tally((0.0, 1.0), "made:told")
    for place in range(5_000):
        tally.add(Score(place / 5_000, counts={"contexts": 7, "relevant": place % 7}), place % 30)
    alone = Tally((0.0, 1.0), "made:told")
    for place in range(5_000):
        alone.add(Score(place % 7 / 7, counts={"contexts": 7, "relevant": place % 7}))
    assert len(tally.grouped.clusters[0]) == 30
    assert len(tally.mean.histogram.points().values) <= 257
    assert all(len(ratio.histogram.points().values) == 7 for ratio in alone.shares.ratios.values())


def test_an_infinite_score_fails_at_the_door(told: Callable[..., merilo.Run]) -> None:
    """A metric whose range is open cannot bring an infinite number into a mean."""
    run = told([0.5, 0.25], metrics=[Endless()])
    assert run.metrics["made:endless"].failed == 2


@dataclass(frozen=True, slots=True)
class Endless(Open):
    """Minus infinity, which lies in its range."""

    name = "made:endless"

    def plan(self, sample: Sample) -> Generator[None, None, Score | Undefined]:
        del sample
        yield from ()
        return Score(-float("inf"))


def shown(run: merilo.Run, **options: Any) -> str:
    """The overview as text, in one line."""
    return " ".join(str(run_page(run, 100, full=True, **options)).split())
