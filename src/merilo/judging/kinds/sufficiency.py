"""Questions and verdicts of the kind `sufficiency`: whether all contexts together contain enough for an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

from merilo.judging import reply_fields
from merilo.judging.questions import GUESSED_REASON, Question, Texts
from merilo.judging.reply_fields import TEXT, ReplySchema
from merilo.judging.synthetic import CONTEXT, OTHER, USER_INPUT
from merilo.judging.verdicts import LATER, DecisionVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.reply_fields import Fields
    from merilo.judging.synthetic import Odds


class SufficiencyLabel(StrEnum):
    """Extent to which the contexts together contain the answer to the user input."""

    SUFFICIENT = "sufficient"
    PARTLY = "partly"
    INSUFFICIENT = "insufficient"


_LABELS: Final = tuple(SufficiencyLabel)
_VALUES: Final = {
    SufficiencyLabel.SUFFICIENT: 1.0,
    SufficiencyLabel.PARTLY: 0.5,
    SufficiencyLabel.INSUFFICIENT: 0.0,
}


@dataclass(frozen=True, slots=True)
class SufficiencyVerdict(DecisionVerdict):
    """Sufficiency of all contexts together for an answer."""

    yes = "sufficient"

    label: SufficiencyLabel
    missing: str = ""
    """Missing information, in words; empty if sufficient or if the judge does not name it."""
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        label = SufficiencyLabel(reply_fields.label(fields, _LABELS))
        return cls(label, missing=reply_fields.text(fields, "missing"), reason=reply_fields.text(fields, "reason"))

    @property
    def positive(self) -> bool:
        """True if the label is `sufficient`."""
        return self.label is SufficiencyLabel.SUFFICIENT

    @property
    def value(self) -> float:
        """See `DecisionVerdict.value`: 1, 0.5 or 0."""
        return _VALUES[self.label]

    @property
    def decision(self) -> object:
        return self.label

    def as_label(self) -> str:
        return self.label.value

    def in_words(self) -> str:
        missing = f" (missing: {self.missing})" if self.missing else ""
        return self.label.value + missing


@dataclass(frozen=True, slots=True)
class Sufficiency(Question[SufficiencyVerdict]):
    """Question: do these contexts together contain enough to answer the user input?"""

    kind = "sufficiency"
    verdict = SufficiencyVerdict
    reply_tokens = 384
    reply = ReplySchema(
        {"reason": TEXT, "label": {"type": "string", "enum": list(_LABELS)}, "missing": TEXT},
        "label",
        SufficiencyVerdict.from_reply,
    )
    tasks = ("sufficiency",)
    shared = frozenset({"contexts"})
    facts = ("reference", "gold")
    asked = "Do these contexts together hold enough to answer the user input?"
    shown = (("user_input", "user_input"), ("contexts", "contexts"))
    form_labels = tuple(label.value for label in reversed(SufficiencyLabel))
    form_meanings = ("no part of the answer can be given", "a part of it can", "all of it can")
    trials = ((USER_INPUT, (CONTEXT, OTHER)), (USER_INPUT, (OTHER,)))

    user_input: str
    contexts: Texts
    reference: str = field(default="", kw_only=True, repr=False, compare=False, metadata=LATER)
    """The right answer, for a judge that compares texts; empty if unknown."""
    gold: int = field(default=0, kw_only=True, repr=False, compare=False, metadata=LATER)
    """1 if all passages that are known to hold the answer are among the contexts, -1 if none is, otherwise 0."""

    def fault(self, verdict: SufficiencyVerdict) -> str | None:
        """See `Question.fault`: a sufficient verdict that names something missing contradicts itself."""
        if verdict.label is SufficiencyLabel.SUFFICIENT and verdict.missing.strip():
            return "says sufficient but names something missing"
        return None

    def guess(self) -> SufficiencyVerdict:
        """Return partly sufficient."""
        return SufficiencyVerdict(SufficiencyLabel.PARTLY, missing=GUESSED_REASON, reason=GUESSED_REASON)

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> SufficiencyVerdict:
        del evidence
        return SufficiencyVerdict(SufficiencyLabel(label))

    def synthetic(self, odds: Odds) -> SufficiencyVerdict:
        return SufficiencyVerdict(_LABELS[int(3 * odds.of(*sorted(self.contexts)))])

    def best(self) -> SufficiencyVerdict:
        return SufficiencyVerdict(SufficiencyLabel.SUFFICIENT)

    def better(self, verdict: SufficiencyVerdict) -> Iterator[SufficiencyVerdict]:
        if verdict.label is SufficiencyLabel.INSUFFICIENT:
            yield SufficiencyVerdict(SufficiencyLabel.PARTLY)
        if verdict.label is not SufficiencyLabel.SUFFICIENT:
            yield SufficiencyVerdict(SufficiencyLabel.SUFFICIENT)
