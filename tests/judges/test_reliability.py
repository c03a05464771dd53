"""Tables of errors by sureness, and the threshold that a cascade takes from them."""

from __future__ import annotations

import json
import random

import pytest
from scipy.stats import beta

from merilo.errors import UsageError
from merilo.judges.reliability import MOST_STEPS, Reliability, Step, tables_from


def limit(errors: int, answered: int) -> float:
    """The one-sided 95 % Clopper-Pearson limit from above, by its textbook formula."""
    return 1.0 if errors == answered else float(beta.ppf(0.95, errors + 1, answered - errors))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("max_error", [0.02, 0.05, 0.2])
def test_the_threshold_is_the_smallest_whose_limit_holds(seed: int, max_error: float) -> None:
    """It is found as by scipy's beta quantile, step by step."""
    dice = random.Random(seed)
    verdicts = [(sure := 0.5 + dice.random() / 2, dice.random() > sure + 0.02 * seed) for _ in range(700)]
    table = Reliability.of("rule", verdicts)
    fitting = [step for step in table.steps if limit(step.errors, step.answered) <= max_error]
    found = table.sure(max_error)
    if not fitting:
        assert found is None
        return
    assert found is not None
    assert found.least == min(step.sureness for step in fitting)
    assert found.answered_rate == found.answered / 700


def test_fifty_nine_without_an_error_are_the_least() -> None:
    """With 58 records no error can be excluded to 5 %, with 59 it can."""
    assert Reliability.of("", [(0.9, False)] * 58).sure(0.05) is None
    found = Reliability.of("", [(0.9, False)] * 59).sure(0.05)
    assert found is not None
    assert (found.least, found.answered, found.errors) == (0.9, 59, 0)


def test_steps_count_all_that_are_at_least_as_sure() -> None:
    """Equal sureness is one step; verdicts without a probability count as records alone."""
    table = Reliability.of("r", [(0.9, False), (0.7, True), (0.9, True), (None, False), (0.6, False)])
    assert table.steps == (Step(0.9, 2, 1), Step(0.7, 3, 2), Step(0.6, 4, 2))
    assert table.records == 5


def test_a_table_stays_small_and_comes_back() -> None:
    """20,000 verdicts make few steps, the last of which holds all; JSON brings the same table back."""
    dice = random.Random(0)
    table = Reliability.of("r", [(dice.random(), dice.random() < 0.1) for _ in range(20_000)])
    assert 100 < len(table.steps) <= MOST_STEPS
    assert table.steps[-1].answered == 20_000
    (again,) = tables_from(json.loads(json.dumps({"support": table.to_fields()}))).values()
    assert again == table


@pytest.mark.parametrize(
    "fields",
    [
        None,
        {"support": 3},
        {"support": {"rule": "r", "records": 1, "sureness": [0.5], "answered": [1], "errors": []}},
        {"support": {"rule": "r", "records": 1, "sureness": ["x"], "answered": [1], "errors": [0]}},
        {"support": {"rule": "r", "records": 1, "sureness": [0.5], "answered": [2], "errors": [0]}},
        {"support": {"rule": "r", "records": 9, "sureness": [0.5, 0.6], "answered": [1, 2], "errors": [0, 0]}},
        {"support": {"rule": "r", "sureness": [], "answered": [], "errors": []}},
    ],
)
def test_what_is_no_table_is_told(fields: object) -> None:
    """A damaged table is an error that says how to make it anew."""
    with pytest.raises(UsageError, match="merilo judge check"):
        tables_from(fields)


@pytest.mark.parametrize(
    "hostile",
    [
        {"records": 10**13, "answered": [10**13], "errors": [10**9], "sureness": [0.9]},
        {"records": 10, "answered": [10**400], "errors": [0], "sureness": [0.9]},
        {"records": 10, "answered": [10], "errors": [0], "sureness": [10**400]},
        {"records": True, "answered": [1], "errors": [0], "sureness": [0.9]},
        {"records": 10, "answered": [True], "errors": [0], "sureness": [0.9]},
        {"records": -1, "answered": [], "errors": [], "sureness": []},
        {"records": 10, "answered": [1, 2], "errors": [0], "sureness": [0.9, 0.8]},
    ],
)
def test_numbers_that_cannot_be_are_told(hostile: dict[str, object]) -> None:
    """Counts beyond all labelling, truth values and columns of different lengths are refused in a sentence."""
    with pytest.raises(UsageError, match="A table of reliability cannot be read"):
        Reliability.from_fields({"rule": "r", **hostile})


def test_the_largest_table_is_read_at_once() -> None:
    """A table at the limit of its size takes no time by the number of its errors."""
    table = Reliability.from_fields(
        {"rule": "r", "records": 10**7, "sureness": [0.9], "answered": [10**7], "errors": [498_500]}
    )
    assert table.sure(0.05) is not None
    assert table.sure(0.0498) is None
