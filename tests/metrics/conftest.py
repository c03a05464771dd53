"""How many verdicts the laws of metrics are tried with."""

import pytest

from merilo.metrics import contract


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try a law with one set of made-up verdicts; `make test-long` tries it with all three, as `check_metric` does."""
    if "seeds" in metafunc.fixturenames:
        metafunc.parametrize("seeds", [(0,), pytest.param((0, 1, 2), marks=pytest.mark.long)], indirect=True)


@pytest.fixture
def seeds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the seeds of the made-up verdicts."""
    monkeypatch.setattr(contract, "_SEEDS", request.param)
