"""The screen of a run in at most 20 lines, for the terminal, `print(run)`, Markdown and notebooks; and as JSON.

The modules for human labels and for slices are imported if the run has labels and if slices are shown.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.calibrate.slices import faults_of, shown_run, slices_of
from merilo.data.sanitize import clean, command
from merilo.errors import RunError, UsageError
from merilo.metrics.registry import asks_judge
from merilo.numbers import count, money, number, spent_text
from merilo.rendering.ci import details
from merilo.rendering.doc import Doc, Line, Part, doc_markdown, doc_page
from merilo.rendering.own_words import interpret_means
from merilo.rendering.page import Page, cut
from merilo.rendering.run_doc import IN_WORDS, RunView, lead, run_record, title_text
from merilo.rendering.slices import add_slices
from merilo.results.comparable import EMBEDDED
from merilo.results.estimate import Level
from merilo.results.faults import FAULTS, PLACES, Answer, Faults
from merilo.results.means import WEAK_LEGEND, WeakMarks, judge_name, unpriced
from merilo.results.records import picked
from merilo.runs.run import Run, metric_in, open_store
from merilo.runs.run_metrics import WorstScores, metric_to_inspect, weak_metrics, worst_scores
from merilo.short_repr import short_screen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.stats.correction import Correction


MAX_LINES: Final = 20
_REPR_ROWS: Final = 5
_WORST: Final = 3
_OTHER: Final = ("decisions", "https://api.openai.com/v1", "gpt-6-luna")
"""Provider, address and model of the judge that is recommended for what the embedded judge leaves open."""
_REQUESTS: Final = 2
"""Requests of a decision model about a sample, each with all of its texts."""
_PRICED: Final = 100
"""Maximum number of samples whose texts are read for a price."""
_WIDTH: Final = 80
_MARKDOWN_WIDTH: Final = 100
_MARKDOWN_TEXT: Final = 200


def view_of(run: Run) -> RunView:
    """Return the run with the numbers to show."""
    corrections: Mapping[str, Correction] = {}
    judge: Sequence[str] = ()
    if run.labels is not None:
        from merilo.commands.calibrate.correction import corrected_of
        from merilo.commands.calibrate.people import judge_sentences

        corrections, judge = corrected_of(run), judge_sentences(run)
    done = any(each.scored or each.undefined or each.failed for each in run.metrics.values())
    faults = faults_of(run) if done else Faults({})
    return RunView(run, faults, corrections, judge, shown_run(run))


def run_doc(view: RunView, *, again: str = "", commands: bool = True) -> Doc:
    """Return the document: the faults, the means, the samples to read first, cautions and the next commands.

    `again`: the command that asks failed questions again. `commands`: False to leave out what to do next.
    """
    run = view.run
    more = _more_verdicts(view) if commands else ""
    heading, found = _worst(view)
    read = Part(heading, (), (), tuple(map(Line, found[:_WORST])), more)
    parts = [view.means(), *([read] if found else [])]
    if judge_name(run) == EMBEDDED and view.faults:
        parts.reverse()
    first = Part("", tuple(lead(run, view.faults, view.corrected)), (), ())
    return Doc(
        title=title_text(run, view.corrected),
        parts=(first, *parts),
        warnings=tuple(each.full for each in view.caveats if each.level is Level.WARNS),
        legend=view.legend,
        notes=view.notes,
        cautions=(*view.cautions(), *_measured(view), *_last(view, again, commands=commands)),
        advice=_to_check(view) if commands else "",
        next=(f"Report: {command('report', str(run.path))}",) if commands else (),
        language=run.manifest.language,
    )


def run_page(
    run: Run,
    width: int,
    *,
    full: bool = False,
    again: str = "",
    by: Sequence[str] = (),
    short: bool = False,
    language: str | None = None,
    commands: bool = True,
) -> Page:
    """Return the screen; of a run with many metrics it shows the first ones, unless `full`. Arguments as in `run_doc`.

    `by`: fields whose slices are shown below; `short`: only the first sentences are above them.
    """
    view, page = view_of(run), Page(width)
    whole = run_doc(view, again=again, commands=commands)
    if full and (found := _worst(view)[1]):
        read = f"Read it: {command('show', str(run.path), '--sample', found[0][0])}"
        whole = replace(whole, next=(*whole.next, read))
    if short:
        whole = replace(whole, parts=whole.parts[:1], cautions=(), advice="", next=())
    whole = replace(whole, notes=tuple([each for each in whole.notes if each[0] != IN_WORDS]))
    rows, words = None if full else len(run.metrics), partial(interpret_means, run=run)
    for most, lines in ((_WORST, 0), (1, MAX_LINES)):
        parts = tuple([each if each.head else replace(each, rows=each.rows[:most]) for each in whole.parts])
        page = doc_page(replace(whole, parts=parts), width, rows=rows, lines=lines, language=language, details=words)
        if full or len(page.lines) <= MAX_LINES:
            break
    for each in by:
        page.blank()
        add_slices(page, slices_of(run, each))
    return page


def record_of(run: Run, *, by: Sequence[str] = ()) -> dict[str, Any]:  # Any: JSON
    """Return the run as a JSON-able object; `by`: with the slices by these fields."""
    slices = {each: slices_of(run, each).record() for each in by}
    return {**run_record(view_of(run)), **({"slices": slices} if slices else {})}


def run_text(run: Run) -> str:
    """Return the screen without the next commands, 80 columns wide."""
    return str(run_page(run, _WIDTH, commands=False))


def run_repr(run: Run) -> str:
    """Return the title and the means in at most 12 lines."""
    return short_screen(run_text(run))


def run_markdown(run: Run) -> str:
    """Return the faults, the means with their intervals and the worst samples as Markdown, within 60,000 characters."""
    view = view_of(run)
    return doc_markdown(run_doc(view, commands=False), optional=_worst_blocks(view))


def _measured(view: RunView) -> list[str]:
    """Return the measures in one sentence; empty without any."""
    text = "; ".join(each.brief for each in view.measures.values())
    return [f"{text[:1].upper()}{text[1:]}."] if text else []


def _last(view: RunView, again: str, *, commands: bool) -> Iterator[str]:
    """Yield the number of failed outcomes with the first reason, the command that retries them, and the cost."""
    if failed := sum(each.missing.failed for each in view.estimates.values()):
        # The reasons of an aggregate are those of undefined samples too.
        first = next((each for each in view.run.records() if each["outcome"] == "failed"), None)
        why = "" if first is None else clean(first.get("error", {}).get("message", "")).rstrip(".")
        yield f"{count(failed, 'outcome')} failed: {why}."
        if again and not why.startswith("unreadable "):  # the same data fails again
            yield f"Retry what failed: {again}"
    if commands and view.run.usage.get("requests"):
        yield f"Cost: {spent_text(view.run.usage)}."
        if text := unpriced(view.run):
            yield f"Price {text}."


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
    return f"More verdicts: --judge {_OTHER[0]}:{_OTHER[2]}{price} or --judge local:factcg (free, 1.7 GB once)"


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


def _to_check(view: RunView) -> str:
    """Return the labels that would check the judge; empty if some correct a mean, or if none would help."""
    if view.corrected or view.run.manifest.origin or not any(map(asks_judge, view.run.manifest.metrics)):
        return ""
    from merilo.commands.calibrate.people import next_step

    try:
        return f"To check the judge: {next_step([view.run])}"
    except RunError:  # no sample has an outcome yet
        return ""


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
    """Return a page that lists the worst samples: id, value and user input; in the language of the run by default."""
    end = "lowest" if found.higher_is_better else "highest"
    weak = f" ({WEAK_LEGEND})" if found.metric in weak_metrics(run.manifest) else ""
    sentences = [f"{found.metric}{weak}: the {len(found.samples):,} {end} of {found.scored:,} scored"]
    if found.undefined or found.failed:
        sentences.append(f"Not listed: {found.undefined:,} undefined and {found.failed:,} failed, which have no score.")
    rows = [Line((sample, number(value), texts[sample] or "")) for sample, value in found.samples]
    doc = Doc(
        title=sentences[0],
        parts=(Part("", tuple(sentences), (), tuple(rows)),),
        next=(command("show", str(run.path), "--sample", found.samples[0][0]),) if rows else (),
    )
    return doc_page(doc, width, rows=len(rows), language=language or run.manifest.language)
