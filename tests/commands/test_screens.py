"""The screens of the commands that people read most, as they are printed: tests/commands/screens has one file each."""

import json
import re
from pathlib import Path

import pytest
from command_line import Here

from merilo.results.faults import FAULTS, PLACES

SCREENS = Path(__file__).with_name("screens")
MAX_LINES = 25

JUDGE = """
from merilo import Failure, ScriptedJudge


def verdict(question):
    text = " ".join(getattr(question, "sentences", ()) or getattr(question, "contexts", ()))
    if question.kind == "relevance":
        found = [at for at, each in enumerate(question.sentences) if "port" in each or "kept" in each or "AES" in each]
        return {"grade": 2 if found else 0, "evidence": found, "probability": 0.9 if found else 0.1}
    if question.kind == "sufficiency":
        enough = "port" in text or "AES" in text
        return {"label": "sufficient" if enough else "partly", "probability": 0.81 if enough else 0.2}
    if question.kind == "noncommittal":
        return {"noncommittal": "not know" in question.response}
    if question.kind == "statements":
        return {"statements": [{"text": text, "sentence": at} for at, text in enumerate(question.sentences)]}
    if "blue" in question.statement:
        return Failure("refused", "It will not.")
    places = [(at, 0) for at, each in enumerate(question.contexts) if question.statement.rstrip(".") in each]
    if places:
        return {"label": "supported", "evidence": [places[0][0]], "probability": 0.91, "sentences": places[:1]}
    near = [(at, 1) for at, each in enumerate(question.contexts) if "AES" in each and "AES" in question.statement]
    reason = "Not supported. Closest: sentence 2. Differs in: 512 / 256." if near else "Not stated."
    return {"label": "unsupported", "evidence": [], "probability": 0.12, "sentences": near, "reason": reason,
            "tells_contradicted": False}


judge = ScriptedJudge.by(verdict, version="1")
"""
"""A judge by the words of the question."""


def service(n: int, found: bool, said: str) -> dict[str, object]:
    """A question about a port, whose contexts hold the answer or do not."""
    held = f"Service {n} uses port {8000 + n}. It starts at boot." if found else f"Service {n} is written in Go."
    return {
        "id": f"port-{n:02}",
        "user_input": f"Which port does service {n} use?",
        "retrieved_contexts": [{"id": f"d{n}", "text": held}, {"id": f"x{n}", "text": "The office opens at nine."}],
        "response": said,
        "reference_context_ids": [f"d{n}"],
    }


BACKUP = {
    "id": "backup-1",
    "user_input": "How long are backups kept, and how are they encrypted?",
    "retrieved_contexts": [
        {"id": "a", "text": "The office opens at nine."},
        {"id": "b", "text": "Backups are kept for 21 days. Each is encrypted with AES-256. Tapes are not used."},
        {"id": "c", "text": "Old backups are kept in another city."},
        {"id": "d", "text": "Coffee is free."},
    ],
    "response": "Backups are kept for 21 days. They are encrypted with AES-512.",
    "reference_context_ids": ["b"],
}


def rows(worse: bool) -> list[dict[str, object]]:
    """The answers of one version of a system; the worse one retrieves and answers less."""
    found: list[dict[str, object]] = [BACKUP]
    for n in range(1, 30):
        right = n % 3 > 0 and not (worse and n % 2)
        said = f"Service {n} uses port {8000 + n}." if right or n % 6 == 0 else "Service uses port 80. It is fast."
        found.append(service(n, right or n % 5 == 0, "I do not know." if n == 9 else said))
    return found


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """A directory with two runs of a scripted judge, and two of the embedded judge."""
    place = Here(tmp_path_factory.mktemp("screens"))
    (place.path / "judge.py").write_text(JUDGE, encoding="utf-8")
    place.write("old.jsonl", rows(worse=False))
    place.write("new.jsonl", rows(worse=True))
    metrics = ("--metrics", "answering,context_sufficiency,context_relevance,faithfulness,id_recall,nDCG")
    for name in ("old", "new"):
        for judge, run in (("embedded", f"{name}-embedded"), ("judge.py:judge", name)):
            done = place.merilo("run", f"{name}.jsonl", *metrics, "--judge", judge, "--out", f"runs/{run}", "--quiet")
            assert done.returncode in {0, 4}, done.stderr
    labelled = place.merilo("label", "runs/old-embedded", "runs/new-embedded", stdin="0\n2\n" * 200)
    (place.path / "labelled.txt").write_text(labelled.stdout, encoding="utf-8")
    return place


COMMANDS = {
    "run": ("show", "runs/old"),
    "run-embedded": ("run", "new.jsonl", "--out", "runs/fresh", "--quiet"),
    "run-slices": ("show", "runs/old-embedded", "--by", "contexts"),
    "sample": ("show", "runs/old", "--sample", "backup-1"),
    "compare": ("compare", "runs/old", "runs/new"),
    "compare-labelled": ("compare", "runs/old-embedded", "runs/new-embedded"),
    "compare-unchecked": ("compare", "runs/old-embedded", "runs/new-embedded", "--judge-only"),
    "gate-drop": ("gate", "runs/new", "--baseline", "runs/old", "--max-drop", "0.05"),
    "gate-minimum": ("gate", "runs/new", "--min", "faithfulness=0.5"),
    "gate-no-baseline": ("gate", "runs/new", "--baseline", "runs/none", "--max-drop", "0.05", "--min", "nDCG=0.2"),
    "label": ("label", "runs/old", "runs/new", "--number", "20", "--out", "tasks.jsonl"),
}


