"""Parameters that an endpoint rejects, learnt from its error messages: reported once, and omitted from then on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.providers.problems import EndpointProblem

DROPPED = "dropped"
ADAPTABLE = frozenset({400, 404, 405, 422})
REFUSES = re.compile(
    r"unsupported|not supported|n[o']t support|unknown|unrecogni[sz]ed|unexpected|not permitted"
    r"|not allowed|no longer|unavailable|not available|only the default|may only be set|extra (?:inputs|fields)"
    r"|not implemented|deprecated|invalid (?:parameter|field|argument)|use '?max_",
    re.IGNORECASE,
)
"""Matches an error message that rejects a parameter, whatever its value."""


class Adaptations:
    """Adaptations of one connection; `done` maps each rejected parameter to the adaptation."""

    def __init__(self, model: str, known: Mapping[str, str]) -> None:
        self._model = model
        self.done: dict[str, str] = dict(known)
        self.notices: list[str] = []

    def note(self, name: str, what: str, sentence: str, *, problem: EndpointProblem | None = None) -> bool:
        """Record and report the adaptation of a parameter; return False if it was known."""
        if self.done.get(name) == what:
            return False
        self.done[name] = what
        refused = f"the endpoint rejected {name} ({problem.shown}); " if problem else ""
        self.notices.append(f"{self._model}: {refused}{sentence}.")
        return True


def names(parameter: str, text: str) -> bool:
    """Return True if the text contains the parameter's name as a separate word."""
    return bool(parameter) and re.search(rf"(?<![\w-]){parameter}(?![\w-])", text) is not None
