"""The fault of each sample: what its contexts hold, against what its response does with them.

If the run has the metric `answering`, its category is the fault. Otherwise the verdicts of context_sufficiency and
faithfulness give the same table. A run with one of these two metrics has one half of the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import nsmallest
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.metrics.answering import Answering, Category
from merilo.metrics.steps import all_retrieved
from merilo.stats.means import MeanEstimate, mean_interval

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from merilo.runs.outcomes import EvidenceRecord, OutcomeRecord
    from merilo.runs.run import Run, SampleResult

DECLINES: Final = "the response declines to answer"
"""The beginning of the reason why a metric of the response is undefined if the response declines."""
SUFFICIENCY: Final = "context_sufficiency"
FAITHFULNESS: Final = "faithfulness"
ID_RECALL: Final = "id_recall"
ANSWERED: Final = ("answer_relevancy",)
"""Other metrics that ask whether the response declines."""
JUDGED: Final = frozenset({Answering.name, SUFFICIENCY, FAITHFULNESS, *ANSWERED})
"""Names of the metrics that ask a judge and whose whole records `fault_of` reads."""
CANNOT_TELL: Final = "cannot tell"


class Held(StrEnum):
    """What the contexts hold."""

    ENOUGH = "enough"
    SHORT = "short"
    UNKNOWN = "unknown"


class Answer(StrEnum):
    """What the response does."""

    SUPPORTED = "supported"
    STRAYED = "strayed"
    DECLINED = "declined"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, or a state without a fault."""

    key: str
    """The name in JSON and in Python."""
    held: Held
    answer: Answer
    tone: str
    """`bad`, `warn`, `good` or `none`: the colour."""
    name: str
    """The name on screens."""
    cause: str
    """A sentence on what the contexts hold and what the response does."""
    look: str = ""
    """The component to look at first; empty if there is no fault."""

    @property
    def likely(self) -> bool:
        """True if it counts as a likely fault."""
        return self.tone in {"bad", "warn"}

    @property
    def glyph(self) -> str:
        """The character that repeats the colour."""
        return {"bad": "\u2717", "warn": "!", "good": "\u2713"}.get(self.tone, "?")


_TABLE: Final = """
invented | short | strayed | bad | Invented | retriever, then generator
    The contexts do not hold the answer, and the response claims what they do not support.
wrong | enough | supported | bad | Wrong | generator
    The contexts hold the answer, but the response does not agree with the reference.
beyond_evidence | enough | strayed | bad | Beyond the evidence | generator
    The contexts hold the answer, but the response also claims what they do not support.
not_supported | unknown | strayed | bad | Not supported | generator
    The contexts do not support all of the response. Whether they hold the answer is not judged.
declined_wrongly | enough | declined | warn | Wrongly declined | generator
    The contexts hold the answer, but the response declines.
evidence_missing | short | supported | warn | Evidence missing | retriever
    The contexts do not hold the answer.
cannot tell | unknown | unknown | none | Cannot tell |
    A verdict failed or is undefined.
declined | unknown | declined | none | Declined |
    The response declines. Whether the contexts hold the answer is not judged.
rightly_declined | short | declined | good | Rightly declined |
    There is no evidence or no answer, and the response declines.
evidence_found | enough | unknown | good | Evidence found |
    The contexts hold the answer.
supported | unknown | supported | good | Supported |
    The contexts support the response. Whether they hold the answer is not judged.
right | enough | supported | good | Right |
    The contexts hold the answer, and every statement of the response is supported.
"""
"""Key, contexts, response, colour, name, component to look at first; then the cause."""


_ROWS: Final = [[*map(str.strip, row.split("|"))] for row in _TABLE.strip().splitlines()]
FAULTS: Final = tuple(
    [
        Fault(key, Held(held), Answer(answer), tone, name, cause, look)
        for (key, held, answer, tone, name, look), (cause,) in zip(_ROWS[::2], _ROWS[1::2], strict=True)
    ]
)
"""All faults, in the order in which samples are listed: the worst first."""
PLACES: Final = {fault.key: place for place, fault in enumerate(FAULTS)}
"""Key → position in `FAULTS`."""
_CELLS: Final = {
    **{(fault.held, fault.answer): fault.key for fault in FAULTS if fault.key != Category.WRONG},
    (Held.SHORT, Answer.UNKNOWN): Category.EVIDENCE_MISSING.value,
}
"""Contexts and response → key, without a reference. A run without responses has the column `UNKNOWN`."""


def category_source(metric: str) -> str:
    """Return the metric that has the category of which a metric is the indicator: `answering` for `answering.wrong`.

    Any other metric is returned unchanged.
    """
    name, opened, parameters = metric.partition("(")
    base, dot, category = name.partition(".")
    return f"{base}{opened}{parameters}" if base == Answering.name and dot and category in PLACES else metric


