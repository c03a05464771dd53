"""Checks a finished run against a suite of gates, optionally with a baseline."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING

from merilo.commands.compare.run import labels_differ
from merilo.commands.gate.result import Gate, Gates, Kind
from merilo.errors import DataError, RunError, UsageError
from merilo.rendering.wording import count, unsealed_notes
from merilo.results.comparability import not_comparable, score_affecting_differences
from merilo.results.contents import MAX_OTHER, equal_inputs, equal_questions
from merilo.results.scores import read_scores
from merilo.runs.run import metric_in, opened
from merilo.runs.scales import check_asked
from merilo.runs.weak import weak_metrics
from merilo.stats.column import align
from merilo.stats.compare import Policy
from merilo.stats.early import early_drop, early_minimum
from merilo.stats.gate import GateVerdict, gate_drop, gate_minimum

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.commands.gate.suite import Suite
    from merilo.results.scores import RunScores
    from merilo.runs.run import Run
    from merilo.stats.column import Column

_SHOWN = 5


def gate_run(
    run: Run | str | PathLike[str],
    suite: Suite,
    *,
    baseline: Run | str | PathLike[str] | None = None,
    across_data: bool = False,
) -> Gates:
    """Check a run against the gates of a suite.

    All limits of a run that could stop early (`--until-decided`) are those of confidence sequences. `across_data`: as
    `equal_questions` takes it. Raises UsageError for a suite without gates or with a metric that the run does not have,
    and if runs are not comparable; DataError if the runs have no sample in common or samples lack a cluster; RunError
    if a run is incomplete or unreadable.
    """
    this = opened(run)
    _check_asked(suite, baseline)
    if not this.complete:
        raise RunError(
            f"{this.path} was stopped before its last sample, so it cannot be gated. To resume it, repeat its command "
            "with the same --out."
        )
    base = None if baseline is None else opened(baseline)
    if base is not None and not base.complete:
        raise RunError(f"The baseline {base.path} was stopped before its last sample. Resume it first.")
    drops = {} if base is None else _drop_names(this, base, suite)
    scores = read_scores(this, metrics=[*suite.minimums, *drops], cluster=suite.cluster)
    early = this.manifest.until is not None
    if scores.clusters is not None and (early or (base is not None and base.manifest.until is not None)):
        raise UsageError("A run that could stop early cannot be gated with clusters. Leave --cluster out.")
    minimums, largest = _by_text(this, suite.minimums), _by_text(this, drops)
    gates = [_minimum(scores, text, asked, suite, early=early) for text, asked in minimums.items()]
    weak = frozenset[str]().union(*(weak_metrics(each.manifest) for each in (this, base) if each is not None))
    notes: list[str] = []
    pair: _Pair | None = None
    if base is not None:
        pair = _paired(base, scores, list(largest), across_data=across_data)
        gates += [_drop(pair, text, asked, suite) for text, asked in largest.items()]
        notes += [*pair.notes, *_judge_noise(pair, gates)]
    notes += labels_differ([this] if base is None else [this, base])
    notes += unsealed_notes([this] if base is None else [this, base])
    if any(gate.sequential for gate in gates):
        notes.append("The run could stop early, so its limits come from confidence sequences, which are wider.")
    return Gates(
        run=this.path,
        baseline=None if base is None else base.path,
        gates=tuple(replace(gate, weak=gate.metric in weak) for gate in gates),
        level=suite.level,
        cluster=None if scores.clusters is None else suite.cluster or this.manifest.cluster,
        cannot_tell=suite.cannot_tell,
        notes=tuple(notes),
        other_questions=0 if pair is None else pair.other_questions,
        run_only=0 if pair is None else pair.new_only,
        baseline_only=0 if pair is None else pair.base_only,
        foreign=this.manifest.origin is not None,
    )


def _check_asked(suite: Suite, baseline: object) -> None:
    if suite.empty and baseline is None:
        raise UsageError("No gate given. Use --min METRIC=X, --baseline RUN with --max-drop D, or --suite FILE.")
    drops = suite.max_drop is not None and suite.max_drop != {}
    if drops and baseline is None:
        raise UsageError("--max-drop needs a baseline: add --baseline RUN.")
    if baseline is not None and not drops:
        raise UsageError("--baseline needs the largest allowed drop: add --max-drop 0.02.")
    if suite.strict and not drops:
        raise UsageError("--strict needs a baseline and a largest drop: add --baseline RUN --max-drop 0.02.")


def _by_text(run: Run, named: Mapping[str, float]) -> dict[str, float]:
    """Return the requirements by full text of each metric; every name must be that of a metric of the run."""
    found: dict[str, float] = {}
    for name, value in named.items():
        text = metric_in(run, name)
        if found.setdefault(text, value) != value:
            raise UsageError(f"Two values for {text}: {found[text]:g} and {value:g}. Give one.")
    return found


def _drop_names(run: Run, base: Run, suite: Suite) -> dict[str, float]:
    """Return the largest allowed drop by metric: of the named metrics, or of all that both runs have."""
    drop = suite.max_drop
    if drop is not None and not isinstance(drop, float | int):
        return dict(drop)
    common = [text for text in run.manifest.metrics if text in base.manifest.metrics]
    if not common:
        listed = f"{', '.join(run.manifest.metrics)}; {', '.join(base.manifest.metrics)}"
        raise UsageError(f"{run.path} and the baseline {base.path} have no metric in common ({listed}).")
    return dict.fromkeys(common, float(drop or 0.0))


# -- minimums -----------------------------------------------------------------------------------------


def _minimum(scores: RunScores, text: str, asked: float, suite: Suite, *, early: bool) -> Gate:
    column = scores.columns[text]
    check_asked(text, asked, column.span)
    if early:
        decision = early_minimum(column, asked, undefined=suite.undefined, level=suite.level)
    else:
        decision = gate_minimum(
            column, asked, clusters=scores.clusters, undefined=_policy(suite, column), level=suite.level
        )
    scored = int(column.scored.sum())
    return Gate(
        metric=text,
        kind=Kind.MINIMUM,
        asked=asked,
        strict=False,
        higher_is_better=column.higher_is_better,
        decision=decision,
        samples=scored,
        missing=len(column) - scored if suite.undefined is not Policy.DROP else int(column.failed.sum()),
        deciding=tuple(scores.ids[place] for place in decision.deciding),
        sequential=early,
    )


def _policy(suite: Suite, column: Column) -> Policy | None:
    """Return how Undefined outcomes count. Raises UsageError if the worst value is infinite."""
    if suite.undefined is Policy.WORST and not isfinite(column.worst):
        raise UsageError("A metric with an infinite range has no worst value. Use --undefined drop.")
    return suite.undefined


# -- drops --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two runs over their common samples, in one order."""

    base: RunScores
    new: RunScores
    early: bool
    notes: tuple[str, ...]
    other_questions: int
    """Number of common ids that name other questions; they are left out."""
    base_only: int
    new_only: int
    """Number of samples that only one of the runs has."""
    equal_inputs: frozenset[str]
    """The metrics whose inputs are equal in both runs."""


