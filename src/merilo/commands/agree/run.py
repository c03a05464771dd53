"""How far the judges of several runs agree with each other, on the questions that they were all asked.

Questions are the same where their words are, whoever is asked. Runs of one judge over several data sets, such as the
answers of several systems, are taken together; where judges rank five systems or more, their rankings are compared too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from merilo.commands.agree.ranking import SystemRanking, rankings, same_data
from merilo.engine.answers import SPECIAL
from merilo.errors import DataError, RunError, UsageError
from merilo.judging.verdicts import Verdict
from merilo.rendering.wording import count
from merilo.results.label_forms import form_of, label_of
from merilo.runs.clusters import check_clusters, clusters
from merilo.runs.run import open_store, opened
from merilo.runs.telling import cut_short
from merilo.stats.agreement_intervals import LEAST_SYSTEMS, AnnotatorAgreement, annotator_agreement
from merilo.stats.agreement_pairs import PairAgreement, pair_agreement
from merilo.stats.agreement_tables import Distance
from merilo.stats.intervals import LEVEL, SEED, check_level
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.runs.run import Run

    Key = tuple[bytes, str, int]
    """A question: its words, the role it is put to, and its draw."""

_NAMED: Final = 5
_TWO: Final = 2


@dataclass(frozen=True, slots=True)
class Rater:
    """One judge, or one run where all have the same judge."""

    name: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class KindAgreement:
    """Two judges on questions of one kind."""

    kind: str
    """With its role behind it, where that is not `judge`."""
    labels: tuple[str, ...]
    """The possible ones, in the order of the table's rows and columns; ascending where they have an order."""
    agreement: PairAgreement
    differ: int
    """Questions to which they gave different labels."""
    differ_in: int
    """Samples with such a question."""
    samples: tuple[str, ...]
    """The first of these, those with the farthest labels before the others."""


@dataclass(frozen=True, slots=True)
class JudgePair:
    """Two judges side by side."""

    first: str
    second: str
    kinds: tuple[KindAgreement, ...]
    """In the order of the kinds' names."""
    rankings: tuple[SystemRanking, ...]
    """By metric; empty with fewer than five systems."""
    common: int
    """Questions that both answered."""
    only_first: int
    only_second: int
    failed: int
    """Questions put to both, to which one or the other has no verdict."""


@dataclass(frozen=True, slots=True)
class JudgesAgreement:
    """What judges say of the same questions."""

    raters: tuple[Rater, ...]
    pairs: tuple[JudgePair, ...]
    """Each two of them."""
    among: Mapping[str, AnnotatorAgreement]
    """By kind, all of them together; empty for two."""
    remarks: tuple[str, ...]
    """What must be said beside it, a sentence each."""
    level: float
    cluster: str | None
    """What questions were grouped by; None: the sample."""


@dataclass(frozen=True, slots=True)
class _Said:
    """One judge's answer to one question."""

    kind: str
    labels: tuple[str, ...]
    ordered: bool
    label: str | None
    """None where no verdict came."""
    sample: str
    cluster: str
    cached: bool


def judges_agreement(
    runs: Sequence[Run | str | PathLike[str]],
    *,
    cluster: str | None = None,
    level: float = LEVEL,
    seed: int = SEED,
) -> JudgesAgreement:
    """How far the judges of these runs agree; explained at `merilo.api.judge_agree`."""
    try:
        check_level(level)
    except ValueError as error:
        raise UsageError(str(error)) from error
    measured = [opened(run) for run in runs]
    _check(measured)
    raters, one_judge = _raters(measured)
    field = measured[0].manifest.cluster if cluster is None else cluster or None
    kept = [dict[str, int]() for _ in raters]
    said = [_said_by(rater, field, aside) for rater, aside in zip(raters, kept, strict=True)]
    resampling = Resampling(seed=seed, level=level)
    pairs = tuple(
        _pair((raters[one], raters[other]), (said[one], said[other]), field, resampling)
        for one, other in combinations(range(len(raters)), 2)
    )
    if not any(pair.common for pair in pairs):
        raise _nothing_common(measured)
    among = _among(said, resampling) if len(raters) > _TWO else {}
    remarks = (*_remarks(raters, one_judge=one_judge, said=said), *_aside(kept), *_few_systems(raters))
    return JudgesAgreement(tuple(raters), pairs, among, remarks, level, field)


def _check(runs: Sequence[Run]) -> None:
    if len(runs) < _TWO:
        raise UsageError(f"Judges are compared by the verdicts in two runs or more, got {len(runs)}.")
    paths = [run.path.resolve() for run in runs]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise UsageError(f"{twice} is named twice; name runs of different judges, or of one judge asked twice.")
    for run in runs:
        if not _judges(run):
            why = f"its scores are those of {run.manifest.origin}" if run.manifest.origin else "no judge was asked"
            raise UsageError(f"{run.path} has no verdicts that could be compared: {why}.")


def _judges(run: Run) -> dict[str, Mapping[str, object]]:
    """The judges of a run by role, without those that only measure texts."""
    return {role: judge for role, judge in run.manifest.judges.items() if role not in SPECIAL.values()}


def _raters(runs: Sequence[Run]) -> tuple[list[Rater], bool]:
    """The judges with their runs, in order of first appearance; the runs themselves where all have one judge."""
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


