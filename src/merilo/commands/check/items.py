"""The items of a check: what is asked about each, the human label with the judge's, and the agreement of the two.

An item is a trial question of a kind or a labelled record, whose questions are those that merilo's metrics ask. Each is
a sample of one run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.data.labels import Labelled, Task
from merilo.data.sample import Sample, with_identified_language
from merilo.data.sentences import sentences, unnumbered
from merilo.data.short_answers import stated, taken_apart
from merilo.judging.ask import Plan, ask_each
from merilo.judging.kinds.contexts import RelevanceVerdict
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import Verdict, is_positive, probability_of
from merilo.metrics.base import Card, Evidence, EvidenceTarget, Failed, Kinds, MetricDefaults, Outcome, Score, Undefined
from merilo.metrics.steps import is_blank
from merilo.results.records import grouped
from merilo.stats.agreement_intervals import Agreement, agreement, mean_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from merilo.judging.questions import Question
    from merilo.stats.resampling import Measurement, Resampling

    Asked = tuple[Question[Any], ...]

TRIAL: Final = "trial"
KIND: Final[Mapping[Task, type[Question[Any]]]] = {Task(each): kind for kind in KINDS.values() for each in kind.tasks}
"""Task → the kind of question that is asked for it."""
_WITH_QUERY: Final = frozenset({Task.CHUNK_RELEVANCE, Task.SENTENCE_RELEVANCE, Task.SUFFICIENCY, Task.ANSWER_RELEVANCE})
_WITH_RESPONSE: Final = frozenset({Task.GROUNDEDNESS, Task.NLI, Task.ANSWER_RELEVANCE})
_ABOUT: Final[Mapping[str, EvidenceTarget]] = {
    Task.CHUNK_RELEVANCE: EvidenceTarget.CONTEXT,
    Task.SENTENCE_RELEVANCE: EvidenceTarget.TEXT,
    Task.SUFFICIENCY: EvidenceTarget.TEXT,
}
"""The part of a record that a verdict refers to; for other tasks a statement."""


# -- what is asked ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckedVerdicts(MetricDefaults):
    """The verdicts on one item of a check, as evidence; the value is the fraction of them that are positive.

    It exists only for its verdicts: it does not measure a RAG system and is in no registry.
    """

    name: ClassVar[str] = "judge_check"
    version: ClassVar[int] = 1
    card: ClassVar[Card] = Card(summary="Verdicts of a judge on the items of a check.")
    needs = frozenset[str]()

    kinds: str = "+".join(KINDS)
    """The kinds of question among the items, joined by `+`."""

    @property
    def asks(self) -> Kinds:
        """The kinds of question."""
        return Kinds(KINDS[each] for each in self.kinds.split("+"))

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        questions = questions_of(sample)
        if not questions:
            return Undefined("a text to be judged is blank")
        verdicts = yield from ask_each(questions)
        if TRIAL in sample.metadata:
            return Score(1.0, evidence=(Evidence(EvidenceTarget.TEXT, 0, verdicts[0]),))
        about = _ABOUT.get(str(sample.metadata.get("task")), EvidenceTarget.STATEMENT)
        evidence = tuple(
            Evidence(about, index, verdict, question.subject or "")
            for index, (question, verdict) in enumerate(zip(questions, verdicts, strict=True))
        )
        return Score(sum(map(is_positive, verdicts)) / len(verdicts), evidence=evidence)


def questions_of(sample: Sample) -> Asked:
    """Return the questions about an item; empty if a text is blank, or for a sample of another origin."""
    kind, task = sample.metadata.get(TRIAL), sample.metadata.get("task")
    if kind is not None:
        first, second = KINDS[str(kind)].trial()
        return (first, second) if sample.metadata.get("pair") else (first,)
    return () if task is None else label_questions(Task(str(task)), sample)


def trial_sample(kind: str, *, pair: bool) -> Sample:
    """Return the trial question of a kind as a sample; `pair`: two questions that are judged together."""
    return Sample(f"{TRIAL}/{kind}", metadata={TRIAL: kind, "pair": pair})


def label_id(record: Labelled) -> str:
    """Return `TASK/ID`, as ids are unique only within a task."""
    return f"{record.task.value}/{record.id}"


def label_sample(record: Labelled) -> Sample:
    """Return the texts of a record as a sample, without its label.

    Each labelled sentence becomes a separate context, so that it stays as annotators saw it.
    """
    sample = Sample(
        label_id(record),
        user_input=record.query if record.query or record.task in _WITH_QUERY else None,
        retrieved_contexts=record.texts or None,
        response=record.response if record.task in _WITH_RESPONSE else None,
        language=record.language,
        metadata={"task": record.task.value},
    )
    return with_identified_language(sample)


def label_questions(task: Task, sample: Sample) -> Asked:
    """Return the questions about a labelled record; empty if a text is blank."""
    user_input, language = sample.user_input or "", sample.resolved_language
    texts = tuple(context.text for context in sample.retrieved_contexts or ())
    asked: list[tuple[tuple[str, ...], str]] = []  # the texts and the statement of each question
    if task in _WITH_RESPONSE:
        about = () if task is Task.ANSWER_RELEVANCE else texts
        asked = [(about, each) for each in _statements(task, sample) if not is_blank(each)]
    elif task is Task.CHUNK_RELEVANCE and not is_blank(user_input):
        asked = [(context.sentences, "") for context in sample.contexts if not is_blank(context)]
    elif not is_blank(user_input) and not all(map(is_blank, texts)):
        asked = [(texts, "")]
    return tuple(
        KIND[task].of_texts(about, user_input=user_input, statement=statement, language=language)
        for about, statement in asked
    )


def _statements(task: Task, sample: Sample) -> tuple[str, ...]:
    """Return the statements of a response: its sentences, or one for a short answer with its question."""
    response, language = sample.response or "", sample.resolved_language
    if task is Task.ANSWER_RELEVANCE:
        return sentences(response, sample.language)
    if task is Task.NLI:
        if taken_apart(response) is not None:  # it is one statement in paragraphs, not a question with its answer
            response = "\n".join(line for line in response.split("\n") if line.strip())
        return (response,)
    whole = stated(response, sample.user_input, language)
    return (whole,) if whole is not None else unnumbered(sentences(response, sample.language), language)


# -- human labels and the judge's ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """One human label and the judge's verdict on the same texts."""

    record: Labelled
    cluster: int
    people: float
    """The grade of a context if it has one, otherwise 1.0 for yes and 0.0 for no."""
    judge: float | None = None
    """The judge's label on the same scale; None if there is no verdict."""
    probability: float | None = None
    """The judge's probability of yes (for contexts: of grade 1 or 2); None if it gives none."""
    failed: bool = False
    """True if a question got no verdict. Without a verdict and a failure, a text is blank."""


