"""What a watch writes: exit codes, metrics, alarms, a page; and what it refuses."""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from axe import as_opened, violations
from browser import Browser
from command_line import Here
from watching import SETTINGS, learned, look, refused, row, write

from merilo.cli import outcome
from merilo.commands.watch.evidence import State
from merilo.commands.watch.report import FIELDS, prometheus_text, watch_page

HOSTILE = 'a"} 1\n\x1b[31m<script>alert(1)</script>\u202e\\'


@pytest.fixture
def here(tmp_path: Path) -> Here:
    found = Here(tmp_path)
    learned(found)
    return found


def drop(here: Here, first: int = 1_000, **more: object) -> None:
    write(here.path / "traffic.jsonl", first, 80, 0.3, **more)


def test_exit_codes_of_a_quiet_week_and_a_drop(here: Here) -> None:
    """0 without a change, 3 with too few new units, 1 at a drop and at each look after it."""
    write(here.path / "traffic.jsonl", 500, 30)
    assert look(here, 2)[0] == 0
    write(here.path / "traffic.jsonl", 600, 5)
    code, found = look(here, 2)
    assert (code, found["waiting"]) == (3, 5)
    said = " ".join(str(watch_page(found, 80)).split())
    assert "Learned days: 1 of 14, so cycles of a week are not known. A drop of less than about 0.2" in said
    assert look(here, 3)[0] == 0, "after a day they wait no longer"
    drop(here)
    code, found = look(here, 4)
    assert (code, found["state"]) == (1, State.SYSTEM)
    assert found["alarm"]["since"] in {"2026-11-03", "2026-11-04"}
    assert found["alarm"]["after"] == pytest.approx(0.3, abs=0.1)
    assert look(here, 5)[0] == 1


def test_questions_that_change_are_told_from_worse_answers(tmp_path: Path) -> None:
    """With --by, a topic that is harder and more frequent is a change of the questions; its name may be anything."""
    here = Here(tmp_path)
    path = here.path / "traffic.jsonl"
    write(path, 0, 300, 0.95, topic="easy")
    write(path, 300, 300, 0.3, topic=HOSTILE)
    more = ("--by", "topic", "--learn", "600", "--prometheus", "w.prom")
    look(here, 1, *more)
    write(path, 1_000, 500, 0.3, topic=HOSTILE)
    code, found = look(here, 2, *more)
    assert (code, found["state"]) == (1, State.QUESTIONS), found["alarm"]
    write(path, 2_000, 100, 0.0, topic=HOSTILE)
    text = here.merilo("watch", "traffic.jsonl", "--state", "prod", "--metrics", "id_recall", "--once", *more).stdout
    assert "\x1b" not in text
    page = here.merilo("report", "prod", "-o", "watch.html")
    assert page.returncode == 0, page.stderr
    html = (here.path / "watch.html").read_text()
    assert "<script>alert" not in html
    assert "alert(1)" in html
    check_prometheus(here.path / "w.prom")


def test_the_system_is_not_blamed_if_the_questions_changed(here: Here) -> None:
    """New questions that get bad answers: it cannot tell which changed, and shows those that differ most."""
    write(here.path / "traffic.jsonl", 1_000, 60, 0.9)
    write(here.path / "traffic.jsonl", 2_000, 120, 0.0, question="Who pays the bill of the hotel in Rome?")
    code, found = look(here, 2)
    assert (code, found["state"], found["alarm"]["between"]) == (3, State.CANNOT_TELL, ["system", "questions"])
    assert found["alarm"]["questions"][0] == "Who pays the bill of the hotel in Rome?"
    assert "cannot tell which. The questions changed, most of all: Who pays" in found["alarm"]["text"]


def page_of(here: Here) -> str:
    """Return the report on the watch."""
    page = here.merilo("report", "prod", "-o", "watch.html")
    assert page.returncode == 0, page.stderr
    return (here.path / "watch.html").read_text()


def test_the_page_has_an_axis_and_the_texts_of_the_worst_samples(here: Here) -> None:
    """Each worst sample has its question, response and place, none is of the reference; drawings have their days."""
    html = page_of(here)
    assert re.search(r"<span>01 Nov</span><span>0\.\d\d - [01]\.\d\d</span><span>01 Nov</span>", html)
    with (here.path / "traffic.jsonl").open("a") as file:
        for number in range(80):
            more = {"id": f"a {number}", "response": f"It is <b>{number}</b>."}
            print(json.dumps({**row(number, hit=False), **more}), file=file)
    look(here, 1)
    html = page_of(here)
    for shown in ("What is 0?", "It is &lt;b&gt;0&lt;/b&gt;.", "000002: a 0</span>"):
        assert shown in html
    assert "000001: r" not in html, "a row of the reference"
    assert re.search(r"<span>01 Nov</span><span>0\.\d\d - [01]\.\d\d</span><span>01 Nov</span>", html)


