"""All kinds of questions, and the kind of question that a verdict answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.judging.kinds import (
    addresses,
    answered,
    choice,
    completion,
    embeddings,
    entities,
    mentions,
    noncommittal,
    parts,
    passage_question,
    relevance,
    sentences,
    similarities,
    statements,
    sufficiency,
    support,
    usefulness,
)

if TYPE_CHECKING:
    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict

KINDS: dict[str, type[Question[Any]]] = {
    kind.kind: kind
    for kind in (
        relevance.QUESTION,
        usefulness.QUESTION,
        statements.QUESTION,
        support.QUESTION,
        sufficiency.QUESTION,
        addresses.QUESTION,
        noncommittal.QUESTION,
        parts.QUESTION,
        answered.QUESTION,
        entities.QUESTION,
        mentions.QUESTION,
        choice.QUESTION,
        passage_question.QUESTION,
        completion.QUESTION,
        sentences.QUESTION,
        embeddings.QUESTION,
        similarities.QUESTION,
    )
}
"""Every question type by its kind."""
ALL_KINDS: Final = frozenset(KINDS.values())
"""Every question type."""
LABELLED_KINDS: Final = frozenset(name for name, kind in KINDS.items() if "label_form" in vars(kind))
"""The kinds of questions that annotators can answer with a label."""

_KIND_OF: Final = {kind.verdict: name for name, kind in reversed(KINDS.items())}
ANSWERING: Final = frozenset(_KIND_OF)
"""The verdict types that answer some question."""


def kind_of(verdict: Verdict) -> str:
    """Return the kind of question that a verdict of this type answers; the first in KINDS if there are several."""
    return _KIND_OF[type(verdict)]
