"""The model of the embedded judge: words and encoder joined, as it ships."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import pytest
from each_case import each_case

from merilo.errors import DataError
from merilo.judges.blended import CURVES_FILE, BlendedModel
from merilo.judges.lexical import LexicalModel

ASKED = "How tall is the Eiffel Tower?"
SENTENCES = (
    "The Eiffel Tower stands in Paris.",
    "It was designed by the company of Gustave Eiffel.",
    "It is 330 metres high, about as much as a building of 81 storeys.",
)
OTHER = ("Bread is baked from flour and water.", "Rye keeps longer than wheat.")
RUSSIAN = ("Эйфелева башня стоит в Париже.", "Её высота 330 метров.")


@pytest.fixture(scope="module")
def model() -> BlendedModel:
    """The model in the package."""
    return BlendedModel.load()


def test_an_answer_in_other_words_is_found(model: BlendedModel) -> None:
    """`Tall` is answered by `high`: the grade is not 0 and the sentence is evidence."""
    found = model.relevance(ASKED, SENTENCES)
    assert found.grade >= 1
    assert 2 in found.evidence


def test_an_unrelated_context_is_grade_0_without_evidence(model: BlendedModel) -> None:
    """A context about something else gets the lowest grade and no evidence."""
    found = model.relevance(ASKED, OTHER)
    assert (found.grade, found.evidence) == (0, ())


def test_the_likelier_of_two_contexts_has_the_higher_probability(model: BlendedModel) -> None:
    """Each task ranks a context with the answer above one without."""
    reference = "It is 330 metres high."
    assert model.relevance(ASKED, SENTENCES).probability > model.relevance(ASKED, OTHER).probability
    assert model.sufficiency(ASKED, [SENTENCES]).probability > model.sufficiency(ASKED, [OTHER]).probability
    assert model.support(reference, [SENTENCES]).probability > model.support(reference, [OTHER]).probability
    good, bad = (model.usefulness(ASKED, reference, each).probability for each in (SENTENCES, OTHER))
    assert good > bad


def test_a_word_of_the_context_is_not_yet_the_answer(model: BlendedModel) -> None:
    """A short answer has to stand where the question is answered; what stands elsewhere in the context is unlikely."""
    asked, context = "Who wrote the play?", ("The play was written by Mary Ash in York.", "It is set in old Rome.")
    right, wrong = (model.support(f"{asked}\n\n{each}", [context]) for each in ("Mary Ash", "Rome"))
    assert right.supported
    assert not wrong.supported
    assert model.support(f"{asked}\n\nMary Ash", [OTHER, context]).evidence == (1,)


@pytest.mark.parametrize("answer", ["Yes.", "No."])
def test_a_yes_or_a_no_needs_a_context_that_speaks_of_it(model: BlendedModel, answer: str) -> None:
    """Beside a context about something else, neither is supported."""
    statement = f"Is the Eiffel Tower higher than 300 metres?\n\n{answer}"
    near, far = model.support(statement, [SENTENCES]), model.support(statement, [OTHER])
    assert near.probability > far.probability
    assert not far.supported


def test_the_end_of_a_long_context_counts(model: BlendedModel) -> None:
    """A sentence behind several windows of other text is read, and found as the evidence."""
    long = (*OTHER * 60, SENTENCES[2])
    found = model.relevance("How many metres high is the building?", long)
    assert len(long) - 1 in found.evidence
    assert model.support("It is 330 metres high.", [long]).probability > 0.5


def test_two_contexts_may_support_a_statement_together(model: BlendedModel) -> None:
    """Each context holds one half of a statement: both are its evidence."""
    halves = [["The bridge was opened in 1932."], ["Its steel came from a mill in Middlesbrough."]]
    statement = "The bridge was opened in 1932 with steel from a mill in Middlesbrough."
    assert model.support(statement, halves).evidence == (0, 1)
    assert not any(model.support(statement, [each]).supported for each in halves)


def test_words_alone_decide_what_is_not_english(model: BlendedModel) -> None:
    """In Russian, and in German, every answer is that of the model of words."""
    words_alone = LexicalModel.load()
    asked, statement = "Какова высота Эйфелевой башни?", "Высота башни 330 метров."
    assert model.relevance(asked, RUSSIAN) == words_alone.relevance(asked, RUSSIAN)
    assert model.support(statement, [RUSSIAN]) == words_alone.support(statement, [RUSSIAN])
    assert model.sufficiency(asked, [RUSSIAN]) == words_alone.sufficiency(asked, [RUSSIAN])
    assert model.usefulness(asked, statement, RUSSIAN) == words_alone.usefulness(asked, statement, RUSSIAN)
    assert model.addresses(asked, statement) == words_alone.addresses(asked, statement)
    german = ("Der Eiffelturm steht in Paris.", "Er ist 330 Meter hoch.")
    assert model.relevance("Wie hoch ist der Turm?", german) == words_alone.relevance("Wie hoch ist der Turm?", german)


def test_a_context_in_another_language_takes_nothing_from_the_english_ones(model: BlendedModel) -> None:
    """English contexts are read as if they stood alone, and a foreign one is left to the words."""
    statement = "It is 330 metres high."
    alone, beside = model.support(statement, [SENTENCES]), model.support(statement, [RUSSIAN[:1], SENTENCES])
    assert (beside.supported, beside.probability) == (alone.supported, alone.probability)
    assert beside.evidence == tuple(at + 1 for at in alone.evidence)
    assert model.sufficiency(ASKED, [RUSSIAN[:1], SENTENCES]) == model.sufficiency(ASKED, [SENTENCES])


def test_a_foreign_context_may_support_beside_an_english_one(model: BlendedModel) -> None:
    """The words of a statement that stand in another language's context count, and name that context."""
    found = model.support("Tokyo 東京 2020", [OTHER, ("東京 2020 Tokyo の大会は東京で開かれた。",)])
    assert found.evidence == (1,)


