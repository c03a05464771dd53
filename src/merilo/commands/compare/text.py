"""A comparison of runs as a document of estimates, which the terminal, Markdown and the HTML page draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.people import next_step
from merilo.commands.compare.caveats import OF_VERDICT
from merilo.data.sanitize import clean, command
from merilo.metrics.registry import known_metric
from merilo.numbers import NONE, count, number, percent, signed
from merilo.rendering.ci import code, details
from merilo.rendering.doc import Doc, Entry, Part, doc_markdown, doc_page, sections_of
from merilo.rendering.explain import add_evidence
from merilo.rendering.page import Page, Span, Tone, cut
from merilo.results.estimate import BY_JUDGE, DECIDED, OWN_ERROR, Basis, Level, Verdict, covers_imported
from merilo.results.faults import FAULTS, PLACES
from merilo.results.means import MARK, WeakMarks, weak_legend
from merilo.results.measures import advantage, fewer_text, first_by, measure_cells, measure_differences
from merilo.stats.intervals import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.commands.compare.result import Moved, Ranking, Row, RunComparison

_ROWS: Final = 12
"""Maximum number of rows of one pair of runs, unless the full page is asked for."""
_MAX_LINES: Final = 25
_SHOWN: Final = 5
"""Maximum number of samples that changed."""
_MEASURES: Final = 2
"""Number of measures that fit next to several runs on a screen."""


def comparison_doc(found: RunComparison, *, full: bool = False) -> Doc:
    """Return the document of a comparison; `full`: of several runs, also the other metrics."""
    several = bool(found.rankings)
    rows = found.rankings[0].rows if several else found.rows
    noted = [*found.caveats, *(each for row in rows for each in row.estimate.caveats)]
    paths = [str(side.run.path) for side in found.sides]
    parts = ranking_parts(found, full=full) if several else [_part(found)]
    losses = [each for each in [loss(found)] if each]
    title = f"{count(len(found.sides), 'run')}" if several else " against ".join(found.names)
    return Doc(
        title=f"{title}: {count(found.common, 'question')}",
        parts=tuple(parts),
        warnings=tuple([each.full for each in found.caveats if each.level is Level.WARNS] + losses),
        legend=_legend(found),
        notes=tuple(sections_of(noted)),
        advice=to_decide(found),
        next=("What changed: " + command("report", *paths), "All metrics and statistics: --full"),
    )


def _part(found: RunComparison) -> Part:
    measured = measure_differences(*found.measures)
    return Part(
        heading="",
        sentences=(conclusion(found), *leads(found)),
        head=(
            f"{count(found.common, 'question')} in both runs",
            *found.names,
            "difference",
            f"{percent(LEVEL)}{_family(found) or ' interval'}",
        ),
        rows=tuple(_groups(found)),
        below=" ".join(filter(None, (_fault_counts(found), *(each["text"] for each in measured)))),
    )


def _fault_counts(found: RunComparison) -> str:
    """Return the judge's verdicts in the base and in the run, the most frequent first; empty if they are not judged."""
    if not found.faults:
        return ""
    base, run = found.faults
    amounts = sorted({*base, *run}, key=lambda key: (-base[key] - run[key], PLACES[key]))
    shown = ", ".join(f"{FAULTS[PLACES[key]].name.lower()} {base[key]:,} to {run[key]:,}" for key in amounts)
    return f"Verdicts of the judge: {shown}."


def leads(found: RunComparison) -> list[str]:
    """Return what qualifies the conclusion: the first caveat of each code, of corrected metrics first.

    Those that depend on a row's verdict are shown only if it is the conclusion, and what would show a difference only
    for the row that the conclusion names.
    """
    shown: dict[str, str] = {}
    rows = found.rankings[0].rows if found.rankings else found.rows
    for row in sorted(rows, key=lambda row: row.estimate.basis is not Basis.LABELS):
        for each in row.estimate.caveats:
            if each.level is Level.LEADS and (each.code not in OF_VERDICT or row.verdict is found.verdict):
                shown.setdefault(each.code, each.full)
        if row.verdict is Verdict.NOT_SHOWN:
            shown.setdefault("more-needed", "")
    return [*filter(None, shown.values())]


