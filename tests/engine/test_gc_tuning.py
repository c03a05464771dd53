"""The collector of cyclic garbage runs rarely while a run lasts, and as before afterwards."""

import gc
from collections.abc import Iterator

import pytest

from merilo.engine.event_loop import rare_collections


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[tuple[int, int, int]]:
    """The interpreter's own thresholds, put back whatever a test does."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield (700, 10, 10)
    gc.set_threshold(*before)


@pytest.mark.parametrize("first_ends_first", [True, False])
def test_the_thresholds_are_higher_in_a_run(thresholds: tuple[int, int, int], *, first_ends_first: bool) -> None:
    """Collections are rare in a run; once all runs that overlap are over, what was before is back."""
    first, second = rare_collections(), rare_collections()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold()[0] > 10_000
    for each in (first, second) if first_ends_first else (second, first):
        each.__exit__(None, None, None)
    assert gc.get_threshold() == thresholds
