"""The summary of a run: as one JSON object, and as a page with a table of means."""

from __future__ import annotations

import shlex
import shutil
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from merilo.data.remote import without_secrets
from merilo.judges.routed import recorded_parts
from merilo.metrics.registry import asks_judge
from merilo.rendering.aggregate import aggregate_record, averaging, less_is_better, missing_text
from merilo.rendering.correction import corrected_aggregates, counts_heading, label_rows, row_name
from merilo.rendering.early_stop_note import until_section
from merilo.rendering.judge_noise import noise_section
from merilo.rendering.page import Page, Tone
from merilo.rendering.sanitize import clean
from merilo.rendering.spent import spent_text
from merilo.rendering.spring_ai_wording import interpret_means
from merilo.rendering.weak import WeakMarks, unread_note
from merilo.rendering.wording import (
    HUMAN_LABELS,
    NONE,
    REMARKS,
    STOPPED,
    count,
    covers,
    covers_imported,
    number,
    percent,
    span,
)
from merilo.results.basis import BY_JUDGE, judge_noise, noise_record
from merilo.runs.weak import unread_metrics, weak_metrics

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from merilo.runs.manifest import Aggregate, Manifest
    from merilo.runs.run import Run
    from merilo.stats.correction import Correction

_GAPS = (2, 2, 1, 1)  # the headings of the last three columns keep them apart already
_SHOWN_SKIPPED = 3
_NOT_DISTINGUISHED: Mapping[str, str] = dict.fromkeys(("contradicted", "not_stated"), "not distinguished by this judge")


def overview_record(
    run: Run,
    *,
    metrics: Mapping[str, Aggregate] | None = None,
    corrections: Mapping[str, Correction] | None = None,
) -> dict[str, Any]:  # Any: JSON
    """Return the run as a JSON-able object; `cost_usd` is None if unknown, and 0.0 only if the run was free.

    `estimated_usd` is the part of the cost that no server reported. `unanswered` counts requests without a usable
    reply, and `unanswered_usd` is what their replies may have cost in addition.

    `stopped`: the limit, interruption or error that ended the last command, as a sentence; None if nothing did.
    `raise_to`: the limit that was reached, with a value that probably suffices.

    `metrics`: aggregates to report instead of the stored ones. `corrections`: corrections by human labels, by metric;
    a corrected mean replaces the judge's own.
    """
    manifest, usage = run.manifest, run.usage
    known = corrections or {}
    aggregates = corrected_aggregates(tuple((metrics or run.metrics).values()), known)
    weak = weak_metrics(manifest)
    return {
        "run": str(run.path),
        "complete": run.complete,
        "stopped": usage.get("stopped"),
        "raise_to": usage.get("raise_to"),
        "until_decided": run.until_decided,
        "data": manifest.data,
        "origin": manifest.origin,
        "cluster": manifest.cluster,
        "judge": judge_name(run),
        "agreement": agreement(run),
        "samples": manifest.samples,
        "skipped": len(manifest.skipped),
        "skipped_records": list(manifest.skipped),
        "by_judge_alone": not any(each.estimate is not None for each in known.values())
        and any(asks_judge(each.metric) for each in aggregates),
        "metrics": {
            each.metric: aggregate_record(each, known.get(each.metric), weak=each.metric in weak) for each in aggregates
        },
        **({"judge_noise": noise_record(run, noise)} if (noise := judge_noise(run)) else {}),
        **({"wordings": dict(manifest.wordings)} if manifest.wordings else {}),
        "left_out": dict(manifest.left_out),
        "notes": [*manifest.notes, *filter(None, [unread_note(manifest)])],
        "unread": unread_metrics(manifest),
        **{name: usage.get(name) for name in ("requests", "cached", "input_tokens", "output_tokens")},
        **{name: usage.get(name) for name in ("cost_usd", "estimated_usd", "unanswered", "unanswered_usd")},
        **{name: usage.get(name) for name in ("seconds", "adaptations")},
    }


