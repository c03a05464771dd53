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
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.metrics.base import EvidenceTarget, Score
from merilo.metrics.registry import parse_metric
from merilo.metrics.text import bare_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.metrics.base import Outcome
    from merilo.rendering.page import Page
    from merilo.runs.run import Run

METRIC: Final = "spring-ai-ragas:context_relevance"
"""The metric with this wording."""


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


def explain(page: Page, metric: str, outcome: Outcome, sample: Sample) -> None:
    """Add a sample's score in the wording of its language; nothing for other metrics or without a score."""
    if not _has_words(metric) or not isinstance(outcome, Score):
        return
    language = sample.resolved_language
    _interpret(page, metric, outcome.value, language)
    page.entries([(words(language).user_input, sample.user_input or ""), *_contexts(metric, outcome, sample)])


def explained(metric: str, outcome: Score, sample: Sample) -> str:
    """Return a sample's score and those of its contexts as one text in its language; empty for other metrics."""
    if not _has_words(metric):
        return ""
    parts = [*_lines(outcome.value, sample.resolved_language)]
    parts += [f"{name}: {text}" for name, text in _contexts(metric, outcome, sample)]
    return "; ".join(parts).replace("\n", ", ")


def interpret_means(page: Page, run: Run) -> None:
    """Add the mean over a run's samples in the wording of its language, for each metric with wording and a mean."""
    for text, mean, language in _means(run):
        _interpret(page, text, mean, language)


def mean_rows(run: Run) -> list[tuple[str, str]]:
    """Return each metric with wording and a mean, and its mean in the wording of the run's language."""
    return [
        (f"{words(language).relevance} ({text})", "; ".join(_lines(mean, language)))
        for text, mean, language in _means(run)
    ]


def _means(run: Run) -> list[tuple[str, float, str]]:
    found = {text: each.mean for text, each in run.metrics.items() if _has_words(text) and each.mean is not None}
    if not found:
        return []
    language = run.manifest.language or next((each.sample.resolved_language for each in run.samples), "en")
    return [(text, mean, language) for text, mean in found.items()]


def _contexts(metric: str, outcome: Score, sample: Sample) -> list[tuple[str, str]]:
    ratings = _ratings(metric, outcome, len(sample.retrieved_contexts or ()))
    return explain_contexts(ratings, sample.resolved_language)


def _interpret(page: Page, metric: str, score: float, language: str) -> None:
    page.heading(f"{words(language).relevance} ({metric})")
    for line in _lines(score, language):
        page.text(line, indent=2)


def _lines(score: float, language: str) -> tuple[str, str]:
    return result_line(score, language), f"{words(language).interpretation}: {band(score, language)}"


def _has_words(metric: str) -> bool:
    return bare_name(metric) == METRIC


def _ratings(metric: str, outcome: Score, size: int) -> list[ContextRating]:
    from merilo_published.spring_ai_ragas.ratings import ContextRelevance, normalised

    built = parse_metric(metric)
    raw: list[list[float]] = [[] for _ in range(size)]
    for piece in outcome.evidence:
        if piece.about is EvidenceTarget.CONTEXT and piece.value is not None:
            raw[piece.index].append(piece.value)
    combine = built.combined if isinstance(built, ContextRelevance) else max
    return [ContextRating(tuple(each), combine([normalised(x) for x in each]) if each else None) for each in raw]


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