def items_of(records: Sequence[Labelled], outcomes: Mapping[str, Outcome]) -> list[Item]:
    """Return the items of the records of one task, in order, with their outcomes (by record id).

    A record of labelled sentences has one item per sentence. A record without an outcome was not asked about and has no
    item.
    """
    found: list[Item] = []
    for record, cluster in zip(records, clusters_of(records), strict=True):
        outcome = outcomes.get(record.id)
        if outcome is None:
            continue
        by_sentence = record.task is Task.SENTENCE_RELEVANCE
        people = record.sentence_labels if by_sentence else (record.yes if record.grade is None else record.grade,)
        for place, label in enumerate(people):
            judge, probability = _label_of(record.task, outcome, place)
            found.append(Item(record, cluster, float(label), judge, probability, isinstance(outcome, Failed)))
    return found


def _label_of(task: Task, outcome: Outcome, place: int) -> tuple[float | None, float | None]:
    """Return the judge's label of a record, or of its sentence at `place`, and the probability of yes.

    A response is supported if every statement is, with the mean of their probabilities (design/judges.md). It answers
    if one statement does, with the highest probability.
    """
    if not isinstance(outcome, Score):
        return None, None
    verdicts = [piece.verdict for piece in outcome.evidence]
    first = verdicts[0]
    if task is Task.SENTENCE_RELEVANCE:
        return float(isinstance(first, RelevanceVerdict) and place in first.evidence), None
    if task is Task.CHUNK_RELEVANCE:
        return float(first.grade if isinstance(first, RelevanceVerdict) else 0), probability_of(first)
    chances = _probabilities(verdicts)
    if task is Task.ANSWER_RELEVANCE:
        return float(any(map(is_positive, verdicts))), max(chances, default=None)
    return float(all(map(is_positive, verdicts))), sum(chances) / len(chances) if chances else None


def _probabilities(verdicts: Sequence[Verdict]) -> list[float]:
    """Return the probabilities of all verdicts; empty if one verdict has none."""
    found = [chance for verdict in verdicts if (chance := probability_of(verdict)) is not None]
    return found if len(found) == len(verdicts) else []


def clusters_of(records: Iterable[Labelled]) -> list[int]:
    """Return the cluster number of each record.

    Records of one source that share a text are in one cluster, also through other records (connected components).
    """
    # Union-find: `parents` holds the trees, `first` the first record with each shared text.
    parents: list[int] = []
    first: dict[tuple[str, str], int] = {}

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    for place, record in enumerate(records):
        parents.append(place)
        for mark in record.same:
            parents[root(place)] = root(first.setdefault((record.source, mark), place))
    return [root(place) for place in range(len(parents))]


# -- agreement ----------------------------------------------------------------------------------------

MIN_OF_EACH: Final = 30
"""The number of yes and of no labels that a source needs to count in the mean over sources."""
SEEN: Final = "(seen)"
"""Marks a source on which the judge's model was trained."""