def test_lines_in_other_letters_change_nothing_in_a_context(model: BlendedModel) -> None:
    """Before, between and behind English sentences they leave each verdict, and move only the places of evidence."""
    line = "Погода была хорошая, и в парке играла музыка, а вечером все пошли домой."
    mixed = (line, SENTENCES[0], line, *SENTENCES[1:])
    moved = [1, *range(3, len(mixed))]
    relevance = model.relevance(ASKED, SENTENCES)
    assert relevance.evidence
    assert relevance.closest is not None
    assert model.relevance(ASKED, mixed) == replace(
        relevance, evidence=tuple(moved[at] for at in relevance.evidence), closest=moved[relevance.closest]
    )
    useful = model.usefulness(ASKED, "330 metres", SENTENCES)
    assert useful.evidence
    assert useful.closest is not None
    placed = tuple(moved[at] for at in useful.evidence)
    assert model.usefulness(ASKED, "330 metres", mixed) == replace(
        useful, evidence=placed, closest=moved[useful.closest]
    )
    assert model.sufficiency(ASKED, [mixed]) == model.sufficiency(ASKED, [SENTENCES])
    statement = "It is 330 metres high."
    plain = model.support(statement, [OTHER, SENTENCES])
    placed_too = tuple(each._replace(sentence=moved[each.sentence]) for each in plain.sentences)
    assert placed_too
    assert model.support(statement, [OTHER, mixed]) == replace(plain, sentences=placed_too)


def test_a_foreign_line_may_answer_beside_english_ones(model: BlendedModel) -> None:
    """The words of the question that stand in another language's line count, and the line is evidence too."""
    line = "Гарри Трумэн (Harry Truman) основал Acme Robotics Limited в 1931 году."
    found = model.relevance("Who founded Acme Robotics Limited, Harry Truman?", (*OTHER, line, line))
    assert found.grade
    assert found.evidence[-1] == len(OTHER) + 1


def test_an_answer_depends_on_nothing_before_it(model: BlendedModel) -> None:
    """A model that has answered other questions answers like a fresh one, to the bit."""
    model.relevance(ASKED, OTHER)
    fresh = BlendedModel.of(_curves(), LexicalModel.load(), model.weights)
    assert fresh.relevance(ASKED, SENTENCES) == model.relevance(ASKED, SENTENCES)
    assert fresh.sufficiency(ASKED, [OTHER, SENTENCES]) == model.sufficiency(ASKED, [OTHER, SENTENCES])


def test_curves_go_with_their_weights_only(model: BlendedModel) -> None:
    """Weights other than those that the curves were fitted for are refused, and say what to do."""
    other = replace(model.weights, fingerprint="f" * 64)
    with pytest.raises(DataError, match=r"fitted for weights .*, these are ffffffffffff\); reinstall merilo"):
        BlendedModel.of(_curves(), LexicalModel.load(), other)


@each_case("curves", [b"{", b"[]", b"{}", b'{"format": 9}', b"\xff"])
def test_damaged_curves_are_refused(model: BlendedModel, curves: bytes) -> None:
    """A file that is no JSON, of a later format or without a part is told as such, with what to do."""
    with pytest.raises(DataError, match=r"Cannot use the curves of the embedded judge \(.*\); reinstall merilo"):
        BlendedModel.of(curves, model.lexical, model.weights)


def _curves() -> bytes:
    return files("merilo.judges").joinpath(CURVES_FILE).read_bytes()
