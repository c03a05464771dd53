"""A browser for the tests of pages, and the checker of accessibility; both are skipped with the reason if missing."""

import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Iterator

import pytest
from browser import Browser, chromium

_AXE = "axe-core@4.10.3"
_AXE_SHA256 = "0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    program = chromium()
    if program is None:
        pytest.skip("no Chromium: install one, or name its program in MERILO_CHROMIUM")
    with Browser(program) as found:
        yield found


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, fetched by npm into a temporary folder."""
    npm, folder = shutil.which("npm"), tmp_path_factory.mktemp("axe")
    if npm is None:
        pytest.skip("no npm, so axe-core cannot be fetched")
    try:
        done = subprocess.run(
            [npm, "pack", "--silent", _AXE], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip("axe-core cannot be fetched: npm does not answer")
    archives = list(folder.glob("*.tgz"))
    if done.returncode or not archives:
        pytest.skip(f"axe-core cannot be fetched: {done.stderr.strip()[-200:]}")
    assert hashlib.sha256(archives[0].read_bytes()).hexdigest() == _AXE_SHA256
    with tarfile.open(archives[0]) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()
