"""A judge per kind of question, as people type it: with the commands that run, show, repeat and test judges."""

import pytest
from command_line import SAMPLES, SCRIPT, Here

import merilo

ROUTES = ("--judge", "relevance,sufficiency=scripted:script.jsonl", "--judge", "embedded")
NAME = "relevance,sufficiency=scripted:script.jsonl; rest=embedded"
SUFFICIENT = {"kind": "sufficiency", "verdict": {"label": "sufficient", "probability": 0.8}}


@pytest.fixture
def routed(here: Here) -> Here:
    """A directory with data.jsonl and script.jsonl."""
    here.write("data.jsonl", [each for each in SAMPLES if each["id"] != "lost"])
    here.write("script.jsonl", [*SCRIPT, SUFFICIENT])
    return here


def test_every_command_takes_the_routes(routed: Here) -> None:
    """A routed run is planned, made, shown, replayed, verified and compared like any other."""
    metrics = ("--metrics", "context_relevance,context_sufficiency,faithfulness")
    assert routed.json("run", "--plan", "data.jsonl", *ROUTES, *metrics)["judge"] == NAME
    done = routed.merilo("run", "data.jsonl", *ROUTES, *metrics, "--out", "out")
    assert done.returncode == 0, done.stderr
    assert f"By {NAME}, " in done.stdout.replace("\n", " ")
    shown = routed.merilo("show", "out", "--sample", "tower", "--full")
    assert "It names the year." in shown.stdout
    assert routed.merilo("runs", "verify", "out").returncode == 0
    again = routed.merilo("run", "data.jsonl", *reversed_routes(), *metrics, "--out", "out")
    assert again.returncode == 0, again.stderr
    other = routed.merilo("run", "data.jsonl", *ROUTES, *metrics, "--out", "again", "--no-cache")
    assert other.returncode == 0
    assert routed.merilo("compare", "out", "again").returncode == 0
    assert routed.merilo("run", "data.jsonl", "--judge", "embedded", *metrics, "--out", "alone").returncode == 0
    refused = routed.merilo("compare", "out", "alone")
    assert refused.returncode == 2
    assert f"the judge is {NAME} there and embedded here" in refused.stderr


def reversed_routes() -> tuple[str, ...]:
    """The same routing in other words."""
    script = "scripted:script.jsonl"
    return ("--judge", "rest=embedded", "--judge", f"sufficiency={script}", "--judge", f"relevance={script}")


def test_the_project_file_lists_routes(routed: Here) -> None:
    """`judge` in merilo.toml is a list of the same texts, and `merilo runs config` shows it."""
    text = 'judge = ["relevance,sufficiency=scripted:script.jsonl", "embedded"]\n'
    (routed.path / "merilo.toml").write_text(text, encoding="utf-8")
    done = routed.merilo("run", "data.jsonl", "--metrics", "context_relevance", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert merilo.Run.open(routed.path / "out").manifest.judges["judge"]["name"] == NAME
    assert "relevance,sufficiency=scripted:script.jsonl" in routed.merilo("runs", "config").stdout


def test_judges_are_tested_by_route(routed: Here) -> None:
    """`judge check` takes routes as one judge."""
    label = {"source": "ours", "task": "sufficiency", "label": 1}
    routed.write("ours.jsonl", [{**label, "id": n, "query": f"Is {n} known?", "context": f"{n}."} for n in range(12)])
    words = ("judge", "check", "sufficiency=scripted:script.jsonl", "rest=embedded", "--labels", "ours.jsonl")
    checked = routed.json(*words, "--task", "sufficiency", "--task", "trial")
    assert checked["judge"]["name"] == "sufficiency=scripted:script.jsonl; rest=embedded"
    assert checked["kinds"]["sufficiency"]["works"] is True
