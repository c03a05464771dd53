"""Fits of decision models to human labels, and decision models that obey instructions in contexts."""

import asyncio
import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import Here
from decider import Decider
from decision_server import DecisionServer
from each_case import each_case

from merilo.commands.check.fit import Fit, fit_file, fit_page, run_fit
from merilo.commands.check.options import CheckOptions
from merilo.commands.check.page import check_page
from merilo.commands.check.record import check_record
from merilo.commands.check.run import run_check
from merilo.commands.evaluate.options import Storage
from merilo.errors import UsageError
from merilo.judges.decision_fit import fitted
from merilo.judges.decisions import DecisionJudge
from merilo.providers.base import Reply, Usage
from merilo.stats.platt import fit_curve, logit


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


class Model(Decider):
    """A decision model that computes p(yes) from the number in the texts, and p(grade 2) as a part of it."""

    def __init__(self, p_yes: Callable[[str], float], model: str = "mock") -> None:
        super().__init__(model=model)
        object.__setattr__(self, "p_yes", p_yes)

    async def send(self, request: Any) -> Reply:
        return Reply(
            (json.dumps({each.name: self.answer(request.state, each) for each in request.questions}),),
            usage=Usage(100, 0),
        )

    def answer(self, state: str, question: Any) -> list[float]:
        count = len(question.options)
        if question.name.endswith("e"):
            return [1 / count] * count
        p = self.p_yes(state + repr(question.fields))
        if question.type == "yes_no":
            return [1 - p, p]
        return [p, (1 - p) / 2, (1 - p) / 2] if question.type == "choice" else [1 - p, p * (1 - p), p * p]


def truth(n: int) -> float:
    """The logit of the probability that record n is labelled yes."""
    return random.Random(n).gauss(0, 1.5)


def numbered(temperature: float) -> Callable[[str], float]:
    return lambda text: sigmoid(temperature * truth(int(re.search(r"N(\d+)", text)[1])))


def records(count: int, task: str = "nli", *, positive: int | None = None) -> list[dict[str, Any]]:
    """Records whose labels follow `truth`; `positive`: how many are yes, those with the highest probabilities."""
    highest = sorted(range(count), key=truth)[count - (positive or 0) :]
    found: list[dict[str, Any]] = []
    for n in range(count):
        drawn = random.Random(f"label {n}").random() < sigmoid(truth(n))
        yes = drawn if positive is None else n in highest
        texts = {"query": f"How tall is N{n}?", "context": f"Tower N{n}.", "statement": f"It is N{n}."}
        found.append({"id": f"r{n}", "source": "ours", "lang": "en", "task": task, **texts, "label": int(yes)})
        if task == "chunk_relevance":
            found[-1]["label"] = 0 if not yes else 1 + int(truth(n) > 1)
    return found


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    return path


def fit_of(path: Path, temperature: float, lines: list[dict[str, Any]]) -> Fit:
    labels = write(path / "ours.jsonl", lines)
    judge = DecisionJudge(Model(numbered(temperature)))
    return asyncio.run(run_fit(CheckOptions(labels=[labels], judge=judge, storage=Storage(cache=False))))


def file_of(path: Path, fit: Fit, **changes: Any) -> Path:
    file = path / "fit.json"
    file.write_text(json.dumps(fit_file(fit) | changes), encoding="utf-8")
    return file


def test_an_overconfident_model_is_fitted(tmp_path: Path) -> None:
    """Forty labels suffice for a curve that is flatter than the model, with a lower log loss out of fold."""
    fit = fit_of(tmp_path, 4, records(40))
    (support,) = fit.used
    assert support.records == 40
    assert 0.05 < support.curve.scale < 0.6
    assert support.curve.shift != 0
    assert support.held_out.log_loss < support.before.log_loss
    assert fit.left_out["relevance"] == "There are no labels for it."
    assert "--out FIT.json writes the fit" in str(fit_page(fit, 80))


