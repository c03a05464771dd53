"""What an endpoint would not take, learnt from its refusals: told once, and left out from then on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.providers.problems import Problem

DROPPED = "dropped"
ADAPTABLE = frozenset({400, 404, 405, 422})
REFUSES = re.compile(
    r"unsupported|not supported|n[o']t support|unknown|unrecogni[sz]ed|unexpected|not permitted"
    r"|not allowed|no longer|unavailable|not available|only the default|may only be set|extra (?:inputs|fields)"
    r"|not implemented|deprecated|invalid (?:parameter|field|argument)|use '?max_",
    re.IGNORECASE,
)
"""A message that says an endpoint does not take something, whatever its value."""


class Adaptations:
    """What one connection has learnt: `done` maps each refused parameter to what was done about it."""

    def __init__(self, model: str, known: Mapping[str, str]) -> None:
        self._model = model
        self.done: dict[str, str] = dict(known)
        self.notices: list[str] = []

    def note(self, name: str, what: str, sentence: str, *, problem: Problem | None = None) -> bool:
        """Remember and tell what is done about a parameter from now on; False when it was known."""
        if self.done.get(name) == what:
            return False
        self.done[name] = what
        refused = f"the endpoint refused {name} ({problem.shown}); " if problem else ""
        self.notices.append(f"{self._model}: {refused}{sentence}.")
        return True


def names(parameter: str, text: str) -> bool:
    """Whether the text names the parameter as a word of its own."""
    return bool(parameter) and re.search(rf"(?<![\w-]){parameter}(?![\w-])", text) is not None