def check_prometheus(path: Path) -> None:
    """Check the text as Prometheus does, and its form."""
    text = path.read_text()
    sample = re.compile(r'merilo_watch_\w+(\{\w+="([^"\\\n]|\\.)*"(,\w+="([^"\\\n]|\\.)*")*\})? \S+')
    rows = [line for line in text.splitlines() if not line.startswith("#")]
    assert rows
    assert all(sample.fullmatch(each) for each in rows)
    assert len({each.rpartition(" ")[0] for each in rows}) == len(rows)


def test_promtool_accepts_the_metrics(here: Here) -> None:
    """With hostile topics, before and after an alarm, promtool has no complaint. Debian has it in `prometheus`."""
    if (program := shutil.which("promtool")) is None:
        pytest.skip("no promtool")
    for number, state in enumerate(("learning", "fallen")):
        write(here.path / f"{state}.jsonl", 0, 150 + 150 * number, topic=HOSTILE)
        look(here, 1, "--state", state, "--by", "topic", "--prometheus", "w.prom", source=f"{state}.jsonl")
        text = (here.path / "w.prom").read_text()
        done = subprocess.run([program, "check", "metrics"], input=text, text=True, check=False, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_metrics_for_prometheus(here: Here) -> None:
    """The file is what the node exporter reads; its state is absent while the watch learns, 1 at a drop."""
    drop(here)
    look(here, 2, "--prometheus", "watch.prom")
    check_prometheus(here.path / "watch.prom")
    assert "merilo_watch_state 1\n" in (here.path / "watch.prom").read_text()
    write(here.path / "new.jsonl", 0, 30)
    look(here, 2, "--state", "other", "--prometheus", "other.prom", source="new.jsonl")
    assert "merilo_watch_state" not in (here.path / "other.prom").read_text()
    check_prometheus(here.path / "other.prom")
    assert ".prom files only" in refused(here, "--prometheus", "watch.txt")
    assert "no/watch.prom cannot be written" in refused(here, "--prometheus", "no/watch.prom")


def test_an_alarm_calls_a_command_once(here: Here) -> None:
    """The command gets JSON and no shell; one that fails is called again at the next look."""
    (here.path / "told.py").write_text(
        "import json, sys\n"
        "open('told', 'a').write(json.load(sys.stdin)['state'] + sys.argv[1] + '\\n')\n"
        "sys.exit(len(open('told').readlines()) < 2)\n"
    )
    command = ("--on-alarm", f"{sys.executable} told.py '$(id); x'")
    drop(here)
    for day in (2, 3, 4):
        assert look(here, day, *command)[0] == 1
    assert (here.path / "told").read_text().splitlines() == [f"{State.SYSTEM}$(id); x"] * 2


def test_an_alarm_command_has_an_output_of_its_own(
    here: Here, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json there is one document on standard output; a command that hangs is ended with its children."""
    (here.path / "hangs.py").write_text(
        "import subprocess, time\nopen('pid', 'w').write(str(subprocess.Popen(['sleep', '60']).pid))\ntime.sleep(60)\n"
    )
    drop(here)
    assert look(here, 2, "--on-alarm", "sh -c 'echo told; exit 1'")[0] == 1, "`look` reads one document"
    monkeypatch.chdir(here.path)
    monkeypatch.setattr("merilo.commands.watch.cli._ALARM_S", 2)
    words = ["watch", "traffic.jsonl", "--state", "prod", *SETTINGS, "--now", "2026-11-03T06:00"]
    assert outcome([*words, "--on-alarm", f"{sys.executable} hangs.py"]) == 1
    assert "timed out after" in capsys.readouterr().err
    ended = Path("/proc", Path("pid").read_text(), "stat")
    for _ in range(500):
        if not ended.exists() or ended.read_text().split()[2] == "Z":
            return
        time.sleep(0.01)
    raise AssertionError("the child runs on")


def test_slices_with_equal_beginnings_stay_distinct(here: Here) -> None:
    """Labels are cut to 100 characters; two that differ later, or in characters that are cleaned, keep two labels."""
    names = ("x" * 100 + "a", "x" * 100 + "b", "\x1b", "\x1a")
    rows = [{"metric": "m", "slice": name, **dict.fromkeys(FIELDS, 0.5)} for name in names]
    found = {"counts": {}, "at": "2026-11-02T06:00:00Z", "learning": None, "state": State.NOTHING, "metrics": rows}
    labels = [line for line in prometheus_text(found).splitlines() if line.startswith("merilo_watch_mean{")]
    assert len(set(labels)) == 4


def test_nothing_listens_and_nothing_is_sent_by_the_embedded_judge(
    here: Here, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A look with the embedded judge opens no socket of the network."""
    opened: list[object] = []
    make = socket.socket.__init__

    def noted(self: socket.socket, family: int = -1, *rest: object, **named: object) -> None:
        if family in (socket.AF_INET, socket.AF_INET6):
            opened.append(family)
        make(self, family, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "__init__", noted)
    monkeypatch.chdir(here.path)
    rows = [{"id": f"e{n}", "question": "How high?", "contexts": [f"{n} m."], "answer": f"{n} m."} for n in range(20)]
    here.write("texts.jsonl", rows)
    words = ["watch", "texts.jsonl", "--state", "texts", "--metrics", "faithfulness", "--rate", "1", "--once"]
    assert outcome(words) == 3
    assert "20 judged" in capsys.readouterr().out
    assert opened == []


def test_a_rebase_begins_a_new_watch(here: Here) -> None:
    """The last days become the reference; a second rebase within a week is refused."""
    drop(here)
    look(here, 2)
    for day in (3, 4, 5):
        drop(here, day * 1_000)
        assert look(here, day)[0] == 1
    found = look(here, 6, "--rebase", "4d")[1]
    assert (found["state"], found["alarm"], found["reference_units"]) == (State.NOTHING, None, 320)
    assert "less than 7 days ago" in refused(here, "--rebase", "5d", day=7)
    assert look(here, 14, "--rebase", "12d")[1]["rebases"] != found["rebases"]


def test_a_run_can_be_the_reference(here: Here) -> None:
    """The scores of a sealed run are the reference at once; one that was changed is refused."""
    here.write("base.jsonl", [row(number, hit=number % 10 > 0) for number in range(300)])
    assert here.merilo("run", "base.jsonl", "--metrics", "id_recall", "--out", "base").returncode == 0
    for first in (1_000, 2_000):
        drop(here, first)
    code, found = look(here, 2, "--state", "other", "--baseline", "base")
    assert (code, found["reference_units"]) == (1, 300)
    (here.path / "base" / "outcomes.jsonl").write_text("{}\n")
    assert "base" in refused(here, "--state", "third", "--baseline", "base")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--learn", "50", "--state", "new"), "A reference needs at least 200 units"),
        (("--rate", "1.5"), "A share is a number from 0 to 1"),
        (("--settle", "soon"), "A time is a number with s, m, h or d"),
        (("--every", "9" * 17 + "d"), "up to 3650d"),
        (("--false-alarms", "2"), "should be less than or equal to 1"),
        (("--tolerance", "nan"), "Invalid value for '--tolerance'"),
        (("--max-cost", "inf"), "--max-cost must be from 0 to 1e+15, got inf"),
        (("--metrics", "reciprocal_rank"), "This watch has --metrics id_recall, got id_recall, reciprocal_rank"),
        (("--judge", "other.py:judge"), "The reference and this look are not comparable"),
    ],
)
def test_what_a_watch_refuses(here: Here, more: tuple[str, ...], message: str) -> None:
    """Each refusal is one sentence that names what to do."""
    (here.path / "other.py").write_text("async def judge(question):\n    return None\n")
    write(here.path / "traffic.jsonl", 5_000, 30)
    found = refused(here, *more)
    assert message in found
    assert found.count("\n") == 0


