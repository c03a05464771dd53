"""Questions and verdicts of the kind `sufficiency`: whether all contexts together contain enough for an answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final, Self

from merilo.judging import reply_fields
from merilo.judging.questions import GUESSED_REASON, Question
from merilo.judging.reply_fields import TEXT
from merilo.judging.reply_schema import ReplySchema
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from merilo.judging.questions import Texts
    from merilo.judging.reply_fields import Fields


class SufficiencyLabel(StrEnum):
    """Extent to which the contexts together contain the answer to the user input."""

    SUFFICIENT = "sufficient"
    PARTLY = "partly"
    INSUFFICIENT = "insufficient"


_LABELS: Final = tuple(SufficiencyLabel)


@dataclass(frozen=True, slots=True)
class SufficiencyVerdict(Verdict):
    """Sufficiency of all contexts together for an answer."""

    label: SufficiencyLabel
    missing: str = ""
    """Missing information, in words; empty if sufficient or if the judge does not name it."""
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        """Return the verdict in a reply. Raises ReplyParseError."""
        label = SufficiencyLabel(reply_fields.label(fields, _LABELS))
        return cls(label, missing=reply_fields.text(fields, "missing"), reason=reply_fields.text(fields, "reason"))


@dataclass(frozen=True, slots=True)
class Sufficiency(Question[SufficiencyVerdict]):
    """Question: do these contexts together contain enough to answer the user input?"""

    kind: ClassVar[str] = "sufficiency"
    verdict: ClassVar[type[Verdict]] = SufficiencyVerdict
    reply = ReplySchema(
        {"reason": TEXT, "label": {"type": "string", "enum": list(_LABELS)}, "missing": TEXT},
        "label",
        SufficiencyVerdict.from_reply,
    )
    shared: ClassVar[frozenset[str]] = frozenset({"contexts"})

    user_input: str
    contexts: Texts

    def fault(self, verdict: SufficiencyVerdict) -> str | None:
        """See `Question.fault`: a sufficient verdict that names something missing contradicts itself."""
        if verdict.label is SufficiencyLabel.SUFFICIENT and verdict.missing.strip():
            return "says sufficient but names something missing"
        return None

    def guess(self) -> SufficiencyVerdict:
        """Return partly sufficient."""
        return SufficiencyVerdict(SufficiencyLabel.PARTLY, missing=GUESSED_REASON, reason=GUESSED_REASON)


QUESTION: Final = Sufficiency
"""The question type of this module, for `merilo.judging.registry`."""
