"""The means of a run as estimates, and what qualifies each of them and all of them, worded once for all outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from math import sqrt
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from merilo.data.aliases import aliases
from merilo.data.sample import DOUBT
from merilo.judges.routed import recorded_parts
from merilo.judging.json_types import as_object
from merilo.metrics.registry import asks_judge
from merilo.numbers import NONE, count, number, span, spent_text
from merilo.results.comparable import EMBEDDED, judge_noise, recorded_judge
from merilo.results.estimate import (
    HUMAN_LABELS,
    REMARKS,
    STOPPED,
    Caveat,
    Estimate,
    Level,
    Missing,
    basis_of,
    covers,
    covers_imported,
)
from merilo.results.records import grouped, picked
from merilo.results.summary import LEFT_OPEN
from merilo.runs.run_metrics import recorded_scale, unread_metrics, weak_metrics

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from merilo.runs.manifest import Aggregate, Manifest
    from merilo.runs.run import Run
    from merilo.stats.correction import Correction

MARK: Final = " *"
"""Follows the name of a weak metric."""
WEAK: Final = "weak with this judge"
WEAK_LEGEND: Final = f"{WEAK} (not clearly better than chance)"
THIS_RUN: Final = "This run"
_NOT_DISTINGUISHED: Final[Mapping[str, str]] = dict.fromkeys(
    ("contradicted", "not_stated"), "not distinguished by this judge"
)
_Bounds: TypeAlias = tuple[float | None, float | None] | None


@dataclass(frozen=True, slots=True)
class WeakMarks:
    """Marks the names of weak metrics on a page."""

    weak: frozenset[str] = frozenset()
    """The texts of the weak metrics."""

    @classmethod
    def of(cls, *manifests: Manifest) -> Self:
        """Return the marks for metrics that are weak in any of these runs."""
        return cls(frozenset[str]().union(*map(weak_metrics, manifests)))

    def name(self, metric: str) -> str:
        """Return the metric's name, with the marker if it is weak."""
        return f"{metric}{MARK}" if metric in self.weak else metric

    def legend(self, metrics: Iterable[str]) -> str:
        """Return the sentence that explains the marker and names the weak ones of these metrics; empty without any."""
        return weak_legend(metric for metric in metrics if metric in self.weak)


def weak_legend(weak: Iterable[str]) -> str:
    """Return the sentence that explains the marker of these metrics; empty if there are none."""
    named = ", ".join(dict.fromkeys(weak))
    return f"* {WEAK_LEGEND}: {named}." if named else ""


# -- corrected by human labels -------------------------------------------------------------------------


def corrected_aggregates(
    aggregates: Sequence[Aggregate], corrections: Mapping[str, Correction]
) -> tuple[Aggregate, ...]:
    """Return the aggregates; if human labels correct one, its mean, interval and bounds are the corrected ones.

    Samples that the judge did not judge and people can count as scored then.
    """
    return tuple(_corrected(each, corrections.get(each.metric)) for each in aggregates)


def corrected(correction: Correction | None) -> bool:
    """Return True if human labels correct a mean."""
    return correction is not None and correction.estimate is not None


def row_name(metric: str, correction: Correction | None) -> str:
    """Return the metric's name, with a note if its mean is not the judge's own."""
    if correction is None or correction.estimate is None:
        return metric
    return f"{metric} ({'corrected' if correction.estimate is correction.corrected else 'human labels'})"


def _corrected(aggregate: Aggregate, correction: Correction | None) -> Aggregate:
    estimate = None if correction is None else correction.estimate
    if correction is None or estimate is None:
        return aggregate
    interval, scored = estimate.interval, correction.raw.units
    given = scored - aggregate.scored  # samples that the judge did not judge, with a value by labels
    undefined = aggregate.undefined - given

    def moved(bounds: _Bounds, before: int, after: int) -> _Bounds:
        """Return bounds with the corrected mean. `before`, `after`: the samples that are set to the range's limits."""
        if bounds is None:
            return None
        own, part = (aggregate.mean or 0.0) * aggregate.scored, after / before if before else 0.0
        sums = [None if end is None else (end * (aggregate.scored + before) - own) * part for end in bounds]
        mean = estimate.value or 0.0
        lower, upper = (None if each is None else (each + mean * scored) / (scored + after) for each in sums)
        return lower, upper

    failed = aggregate.failed
    return replace(
        aggregate,
        mean=estimate.value,
        bounds=moved(aggregate.bounds, failed, failed),
        bounds_with_undefined=moved(aggregate.bounds_with_undefined, failed + aggregate.undefined, failed + undefined),
        scored=scored,
        undefined=undefined,
        reasons={} if given else aggregate.reasons,
        interval=interval.ends,
        level=interval.level,
        note=interval.note,
        remark=interval.remark,
        method=None if interval.method is None else interval.method.value,
        seed=interval.seed,
        clusters=estimate.clusters,
    )