@dataclass(frozen=True, slots=True)
class PositiveRule:
    """One way to read the labels of a task as yes and no."""

    name: str
    task: Task
    least: float = 1.0
    """The lowest label, of annotators or the judge, that counts as yes."""
    among: float = 0.0
    """The lowest human label of the items in this reading; others are left out."""

    def holds(self, item: Item) -> bool:
        """Return True if the item belongs to this reading."""
        if self.task is Task.CHUNK_RELEVANCE and self.least > 1 and item.record.grade is None:
            return False
        return item.people >= self.among

    def rank(self, item: Item) -> float | None:
        """Return the value by which AUROC ranks: the probability.

        For grade 2 as yes it is the grade, with ties broken by the probability of relevance.
        """
        if item.probability is None or self.least <= 1:
            return item.probability
        return 2 * (item.judge or 0.0) + item.probability


READINGS: Final = (
    PositiveRule("chunk_relevance", Task.CHUNK_RELEVANCE, least=2.0, among=1.0),
    PositiveRule("chunk_relevance>=1", Task.CHUNK_RELEVANCE),
    *(PositiveRule(task.value, task) for task in Task if task is not Task.CHUNK_RELEVANCE),
)
"""The readings of human labels. Grades of contexts have two: 2 against 1, and 1 or 2 against 0."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Agreement of a judge with human labels on one set of items."""

    agreement: Agreement
    """The agreement over the items with a verdict."""
    without: int
    """Number of items without a verdict."""
    failed: int
    """Number of items whose question failed."""
    seen: bool
    """True if the judge's model was trained on these items' source."""

    @property
    def agree(self) -> int:
        """Number of labels on which the judge agrees with people."""
        counts = self.agreement.confusion
        return counts[0][0] + counts[1][1]

    @property
    def counts(self) -> bool:
        """True if they count in the mean over sources: enough yes and no labels, of a source that was not seen."""
        yes = self.agreement.yes
        return not self.seen and min(yes, self.agreement.items - yes) >= MIN_OF_EACH


@dataclass(frozen=True, slots=True)
class TaskTable:
    """One reading of one task. Measures are means over the sources that count; over all labels if none does."""

    name: str
    """The task, or one reading of its labels."""
    task: Task
    kappa: Measurement
    """Agreement beyond chance."""
    balanced_accuracy: Measurement
    """The mean of the rates at which human yes and human no are found."""
    auroc: Measurement
    pooled: Figures
    """Figures over all labels, except those of sources that the model has seen."""
    sources: Mapping[str, Figures]
    """Figures by source. If only some items of a source are seen, these are listed as `SOURCE (seen)`."""

    @property
    def labels(self) -> int:
        """Number of labels with a verdict."""
        return self.pooled.agreement.items

    @property
    def agree(self) -> int:
        """Number of labels on which the judge agrees with people."""
        return self.pooled.agree


def table_of(
    reading: PositiveRule,
    items: Mapping[str, Sequence[Item]],
    resampling: Resampling,
    trained_on: Collection[str] = (),
) -> TaskTable | None:
    """Return the table of one reading of the items by task; None if no item belongs to it.

    `trained_on`: the data sets that the judge's model has seen. Their items have separate figures.
    """
    names = {_comparable(name) for name in trained_on}
    own = [item for item in items.get(reading.task.value, ()) if reading.holds(item)]
    groups = grouped(((item.record.source, _is_seen(item, names)), item) for item in own)
    if not groups:
        return None
    sources: dict[str, Figures] = {}
    for (name, seen), part in groups.items():
        key = f"{name} {SEEN}" if seen and (name, False) in groups else name
        sources[key] = _figures(reading, part, resampling, seen=seen)
    pooled = _figures(reading, [item for item in own if not _is_seen(item, names)], resampling)
    counted = [each.agreement for each in sources.values() if each.counts]

    def measure(name: str) -> Measurement:
        found: list[Measurement] = [getattr(each, name) for each in counted or [pooled.agreement]]
        return mean_of([each for each in found if each.value is not None]) if counted else found[0]

    return TaskTable(
        name=reading.name,
        task=reading.task,
        kappa=measure("kappa"),
        balanced_accuracy=measure("balanced_accuracy"),
        auroc=measure("auroc"),
        pooled=pooled,
        sources=dict(sorted(sources.items())),
    )


def _comparable(name: str) -> str:
    """Return the name of a data set without case and punctuation, so that `MS MARCO` equals `ms-marco`."""
    return "".join(filter(str.isalnum, name.casefold()))


def _is_seen(item: Item, names: Collection[str]) -> bool:
    record = item.record
    return any(_comparable(name) in names for name in (record.source, record.origin) if name is not None)


def _figures(reading: PositiveRule, items: Sequence[Item], resampling: Resampling, *, seen: bool = False) -> Figures:
    judged = [item for item in items if item.judge is not None]
    found = agreement(
        [item.people >= reading.least for item in judged],
        [(item.judge or 0.0) >= reading.least for item in judged],
        scores=[reading.rank(item) for item in judged],
        clusters=[(item.record.source, item.cluster) for item in judged],
        resampling=resampling,
    )
    return Figures(found, len(items) - len(judged), sum(item.failed for item in items), seen)
