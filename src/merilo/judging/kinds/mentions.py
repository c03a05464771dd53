"""Questions and verdicts of the kind `mentions`: whether contexts mention an entity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.judging.questions import Texts
from merilo.judging.synthetic import CONTEXT, OTHER, readable
from merilo.judging.yes_no import YesNoQuestion, YesNoVerdict, yes_no_schema

if TYPE_CHECKING:
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class MentionsVerdict(YesNoVerdict):
    """Verdict on contexts: do they mention an entity, and which of them do?"""

    decided = "mentioned"
    yes = "mentioned"
    words = ("not mentioned", "mentioned")
    shown_evidence = "in context"

    mentioned: bool
    evidence: tuple[int, ...] = ()
    """Indices of every context that mentions it; empty exactly if none does."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Mentions(YesNoQuestion[MentionsVerdict]):
    """Question: do these numbered contexts mention the entity of this name, in whatever form, and which of them?"""

    kind = "mentions"
    verdict = MentionsVerdict
    reply = yes_no_schema(MentionsVerdict, pack_item="entity")
    shared = frozenset({"contexts"})
    subject_field = "name"
    cited = "contexts"
    cited_as = "context"
    asked = "Do these contexts mention the entity, in whatever form?"
    shown = (("entity", "name"), ("contexts", "contexts"))
    trials = (("the Eiffel Tower", (CONTEXT, OTHER)), ("Berlin", (CONTEXT, OTHER)))

    name: str
    contexts: Texts

    def synthetic(self, odds: Odds) -> MentionsVerdict:
        evidence = tuple(index for index in readable(self.contexts) if odds.of(self.name, self.contexts[index]) < 0.3)
        return MentionsVerdict(bool(evidence), evidence)
