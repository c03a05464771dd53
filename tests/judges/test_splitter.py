"""The splitter judge: pysbd's sentences, from a process that may hang or die without harm."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from conversing import Talk
from each_case import each_case
from grouping import grouped
from judged_rivers import rows

import merilo
from merilo.commands.evaluate import preparation
from merilo.data.sample import Sample
from merilo.judges import splitter
from merilo.judges.splitter import SplitterJudge
from merilo.judging.ask import Answer, Plan, ask
from merilo.judging.kinds.measured import Sentences, TextsVerdict
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Card, Kinds, MetricDefaults, Score, Undefined

HANGS = "..[" + " ".join(["111"] * 30) + "]"
"""On this pysbd 0.3.4 needs years."""

WORKER = """
import json, os, sys, time
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    text = json.loads(line)
    """


async def cut(judge: SplitterJudge, *texts: str) -> tuple[Answer, ...]:
    """The answers to one question for each text, from one connection, one after another."""
    async with Talk() as talk:
        return tuple([(await talk.converse(judge, Sentences(text, "pysbd")))[0] for text in texts])


def worker(body: str) -> tuple[str, ...]:
    """The command of a worker with this body for each text."""
    return (sys.executable, "-c", WORKER + body)


@each_case(
    ("text", "pieces"),
    [
        ("", ()),
        ("  \n", ()),
        ("My name is Jonas E. Smith. Please turn to p. 55.", ("My name is Jonas E. Smith. ", "Please turn to p. 55.")),
        ("One.\nTwo!\r\nThree", ("One.\n", "Two!\r\n", "Three")),
        ("日本語。です。", ("日本語。", "です。")),
        ("Naïve café 😀. Ça va?", ("Naïve café 😀. ", "Ça va?")),
        ("nul \x00 byte. And more.", ("nul \x00 byte. ", "And more.")),
        ("A sign ∯ of its own. Kept.", ("Kept.",)),
    ],
)
async def test_it_cuts_as_pysbd_does(text: str, pieces: tuple[str, ...]) -> None:
    """Whitespace stays with its sentence, an empty text has none, and a sign that pysbd uses inside loses text."""
    assert await cut(SplitterJudge(), text) == (TextsVerdict(pieces),)


async def test_a_text_that_hangs_pysbd_fails_and_the_next_is_cut() -> None:
    """A text without end is given up after the time limit; the texts around it get their sentences."""
    began = time.monotonic()
    first, hung, last = await cut(SplitterJudge(timeout_s=1), "A b. D e.", HANGS, "One. Two.")
    assert time.monotonic() - began < 100
    assert first == TextsVerdict(("A b. ", "D e."))
    assert isinstance(hung, Failure)
    assert hung.kind is FailureKind.PERMANENT
    assert "pysbd was stopped after 1 s on a text of 123 characters" in hung.message
    assert last == TextsVerdict(("One. ", "Two."))


async def test_a_worker_that_dies_is_started_again() -> None:
    """A text on which it dies fails for now, so that the engine sends it again, and the next is cut."""
    body = """
    if text == 'deadly': os._exit(3)
    print(json.dumps({'texts': [text]}), flush=True)"""
    died, after = await cut(SplitterJudge(worker=worker(body)), "deadly", "harmless")
    assert isinstance(died, Failure)
    assert died.kind is FailureKind.TEMPORARY
    assert "died while it split a text of 6 characters" in died.message
    assert after == TextsVerdict(("harmless",))


async def test_an_error_of_the_splitter_is_told() -> None:
    """A text on which the splitter raises fails with its words; the worker stays."""
    body = """
    said = {'error': 'IndexError: no'} if text == 'bad' else {'texts': [str(os.getpid())]}
    print(json.dumps(said), flush=True)"""
    before, bad, after = await cut(SplitterJudge(worker=worker(body)), "x", "bad", "y")
    assert isinstance(bad, Failure)
    assert "IndexError: no" in bad.message
    assert before == after


async def test_another_splitter_is_refused() -> None:
    """A text to be cut by a splitter that is not there fails without a request."""
    conversation = SplitterJudge().answer(Sentences("One.", "spacy"))
    with pytest.raises(StopIteration) as stop:
        next(conversation)
    (answer,) = stop.value.value
    assert answer.message == "No sentence splitter 'spacy'; available: 'pysbd'."


def test_the_version_is_in_the_fingerprint() -> None:
    """Another pysbd, another key; the time limit is not in it."""
    found = SplitterJudge().fingerprint()
    assert found == SplitterJudge(timeout_s=1).fingerprint()
    assert found["provider"] == {
        "provider": "pysbd",
        "version": splitter.installed(),
        "language": "en",
        "clean": False,
    }


# ------------------------------------------------------------------------------------------- in a run


@dataclass(frozen=True, slots=True)
class CountsSentences(MetricDefaults):
    """The number of sentences of the response, for tests."""

    name = "made:sentences"
    version = 1
    range = (0.0, 1000.0)
    card = Card("How many sentences the response has.", family="made")
    needs = frozenset({"response"})
    asks = Kinds({Sentences})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        verdict = yield from ask(Sentences(sample.require("response"), "pysbd"))
        return Score(float(len(verdict.texts)))


def run(data: Sequence[dict[str, Any]], out: Path, **arguments: Any) -> merilo.Run:
    """A run of the metric above with the embedded judge."""
    return merilo.evaluate(data, **grouped(**{"metrics": [CountsSentences()], "out": out, "cache": False} | arguments))


def test_a_run_cuts_sentences_without_being_told_how(tmp_path: Path) -> None:
    """The splitter is there by default, is named in the manifest where it was asked, and costs no request."""
    data = [*rows(3), {"id": "hangs", "response": "One. Two."}]
    found = run(data, tmp_path / "run", cache=tmp_path / "cache.sqlite")
    assert found.metrics["made:sentences"].scored == 4
    assert list(found.manifest.judges) == ["judge", "splitter"]
    assert found.manifest.judges["splitter"]["name"] == "pysbd"
    assert found.usage["requests"] == 0
    assert found.usage["cost_usd"] == 0.0
    again = run(data, tmp_path / "again", cache=tmp_path / "cache.sqlite")
    assert again.usage["cached"] == 4


async def test_warnings_as_errors_do_not_reach_pysbd(monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python 3.12 on pysbd warns while it is compiled; a process that makes warnings errors still splits."""
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert await cut(SplitterJudge(), "One. Two.") == (TextsVerdict(("One. ", "Two.")),)


def test_without_pysbd_the_run_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric that needs sentences is refused before the first question, in one sentence."""

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(splitter, "version", missing)
    with pytest.raises(merilo.UsageError, match=r"its package pysbd.* is not installed \(pip install pysbd\)"):
        run(rows(1), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_limit_of_time_does_not_wait_for_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run stops while the splitter is busy, ends it, and can be resumed."""
    done, data = tmp_path / "done", [{"id": "1", "response": "One. Two."}]
    says = "print(json.dumps({'texts': [text]}), flush=True)"
    slow = SplitterJudge(timeout_s=90, worker=worker(f"time.sleep(60); open({str(done)!r}, 'w').close(); {says}"))
    monkeypatch.setattr(preparation, "SplitterJudge", lambda: slow)
    part = run(data, tmp_path / "run", max_seconds=1.0)
    assert not part.complete
    assert not done.exists()
    monkeypatch.setattr(preparation, "SplitterJudge", lambda: SplitterJudge(worker=worker(says)))
    assert run(data, tmp_path / "run").complete
