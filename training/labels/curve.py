"""A logistic regression over clipped features, as the judge evaluates it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

_DIGITS = 5
_STRENGTH = 0.1


def fit(rows: Floats, label: Flags, weight: Floats) -> dict[str, Any]:
    """Coefficients as the model file holds them, without thresholds.

    Features are clipped to their 0.1 and 99.9 % quantiles, so that a text unlike any seen in training cannot push a
    probability further than those did.
    """
    low, high = np.quantile(rows, 0.001, axis=0), np.quantile(rows, 0.999, axis=0)
    rows = np.clip(rows, low, high)
    centre, spread = np.average(rows, axis=0, weights=weight), rows.std(axis=0)
    spread[spread < 1e-9] = 1.0
    model = LogisticRegression(C=_STRENGTH, max_iter=3_000, tol=1e-6)
    model.fit((rows - centre) / spread, label, sample_weight=weight)
    slopes = model.coef_[0] / spread
    return {
        "low": _short(low),
        "high": _short(high),
        "slopes": _short(slopes),
        "intercept": round(float(model.intercept_[0] - slopes @ centre), _DIGITS),
    }


def chances(curve: dict[str, Any], rows: Floats) -> Floats:
    """The probabilities a stored curve gives to rows."""
    logits = np.clip(rows, curve["low"], curve["high"]) @ np.array(curve["slopes"]) + curve["intercept"]
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -40, 40))))


def family_weights(family: NDArray[np.str_]) -> Floats:
    """Weights by which each family counts with the square root of its size; their mean is 1."""
    _, place, count = np.unique(family, return_inverse=True, return_counts=True)
    weight = 1 / np.sqrt(count[place])
    return np.asarray(weight / weight.mean())


def _short(values: Floats) -> list[float]:
    return [round(float(each), _DIGITS) for each in values]
