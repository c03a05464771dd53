"""Agreement of judges, as a page and as a JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.rendering.correction import annotator_lines, measured_record, measurement_text
from merilo.rendering.overview import command
from merilo.rendering.page import Page, Span, Tone, columns
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.commands.agree.ranking import SystemRanking
    from merilo.commands.agree.run import JudgePair, JudgesAgreement, KindAgreement
    from merilo.stats.agreement_intervals import AnnotatorAgreement
    from merilo.stats.agreement_pairs import PairAgreement

_LARGEST_TABLE: Final = 6
"""The largest number of labels for which the page shows the table; the JSON always contains it."""


def judges_page(found: JudgesAgreement, width: int) -> Page:
    """Return a page: each pair of judges by kind of question and by ranking of systems, then all judges together."""
    page = Page(width)
    runs = count(sum(len(each.runs) for each in found.raters), "run")
    page.text(f"{count(len(found.raters), 'judge')} compared, from {runs}", tone=Tone.STRONG)
    for sentence in found.remarks:
        page.text(sentence)
    for pair in found.pairs:
        page.heading(f"{pair.first} and {pair.second}")
        page.text(_counts(pair), indent=2)
        for kind in pair.kinds:
            _kind(page, kind)
        for ranking in pair.rankings:
            _ranking(page, ranking)
    if found.among:
        page.heading(f"All {len(found.raters)} together")
        for name, each in found.among.items():
            page.text(f"{name}, {count(each.items, 'question')}:", indent=2)
            page.entries(annotator_lines(each), indent=4)
    page.blank()
    page.text(_basis(found))
    _next(page, found)
    return page


def judges_record(found: JudgesAgreement) -> dict[str, Any]:  # Any: JSON
    """Return the same as a JSON-able object; rows of a table are the first judge's labels, columns the second's."""
    return {
        "judges": [{"name": each.name, "runs": [str(run.path) for run in each.runs]} for each in found.raters],
        "level": found.level,
        "cluster": found.cluster,
        "pairs": [_pair_record(each) for each in found.pairs],
        "among": {kind: _among_record(each) for kind, each in found.among.items()},
        "remarks": list(found.remarks),
    }


def _counts(pair: JudgePair) -> str:
    parts = [f"{count(pair.common, 'question')} answered by both"]
    parts += [f"{amount:,} in the runs of {who} only" for amount, who in _alone(pair) if amount]
    if pair.failed:
        parts.append(f"{pair.failed:,} without a verdict from one or both")
    return f"{', '.join(parts)}."


def _alone(pair: JudgePair) -> tuple[tuple[int, str], ...]:
    return (pair.only_first, "the first"), (pair.only_second, "the second")


def _kind(page: Page, kind: KindAgreement) -> None:
    page.blank()
    equal = kind.agreement.items - kind.differ
    page.text(f"{kind.kind}: same label on {equal:,} of {count(kind.agreement.items, 'question')}", indent=2)
    if len(kind.labels) <= _LARGEST_TABLE:
        _table(page, kind)
    page.entries(list(_measures(kind.agreement)), indent=4)
    if kind.samples:
        page.text(f"They differ in {_named(kind)}.", indent=4)


def _named(kind: KindAgreement) -> str:
    """Return the number of samples and the ids of the first ones."""
    more = kind.differ_in - len(kind.samples)
    names = ", ".join(clean(each) for each in kind.samples)
    return f"{count(kind.differ_in, 'sample')}: {names}" + (f" and {more:,} more" if more else "")


def _table(page: Page, kind: KindAgreement) -> None:
    rows: list[Sequence[str]] = [("first \\ second", *map(clean, kind.labels))]
    for label, counts in zip(kind.labels, kind.agreement.confusion.counts, strict=True):
        rows.append((clean(label), *(f"{each:,}" for each in counts)))
    for place, line in enumerate(columns(rows, left=frozenset({0}))):
        page.line("    ", Span(line, Tone.PLAIN if place else Tone.QUIET))


def _measures(found: PairAgreement) -> Iterator[tuple[str, str]]:
    if found.kappa_quadratic is not None:
        yield "weighted kappa", measurement_text(found.kappa_quadratic)
        yield "alpha (ordinal)", measurement_text(found.alpha)
        yield "kappa", measurement_text(found.kappa)
    else:
        yield "kappa", measurement_text(found.kappa)
        yield "alpha", measurement_text(found.alpha)
    yield "AC1", measurement_text(found.ac1)
    yield "accuracy", measurement_text(found.accuracy)
    if remark := found.accuracy.interval.remark:
        yield "note", f"{remark}."


def _ranking(page: Page, ranking: SystemRanking) -> None:
    page.blank()
    page.text(f"{len(ranking.systems)} systems ranked by {clean(ranking.metric)}", indent=2)
    rows: list[Sequence[str]] = [("", "first", "second")]
    for system, means in zip(ranking.systems, ranking.means, strict=True):
        rows.append((clean(system), *map(number, means)))
    for place, line in enumerate(columns(rows, left=frozenset({0}))):
        page.line("    ", Span(line, Tone.PLAIN if place else Tone.QUIET))
    page.entries([("Kendall's tau", measurement_text(ranking.tau))], indent=4)


def _basis(found: JudgesAgreement) -> str:
    units = "sample" if found.cluster is None else found.cluster
    return (
        f"Neither judge is taken as correct: two judges can agree and both be wrong. Intervals are at "
        f"{percent(found.level)} and cover the sampling of questions; those of one {clean(units)} are resampled "
        "together."
    )


def _next(page: Page, found: JudgesAgreement) -> None:
    pair = next((each for each in found.pairs if any(kind.samples for kind in each.kinds)), None)
    if pair is None:
        return
    sample = next(kind.samples[0] for kind in pair.kinds if kind.samples)
    page.heading("Next")
    for name in (pair.first, pair.second):
        run = next(each.runs[0] for each in found.raters if each.name == name)
        page.line("  " + command("show", str(run.path), "--sample", sample))


def _pair_record(pair: JudgePair) -> dict[str, Any]:  # Any: JSON
    return {
        "first": pair.first,
        "second": pair.second,
        "questions": pair.common,
        "only_first": pair.only_first,
        "only_second": pair.only_second,
        "failed": pair.failed,
        "kinds": {each.kind: _kind_record(each) for each in pair.kinds},
        "systems": {each.metric: _ranking_record(each) for each in pair.rankings},
    }


def _kind_record(kind: KindAgreement) -> dict[str, Any]:  # Any: JSON
    found = kind.agreement
    measures = ("kappa", "kappa_quadratic", "kappa_linear", "alpha", "ac1", "accuracy")
    named = {name: getattr(found, name) for name in measures}
    return {
        "questions": found.items,
        "clusters": found.clusters,
        "differ": kind.differ,
        "differ_in": kind.differ_in,
        "samples": list(kind.samples),
        "confusion": {"labels": list(kind.labels), "counts": [list(row) for row in found.confusion.counts]},
        **{name: measured_record(each) for name, each in named.items() if each is not None},
    }


def _ranking_record(ranking: SystemRanking) -> dict[str, Any]:  # Any: JSON
    means: Mapping[str, list[float]] = dict(zip(ranking.systems, map(list, ranking.means), strict=True))
    return {"means": means, "tau_b": measured_record(ranking.tau)}


def _among_record(found: AnnotatorAgreement) -> dict[str, Any]:  # Any: JSON
    return {
        "questions": found.items,
        "ratings": found.ratings,
        "alpha": measured_record(found.alpha),
        "ac1": measured_record(found.ac1),
    }
