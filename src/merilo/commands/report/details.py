"""The content of a report, and one sample of it as JSON-able data: statements, contexts, reasons and replies."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from merilo.data.history import shown_history
from merilo.data.sentences import judged_sentences
from merilo.data.short_answers import taken_apart
from merilo.judging.kinds.contexts import RelevanceVerdict, SupportVerdict
from merilo.metrics.base import Failed, Outcome, Score, Undefined
from merilo.rendering.explain import AVERAGED, asked_of, by_person, reason_of, remark_kind, said
from merilo.rendering.own_words import explained
from merilo.rendering.page import cut
from merilo.results.means import counts_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.rendering.doc import Section
    from merilo.rendering.slices import Slices
    from merilo.results.faults import Faults
    from merilo.results.sample_detail import ContextView, HumanVerdict, Remark, SampleDetail, StatementView
    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run
    from merilo.runs.run_metrics import Scale

_PREFERRED: Final = "faithfulness"
_METADATA_CHARS: Final = 400


class Passages:
    """The contexts of all samples, each stored once."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, tuple[str, ...]], int] = {}

    def place(self, name: str, sentences: tuple[str, ...]) -> int:
        """Return the position of a context, which is added if it is new."""
        return self._places.setdefault((name, sentences), len(self._places))

    def listed(self) -> tuple[tuple[str, Sequence[str]], ...]:
        """Return all contexts in the order of their positions."""
        return tuple(self._places)


def detail_of(case: SampleDetail, passages: Passages, *, replies: bool) -> dict[str, Any]:  # Any: JSON
    """Return the details of a sample; `replies`: with the judge's questions and raw replies."""
    sample = case.result.sample
    groups = sorted(case.statements.items(), key=lambda item: _PREFERRED not in item[0])
    return {
        **({} if sample.history is None else {"h": shown_history(sample.history)}),
        "q": sample.user_input,
        "r": sample.response,
        "ref": sample.reference,
        "meta": [[name, _metadata(value)] for name, value in sample.metadata.items()],
        "whole": [_remark(each) for each in case.whole],
        "people": _people(case.people_on_whole),
        "st": [
            {"m": ", ".join(metrics), "st": [_statement(case, each) for each in views]} for metrics, views in groups
        ],
        "cx": [_context(view, passages) for view in case.contexts],
        "why": _without_score(case),
        "n": {
            metric: words
            for metric, outcome in case.result.outcomes.items()
            if (words := _basis(metric, outcome, sample))
        },
        "raw": asked_of(case) if replies else None,
    }


def _metadata(value: object) -> str:
    """Return a value of the metadata as text, truncated if it is long."""
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _METADATA_CHARS)


def _statement(case: SampleDetail, view: StatementView) -> dict[str, Any]:  # Any: JSON
    by = _by_contexts(view.said)
    first = next((each.answer for each in view.said if isinstance(each.answer, SupportVerdict)), None)
    verdict = first if by is None else view.said[by].answer
    apart = taken_apart(view.text)
    return {
        "t": apart[1] if apart is not None and apart[0] == (case.result.sample.user_input or "").strip() else view.text,
        "l": "none" if verdict is None else _label(verdict),
        "said": [[*_remark(each), _label(each.answer)] for each in view.said],
        "by": by,
        "people": _people(view.people),
        "c": _cited(case, verdict) if by is not None and isinstance(verdict, SupportVerdict) else [],
    }


def _by_contexts(said_about: Sequence[Remark]) -> int | None:
    """Return the place of the first verdict of support by the contexts; None if other texts were checked."""
    known = any(each.against for each in said_about)
    places = (
        place
        for place, each in enumerate(said_about)
        if isinstance(each.answer, SupportVerdict) and (not known or "the contexts" in each.against)
    )
    return next(places, None)


def _label(answer: Answer) -> str:
    """Return the label of a verdict of support; empty for any other answer."""
    label = answer.label.value if isinstance(answer, SupportVerdict) else ""
    return "unsupported" if label == "not_stated" else label


