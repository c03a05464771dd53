"""A run in a notebook: a table to look at, a data frame to go on with."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from seals import remove_seal

import merilo
from merilo.api import import_scores
from merilo.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


class Tags(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") for name, _ in attrs)
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def run(tmp_path: Path) -> merilo.Run:
    (tmp_path / "scores.csv").write_text("id,s\na,0.5\nb,\n=1+1,0.25\n", encoding="utf-8")
    return import_scores(tmp_path / "scores.csv", scores=["s"], out=tmp_path / "run")


def test_a_run_shows_its_means(run: merilo.Run) -> None:
    """The table has a row for each metric, and says what the intervals are over."""
    shown = Tags(run._repr_html_())
    assert shown.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p", "div"}
    text = " ".join(shown.text.split())
    assert "scores: 3 samples, scores of scores.csv" in text
    assert "foreign:s0.375" in text
    assert "95 % interval" in text
    assert "cover sampling of questions, not the error of the scores imported from scores.csv" in text


def test_hostile_text_is_text(tmp_path: Path) -> None:
    """Names that others wrote are escaped, and nothing in them turns the direction of writing."""
    rows = [{"id": HOSTILE, "retrieved_context_ids": ["a"], "reference_context_ids": ["a"]}]
    judge = merilo.ScriptedJudge.by(lambda _: {}, version="1")
    run = merilo.evaluate(rows, metrics=["hit_rate@1"], judge=[judge], out=tmp_path / "run", cache=False)
    manifest = (remove_seal(run.path) / "manifest.json").read_text(encoding="utf-8")
    (run.path / "manifest.json").write_text(manifest.replace('"records"', '"<script>x</script>"'), encoding="utf-8")
    html = merilo.Run.open(run.path)._repr_html_()
    assert "script" not in Tags(html).tags
    assert "<script>x</script>: 1 sample" in Tags(html).text
    assert "\u202e" not in html


def test_a_frame_has_a_row_for_each_outcome(run: merilo.Run) -> None:
    """Where there is no score the value is empty, the outcome says so and the reason says why."""
    pandas = pytest.importorskip("pandas")
    frame = run.to_frame()
    assert [*frame.columns] == ["sample", "metric", "outcome", "value", "reason"]
    assert frame["outcome"].tolist() == ["score", "undefined", "score"]
    assert frame["value"].tolist()[::2] == [0.5, 0.25]
    assert pandas.isna(frame["value"][1])
    assert frame["reason"].tolist() == ["", "not scored there", ""]
    assert frame["sample"].tolist() == ["a", "b", "=1+1"]


def test_without_pandas_it_is_said_what_to_do(run: merilo.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the package; nothing else of a run needs it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"needs pandas.*pip install pandas"):
        run.to_frame()
