"""The server that the tests of providers ask."""

from collections.abc import Iterator

import pytest
from server import JudgeServer


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running