# -- the conclusion ------------------------------------------------------------------------------------


def conclusion(found: RunComparison) -> str:
    """Return the conclusion on a pair or on several runs, in one or two sentences."""
    if found.rankings:
        return " ".join(choice(found))
    name, verdict = found.names[1], found.verdict
    decided = found.deciding
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
    rows = [row for row in found.rows if row.verdict is not None]
    if verdict is Verdict.NO_CHANGE:
        measured = measure_differences(*found.measures)
        unlike = " and ".join(each["title"] for each in measured if not each["equal"])
        if unlike:
            return f"No change in scores: {name} has the inputs and scores of {found.names[0]}, but another {unlike}."
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


def _groups(found: RunComparison) -> Iterator[Entry | str]:
    """Yield the rows by what they rest on: human labels, ids, the judge alone, not primary."""
    primary = [row for row in found.rows if row.verdict is not None]
    by = {basis: [row for row in primary if row.estimate.basis is basis] for basis in Basis}
    counts = sorted({row.comparison.labelled for row in by[Basis.LABELS]})
    labelled = " to ".join(f"{amount:,}" for amount in dict.fromkeys((*counts[:1], *counts[-1:])))
    judged = by[Basis.JUDGE]
    headed = [
        (f"Corrected by {labelled} labelled questions", by[Basis.LABELS]),
        (_without_judge(by[Basis.NO_JUDGE]).capitalize(), by[Basis.NO_JUDGE]),
        (BY_JUDGE.capitalize(), [row for row in judged if row.undecided]),
        (BY_JUDGE.capitalize(), [row for row in judged if not row.undecided]),
        ("Not primary: no conclusion", [row for row in found.rows if row.verdict is None]),
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


def _legend(found: RunComparison) -> str:
    """Return the note below a table: how differences are computed, and which errors intervals cover."""
    several = bool(found.rankings)
    units = "" if found.cluster is None else f" Samples with the same {found.cluster} form one cluster."
    bases = {row.estimate.basis for row in (found.rankings[0].rows if several else found.rows)}
    covers = OWN_ERROR if any(side.run.manifest.origin is None for side in found.sides) else covers_imported()
    if Basis.LABELS in bases:
        covers = "cover sampling of questions and the judge's error" + (" if corrected" if len(bases) > 1 else "")
    pair = f"Differences are {found.names[1]} minus {found.names[0]}. Intervals ({percent(LEVEL)}{_family(found)})"
    text = f"{f'{TOGETHER} Intervals' if several else pair} {covers}.{units}"
    return " ".join(filter(None, (text, weak_legend(sorted(weak_of(found))))))


# -- what to do next -----------------------------------------------------------------------------------


def to_decide(found: RunComparison) -> str:
    """Return the labels that would decide, and what they take; empty if a run is better or worse.

    The metric to label is the one of `merilo label`, otherwise the clearest one by the judge alone.
    """
    if found.rankings:
        first, *_ = found.rankings
        if first.may_be_best or not first.rows[0].unchecked:
            return ""
        pair = [found.sides[place] for place in (first.best, first.rows[0].other)]
        names = " and ".join(side.name for side in pair)
        return f"To decide between {names}: {next_step([side.run for side in pair], [first.metric])}"
    if found.deciding or found.verdict is Verdict.NO_CHANGE:
        return ""
    rows = [row for row in found.rows if row.undecided]
    rows.sort(key=lambda row: (not row.estimate.sign, -abs(row.comparison.standardised or 0.0)))
    return f"To decide: {next_step([side.run for side in found.sides], [row.metric for row in rows])}" if rows else ""


# -- several runs --------------------------------------------------------------------------------------

TOGETHER: Final = (
    "Each difference is a run minus the best one. All intervals hold together, so it does not matter which run is best."
)
_SAME_DAY: Final = (
    "Compare settings that ran on the same day, with equally warm caches, and over questions that did not choose them."
)


def choice(found: RunComparison) -> list[str]:
    """Return the sentences on several runs: which may be the best, which are as good, and which one to take."""
    ranking, names = found.rankings[0], found.names
    may, by = ranking.may_be_best, _basis_text(ranking.rows)
    if not may:
        return [f"Cannot tell which run is best: {next(row.reason for row in ranking.rows if row.reason)}."]
    if len(may) == 1:
        first, mean = ranking.rows[0], number(ranking.means[ranking.best])
        than = f"{ranking.metric} {mean}, next {names[first.other]} {first.estimate}"
        said = [f"{names[ranking.best]} is better than every other run{by}: {than}."]
    else:
        said = [f"May be the best{by}: {', '.join(names[place] for place in may)}."]
    if ranking.within is not None:
        return [*said, _as_good(found, ranking)]
    measure = found.preferred
    if measure is not None and len(may) > 1 and found.chosen is not None:
        said.append(f"Of these {names[found.chosen]} {_first_by(found, may)}.")
    return said


def _as_good(found: RunComparison, ranking: Ranking) -> str:
    """Return the sentence on the runs that are shown to be as good within the margin."""
    names, chosen, measure = found.names, found.chosen, found.preferred
    whom = "every other run" if ranking.against is None else names[ranking.against]
    other = ranking.best if ranking.against is None else ranking.against
    good = [place for place in ranking.as_good if place != ranking.against]
    if not {*good} - {other}:
        only = f"Only {names[other]}" if good else "No run" if ranking.against is None else "No other run"
        return f"{only} is shown to be at most {ranking.within:g} worse than {whom}."
    if chosen is None or measure is None:
        return f"At most {ranking.within:g} worse than {whom}: {', '.join(names[place] for place in good)}."
    own, theirs = found.measures[chosen][measure], found.measures[other][measure]
    if (
        chosen == other
        or own.typical == theirs.typical
        or (own.typical < theirs.typical) == own.column.higher_is_better
    ):
        by = _first_by(found, ranking.as_good)
        return f"Of the runs that are at most {ranking.within:g} worse than {whom}, {names[chosen]} {by}."
    whom = whom if ranking.against is None else "it"
    return (
        f"{names[chosen]} {advantage(own, theirs)} {names[other]} and is at most {ranking.within:g} worse than {whom}."
    )


def _first_by(found: RunComparison, places: Sequence[int]) -> str:
    """Return the words for the chosen one of these runs, such as `costs least`."""
    own = found.measures[found.chosen or 0][found.preferred or ""]
    equal = [place for place in places if found.measures[place][found.preferred or ""].typical == own.typical]
    return first_by(own, [found.names[place] for place in equal if place != found.chosen])


def loss(found: RunComparison) -> str:
    """Return a warning if the run to take is shown to be worse by another metric; otherwise empty."""
    if not found.rankings or (chosen := found.chosen) is None:
        return ""
    worse = [
        f"{found.names[each.best]} in {each.metric}, {row.estimate}"
        for each in found.rankings[1:]
        if (row := each.row_of(chosen)) and row.verdict is Verdict.WORSE
    ]
    return f"{found.names[chosen]} is worse than {'; '.join(worse)}." if worse else ""


def _basis_text(rows: Sequence[Row]) -> str:
    """Return what a conclusion on several runs rests on."""
    by = f", {BY_JUDGE}" if rows[0].estimate.basis is Basis.JUDGE else f" {_without_judge(rows)}"
    corrected = sum(row.estimate.basis is Basis.LABELS for row in rows)
    some = "" if corrected == len(rows) else f" in {corrected:,} of {len(rows):,} differences"
    return f", corrected by human labels{some}" if corrected else by


def ranking_parts(found: RunComparison, *, full: bool) -> list[Part]:
    """Return the table of several runs, and with `full` all measures and that of the other metrics."""
    ranking, names = found.rankings[0], found.names
    measured = measure_cells(found.measures, found.preferred, None if full else _MEASURES)
    level = f"{percent(LEVEL)} interval"
    cells = [(number(mean), *(own[at] for own in measured.values())) for at, mean in ranking.means.items()]
    entries = [_ranked(ranking, names[at], at, own) for at, own in zip(ranking.means, cells, strict=True)]
    title = f"{count(found.common, 'question')} in all runs, {marked(ranking.rows[0])}"
    columns = (title, "mean", *measured, "against the best", level)
    below = [fewer_text(found.measures), _unread(found), _SAME_DAY]
    text = " ".join(f"{each.removesuffix('.')}." for each in below if each)
    parts = [Part("", (*choice(found), *leads(found)), columns, tuple(entries), text, "run")]
    others = [
        _ranked(each, f"{names[place]}: {each.metric}", place, (number(mean),))
        for each in found.rankings[1:]
        for place, mean in each.means.items()
    ]
    head = ["each metric against its best run", "mean", "against the best", level]
    return [*parts, *([Part("Other metrics", (), tuple(head), tuple(others))] if full and others else [])]


def _unread(found: RunComparison) -> str:
    """Return a warning if the metric of the choice does not read the responses that another one reads."""
    metric = found.rankings[0].metric
    reads = {each.metric: known.needs for each in found.rankings if (known := known_metric(each.metric))}
    unread = metric in reads and "response" not in reads[metric] and any("response" in each for each in reads.values())
    return f"{metric} does not read the responses" if unread else ""


def _ranked(ranking: Ranking, name: str, place: int, parts: tuple[str, ...]) -> Entry:
    """Return the entry of a run against the best."""
    row = ranking.row_of(place)
    if row is None:
        return Entry(ranking.metric, name, parts, None, None, "", "", "")
    fewer = f"{row.estimate.samples:,} pairs" if row.estimate.missing.total else ""
    alike = len({each.reason for each in ranking.rows}) == 1
    said = str(row.verdict) if alike and row.reason else _said(row)
    why = "" if alike or row.verdict is Verdict.CANNOT_TELL else why_of(row)
    return Entry(ranking.metric, name, parts, row.estimate, row.verdict, said, why, fewer)


# -- outputs -------------------------------------------------------------------------------------------


def comparison_page(found: RunComparison, width: int = 80, *, full: bool = False) -> Page:
    """Return the page; that of two runs has at most 25 lines.

    `full`: with all rows, statistics, notes and the samples that changed most.
    """
    doc, two = comparison_doc(found, full=full), not found.rankings

    def more(page: Page) -> None:
        _explained(page, found)
        _statistics(page, found)
        _moved(page, found)

    rows = None if full else _ROWS if two else len(found.sides)
    return doc_page(doc, width, rows=rows, lines=_MAX_LINES * two, details=more)


def comparison_markdown(found: RunComparison) -> str:
    """Return the comparison with the samples that changed most, within 60,000 characters."""
    heading = f"**{count(found.movers, 'sample')} changed**, by {code(_moved_by(found))}; the most changed:"
    shown = [_collapsed(found, each) for each in found.moved[:_SHOWN]]
    return doc_markdown(comparison_doc(found, full=True), [heading] if found.moved else [], shown)


def _explained(page: Page, found: RunComparison) -> None:
    page.heading("Verdicts")
    for row in found.rows:
        page.line("  ", Span(clean(f"{_named(found, row)}: {verdict_text(row)}"), Tone.STRONG))
        if text := why_of(row):
            page.text(f"{text}.", indent=4, tone=Tone.QUIET)


def _named(found: RunComparison, row: Row) -> str:
    """Return the metric of a row, of several runs with the run."""
    return f"{marked(row)}, {found.names[row.other]}" if found.rankings else marked(row)


_LEGEND: Final = (
    "p: probability of a difference at least this large if there is none; corrected: p corrected for several tests "
    "(Holm). higher, equal, lower: number of samples on which the run scores higher, equal or lower than the base. "
    "diff/sd: the difference divided by the standard deviation of the differences per sample. P: probability that the "
    "run scores higher on a sample (ties count half). finds: smallest true difference that 80 % of such comparisons "
    "show, before the correction."
)


def _statistics(page: Page, found: RunComparison) -> None:
    page.heading("Statistics")
    rows = [(_named(found, row), *_numbers(row)) for row in found.rows]
    head = ("", "p", "corrected", "higher", "equal", "lower", "diff/sd", "P", "finds")
    page.table([head, *rows], [Tone.STRONG, *[Tone.PLAIN] * len(rows)])
    page.text(_LEGEND, tone=Tone.QUIET)


def _numbers(row: Row) -> tuple[str, ...]:
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
    return details(f"{each.sample}: {', '.join(map(number, each.values))}", str(page))
