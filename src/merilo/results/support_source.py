"""The text that a statement was checked against: the contexts, the reference or the response."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from merilo.data.short_answers import stated
from merilo.judging.kinds.support import Support, SupportVerdict

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.runs.store import StoredQuestion


def held_against(statement: str, answer: Answer, asked: Sequence[StoredQuestion], sample: Sample) -> str:
    """Return the text as a phrase, such as `the contexts and the response` if the answer was the same for both.

    Empty if unknown. `asked`: the questions of the metrics whose evidence the answer is.
    """
    questions = (each.question for each in asked if bare(each.answer) == bare(answer))
    found = [
        named_texts(question.contexts, sample)
        for question in questions
        if isinstance(question, Support) and question.statement == statement
    ]
    return " and ".join(dict.fromkeys(filter(None, found)))


def bare(answer: Answer) -> Answer:
    """Return an answer without its evidence; a metric's evidence omits indices that are not contexts."""
    return replace(answer, evidence=(), sentences=()) if isinstance(answer, SupportVerdict) else answer


def named_texts(texts: Collection[str], sample: Sample) -> str:
    """Return the name of these texts in the sample: `the contexts`, `context 2`, `the reference`; empty for others."""
    contexts = [each.text for each in sample.retrieved_contexts or ()]
    if len(texts) == 1 and len(contexts) > 1 and (only := next(iter(texts))) in contexts:
        return f"context {contexts.index(only) + 1}"
    if texts and set(texts) <= set(contexts):
        return "the contexts"
    for text, name in ((sample.reference, "the reference"), (sample.response, "the response")):
        if (
            text is not None
            and texts
            and set(texts) <= {text, stated(text, sample.user_input, sample.resolved_language)}
        ):
            return name
    return ""