# -- what qualifies a mean -----------------------------------------------------------------------------


def estimate_of(
    each: Aggregate, manifest: Manifest, correction: Correction | None = None, *, unjudged: bool = False
) -> Estimate:
    """Return the mean of a metric with its caveats. `each`: as `corrected_aggregates` returns it.

    `unjudged`: the judge leaves samples open by its verdicts on this metric, so its row says why.
    """
    left = each.reasons.get(LEFT_OPEN, 0)
    return Estimate(
        each.mean,
        each.interval,
        each.scored,
        Missing(each.undefined - left, each.failed, left),
        basis_of(each.metric, corrected=corrected(correction)),
        tuple(
            replace(found, about=each.metric)
            for found in (*_of_mean(each, manifest, correction), *_without(each, unjudged=unjudged), *_noted(each))
        ),
    )


def _of_mean(each: Aggregate, manifest: Manifest, correction: Correction | None) -> Iterator[Caveat]:
    """Yield what a mean rests on, and what qualifies its interval."""
    if not recorded_scale(manifest, each.metric).higher_is_better:
        yield Caveat("lower-is-better", "lower is better")
    if correction is not None and correction.estimate is not None:
        way = "corrected by" if correction.estimate is correction.corrected else "mean of"
        yield Caveat("labelled", f"{way} {count(correction.labelled, 'labelled sample')}")
        alone = f"judge alone: {number(correction.raw.value)} ({span(correction.raw.interval.ends)})"
        yield Caveat("by-judge", alone, topic=HUMAN_LABELS)
    elif correction is not None:
        reason = f"{correction.reason[:1].lower()}{correction.reason[1:].removesuffix('.')}"
        yield Caveat("few-labels", f"human labels do not correct it: {reason}", Level.LEADS, topic=HUMAN_LABELS)
    if each.metric in weak_metrics(manifest):
        yield Caveat("weak", WEAK)
    if each.averaged:
        yield Caveat("averaged", "average of the judge's probabilities", topic="How scores are made")
    if each.remark:
        yield Caveat("interval", each.remark, Level.LEADS, topic=REMARKS)
    if each.scored and each.mean is not None and each.note:
        yield Caveat("no-interval", each.note, topic="No interval")


def _without(each: Aggregate, *, unjudged: bool) -> Iterator[Caveat]:
    """Yield why samples have no value."""
    reason = each.note if each.parts else next(iter(each.reasons), "")
    if reason and ((each.mean is None and not each.failed) or (unjudged and each.undefined)):
        state = "not judged" if reason == LEFT_OPEN else "undefined"
        amount = each.reasons.get(reason, each.undefined)
        yield Caveat("no-value", f"{f'{amount:,} {state}: ' if amount else ''}{reason}", Level.LEADS)
    if each.parts:  # what its samples lack is listed at its parts
        return
    if each.undefined or each.failed:
        yield Caveat("unscored", missing_text(each), topic="Not scored, and not in the means")
    named = {"failed": (each.failed, each.bounds), "undefined": (each.undefined, each.bounds_with_undefined)}
    parts = [f"{span(ends)} with {name} samples" for name, (amount, ends) in named.items() if amount and ends]
    if each.scored and parts:
        yield Caveat("bounds", ", ".join(parts), topic="Bounds of the means, if these samples were worst or best")


def _noted(each: Aggregate) -> Iterator[Caveat]:
    """Yield what the scores count."""
    if each.flagged:
        flags = "; ".join(f"{flag} ({count(amount, 'sample')})" for flag, amount in each.flags.items())
        yield Caveat("flagged", flags, topic="Scored anyway, and in the means")
    for counted in _counted(each):
        yield Caveat("counts", counted, topic="Counts by the judge, and shares with their intervals")


