"""Chooses a metric of a run, by the name that a user writes or as the one to inspect, and finds its worst samples."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError
from merilo.metrics.registry import also_called, known_definition, known_metric
from merilo.metrics.text import bare_name, is_called
from merilo.runs.scales import recorded_scale
from merilo.runs.weak import weak_metrics

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from merilo.runs.manifest import Aggregate, Manifest
    from merilo.runs.outcomes import OutcomeRecord

_MAX_NEAR: Final = 3
_MAX_LISTED: Final = 5
_NONE: Final[dict[str, str]] = {}


def resolve_metric(
    name: str,
    texts: Collection[str],
    *,
    composites: Iterable[str] = (),
    left_out: Mapping[str, str] = _NONE,
    where: object = "this run",
) -> str:
    """Return the full text of the only metric with this name.

    `name`: a full text, or one without parameters, without its system's version or without `foreign:`. `texts`: the
    full texts of the run's metrics. `composites`: those of its composites, if they cannot be chosen. `left_out`:
    those that the run left out, with a sentence that says why. `where`: the run, as the message names it.

    Raises UsageError if no metric or several metrics have the name; the message suggests names.
    """
    if name in texts:
        return name
    same = [text for text in texts if is_called(text, name)]
    if len(same) == 1:
        return same[0]
    if same:
        raise UsageError(f"No unique metric {name!r} in {where}; did you mean {' or '.join(same)}?")
    if any(is_called(text, name) for text in composites):
        raise UsageError(f"{name} is a composite, which has no value per sample; name the metrics it combines.")
    named = "This run" if where == "this run" else where
    if reason := next((reason for text, reason in left_out.items() if is_called(text, name)), ""):
        raise UsageError(f"{named} has no {name}: {reason}")
    if known_definition(name) is not None:
        raise UsageError(f"{named} has no {name}. Add it: merilo run ... --metrics {name}")
    raise UsageError(f"No metric {name!r} in {where}; {_advice(name, texts)}")


def _advice(name: str, texts: Collection[str]) -> str:
    """Return the metrics with similar names as a question, or the first metrics if no name is similar."""
    spellings: dict[str, str] = {}
    for text in texts:
        spellings.setdefault(bare_name(text).lower(), text)
        spellings[text.lower()] = text
    low = name.lower()
    longer = [spelling for spelling in spellings if low and spelling.startswith(low)][:_MAX_NEAR]
    meant = [each for each in also_called(name) if each in spellings]
    near = dict.fromkeys(spellings[each] for each in meant or get_close_matches(low, spellings, n=_MAX_NEAR) or longer)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if not texts:
        return "it has no metrics."
    more = f" and {len(texts) - _MAX_LISTED} more" * (len(texts) > _MAX_LISTED)
    return f"its metrics: {', '.join(list(texts)[:_MAX_LISTED])}{more}."


@dataclass(frozen=True, slots=True)
class WorstScores:
    """The worst scores of one metric, the worst first; equal scores in the order of the data."""

    metric: str
    higher_is_better: bool
    samples: tuple[tuple[str, float], ...]
    """Sample id and score."""
    scored: int
    undefined: int
    failed: int


def metric_to_inspect(manifest: Manifest, aggregates: Mapping[str, Aggregate]) -> str | None:
    """Return the metric whose mean is farthest from its best value, as a fraction of its range.

    Metrics that ask no judge, or for which the judge is weak, are chosen only if there is no other. None if no sample
    has a score.
    """
    weak = weak_metrics(manifest)
    scored = [each for each in aggregates.values() if each.scored and each.mean is not None and not each.parts]
    judged = [each for each in scored if (known := known_metric(each.metric)) is None or known.asks] or scored
    chosen = [each for each in judged if each.metric not in weak] or judged
    return max(chosen, key=lambda each: _shortfall(manifest, each)).metric if chosen else None


def _shortfall(manifest: Manifest, aggregate: Aggregate) -> float:
    scale = recorded_scale(manifest, aggregate.metric)
    low, high = scale.span
    if aggregate.mean is None or not (isfinite(low) and isfinite(high)) or high <= low:
        return 0.0
    best = high if scale.higher_is_better else low
    return abs(best - aggregate.mean) / (high - low)


def worst_scores(manifest: Manifest, records: Iterable[OutcomeRecord], metric: str, count: int) -> WorstScores:
    """Return the `count` worst scores of a metric, in one pass over the run's outcomes."""
    higher = recorded_scale(manifest, metric).higher_is_better
    tally: Counter[str] = Counter()

    def scored() -> Iterator[tuple[float, int, str]]:
        for place, record in enumerate(records):
            if record["metric"] == metric:
                tally[record["outcome"]] += 1
                value = record.get("value")
                if value is not None:
                    yield value if higher else -value, place, record["sample"]

    found = heapq.nsmallest(count, scored())  # holds `count` scores, whatever the size of the run
    samples = tuple((sample, value if higher else -value) for value, _, sample in found)
    return WorstScores(metric, higher, samples, tally["score"], tally["undefined"], tally["failed"])
