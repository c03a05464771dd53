"""Agreement of two judges, on the questions that they have in common.

Two questions are the same if their content, role and draw are equal; the judge does not matter.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from merilo.errors import DataError, RunError, UsageError
from merilo.judging.registry import SPECIAL
from merilo.judging.verdicts import Verdict, probability_of
from merilo.rendering.wording import count
from merilo.results.judged_samples import mark_of
from merilo.runs.clusters import clusters_by_sample
from merilo.runs.run import open_store
from merilo.runs.store_errors import truncated_error
from merilo.stats.agreement_pairs import PairAgreement, pair_agreement

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence
    from pathlib import Path

    from merilo.judging.labels import LabelForm
    from merilo.runs.run import Run
    from merilo.stats.panel import RankAgreement

    Key = Hashable
    """A question: the digest of its content, its role and its draw; or a query and a document."""

GRADE: Final = "grade"
"""The kind of the labels in a file of grades."""
RANKED_BY: Final = "nDCG@10"
"""The metric that ranks systems."""
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class KindAgreement:
    """Two judges on questions of one kind."""

    kind: str
    """The kind, followed by its role unless that is `judge`."""
    labels: tuple[str, ...]
    """The possible labels, in the order of the table's rows and columns; ascending if they are ordered."""
    agreement: PairAgreement
    differ: int
    """Number of questions with different labels."""
    differ_in: int
    """Number of samples with such a question."""
    samples: tuple[str, ...]
    """Up to five of these samples, largest difference first."""


@dataclass(frozen=True, slots=True)
class JudgePair:
    """The agreement of two judges on the same questions; neither is taken as correct."""

    judges: tuple[str, str]
    kinds: tuple[KindAgreement, ...]
    """Sorted by kind."""
    common: int
    """Number of questions that both answered."""
    only_first: int
    """Number of questions asked of the first judge only."""
    only_second: int
    """Number of questions asked of the second judge only."""
    failed: int
    """Number of questions asked of both, with no verdict from one or both."""
    ranks: RankAgreement | None = None
    """Agreement of the rankings of systems; None without systems."""


@dataclass(frozen=True, slots=True)
class GivenLabel:
    """The label of one question by one judge, or by annotators."""

    kind: str
    form: LabelForm
    label: str | None
    """None if the question has no verdict."""
    sample: str
    cluster: str
    cached: bool = False
    probability: float | None = None
    """The judge's probability of yes; None if it gives none."""
    mark: str = ""
    """Identifies the question's text for human labels."""


@dataclass(frozen=True, slots=True)
class Rater:
    """A judge, or the annotators, with their labels by question."""

    name: str
    source: Path
    """The run, or the file of grades."""
    labels: Mapping[Key, GivenLabel]


def raters_of(runs: Sequence[Run], skipped: set[str]) -> list[Rater]:
    """Return the judges of runs; questions are clustered as in the first run.

    The kinds of question without a label are added to `skipped`. Raises UsageError for a run without verdicts, and
    RunError.
    """
    names = [", ".join(dict.fromkeys(_judges(run))) for run in runs]
    shown = [name if names.count(name) == 1 else f"{name} in {run.path}" for name, run in zip(names, runs, strict=True)]
    field = runs[0].manifest.cluster
    return [Rater(name, run.path, _labels_of(run, field, skipped)) for name, run in zip(shown, runs, strict=True)]


def pair_of(one: Rater, other: Rater, ranks: RankAgreement | None = None) -> JudgePair:
    """Return the agreement of two judges. Raises DataError if they answered no common question."""
    both = [(one.labels[key], other.labels[key]) for key in one.labels if key in other.labels]
    answered = [pair for pair in both if None not in (pair[0].label, pair[1].label)]
    if not answered:
        raise DataError(
            f"{one.source} and {other.source} have no answered question in common. Let each judge answer the same "
            "questions: the same metrics over the same data, or grades of the same documents."
        )
    kinds = sorted({pair[0].kind for pair in answered})
    return JudgePair(
        judges=(one.name, other.name),
        kinds=tuple(_of_kind(kind, [pair for pair in answered if pair[0].kind == kind]) for kind in kinds),
        common=len(answered),
        only_first=len(one.labels) - len(both),
        only_second=len(other.labels) - len(both),
        failed=len(both) - len(answered),
        ranks=ranks,
    )


