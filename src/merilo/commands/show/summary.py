"""The screen of a run in at most 25 lines, for the terminal, `print(run)`, Markdown and notebooks; and as JSON.

The modules for human labels and for slices are imported if the run has labels and if slices are shown.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.calibrate.slices import faults_of
from merilo.data.sample import DOUBT
from merilo.errors import RunError, UsageError
from merilo.metrics.registry import asks_judge
from merilo.rendering.aggregate import intervals_text, mean_rows, means_notes, short_rows
from merilo.rendering.ci import blocks_within, code, details, markdown_table
from merilo.rendering.correction import corrected_aggregates
from merilo.rendering.overview import command, judge_name, lead, overview_page, overview_record, title, unpriced
from merilo.rendering.page import GAP, Page, Span, Tone, cells_of, cut, cut_id, pad
from merilo.rendering.sanitize import clean
from merilo.rendering.weak import WeakMarks, left_out_note, unread_line
from merilo.rendering.wording import STOPPED, count, money, number, spent_text
from merilo.results.basis import EMBEDDED
from merilo.results.faults import CANNOT_TELL, FAITHFULNESS, FAULTS, PLACES, Answer, Faults, judged_metrics
from merilo.results.records import picked
from merilo.results.summary import LEFT_OPEN
from merilo.runs.run import metric_in, open_store
from merilo.runs.run_metrics import WorstScores, metric_to_inspect, weak_metrics, worst_scores
from merilo.short_repr import short_screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from merilo.results.slices import Slices
    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run
    from merilo.stats.correction import Correction


MAX_LINES: Final = 25
_MIN_ROWS: Final = 4
_REPR_ROWS: Final = 5
_WORST: Final = 3
_OTHER: Final = ("decisions", "https://api.openai.com/v1", "gpt-6-luna")
"""Provider, address and model of the judge that is recommended for what the embedded judge leaves open."""
_REQUESTS: Final = 2
"""Requests of a decision model about a sample, each with all of its texts."""
_PRICED: Final = 100
"""Maximum number of samples whose texts are read for a price."""
# -- the worst samples of a metric --------------------------------------------------------------------

_WIDEST_ID: Final = 33
_WIDTH: Final = 80
_MARKDOWN_WIDTH: Final = 100
_MARKDOWN_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with the numbers to show: corrected by the human labels stored with it, where these suffice."""

    run: Run
    faults: Faults = field(default_factory=lambda: Faults({}))
    corrections: Mapping[str, Correction] = field(default_factory=dict[str, "Correction"])
    judge_only: bool = False

    @classmethod
    def of(cls, run: Run, *, judge_only: bool = False) -> RunView:
        """Return the view; `judge_only`: without labels."""
        corrections: Mapping[str, Correction] = {}
        if not judge_only and run.labels is not None:
            from merilo.commands.calibrate.correction import corrected_of

            corrections = corrected_of(run)
        done = any(each.scored or each.undefined or each.failed for each in run.metrics.values())
        faults = faults_of(run, judge_only=judge_only) if done else Faults({})
        return cls(run, faults, corrections, judge_only)

    @property
    def verdicts(self) -> Run:
        """The run with the verdicts to show: by the levels that its labels set."""
        return self.run if self.judge_only else self.run.shown

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates to report."""
        return corrected_aggregates(tuple(self.run.metrics.values()), self.corrections)

    @property
    def corrected(self) -> tuple[str, ...]:
        """The metrics whose means human labels correct."""
        return tuple(metric for metric, each in self.corrections.items() if each.estimate is not None)

    def record(self, by: Sequence[str] = ()) -> dict[str, Any]:  # Any: JSON
        """Return the view as a JSON-able object; `by`: with the slices by these fields."""
        slices = {each: self._slices(each).record() for each in by}
        found = overview_record(self.run, corrections=self.corrections, faults=self.faults)
        return {**found, **({"slices": slices} if slices else {})}

    def page(
        self,
        width: int,
        *,
        full: bool = False,
        again: str = "",
        language: str | None = None,
        by: Sequence[str] = (),
        whole: bool = False,
    ) -> Page:
        """Return the screen, or with `full` everything about the run.

        `again`: the command that asks failed questions again. `language`: of the page; None for that of the run. `by`:
        fields whose slices are shown, below the first sentences or, with `whole`, below the whole screen.
        """
        if by and not (full or whole):
            page = Page(width, language or self.run.manifest.language)
            title(page, self.run, self.faults, self.corrected)
        elif full:
            page = overview_page(
                self.run, width, again=again, corrections=self.corrections, faults=self.faults, language=language
            )
        else:
            page = summary_page(self, width, again=again, language=language)
        for each in by:
            page.blank()
            from merilo.rendering.aggregate import add_slices

            add_slices(page, self._slices(each))
        return page

    def _slices(self, field: str) -> Slices:
        from merilo.commands.calibrate.slices import slices_of

        return slices_of(self.run, field, judge_only=self.judge_only)


def run_page(run: Run, width: int, *, full: bool = False, again: str = "", by: Sequence[str] = ()) -> Page:
    """Return the screen of a run; see `RunView.page`."""
    return RunView.of(run).page(width, full=full, again=again, by=by, whole=True)


def run_record(run: Run, *, by: Sequence[str] = ()) -> dict[str, Any]:  # Any: JSON
    """Return the run as a JSON-able object; see `RunView.record`."""
    return RunView.of(run).record(by)


def run_text(run: Run) -> str:
    """Return the screen without the next commands, 80 columns wide."""
    return str(summary_page(RunView.of(run), _WIDTH, commands=False))


def run_repr(run: Run) -> str:
    """Return the title and the means in at most 12 lines."""
    page, view = Page(_WIDTH, run.manifest.language), RunView.of(run)
    title(page, run, view.faults, view.corrected)
    _means(page, view, rows=_REPR_ROWS, meanings=False)
    return short_screen(str(page))


def run_markdown(run: Run, *, judge_only: bool = False) -> str:
    """Return the faults, the means with their intervals and the worst samples as Markdown, within 60,000 characters."""
    view, manifest = RunView.of(run, judge_only=judge_only), run.manifest
    sentence, *more = lead(run, view.faults, view.corrected, code)
    blocks = [f"### {sentence}", *more]
    if not run.complete:
        blocks.append(f"> **Warning:** This run was {STOPPED}.")
    head, *rows = mean_rows(view.aggregates, WeakMarks.of(manifest), view.corrections)
    blocks.append(markdown_table(head, ("---", *["---:"] * 5), [(code(name), *cells) for name, *cells in rows]))
    notes = (
        *means_notes(manifest, view.aggregates, corrected=view.corrected),
        left_out_note(manifest),
    )
    blocks += [code(note) for note in notes if note]
    return blocks_within(blocks, _worst_blocks(view))


def summary_page(
    view: RunView, width: int, *, again: str = "", commands: bool = True, language: str | None = None
) -> Page:
    """Return the screen: the faults, the means, the samples to read first, cautions and the next commands.

    Has at most `MAX_LINES` lines: of a run with many metrics it shows the first ones. `again`: the command that asks
    failed questions again. `commands`: False to leave out what to do next.
    """
    rows, worst, meanings = len(view.run.metrics), _WORST, True
    while True:
        page = Page(width, language or view.run.manifest.language)
        title(page, view.run, view.faults, view.corrected)
        more = _more_verdicts(view) if commands else ""
        parts: list[Callable[[Page, RunView], bool | None]]
        parts = [partial(_means, rows=rows, meanings=meanings), partial(_read_first, size=worst)]
        wrapped = False
        for part in reversed(parts) if judge_name(view.run) == EMBEDDED and view.faults else parts:
            wrapped |= bool(part(page, view))
            if part is parts[1] and more:
                page.text(more)
        page.blank()
        _cautions(page, view, again)
        if commands:
            _next(page, view, check=not more)
        if not (meanings and wrapped) and (len(page.lines) <= MAX_LINES or rows <= _MIN_ROWS):
            return page
        # Metrics are left out last: the user asked for them.
        if meanings:
            meanings = False
        elif worst > 1:
            worst = 1
        else:
            rows -= 1


def _means(page: Page, view: RunView, rows: int, *, meanings: bool) -> bool:
    """Add the means; return True if a row took more than one line. `meanings`: with what each metric means."""
    page.blank()
    shown = view.aggregates[:rows]
    table, notes = short_rows(view.run.manifest, shown, view.corrections, meanings=meanings)
    before = len(page.lines)
    page.table(table, [Tone.STRONG, *(Tone.BAD if each.failed else Tone.PLAIN for each in shown)], notes=notes)
    wrapped = len(page.lines) - before > len(table)
    if left := len(view.run.metrics) - len(shown):
        page.text(f"and {count(left, 'more metric')}: {command('show', str(view.run.path), '--full')}", tone=Tone.QUIET)
    return wrapped


def _cautions(page: Page, view: RunView, again: str) -> None:
    """Add one line for each caution."""
    run, aggregates = view.run, view.aggregates
    for text in _without_value(view):
        page.text(text)
    invalid = run.manifest.skipped
    skipped = [f"Skipped: {count(len(invalid), 'invalid record')}: {clean(invalid[0])}"] if invalid else []
    for text in (*skipped, *_remarks(aggregates)):
        page.line(cut(page.translation.line(text), page.width))
    clusters = any(each.clusters is not None for each in aggregates)
    notes = (
        *_few_labels(view),
        *_judge(view),
        unread_line(run.manifest),
        *(note if note.startswith(DOUBT) else cut(note, page.width) for note in run.manifest.notes),
        intervals_text(aggregates, run.manifest.cluster, corrected=view.corrected) if clusters else "",
    )
    for note in filter(None, notes):
        page.text(note)
    failed = sum(each.failed for each in aggregates if not each.parts)
    if failed:
        # The reasons of an aggregate are those of undefined samples too.
        first = next((each for each in run.records() if each["outcome"] == "failed"), None)
        why = "" if first is None else clean(first.get("error", {}).get("message", "")).rstrip(".")
        page.line(cut(page.translation.line(f"{count(failed, 'outcome')} failed: {why}."), page.width))
        if again and not why.startswith("unreadable "):  # the same data fails again
            page.line(page.translation.line(f"Retry what failed: {again}"))


def _without_value(view: RunView) -> Iterator[str]:
    """Yield, for each reason, the metrics that have no value for it: at all, or for the samples without a verdict."""
    found: dict[tuple[str, int], list[str]] = {}
    judged = judged_metrics(view.run.metrics) if view.faults[CANNOT_TELL] else []
    # The category is open if the support of the response is.
    unknown = [each for each in judged if each.partition("(")[0] == FAITHFULNESS] or judged[:1]
    for each in view.aggregates:
        if (each.mean is None and not each.failed) or (each.metric in unknown and each.undefined):
            reason = each.note if each.parts else next(iter(each.reasons), "")
            amount = each.reasons.get(reason, each.undefined)
            found.setdefault((clean(reason), amount), []).append(clean(each.metric))
    for (reason, amount), metrics in found.items():
        if reason:
            state = "not judged" if reason == LEFT_OPEN else "undefined"
            yield f"{', '.join(metrics)}{f', {amount:,} {state}' if amount else ''}: {reason}."


def _remarks(aggregates: Sequence[Aggregate]) -> Iterator[str]:
    """Yield the first remark on an interval, such as too few clusters, and the number of the others."""
    if remarked := [each for each in aggregates if each.remark]:
        more = f" (and {count(len(remarked) - 1, 'more metric')})" if len(remarked) > 1 else ""
        yield f"Interval of {clean(remarked[0].metric)}{more}: {clean(remarked[0].remark)}."


def _few_labels(view: RunView) -> Iterator[str]:
    """Yield why stored labels do not correct the first of the metrics that they are for."""
    few = [(metric, each.reason) for metric, each in view.corrections.items() if each.estimate is None]
    if few and not view.corrected:
        yield f"Human labels do not correct {clean(few[0][0])}: {few[0][1][:1].lower()}{few[0][1][1:]}"


def _judge(view: RunView) -> list[str]:
    """Return sentences on the judge's use by the labels."""
    if view.judge_only or view.run.labels is None:
        return []
    from merilo.commands.calibrate.levels import judge_sentences

    return judge_sentences(view.run)


