"""`merilo compare` from the command line."""

import pytest
from command_line import Here

JUDGE = ("--judge", "scripted:script.jsonl", "--metrics", "context_relevance", "--quiet", "--no-cache")
GOOD, BAD = "The river is 120 km long.", "Rivers are wet."


@pytest.fixture
def two(here: Here) -> Here:
    """Two runs of ten questions, `runs/old` and `runs/new`; the new one finds what seven of them ask for."""
    here.write(
        "script.jsonl",
        [
            {
                "kind": "relevance",
                "match": {"sentences": {"contains": "120 km"}},
                "verdict": {"grade": 2, "evidence": [0], "reason": "It names the length."},
            },
            {"kind": "relevance", "verdict": {"grade": 0, "reason": "It names no length."}},
        ],
    )
    for name, found in (("old", 0), ("new", 7)):
        samples = [
            {"id": f"q{n}", "user_input": f"How long is river {n}?", "retrieved_contexts": [GOOD if n < found else BAD]}
            for n in range(10)
        ]
        here.write(f"{name}.jsonl", samples)
        done = here.merilo("run", f"{name}.jsonl", *JUDGE, "--out", f"runs/{name}")
        assert done.returncode == 0, done.stderr
    return here


PAGE = """\
new is better, by the judge alone: context_relevance 0.000 to 0.700, +0.700
(+0.204 to +1.000).

10 questions in both runs    old    new  difference, 95 % interval
By the judge alone: better
  context_relevance        0.000  0.700  +0.700  +0.204 to +1.000

What changed: merilo report runs/old runs/new
All metrics and statistics: --full
"""
FULL = """\
Differences are new minus old. Intervals (95 %) cover sampling of questions, not
judge error.

Verdicts
  context_relevance: better, by the judge alone

Statistics
                       p  corrected  higher  equal  lower  diff/sd     P  finds
context_relevance  0.008      0.008       7      3      0    +1.45  0.85  0.533
p: probability of a difference at least this large if there is none; corrected:
p corrected for several tests (Holm). higher, equal, lower: number of samples on
which the run scores higher, equal or lower than the base. diff/sd: the
difference divided by the standard deviation of the differences per sample. P:
probability that the run scores higher on a sample (ties count half). finds:
smallest true difference that 80 % of such comparisons show, before the
correction.

5 of 7 samples that changed, by context_relevance

  q0  +1.000
  How long is river 0?
  old: 0.000
    context 1: grade 0 of 2
  new: 1.000
    context 1: grade 2 of 2
      >  The river is 120 km long.

What changed: merilo report runs/old runs/new
"""


def test_two_runs_are_compared(two: Here) -> None:
    """The page has the conclusion and the differences; --full has statistics and the changed samples too."""
    assert two.merilo("compare", "runs/old", "runs/new").stdout == PAGE
    full = two.merilo("compare", "runs/old", "runs/new", "--full").stdout
    start, _, end = FULL.rpartition("\n\n")
    assert full.startswith(PAGE.rpartition("\n\n")[0] + "\n\n" + start)
    assert full.endswith(end)


def test_a_comparison_as_json(two: Here) -> None:
    """--json has every number by a name of its own, and both verdicts of each sample."""
    found = two.json("compare", "runs/old", "runs/new", "--primary", "context_relevance")
    assert (found["common"], found["primary"], found["level"]) == (10, ["context_relevance"], 0.95)
    (each,) = found["comparisons"]
    assert (each["first"], each["second"]) == ("old", "new")
    assert (found["schema"], found["verdict"]) == (3, "better")
    assert (each["difference"], each["verdict"]) == (0.7, "better")
    assert (each["higher"], each["equal"], each["lower"]) == (7, 3, 0)
    assert (each["first_mean"], each["second_mean"], each["p_second_higher"]) == pytest.approx((0, 0.7, 0.85))
    assert each["said"] == "better, by the judge alone"
    assert len(found["moved"]) == 7
    verdicts = found["moved"][0]["runs"][1]["verdicts"]
    assert verdicts == [{"about": "context 1", "said": "grade 2 of 2", "text": "", "evidence": [GOOD]}]


def test_files_for_others(two: Here) -> None:
    """--markdown writes a file, the report is one command away; `--markdown -` prints nothing else."""
    done = two.merilo("compare", "runs/new", "runs/old", "--markdown", "c.md")
    assert "merilo report runs/new runs/old" in done.stdout
    two.merilo("report", "runs/new", "runs/old", "-o", "report.html")
    page = (two.path / "report.html").read_text(encoding="utf-8")
    assert page.count('<mark dir="auto">The river is 120 km long.</mark>') == 7
    text = (two.path / "c.md").read_text(encoding="utf-8")
    assert "| **By the judge alone: worse** |" in text
    assert "| `context_relevance` | 0.700 | 0.000 | -0.700 | -1.000 to -0.204 |  |" in text
    assert text.count("<details>") == 5
    assert two.merilo("compare", "runs/new", "runs/old", "--markdown", "-").stdout == text
    again = two.merilo("compare", "runs/new", "runs/old", "--markdown", "-", "--json")
    assert (again.returncode, again.stdout) == (2, "")


def test_another_judge_is_refused(two: Here) -> None:
    """With exit code 2, what differs and what to do; --across-judges compares all the same and says so first."""
    assert two.merilo("run", "old.jsonl", "--metrics", "context_relevance", "--out", "runs/other").returncode == 0
    refused = two.merilo("compare", "runs/new", "runs/other")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "the judge is scripted:script.jsonl there and embedded here (there: new, here: other)" in refused.stderr
    assert "--across-judges" in refused.stderr
    done = two.merilo("compare", "runs/new", "runs/other", "--across-judges")
    assert done.returncode == 0
    assert "Not comparable: the judge is scripted" in done.stdout.partition("questions in both runs")[0]
