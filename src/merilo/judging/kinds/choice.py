"""Questions and verdicts of the kind `choice`: the label of a closed list that fits some texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from merilo.judging import reply_fields
from merilo.judging.json_extraction import ReplyParseError
from merilo.judging.labels import LabelForm
from merilo.judging.questions import GUESSED_REASON, Question, Texts
from merilo.judging.reply_fields import TEXT, ReplySchema, object_schema
from merilo.judging.synthetic import CONTEXT, RESPONSE
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.judging.reply_fields import Fields
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class ChoiceVerdict(Verdict):
    """One label of the question's own list."""

    label: str
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        label = fields.get("label")
        if isinstance(label, bool) or not isinstance(label, (str, int)):
            raise ReplyParseError(f'"label" must be a text, not {reply_fields.preview(label)}.')
        return cls(reply_fields.clean(str(label)), reason=reply_fields.text(fields, "reason"))

    def as_label(self) -> str:
        return self.label

    def in_words(self) -> str:
        return self.label


_REPLY: Final = ReplySchema({"reason": TEXT, "label": TEXT}, "label", ChoiceVerdict.from_reply)
_BRIEF: Final = ("Is the response brief?", ("yes", "no"), ("", ""), ("response",))


@dataclass(frozen=True, slots=True)
class Choice(Question[ChoiceVerdict]):
    """Question: which label of a closed list fits these texts, by a user-defined instruction?"""

    kind = "choice"
    verdict = ChoiceVerdict
    reply_tokens = 256
    reply = _REPLY
    trials = ((*_BRIEF, (RESPONSE,)), (*_BRIEF, (CONTEXT,)))

    instruction: str
    labels: Texts
    definitions: Texts
    """Meaning of each label, in the order of the labels; blank if the label is clear without one."""
    names: Texts
    """Name of each text, such as "response"."""
    values: Texts
    """The texts to judge, in the order of their names."""

    def reply_schema(self) -> Mapping[str, object]:
        """See `Question.reply_schema`: the labels are a closed list."""
        return object_schema({**_REPLY.properties, "label": {"type": "string", "enum": list(self.labels)}})

    def normalize(self, verdict: ChoiceVerdict) -> ChoiceVerdict:
        """Return the verdict with the one label that equals its own after folding of case, spaces and quotes."""
        matches = [label for label in self.labels if _plain(label) == _plain(verdict.label)]
        return replace(verdict, label=matches[0]) if verdict.label not in self.labels and len(matches) == 1 else verdict

    def fault(self, verdict: ChoiceVerdict) -> str | None:
        if verdict.label in self.labels:
            return None
        return f"has the label {verdict.label!r}; it must be one of {', '.join(map(repr, self.labels))}"

    def guess(self) -> ChoiceVerdict:
        """Return the first label."""
        return ChoiceVerdict(self.labels[0], reason=GUESSED_REASON)

    def label_form(self) -> LabelForm:
        pairs = zip(self.names, self.values, strict=True)
        shown = "\n\n".join(f"{name}:\n{text}" for name, text in pairs)
        texts = (("texts", shown),)
        return LabelForm(self.kind, self.instruction, texts, self.labels, self.definitions, ordered=False)

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> ChoiceVerdict:
        del evidence
        return ChoiceVerdict(label)

    def synthetic(self, odds: Odds) -> ChoiceVerdict:
        chosen = odds.of(self.instruction, *sorted(self.values))
        return ChoiceVerdict(self.labels[int(len(self.labels) * chosen)])


def _plain(label: str) -> str:
    return re.sub(r"[\s_-]+", "_", label.strip(" \t\n\"'`.")).casefold()
