"""The cluster-robust error of Bell and McCaffrey by explicit matrices, to compare closed forms with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


def bell_mccaffrey(values: Numbers, names: list[int], weights: Numbers) -> tuple[float, float]:
    """The CR2 error of a weighted regression on a constant and its degrees of freedom, by the matrices of the paper."""
    root, groups = np.sqrt(weights), np.array(names)
    rest = np.eye(len(values)) - np.outer(root, root) / weights.sum()
    columns = []
    for name in sorted(set(names)):
        own = groups == name
        found, vectors = np.linalg.eigh(rest[np.ix_(own, own)])
        adjusted = vectors @ np.diag(found**-0.5) @ vectors.T
        columns.append(rest[:, own] @ adjusted @ root[own] / weights.sum())
    parts = np.array(columns)
    gram = parts @ parts.T
    error = float(np.sqrt(((parts @ (root * values)) ** 2).sum()))
    return error, float(np.trace(gram) ** 2 / (gram**2).sum())