def _read_first(page: Page, view: RunView, size: int) -> None:
    """Add the worst samples: by fault, or without a fault table those with the lowest score of a metric."""
    heading, worst = _worst(view)
    if not worst:
        return
    page.heading(heading)
    say = page.translation.phrase
    named = [(cut_id(sample, _WIDEST_ID), say(why), question) for sample, why, question in worst]
    ids, whys = (max(cells_of(each[place]) for each in named) for place in (0, 1))
    for sample, why, question in named[:size]:
        start = f"  {pad(sample, ids)}  {pad(why, whys)}"
        page.line(start, "  ", cut(question, page.width - cells_of(start) - GAP))


def _worst(view: RunView) -> tuple[str, list[tuple[str, str, str]]]:
    """Return the heading, and of each of the worst samples its id, what is wrong, and the question."""
    run = view.verdicts
    if view.faults:
        found = [(sample, FAULTS[PLACES[key]].name) for sample, key in view.faults.worst(_WORST)]
        heading = "Read first"
    else:
        metric = metric_to_inspect(run.manifest, run.metrics)
        scores = (
            () if metric is None else worst_scores(run.manifest, run.brief_records([metric]), metric, _WORST).samples
        )
        found = [(sample, number(value)) for sample, value in (scores if len(scores) > 1 else ())]
        heading = f"Worst samples by {WeakMarks.of(run.manifest).name(metric or '')}"
    texts = _user_inputs(run, [sample for sample, _ in found])
    return heading, [(sample, why, texts[sample] or "") for sample, why in found]