def _paired(base: Run, new: RunScores, metrics: Sequence[str], *, across_data: bool) -> _Pair:
    """Return the runs over the samples that both have, in the order of the one that could stop early, if one could."""
    lacking = [text for text in metrics if text not in base.manifest.metrics]
    if lacking:
        raise UsageError(f"The baseline {base.path} has no metric {', '.join(lacking)}. Evaluate it there too.")
    differences = score_affecting_differences(base.manifest, new.run.manifest, metrics=metrics)
    if differences:
        raise not_comparable(f"{new.run.path} (here) and its baseline {base.path} (there)", differences)
    before = read_scores(base, metrics=metrics, cluster="")
    seeds = [each.manifest.until["seed"] for each in (base, new.run) if each.manifest.until is not None]
    if len(set(map(str, seeds))) > 1:
        raise UsageError(
            f"Both runs could stop early, but with different sample orders (seeds {seeds[0]} and {seeds[1]}). Re-run "
            "one of them with the other's seed."
        )
    if base.manifest.until is not None and new.run.manifest.until is None:
        found = align(before.ids, new.ids)
        first, second, only_base, only_new = found.first, found.second, found.only_first, found.only_second
    else:
        found = align(new.ids, before.ids)
        second, first, only_new, only_base = found.first, found.second, found.only_first, found.only_second
    if not first:
        raise DataError(
            f"{new.run.path} and {base.path} have no sample in common (ids such as {new.ids[0]!r} and "
            f"{before.ids[0]!r}). Samples are paired by id: give each an id that stays the same."
        )
    if len(only_base) > MAX_OTHER * len(before.ids) and not seeds and not across_data:
        raise UsageError(
            f"{len(only_base):,} of the {len(before.ids):,} samples of the baseline {base.path} are not in "
            f"{new.run.path}, such as {before.ids[only_base[0]]!r}. More than one in ten are missing, so the runs are "
            f"not comparable. Give each sample an id that stays the same, and run all samples. To compare only the "
            f"{count(len(first), 'sample')} that both runs have, use --across-data."
        )
    pair = (before.at(first), new.at(second))
    questions = equal_questions(pair, [str(base.path), str(new.run.path)], metrics, across_data=across_data)
    pair = (pair[0].at(questions.positions), pair[1].at(questions.positions))
    notes = [*_left(new, only_new, "the run"), *_left(before, only_base, "the baseline"), *questions.notes]
    return _Pair(
        *pair,
        early=bool(seeds),
        notes=tuple(notes),
        other_questions=questions.other,
        base_only=len(only_base),
        new_only=len(only_new),
        equal_inputs=equal_inputs(*pair, metrics),
    )


