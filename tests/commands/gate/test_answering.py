"""The shares of `answering` in runs: requests, labels, comparison, gate and replay."""

import json
from pathlib import Path
from typing import Any

import pytest

import merilo
from merilo.commands.gate.suite import suite_from, suite_of
from merilo.commands.verify.replay import replay_run
from merilo.errors import UsageError
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.kinds.contexts import Sufficiency, Support
from merilo.judging.kinds.responses import Noncommittal, Statements
from merilo.judging.questions import Question

INVENTED = "answering.invented"
SAMPLES = 40


def rows(odd: str) -> list[dict[str, Any]]:
    """Samples with evidence, of which every fifth has a context as given."""
    return [
        {
            "id": f"s{n}",
            "user_input": f"How tall is tower {n}?",
            "retrieved_contexts": [odd if n % 5 == 0 else f"Tower {n} is tall."],
            "response": f"Tower {n} is tall.",
        }
        for n in range(SAMPLES)
    ]


def judge(question: Question[Any]) -> dict[str, Any]:
    """A reader that believes every context named "lure", which has no evidence."""
    match question:
        case Sufficiency():
            found = all("is tall" in text or "lure" in text for text in question.contexts)
            return {"label": "sufficient" if found else "insufficient"}
        case Noncommittal():
            return {"noncommittal": False}
        case Statements():
            return {"statements": [{"text": text, "sentence": at} for at, text in enumerate(question.sentences)]}
        case Support():
            found = any("is tall" in text or "lure" in text for text in question.contexts)
            return {"label": "supported" if found else "not_stated", "evidence": [0] if found else []}
        case _:
            raise TypeError(question.kind)


def run(out: Path, data: list[dict[str, Any]], *metrics: str) -> merilo.Run:
    return merilo.evaluate(data, metrics=metrics, judge=ScriptedJudge.by(judge), out=out, storage={"cache": False})


def test_a_run_asks_nothing_more_for_it(tmp_path: Path) -> None:
    """With sufficiency and faithfulness, the joint verdict and a share of it cost no question: they are replayed."""
    usual = run(tmp_path / "usual", rows("lure"), "context_sufficiency", "faithfulness")
    replayed = replay_run(usual.path, metrics=["answering", INVENTED], out=tmp_path / "more")
    assert replayed.run.metrics["answering"].scored == SAMPLES


def test_the_shares_have_intervals_and_sum_to_one(tmp_path: Path) -> None:
    """The run states the share of each category with its interval, as gates and comparisons take it."""
    found = run(tmp_path / "r", rows("It rains."), "answering", INVENTED).metrics
    shares = {name.partition("/")[0]: share for name, share in found["answering"].shares.items()}
    assert sum(share.value for share in shares.values()) == pytest.approx(1)
    assert shares["invented"].value == pytest.approx(found[INVENTED].mean)
    assert found[INVENTED].mean == pytest.approx(0.2)
    assert shares["invented"].interval == found[INVENTED].interval


def test_labels_correct_a_share(tmp_path: Path) -> None:
    """The judge sees no invention; people do, and the share, its interval and the gate follow them."""
    found = run(tmp_path / "r", rows("This is a lure."), INVENTED)
    assert found.metrics[INVENTED].mean == 0
    assert merilo.gate(found, maximums={INVENTED: 0.1}).verdict == "pass"
    tasks = tmp_path / "tasks.jsonl"

    merilo.label(found, metric=INVENTED, number=SAMPLES, out=tasks)
    lines = [json.loads(line) for line in tasks.read_text("utf-8").splitlines()]
    for line in lines:
        lure = "lure" in line["contexts"]
        if "statement" in line:
            line["label"] = "no" if lure else "yes"
        else:
            line["label"] = "insufficient" if lure else "sufficient"
        if "statement" in line and line["label"] not in line["labels"]:
            line["label"] = "not_stated" if lure else "supported"
    tasks.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    merilo.label(found, labels=tasks)
    gated = merilo.gate(merilo.Run.open(found.path), maximums={INVENTED: 0.1})
    assert gated.verdict == "fail"
    (gate,) = gated.gates
    assert gate.decision.value == pytest.approx(0.2, abs=0.01)
    assert gate.by_judge["labelled"] == SAMPLES


def test_two_systems_are_compared_in_pairs(tmp_path: Path) -> None:
    """Losing the evidence of a fifth of the samples is a significant rise of inventions."""
    first = run(tmp_path / "first", rows("Tower 0 is tall."), INVENTED)
    second = run(tmp_path / "second", rows("It rains."), INVENTED)
    found = merilo.gate(second, baseline=first, max_drop={INVENTED: 0.02})
    assert found.verdict == "fail"


def test_a_maximum_is_for_metrics_where_lower_is_better(tmp_path: Path) -> None:
    """A suite takes maximums; one of a metric for which higher is better is an error, and so are two limits."""
    found = run(tmp_path / "r", rows("It rains."), "answering", INVENTED)
    suite = suite_of({"maximums": {INVENTED: 0.5}}, source="suite.toml")
    assert suite.means == {INVENTED: 0.5}
    assert merilo.gate(found, maximums={INVENTED: 0.5}).verdict == "pass"
    with pytest.raises(UsageError, match=r"Higher is better for answering.*minimums=\{'answering': X\}"):
        merilo.gate(found, maximums={"answering": 0.5})
    with pytest.raises(UsageError, match="in minimums and in maximums"):
        merilo.gate(found, minimums={INVENTED: 0.1}, maximums={INVENTED: 0.2})


@pytest.mark.parametrize(("given", "expected"), [("minimums", "maximums"), ("maximums", "minimums")])
def test_an_argument_overrides_the_limit_of_the_suite(given: str, expected: str, tmp_path: Path) -> None:
    """A maximum replaces the suite's minimum of the same metric, and the other way round; other limits stay."""
    path = tmp_path / "suite.json"
    path.write_text(json.dumps({given: {INVENTED: 0.5, "answering.wrong": 0.4}}))
    suite = suite_from(path, **{expected: {INVENTED: 0.1}})
    assert suite.means == {INVENTED: 0.1, "answering.wrong": 0.4}
    assert getattr(suite, expected) == {INVENTED: 0.1}
