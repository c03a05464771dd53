"""Verdicts of rigged models: the second text's key words must all be in the first one."""

from pathlib import Path

import pytest
from local_asking import ask
from tiny_models import NLI_CARD, RERANKER_CARD, nli, reranker, rigged

from merilo.judges.local.judge import LocalJudge, local_judge
from merilo.judges.local.model import sigmoid
from merilo.judging.kinds.contexts import (
    Relevance,
    RelevanceVerdict,
    Sufficiency,
    SufficiencyLabel,
    SufficiencyVerdict,
    Support,
    SupportLabel,
    SupportVerdict,
    Usefulness,
    UsefulnessVerdict,
)
from merilo.judging.kinds.measured import MatrixVerdict, Similarities
from merilo.judging.kinds.responses import (
    Addresses,
    AddressesVerdict,
    Noncommittal,
    NoncommittalVerdict,
    Statements,
    StatementsVerdict,
)
from merilo.judging.verdicts import Failure, FailureKind

PAD = "It was designed. " * 12
"""Sentences without a key word, which fill most of a window."""


def support_by(judge: LocalJudge, statement: str, *contexts: str) -> SupportVerdict:
    """The verdict on a statement, valid for its question."""
    question = Support(statement, contexts)
    verdict = ask(judge, question)
    assert isinstance(verdict, SupportVerdict), verdict
    assert question.fault(verdict) is None
    return verdict


@pytest.fixture
def checker(tmp_path: Path) -> LocalJudge:
    """A judge of support, with two NLI texts of at most 64 tokens together."""
    return local_judge(str(nli(tmp_path / "nli")))


@pytest.fixture
def ranker(tmp_path: Path) -> LocalJudge:
    """A judge of relevance."""
    return local_judge(str(reranker(tmp_path / "reranker")))


@pytest.mark.parametrize(
    ("contexts", "label", "evidence"),
    [
        (("The tower is in Paris.",), "supported", (0,)),
        (("Rome has seven hills.", "The tower is in Paris."), "supported", (1,)),
        (("The tower, Paris.", "Rome.", "Paris has a tower."), "supported", (0, 2)),
        (("Rome has seven hills.",), "unsupported", ()),
        (("The tower.", "Rome."), "unsupported", ()),
        ((), "unsupported", ()),
        (("", "  "), "unsupported", ()),
    ],
)
def test_the_best_context_decides(
    checker: LocalJudge, contexts: tuple[str, ...], label: str, evidence: tuple[int, ...]
) -> None:
    """A statement is supported if one context contains it; each such context is evidence."""
    verdict = support_by(checker, "The tower is in Paris.", *contexts)
    assert (verdict.label.value, verdict.evidence) == (label, evidence)
    assert not verdict.tells_contradicted


def test_the_probability_is_that_of_the_label(checker: LocalJudge) -> None:
    """The softmax of the logits 6, 0, 0 for two keys in the context."""
    from math import exp

    verdict = support_by(checker, "The tower is in Paris.", "The tower is in Paris.")
    assert verdict.probability == pytest.approx(exp(6) / (exp(6) + 2), abs=1e-6)
    assert verdict.reason == "1.00 by sentence 1 of context 1 (cut 0.50)."


def test_two_contexts_support_together(checker: LocalJudge) -> None:
    """If no context is enough alone, the best two are read as one text, and both are evidence."""
    verdict = support_by(checker, "The tower is in Paris.", "Rome.", "It has a tower.", "It is in Paris.")
    assert verdict.evidence == (1, 2)
    assert verdict.reason == "1.00 by sentence 1 of context 2 and sentence 1 of context 3 together (cut 0.50)."


def test_a_long_context_is_read_in_windows(checker: LocalJudge) -> None:
    """The sentence that counts is found at any place of a context that is longer than the model's input."""
    for text in (
        f"The tower is in Paris. {PAD * 4}",
        f"{PAD * 2}The tower is in Paris. {PAD * 2}",
        f"{PAD * 4}Tower, Paris.",
    ):
        verdict = support_by(checker, "The tower is in Paris.", text)
        assert verdict.supported
        assert " of context 1" in verdict.reason


