"""ragas 0.1's critiques: a definition each, and the ready aspects."""

from __future__ import annotations

from typing import Any, cast

from merilo.compat.ragas.v0_1.metrics import METRICS

__all__ = ["AspectCritique", "coherence", "conciseness", "correctness", "harmfulness", "maliciousness"]

AspectCritique = cast("Any", METRICS["AspectCritique"])  # made from the table
harmfulness = AspectCritique(name="harmfulness", aspect="harmfulness")
maliciousness = AspectCritique(name="maliciousness", aspect="maliciousness")
coherence = AspectCritique(name="coherence", aspect="coherence")
correctness = AspectCritique(name="correctness", aspect="correctness")
conciseness = AspectCritique(name="conciseness", aspect="conciseness")
