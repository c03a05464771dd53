"""Agreement of the judges of several runs, on the questions that they have in common.

Two questions are the same if their content, role and draw are equal; the judge does not matter. Runs of one judge over
several data sets, such as the answers of several systems, are pooled.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from merilo.engine.answer_store import SPECIAL
from merilo.errors import DataError, RunError, UsageError
from merilo.judging.verdicts import Verdict
from merilo.rendering.wording import count
from merilo.runs.clusters import check_clusters, clusters
from merilo.runs.run import open_store, opened
from merilo.runs.store_errors import truncated_error
from merilo.short_repr import short_repr
from merilo.stats.agreement_pairs import PairAgreement, pair_agreement
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.runs.run import Run

    Key = tuple[bytes, str, int]
    """A question: the digest of its content, its role and its draw."""

_NAMED: Final = 5
_TWO: Final = 2


@dataclass(frozen=True, slots=True)
class Rater:
    """One judge with its runs, or one run if all runs have the same judge."""

    name: str
    runs: tuple[Run, ...]


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
    """Two judges compared with each other."""

    first: str
    second: str
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


@dataclass(frozen=True, slots=True)
class JudgesAgreement:
    """The agreement of several judges on the same questions."""

    raters: tuple[Rater, ...]
    pairs: tuple[JudgePair, ...]
    """Every pair of judges."""
    remarks: tuple[str, ...]
    """Notes on the comparison, one sentence each."""
    cluster: str | None
    """The field that questions were clustered by; None for the sample."""

    def __repr__(self) -> str:
        """Return the main facts, shortened."""
        return short_repr(self, raters=self.raters, pairs=self.pairs, remarks=self.remarks, cluster=self.cluster)


@dataclass(frozen=True, slots=True)
class _GivenLabel:
    """One judge's label of one question."""

    kind: str
    labels: tuple[str, ...]
    ordered: bool
    label: str | None
    """None if the question has no verdict."""
    sample: str
    cluster: str
    cached: bool


def judges_agreement(
    runs: Sequence[Run | str | PathLike[str]],
    *,
    cluster: str | None = None,
) -> JudgesAgreement:
    """Measure the agreement of the judges of these runs; neither judge is taken as correct.

    `cluster`: as in `merilo.evaluate`. None: the cluster field of the first run, otherwise the sample. Raises
    UsageError for a run without verdicts, DataError for runs without a common question, and RunError.
    """
    measured = [opened(run) for run in runs]
    _check(measured)
    raters, one_judge = _raters(measured)
    field = measured[0].manifest.cluster if cluster is None else cluster or None
    skipped = [dict[str, int]() for _ in raters]
    answers = [_labels_of(rater, field, counts) for rater, counts in zip(raters, skipped, strict=True)]
    resampling = Resampling()
    pairs = tuple(
        _pair((raters[one], raters[other]), (answers[one], answers[other]), resampling)
        for one, other in combinations(range(len(raters)), 2)
    )
    if not any(pair.common for pair in pairs):
        raise _nothing_common(measured)
    remarks = (*_remarks(raters, one_judge=one_judge, answers=answers), *_skipped_kinds(skipped))
    return JudgesAgreement(tuple(raters), pairs, remarks, field)


def _check(runs: Sequence[Run]) -> None:
    if len(runs) < _TWO:
        raise UsageError(f"Comparing judges needs two or more runs, got {len(runs)}.")
    paths = [run.path.resolve() for run in runs]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise UsageError(f"{twice} is named twice. Name runs of different judges, or separate runs of one judge.")
    for run in runs:
        if not _judges(run):
            why = f"its scores were imported from {run.manifest.origin}" if run.manifest.origin else "it used no judge"
            raise UsageError(f"{run.path} has no verdicts to compare: {why}.")


def _judges(run: Run) -> dict[str, Mapping[str, object]]:
    """Return the judges of a run by role, except embedders and other models that only measure texts."""
    return {role: judge for role, judge in run.manifest.judges.items() if role not in SPECIAL.values()}


