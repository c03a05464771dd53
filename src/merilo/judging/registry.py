"""All kinds of questions, and the kind of question that a verdict answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.judging.kinds.contexts import Mentions, Relevance, Sufficiency, Support, Usefulness
from merilo.judging.kinds.measured import Embeddings, Sentences, Similarities
from merilo.judging.kinds.responses import (
    Addresses,
    Answered,
    Choice,
    Completion,
    Entities,
    Noncommittal,
    Parts,
    PassageQuestion,
    Statements,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict

_JUDGED: Final = (Relevance, Usefulness, Statements, Support, Sufficiency, Addresses, Noncommittal, Parts, Answered)
_OTHER: Final = (Entities, Mentions, Choice, PassageQuestion, Completion, Sentences, Embeddings, Similarities)
KINDS: dict[str, type[Question[Any]]] = {kind.kind: kind for kind in (*_JUDGED, *_OTHER)}
"""Every question type by its kind."""
ALL_KINDS: Final = frozenset(KINDS.values())
"""Every question type."""
SPECIAL: Final[Mapping[type[Question[Any]], str]] = {
    Embeddings: "embedder",
    Similarities: "similarity",
    Sentences: "splitter",
}
"""Roles of the question types that are measurements of texts, not judgements."""
LABELLED_KINDS: Final = frozenset(name for name, kind in KINDS.items() if kind.asked or "label_form" in vars(kind))
"""The kinds of questions that annotators can answer with a label."""

_KIND_OF: Final = {kind.verdict: name for name, kind in reversed(KINDS.items())}
ANSWERING: Final = frozenset(_KIND_OF)
"""The verdict types that answer some question."""


def kind_of(verdict: Verdict) -> str:
    """Return the kind of question that a verdict of this type answers; the first in KINDS if there are several."""
    return _KIND_OF[type(verdict)]
