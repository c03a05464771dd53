"""A whole run at a glance: as one JSON object, and as a page with the summary table."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from merilo.rendering.aggregate import aggregate_record, less_is_better, missing_text, weak_with_judge
from merilo.rendering.cascade import cascade_rows
from merilo.rendering.correction import corrected_aggregates, counts_heading, label_rows, row_name
from merilo.rendering.early_stop_note import until_section
from merilo.rendering.page import Page, Tone
from merilo.rendering.sanitize import clean
from merilo.rendering.spent import spent_text
from merilo.rendering.spring_ai_wording import interpret_means
from merilo.rendering.wording import (
    NONE,
    OWN_ERROR,
    REMARKS,
    STOPPED,
    UNSEALED,
    count,
    foreign_error,
    number,
    percent,
    span,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from merilo.runs.run import Aggregate, Run
    from merilo.stats.correction import Correction

_GAPS = (2, 2, 1, 1)  # the last three are apart enough by their headings
_SHOWN_SKIPPED = 3
_NOT_TOLD = {"contradicted": "not told apart by this judge", "not_stated": "not told apart by this judge"}


def overview_record(
    run: Run,
    *,
    metrics: Mapping[str, Aggregate] | None = None,
    corrections: Mapping[str, Correction] | None = None,
) -> dict[str, Any]:  # Any: JSON
    """The run as a JSON-able object; `cost_usd` is None when it is unknown and 0.0 only when it was free.

    `estimated_usd` is the part of it that no server reported. `unanswered` counts requests without a usable reply, and
    `unanswered_usd` is what their replies may have cost in addition.

    `stopped`: the limit, the interruption or the error that ended its last call, as a sentence; None if nothing did.
    `raise_to`: the limit that was reached, with a value that probably suffices.

    `metrics`: to be told in the place of those that the run keeps. `corrections`: what labels of people make of
    means, by metric; their estimates are told in the place of the judge's own.
    """
    manifest, usage = run.manifest, run.usage
    known = corrections or {}
    aggregates = corrected_aggregates(tuple((metrics or run.metrics).values()), known)
    return {
        "run": str(run.path),
        "complete": run.complete,
        "sealed": run.sealed,
        "stopped": usage.get("stopped"),
        "raise_to": usage.get("raise_to"),
        "until_decided": run.until_decided,
        "data": manifest.data,
        "origin": manifest.origin,
        "cluster": manifest.cluster,
        "judge": judge_name(run),
        "agreement": agreement(run),
        "cascades": [dict(each) for each in run.cascades],
        "samples": manifest.samples,
        "skipped": len(manifest.skipped),
        "skipped_records": list(manifest.skipped),
        "metrics": {each.metric: aggregate_record(each, known.get(each.metric)) for each in aggregates},
        "left_out": dict(manifest.left_out),
        "notes": list(manifest.notes),
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
) -> Page:
    """The summary: the table, what stands behind and beside its numbers, who judged, and where to look next.

    `again`: the command that would ask failed questions again; shown where there are any. `kept`: False for a run
    that is gone once it was shown, so that nothing points at its directory. `metrics`: to be told in the place of
    those that the run keeps, with samples clustered by `cluster`. `corrections`: as in `overview_record`.
    """
    page = Page(width)
    known = corrections or {}
    aggregates = corrected_aggregates(tuple((metrics or run.metrics).values()), known)
    _title(page, run)
    page.blank()
    table(page, aggregates, corrections=known)
    page.blank()
    by = run.manifest.cluster if cluster is None else cluster
    corrected = {metric for metric, each in known.items() if each.estimate is not None}
    said = intervals_text(aggregates, by, corrected=corrected, origin=run.manifest.origin)
    notes = (less_is_better(run.manifest, aggregates), weak_with_judge(run.manifest, aggregates), said)
    for text in filter(None, notes):
        page.text(text, tone=Tone.QUIET)
    if known:
        page.heading("By labels of people")
        page.entries(label_rows(known))
    until_section(page, run)
    interpret_means(page, run)
    _behind(page, aggregates, counts_heading(known))
    _beside(page, run)
    _made_by(page, run, kept=kept)
    if kept:
        page.heading("Next")
        for text in _next(run, again):
            page.line("  " + text)
    return page


def table(page: Page, aggregates: Sequence[Aggregate], *, corrections: Mapping[str, Correction] | None = None) -> None:
    """One row for each metric: mean, interval, and how many samples are scored, undefined and failed."""
    known = corrections or {}
    headings = ("metric", "mean", interval_heading(aggregates), "scored", "undef", "failed")
    tones = [Tone.STRONG, *(Tone.BAD if aggregate.failed else Tone.PLAIN for aggregate in aggregates)]
    page.table([headings, *(_row(each, known.get(each.metric)) for each in aggregates)], tones, gaps=_GAPS)


def interval_heading(aggregates: Sequence[Aggregate]) -> str:
    """What the column of their intervals is called."""
    return f"{percent(aggregates[0].level if aggregates else 0.95)} interval"


def intervals_text(
    aggregates: Sequence[Aggregate],
    cluster: str | None,
    *,
    corrected: Collection[str] = (),
    origin: str | None = None,
) -> str:
    """What the intervals are over, in a sentence; empty where there is none.

    `corrected`: metrics, by labels. `origin`: where the scores come from, if they were not computed here.
    """
    if all(each.interval is None for each in aggregates):
        return ""
    clusters = max((each.clusters for each in aggregates if each.clusters is not None), default=None)
    over, _, error = (OWN_ERROR if origin is None else foreign_error(clean(origin))).partition("; ")
    if clusters is not None:
        by = f" by {cluster}" if cluster else ""
        over = f"over {count(clusters, 'cluster')} of questions{by}"
    own = [clean(each.metric) for each in aggregates if each.interval is not None and each.metric in corrected]
    if len(own) == sum(each.interval is not None for each in aggregates):
        error = "the judge's own error is in it, by labels of people"
    elif own:
        error = f"the judge's own error is in those of {', '.join(own)} alone, by labels of people"
    return f"Each interval is {over}; {error}."


def _row(aggregate: Aggregate, correction: Correction | None) -> tuple[str, ...]:
    counted = (f"{amount:,}" for amount in (aggregate.scored, aggregate.undefined, aggregate.failed))
    name = row_name(aggregate.metric, correction)
    return (name, number(aggregate.mean), span(aggregate.interval), *counted)


def judge_name(run: Run) -> str:
    """Who answered in the role `judge`."""
    return str(run.manifest.judges.get("judge", {}).get("name", NONE))


def agreement(run: Run) -> str | None:
    """How well the judge agrees with people, in its own words; None where it is not known."""
    rates = run.manifest.judges.get("judge", {}).get("rates")
    return None if rates is None else str(rates)


def command(*words: str) -> str:
    """A command line that can be typed as it stands."""
    return shlex.join([_program(), *words])


def _program() -> str:
    """How this very program is typed here: its name where the shell finds it, else its path."""
    typed = Path(sys.argv[0])
    if typed.name != "merilo" or shutil.which("merilo"):
        return "merilo"
    near = typed.absolute()
    return str(near.relative_to(Path.cwd())) if near.is_relative_to(Path.cwd()) else str(near)


def counts_text(counts: Mapping[str, int | None]) -> str:
    """Named counts in one line; a count that the judge cannot give, or the definition does not make, says so."""
    return ", ".join(
        f"{name.replace('_', ' ')} {_NOT_TOLD.get(name, 'not counted') if amount is None else f'{amount:,}'}"
        for name, amount in counts.items()
    )


def _counted(aggregate: Aggregate) -> str:
    """Counts, of which those that are shares of another have a line with their interval."""
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


def _title(page: Page, run: Run) -> None:
    manifest = run.manifest
    by = f"scores of {manifest.origin}" if manifest.origin else f"judged by {judge_name(run)}"
    what = f"{manifest.data}: {count(manifest.samples, 'sample')}, {by}"
    page.text(what, tone=Tone.STRONG)
    if not run.complete:
        page.text(f"This run was {STOPPED}.", tone=Tone.BAD)
    if not run.sealed:
        page.text(UNSEALED, tone=Tone.BAD)
        page.line("  " + command("verify", str(run.path)))


def _behind(page: Page, aggregates: Sequence[Aggregate], heading: str) -> None:
    counted = [(each.metric, _counted(each)) for each in aggregates if each.counts]
    if counted:
        shares = " and shares with their intervals" * any(each.shares for each in aggregates)
        page.heading(f"{heading}{shares}")
        page.entries(counted)
    own = [each for each in aggregates if not each.parts]  # what a composite lacks, its parts lack
    missing = [(each.metric, missing_text(each)) for each in own if each.undefined or each.failed]
    if missing:
        page.heading("Not scored, and so not in the means above")
        _grouped(page, missing)
    bounded = [(each.metric, text) for each in own if (text := _bounded(each))]
    if bounded:
        page.heading("The means, if what is not scored had the worst or the best value")
        page.entries(bounded)
    flagged = [(each.metric, _flagged(each)) for each in aggregates if each.flagged]
    if flagged:
        page.heading("Scored all the same, and so in the means above")
        _grouped(page, flagged)
    valueless = [(each.metric, each.note) for each in aggregates if each.parts and each.mean is None]
    if valueless:
        page.heading("Composites without a value")
        _grouped(page, valueless)
    remarked = [(each.metric, each.remark) for each in aggregates if each.remark]
    if remarked:
        page.heading(REMARKS)
        _grouped(page, remarked)
    untold = [(each.metric, each.note) for each in aggregates if each.note and each.scored and each.mean is not None]
    if untold:
        page.heading("No interval")
        _grouped(page, untold)


def _grouped(page: Page, rows: Sequence[tuple[str, str]]) -> None:
    """Metrics with what there is to say of each; what holds for several is said once."""
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
    """What the mean could be with what is missing in it; empty where nothing is missing."""
    parts: list[str] = []
    if aggregate.scored and aggregate.failed:
        parts.append(f"{span(aggregate.bounds)} with the failed ones")
    if aggregate.scored and aggregate.undefined and aggregate.bounds_with_undefined is not None:
        also = " too" if parts else ""
        parts.append(f"{span(aggregate.bounds_with_undefined)} with the undefined ones{also}")
    return ", ".join(parts)


def _flagged(aggregate: Aggregate) -> str:
    """What was scored all the same, and on how many samples."""
    told = [f"{flag} ({count(amount, 'sample')})" for flag, amount in aggregate.flags.items()]
    return "; ".join(told)


def _beside(page: Page, run: Run) -> None:
    manifest = run.manifest
    if manifest.left_out:
        page.heading("Left out")
        page.entries(manifest.left_out.items())
    if manifest.skipped:
        page.heading(f"Skipped: {count(len(manifest.skipped), 'bad record')}")
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
            ("scores", f"of {manifest.origin}; nothing was judged here"),
            *(("data", note) for note in manifest.notes),
        ]
        page.entries([*rows, *([("kept in", str(run.path))] if kept else [])])
        return
    rows = [("judge", f"{judge_name(run)}; {_agreement_text(run)}")]
    rows += [(role, _named(role, judge)) for role, judge in manifest.judges.items() if role != "judge"]
    rows += cascade_rows(run.cascades)
    rows += [("cost", spent_text(run.usage))]
    rows += [("price", text) for text in _unpriced(run)]
    rows += [("data", note) for note in manifest.notes]
    adaptations: dict[str, dict[str, str]] = run.usage.get("adaptations") or {}
    rows += [("adapted", f"{name}: {what}") for done in adaptations.values() for name, what in done.items()]
    rows += [("kept in", str(run.path))] if kept else []
    page.entries(rows)


def _unpriced(run: Run) -> list[str]:
    """What to do where the cost is not known, once; nothing where it is, or where no model was asked."""
    usage = run.usage
    if not usage.get("requests") or usage.get("cost_usd") is not None:
        return []
    marks = [_fields(_fields(judge.get("fingerprint")).get("provider")) for judge in run.manifest.judges.values()]
    models = dict.fromkeys(str(mark["model"]) for mark in marks if "model" in mark)
    return [f"not known of {', '.join(models)}; name it in a file (--prices FILE)"] if models else []


def _fields(value: object) -> Mapping[str, Any]:  # Any: JSON
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _named(role: str, judge: Mapping[str, Any]) -> str:  # Any: JSON
    """A judge beside the first; of the embedded one what stands behind its vectors."""
    vectors = judge.get("fingerprint", {}).get("vectors") if role in {"embedder", "similarity"} else None
    return f"{judge.get('name')} ({vectors})" if vectors else str(judge.get("name"))


def _agreement_text(run: Run) -> str:
    found = agreement(run)
    return "how well it agrees with people is not known" if found is None else found


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
