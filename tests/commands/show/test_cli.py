"""`merilo show`."""

import json
import re

from command_line import Here
from server import JudgeServer

HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 [bold]markup[/bold] :smile: bidi\u202eevil\u2066 "
    "hidden\u200b\U000e0041 c1\x9b2J over\rwritten"
)
DANGEROUS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")

TOWER = """\
sample tower

user input     When was the tower completed?
response       It was completed in 1889. It is made of stone.

Values
  context_relevance  0.500 (contexts 2, relevant 1, fully relevant 1, sentences
                     3, evidence sentences 1)
  faithfulness       0.500 (statements 2, supported 1, contradicted not
                     distinguished by this judge)
  context_precision  1.000 (contexts 2, relevant 1)

Context 1
  2 sentences
  relevance: grade 2 of 2, p(relevant) = 0.90. It names the year.
  1  It stands in Paris.
> 2  It was completed in 1889.

Context 2
  1 sentence
  relevance: grade 0 of 2. It does not help.
  1  Rome has seven hills.

Statements counted by faithfulness
  1  The tower was completed in 1889.
     support: supported by context 1. Word for word.
  2  The tower is made of stone.
     support: not supported

Questions asked: 6
  1.  relevance of context 1: grade 2 of 2, p(relevant) = 0.90
  2.  relevance of context 2: grade 0 of 2
  3.  noncommittal: answers
  4.  statements: 2 statements
  5.  support of The tower was completed in 1889.: supported by context 1
  6.  support of The tower is made of stone.: not supported
"""


def test_a_sample_is_explained(run: Here) -> None:
    """With --full a sample shows its texts, the marked evidence, verdicts with reasons, values and questions."""
    assert run.merilo("show", "out", "--sample", "tower", "--full").stdout == TOWER


def test_a_failed_sample_says_why(run: Here) -> None:
    """Where a question got no verdict, the context and the metric say what happened."""
    screen = run.merilo("show", "out", "--sample", "lost").stdout
    assert "No score   context_relevance, context_precision: failed (refused): It will not.\n" in screen
    shown = run.merilo("show", "out", "--sample", "lost", "--full").stdout
    assert "context_relevance  failed (refused): It will not." in shown
    assert "relevance: no verdict (refused): It will not." in shown


def test_a_sample_as_json(run: Here) -> None:
    """--json holds the sample, its outcomes, and each question with verdict or failure."""
    found = run.json("show", "out", "--sample", "lost")
    assert found["sample"]["response"] == "All is lost."
    assert found["outcomes"]["context_relevance"]["error"]["kind"] == "refused"
    assert [each["kind"] for each in found["asked"]] == ["relevance", "noncommittal", "statements", "support"]
    assert found["asked"][0]["failure"] == {"kind": "refused", "message": "It will not."}
    assert found["asked"][3]["verdict"]["label"] == "unsupported"


def test_the_worst_samples(run: Here) -> None:
    """--worst lists the lowest values first, and says how many samples have none."""
    shown = run.merilo("show", "out", "--worst", "2", "--metric", "faithfulness").stdout
    assert shown.startswith("faithfulness: the 2 lowest of 3 scored\nNot listed: 1 undefined and 0 failed")
    assert "  river  0.000  How long is the river?\n  lost   0.000  What is lost?\n" in shown
    assert shown.endswith("merilo show out --sample river\n")
    found = run.json("show", "out", "--worst", "5", "--metric", "context_precision")
    assert (found["metric"], found["undefined"], found["failed"]) == ("context_precision", 1, 1)
    assert [each["value"] for each in found["worst"]] == [0.0, 1.0]


