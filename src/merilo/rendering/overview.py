"""The summary of a run: as one JSON object, and as a page with a table of means."""

from __future__ import annotations

import shlex
import shutil
import sys
from itertools import chain
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.data.remote import without_secrets
from merilo.judges.measured_agreement import embedded_right
from merilo.judges.routed import recorded_parts
from merilo.judging.json_types import as_object
from merilo.metrics.answering import Category
from merilo.metrics.registry import asks_judge
from merilo.rendering.aggregate import aggregate_record, mean_rows, means_notes, missing_text, share_text, table
from merilo.rendering.correction import corrected_aggregates, counts_heading, estimate_record, label_rows
from merilo.rendering.own_words import interpret_means
from merilo.rendering.page import GAP, Page, Tone, cells_of
from merilo.rendering.weak import WeakMarks, unread_note
from merilo.rendering.wording import (
    HUMAN_LABELS,
    NONE,
    REMARKS,
    STOPPED,
    Section,
    count,
    counts_text,
    filled_sections,
    number,
    span,
    spent_text,
)
from merilo.results.basis import BY_JUDGE, EMBEDDED, judge_noise, noise_record, recorded_judge
from merilo.results.faults import CANNOT_TELL, FAULTS, PLACES, Answer, Faults, Held
from merilo.results.records import grouped
from merilo.runs.run_metrics import metric_to_inspect, unread_metrics, weak_metrics, worst_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from merilo.runs.manifest import Aggregate, Manifest
    from merilo.runs.run import Run
    from merilo.stats.corrected_pairs import VarianceComponents
    from merilo.stats.correction import Correction


_OF_CONTEXTS: Final = {
    Category.EVIDENCE_MISSING.value,
    CANNOT_TELL,
    *(each.key for each in FAULTS if each.held is Held.ENOUGH and each.answer is Answer.UNKNOWN),
}
"""The faults of a run without responses."""


def fault_sentence(faults: Faults) -> str:
    """Return how many samples have each fault, such as `57 answers: 19 right, 21 beyond the evidence.`

    Human labels turn the counts into shares with intervals. Empty if the run has no fault table.
    """
    if not faults:
        return ""
    things = count(len(faults.samples), "question" if faults.keys() <= _OF_CONTEXTS else "answer")
    if faults.checked:
        rest = f"; {faults[CANNOT_TELL]:,} cannot tell" if faults[CANNOT_TELL] else ""
        shares = ", ".join(f"{_name(key)} {fault_share(faults, key)}" for key in fault_order(faults))
        return f"{things}, corrected by human labels: {shares}{rest}."
    return f"{things}: {', '.join(f'{faults[key]:,} {_name(key)}' for key in fault_order(faults))}."


_ANSWERS: Final = {
    Answer.SUPPORTED: "stated by a passage",
    Answer.STRAYED: "with a value that no passage holds",
    Answer.DECLINED: "declined to answer",
    Answer.UNKNOWN: "not judged",
}


def embedded_counts(run: Run, faults: Faults) -> list[list[str]]:
    """Return the first lines on a run of the embedded judge, each in parts: who judged, the answers, the gold passages.

    Empty for other judges, without faults, and if human labels correct the faults or set the level of the verdicts.
    """
    if not faults or faults.checked or judge_name(run) != EMBEDDED or run.shown is not run:
        return []
    sentence = fault_sentence(faults)
    things, _, rest = sentence.removesuffix(".").partition(": ")
    right = f"{round(10 * embedded_right())} of 10 of its verdicts hold, the rest is not judged"
    answers = [f"{amount:,} {words}" for key, words in _ANSWERS.items() if (amount := faults.answers.get(key, 0))]
    found, missing = (faults.retrieved.get(each, 0) for each in (True, False))
    gold = f"gold passage retrieved for {found:,} of {count(found + missing, 'question')}"
    lines = [[f"{things}, by the embedded judge (free, offline; {right})"], answers or rest.split(", ")]
    return [*lines, *([[f"{gold}: evidence missing in {missing:,}" if missing else gold]] if found + missing else [])]


def fault_order(faults: Faults) -> Sequence[str]:
    """Return the faults that samples have: right answers first, then the most frequent fault, "cannot tell" last."""
    shares = {key: found for key, each in faults.corrected.items() if (found := each.value)} or faults
    return sorted(shares, key=lambda key: (key == CANNOT_TELL, key != Category.RIGHT, -shares[key], PLACES[key]))


