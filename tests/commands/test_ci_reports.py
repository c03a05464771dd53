"""`--markdown`, `--github` and `--junit` of the commands, as a workflow runs them."""

import json
import re
from xml.etree import ElementTree as ET

import pytest
from command_line import Here

HOSTILE = "q1 | @you <b> `x`\n::error::no"


@pytest.fixture(scope="module")
def ci(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """A directory with the runs `old` (all found) and `new` (none of 30 found), whose ids would be markup."""
    here = Here(tmp_path_factory.mktemp("ci"))
    for name, found in (("old", "a"), ("new", "b")):
        rows = [
            {
                "id": HOSTILE if n == 0 else f"q{n}",
                "user_input": "Who?",
                "retrieved_context_ids": [found],
                "reference_context_ids": ["a"],
                "metadata": {"qrels": {"a": 1, "b": 0}},
            }
            for n in range(30)
        ]
        done = here.merilo("run", here.write(f"{name}.jsonl", rows), "--metrics", "id_recall", "--out", name)
        assert done.returncode == 0, done.stderr
    return here


def summary_of(here: Here, *words: str) -> tuple[int, str, str, str]:
    """Exit code, standard output, standard error and step summary of a command with --github."""
    path = here.path / "summary.md"
    path.unlink(missing_ok=True)
    done = here.merilo(*words, "--github", env={"GITHUB_STEP_SUMMARY": str(path)})
    return done.returncode, done.stdout, done.stderr, path.read_text(encoding="utf-8")


def test_a_gate_annotates_a_workflow(ci: Here) -> None:
    """A failed gate is one error; the summary has the largest drops; JSON on standard output stays one object."""
    words = ("gate", "new", "--baseline", "old", "--max-drop", "0.1", "--json")
    code, out, err, summary = summary_of(ci, *words)
    assert code == 1
    assert json.loads(out)["verdict"] == "fail"
    assert err.startswith(
        "::error title=merilo gate%3A fail::id_recall is worse: 1.000 to 0.000, -1.000 (95 %25 -1.000"
    )
    assert err.count("\n") == 1
    assert "| **fail** | ``id_recall is worse: 1.000 to 0.000, -1.000" in summary
    assert "1.000 -> 0.000" in summary


def test_no_text_of_data_is_markup_or_a_command(ci: Here) -> None:
    """Ids with tags, mentions and workflow commands are shown as code, on lines that start no command."""
    summary = summary_of(ci, "gate", "new", "--min", "id_recall=0.9")[3]
    outside = summary.replace("q1 | @you <b> `x` ::error::no  0.000", "")  # inside a fence
    assert "<b>" not in re.sub(r"(?<!`)``(?!`).*?(?<!`)``(?!`)", "", outside)  # or in a code span only
    assert not [line for line in summary.splitlines() if line.lstrip().startswith("::")]


def test_undecided_gates_warn_if_they_may_pass(ci: Here) -> None:
    """A gate that cannot tell is an error, or a warning with --cannot-tell pass."""
    words = ("gate", "new", "--min", "id_recall=0.05")
    assert summary_of(ci, *words)[2].startswith("::error title=merilo gate%3A cannot tell::")
    assert summary_of(ci, *words, "--cannot-tell", "pass")[2].startswith("::warning title=merilo gate%3A cannot tell::")


def test_junit_has_time_and_evidence(ci: Here) -> None:
    """The suite has the seconds of the evaluation; the failure's text has the deciding samples."""
    ci.merilo("gate", "new", "--baseline", "old", "--max-drop", "0.1", "--junit", "gates.xml")
    suite = ET.fromstring((ci.path / "gates.xml").read_text(encoding="utf-8"))  # noqa: S314  merilo wrote it
    seconds = json.loads((ci.path / "new" / "usage.json").read_text(encoding="utf-8"))["seconds"]
    assert suite.get("time") == f"{seconds:.3f}"
    text = suite.findtext("testcase/failure") or ""
    assert text.count("1.000 -> 0.000") == 3
    assert "user input  Who?" in text


def test_a_run_is_written_for_a_comment(ci: Here) -> None:
    """The commands run and show write the same Markdown; `-` prints nothing else."""
    done = ci.merilo("run", "old.jsonl", "--metrics", "id_recall", "--out", "third", "--markdown", "run.md")
    assert done.returncode == 0, done.stderr
    text = (ci.path / "run.md").read_text(encoding="utf-8")
    assert text.startswith("### `old: 30 samples, no judge`")
    assert re.search(r"^\| `id_recall` \| 1\.000 \| 0\.\d{3} - 1\.000 \| 30 \|  \|$", text, re.MULTILINE)
    assert ci.merilo("show", "third", "--markdown", "-").stdout == text


def test_failed_outcomes_and_limits_are_errors(ci: Here) -> None:
    """A run with too many failures annotates an error and exits with 4, after the report is written."""
    rows = [{"id": f"s{n}", "user_input": "Who?", "retrieved_contexts": ["Ann."]} for n in range(3)]
    ci.write("judged.jsonl", rows)
    ci.write("script.jsonl", [{"kind": "relevance", "failure": {"kind": "refused", "message": "No."}}])
    words = ("run", "judged.jsonl", "--judge", "scripted:script.jsonl", "--metrics", "context_relevance")
    code, _, err, summary = summary_of(ci, *words, "--quiet")
    assert code == 4
    assert "::error title=merilo run::3 of 3 outcomes failed." in err
    assert "| `context_relevance` | - |" in summary