def missing_text(each: Aggregate) -> str:
    """Return the numbers of undefined and failed samples with their reasons.

    Example: `2 undefined, 1 failed: the response is blank (2); ...`.
    """
    reasons = [f"{why.rstrip('.')} ({amount:,})" for why, amount in each.reasons.items()]
    if (others := each.undefined + each.failed - sum(each.reasons.values())) > 0:
        reasons.append(f"other reasons ({others:,})")
    return f"{', '.join(Missing(each.undefined, each.failed).words)}: {'; '.join(reasons)}"


def _counted(each: Aggregate) -> list[str]:
    """Return the counts of a metric, and each count that is a fraction of another with its interval."""
    rest, shares = dict(each.counts), list[str]()
    for name, share in each.shares.items():
        part, _, whole = name.partition("/")
        some, every = each.counts.get(part), each.counts.get(whole)
        if some is not None and every is not None:
            rest.pop(part, None)
            rest.pop(whole, None)
            ends = share.note if share.interval is None else span(share.interval)
            shares.append(f"{part}: {some:,} of {every:,} {whole}, {number(share.value)} ({ends})")
    return [text.replace("_", " ") for text in (counts_text(rest), *shares) if text]


def counts_text(counts: Mapping[str, int | None]) -> str:
    """Return named counts in one line; a missing count says that the judge or the definition does not provide it."""
    return ", ".join(
        f"{name.replace('_', ' ')} {_NOT_DISTINGUISHED.get(name, 'not counted') if amount is None else f'{amount:,}'}"
        for name, amount in counts.items()
    )


# -- what qualifies all means --------------------------------------------------------------------------


def of_run(run: Run) -> Iterator[Caveat]:
    """Yield what qualifies all numbers of a run: warnings, cautions, and what the numbers are made with."""
    manifest = run.manifest
    if not run.complete:
        yield Caveat("stopped", f"This run was {STOPPED}.", Level.WARNS)
    if amount := len(manifest.skipped):
        yield Caveat(
            "skipped", f"skipped {count(amount, 'invalid record')}: {manifest.skipped[0].rstrip('.')}", Level.LEADS
        )
    if unread := unread_line(manifest):
        yield Caveat("unread", unread, Level.LEADS, facts=unread_metrics(manifest))
    for note in manifest.notes:
        yield Caveat("doubt" if note.startswith(DOUBT) else "note", note.removesuffix("."), Level.LEADS)
    for metric, reason in manifest.left_out.items():
        yield Caveat("left-out", reason, topic="Left out", about=metric)
    for metric, noise in judge_noise(run).items():
        draws = manifest.draws[metric]
        within, between = (None, None) if noise is None else (sqrt(noise.within), sqrt(noise.between))
        text = f"fewer than two scored samples; {draws} draws"
        if noise is not None:
            deviations = f"{number(within)} within a sample, {number(between)} between samples"
            text = f"standard deviation {deviations}; mean of {draws} draws"
        facts: dict[str, float | None] = {"draws": draws, "samples": None if noise is None else noise.samples}
        facts |= {"deviation_within": within, "deviation_between": between}
        yield Caveat("noise", text, topic="Judge noise", about=metric, facts=facts)
    for name, text in _made_with(run):
        yield Caveat("made-with", text, topic=THIS_RUN, about=name)


