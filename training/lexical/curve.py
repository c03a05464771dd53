"""A logistic regression over clipped, piecewise linear features, as the judge evaluates it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

Floats = NDArray[np.float64]

KNOTS = (0.3, 0.6, 0.85)
FOLDS = 5
_DIGITS = 5


def fit(
    rows: Floats,
    label: NDArray[np.bool_],
    weight: Floats,
    *,
    strength: float = 0.1,
    knots_at: tuple[float, ...] = KNOTS,
) -> dict[str, Any]:
    """Coefficients as the model file holds them, without thresholds.

    Knots stand at the quantiles `knots_at` of the training rows, none for a straight line. Features are clipped to
    their 0.1 and 99.9 % quantiles, so that a text unlike any seen in training cannot push a probability further than
    those did.
    """
    low, high = np.quantile(rows, 0.001, axis=0), np.quantile(rows, 0.999, axis=0)
    rows = np.clip(rows, low, high)
    knots = [_knots(rows[:, j], knots_at) for j in range(rows.shape[1])]
    wide = _widen(rows, knots)
    centre, spread = np.average(wide, axis=0, weights=weight), wide.std(axis=0)
    spread[spread < 1e-9] = 1.0
    model = LogisticRegression(C=strength, max_iter=3_000, tol=1e-6)
    model.fit((wide - centre) / spread, label, sample_weight=weight)
    slopes = model.coef_[0] / spread
    intercept = float(model.intercept_[0] - slopes @ centre)
    pairs: list[list[list[float]]] = []
    place = rows.shape[1]
    for own in knots:
        pairs.append([[_short(knot), _short(slopes[place + i])] for i, knot in enumerate(own)])
        place += len(own)
    return {
        "low": [_short(x) for x in low],
        "high": [_short(x) for x in high],
        "slopes": [_short(x) for x in slopes[: rows.shape[1]]],
        "knots": pairs,
        "intercept": _short(intercept),
        "thresholds": {},
    }


def chances(curve: dict[str, Any], rows: Floats) -> Floats:
    """The probabilities a stored curve gives to rows."""
    clipped = np.clip(rows, curve["low"], curve["high"])
    logits = clipped @ np.array(curve["slopes"]) + curve["intercept"]
    for j, pairs in enumerate(curve["knots"]):
        for knot, slope in pairs:
            logits += slope * np.maximum(0.0, clipped[:, j] - knot)
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -40, 40))))


def held_out(rows: Floats, label: NDArray[np.bool_], weight: Floats, group: NDArray[np.str_]) -> Floats:
    """Probabilities for each row from a curve fitted on the other groups (five folds)."""
    found = np.zeros(len(rows))
    for train, test in GroupKFold(FOLDS).split(rows, label, group):
        found[test] = chances(fit(rows[train], label[train], weight[train]), rows[test])
    return found


def source_weights(source: NDArray[np.str_]) -> Floats:
    """Weights by which a source counts with the square root of its size; their mean is 1."""
    _, place, count = np.unique(source, return_inverse=True, return_counts=True)
    weight = 1 / np.sqrt(count[place])
    return np.asarray(weight / weight.mean())


def _knots(column: Floats, at: tuple[float, ...]) -> list[float]:
    if len(np.unique(column)) < 4:
        return []
    inside = [k for k in np.unique(np.quantile(column, at)) if column.min() < k < column.max()]
    return [float(k) for k in inside]


def _widen(rows: Floats, knots: list[list[float]]) -> Floats:
    hinges = [np.maximum(0.0, rows[:, j] - knot)[:, None] for j, own in enumerate(knots) for knot in own]
    return np.hstack([rows, *hinges])


def _short(value: float) -> float:
    return round(float(value), _DIGITS)
