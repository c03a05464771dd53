"""From the logits of a model to a probability."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judges.local.card import Calibration, Output


class InvalidLogits(Exception):
    """The model returned a number that is not finite."""


class PairScore(NamedTuple):
    """What the model says about one pair."""

    probability: float
    """Probability of yes, calibrated if the card has a curve."""
    contradiction: float = 0.0
    """Probability of the contradiction label; 0 if the card has none."""


def pair_score(logits: Sequence[float], output: Output, calibration: Calibration | None) -> PairScore:
    """Return the score of one pair. Raises InvalidLogits for NaN and infinity."""
    if not all(map(math.isfinite, logits)):
        raise InvalidLogits
    yes = _logit(logits, output, output.yes)
    if calibration is not None:
        yes = calibration.scale * yes + calibration.shift
    against = None if output.contradiction is None else _logit(logits, output, output.contradiction)
    return PairScore(sigmoid(yes), 0.0 if against is None else sigmoid(against))


def _logit(logits: Sequence[float], output: Output, label: str) -> float:
    """Return log(p / (1 - p)) of a label."""
    place = output.labels.index(label)
    if output.head == "sigmoid":
        return logits[place]
    others = [logit for index, logit in enumerate(logits) if index != place]
    top = max(others)
    return logits[place] - top - math.log(sum(math.exp(logit - top) for logit in others))


def sigmoid(value: float) -> float:
    """Return 1 / (1 + exp(-value)), without overflow."""
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    power = math.exp(value)
    return power / (1 + power)
