"""The wording of spring-ai-ragas' context relevance: names of ratings, bands and results, by language.

merilo's own text is plain ASCII. This text belongs to the metric, so it has dashes and Cyrillic letters.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from merilo.metrics.base import ScoreWords

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Band(NamedTuple):
    """A range of scores, from its lowest score up to the next band."""

    lowest: float
    title: str
    meaning: str
    result: str
    """The name of a result in this band."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The wording in one language."""

    context: str
    user_input: str
    relevance: str
    raw: str
    normalised: str
    interpretation: str
    unscored: str
    ratings: tuple[str, ...]
    """Names of the ratings 0, 1 and 2."""
    bands: tuple[Band, ...]
    """Best first; the last one starts at 0."""


class ContextRating(NamedTuple):
    """The ratings of one context on the scale 0 to 2, one per model, and their score in [0, 1]."""

    raw: tuple[float, ...]
    normalised: float | None
    """None if no model gave a rating."""


@cache
def wordings() -> Mapping[str, Wording]:
    """Return the wording by primary language tag; all other languages use English."""
    tables = tomllib.loads(files("merilo_published.spring_ai_ragas").joinpath("wording.toml").read_text("utf-8"))
    return {language: _wording(**table) for language, table in tables.items()}


def _wording(ratings: list[str], bands: list[list[Any]], **texts: str) -> Wording:  # Any: numbers and texts
    return Wording(**texts, ratings=tuple(ratings), bands=tuple(Band(*each) for each in bands))


def words(language: str) -> Wording:
    """Return the wording of a language (BCP 47); English if there is none."""
    known = wordings()
    return known.get(re.split("[-_]", language)[0].lower(), known["en"])


def band(score: float, language: str) -> str:
    """Return the meaning of a score in [0, 1]: `Medium — mixed relevance of contexts`. The score is not rounded."""
    found = _band(score, language)
    return f"{found.title} — {found.meaning}"


def result_line(score: float, language: str) -> str:
    """Return a score in [0, 1] as one line: `0.5 (50%) — Mixed relevance`.

    Numbers are truncated: rounding could move the shown score into the next band.
    """
    return f"{_short(score)} ({_cut(100 * score, 1):g}%) — {_band(score, language).result}"


def explain_contexts(contexts: Sequence[ContextRating], language: str) -> list[tuple[str, str]]:
    """Return, for each context, its name and two lines: the names of its ratings, and the ratings with their score."""
    known = words(language)
    rows: list[tuple[str, str]] = []
    for place, context in enumerate(contexts, start=1):
        text = known.unscored
        if context.normalised is not None:
            names = ", ".join(_rating(rating, known) for rating in context.raw)
            raw = ", ".join(f"{rating:g}" for rating in context.raw)
            text = f"{names}\n{known.raw}: {raw}, {known.normalised}: {_short(context.normalised)}"
        rows.append((f"{known.context} {place}", text))
    return rows


def in_words(score: float, language: str) -> ScoreWords:
    """Return a score in [0, 1], or a mean, in words."""
    known = words(language)
    lines = result_line(score, language), f"{known.interpretation}: {band(score, language)}"
    return ScoreWords(known.relevance, lines, known.user_input)


def _band(score: float, language: str) -> Band:
    known = words(language).bands
    return next((each for each in known if score >= each.lowest), known[-1])


def _rating(rating: float, known: Wording) -> str:
    return known.ratings[min(2, max(0, round(rating)))]


def _short(score: float) -> str:
    """Return the score with at most three decimals and at least one: `0.5`, `0.666`, `1.0`."""
    return repr(_cut(score, 3))


def _cut(number: float, digits: int) -> float:
    """Return the number truncated to `digits` decimals; a rounding error of floats does not lower the last digit."""
    scale = 10.0**digits
    return math.floor(number * scale + 1e-9) / scale