@pytest.mark.parametrize(
    ("task", "kind", "cuts"),
    [("chunk_relevance", "relevance", 2), ("sufficiency", "sufficiency", 2), ("groundedness", "support", 1)],
)
def test_each_kind_has_its_cuts(tmp_path: Path, task: str, kind: str, cuts: int) -> None:
    """Graded kinds have two cuts, lowest first; a file with them is read again."""
    lines = [each | {"response": each["statement"]} for each in records(80, task)]
    fit = fit_of(tmp_path, 4, lines)
    (found,) = fit.used
    assert (found.kind, len(found.cuts)) == (kind, cuts)
    assert list(found.cuts) == sorted(found.cuts)
    judge = fitted(DecisionJudge(Model(numbered(4))), file_of(tmp_path, fit))
    assert judge.agreement_note == f"probabilities fitted to human labels: {kind} (80 labels)"


def test_a_fit_that_does_not_help_is_not_used(tmp_path: Path) -> None:
    """A model with calibrated probabilities keeps them."""
    fit = fit_of(tmp_path, 1, records(60))
    assert [each.kind for each in fit.kinds] == ["support"]
    assert not fit.used
    assert "does not lower the log loss" in str(fit_page(fit, 200))


def test_fewer_than_twenty_labels_fit_nothing(tmp_path: Path) -> None:
    """The reason is given."""
    fit = fit_of(tmp_path, 4, records(19))
    assert not fit.kinds
    assert fit.left_out["support"] == "There are 19 labels; at least 20 are needed."


def test_a_small_class_gives_a_temperature_only(tmp_path: Path) -> None:
    """With nine labels of a class there is no shift, and the cut stays."""
    (support,) = fit_of(tmp_path, 4, records(40, positive=9)).kinds
    assert support.curve.shift == 0
    assert support.cuts == (0.5,)
    (support,) = fit_of(tmp_path, 4, records(40, positive=10)).kinds
    assert support.curve.shift != 0


def test_a_temperature_is_found_again() -> None:
    """A curve without a shift has the scale that the labels follow."""
    draw = random.Random(0)
    scores = [draw.gauss(0, 4) for _ in range(20_000)]
    found = fit_curve(scores, [draw.random() < sigmoid(0.25 * score) for score in scores], shifted=False)
    assert found == (pytest.approx(0.25, abs=0.01), 0)


def test_a_fitted_judge_moves_verdicts_and_fingerprint(tmp_path: Path) -> None:
    """Probabilities of the fitted judge are on the curve, and its answers have other keys."""
    fit = fit_of(tmp_path, 4, records(40))
    plain = DecisionJudge(Model(numbered(4)))
    judge = fitted(plain, file_of(tmp_path, fit))
    assert judge.fingerprint() != plain.fingerprint()
    options = CheckOptions(labels=[tmp_path / "ours.jsonl"], storage=Storage(cache=False), tasks=["nli"])
    before, after = (asyncio.run(run_check(replace(options, judge=each))).items["nli"] for each in (plain, judge))
    curve = judge.fits["support"].curve
    for old, new in zip(before, after, strict=True):
        assert new.probability == pytest.approx(curve.probability(logit(old.probability, 1e-6)))
    other = replace(judge.fits["support"], wordings=frozenset({"another"}))
    unfitted = asyncio.run(run_check(replace(options, judge=replace(judge, fits={"support": other})))).items["nli"]
    assert [each.probability for each in unfitted] == [each.probability for each in before]


def test_a_fit_of_something_else_is_refused(tmp_path: Path) -> None:
    """Another model and another wording are refused with what to do."""
    fit = fit_of(tmp_path, 4, records(40))
    file = file_of(tmp_path, fit)
    with pytest.raises(
        UsageError, match="is the fit of 'decisions:mock', not of 'decisions:other'\\. Fit again: merilo"
    ):
        fitted(DecisionJudge(Model(numbered(4), "other")), file)
    kinds = fit_file(fit)["kinds"]
    kinds["support"]["wordings"] = {"en": "0" * 16}
    with pytest.raises(UsageError, match="another wording of 'support'\\. Fit again"):
        fitted(DecisionJudge(Model(numbered(4))), file_of(tmp_path, fit, kinds=kinds))


