"""A cascade as people type it: a check of the first judge, a plan, a run, and what it shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from server import JudgeServer

if TYPE_CHECKING:
    from command_line import Here

KEY = {"OPENAI_API_KEY": "sk-test"}
LABELS = [
    {"id": f"n{n}", "task": "sufficiency", "query": f"Is {n} known?", "context": f"Text {n}.", "label": 1}
    for n in range(80)
]
DATA = [
    {"id": n, "user_input": f"Is {n} {'known' if n < 70 else 'open'}?", "retrieved_contexts": [f"Text {n}."]}
    for n in range(100)
]
SCRIPT = (
    {
        "kind": "sufficiency",
        "match": {"user_input": {"contains": "known"}},
        "verdict": {"label": "sufficient", "probability": 0.96},
    },
    {"kind": "sufficiency", "verdict": {"label": "sufficient", "probability": 0.6}},
)


def test_from_a_check_to_a_run(here: Here) -> None:
    """The check gives the threshold; the run asks the model for the rest and the check; show tells both."""
    here.write("labels.jsonl", LABELS)
    here.write("script.jsonl", SCRIPT)
    here.write("data.jsonl", DATA)
    checked = here.merilo("judge", "check", "--judge", "scripted:script.jsonl", "--labels", "labels.jsonl", "--json")
    (here.path / "check.json").write_text(checked.stdout, encoding="utf-8")
    table = json.loads(checked.stdout)["cascade"]["sufficiency"]
    assert (table["sureness"], table["answered"], table["errors"]) == ([0.96], [80], [0])
    with JudgeServer() as server:
        words = ["data.jsonl", "--metrics", "context_sufficiency", "--judge", "scripted:script.jsonl>openai:m"]
        words += ["--base-url", server.base_url, "--cascade-check", "check.json", "--no-cache"]
        planned = json.loads(here.merilo("plan", *words, "--json").stdout)
        assert planned["cascades"]["scripted:script.jsonl>openai:m"] == {
            "questions": 100,
            "answered": 100,
            "checked": 50,
        }
        done = here.merilo("run", *words, "--out", "out", env=KEY)
        assert done.returncode == 0, done.stderr
        assert server.count == 30 + 50
    shown = here.json("show", "out")["cascades"][0]
    assert shown["kinds"]["sufficiency"]["answered"] == {"scripted:script.jsonl": 70, "openai:m": 30}
    assert shown["checked"]["agreeing"] == shown["checked"]["asked"] == 50
    assert "answered by scripted:script.jsonl 70, openai:m 30" in " ".join(done.stdout.split())


def test_wrong_use(here: Here) -> None:
    """A file that is of no check and an option without a cascade are told in one sentence, status 2."""
    here.write("data.jsonl", DATA)
    here.write("strange.jsonl", LABELS)
    done = here.merilo("run", "data.jsonl", "--judge", "embedded>openai:m", "--cascade-check", "strange.jsonl")
    assert done.returncode == 2
    assert "strange.jsonl" in done.stderr
    done = here.merilo("run", "data.jsonl", "--max-error", "1%")
    assert done.returncode == 2
    assert "are for cascades" in done.stderr
