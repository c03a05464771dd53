"""Sensitivity and specificity by group: known values, clusters, and groups that are too small."""

import pytest

from merilo.stats.agreement_intervals import agreement, rates_by_group
from merilo.stats.intervals import wilson_ends

PEOPLE = [True] * 40 + [False] * 40
JUDGE = [True] * 36 + [False] * 4 + [True] * 12 + [False] * 28
GROUPS = ["a", "b"] * 40


def test_rates_by_hand() -> None:
    """Each group has its own counts: of 20 yes the judge finds 18, of 20 no it finds 14."""
    a, b = rates_by_group(PEOPLE, JUDGE, GROUPS)
    for each in (a, b):
        assert (each.items, each.yes, each.no, each.yes_found, each.no_found) == (40, 20, 20, 18, 14)
        assert (each.sensitivity.value, each.specificity.value) == (0.9, 0.7)
    assert (a.group, b.group) == ("a", "b")


def test_few_misses_have_wilsons_interval() -> None:
    """18 of 20 with independent items."""
    found = rates_by_group(PEOPLE, JUDGE, GROUPS)[0].sensitivity.interval
    assert found.ends == pytest.approx(wilson_ends(0.9, 20, (0.0, 1.0)))


def test_one_group_has_the_rates_of_all_items() -> None:
    """The rates of the whole run, as `agreement` returns them."""
    whole = agreement(PEOPLE, JUDGE)
    (only,) = rates_by_group(PEOPLE, JUDGE, [None] * 80)
    assert only.group is None
    assert (only.sensitivity.value, only.specificity.value) == (whole.sensitivity.value, whole.specificity.value)


def test_clusters_widen_the_interval() -> None:
    """Items of one document err together, so ten documents of four items tell less than forty items."""
    people = [True] * 40
    judge = [place // 4 % 2 == 0 for place in range(40)]
    (alone,) = rates_by_group(people, judge, ["x"] * 40)
    (clustered,) = rates_by_group(people, judge, ["x"] * 40, clusters=[place // 4 for place in range(40)])
    ends, wider = alone.sensitivity.interval.ends, clustered.sensitivity.interval.ends
    assert ends is not None
    assert wider is not None
    assert wider[1] - wider[0] > 1.5 * (ends[1] - ends[0])


@pytest.mark.parametrize(("labels", "told"), [(9, False), (10, True)])
def test_fewer_than_ten_labels_of_a_kind_are_counted_and_give_no_rate(labels: int, *, told: bool) -> None:
    """The counts are there; the other kind of label still has its rate."""
    people = [True] * labels + [False] * 20
    (found,) = rates_by_group(people, people, ["x"] * len(people))
    assert (found.yes, found.yes_found) == (labels, labels)
    assert (found.sensitivity.value is not None) is told
    assert (found.sensitivity.interval.note == "too few") is not told
    assert found.specificity.value == 1.0


def test_few_clusters_give_a_rate_without_an_interval() -> None:
    """Twenty items of five documents."""
    (found,) = rates_by_group([True] * 20, [True] * 20, ["x"] * 20, clusters=[place % 5 for place in range(20)])
    assert found.sensitivity.value == 1.0
    assert found.sensitivity.interval.ends is None
    assert "5 clusters" in found.sensitivity.interval.note


def test_the_largest_group_is_first_and_items_without_a_group_are_one() -> None:
    """Equal sizes are sorted by name, with the items of no group last."""
    groups = ["b", None, "a", "c", "c"]
    found = rates_by_group([True] * 5, [True] * 5, groups)
    assert [each.group for each in found] == ["c", "a", "b", None]


def test_series_of_different_lengths_are_refused() -> None:
    """Each item has one entry in every series."""
    with pytest.raises(ValueError, match="same length"):
        rates_by_group([True], [True], [])
