"""From an empty machine to a checked local judge, with the installed command: download, check, run."""

import json

import pytest
from command_line import Here
from hub_server import HubServer
from tiny_models import RERANKER_CARD, reranker

NAME = "org/name"
GOLDEN = """
[[golden]]
premise = "The tower is in Paris."
query = "Paris?"
logits = [{logit}]
"""
CONTEXT = "The Eiffel tower was completed in 1889 in Paris."
CLEAR_YES, CLEAR_NO, OPEN_YES, OPEN_NO = (
    "Was the Paris tower of 1889 seen by",
    "Is Rome near",
    "Does it last",
    "Does it fall",
)
QUERIES = [
    f"{(CLEAR_YES, CLEAR_NO, OPEN_YES, CLEAR_YES, CLEAR_NO, OPEN_NO)[number % 6]} n{number}?" for number in range(240)
]
"""The model is certain about two thirds of them, and has no opinion on the others."""
SCRIPT = [
    {
        "kind": "sufficiency",
        "match": {"user_input": {"contains": start}},
        "verdict": {"label": label, "probability": probability},
    }
    for start, label, probability in (
        (CLEAR_YES, "sufficient", 0.9),
        (OPEN_YES, "sufficient", 0.9),
        (CLEAR_NO, "insufficient", 0.1),
        (OPEN_NO, "insufficient", 0.1),
    )
]


def prepare(here: Here, *, logit: float) -> dict[str, str]:
    """Write data, labels, the other judge and the card, whose golden pair has this logit; return the environment."""
    here.write("rows.jsonl", [{"user_input": each, "retrieved_contexts": [CONTEXT]} for each in QUERIES])
    labels = [
        {"task": "sufficiency", "query": each, "context": CONTEXT, "label": int(each.startswith((CLEAR_YES, OPEN_YES)))}
        for each in QUERIES
    ]
    here.write("ours.jsonl", labels)
    here.write("script.jsonl", SCRIPT)
    home = here.path / "judges" / "org--name"
    home.mkdir(parents=True)
    (home / "judge.toml").write_text(RERANKER_CARD + GOLDEN.format(logit=logit), encoding="utf-8")
    return {"HF_HUB_CACHE": str(here.path / "hub"), "MERILO_JUDGES": str(here.path / "judges")}


def fetch(here: Here, env: dict[str, str], *more: str) -> tuple[int, str, str]:
    """Fetch the model from a hub that exists only meanwhile; the return code, the output and the messages."""
    made = reranker(here.path / "made")
    with HubServer() as hub:
        hub.add(NAME, {each.name: each.read_bytes() for each in made.iterdir() if each.suffix != ".toml"})
        done = here.merilo(
            "judge", "check", f"local:{NAME}", "--yes", "--quiet", *more, env={**env, "HF_ENDPOINT": hub.url}
        )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def fetched(here: Here) -> dict[str, str]:
    """The environment after a successful fetch; the hub is gone."""
    env = prepare(here, logit=2.0)
    code, out, message = fetch(here, env, "--labels", "ours.jsonl")
    assert code == 0, message
    assert "Golden logits agree (1 pairs" in " ".join(out.split())
    return {**env, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "1"}


def test_the_agreement_is_in_reports_and_on_the_disk(here: Here, fetched: dict[str, str]) -> None:
    """`run` and `show` work without the hub, and print the agreement that the check measured."""
    done = here.merilo(
        "run", "rows.jsonl", "--judge", f"local:{NAME}", "--metrics", "context_sufficiency", "--out", "out", env=fetched
    )
    assert done.returncode == 0, done.stderr
    assert "stimated" not in done.stderr  # less than a minute of work is not estimated
    note = json.loads((here.path / "out" / "manifest.json").read_text(encoding="utf-8"))["judges"]["judge"]["rates"]
    assert "agreement with human labels: sufficiency κ 0." in note
    assert "agreement with human labels: sufficiency" in " ".join(here.merilo("show", "out", "--full").stdout.split())


def test_wrong_golden_logits_are_an_error_and_the_download_stays(here: Here) -> None:
    """Status 4 and a sentence; no agreement is stored."""
    env = prepare(here, logit=-7.0)
    code, out, message = fetch(here, env, "--labels", "ours.jsonl")
    assert code == 4
    assert "Golden logits DIFFER (1 pairs" in " ".join(out.split()), message
    assert (here.path / "judges" / "org--name" / "judge.lock").is_file()
    assert not (here.path / "judges" / "org--name" / "agreement.json").exists()
