"""A comparison of runs as a document of estimates, which the terminal, Markdown and the HTML page draw."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.people import next_step
from merilo.commands.compare.caveats import OF_VERDICT
from merilo.data.sanitize import clean, command
from merilo.metrics.registry import known_metric
from merilo.numbers import NONE, count, number, percent, signed
from merilo.rendering.ci import code, fenced
from merilo.rendering.doc import Doc, Entry, Part, doc_markdown, doc_page, sections_of
from merilo.rendering.explain import add_evidence
from merilo.rendering.page import Page, Span, Tone, cut
from merilo.results.estimate import BY_JUDGE, DECIDED, OWN_ERROR, Basis, Level, Verdict, covers_imported
from merilo.results.faults import FAULTS, PLACES
from merilo.results.means import MARK, WeakMarks, weak_legend
from merilo.stats.intervals import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.commands.compare.result import Moved, Row, RunComparison

_ROWS: Final = 12
"""Maximum number of rows of one pair of runs, unless the full page is asked for."""
_ROWS_OF_EACH: Final = 4
"""The same of each pair, if more than two runs are compared."""
_MAX_LINES: Final = 25
_SHOWN: Final = 5
"""Maximum number of samples that changed."""


def comparison_doc(found: RunComparison) -> Doc:
    """Return the document of a comparison."""
    several = len(found.sides) > 2
    noted = [*found.caveats, *(each for row in found.rows for each in row.estimate.caveats)]
    paths = [str(side.run.path) for side in found.sides]
    return Doc(
        title=f"{' against '.join(found.names)}: {count(found.common, 'question')}",
        parts=tuple([_part(found, other) for other in range(1, len(found.sides))]),
        warnings=tuple([each.full for each in found.caveats if each.level is Level.WARNS]),
        legend=_legend(found, "The other run" if several else found.names[1]),
        notes=tuple(sections_of(noted)),
        advice=to_decide(found),
        next=("What changed: " + command("report", *paths), "All metrics and statistics: --full"),
    )


def _part(found: RunComparison, other: int) -> Part:
    rows, names = found.rows_of(other), (found.names[0], found.names[other])
    return Part(
        heading=" to ".join(names),
        sentences=(conclusion(found, other), *leads(found, other)),
        head=(
            f"{count(found.common, 'question')} in {'both' if len(found.sides) == 2 else 'all'} runs",
            *names,
            "difference",
            f"{percent(LEVEL)}{_family(found) or ' interval'}",
        ),
        rows=tuple(_groups(found, rows)),
        below=_fault_counts(found, other),
    )


def _fault_counts(found: RunComparison, other: int) -> str:
    """Return the judge's verdicts in the base and in a run, the most frequent first; empty if they are not judged."""
    if not found.faults:
        return ""
    base, run = found.faults[0], found.faults[other]
    amounts = sorted({*base, *run}, key=lambda key: (-base[key] - run[key], PLACES[key]))
    shown = ", ".join(f"{FAULTS[PLACES[key]].name.lower()} {base[key]:,} to {run[key]:,}" for key in amounts)
    return f"Verdicts of the judge: {shown}."


def leads(found: RunComparison, other: int = 1) -> list[str]:
    """Return what qualifies the conclusion on a run: the first caveat of each code, of corrected metrics first.

    Those that depend on a row's verdict are shown only if it is the conclusion, and what would show a difference only
    for the row that the conclusion names.
    """
    shown: dict[str, str] = {}
    for row in sorted(found.rows_of(other), key=lambda row: row.estimate.basis is not Basis.LABELS):
        for each in row.estimate.caveats:
            if each.level is Level.LEADS and (each.code not in OF_VERDICT or row.verdict is found.verdict_of(other)):
                shown.setdefault(each.code, each.full)
        if row.verdict is Verdict.NOT_SHOWN:
            shown.setdefault("more-needed", "")
    return [*filter(None, shown.values())]


# -- the conclusion ------------------------------------------------------------------------------------