def as_category(record: OutcomeRecord, metric: str) -> OutcomeRecord:
    """Return a record of `answering` as that of one of its categories, such as `answering.wrong`."""
    if metric == record["metric"]:
        return record
    category = metric.partition("(")[0].partition(".")[2]
    found: OutcomeRecord = {**record, "metric": metric, "value": float(_category(record) == category)}
    found.pop("draws", None)  # the counts are those of the first draw
    return found


def judged_metrics(metrics: Iterable[str]) -> list[str]:
    """Return those of these metrics (full texts) whose records `fault_of` reads."""
    return [metric for metric in metrics if metric.partition("(")[0] in JUDGED]


def has_faults(metrics: Iterable[str]) -> bool:
    """Return True if a run with these metrics has a fault table."""
    names = {metric.partition("(")[0] for metric in metrics}
    return bool(names & {Answering.name, SUFFICIENCY, FAITHFULNESS})


class Judgement(NamedTuple):
    """The outcomes of a sample in a few words."""

    fault: str
    """The key of its fault."""
    answer: Answer
    retrieved: bool | None
    """True if a passage that is known to hold the answer is retrieved; None if none is known."""
    order: float
    """Of samples with one fault, the lowest is read first: the mean score, or the probability of an open one."""


def judgement_of(records: Mapping[str, OutcomeRecord]) -> Judgement:
    """Return the judgement of a sample with these outcomes, by metric name without parameters."""
    fault = fault_of(records)
    found = _id_counts(records).get("found")
    judged = [record for name, record in records.items() if name in JUDGED]
    if fault == CANNOT_TELL:
        order = min((p for each in judged if (p := each.get("probability")) is not None), default=1.0)
    else:
        values = [value for each in judged if (value := each.get("value")) is not None]
        order = sum(values) / len(values) if values else 0.0
    return Judgement(fault, _answer(records), None if found is None else found > 0, order)


def fault_of(records: Mapping[str, OutcomeRecord]) -> str:
    """Return the key of the fault of a sample with these outcomes, by metric name without parameters."""
    joint = records.get(Answering.name)
    if joint is not None and joint["outcome"] == "score":
        return _category(joint)
    held, answer = _held(records), _answer(records)
    unknown = (
        joint is not None
        or (SUFFICIENCY in records and held is Held.UNKNOWN)
        or (FAITHFULNESS in records and answer is Answer.UNKNOWN)
    )
    decided = held is Held.SHORT or answer is Answer.STRAYED
    return CANNOT_TELL if unknown and not decided else _CELLS[held, answer]


def _category(record: OutcomeRecord) -> str:
    """Return the category of a record of `answering`."""
    counts = record.get("counts", {}) if record["outcome"] == "score" else {}
    return next((name for name, count in counts.items() if count and name in PLACES), CANNOT_TELL)


def _id_counts(records: Mapping[str, OutcomeRecord]) -> Mapping[str, int | None]:
    return records[ID_RECALL].get("counts", {}) if ID_RECALL in records else {}


def _labels(record: OutcomeRecord | None, kind: str) -> list[str | None]:
    """Return the labels of the verdicts of a kind; those of an undefined metric are the ones that were given."""
    return [piece["verdict"].get("label") for piece in _pieces(record, kind)]


def _pieces(record: OutcomeRecord | None, kind: str) -> list[EvidenceRecord]:
    return [] if record is None else [piece for piece in record.get("evidence", ()) if piece["kind"] == kind]


def _held(records: Mapping[str, OutcomeRecord]) -> Held:
    """Return what ids show of the contexts, otherwise the verdict on them."""
    enough = all_retrieved(_id_counts(records))
    labels = _labels(records.get(SUFFICIENCY, records.get(Answering.name)), "sufficiency")
    if enough is None and not labels:
        return Held.UNKNOWN
    return Held.ENOUGH if enough or (enough is None and labels[0] == "sufficient") else Held.SHORT


def _answer(records: Mapping[str, OutcomeRecord]) -> Answer:
    record = records.get(FAITHFULNESS, records.get(Answering.name))
    asking = [each for name in (FAITHFULNESS, *ANSWERED) if (each := records.get(name)) is not None]
    if any(each["outcome"] == "undefined" and each.get("reason", "").startswith(DECLINES) for each in asking):
        return Answer.DECLINED
    if record is None:
        return Answer.UNKNOWN
    labels = _labels(record, "support")
    if any(label != "supported" for label in labels):
        return Answer.STRAYED
    # A statement that the judge could not judge is not in the evidence, and the metric is then undefined.
    return Answer.SUPPORTED if labels and record["outcome"] == "score" else Answer.UNKNOWN


