"""The configuration of spring-ai-ragas' context relevance in Python: `ContextRelevanceConfig(...).metric()`.

In Java a builder takes `temperature` and any number of `model(id)`; here they are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.errors import UsageError
from merilo_published.spring_ai_ragas.ratings import ContextRelevance

from . import missing

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, kw_only=True)
class ContextRelevanceConfig:
    """The configuration of context ratings. `metric` raises UsageError for invalid values.

    >>> ContextRelevanceConfig(models=["first", "second"]).metric().roles == {"first", "second"}
    True

    `models` names judges of the run; None, or an empty list, asks every judge. The temperature is sent to the models,
    which the published library does not do.
    """

    temperature: float = 0.1
    models: Sequence[str] | None = None

    def metric(self) -> ContextRelevance:
        """Return the metric to evaluate with. Raises UsageError."""
        if isinstance(self.models, str):
            raise UsageError(f"models must be a list of names, got the text {self.models!r}; write [{self.models!r}].")
        joined = [name for name in self.models or () if "+" in name]
        if joined:
            raise UsageError(f"A model must have a name without '+', got {joined[0]!r}; name the judge NAME=SPEC.")
        return ContextRelevance(temperature=self.temperature, models="+".join(self.models) if self.models else None)


missing.cover(__name__)