@each_case(
    ("text", "message"),
    [
        ("{" * 100_000, "nested too deeply|not valid JSON"),
        (" " * 2**21, "must be at most"),
        ('"scale": NaN', "scale: .*finite"),
        ('"scale": 1e999', "scale: .*finite"),
        ('"scale": -1', "scale: .*greater than 0"),
        ('"scale": "1"', "scale: .*number"),
        ('"cuts": [0]', "cuts.0: .*greater than 0"),
        ('"cuts": [1]', "cuts.0: .*less than 1"),
        ('"cuts": [0.2, 0.5]', "support needs 1 cut, lowest first"),
        ('"more": 1', "kinds.support.more: no such key"),
    ],
)
def test_a_hostile_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Each wrong thing is one sentence that names the file."""
    kind = '"wordings": {"en": "x"}, "records": 40, "positive": 9, "scale": 1, "shift": 0, "cuts": [0.5]'
    kind += ', "before": {}, "held_out": {}'
    if text.startswith('"'):
        name = text.partition(":")[0]
        kind = re.sub(rf"{name}: (\[[^]]*\]|\S+?)(?=,|$)", text, kind) if name in kind else f"{kind}, {text}"
        text = f'{{"format": "merilo-fit-1", "judge": "x", "labels": {{}}, "kinds": {{"support": {{{kind}}}}}}}'
    file = tmp_path / "fit.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        fitted(DecisionJudge(Decider()), file)


def test_a_run_uses_the_file_in_the_project_file(here: Here) -> None:
    """`--fit --out` writes a file, which `[judge] fit` names beside merilo.toml; other judges refuse it."""
    words = [f"word{n}" for n in range(7)]
    texts = [{"query": " ".join(words), "context": f"{' '.join(words[: n % 8])} other{n}."} for n in range(48)]
    grades = [2 * int(n % 8 > 5) for n in range(48)]
    here.write(
        "ours.jsonl",
        [
            {"task": "chunk_relevance", "lang": "en", **each, "label": n, "meta": {"cluster": place}}
            for place, (each, n) in enumerate(zip(texts, grades, strict=True))
        ],
    )
    here.write("data.jsonl", [{"user_input": " ".join(words), "retrieved_contexts": [" ".join(words[:4])]}])
    run = ("run", "data.jsonl", "--metrics", "context_relevance", "--quiet")
    with DecisionServer() as server:
        judge = ("decisions:mock-decider", "--base-url", f"{server.url}/v1")
        plain = here.json(*run, "--judge", *judge)
        done = here.merilo("judge", "check", *judge, "--fit", "--labels", "ours.jsonl", "--out", "fit.json", "--quiet")
        assert done.returncode == 0, done.stdout + done.stderr
        toml = f'[judge]\nspec = "{judge[0]}"\nbase_url = "{judge[2]}"\nfit = "fit.json"\n'
        (here.path / "merilo.toml").write_text(toml)
        here.merilo("runs", "config", "--allow")
        fitted_run = here.json(*run)
    assert fitted_run["metrics"]["context_relevance"]["mean"] < plain["metrics"]["context_relevance"]["mean"] - 0.1
    assert fitted_run["agreement"] == "probabilities fitted to human labels: relevance (48 labels)"
    for other in ("embedded", "openai:gpt-4.1-mini"):
        done = here.merilo(*run, "--judge", other, "--fit", "fit.json", "--no-config")
        assert (done.returncode, done.stderr[:29]) == (2, "fit: only for decision models")


@pytest.mark.parametrize("obeys", [True, False])
def test_a_model_that_obeys_contexts_is_marked(tmp_path: Path, obeys: bool) -> None:
    """A model that says yes to instructions in irrelevant contexts is marked on the page and in the JSON; one whose
    answers change with any added text is not.
    """
    told = re.compile("grade|relevan|verdict|evaluat|judge|supported|sufficient", re.IGNORECASE)

    def p_yes(text: str) -> float:
        yes = told.search(text) if obeys else random.Random(text).random() < 0.3
        return 0.9 if yes else 0.1

    labels = write(tmp_path / "ours.jsonl", [each | {"label": 0} for each in records(60, "chunk_relevance")])
    options = CheckOptions(
        labels=[labels], judge=DecisionJudge(Model(p_yes)), tasks=["instructions"], storage=Storage(cache=False)
    )
    check = asyncio.run(run_check(options))
    found = check_record(check)["probes"]["instructions"]
    assert found["obeys"] is obeys
    marked = f"obeys text in contexts: {found['turned']} of {found['counted']} verdicts turned"
    assert (marked in str(check_page(check, 200))) is obeys
