"""A run as a document of estimates, and as JSON: its faults, its means, and what qualifies them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from merilo.judges.base import embedded_right
from merilo.metrics.answering import Category
from merilo.metrics.registry import asks_judge, known_metric
from merilo.numbers import count, number, percent, span
from merilo.rendering.doc import Line, Part, Section, sections_of
from merilo.rendering.own_words import mean_rows
from merilo.rendering.page import Tone
from merilo.results.comparable import EMBEDDED
from merilo.results.estimate import BY_JUDGE, Caveat, Estimate, Level
from merilo.results.faults import CANNOT_TELL, FAITHFULNESS, FAULTS, PLACES, Answer, Faults, Held, judged_metrics
from merilo.results.means import (
    CAVEAT,
    ESTIMATE,
    agreement,
    corrected,
    corrected_aggregates,
    estimate_of,
    intervals_text,
    judge_name,
    mean_record,
    of_run,
)
from merilo.results.measures import Measure, measures_of
from merilo.results.records import grouped, picked

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run
    from merilo.stats.correction import Correction

_OF_CONTEXTS: Final = {
    Category.EVIDENCE_MISSING.value,
    CANNOT_TELL,
    *(each.key for each in FAULTS if each.held is Held.ENOUGH and each.answer is Answer.UNKNOWN),
}
"""The faults of a run without responses."""
_EACH: Final = frozenset({"no-value", "note", "doubt", "judge"})
"""Codes of which every caution is shown; of others the first one."""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with the numbers to show: corrected by the human labels stored with it, where these suffice."""

    run: Run
    faults: Faults = field(default_factory=lambda: Faults({}))
    corrections: Mapping[str, Correction] = field(default_factory=dict[str, "Correction"])
    judge: Sequence[str] = ()
    """Sentences on the use of the judge, by the labels."""
    levelled: Run | None = None
    """The run with its verdicts by the levels that its labels set; None: by the judge's own."""

    @property
    def verdicts(self) -> Run:
        """The run with the verdicts to show."""
        return self.levelled or self.run

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates to report."""
        return corrected_aggregates(tuple(self.run.metrics.values()), self.corrections)

    @property
    def corrected(self) -> tuple[str, ...]:
        """The metrics whose means human labels correct."""
        return tuple(metric for metric, each in self.corrections.items() if corrected(each))

    @property
    def primary(self) -> str | None:
        """The metric to decide by: of ids if the gold ids of all samples are known, otherwise of the fault table."""
        known = {text: metric for text in self.run.metrics if (metric := known_metric(text)) is not None}
        ids = [text for text, metric in known.items() if any(name.endswith("_ids") for name in metric.needs)]
        complete = (text for text in ids if self.run.metrics[text].scored == self.run.done)
        return next(complete, None) or next(iter(judged_metrics(self.run.metrics)), None)

    @property
    def measures(self) -> dict[str, Measure]:
        """The measures of the samples, by name."""
        return self.run.kept(measures_of)

    @property
    def estimates(self) -> dict[str, Estimate]:
        """The mean of each metric."""
        primary = self.primary
        judged = judged_metrics(self.run.metrics) if self.faults[CANNOT_TELL] else []
        # The category is open if the support of the response is.
        unknown = [each for each in judged if each.partition("(")[0] == FAITHFULNESS] or judged[:1]
        return {
            each.metric: estimate_of(
                each, self.run.manifest, self.corrections.get(each.metric), unjudged=each.metric in unknown
            )
            for each in sorted(self.aggregates, key=lambda each: each.metric != primary)
        }

    @property
    def caveats(self) -> list[Caveat]:
        """What qualifies all numbers, then each."""
        parted = (each.removesuffix(".").partition(": ") for each in self.judge)
        judge = (Caveat("judge", text, Level.LEADS, about=kind) for kind, _, text in parted)
        return [*of_run(self.run), *judge, *(each for found in self.estimates.values() for each in found.caveats)]

    @property
    def legend(self) -> str:
        """Which errors the intervals cover, and what marks weak metrics."""
        manifest = self.run.manifest
        return intervals_text(self.aggregates, manifest.cluster, corrected=self.corrected, origin=manifest.origin)

    @property
    def notes(self) -> tuple[Section, ...]:
        """What the numbers are made with, in groups."""
        words = mean_rows(self.run)
        measures = [(each.title, str(each)) for each in self.measures.values()]
        shown = ((IN_WORDS, words), ("Measures", measures))
        return (*(each for each in shown if each[1]), *sections_of(self.caveats))

    def means(self) -> Part:
        """Return the table of means."""
        aggregates = self.aggregates
        level = percent(aggregates[0].level if aggregates else 0.95)
        rows = [
            Line(
                (metric, number(found.value), span(found.interval), f"{found.samples:,}"),
                "; ".join([*(each.sentence for each in found.caveats if each.in_row), *found.missing.words]),
                Tone.BAD if found.missing.failed else Tone.PLAIN,
            )
            for metric, found in self.estimates.items()
        ]
        return Part("", (), ("metric", "mean", f"{level} interval", "scored"), tuple(rows))

    def cautions(self) -> list[str]:
        """Return what a reader must not miss, each with its metrics."""
        shown: list[str] = []
        for code, own in grouped((each.code, each) for each in self.caveats if each.level is Level.LEADS).items():
            texts = grouped((each.sentence, each.about) for each in own)
            for text, about in [*texts.items()][: None if code in _EACH else 1]:
                more = len(own) - 1 if about[0] and code not in _EACH else 0
                named = f"{about[0]} (and {count(more, 'more metric')})" if more else ", ".join(about)
                shown.append(f"{named}: {text}." if named else f"{text[:1].upper()}{text[1:]}.")
        return shown


# -- the first sentences -------------------------------------------------------------------------------


def lead(run: Run, faults: Faults, corrected: Collection[str] = ()) -> list[str]:
    """Return the first sentences on a run: how many samples have each fault, and who judged; otherwise its title.

    `corrected`: metrics whose means human labels correct.
    """
    if not faults:
        return [title_text(run, corrected)]
    if faults.checked:
        return [fault_sentence(faults)]
    counted = "and set the level of these counts" if faults.by_levels else "not these counts"
    labels = f"Human labels correct {', '.join(corrected)}, {counted}."
    if counts := embedded_counts(run, faults):
        return [*(f"{', '.join(parts)}." for parts in counts), *([labels] if corrected else [])]
    judge = judge_name(run)
    by = f"By the {judge} judge" if judge == EMBEDDED else f"By {judge}"
    return [fault_sentence(faults), f"{by}. {labels}" if corrected else f"{by}, not checked on this data."]


def title_text(run: Run, corrected: Collection[str] = ()) -> str:
    """Return the title of a run: data, number of samples and judge; `corrected`: as in `lead`."""
    manifest = run.manifest
    judge = judge_name(run)
    by = f"judged by {judge}" if manifest.judges else judge
    if manifest.origin:
        by = f"scores of {manifest.origin}"
    elif not corrected and any(asks_judge(text) for text in manifest.metrics):
        by = f"{BY_JUDGE} ({judge})"
    return f"{manifest.data}: {count(manifest.samples, 'sample')}, {by}"


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


IN_WORDS: Final = "In words"
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
    if not faults or faults.checked or judge_name(run) != EMBEDDED or faults.by_levels:
        return []
    sentence = fault_sentence(faults)
    things, _, rest = sentence.removesuffix(".").partition(": ")
    right = f"{round(10 * embedded_right())} of 10 of its verdicts hold"
    answers = [f"{amount:,} {words}" for key, words in _ANSWERS.items() if (amount := faults.answers.get(key, 0))]
    found, missing = (faults.retrieved.get(each, 0) for each in (True, False))
    gold = f"Gold passage retrieved for {found:,} of {count(found + missing, 'question')}"
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


# -- JSON ----------------------------------------------------------------------------------------------

_RUN: Final = (
    "run=run.path complete=run.complete stopped=run.usage.stopped raise_to=run.usage.raise_to data=run.manifest.data "
    "origin=run.manifest.origin cluster=run.manifest.cluster samples=run.manifest.samples "
    "skipped_records=run.manifest.skipped left_out=run.manifest.left_out notes=run.manifest.notes"
)
_USAGE: Final = (
    "requests cached input_tokens output_tokens cached_tokens cost_usd estimated_usd unanswered unanswered_usd seconds "
    "adaptations"
)


def run_record(view: RunView) -> dict[str, Any]:  # Any: JSON
    """Return the run as a JSON-able object; `cost_usd` is None if unknown, and 0.0 only if the run was free.

    `estimated_usd` is the part of the cost that no server reported. `unanswered` counts requests without a usable
    reply, and `unanswered_usd` is what their replies may have cost in addition.

    `stopped`: the limit, interruption or error that ended the last command, as a sentence; None if nothing did.
    `raise_to`: the limit that was reached, with a value that probably suffices.
    """
    run, faults, estimates, own = view.run, view.faults, view.estimates, [*of_run(view.run)]
    noise = {each.about: each.facts for each in own if each.code == "noise"}
    judged = any(asks_judge(metric) for metric in run.metrics)
    shares = {key: picked(faults.share(key), ESTIMATE) for key in faults.corrected}
    answers = {key.value: faults.answers[key] for key in _ANSWERS if key in faults.answers}
    gold = {"questions": sum(faults.retrieved.values()), "retrieved": faults.retrieved.get(True, 0)}
    found = {"lead": lead(run, faults, view.corrected), "faults": faults.counts, "faults_checked": faults.checked}
    return {
        **picked(view, _RUN),
        "judge": judge_name(run),
        "agreement": agreement(run),
        "skipped": len(run.manifest.skipped),
        "by_judge_alone": judged and not view.corrected,
        "metrics": {
            each.metric: mean_record(each, estimates[each.metric], view.corrections.get(each.metric))
            for each in view.aggregates
        },
        **({**found, "answers": answers, "gold": gold} if faults else {}),
        **({"fault_shares": shares} if shares else {}),
        **({"judge_noise": noise} if noise else {}),
        **({"measures": {name: each.record() for name, each in view.measures.items()}} if view.measures else {}),
        **({"wordings": dict(run.manifest.wordings)} if run.manifest.wordings else {}),
        "unread": next((each.facts for each in own if each.code == "unread"), dict[str, Any]()),
        "caveats": [picked(each, CAVEAT) for each in own if each.level is not Level.INFORMS],
        **picked(run.usage, _USAGE),
    }
