"""Requests to decision models: a state and typed questions about it, answered with a probability for every option.

A decision model writes no text. Both wires (`merilo.providers.decisions` and `merilo.providers.systemone`) send the
same `DecisionRequest`, and both reply with the text that `merilo.providers.decision_replies` describes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from merilo.providers.base import Request

if TYPE_CHECKING:
    from collections.abc import Sequence


class AnswerType(StrEnum):
    """Types of questions that decision models answer."""

    YES_NO = "yes_no"
    """Two options: no, then yes."""
    CHOICE = "choice"
    """One of 2 to 255 named options."""
    SCORE = "score"
    """One of 2 to 10 levels, lowest first."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a question."""

    value: str
    """Its name, unique within the question; a level of a score is named by its position."""
    description: str = ""
    """The situation in which it is right, in words; blank if the name says it."""


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    """One typed question about the state of a request."""

    name: str
    """Identifies the question within its request; models do not see it on every wire."""
    type: AnswerType
    text: str
    """The instructions, in merilo's words: names in backquotes are parts of the state or of `fields`."""
    options: tuple[Option, ...]
    """The options in order; a yes/no question has two: no, then yes."""
    fields: tuple[tuple[str, str], ...] = ()
    """Names and texts that the question is about and the state lacks, such as a statement. They are data."""


@dataclass(frozen=True, slots=True)
class DecisionRequest(Request):
    """A request to a decision model. Its message is the state, as compact JSON; no reply text is charged."""

    max_reply_characters: ClassVar[int | None] = None
    questions: tuple[DecisionQuestion, ...] = ()

    @property
    def state(self) -> str:
        """The state as compact JSON."""
        return self.messages[0].text

    def asking(self, questions: Sequence[DecisionQuestion]) -> DecisionRequest:
        """Return the request with other questions about the same state."""
        return DecisionRequest(self.messages, max_tokens=0, questions=tuple(questions))
