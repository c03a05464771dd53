"""A rate corrected by sensitivity and specificity."""

import numpy as np
import pytest

from merilo.stats.rogan_gladen import corrected_rate


def study(
    seed: int, rate: float, labelled: int, right: tuple[float, float]
) -> tuple[list[float], list[float], list[float]]:
    """What the judge said of 2,000 samples, and of `labelled` others with what people said."""
    source = np.random.default_rng(seed)
    truth = source.random(2_000 + labelled) < rate
    says = np.where(truth, source.random(len(truth)) < right[0], source.random(len(truth)) >= right[1])
    return (
        says[labelled:].astype(float).tolist(),
        truth[:labelled].astype(float).tolist(),
        says[:labelled].astype(float).tolist(),
    )


def test_by_hand() -> None:
    """Rate .5 judged, sensitivity .9, specificity .8: (.5 + .8 - 1) / (.9 + .8 - 1)."""
    human = [1.0] * 50 + [0.0] * 50
    judge = [1.0] * 45 + [0.0] * 5 + [1.0] * 10 + [0.0] * 40
    found = corrected_rate([1.0, 0.0] * 500, human, judge)
    assert (found.sensitivity, found.specificity) == (0.9, 0.8)
    assert found.rate == pytest.approx(0.3 / 0.7)
    assert found.interval.ends is not None
    assert found.interval.ends[0] < found.rate < found.interval.ends[1]


def test_the_guard() -> None:
    """A judge that may be little better than guessing corrects nothing: lower limit of the sum less 1 at most .2."""
    found = corrected_rate(*study(1, 0.5, 40, (0.7, 0.7)))
    assert found.rate is None
    assert found.interval.ends is None
    assert found.youden is not None
    assert found.youden <= 0.2
    assert "more than 0.2 needed" in found.interval.note
    assert corrected_rate(*study(1, 0.5, 400, (0.9, 0.9))).rate is not None


def test_one_kind_of_label_tells_nothing() -> None:
    """Without a yes or without a no of people there is no sensitivity or no specificity."""
    for label in (0.0, 1.0):
        found = corrected_rate([1.0, 0.0], [label] * 30, [1.0, 0.0] * 15)
        assert found.interval.note == "cannot tell: the human labels are all equal"
    assert corrected_rate([], [], []).interval.note == "cannot tell: there are no labels"


def test_weights_undo_labels_drawn_by_verdict() -> None:
    """Drawn by verdict, unweighted sensitivity is wrong; with weights it is right."""
    judged, human, judge = study(2, 0.4, 4_000, (0.8, 0.9))
    kept = [place for place in range(4_000) if judge[place] == 0 or place % 4 == 0]
    weights = [4.0 if judge[place] == 1 else 1.0 for place in kept]
    chosen = [human[place] for place in kept], [judge[place] for place in kept]
    assert corrected_rate(judged, *chosen, weights=weights).sensitivity == pytest.approx(0.8, abs=0.03)
    assert corrected_rate(judged, *chosen).sensitivity == pytest.approx(0.5, abs=0.05)


def test_other_numbers_are_refused() -> None:
    """Only labels of 0 and 1 make a rate."""
    with pytest.raises(ValueError, match="must be 0 or 1"):
        corrected_rate([0.5], [1.0], [1.0])


@pytest.mark.parametrize(("rate", "right"), [(0.3, (0.9, 0.8)), (0.7, (0.95, 0.95)), (0.1, (0.8, 0.9))])
def test_the_interval_covers(rate: float, right: tuple[float, float]) -> None:
    """With 200 labels a 95 % interval covers the true rate in at least 92 of 100 made-up studies."""
    told = hits = 0
    for seed in range(300):
        ends = corrected_rate(*study(seed, rate, 200, right)).interval.ends
        told += ends is not None
        hits += ends is not None and ends[0] <= rate <= ends[1]
    assert told > 250
    assert hits / told >= 0.92