def _judges(run: Run) -> list[str]:
    """Return the names of a run's judges, except models that only measure texts. Raises UsageError for none."""
    found = [str(judge.get("name")) for role, judge in run.manifest.judges.items() if role not in SPECIAL.values()]
    if not found:
        why = f"its scores were imported from {run.manifest.origin}" if run.manifest.origin else "it used no judge"
        raise UsageError(f"{run.path} has no verdicts to compare: {why}.")
    return found


def _labels_of(run: Run, field: str | None, skipped: set[str]) -> dict[Key, GivenLabel]:
    """Return the labels of a run's judge by question; the kinds of question without a label are added to `skipped`."""
    found: dict[Key, GivenLabel] = {}
    with closing(open_store(run)) as store:
        named = {} if field is None else clusters_by_sample(store.sample_records(), field)
        for sample, key in _first_asked(run):
            asked = store.asked(key)
            if asked is None:
                continue
            question, form = asked.question, asked.question.label_form()
            if form is None:
                skipped.add(question.kind)
                continue
            found.setdefault(
                (question.content, question.role, question.draw),
                GivenLabel(
                    kind=form.kind if question.role == "judge" else f"{form.kind} ({question.role})",
                    form=form,
                    label=asked.answer.as_label() if isinstance(asked.answer, Verdict) else None,
                    sample=sample,
                    cluster=named.get(sample, sample),
                    cached=asked.cached,
                    probability=probability_of(asked.answer) if isinstance(asked.answer, Verdict) else None,
                    mark=mark_of(question),
                ),
            )
    return found


def _first_asked(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield each key of the run's trails once, with the first sample that asked it. Raises RunError if damaged."""
    seen: set[str] = set()
    samples: set[str] = set()
    for record in run.records():
        samples.add(record["sample"])
        for key in record.get("trail", ()):
            if key not in seen:
                seen.add(key)
                try:
                    yield record["sample"], bytes.fromhex(key)
                except ValueError:
                    message = f"{run.path} is damaged: an outcome of sample {record['sample']!r} has an invalid key."
                    raise RunError(f"{message} Copy the run again.") from None
    if len(samples) < run.done:
        raise truncated_error(run.path, run.done, len(samples))


def _of_kind(kind: str, pairs: Sequence[tuple[GivenLabel, GivenLabel]]) -> KindAgreement:
    # Questions of one kind may offer different labels, for example in several languages.
    labels = tuple(dict.fromkeys(label for one, _ in pairs for label in one.form.labels))
    place = {label: index for index, label in enumerate(labels)}
    first, second = ([place[pair[judge].label or ""] for pair in pairs] for judge in (0, 1))
    ordered = pairs[0][0].form.ordered
    agreement = pair_agreement(
        first, second, labels=range(len(labels)), ordered=ordered, clusters=[one.cluster for one, _ in pairs]
    )
    apart = [abs(one - other) if ordered else int(one != other) for one, other in zip(first, second, strict=True)]
    farthest = sorted((index for index, each in enumerate(apart) if each), key=lambda index: -apart[index])
    samples = tuple(dict.fromkeys(pairs[index][0].sample for index in farthest))
    return KindAgreement(kind, labels, agreement, len(farthest), len(samples), samples[:_NAMED])


def remarks_on(runs: Sequence[Run], raters: Sequence[Rater]) -> Iterator[str]:
    """Yield notes on the comparison of the judges of runs."""
    for (run, _), (second, rater) in combinations(zip(runs, raters, strict=True), 2):
        if _fingerprints(run) == _fingerprints(second):
            names = f"{run.path} and {second.path} have the judge {', '.join(_judges(run))}"
            yield f"{names}: this is its agreement with itself."
            if copies := sum(each.cached for each in rater.labels.values()):
                yield (
                    f"{count(copies, 'answer')} came from the cache and so agree necessarily. To ask the judge again: "
                    "merilo run --no-cache."
                )
    kinds = sorted({each.form.kind for rater in raters for each in rater.labels.values()})
    if changed := [kind for kind in kinds if len({run.manifest.rubrics.get(kind) for run in runs} - {None}) > 1]:
        yield f"The runs differ not only in the judge but also in the rubrics of {', '.join(changed)}."
    if len({run.manifest.splitter for run in runs}) > 1:
        yield "The runs used different sentence splitters."
    if unfinished := [str(run.path) for run in runs if not run.complete]:
        yield f"Unfinished: {', '.join(unfinished)}."


def _fingerprints(run: Run) -> Mapping[str, object]:
    return {role: each.get("fingerprint") for role, each in run.manifest.judges.items() if role not in SPECIAL.values()}