def hostile_run(here: Here) -> str:
    """A run whose every text tries to steer the terminal; the sample's id."""
    name = "id\u202e\x1b[2J"
    sample = {
        "id": name,
        "user_input": HOSTILE,
        "retrieved_contexts": [{"text": HOSTILE, "id": "c\x1b[1m"}],
        "response": HOSTILE,
        "metadata": {"key\x1b[5m": HOSTILE},
    }
    here.write("data.jsonl", [sample])
    script = [
        {"kind": "relevance", "verdict": {"grade": 2, "evidence": [0], "reason": HOSTILE}},
        {"kind": "noncommittal", "failure": {"kind": "refused", "message": HOSTILE}},
        {"kind": "statements", "verdict": {"statements": [{"text": HOSTILE, "sentence": 0}]}},
        {"kind": "support", "verdict": {"label": "supported", "evidence": [0], "reason": HOSTILE}},
    ]
    here.write("script.jsonl", script)
    arguments = ("--judge", "scripted:script.jsonl", "--out", "out", "--max-failed", "1", "--quiet")
    assert here.merilo("run", "data.jsonl", *arguments).returncode == 0
    return name


def test_hostile_text_cannot_steer_the_terminal(here: Here) -> None:
    """Escape sequences, bidi and invisible signs are shown as codes, markup as it is written, in every view."""
    name = hostile_run(here)
    for arguments in (
        (),
        ("--full",),
        ("--sample", name),
        ("--sample", name, "--full"),
        ("--worst", "3", "--metric", "context_relevance"),
    ):
        for colours in ({}, {"FORCE_COLOR": "1", "TERM": "xterm-256color"}):
            shown = here.merilo("show", "out", *arguments, env=colours).stdout
            own = re.sub("\x1b\\[(0|1|2|31|32)m", "", shown) if colours else shown
            assert DANGEROUS.findall(own) == []
    shown = here.merilo("show", "out", "--sample", name, "--full").stdout
    assert "[bold]markup[/bold] :smile:" in " ".join(shown.split())
    assert "\\x1b[31mred\\x1b[0m" in shown
    assert "bidi\\u202eevil" in shown


def test_hostile_text_in_json_is_escaped_and_whole(here: Here) -> None:
    """JSON output holds the very text, but no sign in it that a terminal obeys."""
    name = hostile_run(here)
    printed = here.merilo("show", "out", "--sample", name, "--json").stdout
    assert DANGEROUS.findall(printed) == []
    assert json.loads(printed)["sample"]["user_input"] == HOSTILE


def test_a_huge_context_is_cut_to_its_evidence(here: Here) -> None:
    """Of a million characters the evidence is shown, and how much is not."""
    sentences = [f"Sentence number {n} speaks of nothing." for n in range(25_000)]
    sentences[12_345] = "The tower was completed in 1889."
    here.write("data.jsonl", [{"id": "big", "user_input": "When?", "retrieved_contexts": [" ".join(sentences)]}])
    here.write("script.jsonl", [{"kind": "relevance", "verdict": {"grade": 2, "evidence": [12_345]}}])
    run = here.merilo("run", "data.jsonl", "--judge", "scripted:script.jsonl", "--out", "out")
    assert run.returncode == 0, run.stderr
    shown = here.merilo("show", "out", "--sample", "big").stdout
    assert len(shown.splitlines()) < 10
    assert "1  \u203a The tower was completed in 1889.  + 24,999 sentences\n" in shown
    assert len(here.merilo("show", "out", "--sample", "big", "--full").stdout.splitlines()) > 25_000


def test_raw_replies_are_shown(here: Here) -> None:
    """A judge that was asked over the wire shows its rubric and its raw reply."""
    here.write("data.jsonl", [{"id": "a", "user_input": "Who?", "retrieved_contexts": ["A king."]}])
    with JudgeServer() as server:
        judge = ("--judge", "openai:test-model", "--base-url", server.base_url, "--metrics", "context_relevance")
        assert here.merilo("run", "data.jsonl", *judge, "--out", "out").returncode == 0
        assert server.count == 1
    shown = here.merilo("show", "out", "--sample", "a", "--full").stdout
    assert '"model": "test-model"' in shown
    assert "grade" in shown.partition('"texts"')[2].partition("Rubric")[0]
