"""Questions of a card of the form `options`: the model reads each option of a question separately.

The logits of all options, divided by the question's temperature, give a probability to each of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

if TYPE_CHECKING:
    from collections.abc import Mapping

SLOT: Final = re.compile(r"\{(\w+)\}")
"""A place in a text of a card that a text of the question fills."""
OWN_SLOTS: Final = ("question", "option")
"""The slots that the form `options` fills itself."""


class OptionQuestion(BaseModel):
    """How the model is asked one kind of question."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    wording: str
    """The question, which may contain slots."""
    options: tuple[str, ...] = Field(min_length=2)
    yes: tuple[str, ...] = Field(min_length=1)
    """The options that mean yes. The last one is the highest grade."""
    temperature: float = Field(default=1.0, gt=0)

    @model_validator(mode="after")
    def _names_its_options(self) -> Self:
        if len({*self.options}) < len(self.options):
            raise ValueError("options must differ")
        if other := [name for name in self.yes if name not in self.options]:
            raise ValueError(f"{other[0]!r} is not one of the options ({', '.join(self.options)})")
        if {*self.yes} == {*self.options}:
            raise ValueError("at least one option must not mean yes")
        return self

    @property
    def slots(self) -> frozenset[str]:
        """The slots of the wording."""
        return frozenset(SLOT.findall(self.wording))

    def inputs(self, texts: Mapping[str, str]) -> list[Mapping[str, str]]:
        """Return the texts by slot of the input for each option, in order."""
        question = filled(self.wording, texts)
        return [{**texts, "question": question, "option": option} for option in self.options]


def filled(template: str, texts: Mapping[str, str]) -> str:
    """Return a text of the card with the texts of the question in its slots."""
    return SLOT.sub(lambda match: texts[match[1]], template)  # in one pass: a text may contain the name of a slot
