"""Test the robustness of a judge: choose cases, ask about them unchanged and edited, and collect the results."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Hashable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.check.labels import label_files
from merilo.commands.check.one_judge import answerable, for_one_judge, usage_of
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.evaluate.settings import judges_of
from merilo.commands.plan.run import run_estimate
from merilo.commands.probe.asking import VerdictsUnderChange, trial_id, trial_sample
from merilo.commands.probe.cases import JudgementKinds, SeededSampler, cases_of, labelled_cases
from merilo.commands.probe.figures import Result, TrialVerdicts, result_of
from merilo.commands.probe.probes import BY_NAME, PROBES
from merilo.data.load import load
from merilo.data.sample import BadRecord, Dataset
from merilo.errors import DataError, UsageError
from merilo.judges.determinism import is_deterministic
from merilo.judging.registry import KINDS
from merilo.metrics.base import Failed, Score
from merilo.runs.outcomes import outcome_from
from merilo.short_repr import short_repr
from merilo.stats.gate import GateVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.commands.check.labels import LabelFile
    from merilo.commands.evaluate.options import Options
    from merilo.commands.probe.cases import Case
    from merilo.commands.probe.options import ProbeOptions
    from merilo.commands.probe.probes import Probe, ProbeTrial
    from merilo.data.sample import Sample
    from merilo.engine.amounts import Estimate
    from merilo.judges.base import Judge
    from merilo.metrics.base import Outcome
    from merilo.runs.run import Run

_NAMED: Final = 3
"""Maximum number of probes that an estimate names; more are counted."""
_EXAMPLES: Final = (("retrieval", "bm25.jsonl"), ("generation", "answers.jsonl"))


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The results of probing a judge."""

    judge: Judge
    wanted: ProbeOptions
    files: tuple[LabelFile, ...]
    cases: int
    """Number of judgements that could be edited."""
    results: tuple[Result, ...]
    left_out: Mapping[str, str]
    """Probe or kind of judgement that was left out → reason."""
    usage: Mapping[str, Any]  # Any: numbers and nulls
    stopped: str | None = None
    """The limit that was reached before all pairs were judged, as a sentence."""

    @property
    def verdict(self) -> GateVerdict:
        """Fail if a probe fails; otherwise cannot tell if one cannot tell; otherwise pass."""
        found = {result.decision.verdict for result in self.results}
        worst = [each for each in (GateVerdict.FAIL, GateVerdict.CANNOT_TELL) if each in found]
        return worst[0] if worst else GateVerdict.PASS

    @property
    def failed(self) -> tuple[int, int]:
        """Number of trials with a question without a verdict, and number of all trials."""
        return sum(each.failed for each in self.results), sum(each.trials for each in self.results)

    def __repr__(self) -> str:
        """Return the main facts, shortened."""
        return short_repr(
            self, verdict=self.verdict.value, judge=type(self.judge).__name__, cases=self.cases, results=self.results
        )


@dataclass(frozen=True, slots=True)
class _Work:
    """The trials of one call."""

    judge: Judge
    wanted: ProbeOptions
    files: tuple[LabelFile, ...]
    cases: int
    trials: Mapping[str, Sequence[ProbeTrial]]
    """By the name of the probe."""
    left_out: Mapping[str, str]

    @classmethod
    def of(cls, wanted: ProbeOptions) -> _Work:
        """Choose the trials. Raises UsageError and DataError."""
        probes = _chosen(wanted)
        judge = judges_of(wanted)["judge"]
        label_file, cases = _cases(wanted, wanted.mapping)
        cases, left_out = answerable(cases, judge, lambda case: case.asks, lambda case: KINDS[case.asks])
        sampler = SeededSampler(wanted.seed)
        mixed = _spread(sampler.order(cases, "cases"))
        pointless = {probe.name for probe in probes if probe.repeats and is_deterministic(judge)}
        trials = {
            probe.name: [*islice(probe.trials(mixed, sampler), wanted.sample)]
            for probe in probes
            if probe.name not in pointless
        }
        left_out |= dict.fromkeys(sorted(pointless), f"the judge {judge.name} always gives the same verdict")
        left_out |= {name: "no case fits it" for name, own in trials.items() if not own}
        trials = {name: own for name, own in trials.items() if own}
        if not trials:
            raise UsageError(f"Nothing to probe: {'; '.join(f'{name}: {why}' for name, why in left_out.items())}.")
        return cls(judge, wanted, label_file, len(cases), trials, left_out)

    def dataset(self) -> Dataset:
        """Return the trials as samples."""
        samples = [trial_sample(BY_NAME[name], trial) for name, own in self.trials.items() for trial in own]
        return Dataset("probes", samples.__iter__)

    def options(self, options: Options) -> Options:
        """Return the options of an evaluation over these trials."""
        asked = {trial.case.asks for own in self.trials.values() for trial in own}
        metric = VerdictsUnderChange("+".join(asks for asks in JudgementKinds if asks in asked))
        return replace(for_one_judge(options, self.judge), metrics=[metric])

    def results(self, run: Run) -> tuple[Result, ...]:
        """What each probe found; trials that were not asked about any more are not among them."""
        outcomes = {record["sample"]: outcome_from(record) for record in run.records()}
        found: list[Result] = []
        for name, trials in self.trials.items():
            probe = BY_NAME[name]
            judged = [*_judged(probe, trials, outcomes)]
            if judged:
                found.append(result_of(probe, judged, self.wanted.limits.get(name, probe.limit)))
        return tuple(found)


