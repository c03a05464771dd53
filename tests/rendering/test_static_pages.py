"""Pages and Markdown: whole, readable by machines that read to people, and harmless whatever is on them."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from compared import compare_runs
from each_case import each_case
from graded_runs import FAILS, graded, judge, many
from page_text import Reader, page_text
from seals import seal_again

import merilo
from merilo.commands.compare.options import ComparisonRequest
from merilo.commands.compare.result import RunComparison
from merilo.commands.compare.text import comparison_markdown
from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import comparison_page, run_page
from merilo.errors import RunError
from merilo.rendering.ci import code
from merilo.rendering.markup import write_page
from merilo.runs.files import SUMMARY
from merilo.runs.run import write_json

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> </style> '\"> {{ 7*7 }} @everyone #1 | `tick` ```` "
    "![p](http://x.example/p.png) bidi\u202eevil hidden\u200b \x1b[31mred <!-- --> </details> &lt;"
)
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]")


def hostile_runs(folder: Path) -> tuple[merilo.Run, merilo.Run]:
    """Two runs with names, ids, questions, contexts and reasons that try everything."""

    def run(name: str, grade: int) -> merilo.Run:
        samples = [
            {
                "id": f"{number} {HOSTILE}",
                "user_input": HOSTILE,
                "retrieved_contexts": [{"text": f"{HOSTILE}. More.", "id": HOSTILE}],
                "response": HOSTILE,
                "reference": HOSTILE,
            }
            for number in range(8)
        ]

        def judge(question: object) -> dict[str, object]:
            del question
            return {"grade": grade, "evidence": [0] if grade else [], "reason": HOSTILE}

        return merilo.evaluate(
            samples,
            metrics=["context_relevance"],
            judge=merilo.ScriptedJudge.by(judge, version="1"),
            out=folder / name,
            storage={"cache": False},
        )

    return run("a<b>`|@x", 2), run("<script>", 0)


@pytest.fixture
def found(tmp_path: Path) -> RunComparison:
    """A comparison in which hostile text stands wherever others can put text."""
    return compare_runs(hostile_runs(tmp_path), ComparisonRequest(across_judges=True))


def test_pages_can_be_read_aloud(found: RunComparison) -> None:
    """One h1, no level of headings left out, every table header with its scope, every drawing with a text."""
    for page in (comparison_page(found), run_page(report_run(found.sides[1].run))):
        read = Reader(page)
        levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        assert "col" in {each.get("scope") for each in read.all("th")} <= {"col", "row", "rowgroup"}
        assert read.all("html") == [{"lang": "en"}]
        assert read.all("svg")
        assert all(each.get("role") == "img" and each.get("aria-label") for each in read.all("svg"))
        assert any(each.get("name") == "viewport" for each in read.all("meta"))


def test_a_run_names_what_its_intervals_are_over(tmp_path: Path) -> None:
    """Clusters with the field that made them, as the summary in a terminal does."""
    run = merilo.evaluate(
        [
            {
                "id": f"s{place}",
                "user_input": "Which?",
                "retrieved_contexts": [f"Grade {place % 3}. More."],
                "metadata": {"doc": str(place // 2)},
            }
            for place in range(40)
        ],
        metrics=("context_relevance",),
        judge=merilo.ScriptedJudge.by(judge, version="1"),
        cluster="doc",
        out=tmp_path / "a",
        storage={"cache": False},
    )
    assert "sampling of 20 clusters of questions by doc" in page_text(run_page(report_run(run)))


def test_a_run_counts_rare_reasons_too(tmp_path: Path) -> None:
    """Reasons that are not among the most frequent ones are counted together, so that all samples are accounted for."""
    run = graded(tmp_path / "a", {"one": [1], "two": [FAILS], "three": [FAILS]})
    summary = json.loads((run.path / SUMMARY).read_text())
    (row,) = summary["metrics"]
    row["reasons"] = dict.fromkeys(row["reasons"], 1)
    write_json(run.path / SUMMARY, summary)
    seal_again(run.path)
    assert "2 failed: It will not (1); other reasons (1)" in page_text(run_page(report_run(run.path)))


def test_a_page_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """A directory that is not there is an error with what to do, and nothing is left behind."""
    with pytest.raises(RunError, match=r"Cannot write .*choose another file"):
        write_page(tmp_path / "none" / "page.html", "text")
    write_page(tmp_path / "page.html", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


# -- Markdown -----------------------------------------------------------------------------------------


def test_markdown_of_others_is_code(found: RunComparison) -> None:
    """Outside of code there is no mention, link, picture or markup of others; each table row has six cells."""
    text = comparison_markdown(found)
    bare = without_code(text)
    for sign in ("@", "![", "alert", "http", "7*7", "\u202e", "<img", "<script"):
        assert sign not in bare, sign
    assert set(re.findall(r"</?(\w+)", bare)) <= {"details", "summary", "code"}
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {7}
    assert HIDDEN.findall(text) == []


def without_code(text: str) -> str:
    """Markdown without its code, found as CommonMark finds it: fences first, then spans of equally long ticks."""
    kept, fence = list[str](), ""
    for line in text.splitlines():
        start = re.match("`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif start and "`" not in line[start.end() :]:
            fence = start[0]
        else:
            kept.append(line)
    spanless = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", "\n".join(kept))
    return re.sub(r"<code>[^<]*</code>", "", spanless)


@each_case(
    ("text", "shown"),
    [
        ("plain", "`plain`"),
        ("a|b", "`a\u2502b`"),
        ("`tick`", "`` `tick` ``"),
        ("``", "``` `` ```"),
        ("two\nlines", "`two lines`"),
        ("", "`  `"),
    ],
)
def test_a_span_of_code(text: str, shown: str) -> None:
    """The fence is longer than any run of ticks within; it stays on one line and in one cell."""
    assert code(text) == shown


def test_markdown_fits_into_a_comment(tmp_path: Path) -> None:
    """Long samples are left out from the end, so that the comment stays below what a comment may hold."""
    long = "word " * 30_000
    runs = [graded(tmp_path / name, many(8, grade), user_input=long) for name, grade in (("a", 2), ("b", 0))]
    text = comparison_markdown(compare_runs(runs))
    assert 1_000 < len(text) <= 60_000
    assert "**8 samples changed**" in text
