"""`merilo gate` and the pilots of `merilo plan`, as users run them."""

from xml.etree import ElementTree as ET

import pytest
from command_line import Here
from each_case import each_case

SAMPLES = 120


def run_with(here: Here, name: str, hits: int) -> str:
    """A run in which so many of the samples found what they should, spread evenly; its directory."""
    found = {n * SAMPLES // hits for n in range(hits)}
    rows = [
        {"id": f"q{n}", "retrieved_context_ids": ["a" if n in found else "b"], "reference_context_ids": ["a"]}
        for n in range(SAMPLES)
    ]
    done = here.merilo("run", here.write(f"{name}.jsonl", rows), "--metrics", "id_recall", "--out", name, "--quiet")
    assert done.returncode == 0, done.stderr
    return name


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """A directory with the runs `old` (96 of 120 found) and `new` (90 of 120)."""
    here = Here(tmp_path_factory.mktemp("gated"))
    run_with(here, "old", 96)
    run_with(here, "new", 90)
    return here


@pytest.mark.parametrize(
    ("words", "code", "verdict"),
    [
        ("--min id_recall=0.65", 0, "pass"),
        ("--min id_recall=0.9", 1, "fail"),
        ("--min id_recall=0.75", 3, "cannot tell"),
        ("--min id_recall=0.75 --cannot-tell pass", 0, "pass"),
        ("--min id_recall=0.75 --cannot-tell fail", 1, "fail"),
        ("--baseline old --max-drop 0.3", 0, "pass"),
        ("--baseline old --max-drop id_recall=0.02", 3, "cannot tell"),
    ],
)
def test_the_exit_code_is_the_verdict(gated: Here, words: str, code: int, verdict: str) -> None:
    """0 passes, 1 fails, 3 cannot tell, unless that is given a meaning; JSON says the same word."""
    done = gated.merilo("gate", "new", *words.split())
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith(verdict)
    found = gated.json("gate", "new", *words.split())
    assert (found["verdict"], found["passed"]) == (verdict, code == 0)


@each_case(
    ("words", "sentence"),
    [
        ("", "No gate given. Use --min METRIC=X, --baseline RUN with --max-drop D"),
        ("--min id_recall", "--min expects METRIC=NUMBER, such as faithfulness=0.8, got 'id_recall'."),
        ("--min id_recall=high", "--min expects a number, such as faithfulness=0.8, got 'high'."),
        ("--min id_recal=0.5", "No metric 'id_recal' in new; did you mean id_recall?"),
        ("--min id_recall=0.3 --min id_recall=0.4", "--min has two values for id_recall: 0.3 and 0.4. Give one."),
        ("--baseline old --max-drop id_recall=0.1 --max-drop id_recall=0.2", "--max-drop has two values for id_recall"),
        ("--max-drop 0.1", "--max-drop needs a baseline: add --baseline RUN."),
        ("--baseline old", "--baseline needs the largest allowed drop: add --max-drop 0.05."),
        (
            "--baseline old --max-drop 0.1 --max-drop id_recall=0.1",
            "give either one number for all metrics",
        ),
        ("--baseline old --max-drop -0.1", "max_drop must be 0 or more, got -0.1"),
        ("--min id_recall=0.5 --undefined best", "undefined must be drop or worst, got the text 'best'"),
        ("--min id_recall=0.5 --cannot-tell maybe", "cannot_tell must be pass or fail, got the text 'maybe'"),
        ("--min id_recall=0.5 --cluster document", "120 samples have no cluster field 'document'"),
        ("--suite absent.toml", "No such file: absent.toml."),
        ("--baseline . --max-drop 0.1", "Not a run directory: ."),
        ("--baseline absent --max-drop 0.1 --first-run maybe", "first_run must be pass or cannot tell or fail"),
    ],
)
def test_wrong_use_is_told_in_a_sentence(gated: Here, words: str, sentence: str) -> None:
    """Exit code 2, the sentence on standard error, nothing on standard output."""
    done = gated.merilo("gate", "new", *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in " ".join(done.stderr.split())


def test_the_page_says_what_would_decide(gated: Here) -> None:
    """The interval, and the number of samples that would decide; no larger drop."""
    words = ("gate", "new", "--baseline", "old", "--max-drop")
    text = " ".join(gated.merilo(*words, "0.02").stdout.split())
    (gate,) = gated.json(*words, "0.02")["gates"]
    means = f"id_recall {gate['baseline_mean']:.3f} to {gate['run_mean']:.3f}, {gate['value']:+.3f}"
    assert (
        f"{means} (95 % {gate['interval'][0]:+.3f} to {gate['interval'][1]:+.3f}; 120 questions; allowed -0.02)."
        in text
    )
    assert gate["deciding"] == []
    assert "A drop of 0.02 is neither shown nor excluded. About " in text
    needed = int(text.split("About ")[1].split()[0].replace(",", ""))
    assert needed > SAMPLES


@pytest.mark.parametrize(
    ("words", "code", "verdict"),
    [
        ("", 3, "no baseline"),
        ("--first-run pass", 0, "pass"),
        ("--first-run fail", 1, "fail"),
        ("--min id_recall=0.65", 3, "no baseline"),
        ("--min id_recall=0.65 --first-run pass", 0, "pass"),
        ("--min id_recall=0.9 --first-run pass", 1, "fail"),
        ("--min id_recall=0.75 --first-run pass", 3, "cannot tell"),
    ],
)
def test_a_missing_baseline_is_a_state(gated: Here, words: str, code: int, verdict: str) -> None:
    """Minimums are checked and drops are not; every output says so, and what it counts as is an option."""
    arguments = ["gate", "new", "--baseline", "runs/main", "--max-drop", "0.1", *words.split(), "--junit", "gates.xml"]
    done = gated.merilo(*arguments)
    assert (done.returncode, done.stderr) == (code, "")
    text = " ".join(done.stdout.split())
    assert "no baseline runs/main does not exist." in text
    assert "Make the baseline: merilo run ... --out runs/main" in text
    found = gated.json(*arguments)
    assert (found["verdict"], found["passed"]) == (verdict, code == 0)
    suite = ET.parse(gated.path / "gates.xml").getroot()  # noqa: S314  our own
    bad = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    assert bool(bad) == (code != 0)


def test_other_questions_need_a_flag(gated: Here) -> None:
    """A baseline with other questions under the same ids is a usage error, unless --across-data leaves them out."""
    for name, word in (("who", "Who"), ("where", "Where")):
        rows = [
            {
                "id": f"q{n}",
                "user_input": f"{word if n < 30 else 'Why'} {n}?",
                "retrieved_context_ids": ["a"],
                "reference_context_ids": ["a"],
            }
            for n in range(SAMPLES)
        ]
        words = ("--metrics", "id_recall", "--out", name, "--quiet")
        assert gated.merilo("run", gated.write(f"{name}.jsonl", rows), *words).returncode == 0
    for words in (("gate", "where", "--baseline", "who", "--max-drop", "0.2"), ("compare", "where", "who")):
        refused = gated.merilo(*words)
        assert refused.returncode == 2
        assert "30 of 120 samples have another user_input in" in " ".join(refused.stderr.split())
        assert gated.merilo(*words, "--across-data").returncode == 0


def test_a_suite_gates_and_its_junit_is_read_by_servers(gated: Here) -> None:
    """One test a gate: a failure for the one that failed; options go before the suite."""
    suite = 'max_drop = 0.3\ncannot_tell = "pass"\n[minimums]\nid_recall = 0.9\n'
    (gated.path / "gates.toml").write_text(suite, encoding="utf-8")
    done = gated.merilo("gate", "new", "--suite", "gates.toml", "--baseline", "old", "--junit", "gates.xml")
    assert done.returncode == 1
    found = ET.parse(gated.path / "gates.xml").getroot()  # noqa: S314  our own
    assert float(found.attrib.pop("time")) > 0
    assert found.attrib == {"name": "merilo gate", "tests": "2", "failures": "1", "errors": "0", "skipped": "0"}
    (failed,) = found.iter("failure")
    assert failed.attrib["message"].startswith("id_recall 0.750 (95 % 0.671 to 0.829; 120 questions")
    words = ["--suite", "gates.toml", "--baseline", "old", "--min", "id_recall=0.5"]
    assert gated.merilo("gate", "new", *words).returncode == 0
    assert gated.merilo("gate", "new", *words, "--junit", "absent/gates.xml").returncode == 2