def overview_page(
    run: Run,
    width: int,
    *,
    again: str = "",
    kept: bool = True,
    metrics: Mapping[str, Aggregate] | None = None,
    cluster: str | None = None,
    corrections: Mapping[str, Correction] | None = None,
    language: str | None = None,
) -> Page:
    """Return the summary page: the table, counts and reasons, the judge and cost, and the next commands.

    `again`: the command that asks failed questions again; shown if there are failed samples. `kept`: False for a
    temporary run, so that no line names its directory. `metrics`: aggregates to report instead of the stored ones,
    with samples clustered by `cluster`. `corrections`: as in `overview_record`. `language`: of the page; None for that
    of the run.
    """
    page = Page(width, language or run.manifest.language)
    known, marks = corrections or {}, WeakMarks.of(run.manifest)
    aggregates = corrected_aggregates(tuple((metrics or run.metrics).values()), known)
    corrected = {metric for metric, each in known.items() if each.estimate is not None}
    title(page, run, corrected)
    page.blank()
    table(page, aggregates, marks=marks, corrections=known)
    page.blank()
    by = run.manifest.cluster if cluster is None else cluster
    covered = intervals_text(aggregates, by, corrected=corrected, origin=run.manifest.origin)
    notes = (
        less_is_better(run.manifest, aggregates),
        averaging(aggregates),
        marks.legend(each.metric for each in aggregates),
        unread_note(run.manifest),
        covered,
    )
    for text in filter(None, notes):
        page.text(text, tone=Tone.QUIET)
    if known:
        page.heading(HUMAN_LABELS)
        page.entries([(marks.name(metric), text) for metric, text in label_rows(known)])
    until_section(page, run)
    noise_section(page, run)
    interpret_means(page, run)
    _details(page, aggregates, counts_heading(known), marks)
    _not_evaluated(page, run)
    _made_by(page, run, kept=kept)
    if kept:
        page.heading("Next")
        for text in _next(run, again):
            page.line("  " + text)
    return page


def table(
    page: Page,
    aggregates: Sequence[Aggregate],
    *,
    marks: WeakMarks,
    corrections: Mapping[str, Correction] | None = None,
    bounds: bool = False,
) -> None:
    """Add one row per metric: mean, interval, and the numbers of scored, undefined and failed samples.

    `marks`: marks the names of weak metrics; the page explains the marker below the table.
    `bounds`: also add the bounds of each mean over unscored samples, if a row has any.
    """
    known = corrections or {}
    headings = ("metric", "mean", interval_heading(aggregates), "scored", "undef", "failed")
    tones = [Tone.STRONG, *(Tone.BAD if aggregate.failed else Tone.PLAIN for aggregate in aggregates)]
    rows = [headings, *(_row(each, known.get(each.metric), marks) for each in aggregates)]
    limits = [missing_bounds(each) for each in aggregates]
    if bounds and any(limits):
        column = ("bounds", *("" if each is None else span(each) for each in limits))
        rows = [(*row[:3], cell, *row[3:]) for row, cell in zip(rows, column, strict=True)]
        page.table(rows, tones, gaps=(_GAPS[0], 2, *_GAPS[1:]))
        return
    page.table(rows, tones, gaps=_GAPS)


def missing_bounds(aggregate: Aggregate) -> tuple[float | None, float | None] | None:
    """Return the bounds of a mean over all its unscored samples; None if there are none, or the bounds are unknown."""
    if aggregate.parts or not aggregate.scored or not (aggregate.undefined or aggregate.failed):
        return None
    return aggregate.bounds_with_undefined if aggregate.undefined else aggregate.bounds


def interval_heading(aggregates: Sequence[Aggregate]) -> str:
    """Return the heading of the column of their intervals."""
    return f"{percent(aggregates[0].level if aggregates else 0.95)} interval"


def intervals_text(
    aggregates: Sequence[Aggregate],
    cluster: str | None,
    *,
    corrected: Collection[str] = (),
    origin: str | None = None,
) -> str:
    """Return a sentence on the errors that the intervals cover; empty if there are no intervals.

    `corrected`: metrics whose means human labels correct. `origin`: the program that computed imported scores.
    """
    if all(each.interval is None for each in aggregates):
        return ""
    clusters = max((each.clusters for each in aggregates if each.clusters is not None), default=None)
    sampled = "questions"
    if clusters is not None:
        sampled = f"{count(clusters, 'cluster')} of questions{f' by {cluster}' if cluster else ''}"
    own = [clean(each.metric) for each in aggregates if each.interval is not None and each.metric in corrected]
    if len(own) == sum(each.interval is not None for each in aggregates):
        return f"Intervals cover sampling of {sampled} and, based on human labels, judge error."
    if own:
        return (
            f"Intervals cover sampling of {sampled}. Only those of {', '.join(own)} also cover judge error, based on "
            "human labels."
        )
    return f"Intervals {covers(sampled) if origin is None else covers_imported(clean(origin), sampled)}."


def _row(aggregate: Aggregate, correction: Correction | None, marks: WeakMarks) -> tuple[str, ...]:
    counted = (f"{amount:,}" for amount in (aggregate.scored, aggregate.undefined, aggregate.failed))
    name = marks.name(aggregate.metric, row_name(aggregate.metric, correction))
    return (name, number(aggregate.mean), span(aggregate.interval), *counted)


