"""Questions and verdicts of the kind `entities`: the entities that a text names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from merilo.judging import reply_fields
from merilo.judging.json_extraction import JsonShape
from merilo.judging.questions import Question, Texts
from merilo.judging.reply_fields import TEXT_OF_SENTENCE, ListReplySchema
from merilo.judging.synthetic import FLOOD, OTHER, SENTENCES
from merilo.judging.verdicts import ListVerdict, index_fault

if TYPE_CHECKING:
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that a text names, in the text's own words, and the index of its sentence."""

    text: str
    sentence: int


@dataclass(frozen=True, slots=True)
class EntitiesVerdict(ListVerdict):
    """The entities that a text names; empty if it names none."""

    listed = "entities"
    one = "entity"

    entities: tuple[Entity, ...]
    probability: float | None = None

    @classmethod
    def from_reply(cls, items: list[object]) -> Self:
        return cls(tuple(Entity(*reply_fields.text_of_sentence(item)) for item in items))


@dataclass(frozen=True, slots=True)
class Entities(Question[EntitiesVerdict]):
    """Question: which entities (people, places, organisations, works, dates, amounts ...) do these numbered sentences
    name?
    """

    kind = "entities"
    verdict = EntitiesVerdict
    reply = ListReplySchema(
        JsonShape(("entities", "sentence", "text"), item="text"), TEXT_OF_SENTENCE, EntitiesVerdict.from_reply
    )
    prepares = True
    cited = "sentences"
    trials = ((SENTENCES,), ((OTHER,),))

    sentences: Texts

    def fault(self, verdict: EntitiesVerdict) -> str | None:
        """See `Question.fault`: an entity occurs in its sentence, except for case and white space."""
        size = len(self.sentences)
        for entity in verdict.entities:
            if (fault := index_fault(entity.sentence, size, "sentence")) is not None:
                return fault
            if not entity.text.strip():
                return "holds a blank entity"
            if _fold(entity.text) not in _fold(self.sentences[entity.sentence]):
                return f"names {entity.text!r}, which does not stand in sentence {entity.sentence + 1}"
        return None

    def guess(self) -> EntitiesVerdict:
        """Return the first word of each sentence."""
        words = ((sentence.split(), index) for index, sentence in enumerate(self.sentences))
        return EntitiesVerdict(tuple(Entity(found[0], index) for found, index in words if found))

    def synthetic(self, odds: Odds) -> EntitiesVerdict:
        if odds.flood:
            return EntitiesVerdict(tuple(Entity(f"Entity {place}", 0) for place in range(FLOOD)))
        words = ((word, place) for place, sentence in enumerate(self.sentences) for word in sentence.split())
        return EntitiesVerdict(tuple(Entity(*found) for found in words if odds.of(found[0]) < 0.3))


def _fold(text: str) -> str:
    """Return the text without differences of case and white space."""
    return " ".join(text.split()).casefold()