def test_failed_outcomes_give_no_verdict(here: Here) -> None:
    """More than a tenth failed: exit code 4; the look is left out."""
    rows = [{"id": f"e{n}", "question": "How?", "contexts": ["So."], "answer": "So."} for n in range(40)]
    here.write("texts.jsonl", rows)
    (here.path / "broken.py").write_text("async def judge(question):\n    raise ValueError('no')\n")
    words = ["watch", "texts.jsonl", "--state", "texts", "--metrics", "faithfulness", "--rate", "1", "--once", "--json"]
    words += ["--judge", "broken.py:judge", "--now"]
    codes = [here.merilo(*words, f"2026-11-0{day}T06:00") for day in (1, 2)]
    assert [each.returncode for each in codes] == [4, 3], codes[0].stderr
    assert json.loads(codes[0].stdout)["counts"]["judged"] == 0


def test_axe_finds_nothing_on_the_page(here: Here, browser: Browser, axe: str) -> None:
    """At 1440 and 390 pixels, light and dark, the page of an alarm has no violation and no overflow."""
    drop(here, topic=HOSTILE)
    look(here, 2)
    assert here.merilo("report", "prod", "-o", "watch.html").returncode == 0
    address = (here.path / "watch.html").as_uri()
    assert violations(browser, axe, address, [(as_opened, "html")]) == []
    for width in (1440, 390):
        browser.size(width)
        browser.visit(address)
        assert browser.run("document.documentElement.scrollWidth") == width
