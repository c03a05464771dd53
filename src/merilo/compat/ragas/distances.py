"""ragas' measures of distance between texts."""

from __future__ import annotations

from enum import Enum


class DistanceMeasure(Enum):
    """A measure of `NonLLMStringSimilarity`; the values are those of the definition's `distance`."""

    LEVENSHTEIN = "levenshtein"
    HAMMING = "hamming"
    JARO = "jaro"
    JARO_WINKLER = "jaro_winkler"
