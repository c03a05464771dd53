"""The embedded judge: typed questions in, typed verdicts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from merilo.judges.embedded import EmbeddedJudge
from merilo.judging.questions import (
    Addresses,
    Completion,
    Embeddings,
    Noncommittal,
    Pack,
    Question,
    Relevance,
    Similarities,
    Statements,
    Sufficiency,
    Support,
    Usefulness,
)
from merilo.judging.verdicts import Failure, SufficiencyLabel, SupportLabel

if TYPE_CHECKING:
    from merilo.judging.ask import Answer

CONTEXT = "The Eiffel Tower stands in Paris. It was designed by Gustave Eiffel. It is 330 metres tall."
SENTENCES = (
    "The Eiffel Tower stands in Paris.",
    "It was designed by Gustave Eiffel.",
    "It is 330 metres tall.",
)
ASKED = "How tall is the Eiffel Tower?"

QUESTIONS: tuple[Question[Any], ...] = (
    Relevance(ASKED, SENTENCES),
    Relevance(ASKED, ()),
    Relevance("", ("",)),
    Usefulness(ASKED, "330 metres", SENTENCES),
    Usefulness("", "", ()),
    Statements(SENTENCES),
    Statements(()),
    Support("It is 330 metres tall.", (CONTEXT, "Bread is baked.")),
    Support("", ()),
    Sufficiency(ASKED, (CONTEXT,)),
    Sufficiency("", ()),
    Addresses("The Eiffel Tower is 330 metres tall.", ASKED),
    Noncommittal(ASKED, "I don't know."),
    Embeddings((ASKED, "")),
    Embeddings(()),
    Similarities((ASKED, ""), SENTENCES),
    Similarities((), SENTENCES),
    Similarities((ASKED,), ()),
)


def answers_to(question: Question[Any] | Pack) -> tuple[Answer, ...]:
    """What the judge returns; it must not send anything."""
    conversation = EmbeddedJudge().answer(question)
    with pytest.raises(StopIteration) as stop:
        next(conversation)
    found: tuple[Answer, ...] = stop.value.value
    return found


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.kind)
def test_every_verdict_stands(question: Question[Any]) -> None:
    """Each kind it answers gets a verdict of its type in which the question finds no fault."""
    (verdict,) = answers_to(question)
    assert isinstance(verdict, question.verdict)
    assert question.fault(verdict) is None


def test_it_is_asked_only_what_it_answers() -> None:
    """The kinds it names are the judgements; anything else fails for good instead of being guessed."""
    assert EmbeddedJudge().answers == {type(question) for question in QUESTIONS}
    (failure,) = answers_to(Completion("Say hello.", (), ()))
    assert isinstance(failure, Failure)


def test_statements_are_the_sentences_that_claim() -> None:
    """A statement is a sentence of the text; a question or a refusal claims nothing."""
    (found,) = answers_to(Statements(("The tower is tall.", "Is it?", "I don't know.", "It is in Paris.")))
    assert [(s.text, s.sentence) for s in found.statements] == [
        ("The tower is tall.", 0),
        ("It is in Paris.", 3),
    ]


def test_it_never_says_contradicted() -> None:
    """A statement that is not supported is `unsupported`: it does not tell why."""
    (found,) = answers_to(Support("Saturn has eighty moons.", (CONTEXT,)))
    assert found.label is SupportLabel.UNSUPPORTED


def test_levels_of_sufficiency_have_their_labels() -> None:
    """Contexts with the answer are sufficient, unrelated ones insufficient."""
    assert answers_to(Sufficiency(ASKED, (CONTEXT,)))[0].label is SufficiencyLabel.SUFFICIENT
    assert answers_to(Sufficiency(ASKED, ("Bread is baked.",)))[0].label is SufficiencyLabel.INSUFFICIENT


def test_a_verdict_does_not_depend_on_its_neighbours() -> None:
    """A pack gets what its questions would get alone, in their order."""
    questions = tuple(Support(text, (CONTEXT, "Bread is baked.")) for text in (*SENTENCES, "Bread is baked."))
    assert answers_to(Pack(questions)) == tuple(answers_to(each)[0] for each in questions)


def test_it_says_how_well_it_agrees_with_people() -> None:
    """The line for reports gives a kappa with its interval for support and evidence sentences."""
    line = EmbeddedJudge().rates
    assert line is not None
    assert "support κ 0." in line
    assert "evidence sentences κ 0." in line


def test_the_fingerprint_names_the_model_file() -> None:
    """The fingerprint holds the SHA-256 of the model file, the rules and the splitter."""
    marks = EmbeddedJudge().fingerprint()
    assert len(str(marks["sha256"])) == 64
    assert {"rules", "splitter"} <= set(marks)