def _more_verdicts(view: RunView) -> str:
    """Return where to get verdicts on what the embedded judge leaves open; empty if it leaves nothing open."""
    if judge_name(view.run) != EMBEDDED or not view.faults.answers.get(Answer.UNKNOWN):
        return ""
    usd = _other_usd(view)
    price = "" if usd is None else f" ({money(usd)} USD here)"
    minutes = _minutes_to_check(view)
    yours = f"; yours, {minutes}: {command('label', str(view.run.path))}" if minutes else ""
    other = f"--judge {_OTHER[0]}:{_OTHER[2]}{price}"
    return f"More verdicts: {other} or --judge local:factcg (free, 1.7 GB once){yours}"


def _other_usd(view: RunView) -> float | None:
    """Return the estimated price of another judge's verdicts on the run, from its texts; None if it is unknown."""
    from merilo.engine.amounts import tokens_in
    from merilo.providers.base import Usage
    from merilo.providers.prices import list_price_usd

    ids = [*view.faults.samples]
    step = -(-len(ids) // _PRICED)
    with closing(open_store(view.run)) as store:
        samples = [each for sample in ids[::step] if (each := store.sample(sample)) is not None]
    texts = [
        text
        for each in samples
        for text in (
            each.user_input,
            each.response,
            each.reference,
            *(own.text for own in each.retrieved_contexts or ()),
        )
    ]
    tokens = _REQUESTS * tokens_in(sum(len(text or "") for text in texts)) * len(ids) / max(1, len(samples))
    return list_price_usd(*_OTHER, Usage(round(tokens), 0))


def _next(page: Page, view: RunView, *, check: bool) -> None:
    run, path, say = view.run, str(view.run.path), page.translation.line
    page.blank()
    if run.usage.get("requests"):
        page.text(f"Cost: {spent_text(run.usage)}.")
        for text in unpriced(run):
            page.text(f"Price {text}.")
    commands = [say(f"Report: {command('report', path)}")]
    if check and (minutes := _minutes_to_check(view)):
        commands.append(say(f"Check the judge, {minutes}: {command('label', path)}"))
    both = (" " * 6).join(commands)
    for line in [both] if cells_of(both) <= page.width else commands:
        page.line(line)


def _minutes_to_check(view: RunView) -> str:
    """Return the time that labels take; empty if some correct a mean, or if none would."""
    if view.corrected or view.run.manifest.origin or not any(map(asks_judge, view.run.manifest.metrics)):
        return ""
    from merilo.commands.calibrate.people import labelling_price

    try:
        price = labelling_price([view.run])
    except (RunError, UsageError):  # no sample has an outcome yet, or a score that could be labelled
        return ""
    return price.minutes if price.command else ""


def _worst_blocks(view: RunView) -> list[str]:
    """Return the worst samples with the evidence for the score of the metric that is farthest from its best value."""
    from merilo.rendering.explain import add_evidence
    from merilo.results.sample_detail import SampleDetail

    run = view.verdicts
    metric = metric_to_inspect(run.manifest, run.metrics)
    heading, worst = _worst(view)
    if not worst or metric is None:
        return []
    blocks = [f"**{heading}**"]
    for sample, why, question in worst:
        page, case = Page(_MARKDOWN_WIDTH), SampleDetail.of(run, sample)
        if question:
            page.entry("user input", cut(question, _MARKDOWN_TEXT), column=14, indent=2)
        add_evidence(page, case, metric, indent=2)
        blocks.append(details(f"{sample}: {why}", str(page)))
    return blocks


_WIDEST_SAMPLE = 36
_MIN_TEXT = 24
_VALUE = 5


def metric_of(run: Run, wanted: str | None) -> str:
    """Return the full text of the metric with this name; for None, the one whose mean is farthest from its best value.

    Raises UsageError if the run has no such metric or no score.
    """
    if wanted is not None:
        return metric_in(run, wanted)
    found = metric_to_inspect(run.manifest, run.metrics)
    if found is None:
        raise UsageError(f"{run.path} has no scored sample.")
    return found


def worst(run: Run, metric: str, count: int) -> tuple[WorstScores, dict[str, str | None]]:
    """Return the `count` worst samples of a metric, and their user inputs by id."""
    found = worst_scores(run.manifest, run.brief_records([metric]), metric, count)
    return found, _user_inputs(run, [sample for sample, _ in found.samples])


def _user_inputs(run: Run, samples: Sequence[str]) -> dict[str, str | None]:
    with closing(open_store(run)) as store:
        found = {sample: store.sample(sample) for sample in samples}
    return {sample: None if each is None else each.user_input for sample, each in found.items()}


def worst_record(run: Run, found: WorstScores, texts: Mapping[str, str | None]) -> dict[str, Any]:  # Any: JSON
    """Return the worst samples as a JSON-able object."""
    return {
        "run": str(run.path),
        "metric": found.metric,
        "weak": found.metric in weak_metrics(run.manifest),
        **picked(found, "higher_is_better scored undefined failed"),
        "worst": [{"sample": sample, "value": value, "user_input": texts[sample]} for sample, value in found.samples],
    }


def worst_page(
    run: Run, found: WorstScores, texts: Mapping[str, str | None], width: int, language: str | None = None
) -> Page:
    """Return a page that lists the worst samples: value, id and user input; in the language of the run by default."""
    page = Page(width, language or run.manifest.language)
    say = page.translation.phrase
    end = "lowest" if found.higher_is_better else "highest"
    marks = WeakMarks.of(run.manifest)
    page.text(
        f"{marks.name(found.metric)}: the {len(found.samples):,} {end} of {found.scored:,} scored", tone=Tone.STRONG
    )
    if found.undefined or found.failed:
        page.text(f"Not listed: {found.undefined:,} undefined and {found.failed:,} failed, which have no score.")
    if legend := marks.legend([found.metric]):
        page.text(legend, tone=Tone.QUIET)
    if not found.samples:
        return page
    page.blank()
    headings = [say(each) for each in ("value", "sample", "user input")]
    first = max(_VALUE, cells_of(headings[0]))
    longest = max(cells_of(headings[1]), *(cells_of(clean(sample)) for sample, _ in found.samples))
    column = min(longest, _WIDEST_SAMPLE)
    room = page.width - first - column - 2 * GAP
    side_by_side = longest == column and room >= _MIN_TEXT
    third = f"  {headings[2]}" if side_by_side else ""
    page.line(Span(f"{pad(headings[0], first, right=True)}  {pad(headings[1], column)}{third}", Tone.STRONG))
    for sample, value in found.samples:
        text = cut(texts[sample] or "", room if side_by_side else page.width - first - GAP)
        start = f"{pad(number(value), first, right=True)}  {pad(clean(sample), column)}"
        page.line(start, *(("  ", Span(text)) if side_by_side else ()))
        if not side_by_side:
            page.line(" " * (first + GAP), Span(text, Tone.QUIET))
    page.heading("Next")
    page.line("  " + command("show", str(run.path), "--sample", found.samples[0][0]))
    return page
