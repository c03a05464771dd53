"""What a pilot says of runs to come."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
import pytest
from graded_runs import graded, many

import merilo
from merilo import api
from merilo.commands.power.result import power_section
from merilo.commands.power.run import power_of
from merilo.errors import DataError, UsageError
from merilo.rendering.page import Page
from merilo.results.scores import read_scores
from merilo.stats.power import samples_needed

if TYPE_CHECKING:
    from pathlib import Path

METRIC = "context_relevance"


def mixed(seed: int) -> dict[str, list[int]]:
    """A hundred samples with grades drawn by this seed."""
    return {f"s{n}": [grade] for n, grade in enumerate(np.random.default_rng(seed).integers(0, 3, 100).tolist())}


def test_two_pilots_tell_by_their_paired_differences(tmp_path: Path) -> None:
    """The number of samples is that of the paired differences, over the common samples, in whatever order."""
    first = graded(tmp_path / "first", mixed(1))
    second = graded(tmp_path / "second", dict(reversed(mixed(2).items())))
    (needed,) = power_of([first, second], 0.05).needed
    a, b = (read_scores(run) for run in (first, second))
    differences = b.columns[METRIC].values[::-1] - a.columns[METRIC].values
    assert needed.found == samples_needed(differences, 0.05)
    assert (needed.paired, needed.pilot) == (True, 100)


def test_of_several_metrics_each_number_is_said_to_be_for_one_alone(tmp_path: Path) -> None:
    """A comparison corrects for several metrics and needs more samples; of one metric there is nothing to say."""
    metrics = (METRIC, "context_precision")
    run = graded(tmp_path / "run", mixed(1), metrics=metrics)
    for chosen, said in ((None, True), ([METRIC], False)):
        page = Page(80)
        power_section(page, power_of([run], 0.05, metrics=chosen))
        assert ("Each number is for one metric alone." in " ".join(str(page).split())) is said


def test_one_pilot_is_taken_for_two_that_are_independent(tmp_path: Path) -> None:
    """The deviation of a difference is then that of a score times the root of 2."""
    run = graded(tmp_path / "run", mixed(1))
    (needed,) = api.power(run, difference=0.05).needed
    deviation = needed.found.deviation
    assert deviation is not None
    assert deviation == pytest.approx(sqrt(2) * float(np.std(read_scores(run).columns[METRIC].values, ddof=1)))
    assert not needed.paired


def test_clusters_need_more_where_samples_of_one_are_alike(tmp_path: Path) -> None:
    """Samples that say the same of a document count as one, so that more of them are needed."""
    data = [
        {"id": f"s{n}", "retrieved_context_ids": ["a"], "reference_context_ids": ["a" if n // 5 % 3 else "b"],
         "metadata": {"document": n // 5}}
        for n in range(200)
    ]  # fmt: skip
    run = merilo.evaluate(data, metrics=["id_recall"], out=tmp_path / "run", cache=False)
    (alone,), (grouped,) = (power_of([run], 0.1, cluster=name).needed for name in ("", "document"))
    assert alone.found.samples is not None
    assert grouped.found.samples is not None
    assert grouped.found.samples > 4 * alone.found.samples
    assert grouped.found.clusters == grouped.found.samples // 5


@pytest.mark.parametrize(
    ("grades", "note"), [(many(50, 1), "all 50 values of the pilot are equal"), ({"a": []}, "the pilot has no scores")]
)
def test_a_pilot_without_spread_says_that_it_cannot_tell(
    tmp_path: Path, grades: dict[str, list[int]], note: str
) -> None:
    """Equal scores and no scores: a sentence, and no number."""
    (needed,) = power_of([graded(tmp_path / "run", grades)], 0.1).needed
    assert needed.found.samples is None
    assert note in needed.found.note


def test_pilots_must_be_of_one_yardstick_and_have_samples_in_common(tmp_path: Path) -> None:
    """Another judge is named, and no common id is an error."""
    first = graded(tmp_path / "first", mixed(1))
    with pytest.raises(UsageError, match="are not comparable: "):
        power_of([first, graded(tmp_path / "judge", mixed(2), version="2")], 0.1)
    with pytest.raises(DataError, match="no sample in common"):
        power_of([first, graded(tmp_path / "other", many(20, 1, start=500))], 0.1)