def fault_share(faults: Faults, key: str) -> str:
    """Return the share of samples with a fault and its interval, such as `33 % (23 to 46 %)`."""
    share = faults.share(key)
    if share.value is None:
        return ""
    ends = share.interval.ends
    interval = f" ({100 * ends[0]:.0f} to {100 * ends[1]:.0f} %)" if ends else ""
    return f"{100 * share.value:.0f} %{interval}"


def _name(key: str) -> str:
    return FAULTS[PLACES[key]].name.lower()


_APART = 6
"""Blanks between counts in one line."""
_SHOWN_SKIPPED = 3
_UNKNOWN = "agreement with human labels unknown"


def overview_record(
    run: Run, *, corrections: Mapping[str, Correction] | None = None, faults: Faults | None = None
) -> dict[str, Any]:  # Any: JSON
    """Return the run as a JSON-able object; `cost_usd` is None if unknown, and 0.0 only if the run was free.

    `estimated_usd` is the part of the cost that no server reported. `unanswered` counts requests without a usable
    reply, and `unanswered_usd` is what their replies may have cost in addition.

    `stopped`: the limit, interruption or error that ended the last command, as a sentence; None if nothing did.
    `raise_to`: the limit that was reached, with a value that probably suffices.

    `corrections`: corrections by human labels, by metric; a corrected mean replaces the judge's own. `faults`: the
    faults of the samples.
    """
    manifest, usage = run.manifest, run.usage
    known = corrections or {}
    aggregates = corrected_aggregates(tuple(run.metrics.values()), known)
    weak = weak_metrics(manifest)
    return {
        "run": str(run.path),
        "complete": run.complete,
        "stopped": usage.get("stopped"),
        "raise_to": usage.get("raise_to"),
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
        **(_fault_record(run, faults) if faults else {}),
        **({"judge_noise": noise_record(run, noise)} if (noise := judge_noise(run)) else {}),
        **({"wordings": dict(manifest.wordings)} if manifest.wordings else {}),
        "left_out": dict(manifest.left_out),
        "notes": [*manifest.notes, *filter(None, [unread_note(manifest)])],
        "unread": unread_metrics(manifest),
        **{name: usage.get(name) for name in ("requests", "cached", "input_tokens", "output_tokens", "cached_tokens")},
        **{name: usage.get(name) for name in ("cost_usd", "estimated_usd", "unanswered", "unanswered_usd")},
        **{name: usage.get(name) for name in ("seconds", "adaptations")},
    }


def _fault_record(run: Run, faults: Faults) -> dict[str, Any]:  # Any: JSON
    shares = {key: estimate_record(faults.share(key)) for key in faults.corrected}
    return {
        "lead": lead(run, faults),
        "faults": faults.counts,
        "faults_checked": faults.checked,
        "answers": {key.value: faults.answers[key] for key in _ANSWERS if key in faults.answers},
        "gold": {"questions": sum(faults.retrieved.values()), "retrieved": faults.retrieved.get(True, 0)},
        **({"fault_shares": shares} if shares else {}),
    }


def overview_page(
    run: Run,
    width: int,
    *,
    again: str = "",
    kept: bool = True,
    corrections: Mapping[str, Correction] | None = None,
    faults: Faults | None = None,
    language: str | None = None,
) -> Page:
    """Return the summary page: the table, counts and reasons, the judge and cost, and the next commands.

    `again`: the command that asks failed questions again; shown if there are failed samples. `kept`: False for a
    temporary run, so that no line names its directory. `corrections`, `faults`: as in `overview_record`.
    `language`: of the page; None for that of the run.
    """
    page = Page(width, language or run.manifest.language)
    known, marks = corrections or {}, WeakMarks.of(run.manifest)
    aggregates = corrected_aggregates(tuple(run.metrics.values()), known)
    corrected = {metric for metric, each in known.items() if each.estimate is not None}
    title(page, run, Faults({}) if faults is None else faults, corrected)
    page.blank()
    table(page, mean_rows(aggregates, marks, known), aggregates)
    page.blank()
    for text in means_notes(run.manifest, aggregates, corrected=corrected):
        page.text(text, tone=Tone.QUIET)
    if known:
        page.heading(HUMAN_LABELS)
        page.entries([(marks.name(metric), text) for metric, text in label_rows(known)])
    _noise(page, run)
    interpret_means(page, run)
    for heading, entries in sections(run, aggregates, known):
        page.heading(heading)
        _grouped(page, entries)
    _skipped(page, run.manifest.skipped)
    page.heading("This run")
    page.entries([*origin_rows(run), *([("stored in", str(run.path))] if kept else [])])
    if kept:
        page.heading("Next")
        for text in _next(run, faults or Faults({}), again):
            page.line("  " + text)
    return page


