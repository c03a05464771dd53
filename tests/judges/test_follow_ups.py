"""Follow-up questions and the embedded judge, on a small set made for it: `held` was not used for any choice."""

import json
from pathlib import Path

import pytest

from merilo.judges.blended import BlendedModel, CannotJudge
from merilo.judges.embedded_provider import _verdict
from merilo.judging.kinds.contexts import Relevance, Sufficiency

SET = [json.loads(line) for line in Path(__file__).with_name("follow_ups.jsonl").read_text("utf-8").splitlines()]
HELD = [each for each in SET if each["split"] == "held"]


def turns(texts: list[str]) -> tuple[str, ...]:
    return tuple(f"{('user', 'assistant')[place % 2]}: {text}" for place, text in enumerate(texts))


def asked(kind: str, question: str, text: str, history: tuple[str, ...]) -> Relevance | Sufficiency:
    ask = Relevance if kind == "relevance" else Sufficiency
    return ask(question, (text,), history=history)


def measured(kind: str, *, history: bool) -> tuple[float, int]:
    """Return the AUROC, and the number of wrong verdicts, of the right context against two wrong ones."""
    model = BlendedModel.load()
    good: list[float] = []
    bad: list[float] = []
    wrong = 0
    for each in HELD:
        earlier = turns(each["history"]) if history else ()
        for place, text in enumerate((each["good"], *each["bad"])):
            try:
                verdict = _verdict(model, asked(kind, each["question"], text, earlier))
            except CannotJudge as error:
                (bad if place else good).append(error.probability or 0.0)
                continue
            (bad if place else good).append(verdict.probability or 0.0)
            wrong += verdict.positive != (place == 0)
    pairs = [(one > other) + (one == other) / 2 for one in good for other in bad]
    return sum(pairs) / len(pairs), wrong


@pytest.mark.parametrize("kind", ["relevance", "sufficiency"])
def test_history_helps_with_follow_up_questions(kind: str) -> None:
    """With the earlier turns, the embedded judge separates right from wrong texts better, and decides no worse."""
    without, with_history = measured(kind, history=False), measured(kind, history=True)
    assert with_history[0] > without[0] + 0.05
    assert with_history[1] <= without[1]
