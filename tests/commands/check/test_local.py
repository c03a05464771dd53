"""Local judges on the command line, from a draft to a run and a check."""

import json
from collections.abc import Mapping

import pytest
from command_line import Here
from tiny_models import nli, reranker, rigged

ROWS = [
    {
        "user_input": "Is the tower in Paris?",
        "retrieved_contexts": ["The tower is in Paris.", "Rome has seven hills."],
        "response": "The tower is in Paris. It was designed by Eiffel.",
    },
    {
        "user_input": "Has Rome hills?",
        "retrieved_contexts": ["Rome has seven hills."],
        "response": "Rome has hills.",
    },
]
LABELS = [
    {
        "id": "a",
        "source": "ours",
        "task": "nli",
        "context": "The tower is in Paris.",
        "statement": "A tower.",
        "label": 1,
    },
    {"id": "b", "source": "ours", "task": "nli", "context": "Rome has hills.", "statement": "A tower.", "label": 0},
]


def test_a_draft_becomes_a_judge(here: Here) -> None:
    """The draft has the labels of config.json; once its places are decided, the judge works."""
    rigged(here.path / "model")
    asked = here.merilo("judge", "check", "local:./model")
    assert (asked.returncode, "To agree, add --yes." in " ".join(asked.stderr.split())) == (2, True)
    done = here.merilo("judge", "check", "local:./model", "--yes")
    assert done.returncode == 2
    assert 'Wrote model/judge.toml. Replace "?" in 2 places, then repeat' in " ".join(done.stderr.split())
    refused = here.merilo("judge", "check", "local:./model")
    assert refused.returncode == 2
    assert 'the card is a draft. Replace "?" in licence, languages[0].' in refused.stderr
    path = here.path / "model" / "judge.toml"
    path.write_text(path.read_text().replace('licence = "?"', 'licence = "MIT"').replace('["?"]', '["en"]'))
    tried = here.json("judge", "check", "local:./model", "--task", "trial")
    assert tried["works"]
    assert tried["judge"]["name"] == "local:model"
    assert tried["kinds"].keys() == {"support", "statements", "noncommittal"}


@pytest.mark.parametrize(
    ("labels", "places"),
    [
        ({0: "LABEL_0"}, ["cuts[0]", "cuts[1]"]),
        ({0: "LABEL_0", 1: "LABEL_1"}, ["labels[0]", "labels[1]", "yes"]),
        ({0: "entailment", 1: "neutral", 2: "contradiction"}, []),
        ({0: "con sistent", 1: 'say "x"'}, ["yes"]),
    ],
)
def test_a_draft_asks_for_what_it_cannot_know(here: Here, labels: Mapping[int, str], places: list[str]) -> None:
    """Generated label names, cuts and what means yes are left to the user; odd names are quoted."""
    rigged(here.path / "model", labels, yes=labels[0])
    here.merilo("judge", "check", "local:./model", "--yes")
    refused = here.merilo("judge", "check", "local:./model").stderr
    assert refused.count("\n") == 1
    named = refused.partition('"?" in ')[2]
    assert [place for place in ("cuts[0]", "cuts[1]", "labels[0]", "labels[1]", "yes") if place in named] == places


def test_a_second_run_uses_the_cache(here: Here) -> None:
    """The verdicts of an unchanged model are reused; those of a changed card are not."""
    folder = reranker(here.path / "model")
    here.write("rows.jsonl", ROWS)
    words = ["run", "rows.jsonl", "--judge", "local:./model", "--metrics", "context_relevance", "--json", "--quiet"]
    first = json.loads(here.merilo(*words, "--out", "a").stdout)
    second = json.loads(here.merilo(*words, "--out", "b").stdout)
    assert first["metrics"]["context_relevance"]["mean"] == second["metrics"]["context_relevance"]["mean"] == 0.75
    card = folder / "judge.toml"
    card.write_text(card.read_text().replace("cuts = [0.1, 0.9]", "cuts = [0.999999, 0.999999]"))
    third = json.loads(here.merilo(*words, "--out", "c").stdout)
    assert third["metrics"]["context_relevance"]["mean"] == 0.0


def test_golden_logits_are_compared(here: Here) -> None:
    """The trial reports that golden logits agree, and fails if they differ."""
    folder = nli(here.path / "model")
    card = folder / "judge.toml"
    original = card.read_text()
    golden = '[[golden]]\npremise = "The tower."\nhypothesis = "The tower."\nlogits = [0.0, {}, 0.0]\n'
    card.write_text(original + golden.format("2.0"))
    done = here.merilo("judge", "check", "local:./model", "--task", "trial")
    assert done.returncode == 0, done.stderr
    assert "Golden logits agree (1 pairs, largest difference 0)." in done.stdout
    assert here.json("judge", "check", "local:./model", "--task", "trial")["golden"] == {"pairs": 1, "agree": True}
    card.write_text(original + golden.format("3.0"))
    done = here.merilo("judge", "check", "local:./model", "--task", "trial")
    assert done.returncode == 4
    assert "Golden logits DIFFER (1 pairs, largest difference 1)." in done.stdout


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("local:factcg", "Download it: merilo judge check local:factcg."),
        ("local:./none", "No such folder: none."),
        ("local:", "No judge 'local:'. Did you mean local:MODEL?"),
    ],
)
def test_an_absent_model_is_one_line(here: Here, spec: str, message: str) -> None:
    """A model that is not there is a usage error before anything is asked."""
    here.write("rows.jsonl", ROWS)
    env = {"HF_HUB_CACHE": str(here.path / "hub"), "MERILO_JUDGES": str(here.path / "judges")}
    done = here.merilo("run", "rows.jsonl", "--judge", spec, env=env)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert done.stderr.count("\n") <= 2