def judge_name(run: Run) -> str:
    """Return the name of the judge in the role `judge`; `-` if there is none."""
    return str(run.manifest.judges.get("judge", {}).get("name", NONE))


def agreement(run: Run) -> str | None:
    """Return the judge's own note on its agreement with human labels; None if unknown."""
    rates = run.manifest.judges.get("judge", {}).get("rates")
    return None if rates is None else str(rates)


def command(*words: str) -> str:
    """Return a quoted command line that the user can copy and run, without passwords and signatures in addresses."""
    return shlex.join([_program(), *map(without_secrets, words)])


def _program() -> str:
    """Return how to call this program: its name if it is on PATH, otherwise its path."""
    typed = Path(sys.argv[0])
    if typed.name != "merilo" or shutil.which("merilo"):
        return "merilo"
    near = typed.absolute()
    return str(near.relative_to(Path.cwd())) if near.is_relative_to(Path.cwd()) else str(near)


def counts_text(counts: Mapping[str, int | None]) -> str:
    """Return named counts in one line; a missing count says that the judge or the definition does not provide it."""
    return ", ".join(
        f"{name.replace('_', ' ')} {_NOT_DISTINGUISHED.get(name, 'not counted') if amount is None else f'{amount:,}'}"
        for name, amount in counts.items()
    )


def _counted(aggregate: Aggregate) -> str:
    """Return the counts in one line, then one line with an interval for each count that is a fraction of another."""
    rest, lines = dict(aggregate.counts), list[str]()
    for name, share in aggregate.shares.items():
        part, _, whole = name.partition("/")
        some, every = aggregate.counts.get(part), aggregate.counts.get(whole)
        if some is None or every is None:
            continue
        rest.pop(part, None)
        rest.pop(whole, None)
        interval = share.note if share.interval is None else span(share.interval)
        amounts = f"{some:,} of {every:,} {whole.replace('_', ' ')}"
        lines.append(f"{part.replace('_', ' ')}: {amounts}, {number(share.value)} ({interval})")
    return "\n".join([*([counts_text(rest)] if rest else []), *lines])


def title(page: Page, run: Run, corrected: Collection[str] = ()) -> None:
    """Add the title: data, number of samples and judge; and whether the run is incomplete or has no seal.

    `corrected`: metrics whose means human labels correct.
    """
    manifest = run.manifest
    by = f"judged by {judge_name(run)}"
    if manifest.origin:
        by = f"scores of {manifest.origin}"
    elif not corrected and any(asks_judge(text) for text in manifest.metrics):
        by = f"{BY_JUDGE} ({judge_name(run)})"
    what = f"{manifest.data}: {count(manifest.samples, 'sample')}, {by}"
    page.text(what, tone=Tone.STRONG)
    if not run.complete:
        page.text(f"This run was {STOPPED}.", tone=Tone.BAD)


def _details(page: Page, aggregates: Sequence[Aggregate], heading: str, marks: WeakMarks) -> None:
    counted = [(marks.name(each.metric), _counted(each)) for each in aggregates if each.counts]
    if counted:
        shares = " and shares with their intervals" * any(each.shares for each in aggregates)
        page.heading(f"{heading}{shares}")
        page.entries(counted)
    own = [each for each in aggregates if not each.parts]  # samples that a composite lacks are listed at its parts
    missing = [(marks.name(each.metric), missing_text(each)) for each in own if each.undefined or each.failed]
    if missing:
        page.heading("Not scored (excluded from the means above)")
        _grouped(page, missing)
    bounded = [(marks.name(each.metric), text) for each in own if (text := _bounded(each))]
    if bounded:
        page.heading("Bounds of the means, if unscored samples had the worst or the best value")
        page.entries(bounded)
    flagged = [(marks.name(each.metric), _flagged(each)) for each in aggregates if each.flagged]
    if flagged:
        page.heading("Scored anyway (included in the means above)")
        _grouped(page, flagged)
    valueless = [(each.metric, each.note) for each in aggregates if each.parts and each.mean is None]
    if valueless:
        page.heading("Composites without a value")
        _grouped(page, valueless)
    remarked = [(each.metric, each.remark) for each in aggregates if each.remark]
    if remarked:
        page.heading(REMARKS)
        _grouped(page, remarked)
    without = [(each.metric, each.note) for each in aggregates if each.note and each.scored and each.mean is not None]
    if without:
        page.heading("No interval")
        _grouped(page, without)


def _grouped(page: Page, rows: Sequence[tuple[str, str]]) -> None:
    """Add metrics with a text each; metrics with the same text are listed together."""
    metrics: dict[str, list[str]] = {}
    for metric, text in rows:
        metrics.setdefault(text, []).append(metric)
    if len(metrics) == len(rows):
        page.entries(rows)
        return
    for text, names in metrics.items():
        page.text(", ".join(names), indent=2)
        page.text(text, indent=6)


