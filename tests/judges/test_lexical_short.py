"""Short answers by the words: whether they stand where the answer should, in whatever language."""

from __future__ import annotations

import pytest
from each_case import each_case

from merilo.data.short_answers import stated
from merilo.judges.lexical import LexicalModel
from merilo.judges.lexical_short import ANSWERED_FEATURES, YES_OR_NO_FEATURES, ShortAnswer, short_answer

TOWER = (
    "The Eiffel Tower was designed by the engineer Stephen Sauvestre.",
    "It is 330 metres tall and was built from 1887 to 1889.",
    "Its paint is renewed every seven years by a team of twenty-five painters.",
)
BREAD = ("Sourdough bread is leavened by wild yeast.", "The loaf is baked in a very hot oven for 45 minutes.")


@pytest.fixture(scope="module")
def model() -> LexicalModel:
    """The model in the package."""
    return LexicalModel.load()


def behind(asked: str, answer: str, language: str = "en") -> str:
    """The answer as the statement that is judged."""
    statement = stated(answer, asked, language)
    assert statement is not None
    return statement


@each_case(("language", "asked", "right", "wrong", "context"), [
        ("en", "How often is the paint of the tower renewed?", "every seven years", "330 metres", TOWER),
        ("en", "Who designed the Eiffel Tower?", "Stephen Sauvestre", "twenty-five painters", TOWER),
        ("ru", "В каком году построена Эйфелева башня?", "1889", "Париж",
         ("Париж — столица Франции.", "Эйфелеву башню построили в 1889 году по проекту инженера.")),
        ("es", "¿Cuándo se construyó la Torre Eiffel?", "1889", "Francia",
         ("París es la capital de Francia.", "La Torre Eiffel se construyó en 1889 para una exposición.")),
        ("zh", "埃菲尔铁塔有多高？", "330米", "法国", ("巴黎是法国的首都。", "埃菲尔铁塔高330米，位于巴黎。")),
    ])  # fmt: skip
def test_a_word_of_the_context_is_not_yet_the_answer(
    model: LexicalModel, language: str, asked: str, right: str, wrong: str, context: tuple[str, ...]
) -> None:
    """Both stand in the context; only what stands where the question is answered is supported."""
    good, bad = (model.support(behind(asked, each, language), [context]) for each in (right, wrong))
    assert good.supported
    assert good.probability > bad.probability
    assert not bad.supported


def test_the_context_that_holds_the_answer_is_its_evidence(model: LexicalModel) -> None:
    """A context that answers nothing is not named, wherever it stands."""
    statement = behind("Who designed the Eiffel Tower?", "Stephen Sauvestre")
    assert model.support(statement, [BREAD, TOWER]).evidence == (1,)
    assert model.support(statement, [TOWER, BREAD]).evidence == (0,)


def test_an_answer_that_stands_nowhere_is_unsupported(model: LexicalModel) -> None:
    """Without a word of it in any context there is nothing to weigh."""
    found = model.support(behind("How tall is the Eiffel Tower?", "four miles"), [TOWER, (), BREAD])
    assert (found.supported, found.evidence, found.probability) == (False, (), 0.0)


def test_a_question_without_its_mark_is_no_copy(model: LexicalModel) -> None:
    """The words of a search stand in the very sentence that answers; they are no other text with an answer to them."""
    context = ("Paris is the capital of France.", "Lyon lies in the south.")
    assert model.support(behind("capital of France", "Paris"), [context]).supported
    assert not model.support(behind("capital of France", "Lyon"), [context]).supported


def test_a_yes_needs_a_context_that_speaks_of_it(model: LexicalModel) -> None:
    """A yes or a no stands nowhere in a context: where that is about something else, neither is supported."""
    for answer in ("Yes.", "No."):
        statement = behind("Was the tower designed by an engineer?", answer)
        near, far = model.support(statement, [TOWER]), model.support(statement, [BREAD])
        assert near.probability > far.probability
        assert not far.supported


@each_case("asked", ["When was the tower painted?", "In which town is it?", "Кто построил башню?", "¿Cuándo?"])
@each_case("answer", ["Yes.", "No."])
def test_nobody_affirms_when_or_who(model: LexicalModel, asked: str, answer: str) -> None:
    """A yes or a no to a question that asks for something else is never supported."""
    assert not model.support(behind(asked, answer), [TOWER]).probability


def test_a_question_in_one_context_changes_nothing_of_the_others(model: LexicalModel) -> None:
    """What only repeats the question says nothing, and does not let another context answer it."""
    asked = "What is the capital of France?"
    assert not model.support(
        behind(asked, "Brazil"), [(asked,), ("Brazil is the largest producer of coffee.",)]
    ).supported


def test_a_denial_tells_a_yes_from_a_no(model: LexicalModel) -> None:
    """Where the sentence that answers says not, a yes is the less likely answer."""
    asked, context = "Is the loaf baked in an oven?", "The loaf is not baked in an oven."
    assert model.support(behind(asked, "Yes."), [(context,)]).probability < 0.5
    plain = model.support(behind(asked, "Yes."), [("The loaf is baked in an oven.",)])
    assert plain.probability > model.support(behind(asked, "Yes."), [(context,)]).probability


@each_case(
    ("answer", "task"), [("Yes.", "yes_or_no"), ("нет", "yes_or_no"), ("In 1889.", "answered"), ("?!", "answered")]
)
def test_each_kind_of_answer_has_a_curve(answer: str, task: str) -> None:
    """A yes or a no has its own; what is not behind a question is no short answer."""
    found = short_answer(f"Is it tall?\n\n{answer}")
    assert found is not None
    assert found.task == task
    assert short_answer(answer) is None


def test_a_row_has_a_number_for_each_feature(model: LexicalModel) -> None:
    """As many as there are names, and none for a context that can show nothing of the answer."""
    asked = "How tall is the Eiffel Tower?"
    (row, none) = model.short_rows(ShortAnswer(asked, "330 metres", None), [TOWER, BREAD])
    assert row is not None
    assert (len(row.row), row.sentences, none) == (len(ANSWERED_FEATURES), (1,), None)
    (row, none) = model.short_rows(ShortAnswer("Is it tall?", "Yes.", says_yes=True), [TOWER, ()])
    assert row is not None
    assert (len(row.row), row.sentences, none) == (len(YES_OR_NO_FEATURES), (), None)


@each_case("answer", ["...", "👍", "—", "؟"])
def test_signs_answer_nothing(model: LexicalModel, answer: str) -> None:
    """An answer without a word is not judged by the question that it stands behind."""
    assert not model.support(behind("Who designed the Eiffel Tower?", answer), [TOWER]).supported
