"""The pages of `merilo view`: list, report, comparison, errors."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urljoin

import pytest
from asgi import HOST, LET_IN, Got, ask
from graded_runs import FAILS, graded
from starlette.types import ASGIApp

from merilo.commands.report.run_page import report_text
from merilo.commands.view import app as catalog
from merilo.commands.view import app as pages
from merilo.commands.view.app import create_app

GRADES = {"a": [2, 1], "b": [0], "c": [FAILS], "d": [2]}
HOSTILE = "<img src=x onerror=canary()>\u202e'\" &amp;"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two runs, which tests copy and do not change."""
    folder = tmp_path_factory.mktemp("made")
    graded(folder / "first", GRADES)
    graded(folder / "second", {**GRADES, "b": [2]})
    return folder


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """A copy of the two runs."""
    return shutil.copytree(made, tmp_path / "runs")


def app_of(directory: Path) -> ASGIApp:
    """The application over a directory."""
    return create_app(directory, "token", 8642)


def links(page: Got) -> dict[str, str]:
    """The address of each run by its name in the list, with markup still escaped."""
    return {
        name: address
        for address, name in re.findall(
            r'<a href="(runs/[0-9a-f]{16})"><span class="t" dir="auto">(.*?)</span>', page.text
        )
    }


def compare_address(addresses: Sequence[str]) -> str:
    """The address of the comparison of runs."""
    return "/compare/?" + "&".join(f"run={address.rpartition('/')[2]}" for address in addresses)


def test_the_list_shows_runs_and_means(runs: Path) -> None:
    """The list has a row for each run with its samples, judge, failures and means."""
    page = ask(app_of(runs), "/")
    assert page.status == 200
    assert sorted(links(page)) == ["first", "second"]
    assert page.text.count("4 samples \u00b7 judge scripted:graded_runs.judge \u00b7 1 failed") == 2
    assert "<b>0.583</b>" in page.text
    assert "<b>0.917</b>" in page.text


def test_a_report_is_that_of_the_command(runs: Path) -> None:
    """The page of a run is the page of `merilo report` with a link back, and its policy is also a header."""
    app = app_of(runs)
    page = ask(app, links(ask(app, "/"))["first"])
    back = page.text.index("<nav")
    after = page.text.index("</nav>") + len("</nav>")
    assert page.text[: back - 1] + page.text[after:] == report_text([runs / "first"])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="(.*?)"', page.text)
    assert policy is not None
    assert page.headers["content-security-policy"] == policy[1].replace("&#39;", "'") + "; frame-ancestors 'none'"
    assert "connect-src" not in policy[1]


def test_a_comparison_is_that_of_the_command(runs: Path) -> None:
    """Chosen runs are compared as by `merilo report`, the newest first, however they are ordered."""
    app = app_of(runs)
    found = links(ask(app, "/"))
    newest_first = [runs / name for name in found]
    for chosen in ([*found.values()], [*found.values()][::-1]):
        page = ask(app, compare_address(chosen))
        assert page.status == 200
        assert page.text.split("</nav>")[1] in report_text(newest_first)


def test_a_comparison_needs_two_runs_that_can_be_compared(runs: Path) -> None:
    """One run, too many runs and runs of other judges give a page with the reason."""
    graded(runs / "other", GRADES, version="2")
    app = app_of(runs)
    found = links(ask(app, "/"))
    one = ask(app, compare_address([found["first"]] * 2))
    assert (one.status, "1 are chosen" in one.text) == (422, True)
    other = ask(app, compare_address([found["first"], found["other"]]))
    assert (other.status, "not comparable" in other.text) == (422, True)


def test_unknown_addresses_are_not_found(runs: Path) -> None:
    """An unknown run, in a report and in a comparison, and an unknown page have a page that says so, with a link."""
    app = app_of(runs)
    for address in ("/runs/0123456789abcdef", "/runs/first", "/compare/?run=first&run=second", "/nothing", "/runs/a/b"):
        page = ask(app, address)
        assert page.status == 404
        (back,) = re.findall(r'href="([./]+)"', page.text)
        assert urljoin(f"http://{HOST}{LET_IN}{address}", back) == f"http://{HOST}{LET_IN}/"


