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


def test_the_thresholds_are_higher_until_the_last_run_is_over(thresholds: tuple[int, int, int]) -> None:
    """Runs beside each other share the rare collections; the last to end puts back what was."""
    first, second = rare_collections(), rare_collections()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold()[0] > 10_000
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] > 10_000
    second.__exit__(None, None, None)
    assert gc.get_threshold() == thresholds