@pytest.mark.parametrize(
    ("name", "width"), [*((each, 100) for each in COMMANDS), ("run", 80), ("compare-labelled", 80), ("gate-drop", 80)]
)
def test_a_screen_is_as_shown(here: Here, name: str, width: int) -> None:
    """At 100 columns each screen is the one in its file; three are readable at 80 too; all have at most 25 lines."""
    if name == "label":
        (here.path / "tasks.jsonl").unlink(missing_ok=True)
    shown = re.sub("judge_[0-9a-f]{8}", "judge", here.merilo(*COMMANDS[name], env={"COLUMNS": str(width)}).stdout)
    lines = shown.splitlines()
    assert len(lines) <= MAX_LINES
    assert all(len(line) <= width or "merilo " in line for line in lines)
    if width == 100:
        assert shown == (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


def test_the_end_of_labelling_names_where_the_judge_differs(here: Here) -> None:
    """After the last answer: how many labels, on how many the judge agrees, the worst ones and the next command."""
    end = (here.path / "labelled.txt").read_text(encoding="utf-8").partition("tasks labelled.\n")[2]
    assert end == (SCREENS / "labelled.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("primary", ["context_relevance", "id_recall"])
def test_the_heading_of_metrics_that_are_not_primary_is_complete(here: Here, primary: str) -> None:
    """No heading announces a reason that it does not have, and only a primary metric is proposed for labels."""
    runs = ("runs/old-embedded", "runs/new-embedded")
    shown = here.merilo("compare", *runs, "--judge-only", "--primary", primary).stdout
    assert "Not primary: no conclusion\n" in shown
    assert "because\n" not in shown
    assert {*re.findall(r"To decide: .*--metric (\w+)", shown)} <= {primary}


def test_a_row_over_fewer_pairs_has_their_number(here: Here) -> None:
    """Its means are not those of the runs; the terminal, Markdown and the report agree with the JSON."""
    runs = ("runs/old", "runs/new")
    found = json.loads(here.merilo("compare", *runs, "--json").stdout)
    pairs = {row["metric"]: row["pairs"] for row in found["comparisons"]}
    assert (found["common"], {metric for metric in pairs if pairs[metric] < 30}) == (30, {"faithfulness"})
    here.merilo("report", *runs, "--out", "compared.html")
    pages = [
        here.merilo("compare", *runs, env={"COLUMNS": "100"}).stdout,
        here.merilo("compare", *runs, "--markdown", "-").stdout,
        (here.path / "compared.html").read_text(encoding="utf-8"),
    ]
    assert re.search(r"faithfulness +0.7.* worse \(29 of 30 pairs\)\n", pages[0])
    assert "| worse (29 of 30 pairs) |" in pages[1]
    assert [page.count("29 of 30 pairs") for page in pages] == [1, 1, 1]


@pytest.mark.parametrize("run", ["old", "new", "old-embedded"])
def test_the_full_page_names_the_sample_to_read_first(here: Here, run: str) -> None:
    """The short page lists it first, the full page has the command that shows it."""
    first = here.merilo("show", f"runs/{run}").stdout.partition("Read first\n")[2].split()[0]
    named = re.findall(r"--sample (\S+)", here.merilo("show", f"runs/{run}", "--full").stdout)
    assert named == [first]


def test_unjudged_statements_are_visible(here: Here) -> None:
    """A statement that the judge did not judge has a question mark, its reason, and is in the first sentence."""
    here.write("blue.jsonl", [BACKUP | {"response": "Backups are kept for 21 days. They are blue."}])
    metrics = ("--metrics", "answering,faithfulness", "--judge", "judge.py:judge", "--max-failed", "1")
    assert here.merilo("run", "blue.jsonl", *metrics, "--out", "runs/blue", "--quiet").returncode == 0
    shown = here.merilo("show", "runs/blue", "--sample", "backup-1").stdout
    assert shown.startswith("Cannot tell: 1 of 2 statements is not judged.\n")
    assert re.search(r"\? 2  They are blue\.\s+not judged: It will not\.", shown)
    assert "No score   answering, faithfulness: failed (refused): It will not." in shown


def test_faults_are_the_same_in_terminal_and_json(here: Here) -> None:
    """The counts of the first sentence are those of `faults`; labels of whole samples give shares with intervals."""
    found = json.loads(here.merilo("show", "runs/old", "--json").stdout)
    sentence = here.merilo("show", "runs/old").stdout.splitlines()[0]
    for key, amount in found["faults"].items():
        assert f"{amount} {FAULTS[PLACES[key]].name.lower()}" in sentence
    assert found["faults_checked"] is False
    assert "fault_shares" not in found