def _skipped(page: Page, skipped: Sequence[str]) -> None:
    if not skipped:
        return
    page.heading(f"Skipped: {count(len(skipped), 'invalid record')}")
    for sentence in skipped[:_SHOWN_SKIPPED]:
        page.text(sentence, indent=2)
    if (more := len(skipped) - _SHOWN_SKIPPED) > 0:
        page.text(f"... and {more:,} more", indent=2)


def judge_name(run: Run) -> str:
    """Return the name of the judge as `recorded_judge` does; `-` if there is none."""
    return recorded_judge(run.manifest) or NONE


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
        amounts = f"{some:,} of {every:,} {whole.replace('_', ' ')}"
        lines.append(f"{part.replace('_', ' ')}: {amounts}, {share_text(share)}")
    return "\n".join([*([counts_text(rest)] if rest else []), *lines])


def title_text(run: Run, corrected: Collection[str] = (), shown: Callable[[str], str] = str) -> str:
    """Return the title of a run: data, number of samples and judge.

    `corrected`: metrics whose means human labels correct. `shown`: how the names of data and judge are written.
    """
    manifest = run.manifest
    judge = shown(judge_name(run))
    by = f"judged by {judge}" if manifest.judges else judge
    if manifest.origin:
        by = f"scores of {shown(manifest.origin)}"
    elif not corrected and any(asks_judge(text) for text in manifest.metrics):
        by = f"{BY_JUDGE} ({judge})"
    return f"{shown(manifest.data)}: {count(manifest.samples, 'sample')}, {by}"


def lead(run: Run, faults: Faults, corrected: Collection[str] = (), shown: Callable[[str], str] = str) -> list[str]:
    """Return the first sentences on a run: how many samples have each fault, and who judged; otherwise its title.

    `corrected`, `shown`: as in `title_text`.
    """
    if not faults:
        return [title_text(run, corrected, shown)]
    if faults.checked:
        return [fault_sentence(faults)]
    counted = "not these counts" if run.shown is run else "and set the level of these counts"
    labels = f"Human labels correct {', '.join(map(shown, corrected))}, {counted}."
    if counts := embedded_counts(run, faults):
        return [*(f"{', '.join(parts)}." for parts in counts), *([labels] if corrected else [])]
    judge = judge_name(run)
    by = f"By the {judge} judge" if judge == EMBEDDED else f"By {shown(judge)}"
    return [fault_sentence(faults), f"{by}. {labels}" if corrected else f"{by}, not checked on this data."]


def title(page: Page, run: Run, faults: Faults, corrected: Collection[str] = ()) -> None:
    """Add the first sentences, as in `lead`, and whether the run is incomplete."""
    first, *more = lead(run, faults, corrected)
    counts = embedded_counts(run, faults)[1:]
    page.text(first.removesuffix(".") if counts else first, tone=Tone.STRONG)
    for parts in counts:
        wide = (" " * _APART).join(map(page.translation.line, parts))
        if cells_of(wide) + GAP <= page.width:
            page.line(" " * GAP + wide)
        else:
            page.text(", ".join(parts), indent=GAP)
    for sentence in more[len(counts) :]:
        page.text(sentence)
    if not run.complete:
        page.text(f"This run was {STOPPED}.", tone=Tone.BAD)


def sections(run: Run, aggregates: Sequence[Aggregate], corrections: Mapping[str, Correction]) -> list[Section]:
    """Return what the means are based on, under headings: labels, counts, missing samples, remarks on intervals."""
    name = WeakMarks.of(run.manifest).name
    shares = " and shares with their intervals" * any(each.shares for each in aggregates)
    own = [each for each in aggregates if not each.parts]  # samples that a composite lacks are listed at its parts
    groups = (
        (f"{counts_heading(corrections)}{shares}", [(name(each.metric), _counted(each)) for each in aggregates]),
        (
            "Not scored (excluded from the means above)",
            [(name(each.metric), missing_text(each)) for each in own if each.undefined or each.failed],
        ),
        (
            "Bounds of the means, if unscored samples had the worst or the best value",
            [(name(each.metric), _bounded(each)) for each in own],
        ),
        (
            "Scored anyway (included in the means above)",
            [(name(each.metric), _flagged(each)) for each in aggregates if each.flagged],
        ),
        (
            "Composites without a value",
            [(each.metric, each.note) for each in aggregates if each.parts and each.mean is None],
        ),
        (REMARKS, [(each.metric, each.remark) for each in aggregates]),
        ("No interval", [(each.metric, each.note) for each in aggregates if each.scored and each.mean is not None]),
        ("Left out", [*run.manifest.left_out.items()]),
    )
    return filled_sections(groups)


