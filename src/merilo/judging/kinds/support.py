"""Questions and verdicts of the kind `support`: whether contexts support a statement."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final, Self

from merilo.judging import reply_fields
from merilo.judging.questions import GUESSED_REASON, Question
from merilo.judging.reply_fields import NUMBERS, TEXT
from merilo.judging.reply_schema import ReplySchema
from merilo.judging.verdict_checks import evidence_fault
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from merilo.judging.questions import Texts
    from merilo.judging.reply_fields import Fields


class SupportLabel(StrEnum):
    """Relation of contexts to a statement."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_STATED = "not_stated"
    UNSUPPORTED = "unsupported"
    """Not supported, from a judge that does not distinguish contradicted from not stated."""


_LABELS: Final = ("supported", "contradicted", "not_stated")
"""The labels that a language model may answer."""


@dataclass(frozen=True, slots=True)
class SupportVerdict(Verdict):
    """Support of contexts for a statement, with the contexts concerned."""

    label: SupportLabel
    evidence: tuple[int, ...] = ()
    """Indices of every context that supports (or contradicts) the statement."""
    reason: str = ""
    probability: float | None = None
    tells_contradicted: bool = True
    """False for a judge that never answers `contradicted`. Its verdicts do not show that nothing is contradicted."""

    @property
    def supported(self) -> bool:
        """True if the label is `supported`."""
        return self.label is SupportLabel.SUPPORTED

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        """Return the verdict in a reply. Raises ReplyParseError."""
        label = SupportLabel(reply_fields.label(fields, _LABELS))
        return cls(label, evidence=reply_fields.evidence(fields), reason=reply_fields.text(fields, "reason"))


@dataclass(frozen=True, slots=True)
class Support(Question[SupportVerdict]):
    """Question: do these numbered contexts support the statement, and which of them?"""

    kind: ClassVar[str] = "support"
    verdict: ClassVar[type[Verdict]] = SupportVerdict
    reply = ReplySchema(
        {"reason": TEXT, "label": {"type": "string", "enum": list(_LABELS)}, "evidence": NUMBERS},
        "label",
        SupportVerdict.from_reply,
        pack_item="statement",
    )
    shared: ClassVar[frozenset[str]] = frozenset({"contexts"})

    statement: str
    contexts: Texts

    def fault(self, verdict: SupportVerdict) -> str | None:
        """See `Question.fault`."""
        named, label = bool(verdict.evidence), verdict.label
        if label in {SupportLabel.SUPPORTED, SupportLabel.CONTRADICTED} and not named:
            return f"says {label.value} but names no context"
        if label in {SupportLabel.NOT_STATED, SupportLabel.UNSUPPORTED} and named:
            return f"says {label.value} but names contexts"
        if label is SupportLabel.UNSUPPORTED and verdict.tells_contradicted:
            return "says unsupported, which is for judges that do not tell contradicted from not stated"
        if label is SupportLabel.CONTRADICTED and not verdict.tells_contradicted:
            return "says contradicted, though it is marked as not telling that"
        return evidence_fault(verdict.evidence, len(self.contexts), "context")

    def guess(self) -> SupportVerdict:
        """Return supported, based on the first context."""
        return SupportVerdict(SupportLabel.SUPPORTED, evidence=(0,), reason=GUESSED_REASON)


QUESTION: Final = Support
"""The question type of this module, for `merilo.judging.registry`."""