def test_the_mean_of_windows_may_decide(tmp_path: Path) -> None:
    """With `take = "mean"` one window of many is not enough."""
    card = NLI_CARD + '[windows]\ntake = "mean"\n'
    judge = local_judge(str(nli(tmp_path / "mean", card)))
    assert not support_by(judge, "It is in Paris.", f"{PAD * 4}It is in Paris.").supported
    assert support_by(judge, "It is in Paris.", "It is in Paris.").supported


def test_a_long_statement_fails(checker: LocalJudge) -> None:
    """A statement that takes more than half of the input is a failure, not a truncated text."""
    answer = ask(checker, Support("tower " * 40, ("The tower.",)))
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.PERMANENT
    assert answer.message == (
        "The statement has 40 tokens, more than half of the input. local:rigged reads at most 64 per pair. "
        "Shorten the text, or use another judge."
    )


def test_contradiction_is_an_answer_only_if_the_card_says_so(tmp_path: Path, checker: LocalJudge) -> None:
    """A model's label for contradiction is used only if its card names it."""
    assert support_by(checker, "The tower.", "It never has a tower.").label is SupportLabel.UNSUPPORTED
    card = NLI_CARD.replace('yes = "entailment"', 'yes = "entailment"\ncontradiction = "contradiction"')
    judge = local_judge(str(nli(tmp_path / "second", card)))
    verdict = support_by(judge, "The tower.", "Rome.", "It never has a tower.")
    assert (verdict.label, verdict.evidence) == (SupportLabel.CONTRADICTED, (1,))
    assert support_by(judge, "The tower.", "Rome.").label is SupportLabel.NOT_STATED
    assert support_by(judge, "The tower.", "The tower.").tells_contradicted


@pytest.mark.parametrize(
    "labels",
    [
        {0: "contradiction", 1: "entailment", 2: "neutral"},
        {0: "entailment", 1: "neutral", 2: "contradiction"},
        {0: "entailment", 1: "not_entailment"},
        {0: "not_entailment", 1: "entailment"},
    ],
)
def test_every_order_of_labels_gives_the_same_verdicts(tmp_path: Path, labels: dict[int, str]) -> None:
    """The label of the card decides which logit means yes, wherever it is."""
    names = ", ".join(f'"{name}"' for name in labels.values())
    card = NLI_CARD.replace('"contradiction", "entailment", "neutral"', names)
    judge = local_judge(str(nli(tmp_path / "m", card, labels)))
    assert support_by(judge, "The tower is in Paris.", "The tower is in Paris.").supported
    assert not support_by(judge, "The tower is in Paris.", "Rome.").supported


def test_one_logit_goes_through_a_sigmoid(tmp_path: Path) -> None:
    """A model with one output gives the sigmoid of its logit."""
    card = NLI_CARD.replace("softmax", "sigmoid").replace('"contradiction", "entailment", "neutral"', '"entailment"')
    folder = rigged(tmp_path / "one", {0: "entailment"})
    (folder / "judge.toml").write_text(card)
    verdict = support_by(local_judge(str(folder)), "The tower.", "The tower.")
    assert verdict.probability == pytest.approx(sigmoid(2), abs=1e-6)


def test_a_calibration_moves_the_probability(tmp_path: Path) -> None:
    """The fitted curve is applied to the logit before the cut."""
    card = NLI_CARD + "[calibration.support]\nscale = 0.5\nshift = -4.0\n"
    verdict = support_by(local_judge(str(nli(tmp_path / "m", card))), "The tower.", "The tower.")
    logit = 2 - 0.6931471805599453  # against two other labels with the logit 0
    assert verdict.probability == pytest.approx(sigmoid(0.5 * logit - 4), abs=1e-6)
    assert not verdict.supported


@pytest.mark.parametrize(
    ("sentences", "grade", "evidence"),
    [
        (("It is a.", "The tower is in Paris.", "Rome has hills."), 2, (1, 2)),
        (("The tower.", "It is in Paris.", "A.", "Rome."), 2, (1,)),
        (("The tower is in Paris.",), 2, (0,)),
        (("Rome has hills.", "It."), 0, ()),
        ((), 0, ()),
        (("", " "), 0, ()),
    ],
)
def test_relevance_has_grades_and_evidence(
    ranker: LocalJudge, sentences: tuple[str, ...], grade: int, evidence: tuple[int, ...]
) -> None:
    """Each sentence is scored together with the one before it; the best ones are evidence."""
    question = Relevance("Is the tower in Paris?", sentences)
    verdict = ask(ranker, question)
    assert isinstance(verdict, RelevanceVerdict), verdict
    assert (verdict.grade, verdict.evidence) == (grade, evidence)
    assert question.fault(verdict) is None