def _said_by(rater: Rater, field: str | None, aside: dict[str, int]) -> dict[Key, _Said]:
    """What a judge answered, by question; of an answer in several runs the first. `aside` gets kinds without labels."""
    found: dict[Key, _Said] = {}
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
                form = form_of(asked.question)
                if form is None:
                    aside[asked.question.kind] = aside.get(asked.question.kind, 0) + 1
                    continue
                label = label_of(asked.answer) if isinstance(asked.answer, Verdict) else None
                question = asked.question
                found.setdefault(
                    (question.content, question.role, question.draw),
                    _Said(
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
    """Each key of the run's trails once, with the first sample that asked it. Raises RunError for damaged outcomes."""
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
                    told = f"{run.path} is damaged: an outcome of sample {record['sample']!r} names no question"
                    raise RunError(f"{told}; copy it again whole.") from None
    if len(samples) < run.done:
        raise cut_short(run.path, run.done, len(samples))


# -- two judges ---------------------------------------------------------------------------------------


def _pair(
    raters: tuple[Rater, Rater],
    said: tuple[Mapping[Key, _Said], Mapping[Key, _Said]],
    field: str | None,
    resampling: Resampling,
) -> JudgePair:
    first, second = said
    both = [(first[key], second[key]) for key in first if key in second]
    answered = [(one, other) for one, other in both if one.label is not None and other.label is not None]
    kinds = sorted({one.kind for one, _ in answered})
    return JudgePair(
        first=raters[0].name,
        second=raters[1].name,
        kinds=tuple(_of_kind(kind, [pair for pair in answered if pair[0].kind == kind], resampling) for kind in kinds),
        rankings=tuple(rankings(raters[0].runs, raters[1].runs, field, resampling)),
        common=len(answered),
        only_first=len(first) - len(both),
        only_second=len(second) - len(both),
        failed=len(both) - len(answered),
    )


def _of_kind(kind: str, pairs: Sequence[tuple[_Said, _Said]], resampling: Resampling) -> KindAgreement:
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


def _labels(said: Sequence[_Said]) -> tuple[str, ...]:
    """The labels of the questions, all of them where these offer different ones (in several languages)."""
    return tuple(dict.fromkeys(label for each in said for label in each.labels))


# -- all of them --------------------------------------------------------------------------------------


def _among(said: Sequence[Mapping[Key, _Said]], resampling: Resampling) -> dict[str, AnnotatorAgreement]:
    """By kind, alpha and AC1 over all judges, of the questions that two of them or more answered."""
    rows: dict[str, list[tuple[_Said, list[str | None]]]] = {}
    for key in dict.fromkeys(key for each in said for key in each):
        given = [each[key].label if key in each else None for each in said]
        if sum(label is not None for label in given) > 1:
            one = next(each[key] for each in said if key in each)
            rows.setdefault(one.kind, []).append((one, given))
    found: dict[str, AnnotatorAgreement] = {}
    for kind, own in sorted(rows.items()):
        labels = _labels([one for one, _ in own])
        place = {label: index for index, label in enumerate(labels)}
        found[kind] = annotator_agreement(
            [[None if label is None else place[label] for label in given] for _, given in own],
            labels=range(len(labels)),
            distance=Distance.ORDINAL if own[0][0].ordered and len(labels) > _TWO else Distance.NOMINAL,
            clusters=[one.cluster for one, _ in own],
            resampling=resampling,
        )
    return found


def _remarks(raters: Sequence[Rater], *, one_judge: bool, said: Sequence[Mapping[Key, _Said]]) -> Iterator[str]:
    if one_judge:
        yield f"All runs have the judge {_judge_name(raters[0].runs[0])}: this is how far it agrees with itself."
        if copies := sum(each.cached for own in said[1:] for each in own.values()):
            yield (
                f"{count(copies, 'answer')} came from the cache, so they are copies and agree by nature; to ask anew: "
                "merilo run --no-cache."
            )
    versions = {kind: {run.manifest.rubrics.get(kind) for each in raters for run in each.runs} for kind in _kinds(said)}
    if changed := [kind for kind, found in versions.items() if len(found - {None}) > 1]:
        yield f"The runs differ in the rubrics of {', '.join(changed)} too, not in their judges alone."
    unfinished = [str(run.path) for each in raters for run in each.runs if not run.complete]
    if unfinished:
        yield f"Stopped before the last sample: {', '.join(unfinished)}."


def _kinds(said: Sequence[Mapping[Key, _Said]]) -> list[str]:
    """The kinds of question, without their roles."""
    return sorted({each.kind.split(" (")[0] for own in said for each in own.values()})


def _aside(kept: Sequence[Mapping[str, int]]) -> Iterator[str]:
    if kinds := sorted({kind for each in kept for kind in each}):
        yield f"Not compared, since no label is an answer to them: questions of kind {', '.join(kinds)}."


def _few_systems(raters: Sequence[Rater]) -> Iterator[str]:
    most = max(len(same_data(one.runs, other.runs)) for one, other in combinations(raters, 2))
    if 1 < most < LEAST_SYSTEMS:
        yield (
            f"Whether the judges rank systems alike is told from {LEAST_SYSTEMS} systems on; both judged "
            f"{count(most, 'system')}."
        )


def _nothing_common(runs: Sequence[Run]) -> DataError:
    splitters = {run.manifest.splitter for run in runs}
    why = " Their texts were split into sentences in different ways." if len(splitters) > 1 else ""
    return DataError(
        "No question was answered in two of these runs: a question is the same where its words are, so run the same "
        f"metrics over the same data with each judge.{why}"
    )
