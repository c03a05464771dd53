"""What holds for all tests: reproducible Hypothesis runs, and no connection but to this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import loopback
from hypothesis import settings

if TYPE_CHECKING:
    import pytest

settings.register_profile("same", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("new", deadline=None)  # HYPOTHESIS_PROFILE=new: other examples each time, to find more
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_configure(config: pytest.Config) -> None:
    """Close the way out, of child processes too, unless live tests were asked for by name."""
    if config.getoption("markexpr") != "live":
        loopback.shut()