def judgements(run: Run) -> Iterator[tuple[str, Judgement]]:
    """Yield the id and the judgement of each sample, in dataset order. Raises RunError for damaged outcomes.

    Of several metrics with one name, the first counts. Empty if the run has no fault table.
    """
    read = [metric for metric in run.manifest.metrics if metric.partition("(")[0] in JUDGED | {ID_RECALL}]
    records = run.brief_records(read, whole=read) if has_faults(read) else ()
    for sample, group in groupby(records, key=lambda record: record["sample"]):
        yield sample, judgement_of(_named(list(group)))


def _named(records: Sequence[OutcomeRecord]) -> dict[str, OutcomeRecord]:
    return {record["metric"].partition("(")[0]: record for record in reversed(records)}


def sample_fault(found: SampleResult) -> str | None:
    """Return the key of the fault of a sample; None if no half of the table was judged."""
    records = found.records
    return fault_of(_named([*records.values()])) if has_faults(records) else None


def unsupported(found: SampleResult) -> list[str]:
    """Return the statements of the response that the contexts do not support."""
    named = _named([*found.records.values()])
    record = named.get(FAITHFULNESS, named.get(Answering.name))
    labelled = zip(_pieces(record, "support"), _labels(record, "support"), strict=True)
    return [piece.get("text", "") for piece, label in labelled if label != "supported"]


@dataclass(frozen=True, slots=True, eq=False)
class Faults(Mapping[str, int]):
    """Number of samples with each fault, the most frequent first; empty if the run judged no half of the table."""

    samples: Mapping[str, str]
    """Sample → the key of its fault, in dataset order."""
    clusters: Sequence[Hashable] | None = None
    """The name of each sample's cluster; None if samples are not clustered."""
    corrected: Mapping[str, MeanEstimate] = field(default_factory=dict[str, "MeanEstimate"])
    """Fault → its share, corrected by human labels; empty if labels do not correct it."""
    orders: Mapping[str, float] = field(default_factory=dict[str, float])
    """Sample → its `Judgement.order`."""
    answers: Mapping[Answer, int] = field(default_factory=dict[Answer, int])
    """Number of samples by what the response does; empty if the run does not judge responses."""
    retrieved: Mapping[bool, int] = field(default_factory=dict[bool, int])
    """Number of samples with and without a retrieved passage that is known to hold the answer."""
    by_levels: bool = False
    """True if the verdicts are by levels that human labels set."""

    @property
    def checked(self) -> bool:
        """True if human labels correct the shares. Otherwise they are verdicts of a judge that no one has checked."""
        return bool(self.corrected)

    @property
    def counts(self) -> dict[str, int]:
        """The counts, by the judge even if the shares are corrected."""
        found = Counter(self.samples.values())
        return {key: found[key] for key in sorted(found, key=lambda key: (-found[key], PLACES[key]))}

    def among(self, samples: Iterable[str]) -> Faults:
        """Return the faults of some samples, by the judge alone; samples are then not clustered."""
        return Faults({sample: self.samples[sample] for sample in samples if sample in self.samples})

    def worst(self, count: int) -> list[tuple[str, str]]:
        """Return at most `count` samples to read first: id and the key of the fault.

        Those with a likely fault, the worst first, then those that the judge leaves open, the lowest probability first.
        """
        read = [
            (PLACES[key], self.orders.get(sample, 0.0), place, sample)
            for place, (sample, key) in enumerate(self.samples.items())
            if FAULTS[PLACES[key]].likely or (key == CANNOT_TELL and self.orders.get(sample, 1.0) < 1)
        ]
        return [(sample, FAULTS[fault].key) for fault, _, _, sample in nsmallest(count, read)]

    @property
    def likely(self) -> int:
        """Number of samples with a likely fault."""
        return sum(amount for key, amount in self.counts.items() if FAULTS[PLACES[key]].likely)

    def __getitem__(self, key: str) -> int:
        if key not in PLACES:
            raise KeyError(f"No fault {key!r}; there are {', '.join(PLACES)}.")
        return self.counts.get(key, 0)

    def __iter__(self) -> Iterator[str]:
        return iter(self.counts)

    def __repr__(self) -> str:
        return f"{self.counts}{' (shares corrected by human labels)' * self.checked}"

    def __len__(self) -> int:
        return len(self.counts)

    def share(self, key: str) -> MeanEstimate:
        """Return the share of samples with this fault, with its 95 % interval, of those that have a verdict.

        The share of "cannot tell" is of all samples. Corrected by human labels if `checked`. Raises KeyError for
        another fault.
        """
        _ = self[key]
        if key in self.corrected:
            return self.corrected[key]
        faults = list(self.samples.values())
        known = [place for place, fault in enumerate(faults) if CANNOT_TELL not in {fault} - {key}]
        clusters = None if self.clusters is None else [self.clusters[place] for place in known]
        return mean_interval([float(faults[place] == key) for place in known], (0.0, 1.0), clusters=clusters)