def conclusion(found: RunComparison, other: int = 1) -> str:
    """Return the conclusion on a run, in one or two sentences."""
    name, verdict = found.names[other], found.verdict_of(other)
    decided = found.deciding(other)
    if len({row.verdict for row in decided}) > 1:
        better, worse = (_listed([r for r in decided if r.verdict is each]) for each in (Verdict.BETTER, Verdict.WORSE))
        alone = f", {BY_JUDGE}" if decided[0].estimate.basis is Basis.JUDGE else ""
        return (
            f"Cannot tell which is better{alone}: {name} is better by {better} and worse by {worse}. To decide by one "
            "metric: --primary METRIC."
        )
    if decided:
        row = max(decided, key=lambda each: abs(each.comparison.standardised or 0.0))
        more = f"; also by {_listed([each for each in decided if each is not row])}" if len(decided) > 1 else ""
        by = {Basis.JUDGE: f", {BY_JUDGE}", Basis.NO_JUDGE: f" {_without_judge([row])}"}.get(row.estimate.basis, "")
        return (
            f"{name} is {verdict}{by}: {row.metric} {number(row.base_mean)} to {number(row.run_mean)}, "
            f"{row.estimate}{_corrected(row)}{more}."
        )
    rows = [row for row in found.rows_of(other) if row.verdict is not None]
    if verdict is Verdict.NO_CHANGE:
        return f"No change: {name} has the same inputs and the same scores as {found.names[0]}."
    if verdict is Verdict.NOT_SHOWN:
        shown = [row for row in rows if row.verdict is Verdict.NOT_SHOWN]
        row = next((each for each in shown if each.estimate.basis is Basis.LABELS), shown[0])
        alone = f", {BY_JUDGE}" if all(each.estimate.basis is Basis.JUDGE for each in shown) else ""
        return f"No difference shown{alone}: {row.metric} of {name} is {row.estimate}{_corrected(row)}."
    reason = next((row.reason for row in sorted(rows, key=lambda row: row.unchecked is None) if row.reason), "")
    if not reason:
        return "Cannot tell: no metric is primary."
    free = [row for row in rows if row.estimate.basis is Basis.NO_JUDGE and row.verdict is Verdict.NOT_SHOWN]
    by = f" {_without_judge(free).capitalize()} no difference is shown." if free else ""
    return f"Cannot tell which is better: {reason}.{by}"


def _corrected(row: Row) -> str:
    corrected = row.estimate.basis is Basis.LABELS
    return f", corrected by {row.comparison.labelled:,} labelled questions" if corrected else ""


def _listed(rows: Sequence[Row]) -> str:
    return ", ".join(row.metric for row in rows)


def _without_judge(rows: Sequence[Row]) -> str:
    """Return "by ids" if all metrics compare ids, otherwise "without a judge"."""
    known = [known_metric(row.metric) for row in rows]
    ids = all(each is not None and any(name.endswith("_ids") for name in each.needs) for each in known)
    return "by ids" if ids else "without a judge"


# -- the table -----------------------------------------------------------------------------------------


def _groups(found: RunComparison, rows: Sequence[Row]) -> Iterator[Entry | str]:
    """Yield the rows of a run by what they rest on: human labels, ids, the judge alone, not primary."""
    primary = [row for row in rows if row.verdict is not None]
    by = {basis: [row for row in primary if row.estimate.basis is basis] for basis in Basis}
    counts = sorted({row.comparison.labelled for row in by[Basis.LABELS]})
    labelled = " to ".join(f"{amount:,}" for amount in dict.fromkeys((*counts[:1], *counts[-1:])))
    judged = by[Basis.JUDGE]
    headed = [
        (f"Corrected by {labelled} labelled questions", by[Basis.LABELS]),
        (_without_judge(by[Basis.NO_JUDGE]).capitalize(), by[Basis.NO_JUDGE]),
        (BY_JUDGE.capitalize(), [row for row in judged if row.undecided]),
        (BY_JUDGE.capitalize(), [row for row in judged if not row.undecided]),
        ("Not primary: no conclusion", [row for row in rows if row.verdict is None]),
    ]
    for heading, own in headed:
        yield from _group(found, heading, own) if own else ()