def origin_rows(run: Run) -> list[tuple[str, str]]:
    """Return the origin of a run's numbers by name: judges, wording of requests, cost, and notes on the data."""
    manifest = run.manifest
    notes = [("data", note) for note in manifest.notes]
    if manifest.origin:
        return [("scores", f"imported from {manifest.origin}; no judge was asked"), *notes]
    adaptations: dict[str, dict[str, str]] = run.usage.get("adaptations") or {}
    return [
        ("judge", "; ".join([judge_name(run), *([agreement(run) or _UNKNOWN] if manifest.judges else [])])),
        *((role, _named(role, judge)) for role, judge in manifest.judges.items() if role != "judge"),
        *_wordings(manifest),
        ("cost", spent_text(run.usage)),
        *(("price", text) for text in unpriced(run)),
        *notes,
        *(("adapted", f"{name}: {what}") for done in adaptations.values() for name, what in done.items()),
    ]


def _grouped(page: Page, rows: Sequence[tuple[str, str]]) -> None:
    """Add metrics with a text each; metrics with the same text are listed together."""
    metrics = grouped((text, metric) for metric, text in rows)
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


def _noise(page: Page, run: Run) -> None:
    """Add one line per metric with several draws; nothing if each question was asked once."""
    noise = judge_noise(run)
    if not noise:
        return
    marks = WeakMarks.of(run.manifest)
    page.heading("Judge noise")
    page.entries([(marks.name(text), _noise_text(each, run.manifest.draws[text])) for text, each in noise.items()])
    page.text(
        "Each score is the mean over the draws. Counts and evidence are those of the first draw.",
        indent=2,
        tone=Tone.QUIET,
    )


def _noise_text(found: VarianceComponents | None, draws: int) -> str:
    if found is None:
        return f"cannot tell: fewer than two scored samples; {draws} draws"
    within, between = number(sqrt(found.within)), number(sqrt(found.between))
    return f"standard deviation {within} within a sample, {between} between samples; {draws} draws"


def _wordings(manifest: Manifest) -> list[tuple[str, str]]:
    """Return one row for each package that worded requests; none if merilo worded all."""
    packages = grouped((package, text) for text, package in manifest.wordings.items())
    rows = [("wording", f"{package} (installed): {', '.join(texts)}") for package, texts in packages.items()]
    rest = [text for text in manifest.metrics if text not in manifest.wordings and asks_judge(text)]
    return [*rows, ("wording", f"merilo: {', '.join(rest)}")] if rows and rest else rows


def unpriced(run: Run) -> list[str]:
    """Return one line on how to provide prices; empty if the cost is known or no model was asked."""
    usage = run.usage
    if not usage.get("requests") or usage.get("cost_usd") is not None:
        return []
    parts = chain.from_iterable(map(recorded_parts, run.manifest.judges.values()))
    marks = [as_object(part.fingerprint.get("provider")) or {} for part in parts]
    models = dict.fromkeys(str(mark["model"]) for mark in marks if "model" in mark)
    return [f"unknown for {', '.join(models)}; give prices in a file (--prices FILE)"] if models else []


def _named(role: str, judge: Mapping[str, Any]) -> str:  # Any: JSON
    """Return the name of an additional judge; for the embedded one also how its vectors are made."""
    vectors = judge.get("fingerprint", {}).get("vectors") if role in {"embedder", "similarity"} else None
    return f"{judge.get('name')} ({vectors})" if vectors else str(judge.get("name"))


def _next(run: Run, faults: Faults, again: str) -> list[str]:
    first = next(iter(run.manifest.metrics), None)
    if first is None:
        return []
    path = str(run.path)
    found = [command("show", path, "--worst", "5", "--metric", first)]
    worst, metric = faults.worst(1), metric_to_inspect(run.manifest, run.metrics)
    if not worst and metric is not None:
        scores = worst_scores(run.manifest, run.shown.brief_records([metric]), metric, 1)
        worst = [(sample, metric) for sample, _ in scores.samples]
    found += [command("show", path, "--sample", sample) for sample, _ in worst]
    if again and any(aggregate.failed for aggregate in run.metrics.values()):
        found.append(again)
    return found