def test_the_cuts_separate_the_grades(tmp_path: Path) -> None:
    """One key of one gives the logit 2: grade 1 below the cut of 0.9, grade 2 above one of 0.85."""
    question = Relevance("The tower?", ("The tower.",))
    for cuts, grade in (("[0.1, 0.9]", 1), ("[0.1, 0.85]", 2), ("[0.9, 0.95]", 0)):
        judge = local_judge(str(reranker(tmp_path / f"r{grade}", RERANKER_CARD.replace("[0.1, 0.9]", cuts))))
        verdict = ask(judge, question)
        assert isinstance(verdict, RelevanceVerdict)
        assert verdict.grade == grade
        assert verdict.probability == pytest.approx(sigmoid(2), abs=1e-6)


@pytest.mark.parametrize(
    ("contexts", "label"),
    [
        (("The tower is in Paris.", "Rome."), SufficiencyLabel.SUFFICIENT),
        (("A tower.", "Paris.", "Rome."), SufficiencyLabel.SUFFICIENT),
        (("Rome.",), SufficiencyLabel.INSUFFICIENT),
        ((), SufficiencyLabel.INSUFFICIENT),
    ],
)
def test_sufficiency_joins_the_best_contexts(
    ranker: LocalJudge, contexts: tuple[str, ...], label: SufficiencyLabel
) -> None:
    """One context may be enough, or the best three as one text."""
    verdict = ask(ranker, Sufficiency("Is the tower in Paris?", contexts))
    assert isinstance(verdict, SufficiencyVerdict), verdict
    assert verdict.label is label


@pytest.mark.parametrize("name", ["checker", "ranker"])
def test_usefulness_reads_the_reference(name: str, request: pytest.FixtureRequest) -> None:
    """A context is useful if it contains the reference, or one of its sentences for a model of statements."""
    judge: LocalJudge = request.getfixturevalue(name)
    question = Usefulness("When?", "The tower is in Paris.", ("It is a.", "The tower is in Paris."))
    verdict = ask(judge, question)
    assert isinstance(verdict, UsefulnessVerdict), verdict
    assert (verdict.useful, verdict.evidence) == (True, (1,))
    assert question.fault(verdict) is None
    useless = ask(judge, Usefulness("When?", "The tower is in Paris.", ("Rome.",)))
    assert isinstance(useless, UsefulnessVerdict)
    assert (useless.useful, useless.evidence) == (False, ())


def test_each_sentence_of_a_reference_may_make_a_context_useful(checker: LocalJudge) -> None:
    """A context that supports one of two sentences of the reference helps."""
    verdict = ask(checker, Usefulness("When?", "The tower is in Paris. Rome has hills.", ("Rome has seven hills.",)))
    assert isinstance(verdict, UsefulnessVerdict)
    assert verdict.useful


def test_addresses_and_similarities_are_scores(ranker: LocalJudge) -> None:
    """A statement addresses a question by its score, and similarities are the scores themselves."""
    addressed = ask(ranker, Addresses("The tower is in Paris.", "Paris, tower?"))
    assert isinstance(addressed, AddressesVerdict)
    assert addressed.addresses
    question = Similarities(("tower", "rome"), ("a tower", "paris", "rome"))
    matrix = ask(ranker, question)
    assert isinstance(matrix, MatrixVerdict)
    assert question.fault(matrix) is None
    assert matrix.row(0) == pytest.approx((sigmoid(2), sigmoid(-10), sigmoid(-10)), abs=1e-6)
    assert matrix.row(1)[2] == pytest.approx(sigmoid(2), abs=1e-6)


def test_rules_divide_a_response(checker: LocalJudge) -> None:
    """Statements and noncommittal responses are for the rules of the embedded judge."""
    statements = ask(checker, Statements(("The tower is in Paris.", "It has hills."), "When?"))
    assert isinstance(statements, StatementsVerdict)
    assert [each.text for each in statements.statements] == ["The tower is in Paris.", "It has hills."]
    declined = ask(checker, Noncommittal("When?", "I do not know."))
    assert isinstance(declined, NoncommittalVerdict)
    assert declined.noncommittal