def _group(found: RunComparison, heading: str, rows: Sequence[Row]) -> Iterator[Entry | str]:
    """Yield the heading, with the verdict and its reason if all rows have them, and the rows."""
    verdict, reasons = rows[0].verdict, {row.reason for row in rows}
    why = f", because {rows[0].reason}" if rows[0].reason and len(reasons) == 1 else ""
    alike = verdict is not None and len(reasons) == 1 and all(row.verdict is verdict for row in rows)
    number_of = f" ({count(len(rows), 'metric')})" if len(rows) > 1 and not rows[0].undecided else ""
    yield f"{heading}: {verdict}{why}{number_of}" if alike else f"{heading}: {verdict}" * rows[0].undecided or heading
    for row in rows:
        pairs, silent = row.estimate.samples, alike or row.undecided
        yield Entry(
            metric=row.metric,
            name=marked(row),
            parts=(number(row.base_mean), number(row.run_mean)),
            estimate=row.estimate,
            said="" if silent else _said(row),
            fewer="" if pairs == found.common else f"{pairs:,} of {found.common:,} pairs",
            why="" if silent or row.verdict is Verdict.CANNOT_TELL else why_of(row),
            verdict=None if row.undecided else row.verdict,
        )


def _said(row: Row) -> str:
    """Return the verdict with its reason, or the direction of a row that is not primary."""
    if row.verdict is None:
        return direction(row)
    return "not shown" if row.verdict is Verdict.NOT_SHOWN else ": ".join(filter(None, (row.verdict, row.reason)))


def direction(row: Row) -> str:
    """Return "higher" or "lower" if the interval of the difference excludes 0 and the judge may decide."""
    return "" if row.unchecked else ("", "higher", "lower")[row.estimate.sign]


def verdict_text(row: Row) -> str:
    """Return the verdict in a few words, "by the judge alone" included."""
    alone = f", {BY_JUDGE}" if row.estimate.basis is Basis.JUDGE and row.verdict in DECIDED else ""
    return "not primary" if row.verdict is None else f"{row.verdict}{alone}"


def why_of(row: Row) -> str:
    """Return what decides and qualifies a verdict; may be empty."""
    own = [each for each in row.estimate.caveats if each.level in {Level.LEADS, Level.INFORMS} and not each.topic]
    return "; ".join(filter(None, (row.reason, *(each.sentence for each in own))))


def marked(row: Row) -> str:
    """Return the metric, with a note if lower is better, and the marker if it is weak."""
    shown = row.metric if row.higher_is_better else f"{row.metric} (lower is better)"
    return f"{shown}{MARK}" if row.estimate.caveat("weak") else shown


def weak_of(found: RunComparison) -> frozenset[str]:
    """Return the metrics that are weak with the judge of a run."""
    return frozenset(row.metric for row in found.rows if row.estimate.caveat("weak"))


def _family(found: RunComparison) -> str:
    """Return over how many tests the confidence level holds (Holm): the smallest p-value has the widest interval."""
    tests = max(round((1 - LEVEL) / (1 - row.comparison.interval.level)) for row in found.rows)
    return f" over {tests} tests" if tests > 1 else ""


def _legend(found: RunComparison, other: str) -> str:
    """Return the note below a table: how differences are computed, and which errors intervals cover."""
    units = "" if found.cluster is None else f" Samples with the same {found.cluster} form one cluster."
    bases = {row.estimate.basis for row in found.rows}
    covers = OWN_ERROR if any(side.run.manifest.origin is None for side in found.sides) else covers_imported()
    if Basis.LABELS in bases:
        covers = "cover sampling of questions and the judge's error" + (" if corrected" if len(bases) > 1 else "")
    text = (
        f"Differences are {other} minus {found.names[0]}. Intervals ({percent(LEVEL)}{_family(found)}) {covers}.{units}"
    )
    return " ".join(filter(None, (text, weak_legend(sorted(weak_of(found))))))


# -- what to do next -----------------------------------------------------------------------------------


def to_decide(found: RunComparison) -> str:
    """Return the labels that would decide, and what they take; empty if a run is better or worse.

    The metric to label is the one of `merilo label`, otherwise the clearest one by the judge alone.
    """
    if len(found.sides) != 2 or found.deciding() or found.verdict is Verdict.NO_CHANGE:
        return ""
    rows = [row for row in found.rows if row.undecided]
    rows.sort(key=lambda row: (not row.estimate.sign, -abs(row.comparison.standardised or 0.0)))
    return f"To decide: {next_step([side.run for side in found.sides], [row.metric for row in rows])}" if rows else ""


# -- outputs -------------------------------------------------------------------------------------------


