"""The fields of the rubric `texts`, which asks several questions about the texts of a sample in one prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from merilo.judging.kinds.noncommittal import Noncommittal
from merilo.judging.kinds.statements import Statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judging.questions import Question, Texts


def text_fields(questions: Sequence[Question[Any]]) -> dict[str, object]:
    """Return the user input, each text once, and the tasks in the order of the questions: kind and number of the text.

    A response is shown by its sentences if a task asks for its statements, and otherwise as one sentence. Raises
    TypeError for other kinds of question.
    """
    texts = dict.fromkeys(each.sentences for each in questions if isinstance(each, Statements))
    by_characters = {_characters(text): text for text in texts}
    tasks: list[tuple[str, Texts]] = []
    for each in questions:
        if isinstance(each, Statements):
            text = each.sentences
        elif isinstance(each, Noncommittal):
            text = by_characters.setdefault(_characters((each.response,)), (each.response,))
            texts.setdefault(text)
        else:
            raise TypeError(f"a question of kind {each.kind!r} is not about a text")
        tasks.append((each.kind, text))
    first, places = questions[0], {text: place for place, text in enumerate(texts, start=1)}
    return {
        "user_input": user_input_of(first),
        "texts": (*texts,),
        "tasks": tuple((kind, places[text]) for kind, text in tasks),
        **({"history": first.history} if first.history else {}),
    }


def user_input_of(question: Question[Any]) -> str:
    """Return the user input that the text of a question replies to; empty for other kinds."""
    return question.user_input if isinstance(question, Statements | Noncommittal) else ""


def _characters(text: Texts) -> str:
    """Return the characters of a text except white space, which splitting into sentences may change."""
    return "".join(" ".join(text).split())
