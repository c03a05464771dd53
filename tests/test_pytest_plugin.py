"""The plugin for pytest, in test sessions of its own: runs shared by workers, gates as assertions, samples as tests."""

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
from command_line import KEPT

import merilo
from merilo.commands.verify.replay import State, verify_run

ROOT = Path(__file__).parent.parent

JUDGE = '''
import os
from pathlib import Path

def judge(question):
    """Grade contexts; leave one line per question, and die at the first one if asked to."""
    with open(os.environ["ASKED"], "a") as log:
        log.write(f"{question.sentences}\\n")
    dying = os.environ.get("DIE_ONCE")
    if dying and "Rome" in str(question) and not Path(dying).exists():
        Path(dying).touch()
        os._exit(1)
    return {"grade": 2, "evidence": [0]} if "1889" in str(question) else {"grade": 0}
'''
DATA = """\
{"id": "tower", "user_input": "When?", "retrieved_contexts": ["It was completed in 1889."]}
{"id": "rome", "user_input": "How many?", "retrieved_contexts": ["Rome has hills."]}
"""
USE = """
    import pytest
    from merilo import Storage

    @pytest.mark.parametrize("n", range(8))
    def test_run(merilo_run, n):
        storage = Storage(cache=False)
        run = merilo_run("data.jsonl", metrics=["context_relevance"], judge="judge.py:judge", storage=storage)
        assert run.metrics["context_relevance"].mean == 0.5
"""


