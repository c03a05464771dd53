"""`merilo diagnose` on an application with planted faults: effects, causes, screens, files, and its readers."""

import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Here
from server import Asked, JudgeServer

import merilo
from merilo.commands.diagnose.page import Diagnosis
from merilo.errors import LimitReached
from merilo.stats.diagnosis import Arm

EXAMPLE = Path(__file__).parents[3] / "examples" / "diagnose_app.py"
APP = runpy.run_path(str(EXAMPLE))
FAULTS = {"missing": "evidence missing", "cut": "wording of the chunk", "order": "order", "condition": "not retrieval"}
WORDS = ("--right", "app.py:right", "--each", "20", "--out", "out", "--quiet")
CALLS = 1 + 5 * 40


def prepared(path: Path, number: int = 40) -> Here:
    here = Here(path)
    path.mkdir(exist_ok=True)
    shutil.copy(EXAMPLE, path / "app.py")
    here.write("questions.jsonl", APP["questions"]()[:number])
    return here


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """A directory with a finished diagnosis of the example in `out`."""
    here = prepared(tmp_path_factory.mktemp("diagnosis"))
    done = here.merilo("diagnose", "app.py:answer", "questions.jsonl", *WORDS)
    assert done.returncode == 0, done.stderr
    return here


def record(here: Here, *words: str) -> Any:  # Any: JSON
    done = here.merilo(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_planted_fault_is_named(made: Here) -> None:
    """The four kinds of failures have their causes; answers that are right by every draw are not examined."""
    causes = record(made, "show", "out")["causes"]
    planted = {each["id"]: FAULTS.get(each["metadata"]["fault"]) for each in APP["questions"]()}
    assert {id_: each["cause"] for id_, each in causes.items()} == {id_: each for id_, each in planted.items() if each}


def test_the_page_goes_from_documents_to_causes_in_five_commands(tmp_path: Path) -> None:
    """The commands of the documentation name the four planted faults; the first samples of the export have them."""
    here = Here(tmp_path)
    shutil.copy(EXAMPLE, tmp_path)
    page = EXAMPLE.parents[1].joinpath("docs", "diagnose.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ (.*)$", page.split("```console")[1].split("```")[0], re.MULTILINE)
    assert len(commands) == 5
    for program, *words in map(shlex.split, commands):
        if program == "merilo":
            assert here.merilo(*words).returncode == 0, words
        else:
            subprocess.run([sys.executable, *words], cwd=tmp_path, check=True)
    shown = "16 failing questions: 4 evidence missing, 4 wording of the chunk, 4 order, 4 not retrieval."
    assert shown in page
    assert shown in " ".join(here.merilo("show", "diagnosis").stdout.split())
    causes = record(here, "show", "diagnosis")["causes"]
    faults = {f"m{number:02}": APP["fault_of"](number) for number in range(APP["MACHINES"])}
    assert all(each["cause"] == FAULTS[faults[id_.partition(":")[0]]] for id_, each in causes.items())
    assert (tmp_path / "causes.csv").read_text(encoding="utf-8").count(",order,") >= 4 * 5


def test_the_effects_are_those_of_the_faults(made: Here) -> None:
    """Of 40 questions, retrieval loses 8, the order 4, and 4 stay wrong with nothing but the evidence."""
    found = record(made, "show", "out")
    effects = found["effects"]
    assert found["right"] == pytest.approx(24 / 40)
    assert effects["evidence always there"]["difference"] == pytest.approx(8 / 40)
    assert effects["evidence always there"]["verdict"] == "better"
    assert effects["only the evidence"]["difference"] == pytest.approx(12 / 40)
    assert effects["other passages"]["difference"] == pytest.approx(4 / 40)
    assert effects["placebo"]["difference"] == 0
    assert effects["evidence to the top"]["difference"] == pytest.approx(4 / 40)
    assert (found["stay_wrong"], found["no_context"], found["failed"]) == (4, 0, 0)


def test_the_screen_has_twenty_lines(made: Here) -> None:
    """The page fits a small terminal, and `print` shows what the command shows."""
    done = made.merilo("show", "out")
    assert len(done.stdout.splitlines()) <= 20
    printed = str(Diagnosis(made.path / "out")).replace(str(made.path / "out"), "out")
    assert printed.split() == done.stdout.split(), "only the line breaks around the path may differ"
    assert "placebo: no answer changed." in " ".join(printed.split())


def test_all_causes_and_each_question_are_shown(made: Here) -> None:
    """--full and Markdown have every cause, --sample the answers and contexts of a question; slices are refused."""
    for words in (("--full",), ("--markdown", "-")):
        text = made.merilo("show", "out", *words).stdout
        assert all(each["id"] in text for each in APP["questions"]() if each["metadata"]["fault"] in FAULTS)
    text = made.merilo("show", "out", "--sample", "m01").stdout
    case = record(made, "show", "out", "--sample", "m01")
    assert case["reference"] in text
    assert all(f"\n{arm} " in text for arm in case["right"])
    assert all(" ".join(each["answer"].split()) in " ".join(text.split()) for each in case["draws"])
    by = made.merilo("show", "out", "--by", "form")
    assert (by.returncode, "A diagnosis has no slices" in by.stderr) == (2, True)


def test_the_report_has_the_effects_and_the_answers(made: Here) -> None:
    """The page has a bar for each effect, and the answers of each failure side by side."""
    assert made.merilo("report", "out", "-o", "report.html").returncode == 0
    text = (made.path / "report.html").read_text(encoding="utf-8")
    assert text.count("<svg") == 5
    assert text.count("<details") == 16 + text.count("Contexts: ")
    assert text.count("Reference: ") == 16
    assert all(each["id"] in text for each in APP["questions"]() if each["metadata"]["fault"] in FAULTS)
    assert "evidence missing" in text
    assert "4 × ✗" in text or "× ✗" in text


def test_causes_are_in_the_export_and_in_the_report_of_a_run(made: Here) -> None:
    """Each sample of an examined question has its cause: in the export, and in the report of any run over it."""
    assert made.merilo("export", "out", "-o", "out.jsonl").returncode == 0
    rows = [json.loads(line) for line in (made.path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    planted = {each["id"]: FAULTS.get(each["metadata"]["fault"]) for each in APP["questions"]()}
    assert [each["cause"] for each in rows] == [planted[each["question"]] for each in rows]
    missing = next(each for each in rows if each["cause"] == "evidence missing")
    assert (0 < missing["cause_p"] <= 0.05, missing["cause_right"][:13]) == (True, "unchanged 0/4")
    both = merilo.report(made.path / "out", made.path / "out", out=made.path / "both.html").read_text("utf-8")
    assert "4 evidence missing, 4 wording of the chunk, 4 order, 4 not retrieval." in both, "once a question"
    answers = [{**each, "response": APP["answer"](each["user_input"])[0]} for each in APP["questions"]()]
    merilo.evaluate(answers, ["answer_correctness"], out=made.path / "answers")
    text = merilo.report(made.path / "answers", made.path / "out", out=made.path / "causes.html").read_text("utf-8")
    assert "4 evidence missing, 4 wording of the chunk, 4 order, 4 not retrieval." in text
    assert text.count("cause: wording of the chunk") == 4
    assert "cause: " not in merilo.report(made.path / "answers", out=made.path / "plain.html").read_text("utf-8")


def test_other_commands_read_the_directory(made: Here) -> None:
    """It is a run: a sample for each question and arm, with a seal."""
    assert "Response" in made.merilo("show", "out", "--sample", "m01/placebo").stdout
    assert "every file is as merilo wrote it" in made.merilo("runs", "verify", "out").stdout
    assert len(merilo.Run.open(made.path / "out")) == 200


def test_a_repeated_command_calls_nothing(made: Here, tmp_path: Path) -> None:
    """The stored answers are used, and equal answers give equal bytes."""
    again = tmp_path / "again"
    shutil.copytree(made.path, again)
    done = Here(again).merilo("diagnose", "app.py:answer", "questions.jsonl", *WORDS)
    assert done.returncode == 0, done.stderr
    for name in ("outcomes.jsonl", "summary.json", "calls/answers.jsonl"):
        assert (again / "out" / name).read_bytes() == (made.path / "out" / name).read_bytes()
    (again / "app.py").write_text(EXAMPLE.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    done = Here(again).merilo("diagnose", "app.py:answer", "questions.jsonl", *WORDS)
    assert (done.returncode, "answers of another application" in done.stderr) == (2, True), "its file has changed"


def test_more_failures_use_the_same_calls(tmp_path: Path) -> None:
    """A larger number of failures continues with the answers that are stored, and a limit of calls stops it."""
    data = APP["questions"]()
    options = {"right": APP["right"], "out": tmp_path / "out"}
    first = merilo.diagnose(APP["answer"], data, each=2, **options)
    assert len(first.causes) == 2
    made = len(calls(tmp_path))
    with pytest.raises(LimitReached, match="--max-calls"):
        merilo.diagnose(APP["answer"], data, each=5, max_calls=made + 3, **options)
    assert len(calls(tmp_path)) == made + 3
    more = merilo.diagnose(APP["answer"], data, each=5, **options)
    assert {*first.causes} < {*more.causes}
    chosen = merilo.diagnose(APP["answer"], data, ids=["m07"], **options)
    assert [each.cause for each in chosen.causes.values()] == ["not retrieval"]


def calls(path: Path) -> list[str]:
    return (path / "out" / "calls" / "answers.jsonl").read_text(encoding="utf-8").splitlines()


def test_the_plan_counts_calls_and_sends_nothing(tmp_path: Path) -> None:
    """Calls of both levels and the requests of the judge are counted; nothing is written."""
    here = prepared(tmp_path)
    words = ("diagnose", "app.py:answer", "questions.jsonl", "--judge", "openai:gpt-4.1-mini", "--each", "10", "--plan")
    found = record(here, *words)
    assert found["calls"] == {"level_1": CALLS, "level_2": 200, "level_2_at_most": 280}
    assert found["judge"]["samples"] == 400
    assert not (tmp_path / ".merilo").exists()
    page = " ".join(here.merilo(*words).stdout.split())
    assert "questions: 400 answers, to be judged by" in page
    assert "Calls of the application: 201 for 40 questions, then about 200 (at most 280) for causes." in page
    assert "A true gain of 14 right answers in 100 is shown in about" in page


def test_two_functions_are_an_application(made: Here, tmp_path: Path) -> None:
    """Retrieval and generation apart give the same result."""
    here = prepared(tmp_path)
    words = ("--retrieve", "app.py:search", "--generate", "app.py:write")
    done = here.merilo("diagnose", "questions.jsonl", *words, *WORDS, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == record(made, "show", "out")


def test_labels_correct_the_effects(tmp_path: Path) -> None:
    """The tasks are whole questions in all arms, without contexts; their labels correct every effect."""
    here = prepared(tmp_path)
    wrong = "\n\ndef lenient(answer, sample):\n    return bool(re.findall(r'[0-9]+ days', answer))\n"
    (tmp_path / "app.py").write_text(EXAMPLE.read_text(encoding="utf-8") + wrong)
    words = ("diagnose", "app.py:answer", "questions.jsonl", "--right", "app.py:lenient", "--out", "out", "--quiet")
    assert here.merilo(*words).returncode == 0
    before = record(here, "show", "out")
    assert here.merilo("label", "out", "--number", "30", "--out", "tasks.jsonl").returncode == 0
    tasks = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(tasks) == 30 * 5
    assert tasks[0]["question"] == "Is the response right by the reference? 1 if it is, 0 if it is not."
    assert not any("retrieved_contexts" in each or "contexts" in each for each in tasks), "they would show the arm"
    for each in tasks:
        each["label"] = str(int(APP["right"](each["response"], SimpleNamespace(reference=each["reference"]))))
    here.write("tasks.jsonl", tasks)
    assert here.merilo("label", "out", "--labels", "tasks.jsonl").returncode in {0, 3}
    after = record(here, "show", "out")
    assert after["labelled"] == 150
    assert before["right"] == pytest.approx(32 / 40)
    assert after["right"] == pytest.approx(24 / 40, abs=0.08)
    assert after["effects"]["only the evidence"]["difference"] > before["effects"]["only the evidence"]["difference"]


def test_data_without_evidence_is_refused() -> None:
    """The message counts what the records lack."""
    with pytest.raises(merilo.DataError, match="1 record without evidence, 1 record without reference"):
        merilo.diagnose(
            APP["answer"],
            [{"id": 1, "user_input": "a?", "reference": "b"}, {"id": 2, "user_input": "a?"}],
        )


def test_questions_of_merilo_are_data(tmp_path: Path) -> None:
    """The output of `merilo questions` is read; twins, which have no evidence, are left out."""
    rows = [
        row
        for each in APP["questions"]()
        for row in (
            {**each, "metadata": {"kind": "question", "contexts": ["x"], "document": "d"}},
            {"id": f"{each['id']}:without", "user_input": each["user_input"], "metadata": {"kind": "twin"}},
        )
    ]
    found = merilo.diagnose(APP["answer"], rows, right=APP["right"], out=tmp_path / "out")
    assert len(found.questions) == 40


def test_clusters_widen_the_intervals(tmp_path: Path) -> None:
    """Questions of one document count as one cluster."""
    rows = [{**each, "metadata": {"document": f"d{at // 4}"}} for at, each in enumerate(APP["questions"]())]
    found = merilo.diagnose(APP["answer"], rows, right=APP["right"], cluster="document", out=tmp_path / "out")
    assert found.effects["placebo"].comparison.clusters == 10
    assert found.rate(Arm.NONE) == 0


def test_the_embedded_judge_alone_tells_nothing(tmp_path: Path) -> None:
    """Its effects are cannot tell until labels exist; the judge sees neither contexts nor arm."""
    found = merilo.diagnose(APP["answer"], APP["questions"]()[:20], out=tmp_path / "out")
    assert {each.verdict for each in found.effects.values()} == {"cannot tell"}
    assert "no one has checked the judge" in " ".join(str(found).split())
    assert all(each.sample.retrieved_contexts is None for each in found.run.samples)


def judges(asked: Asked) -> object:
    """A judge that finds a statement supported if its number of days occurs in the text."""
    if asked.kind != "support":
        return None
    statement, *texts = (set(re.findall(r"\d+ days", each)) for each in asked.user.split("<<<statement")[::-1])
    return "supported" if statement and statement <= set().union(*texts) else "not_stated"


def test_a_judge_over_http_decides_within_its_limit(tmp_path: Path) -> None:
    """A limit of requests stops the diagnosis with 5; the same command with a higher one gives the same bytes."""
    here, other = prepared(tmp_path, 10), prepared(tmp_path / "other", 10)
    with JudgeServer(judges) as server:
        words = ("diagnose", "app.py:answer", "questions.jsonl", "--judge", "openai:m", "--base-url", server.base_url)
        words = (*words, "--each", "2", "--out", "out", "--no-cache", "--quiet")
        key = {"OPENAI_API_KEY": "sk-test"}
        stopped = here.merilo(*words, "--max-requests", "60", env=key)
        assert (stopped.returncode, "limit" in stopped.stderr.lower()) == (5, True), stopped.stderr
        assert here.merilo(*words, env=key).returncode == 0
        spent = server.count
        assert other.merilo(*words, env=key).returncode == 0
        assert server.count == 2 * spent
    found = record(here, "show", "out")
    assert found["right"] == pytest.approx(6 / 10)
    assert {each["cause"] for each in found["causes"].values()} <= {*FAULTS.values()}
    for name in ("outcomes.jsonl", "summary.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "other" / "out" / name).read_bytes()
