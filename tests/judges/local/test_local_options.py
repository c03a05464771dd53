"""A card of options: one input for each option of a question, and a softmax over their logits."""

from math import exp
from pathlib import Path

import numpy as np
import onnx
import pytest
from each_case import each_case
from local_asking import ask
from onnx import numpy_helper
from tiny_models import OPTIONS_CARD, decider, rigged

from merilo.errors import UsageError
from merilo.judges.local.card import builtin_cards
from merilo.judges.local.judge import LocalJudge, local_judge
from merilo.judging.kinds.contexts import (
    Relevance,
    RelevanceVerdict,
    Sufficiency,
    SufficiencyLabel,
    SufficiencyVerdict,
    Support,
    SupportVerdict,
)
from merilo.judging.verdicts import Failure, FailureKind

PAD = "It was designed. " * 12
"""Sentences without a key word, which fill most of a window."""


def judge_of(folder: Path, card: str = OPTIONS_CARD) -> LocalJudge:
    """The rigged model with a card of options."""
    return local_judge(str(decider(folder, card)))


def support_by(judge: LocalJudge, statement: str, *contexts: str) -> SupportVerdict:
    """The verdict on a statement."""
    verdict = ask(judge, Support(statement, contexts))
    assert isinstance(verdict, SupportVerdict), verdict
    return verdict


@each_case("temperature", [12.0, 6.0, 1.0])
@each_case(("context", "missing"), [("The tower, Paris.", 0), ("The tower.", 1), ("Rome.", 2)])
def test_the_options_that_mean_yes_are_added(tmp_path: Path, context: str, missing: int, temperature: float) -> None:
    """The probability is the softmax of the logits by the temperature, over all options that mean yes."""
    judge = judge_of(tmp_path, OPTIONS_CARD.replace("temperature = 12.0", f"temperature = {temperature}"))
    weight = exp(-12 * missing / temperature)
    verdict = support_by(judge, "The tower is in Paris.", context)
    assert verdict.probability == pytest.approx(2 * weight / (1 + 2 * weight), abs=1e-6)
    assert verdict.supported == (missing == 0)


def test_another_option_may_mean_yes(tmp_path: Path) -> None:
    """The names of the card decide, not the places of the options."""
    judge = judge_of(tmp_path, OPTIONS_CARD.replace('yes = ["it", "was"]', 'yes = ["paris tower"]'))
    assert support_by(judge, "The tower is in Paris.", "Rome.").supported
    assert not support_by(judge, "The tower is in Paris.", "The tower, Paris.").supported


@pytest.mark.parametrize(
    ("cuts", "grade"), [("[0.3, 0.3]", 2), ("[0.3, 0.4]", 1), ("[0.6, 0.6]", 1), ("[0.7, 0.7]", 0)]
)
def test_the_last_option_is_the_highest_grade(tmp_path: Path, cuts: str, grade: int) -> None:
    """Of three equal options two mean yes: the first cut sees 2/3, the second one 1/3."""
    judge = judge_of(tmp_path, OPTIONS_CARD.replace("[0.3, 0.3]", cuts))
    question = Relevance("Is the tower in Paris?", ("Rome.", "The tower is in Paris."))
    verdict = ask(judge, question)
    assert isinstance(verdict, RelevanceVerdict), verdict
    assert verdict.grade == grade
    assert verdict.probability == pytest.approx(2 / 3, abs=1e-6)
    assert verdict.evidence == ((1,) if grade else ())
    assert question.fault(verdict) is None


def test_sufficiency_reads_contexts_together(tmp_path: Path) -> None:
    """Two contexts with one key word each are enough as one text; its highest grade decides the label."""
    judge = judge_of(tmp_path)
    verdict = ask(judge, Sufficiency("Is the tower in Paris?", ("A tower.", "Paris.", "Rome.")))
    assert isinstance(verdict, SufficiencyVerdict), verdict
    assert (verdict.label, verdict.reason) == (
        SufficiencyLabel.PARTLY,
        "0.67 by the best 3 contexts together (cuts 0.50 and 0.50).",
    )


def test_the_mean_of_windows_counts_for_both_cuts(tmp_path: Path) -> None:
    """With `take = "mean"` one window of many reaches neither cut."""
    judge = judge_of(tmp_path, OPTIONS_CARD + '[windows]\ntake = "mean"\n')
    question = Relevance("Is the tower in Paris?", (*(PAD.strip() + "." for _ in range(4)), "The tower is in Paris."))
    verdict = ask(judge, question)
    assert isinstance(verdict, RelevanceVerdict), verdict
    assert verdict.grade == 0
    assert 0 < verdict.probability < 0.5


def test_a_long_option_fails(tmp_path: Path) -> None:
    """An input that is too long with one of its options is not read without it."""
    answer = ask(judge_of(tmp_path, OPTIONS_CARD.replace('"was"', f'"{"was " * 70}"')), Support("Rome.", ("Rome.",)))
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.PERMANENT


def test_a_model_with_a_logit_for_each_option_is_refused(tmp_path: Path) -> None:
    """The model gives one logit for an input: more are an error, in `config.json` and in the output."""
    rigged(tmp_path, {0: "yes", 1: "no"}, yes="yes")
    (tmp_path / "judge.toml").write_text(OPTIONS_CARD)
    with pytest.raises(UsageError, match=r"the model has 2 labels \(yes, no\), the card 1"):
        local_judge(str(tmp_path))
    (tmp_path / "config.json").unlink()
    with pytest.raises(UsageError, match="returns 1 by 2 numbers for a pair; the card has 1 label"):
        local_judge(str(tmp_path)).provider.scorer()


def test_a_number_that_is_not_finite_fails(tmp_path: Path) -> None:
    """A logit that is no number is the failure of the question."""
    folder = decider(tmp_path)
    model = onnx.load(folder / "model.onnx")
    bias = next(each for each in model.graph.initializer if each.name == "bias")
    bias.CopyFrom(numpy_helper.from_array(np.array(np.nan, "f4"), "bias"))
    onnx.save(model, folder / "model.onnx")
    answer = ask(local_judge(str(folder)), Support("Rome.", ("Rome.",)))
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.BROKEN


def test_the_questions_are_part_of_the_fingerprint(tmp_path: Path) -> None:
    """Another temperature is another judge."""
    first = judge_of(tmp_path / "a").fingerprint()
    second = judge_of(tmp_path / "b", OPTIONS_CARD.replace("12.0", "11.0")).fingerprint()
    assert first["files"] == second["files"]
    assert first["card"] != second["card"]


def test_nano_jev_is_asked_as_its_authors_ask_it() -> None:
    """The first text contains the question and one option, and grade 2 needs the option of a direct answer."""
    card = builtin_cards()["nano-jev"]
    first, *_, last = card.questions["relevance"].inputs({"query": "When?", "premise": "In 1889."})
    assert first["question"] == "How relevant is this passage to the query: When?"
    assert (first["option"], last["option"]) == ("irrelevant", "directly answers")
    assert card.input.texts == ("question: {question} option: {option}", "{premise}")
    assert card.questions["relevance"].yes[-1] == "directly answers"
