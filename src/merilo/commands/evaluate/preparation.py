"""The data, judges, metrics and manifest of a run, before its first question."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from merilo.commands.evaluate.selection import Selection, definitions_of, metrics_of, select
from merilo.data.sentences import SPLITTER_ID
from merilo.engine.answer_store import SPECIAL, JudgeRoles
from merilo.engine.installed.worded import INSTALLED, worded, wordings_of
from merilo.engine.repeated import draws_for, draws_of, repeated
from merilo.engine.unmeasured import reasons_of, unmeasured
from merilo.errors import UsageError
from merilo.judges.cascade import each_judge
from merilo.judges.routed import part_for
from merilo.judging.registry import KINDS
from merilo.judging.rubric import rubric_versions
from merilo.metrics.base import ShownInRun
from merilo.metrics.registry import default_metrics
from merilo.rendering.wording import count
from merilo.runs.ingest import Intake, take_in
from merilo.runs.manifest import Manifest
from merilo.runs.scales import scales_of
from merilo.runs.shards import Shard
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.commands.evaluate.options import Options
    from merilo.data.sample import Dataset, Sample
    from merilo.judges.base import Judge
    from merilo.metrics.base import Definition
    from merilo.runs.store import Store


class Prepared(NamedTuple):
    """The data in the store, the judges and the metrics of a run, before its first question."""

    intake: Intake
    roles: JudgeRoles
    selection: Selection


async def prepared(dataset: Dataset, store: Store, judges: dict[str, Judge], options: Options) -> Prepared:
    """Read the data into the store and select the metrics that data and judges support.

    Raises DataError and UsageError.
    """
    limited = _limited(judges)
    knows = None if limited is None else partial(_knows, limited)
    shard = None if options.shard is None else Shard.parse(options.shard)
    roles = JudgeRoles(judges)
    intake = await take_in(
        dataset,
        store,
        skip_invalid=options.skip_invalid,
        knows=knows,
        shows=_shown_in_run(options.metrics, roles),
        shard=shard,
    )
    if dataset.columns.unseen:
        names = ", ".join(map(repr, dataset.columns.unseen))
        raise UsageError(f"No record has the mapped column {names}. Check its spelling (--map).")
    selection = select(options.metrics, intake, roles, lenient=options.lenient)
    draws = draws_for(selection.metrics, roles, options.draws)
    metrics = worded(selection.metrics) if options.prompts == INSTALLED else selection.metrics
    metrics = unmeasured(repeated(metrics, draws), _undefined(intake, selection))
    return Prepared(intake, roles, replace(selection, metrics=metrics))


def _shown_in_run(
    asked: Sequence[str | Definition] | None, roles: JudgeRoles
) -> dict[str, Callable[[Sample], bool | None]]:
    """Return `ShownInRun.shows` of the metrics that may be computed and have it."""
    given = definitions_of(default_metrics() if asked is None else asked)
    metrics = {text: each for one in given for text, each in metrics_of(one, lambda: roles.named).items()}
    return {text: metric.shows for text, metric in metrics.items() if isinstance(metric, ShownInRun)}


def _undefined(intake: Intake, selection: Selection) -> dict[str, str]:
    """Return the selected metrics that no sample shows, with the reason why they are undefined."""
    return {
        text: metric.not_shown(intake.not_shown[text])
        for text, metric in selection.metrics.items()
        if text in intake.not_shown and isinstance(metric, ShownInRun)
    }


def manifest_of(dataset: Dataset, ready: Prepared, options: Options) -> Manifest:
    """Return the manifest of a run: what it evaluates, and with which judges, metrics and rubrics."""
    intake, roles, selection = ready
    first = roles.judges["judge"]
    used = frozenset[str]().union(*(metric.needs for metric in selection.metrics.values()))
    others = {role: judge for role, judge in roles.judgements.items() if judge is not first}
    judges = {"judge": first} | others | roles.special(selection.kinds)
    return Manifest(
        merilo=version(),
        data=dataset.name,
        fingerprint=intake.fingerprint,
        samples=intake.samples,
        skipped=intake.skipped,
        metrics={text: metric.version for text, metric in selection.metrics.items()},
        left_out=selection.left_out,
        judges={
            role: {
                "name": judge.name,
                "fingerprint": judge.fingerprint(),
                "rates": judge.agreement_note,
                **_weak(judge, role, selection),
            }
            for role, judge in judges.items()
        },
        splitter=SPLITTER_ID,
        language=options.language,
        cluster=options.cluster,
        notes=tuple(
            filter(
                None,
                [
                    *dataset.columns.doubts(used),
                    dataset.columns.sentence(),
                    _limit_note(options.limit),
                    _language_note(intake, roles),
                ],
            )
        ),
        composites={text: chosen.composite.version for text, chosen in selection.composites.items()},
        rubrics=rubric_versions(selection.kinds),
        scales=scales_of(selection.metrics),
        draws=draws_of(selection.metrics),
        wordings=wordings_of(selection.metrics),
        shard=intake.shard,
        undefined=reasons_of(selection.metrics),
    )


def _weak(judge: Judge, role: str, selection: Selection) -> dict[str, list[str]]:
    """Return the weak metrics of a run and the weak kinds of a judge, as manifest entries; empty if there are none.

    The weak metrics are recorded with the judge of the role `judge`, whichever role makes them weak.
    """
    order = [*selection.metrics, *selection.composites, *selection.left_out]
    found = [text for text in dict.fromkeys(order) if text in selection.weak] if role == "judge" else []
    kinds = [name for name, kind in KINDS.items() if (part := part_for(judge, kind)) and name in _weak_kinds(part)]
    return {**({"weak": found} if found else {}), **({"weak_kinds": kinds} if kinds else {})}


def _weak_kinds(judge: Judge) -> frozenset[str]:
    found: frozenset[str] = getattr(judge, "weak_kinds", frozenset())
    return found


def _limited(judges: Mapping[str, Judge]) -> Judge | None:
    """Return the first judge that supports certain languages only; None if all support every language."""
    own = {role: judge for role, judge in judges.items() if role not in SPECIAL.values()}
    return next((judge for judge in each_judge(own.values()) if hasattr(judge, "supports_language")), None)


def _knows(judge: Judge, sample: Sample) -> bool:
    known: Callable[[Sequence[str]], bool] = getattr(judge, "supports_language")  # noqa: B009  not every judge has it
    texts = [sample.user_input, sample.response, *(each.text for each in sample.retrieved_contexts or ())]
    given = [text for text in texts if text is not None and text.strip()]
    return not given or known(given)


def _language_note(intake: Intake, roles: JudgeRoles) -> str:
    judge = _limited(roles.judges)
    if judge is None or not intake.unknown:
        return ""
    which = f"{intake.unknown:,} of {count(intake.read, 'sample')}"
    verb, them = ("is", "it") if intake.unknown == 1 else ("are", "them")
    languages = ", ".join(f"{code} {n:,}" for code, n in sorted(intake.unknown_languages.items(), key=_most_first))
    first = [f"{each:.40}" for each in intake.unknown_first]
    named = ", ".join([*first, "..."] if intake.unknown > len(first) else first)
    return (
        f"{which} ({named}) {verb} in a language that {judge.name} does not support ({languages}). Metrics that it "
        f"judges there are weak, and its agreement with human labels does not cover {them}."
    )


def _most_first(language: tuple[str, int]) -> tuple[int, str]:
    code, samples = language
    return -samples, code


def _limit_note(limit: int | None) -> str:
    return "" if limit is None else f"Only the first {limit:,} records were read (--limit)."
