"""`pytest tests/published --golden DIR`: one test for each golden case in DIR, the vendored copy by default."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from published.cases import VENDORED, Case, read_folder

if TYPE_CHECKING:
    from collections.abc import Mapping


def pytest_addoption(parser: pytest.Parser) -> None:
    """The folder of the cases."""
    parser.addoption("--golden", type=Path, default=VENDORED, metavar="DIR", help="folder of golden cases")


def _folder(config: pytest.Config) -> Path:
    """The folder asked for; where this file was found too late to add an option, there is only the vendored copy."""
    folder: Path = config.getoption("golden", default=VENDORED)
    return folder


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `golden` every case in turn, under its id."""
    if "golden" in metafunc.fixturenames:
        found = read_folder(_folder(metafunc.config))
        metafunc.parametrize("golden", found, ids=[case.id for case in found])


@pytest.fixture(scope="session")
def cases(pytestconfig: pytest.Config) -> Mapping[str, Case]:
    """All cases by id, for those that come after another."""
    return {case.id: case for case in read_folder(_folder(pytestconfig)) if isinstance(case, Case)}
