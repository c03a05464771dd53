"""`merilo judge check --fit` with a rigged model and labels that follow its scores, or do not."""

import random
from typing import Any

import pytest
from command_line import Here
from tiny_models import NLI_CARD, RERANKER_CARD, decider, nli, reranker


def nli_records(count: int, *, noise: float = 0.1) -> list[dict[str, Any]]:
    """Statements about the tower in contexts with or without it; the words make each context its own cluster."""
    draw = random.Random(0)
    found: list[dict[str, Any]] = []
    for n in range(count):
        label = n % 2
        named = label if draw.random() >= noise else 1 - label
        context = f"{'The tower' if named else 'Rome'} was completed in 1{n}00."
        found.append({"id": f"n{n}", "source": "ours", "task": "nli", "context": context})
        found[-1] |= {"statement": f"It is a tower, 2{n}.", "label": label}
    return found


def relevance_records(count: int) -> list[dict[str, Any]]:
    """Contexts with none, one or both of the key words of the query, by grade."""
    texts = ("Rome", "The tower", "The tower in Paris")
    return [
        {
            "id": f"r{n}",
            "source": "ours",
            "task": "chunk_relevance",
            "query": f"Is tower 3{n} in Paris?",
            "context": f"{texts[n % 3]} was completed in 1{n}00.",
            "label": n % 3,
            "scale": "0-2",
        }
        for n in range(count)
    ]


def test_a_fit_is_better_on_held_out_records(here: Here) -> None:
    """A model that is too sure gets a flatter curve, and the printed lines make a valid card."""
    folder = nli(here.path / "model")
    here.write("ours.jsonl", nli_records(160))
    found = here.json("judge", "check", "local:./model", "--fit", "--labels", "ours.jsonl", "--quiet")
    (support,) = found["kinds"].values()
    assert support["records"] == 160
    assert support["positive"] == 80
    assert 0 < support["scale"] < 1
    assert support["held_out"]["log_loss"] < support["before"]["log_loss"]
    assert support["held_out"]["balanced_accuracy"] == pytest.approx(0.9, abs=0.06)
    page = here.merilo("judge", "check", "local:./model", "--fit", "--labels", "ours.jsonl", "--quiet")
    assert page.returncode == 0, page.stderr
    lines = [line.strip() for line in page.stdout.splitlines()]
    block = lines[lines.index("[calibration.support]") :]
    cut = lines[lines.index("# under [answers.support]") + 1]
    (folder / "judge.toml").write_text(NLI_CARD.replace("cut = 0.5", cut, 1) + "\n".join(block) + "\n")
    assert (
        "its scores are not calibrated"
        not in here.json("judge", "check", "local:./model", "--task", "trial")["judge"]["rates"]
    )


def test_relevance_gets_two_cuts(here: Here) -> None:
    """The cuts separate the three grades."""
    reranker(here.path / "model", RERANKER_CARD.replace("max_tokens = 64", "max_tokens = 128"))
    here.write("ours.jsonl", relevance_records(270))
    found = here.json("judge", "check", "local:./model", "--fit", "--labels", "ours.jsonl", "--quiet")
    (relevance,) = found["kinds"].values()
    assert relevance["positive"] == 180
    assert relevance["cuts"] == sorted(relevance["cuts"])
    assert relevance["held_out"]["balanced_accuracy"] == 1.0


def test_too_few_labels_cannot_tell(here: Here) -> None:
    """Fewer than 60 records of a class fit nothing."""
    nli(here.path / "model")
    here.write("ours.jsonl", nli_records(100))
    done = here.merilo("judge", "check", "local:./model", "--fit", "--labels", "ours.jsonl", "--quiet")
    assert done.returncode == 3
    assert "support not fitted. 50 of 100 labels are yes; at least 60 of each class are" in " ".join(
        done.stdout.split()
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["embedded", "--fit", "--labels", "ours.jsonl"],
            "Only local judges and decision models can be fitted; got 'embedded'.",
        ),
        (["local:./model", "--fit"], "Name files of human labels: merilo judge check SPEC --fit --labels FILE."),
        (["local:./model", "--fit", "--labels", "none.jsonl"], "none.jsonl"),
    ],
)
def test_wrong_use_is_a_sentence(here: Here, arguments: list[str], message: str) -> None:
    """Another judge, no labels and a missing file are usage errors."""
    nli(here.path / "model")
    here.write("ours.jsonl", nli_records(4))
    done = here.merilo("judge", "check", *arguments, "--quiet")
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_a_card_of_options_is_not_fitted(here: Here) -> None:
    """Its probabilities come from temperatures, and its cuts see the probabilities of two sets of options."""
    decider(here.path / "model")
    here.write("ours.jsonl", nli_records(4))
    done = here.merilo("judge", "check", "local:./model", "--fit", "--labels", "ours.jsonl", "--quiet")
    assert done.returncode == 2
    assert "has options with temperatures, which --fit does not support" in " ".join(done.stderr.split())