def _left(scores: RunScores, places: Sequence[int], where: str) -> list[str]:
    if not places:
        return []
    shown = ", ".join(scores.ids[place] for place in places[:_SHOWN])
    more = f" and {len(places) - _SHOWN:,} more" if len(places) > _SHOWN else ""
    one = len(places) == 1
    text = f"{count(len(places), 'sample')} {'is' if one else 'are'} in {where} only, and {'is' if one else 'are'} not"
    return [f"{text} compared: {shown}{more}."]


def _drop(pair: _Pair, text: str, asked: float, suite: Suite) -> Gate:
    base, new = pair.base.columns[text], pair.new.columns[text]
    if (base.span, base.higher_is_better) != (new.span, new.higher_is_better):
        raise DataError(f"{text} has another scale in the baseline. Convert both to one scale.")
    policy, strict, level = _policy(suite, new), suite.strict, suite.level
    if pair.early:
        decision = early_drop(base, new, asked, strict=strict, undefined=policy, level=level)
    else:
        clusters = pair.new.clusters
        decision = gate_drop(base, new, asked, strict=strict, clusters=clusters, undefined=policy, level=level)
    same = text in pair.equal_inputs and _equal_outcomes(base, new)
    if same:
        decision = replace(decision, verdict=GateVerdict.PASS, deciding=(), would=None)
    one_sided = base.scored ^ new.scored
    if suite.undefined is Policy.DROP:
        one_sided &= base.failed | new.failed
    return Gate(
        metric=text,
        kind=Kind.DROP,
        asked=asked,
        strict=strict,
        higher_is_better=new.higher_is_better,
        decision=decision,
        samples=int((base.scored & new.scored).sum()),
        missing=int(one_sided.sum()),
        deciding=tuple(pair.new.ids[place] for place in decision.deciding),
        sequential=pair.early,
        same_outputs=same,
    )


def _equal_outcomes(base: Column, new: Column) -> bool:
    """Return True if every sample has the same outcome in both runs, and at least one has a score."""
    states = (base.scored == new.scored).all() and (base.failed == new.failed).all()
    return bool(states and base.scored.any() and (base.values == new.values)[base.scored].all())


def _judge_noise(pair: _Pair, gates: Sequence[Gate]) -> list[str]:
    """Return a sentence for each metric with equal inputs and unequal outcomes: the judge differs, not the build."""
    return [
        f"{gate.metric} has the same inputs in both runs on all {count(len(pair.new.ids), 'sample')}, but not the same "
        "scores: the difference comes from the judge, not from the build."
        for gate in gates
        if gate.kind is Kind.DROP and gate.samples and gate.metric in pair.equal_inputs and not gate.same_outputs
    ]
