"""All kinds of questions, and the kind of question that a verdict answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.judging.kinds.addresses import Addresses
from merilo.judging.kinds.answered import Answered
from merilo.judging.kinds.choice import Choice
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.embeddings import Embeddings
from merilo.judging.kinds.entities import Entities
from merilo.judging.kinds.mentions import Mentions
from merilo.judging.kinds.noncommittal import Noncommittal
from merilo.judging.kinds.parts import Parts
from merilo.judging.kinds.passage_question import PassageQuestion
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.sentences import Sentences
from merilo.judging.kinds.similarities import Similarities
from merilo.judging.kinds.statements import Statements
from merilo.judging.kinds.sufficiency import Sufficiency
from merilo.judging.kinds.support import Support
from merilo.judging.kinds.usefulness import Usefulness

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