async def run_probes(options: ProbeOptions) -> ProbeReport:
    """Return the results of probing `options.judge`.

    `out` becomes the directory of a run over all trials. The same call resumes an interrupted one.

    Raises UsageError, DataError and what an evaluation raises.
    """
    work = _Work.of(options)
    with nullcontext(options.out) if options.out is not None else tempfile.TemporaryDirectory() as directory:
        run = await run_evaluation(work.dataset(), replace(work.options(options), out=Path(directory, "run")))
        return ProbeReport(
            judge=work.judge,
            wanted=options,
            files=work.files,
            cases=work.cases,
            results=work.results(run),
            left_out=work.left_out,
            usage=usage_of(run),
            stopped=run.usage.get("stopped"),
        )


async def estimate_probes(options: ProbeOptions) -> Estimate:
    """Estimate requests and cost of `run_probes`, without a request. Raises what it raises before its first request."""
    work = _Work.of(options)
    out = None if options.out is None else Path(options.out, "run")
    found = await run_estimate(work.dataset(), replace(work.options(options), out=out), sample=None)
    named = ", ".join(work.trials) if len(work.trials) <= _NAMED else f"{len(work.trials)} probes"
    return replace(found, metrics=tuple(replace(each, metric=named) for each in found.metrics))  # one, of no registry


def _chosen(wanted: ProbeOptions) -> list[Probe]:
    """Return the chosen probes in their usual order. Raises UsageError for values that cannot be used."""
    if wanted.sample < 1:
        raise UsageError(f"--sample must be at least 1, got {wanted.sample}.")
    if not 0 <= wanted.seed < 2**64:
        raise UsageError(f"--seed must be from 0 to 2^64 - 1, got {wanted.seed}.")
    strange = [name for name in (*wanted.probes, *wanted.limits) if name not in BY_NAME]
    if strange:
        raise UsageError(f"No probe {strange[0]!r}; probes: {', '.join(BY_NAME)}.")
    wrong = [f"{name}={limit:g}" for name, limit in wanted.limits.items() if not 0 < limit <= 1]
    if wrong:
        raise UsageError(f"The limit of a probe must be above 0 and at most 1, got {wrong[0]}.")
    return [probe for probe in PROBES if not wanted.probes or probe.name in wanted.probes]


def _cases(wanted: ProbeOptions, mapping: Mapping[str, str] | None) -> tuple[tuple[LabelFile, ...], list[Case]]:
    """Return the cases of the given files, or those that ship with merilo; `mapping` is for the columns of `data`.

    Raises UsageError if there are none, or if no record has a mapped column.
    """
    if mapping and wanted.data is None:
        raise UsageError("--map is for the columns of --data; add --data FILE.")
    usual = not wanted.labels and wanted.data is None
    found = label_files(wanted.labels) if wanted.labels or usual else []
    cases = labelled_cases([record for _, own in found for record in own])
    if wanted.data is not None:
        data = load(wanted.data, mapping=mapping)
        cases += cases_of(_samples(data), data.name)
        if data.columns.unseen:
            raise UsageError(f"No record of {data.name} has the mapped columns: {', '.join(data.columns.unseen)}.")
    if usual:
        for place in _EXAMPLES:
            with as_file(files("merilo").joinpath("examples", *place)) as path:
                cases += cases_of(_samples(load(path)), "/".join(place))
    if not cases:
        raise UsageError("The given files hold nothing to probe. Probes edit contexts of a question or a response.")
    return tuple(each for each, _ in found), cases


def _samples(data: Dataset) -> Iterator[Sample]:
    """Yield the samples. Raises DataError for an invalid record and for a repeated id."""
    seen: set[str] = set()
    for each in data:
        if isinstance(each, BadRecord):
            messages = " ".join(problem.message for problem in each.problems)
            raise DataError(f"{data.name}: {messages}", problems=each.problems)
        if each.id in seen:
            raise DataError(f"{data.name}: two records have the id {each.id!r}. Ids must be unique.")
        seen.add(each.id)
        yield each


def _spread(cases: Sequence[Case]) -> list[Case]:
    """Return the first case of each cluster, then the second ones, and so on, since cases of a cluster are alike."""
    taken = Counter[Hashable]()
    ranks: list[int] = []
    for case in cases:
        ranks.append(taken[case.cluster])
        taken[case.cluster] += 1
    return [case for _, case in sorted(zip(ranks, cases, strict=True), key=lambda pair: pair[0])]


def _judged(probe: Probe, trials: Sequence[ProbeTrial], outcomes: Mapping[str, Outcome]) -> Iterator[TrialVerdicts]:
    for trial in trials:
        outcome = outcomes.get(trial_id(probe, trial))
        if isinstance(outcome, Score):
            yield TrialVerdicts(trial, tuple(piece.verdict for piece in outcome.evidence))
        elif isinstance(outcome, Failed):
            yield TrialVerdicts(trial, None)