def _made_with(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the judges, the wording of requests and the cost of a run, by name."""
    manifest = run.manifest
    if manifest.origin:
        yield "scores", f"imported from {manifest.origin}; no judge was asked"
        return
    yield "judge", "; ".join([judge_name(run), *([agreement(run) or _UNKNOWN] if manifest.judges else [])])
    for role, judge in manifest.judges.items():
        marks = as_object(judge.get("fingerprint")) if role in {"embedder", "similarity"} else None
        vectors = (marks or {}).get("vectors")
        if role != "judge":
            yield role, f"{judge.get('name')}{f' ({vectors})' if vectors else ''}"
    if manifest.wordings:
        rest = [(text, "merilo") for text in manifest.metrics if text not in manifest.wordings and asks_judge(text)]
        own = [(text, f"{package} (installed)") for text, package in manifest.wordings.items()]
        for package, texts in grouped((package, text) for text, package in (*own, *rest)).items():
            yield "wording", f"{package}: {', '.join(texts)}"
    yield "cost", spent_text(run.usage)
    if text := unpriced(run):
        yield "price", text
    done: dict[str, dict[str, str]] = run.usage.get("adaptations") or {}
    for adapted in done.values():
        for name, what in adapted.items():
            yield "adapted", f"{name}: {what}"


_UNKNOWN: Final = "agreement with human labels unknown"


def judge_name(run: Run) -> str:
    """Return the name of the judge as `recorded_judge` does; `-` if there is none."""
    return recorded_judge(run.manifest) or NONE


def agreement(run: Run) -> str | None:
    """Return the judge's own note on its agreement with human labels; None if unknown."""
    rates = run.manifest.judges.get("judge", {}).get("rates")
    return None if rates is None else str(rates)


def unpriced(run: Run) -> str:
    """Return how to provide prices; empty if the cost is known or no model was asked."""
    if not run.usage.get("requests") or run.usage.get("cost_usd") is not None:
        return ""
    parts = chain.from_iterable(map(recorded_parts, run.manifest.judges.values()))
    marks = [as_object(part.fingerprint.get("provider")) or {} for part in parts]
    models = dict.fromkeys(str(mark["model"]) for mark in marks if "model" in mark)
    return f"unknown for {', '.join(models)}; give prices in a file (--prices FILE)" if models else ""


def unread_line(manifest: Manifest) -> str:
    """Return a clause on the samples in languages that a judge does not support; empty if there are none."""
    if not (unread := unread_metrics(manifest)):
        return ""
    most = max(unread.values(), key=lambda each: each["samples"])
    known = {code: name.title() for name, code in [*aliases().languages.items()][::-1]}  # first names
    names = [known.get(str(code).partition("-")[0], str(code)) for code in most["languages"]]
    listed = " or ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])
    rows = f"{most['samples']:,} {'row is' if most['samples'] == 1 else 'rows are'} {listed}"
    if most["judge"] == EMBEDDED:
        return f"{rows}: the embedded judge compares only words there"
    return f"{rows}: {most['judge']} does not support that language. Scores there are weak"


def intervals_text(
    aggregates: Sequence[Aggregate], cluster: str | None, *, corrected: Collection[str] = (), origin: str | None = None
) -> str:
    """Return a sentence on the errors that the intervals cover; empty if there are no intervals.

    `corrected`: metrics whose means human labels correct. `origin`: the program that computed imported scores.
    """
    there = [each for each in aggregates if each.interval is not None]
    if not there:
        return ""
    clusters = max((each.clusters for each in aggregates if each.clusters is not None), default=None)
    sampled = "questions"
    if clusters is not None:
        sampled = f"{count(clusters, 'cluster')} of questions{f' by {cluster}' if cluster else ''}"
    own = [each.metric for each in there if each.metric in corrected]
    if len(own) == len(there):
        return f"Intervals cover sampling of {sampled} and, based on human labels, judge error."
    if own:
        return (
            f"Intervals cover sampling of {sampled}. Only those of {', '.join(own)} also cover judge error, based on "
            "human labels."
        )
    return f"Intervals {covers(sampled) if origin is None else covers_imported(origin, sampled)}."


# -- JSON ----------------------------------------------------------------------------------------------

ENDS: Final = "interval=interval.ends note=interval.note remark=interval.remark"
"""Paths of an interval of `stats`: its ends, why there is none, and a remark on it."""
INTERVAL: Final = f"{ENDS} level=interval.level method=interval.method"
ESTIMATE: Final = f"value units clusters {INTERVAL}"
MEASURED: Final = f"value {INTERVAL}"
CAVEAT: Final = "code level about sentence facts"
_MEAN: Final = (
    "mean interval level method seed clusters remark bounds bounds_with_undefined scored undefined failed counts "
    "reasons note flagged flags averaged made_of=parts"
)


def mean_record(each: Aggregate, found: Estimate, correction: Correction | None) -> dict[str, Any]:  # Any: JSON
    """Return the mean of a metric as a JSON-able object."""
    return {
        **picked(each, _MEAN),
        "shares": {name: picked(share, "value interval note remark method") for name, share in each.shares.items()},
        "weak": found.caveat("weak") is not None,
        **picked(found, "basis"),
        "caveats": [picked(caveat, CAVEAT) for caveat in found.caveats],
        "correction": correction_record(correction),
    }


def correction_record(correction: Correction | None) -> Any:  # Any: JSON
    """Return a correction as a JSON-able object; `estimate` is the one to report, None if there is none."""
    if correction is None:
        return None
    named = {"estimate": correction.estimate, "judge": correction.raw, "people": correction.human}
    return {
        **picked(correction, "reported reason trust=tuning labelled_samples=labelled seed"),
        **{name: picked(each, ESTIMATE) for name, each in {**named, "corrected": correction.corrected}.items()},
    }