def _cited(case: SampleDetail, verdict: SupportVerdict) -> list[list[int]]:
    """Return context and sentence of each cited sentence; a sentence of -1 is the whole context."""
    views = case.contexts
    if verdict.sentences:
        return [
            [at, sentence if sentence < len(views[at].sentences) and _numbered_alike(case, views[at]) else -1]
            for at, sentence in verdict.sentences
            if at < len(views)
        ]
    return [[at, -1] for at in verdict.evidence if at < len(views)]


def _numbered_alike(case: SampleDetail, view: ContextView) -> bool:
    """Return True if the judge numbered the context's sentences as the page does."""
    return judged_sentences(view.context.text, case.result.sample.resolved_language) == view.sentences


def _context(view: ContextView, passages: Passages) -> dict[str, Any]:  # Any: JSON
    grade = next((each.answer.grade for each in view.said if isinstance(each.answer, RelevanceVerdict)), None)
    return {
        "p": passages.place(view.context.id or "", view.sentences),
        "g": grade,
        "e": sorted(view.evidence),
        "said": [_remark(each) for each in view.said],
        "people": _people(view.people),
    }


def _people(people: Sequence[HumanVerdict]) -> list[list[Any]]:  # Any: JSON
    """Return each annotator's verdict in words, and whether the judge's agrees with it."""
    return [[by_person(each), each.agrees] for each in people]


def _remark(remark: Remark) -> list[str]:
    return [remark_kind(remark), said(remark.answer), reason_of(remark.answer)]


def _without_score(case: SampleDetail) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for metric, outcome in case.result.outcomes.items():
        if isinstance(outcome, Undefined):
            found[metric] = ["undefined", outcome.reason]
        elif isinstance(outcome, Failed):
            found[metric] = ["failed", outcome.error.message]
    return found


def _basis(metric: str, outcome: Outcome, sample: Sample) -> str:
    """Return what a score is based on, and its published wording; empty for an outcome that is not a score."""
    if not isinstance(outcome, Score):
        return ""
    averaged = AVERAGED if outcome.averaged else ""
    counts = counts_text(outcome.counts) if outcome.counts else ""
    return "; ".join(filter(None, (averaged, counts, explained(metric, outcome, sample))))


# -- the content of a report ---------------------------------------------------------------------------

Value: TypeAlias = float | Literal[False] | None
"""The value of a metric: a score, None if it is undefined, FAILED if it failed."""
FAILED: Final = False
MOST: Final = 10_000
"""Runs with more samples are shown with their worst samples only."""
WORST: Final = 2_000
"""Number of samples shown of such a run."""


@dataclass(frozen=True, slots=True)
class Caution:
    """A limit of the numbers, shown before them."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Card:
    """One metric of the run."""

    metric: str
    name: str
    """The metric as the page shows it: with a note if it is corrected."""
    aggregate: Aggregate
    scale: Scale
    weak: bool
    bins: tuple[int, ...]
    """Samples in each of ten equal parts of the range; empty for an infinite range."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sample in the table."""

    id: str
    place: int
    """Its position in the data."""
    values: tuple[Value, ...]
    """One per metric."""
    fault: int
    """Position in `FAULTS`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A sample of the page with its texts and details."""

    row: Row
    question: str
    response: str
    contexts: int
    differs: float | None
    """Certainty of the judge's most certain verdict from which an annotator differs; 0 if there is none, and None if
    no annotator judged the sample."""
    detail: Mapping[str, Any]
    """What the page shows of the opened sample (`commands/report/details.py`)."""


@dataclass(frozen=True)
class RunReport:
    """A run with all that its page shows."""

    run: Run
    facts: tuple[str, ...]
    cautions: tuple[Caution, ...]
    cards: tuple[Card, ...]
    faults: Faults
    """The faults of the whole run."""
    components: bool
    """True if the faults are sure enough to name the component to look at first."""
    slices: tuple[Slices, ...]
    """The slices by each field, the field to show first in front."""
    samples: int
    """Number of samples of the run with outcomes."""
    entries: tuple[Entry, ...]
    """The samples shown, the worst first."""
    passages: tuple[tuple[str, Sequence[str]], ...]
    """Id and sentences of each context of these samples, each once."""
    notes: tuple[Section, ...]
    """What the numbers rest on, in groups."""

    @property
    def name(self) -> str:
        """The name of the run: that of its directory."""
        return self.run.path.resolve().name