def comparison_page(found: RunComparison, width: int = 80, *, full: bool = False) -> Page:
    """Return the page; that of two runs has at most 25 lines.

    `full`: with all rows, statistics, notes and the samples that changed most.
    """
    doc, two = comparison_doc(found), len(found.sides) == 2

    def details(page: Page) -> None:
        _explained(page, found)
        _measures(page, found, doc)
        _moved(page, found)

    rows = None if full else _ROWS if two else _ROWS_OF_EACH
    return doc_page(doc, width, rows=rows, lines=_MAX_LINES * two, details=details)


def comparison_markdown(found: RunComparison) -> str:
    """Return the comparison with the samples that changed most, within 60,000 characters."""
    heading = f"**{count(found.movers, 'sample')} changed**, by {code(_moved_by(found))}; the most changed:"
    shown = [_collapsed(found, each) for each in found.moved[:_SHOWN]]
    return doc_markdown(comparison_doc(found), [heading] if found.moved else [], shown)


def _explained(page: Page, found: RunComparison) -> None:
    page.heading("Verdicts")
    for row in found.rows:
        against = f", {found.names[0]} to {found.names[row.other]}" if len(found.sides) > 2 else ""
        page.line("  ", Span(clean(f"{marked(row)}{against}: {verdict_text(row)}"), Tone.STRONG))
        if text := why_of(row):
            page.text(f"{text}.", indent=4, tone=Tone.QUIET)


_LEGEND: Final = (
    "p: probability of a difference at least this large if there is none; corrected: p corrected for several tests "
    "(Holm). higher, equal, lower: number of samples on which the run scores higher, equal or lower than the base. "
    "diff/sd: the difference divided by the standard deviation of the differences per sample. P: probability that the "
    "run scores higher on a sample (ties count half). finds: smallest true difference that 80 % of such comparisons "
    "show, before the correction."
)


def _measures(page: Page, found: RunComparison, doc: Doc) -> None:
    for other, part in enumerate(doc.parts, start=1):
        page.heading(f"Statistics{f', {part.heading}' if len(doc.parts) > 1 else ''}")
        rows = [(marked(row), *_statistics(row)) for row in found.rows_of(other)]
        head = ("", "p", "corrected", "higher", "equal", "lower", "diff/sd", "P", "finds")
        page.table([head, *rows], [Tone.STRONG, *[Tone.PLAIN] * len(rows)])
    page.text(_LEGEND, tone=Tone.QUIET)


def _statistics(row: Row) -> tuple[str, ...]:
    each, judged = row.comparison, row.estimate.basis is not Basis.LABELS  # otherwise the judge counted
    counts = (each.counts.wins, each.counts.ties, each.counts.losses)
    return (
        *(NONE if p is None else "<0.001" if p < 0.001 else f"{p:.3f}" for p in (each.p, each.adjusted)),
        *(f"{amount:,}" if judged else NONE for amount in counts),
        NONE if each.standardised is None else f"{each.standardised:+.2f}",
        NONE if each.superiority is None else f"{each.superiority:.2f}",
        number(each.detectable),
    )


def _moved_by(found: RunComparison) -> str:
    return WeakMarks(weak_of(found)).name(found.moved_by or "")


def _moved(page: Page, found: RunComparison) -> None:
    """Add the samples that changed most, with the verdicts of every run."""
    shown = found.moved[:_SHOWN]
    if shown:
        page.heading(f"{len(shown):,} of {count(found.movers, 'sample')} that changed, by {_moved_by(found)}")
    for each in shown:
        page.blank()
        _moved_sample(page, found, each)


def _moved_sample(page: Page, found: RunComparison, each: Moved) -> None:
    """Add one sample: its user input, and the evidence for its score in each run."""
    page.line("  ", Span(clean(each.sample), Tone.STRONG), f"  {signed(each.step)}")
    if text := each.cases[0].result.sample.user_input:
        page.line("  ", Span(cut(text, page.width - 2)))
    for name, value, case in zip(found.names, each.values, each.cases, strict=True):
        page.line("  ", Span(f"{clean(name)}: {number(value)}", Tone.STRONG))
        add_evidence(page, case, found.moved_by or "")


def _collapsed(found: RunComparison, each: Moved) -> str:
    """Return a sample in a collapsible block."""
    page = Page(100)
    _moved_sample(page, found, each)
    summary = f"<code>{escape(clean(each.sample))}</code>: {', '.join(map(number, each.values))}"
    return f"<details><summary>{summary}</summary>\n\n{fenced(str(page))}\n</details>"