@dataclass(frozen=True)
class Session:
    """A folder with tests, in which pytest runs with the plugin of this checkout or installation."""

    path: Path

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.path / name).write_text(dedent(text), encoding="utf-8")

    def pytest(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run pytest here; the plugin is found through the entry points of pyproject.toml."""
        entries = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
        lines = [f"{name} = {target}" for name, target in entries["pytest11"].items()]
        home = self.path / "site" / "entries_of_merilo-0.dist-info"
        home.mkdir(parents=True, exist_ok=True)
        (home / "METADATA").write_text("Metadata-Version: 2.1\nName: entries-of-merilo\nVersion: 0\n")
        (home / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines]) + "\n")
        (home / "RECORD").write_text("merilo/__init__.py,,\n")  # pytest then rewrites the modules, as if installed
        tested = Path(merilo.__file__).parent.parent
        own = {name: os.environ[name] for name in KEPT if name in os.environ}
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
            cwd=self.path,
            env={
                **own,
                "PYTHONPATH": os.pathsep.join(map(str, (home.parent, tested))),
                "ASKED": str(self.path / "asked.txt"),
                "MERILO_CACHE": str(self.path / "cache.sqlite"),
                **env,
            },
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=100,
        )

    def asked(self) -> list[str]:
        """Return the questions that the judge was asked."""
        path = self.path / "asked.txt"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A folder with data and a judge that logs its questions."""
    made = Session(tmp_path)
    made.write("pytest.ini", "[pytest]\n")
    made.write("judge.py", JUDGE)
    made.write("data.jsonl", DATA)
    return made


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_is_evaluated_once_for_all_workers(session: Session, workers: str) -> None:
    """Eight tests, in one process or in two workers, cost each question once; the summary shows the run once."""
    session.write("test_it.py", USE)
    done = session.pytest("-n", workers, "-q", "--basetemp", "base")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(session.asked()) == ["('It was completed in 1889.',)", "('Rome has hills.',)"]
    summary = done.stdout.partition("= merilo =")[2]
    assert summary.count("data: 2 samples") == 1
    assert "context_relevance  0.500" in " ".join(summary.split(" ")).replace("   ", "  ")


def test_a_worker_that_dies_leaves_the_run_to_the_next(session: Session) -> None:
    """The system releases the lock of a worker that died while evaluating; another worker finishes the run."""
    session.write("test_it.py", USE)
    done = session.pytest("-n", "2", "-q", DIE_ONCE=str(session.path / "died"))
    assert "1 failed, 7 passed" in done.stdout, done.stdout + done.stderr
    assert "crashed" in done.stdout
    assert session.asked().count("('Rome has hills.',)") == 2  # by the worker that died, and by the next one
    assert "data: 2 samples" in done.stdout


def test_other_options_and_other_content_are_other_runs(session: Session) -> None:
    """Another metric, changed content of the file, or another key is evaluated; equal calls are not."""
    session.write(
        "test_it.py",
        """
        def test_runs(merilo_run):
            rows = [{"id": "a", "retrieved_context_ids": ["x"], "reference_context_ids": ["x"]}]
            first = merilo_run(rows, metrics=["id_recall"])
            assert merilo_run(list(rows), metrics=["id_recall"]).path == first.path
            assert merilo_run(rows, metrics=["id_precision"]).path != first.path
            judged = merilo_run("data.jsonl", metrics=["context_relevance"], judge="judge.py:judge")
            with open("data.jsonl", "a") as more:
                more.write('{"id": "c", "user_input": "Who?", "retrieved_contexts": ["None."]}')
            again = merilo_run("data.jsonl", metrics=["context_relevance"], judge="judge.py:judge")
            assert (len(judged.samples), len(again.samples)) == (2, 3)
        """,
    )
    done = session.pytest("-q")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_failed_gate_shows_why(session: Session) -> None:
    """The message has the decision, the deciding sample and the judge's evidence; a gate that passes is returned."""
    session.write(
        "test_it.py",
        """
        from merilo.testing import assert_gate

        def test_gates(merilo_run):
            run = merilo_run("data.jsonl", metrics=["context_relevance"], judge="judge.py:judge")
            assert assert_gate(run, minimums={"context_relevance": 0.0}).passed
            assert_gate(run, minimums={"context_relevance": 0.9}, samples=1)
        """,
    )
    done = session.pytest("-q")
    assert done.returncode == 1
    message = done.stdout.partition("AssertionError: ")[2].partition("= merilo =")[0]
    assert message.startswith("cannot tell: 1 cannot tell, by the judge alone")
    assert "Samples that decide context_relevance:" in message
    assert "rome  0.000" in message
    assert "context 1: grade 0 of 2" in message
    assert "tower" not in message
    assert "deciding_text" not in done.stdout  # the traceback ends at the line of the test


def test_samples_are_test_cases(session: Session) -> None:
    """Each sample is one test with its id; an invalid record is an error."""
    session.write(
        "test_it.py",
        """
        import pytest
        from merilo.testing import samples

        @pytest.mark.parametrize("sample", samples("data.jsonl"))
        def test_contexts(sample):
            assert "1889" in sample.contexts[0].text
        """,
    )
    done = session.pytest("-v")
    assert "test_contexts[tower] PASSED" in done.stdout
    assert "test_contexts[rome] FAILED" in done.stdout
    session.write("data.jsonl", '{"id": 7, "user_input": 3}\n')
    broken = session.pytest("-q")
    assert broken.returncode == 2
    assert "DataError: data.jsonl: " in broken.stdout


ASSERTED = """
    import pytest
    from merilo.compat.deepeval import LLMTestCase, assert_test
    from merilo.compat.deepeval.metrics import ContextualRelevancyMetric

    @pytest.mark.parametrize("year", range(1880, 1886))
    def test_year(year):
        texts = [f"It was completed in {year}."] if year % 2 else ["Rome has hills."]
        case = LLMTestCase(input="When?", actual_output=f"In {year}.", retrieval_context=texts)
        assert_test(case, [ContextualRelevancyMetric(threshold=0.5, model="judge.py:judge")])
"""
SENTENCES = """
    import json
    import os

    def judge(question):
        verdict = "yes" if "was completed in" in str(question) else "no"
        statement = {"verdict": verdict, "statement": "It is so.", "reason": "It is."}
        return {"text": json.dumps({"verdicts": [statement], "reason": "It is."})}
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_all_assertions_of_a_session_are_one_run(session: Session, workers: str) -> None:
    """In one process or in two workers, the run has one sample per test under its id, and its report is named."""
    session.write("judge.py", SENTENCES)
    session.write("test_it.py", ASSERTED)
    (session.path / "temp").mkdir()
    done = session.pytest("-n", workers, "-q", TMPDIR=str(session.path / "temp"))
    assert "3 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    (folder,) = (session.path / ".merilo" / "runs").iterdir()
    assert f"Report: merilo report .merilo/runs/{folder.name}\n" in done.stdout.partition("= merilo =")[2]
    run = merilo.Run.open(folder)
    assert [each.sample.id for each in run.samples] == [f"test_it.py::test_year[{year}]" for year in range(1880, 1886)]
    assert run.values("deepeval-4.3.1:contextual_relevancy") == [0, 1] * 3
    assert verify_run(folder).state is State.VERIFIED
    assert not [*(session.path / "temp").glob("merilo*")]


def test_tests_with_other_metrics_are_other_runs(session: Session) -> None:
    """A second test case in a test gets a number, other metrics get a run, and a session without any gets none."""
    session.write("judge.py", SENTENCES)
    session.write(
        "test_it.py",
        """
        from merilo.compat.deepeval import LLMTestCase, assert_test
        from merilo.compat.deepeval.metrics import ContextualRelevancyMetric

        TEXT = "It was completed in 1889."
        CASE = LLMTestCase(input="When?", actual_output="In 1889.", retrieval_context=[TEXT])

        def test_two():
            for _ in range(2):
                assert_test(CASE, [ContextualRelevancyMetric(model="judge.py:judge")])

        def test_other():
            assert_test(CASE, [ContextualRelevancyMetric(model="embedded", threshold=0.0)])

        def test_nothing():
            pass
        """,
    )
    done = session.pytest("-q")
    assert done.returncode == 0, done.stdout + done.stderr
    runs = [merilo.Run.open(path) for path in (session.path / ".merilo" / "runs").iterdir()]
    assert done.stdout.count("Report: merilo report") == len(runs) == 2
    ids = sorted([each.sample.id for each in run.samples] for run in runs)
    assert ids == [["test_it.py::test_other"], ["test_it.py::test_two", "test_it.py::test_two 2"]]
    done = session.pytest("-q", "-k", "nothing")
    assert "merilo" not in done.stdout


def test_the_plugin_does_nothing_until_it_is_used(session: Session) -> None:
    """Without the fixture, pytest imports three small modules of merilo, makes no folder and shows no section."""
    session.write(
        "test_it.py",
        """
        import sys

        def test_modules(request):
            assert request.config.pluginmanager.get_plugin("merilo").__name__ == "merilo.pytest_plugin"
            assert {name for name in sys.modules if name.partition(".")[0] == "merilo"} == {
                "merilo", "merilo.lazy", "merilo.pytest_plugin"
            }
            assert not {"numpy", "pydantic", "typer", "rich"} & set(sys.modules)
        """,
    )
    done = session.pytest("-q", "--basetemp", "base")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "merilo" not in done.stdout
    assert not (session.path / "base").exists()
