"""Questions and verdicts of the kind `choice`: the label of a closed list that fits some texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.questions import GUESSED_REASON, Question
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from merilo.judging.questions import Texts


@dataclass(frozen=True, slots=True)
class ChoiceVerdict(Verdict):
    """One label of the question's own list."""

    label: str
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Choice(Question[ChoiceVerdict]):
    """Question: which label of a closed list fits these texts, by a user-defined instruction?"""

    kind: ClassVar[str] = "choice"
    verdict: ClassVar[type[Verdict]] = ChoiceVerdict

    instruction: str
    labels: Texts
    definitions: Texts
    """Meaning of each label, in the order of the labels; blank if the label is clear without one."""
    names: Texts
    """Name of each text, such as "response"."""
    values: Texts
    """The texts to judge, in the order of their names."""

    def fault(self, verdict: ChoiceVerdict) -> str | None:
        """See `Question.fault`."""
        if verdict.label in self.labels:
            return None
        return f"has the label {verdict.label!r}; it must be one of {', '.join(map(repr, self.labels))}"

    def guess(self) -> ChoiceVerdict:
        """Return the first label."""
        return ChoiceVerdict(self.labels[0], reason=GUESSED_REASON)


QUESTION: Final = Choice
"""The question type of this module, for `merilo.judging.registry`."""
