"""The model of the embedded judge: cosines, words and the reader joined, as it ships."""

from dataclasses import replace
from importlib.resources import files

import pytest

from merilo.errors import DataError
from merilo.judges.blended import CURVES_FILE, BlendedModel, CannotJudge

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
    assert found.level >= 1
    assert 2 in found.evidence


def test_an_unrelated_context_is_grade_0_without_evidence(model: BlendedModel) -> None:
    """A context about something else gets the lowest grade and no evidence."""
    found = model.relevance(ASKED, OTHER)
    assert (found.level, found.evidence) == (0, ())


def test_the_likelier_of_two_contexts_has_the_higher_probability(model: BlendedModel) -> None:
    """Each task ranks a context with the answer above one without."""
    reference = "It is 330 metres high."
    assert model.relevance(ASKED, SENTENCES).probability > model.relevance(ASKED, OTHER).probability
    enough, short = model.p_sufficient(ASKED, [SENTENCES]), model.p_sufficient(ASKED, [OTHER])
    assert enough is not None
    assert short is not None
    assert enough > short
    likely, unlikely = model.p_support(reference, [SENTENCES]), model.p_support(reference, [OTHER])
    assert likely is not None
    assert unlikely is not None
    assert likely > unlikely
    good, bad = (model.usefulness(ASKED, reference, each).probability for each in (SENTENCES, OTHER))
    assert good > bad


def test_the_end_of_a_long_context_counts(model: BlendedModel) -> None:
    """A sentence behind several windows of other text is read, and found as the evidence."""
    long = (*OTHER * 60, SENTENCES[2])
    found = model.relevance("How many metres high is the building?", long)
    assert found.closest == len(long) - 1
    assert model.p_support("It is 330 metres high.", [long]) > 0.9


def test_what_it_cannot_judge_is_not_judged(model: BlendedModel) -> None:
    """Support, sufficiency and usefulness in another language have no verdict."""
    asked, statement = "Какова высота Эйфелевой башни?", "Башня очень высокая."
    assert model.p_support(statement, [RUSSIAN]) is None
    assert model.p_sufficient(asked, [RUSSIAN]) is None
    with pytest.raises(CannotJudge, match="other than English"):
        model.usefulness(asked, statement, RUSSIAN)
    with pytest.raises(CannotJudge, match="different languages"):
        model.relevance(ASKED, RUSSIAN)


def test_words_decide_relevance_in_other_languages(model: BlendedModel) -> None:
    """A context with the words of the question is relevant, and one without them is not."""
    assert model.relevance("Какова высота Эйфелевой башни?", RUSSIAN).level >= 1
    assert model.relevance("Wie hoch ist der Eiffelturm?", ("Der Eiffelturm ist 330 Meter hoch.",)).level >= 1
    assert model.relevance("埃菲尔铁塔有多高？", ("埃菲尔铁塔高330米。",)).level >= 1
    assert model.relevance("Какова высота Эйфелевой башни?", ("Хлеб пекут из муки и воды.",)).level == 0


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
    assert model.p_sufficient(ASKED, [mixed]) == model.p_sufficient(ASKED, [SENTENCES])
    statement = "It was designed by the company of Gustave Eiffel."
    assert model.p_support(statement, [OTHER, mixed]) == model.p_support(statement, [OTHER, SENTENCES])


def test_an_answer_depends_on_nothing_before_it(model: BlendedModel) -> None:
    """A model that has answered other questions answers like a fresh one, to the bit."""
    model.relevance(ASKED, OTHER)
    fresh = BlendedModel.of(_curves(), model.weights)
    assert fresh.relevance(ASKED, SENTENCES) == model.relevance(ASKED, SENTENCES)
    assert fresh.p_sufficient(ASKED, [OTHER, SENTENCES]) == model.p_sufficient(ASKED, [OTHER, SENTENCES])


def test_curves_go_with_their_weights_only(model: BlendedModel) -> None:
    """Weights other than those that the curves were fitted for are refused, and say what to do."""
    other = replace(model.weights, fingerprint="f" * 64)
    with pytest.raises(DataError, match=r"fitted for weights .*, these are ffffffffffff\); reinstall merilo"):
        BlendedModel.of(_curves(), other)


def _curves() -> bytes:
    return files("merilo.judges").joinpath(CURVES_FILE).read_bytes()