def _bounded(aggregate: Aggregate) -> str:
    """Return the bounds of the mean over failed and undefined samples; empty if no sample is missing."""
    parts: list[str] = []
    if aggregate.scored and aggregate.failed:
        parts.append(f"{span(aggregate.bounds)} with failed samples")
    if aggregate.scored and aggregate.undefined and aggregate.bounds_with_undefined is not None:
        also = " too" if parts else ""
        parts.append(f"{span(aggregate.bounds_with_undefined)} with undefined samples{also}")
    return ", ".join(parts)


def _flagged(aggregate: Aggregate) -> str:
    """Return the flags of scored samples, each with its number of samples."""
    return "; ".join(f"{flag} ({count(amount, 'sample')})" for flag, amount in aggregate.flags.items())


def _not_evaluated(page: Page, run: Run) -> None:
    manifest = run.manifest
    if manifest.left_out:
        page.heading("Left out")
        page.entries(manifest.left_out.items())
    if manifest.skipped:
        page.heading(f"Skipped: {count(len(manifest.skipped), 'invalid record')}")
        for sentence in manifest.skipped[:_SHOWN_SKIPPED]:
            page.text(sentence, indent=2)
        more = len(manifest.skipped) - _SHOWN_SKIPPED
        if more > 0:
            page.text(f"... and {more:,} more", indent=2)


def _made_by(page: Page, run: Run, *, kept: bool) -> None:
    manifest = run.manifest
    page.heading("This run")
    if manifest.origin:
        rows = [
            ("scores", f"imported from {manifest.origin}; no judge was asked"),
            *(("data", note) for note in manifest.notes),
        ]
        page.entries([*rows, *([("stored in", str(run.path))] if kept else [])])
        return
    rows = [("judge", f"{judge_name(run)}; {_agreement_text(run)}")]
    rows += [(role, _named(role, judge)) for role, judge in manifest.judges.items() if role != "judge"]
    rows += _wordings(manifest)
    rows += [("cost", spent_text(run.usage))]
    rows += [("price", text) for text in unpriced(run)]
    rows += [("data", note) for note in manifest.notes]
    adaptations: dict[str, dict[str, str]] = run.usage.get("adaptations") or {}
    rows += [("adapted", f"{name}: {what}") for done in adaptations.values() for name, what in done.items()]
    rows += [("stored in", str(run.path))] if kept else []
    page.entries(rows)


def _wordings(manifest: Manifest) -> list[tuple[str, str]]:
    """Return one row for each package that worded requests; none if merilo worded all."""
    packages: dict[str, list[str]] = {}
    for text, package in manifest.wordings.items():
        packages.setdefault(package, []).append(text)
    rows = [("wording", f"{package} (installed): {', '.join(texts)}") for package, texts in packages.items()]
    rest = [text for text in manifest.metrics if text not in manifest.wordings and asks_judge(text)]
    return [*rows, ("wording", f"merilo: {', '.join(rest)}")] if rows and rest else rows


def unpriced(run: Run) -> list[str]:
    """Return one line on how to provide prices; empty if the cost is known or no model was asked."""
    usage = run.usage
    if not usage.get("requests") or usage.get("cost_usd") is not None:
        return []
    parts = chain.from_iterable(map(recorded_parts, run.manifest.judges.values()))
    marks = [_fields(part.fingerprint.get("provider")) for part in parts]
    models = dict.fromkeys(str(mark["model"]) for mark in marks if "model" in mark)
    return [f"unknown for {', '.join(models)}; give prices in a file (--prices FILE)"] if models else []


def _fields(value: object) -> Mapping[str, Any]:  # Any: JSON
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _named(role: str, judge: Mapping[str, Any]) -> str:  # Any: JSON
    """Return the name of an additional judge; for the embedded one also how its vectors are made."""
    vectors = judge.get("fingerprint", {}).get("vectors") if role in {"embedder", "similarity"} else None
    return f"{judge.get('name')} ({vectors})" if vectors else str(judge.get("name"))


def _agreement_text(run: Run) -> str:
    found = agreement(run)
    return "agreement with human labels unknown" if found is None else found


def _next(run: Run, again: str) -> list[str]:
    first = next(iter(run.manifest.metrics), None)
    if first is None:
        return []
    path = str(run.path)
    found = [command("show", path, "--worst", "5", "--metric", first)]
    sample = next((record["sample"] for record in run.records()), None)
    if sample is not None:
        found.append(command("show", path, "--sample", sample))
    if again and any(aggregate.failed for aggregate in run.metrics.values()):
        found.append(again)
    return found
