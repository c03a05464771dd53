"""Places in which the installed command is run, and the browser of the tests of pages."""

import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from browser import Browser, chromium
from command_line import METRICS, SAMPLES, SCRIPT, Here


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


@pytest.fixture(scope="session")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = Here(tmp_path_factory.mktemp("run"))
    here.write("data.jsonl", SAMPLES)
    here.write("script.jsonl", SCRIPT)
    words = ("--judge", "scripted:script.jsonl", "--metrics", METRICS, "--out", "out", "--max-failed", "1")
    done = here.merilo("run", "data.jsonl", *words)
    assert done.returncode == 0, done.stderr
    return here.path


@pytest.fixture
def run(here: Here, made_run: Path) -> Here:
    """A directory with data.jsonl, script.jsonl and a finished run of them in `out`; some outcomes failed."""
    shutil.copytree(made_run, here.path, dirs_exist_ok=True)
    return here


@pytest.fixture(scope="session")
def started_browser() -> Iterator[Browser]:
    """One browser for all tests of a process."""
    program = chromium()
    if program is None:
        pytest.skip("no Chromium: install one, or name its program in MERILO_CHROMIUM")
    with Browser(program) as found:
        yield found


@pytest.fixture
def browser(started_browser: Browser) -> Browser:
    """The browser with a wide, light window, in which pages run scripts."""
    started_browser.scripts(enabled=True)
    started_browser.size(1440)
    return started_browser


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, which checks accessibility (requirements/axe.in)."""
    pytest.importorskip("axe_playwright_python", reason="no axe-core: `make test` installs it")
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