DAMAGES = {
    "manifest.json": (b"", b"{", b"[]", b'{"merilo": "0.1.0"}', b"\xff\xfe", b'{"format": 99}'),
    "summary.json": (b"", b"null", b'{"complete": true, "samples": 1, "metrics": [{}]}'),
    "outcomes.jsonl": (b"", b"{}\n"),
    "usage.json": (b"", b"[]"),
    "seal.json": (b"", b"{}"),
    "store.sqlite": (b"", b"no database"),
}


@pytest.mark.parametrize(
    ("name", "content"),
    [*((name, content) for name, each in DAMAGES.items() for content in each), *((name, None) for name in DAMAGES)],
)
def test_a_damaged_run_is_a_row(runs: Path, name: str, content: bytes | None) -> None:
    """A run with a damaged or missing file stays in the list; its own page gives a reason; no page is an error 500."""
    if content is None:
        (runs / "first" / name).unlink()
    else:
        (runs / "first" / name).write_bytes(content)
    app = app_of(runs)
    page = ask(app, "/")
    found = links(page)
    assert page.status == 200
    assert sorted(found) == ["first", "second"]
    for address in (found["first"], compare_address([*found.values()])):
        own = ask(app, address)
        assert own.status == 422
        assert "This cannot be shown" in own.text
    assert ask(app, found["second"]).status == 200


def test_whatever_reading_raises_is_a_row(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody expects while a run is read makes that run unreadable, not the list."""
    reading = catalog.listed_run

    def fails(path: Path) -> object:
        if path.name == "first":
            raise ZeroDivisionError("<b>")
        return reading(path)

    monkeypatch.setattr(catalog, "listed_run", fails)
    page = ask(app_of(runs), "/")
    assert "ZeroDivisionError: &lt;b&gt;" in page.text
    assert sorted(links(page)) == ["first", "second"]


def test_names_are_text(made: Path, tmp_path: Path) -> None:
    """A hostile name of a directory is shown as text in every page, with its controls visible."""
    place = tmp_path / HOSTILE
    shutil.copytree(made / "first", place / HOSTILE)
    (place / "x" / HOSTILE).mkdir(parents=True)
    (place / "x" / HOSTILE / "store.sqlite").write_bytes(b"")
    app = app_of(place)
    page = ask(app, "/")
    for each in [page, *(ask(app, address) for address in links(page).values())]:
        assert "<img" not in each.text
        assert "\u202e" not in each.text
        assert "&lt;img src=x onerror=canary()&gt;U+202E&#39;&#34; &amp;amp;" in each.text


def test_a_report_is_made_once(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report is made again only if a file of its run changed."""
    calls: list[object] = []

    def counted(paths: Sequence[Path]) -> str:
        calls.append(paths)
        return report_text(paths)

    monkeypatch.setattr(pages, "report_text", counted)
    app = app_of(runs)
    address = links(ask(app, "/"))["first"]
    before = [ask(app, address).body for _ in range(3)]
    assert len(calls) == 1
    assert len(set(before)) == 1
    graded(runs / "first", GRADES)  # written again, with equal content
    after = ask(app, address).body
    assert re.sub(rb"[\d.]+ s<", b"", after) == re.sub(rb"[\d.]+ s<", b"", before[0])
    assert len(calls) == 2


def test_the_list_follows_the_directory(runs: Path) -> None:
    """A new run appears, and a deleted one goes."""
    app = app_of(runs)
    assert sorted(links(ask(app, "/"))) == ["first", "second"]
    shutil.copytree(runs / "first", runs / "below" / "third")
    assert sorted(links(ask(app, "/"))) == ["below/third", "first", "second"]
    shutil.rmtree(runs / "second")
    assert sorted(links(ask(app, "/"))) == ["below/third", "first"]
