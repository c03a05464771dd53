"""Agreement of the judges of two runs, on the questions that they have in common.

Two questions are the same if their content, role and draw are equal; the judge does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from merilo.judging.labels import LabelForm
    from merilo.runs.run import Run

    Key = tuple[bytes, str, int]
    """A question: the digest of its content, its role and its draw."""

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
class JudgesAgreement:
    """The agreement of the judges of two runs on the same questions."""

    judges: tuple[str, str]
    """Their names, with the run if both have one name."""
    runs: tuple[Path, Path]
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
    remarks: tuple[str, ...]
    """Notes on the comparison, one sentence each."""
    cluster: str | None
    """The field that questions were clustered by; None for the sample."""

    def __repr__(self) -> str:
        """Return the main facts, shortened."""
        return short_repr(self, judges=self.judges, kinds=self.kinds, remarks=self.remarks, cluster=self.cluster)


@dataclass(frozen=True, slots=True)
class _GivenLabel:
    """One judge's label of one question."""

    kind: str
    form: LabelForm
    label: str | None
    """None if the question has no verdict."""
    sample: str
    cluster: str
    cached: bool


def judges_agreement(first: Run | str | PathLike[str], second: Run | str | PathLike[str]) -> JudgesAgreement:
    """Measure the agreement of the judges of two runs; neither judge is taken as correct.

    Questions are clustered as in the first run. Raises UsageError for a run without verdicts, DataError for runs
    without a common question, and RunError.
    """
    runs = (opened(first), opened(second))
    if runs[0].path.resolve() == runs[1].path.resolve():
        raise UsageError(f"{runs[0].path} is named twice. Name runs of different judges, or two runs of one judge.")
    marks = [_judges(run) for run in runs]
    field, skipped = runs[0].manifest.cluster, set[str]()
    one, other = (_labels_of(run, field, skipped) for run in runs)
    both = [(one[key], other[key]) for key in one if key in other]
    answered = [pair for pair in both if None not in (pair[0].label, pair[1].label)]
    if not answered:
        splitters = {run.manifest.splitter for run in runs}
        why = " The runs used different sentence splitters." if len(splitters) > 1 else ""
        message = "These runs have no answered question in common. Run the same metrics over the same data with each"
        raise DataError(f"{message} judge.{why}")
    names = [", ".join(dict.fromkeys(each)) for each in marks]
    if names[0] == names[1]:
        names = [f"{name} in {run.path}" for name, run in zip(names, runs, strict=True)]
    kinds = sorted({pair[0].kind for pair in answered})
    copies = sum(each.cached for each in other.values())
    return JudgesAgreement(
        judges=(names[0], names[1]),
        runs=(runs[0].path, runs[1].path),
        kinds=tuple(_of_kind(kind, [pair for pair in answered if pair[0].kind == kind]) for kind in kinds),
        common=len(answered),
        only_first=len(one) - len(both),
        only_second=len(other) - len(both),
        failed=len(both) - len(answered),
        remarks=(*_remarks(runs, kinds, copies), *_skipped_kinds(skipped)),
        cluster=field,
    )


def _judges(run: Run) -> list[str]:
    """Return the names of a run's judges, except models that only measure texts. Raises UsageError for none."""
    found = [str(judge.get("name")) for role, judge in run.manifest.judges.items() if role not in SPECIAL.values()]
    if not found:
        why = f"its scores were imported from {run.manifest.origin}" if run.manifest.origin else "it used no judge"
        raise UsageError(f"{run.path} has no verdicts to compare: {why}.")
    return found


def _labels_of(run: Run, field: str | None, skipped: set[str]) -> dict[Key, _GivenLabel]:
    """Return the labels of a run's judge by question; the kinds of question without a label are added to `skipped`."""
    found: dict[Key, _GivenLabel] = {}
    store = open_store(run)
    try:
        if field is not None:
            check_clusters(store, field)
        named = {} if field is None else {each.sample: each.cluster for each in clusters(store, field)}
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
                _GivenLabel(
                    kind=form.kind if question.role == "judge" else f"{form.kind} ({question.role})",
                    form=form,
                    label=asked.answer.as_label() if isinstance(asked.answer, Verdict) else None,
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


def _of_kind(kind: str, pairs: Sequence[tuple[_GivenLabel, _GivenLabel]]) -> KindAgreement:
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


def _remarks(runs: tuple[Run, Run], kinds: Sequence[str], copies: int) -> Iterator[str]:
    """Yield notes on the comparison. `copies`: number of answers of the second run that came from the cache."""
    first, second = (_fingerprints(run) for run in runs)
    if first == second:
        yield f"Both runs have the judge {', '.join(_judges(runs[0]))}: this is its agreement with itself."
        if copies:
            yield (
                f"{count(copies, 'answer')} came from the cache and so agree necessarily. To ask the judge again: "
                "merilo run --no-cache."
            )
    plain = [kind.split(" (")[0] for kind in kinds]
    if changed := [kind for kind in plain if len({run.manifest.rubrics.get(kind) for run in runs} - {None}) > 1]:
        yield f"The runs differ not only in the judge but also in the rubrics of {', '.join(changed)}."
    if unfinished := [str(run.path) for run in runs if not run.complete]:
        yield f"Unfinished: {', '.join(unfinished)}."


def _fingerprints(run: Run) -> Mapping[str, object]:
    return {role: each.get("fingerprint") for role, each in run.manifest.judges.items() if role not in SPECIAL.values()}


def _skipped_kinds(skipped: set[str]) -> Iterator[str]:
    if skipped:
        yield f"Not compared, as their answers are not labels: {', '.join(sorted(skipped))} questions."