def _raters(runs: Sequence[Run]) -> tuple[list[Rater], bool]:
    """Group the runs by judge, in order of first appearance; one group per run if all have the same judge.

    The second value is True if all runs have the same judge.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        marks = {role: judge.get("fingerprint") for role, judge in _judges(run).items()}
        groups.setdefault(json.dumps(marks, sort_keys=True), []).append(run)
    one_judge = len(groups) == 1
    found = [[run] for run in runs] if one_judge else [*groups.values()]
    names = [_judge_name(each[0]) for each in found]
    return [
        Rater(name if names.count(name) == 1 else f"{name} in {each[0].path}", tuple(each))
        for name, each in zip(names, found, strict=True)
    ], one_judge


def _judge_name(run: Run) -> str:
    return ", ".join(dict.fromkeys(str(judge.get("name")) for judge in _judges(run).values()))


def _labels_of(rater: Rater, field: str | None, skipped: dict[str, int]) -> dict[Key, _GivenLabel]:
    """Return the labels of a judge by question, from the first run that contains it.

    Counts questions without a label form in `skipped`, by kind.
    """
    found: dict[Key, _GivenLabel] = {}
    for run in rater.runs:
        store = open_store(run)
        try:
            if field is not None:
                check_clusters(store, field)
            named = {} if field is None else {each.sample: each.cluster for each in clusters(store, field)}
            for sample, key in _first_asked(run):
                asked = store.asked(key)
                if asked is None:
                    continue
                form = asked.question.label_form()
                if form is None:
                    skipped[asked.question.kind] = skipped.get(asked.question.kind, 0) + 1
                    continue
                label = asked.answer.as_label() if isinstance(asked.answer, Verdict) else None
                question = asked.question
                found.setdefault(
                    (question.content, question.role, question.draw),
                    _GivenLabel(
                        kind=form.kind if question.role == "judge" else f"{form.kind} ({question.role})",
                        labels=form.labels,
                        ordered=form.ordered,
                        label=label,
                        sample=sample,
                        cluster=named.get(sample) or sample,
                        cached=asked.cached,
                    ),
                )
        finally:
            store.close()
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


# -- two judges ---------------------------------------------------------------------------------------


def _pair(
    raters: tuple[Rater, Rater],
    answers: tuple[Mapping[Key, _GivenLabel], Mapping[Key, _GivenLabel]],
    resampling: Resampling,
) -> JudgePair:
    first, second = answers
    both = [(first[key], second[key]) for key in first if key in second]
    answered = [(one, other) for one, other in both if one.label is not None and other.label is not None]
    kinds = sorted({one.kind for one, _ in answered})
    return JudgePair(
        first=raters[0].name,
        second=raters[1].name,
        kinds=tuple(_of_kind(kind, [pair for pair in answered if pair[0].kind == kind], resampling) for kind in kinds),
        common=len(answered),
        only_first=len(first) - len(both),
        only_second=len(second) - len(both),
        failed=len(both) - len(answered),
    )


def _of_kind(kind: str, pairs: Sequence[tuple[_GivenLabel, _GivenLabel]], resampling: Resampling) -> KindAgreement:
    labels = _labels([one for one, _ in pairs])
    place = {label: index for index, label in enumerate(labels)}
    first = [place[one.label or ""] for one, _ in pairs]
    second = [place[other.label or ""] for _, other in pairs]
    ordered = pairs[0][0].ordered
    agreement = pair_agreement(
        first,
        second,
        labels=range(len(labels)),
        ordered=ordered,
        clusters=[one.cluster for one, _ in pairs],
        resampling=resampling,
    )
    apart = [abs(one - other) if ordered else int(one != other) for one, other in zip(first, second, strict=True)]
    farthest = sorted((index for index, each in enumerate(apart) if each), key=lambda index: -apart[index])
    samples = tuple(dict.fromkeys(pairs[index][0].sample for index in farthest))
    return KindAgreement(kind, labels, agreement, len(farthest), len(samples), samples[:_NAMED])


def _labels(answers: Sequence[_GivenLabel]) -> tuple[str, ...]:
    """Return the labels of all questions, which may offer different ones (for example in several languages)."""
    return tuple(dict.fromkeys(label for each in answers for label in each.labels))


# -- remarks -----------------------------------------------------------------------------------------


def _remarks(
    raters: Sequence[Rater], *, one_judge: bool, answers: Sequence[Mapping[Key, _GivenLabel]]
) -> Iterator[str]:
    if one_judge:
        yield f"All runs have the judge {_judge_name(raters[0].runs[0])}: this is its agreement with itself."
        if copies := sum(each.cached for own in answers[1:] for each in own.values()):
            yield (
                f"{count(copies, 'answer')} came from the cache and so agree necessarily. To ask the judge again: "
                "merilo run --no-cache."
            )
    versions = {
        kind: {run.manifest.rubrics.get(kind) for each in raters for run in each.runs} for kind in _kinds(answers)
    }
    if changed := [kind for kind, found in versions.items() if len(found - {None}) > 1]:
        yield f"The runs differ not only in the judge but also in the rubrics of {', '.join(changed)}."
    unfinished = [str(run.path) for each in raters for run in each.runs if not run.complete]
    if unfinished:
        yield f"Unfinished: {', '.join(unfinished)}."


def _kinds(answers: Sequence[Mapping[Key, _GivenLabel]]) -> list[str]:
    """Return the kinds of question, without their roles."""
    return sorted({each.kind.split(" (")[0] for own in answers for each in own.values()})


def _skipped_kinds(skipped: Sequence[Mapping[str, int]]) -> Iterator[str]:
    if kinds := sorted({kind for each in skipped for kind in each}):
        yield f"Not compared, as their answers are not labels: {', '.join(kinds)} questions."


def _nothing_common(runs: Sequence[Run]) -> DataError:
    splitters = {run.manifest.splitter for run in runs}
    why = " The runs used different sentence splitters." if len(splitters) > 1 else ""
    return DataError(
        f"These runs have no answered question in common. Run the same metrics over the same data with each judge.{why}"
    )
