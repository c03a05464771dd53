"""The metrics of a run: which one a name means, its worst samples, its range, and where its judge is weak.

A metric is weak with a judge if the judge's agreement with human labels does not clear chance
(`merilo.judges.base`). The manifest lists the weak metrics of the run in `judges.judge.weak`, and the
weak kinds of question of each judge in `weak_kinds`. Samples whose language the judge of a metric does not support are
counted while the data is read, and recorded in `judges.judge.unread`, by metric.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.data import check
from merilo.errors import UsageError
from merilo.judges.base import decided_kinds
from merilo.judging.json_types import as_object
from merilo.metrics.registry import also_called, known_definition, known_metric
from merilo.metrics.text import bare_name, is_called

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from merilo.metrics.base import Metric
    from merilo.runs.manifest import Aggregate, Manifest
    from merilo.runs.outcomes import OutcomeRecord

_MAX_NEAR: Final = 3
_MAX_LISTED: Final = 5
_NONE: Final[dict[str, str]] = {}
NAMED: Final = 5
WEAK_LEFT_OUT: Final = "weak with this judge; run it by name"
"""The beginning of the reason in a manifest why a weak metric is left out."""


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


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of a metric, whose ends may be infinite, and its direction."""

    span: tuple[float, float]
    higher_is_better: bool = True

    def record(self) -> dict[str, object]:
        """Return the scale as a manifest records it; null is an infinite end."""
        ends = [end if isfinite(end) else None for end in self.span]
        return {"range": ends, "higher_is_better": self.higher_is_better}


def check_asked(metric: str, asked: float, span: tuple[float, float], *, is_drop: bool = False) -> None:
    """Raise UsageError for a limit outside the metric's range, or a drop of all of it: it decides nothing."""
    low, high = span
    if asked >= high - low if is_drop else not low <= asked <= high:
        what = "an allowed drop" if is_drop else "a limit"
        advice = f"For {asked:g} %, write {asked / 100:g}." if 1 < asked <= 100 else "Choose a value in this range."
        raise UsageError(
            f"{metric} is always between {low:g} and {high:g}, so {what} of {asked:g} decides nothing. {advice}"
        )


NO_SCALE = Scale((-inf, inf))
"""The scale of a metric whose scale is not recorded, such as a composite."""


def scale_of(metric: Metric) -> Scale:
    """Return the scale that a metric declares."""
    return Scale((float(metric.range[0]), float(metric.range[1])), metric.higher_is_better)


def scales_of(metrics: Mapping[str, Metric]) -> dict[str, dict[str, object]]:
    """Return the scales of metrics by their text, as a manifest records them."""
    return {text: scale_of(metric).record() for text, metric in metrics.items()}


def recorded_scale(manifest: Manifest, metric: str) -> Scale:
    """Return the recorded scale of one of the run's metrics; NO_SCALE if it has none."""
    found = manifest.scales.get(metric)
    if found is None:
        return NO_SCALE
    low, high = cast("tuple[float | None, float | None]", found["range"])
    span = (-inf if low is None else low, inf if high is None else high)
    return Scale(span, bool(found["higher_is_better"]))


def weak_metrics(manifest: Manifest) -> frozenset[str]:
    """Return the texts of the metrics that are weak, including those that were left out for it."""
    return frozenset(text for judge in manifest.judges.values() for text in _texts(judge, "weak"))


def recorded_weak_kinds(manifest: Manifest) -> frozenset[str]:
    """Return the kinds of question on which the agreement of the run's judges does not clear chance."""
    return frozenset(kind for judge in manifest.judges.values() for kind in _texts(judge, "weak_kinds"))


def weak_left_out(manifest: Manifest) -> tuple[str, ...]:
    """Return the metrics that the run left out because they are weak."""
    weak = weak_metrics(manifest)
    return tuple(text for text, reason in manifest.left_out.items() if text in weak and WEAK_LEFT_OUT in reason)


def left_out_reasons(manifest: Manifest, name: str) -> dict[str, str]:
    """Return the metrics that the run left out, and a named one that is weak, each with a sentence on what to do."""
    found = {text: f"{reason}." for text, reason in manifest.left_out.items() if WEAK_LEFT_OUT not in reason}
    asked = known_metric(name)
    kinds = {kind.kind for kind in decided_kinds(asked)} if asked is not None else set[str]()
    named = [name] if kinds & recorded_weak_kinds(manifest) else []
    judge = manifest.judges.get("judge", {}).get("name")
    for text in (*weak_left_out(manifest), *named):
        found[text] = f"the {judge} judge is weak at it. Add it: merilo run ... --metrics {text}"
    return found


def _texts(judge: Mapping[str, object], name: str) -> list[str]:
    found = judge.get(name)
    return [text for text in found if isinstance(text, str)] if check.is_list(found) else []


@dataclass(slots=True)
class Unread:
    """Samples in languages that the judge of one metric does not support."""

    judge: str
    """The name of the judge."""
    first: list[str] = field(default_factory=list[str])
    """The ids of the first `NAMED` samples."""
    languages: Counter[str] = field(default_factory=Counter[str])
    """Number of samples in each language, by code."""

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.languages.total()

    def add(self, sample_id: str, language: str) -> None:
        """Count a sample."""
        if self.samples < NAMED:
            self.first.append(sample_id)
        self.languages[language] += 1

    def record(self) -> dict[str, Any]:  # Any: JSON
        """Return this as a JSON-able object, the most frequent language first."""
        ordered = dict(sorted(self.languages.items(), key=lambda item: (-item[1], item[0])))
        return {"judge": self.judge, "samples": self.samples, "first": [*self.first], "languages": ordered}


def unread_metrics(manifest: Manifest) -> dict[str, dict[str, Any]]:  # Any: JSON
    """Return by metric of the run the `Unread.record` of its samples, if there are any."""
    recorded = as_object(manifest.judges.get("judge", {}).get("unread")) or {}
    found = {text: as_object(recorded.get(text)) for text in manifest.metrics}
    return {text: dict[str, Any](each) for text, each in found.items() if each is not None}
