"""The options, judges, data, metrics and manifest of a run, before its first question."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from merilo.commands.evaluate.options import Model
from merilo.commands.evaluate.selection import Selection, definitions_of, metrics_of, requested, select
from merilo.commands.keywords import part_from
from merilo.commands.option import metric_texts
from merilo.data import check
from merilo.data.language import UNKNOWN, identify_language
from merilo.data.lines import ForeignRecords
from merilo.data.load import load
from merilo.data.problem_report import named_columns, question_advice
from merilo.data.sentences import SPLITTER_ID
from merilo.engine.answer_store import JudgeRoles
from merilo.engine.repeated import (
    MOST_DRAWS,
    draws_for,
    draws_of,
    reasons_of,
    repeated,
    reworded,
    unmeasured,
    wordings_of,
)
from merilo.errors import UsageError
from merilo.judges.routed import INSTRUMENTS, REST, NamedSpec, Server, check_kinds, named_spec, part_for
from merilo.judges.spec import at_server, cross_encoder_from, embedder_from, judges_from
from merilo.judges.splitter import SplitterJudge
from merilo.judging.registry import KINDS
from merilo.judging.rubric import rubric_versions
from merilo.metrics.base import ShownInRun
from merilo.runs.ingest import Intake, take_in
from merilo.runs.manifest import Manifest
from merilo.runs.run_metrics import scales_of
from merilo.runs.shards import Shard
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.commands.evaluate.options import Judges, Options
    from merilo.data.load import Records
    from merilo.data.sample import Dataset, Sample
    from merilo.judges.base import Judge, JudgeLike
    from merilo.metrics.base import Definition, Metric
    from merilo.runs.ingest import UnreadBy
    from merilo.runs.run import Run
    from merilo.runs.store import Store


_ID_FIELDS: Final = {"retrieved_context_ids", "reference_context_ids"}


OWN: Final = "merilo"
INSTALLED: Final = "installed"
"""The values of the option `prompts`."""
_USAGE: Final = ("requests", "cached", "input_tokens", "output_tokens", "cost_usd", "estimated_usd", "seconds")


def checked(options: Options) -> Options:
    """Return the options with a single metric as a list. Raises UsageError for options that cannot be used."""
    if isinstance(options.metrics, str):
        options = replace(options, metrics=metric_texts([options.metrics]))
    if options.metrics is not None and not options.metrics:
        raise UsageError("No metric given. Leave metrics out to compute all that the data and the judge support.")
    if not 1 <= options.draws <= MOST_DRAWS:
        raise UsageError(f"draws must be from 1 to {MOST_DRAWS}, got {options.draws} (--draws).")
    uses_installed_prompts(options)
    _ = options.limits.of_requests, options.limits.budget, options.reading.shard and Shard.parse(options.reading.shard)
    return options


def named_judges(given: Judges) -> list[NamedSpec]:
    """Return the judges that a user wrote: one, a `Model` or a dict of one, a list, or a mapping by kind of question.

    Raises UsageError for a key of the mapping that is not a kind, and for a server that no judge has.
    """
    if check.is_record(given):
        model = part_from(Model, given) if "spec" in given else None
        return [_judge_of_kind(*each) for each in given.items()] if model is None else _judges_at(model)
    if isinstance(given, Model):
        return _judges_at(given)
    if check.is_ordered(given):
        return [named for each in given for named in named_judges(cast("Judges", each))]
    return [named_spec(cast("JudgeLike", given))]


def _judges_at(model: Model) -> list[NamedSpec]:
    server = Server(model.base_url, model.api_key_env, model.judged)
    found = at_server(named_judges(model.spec), server)
    return [each._replace(prompts=model.prompts) for each in found] if model.prompts != OWN else found


def _judge_of_kind(name: str, given: object) -> NamedSpec:
    if name != REST:
        check_kinds(name)
    if isinstance(given, str):
        return NamedSpec(name, given.strip())
    found = named_judges(cast("Judges", given))
    if len(found) != 1:
        raise UsageError(f"The judge of {name!r} is one judge; got {len(found)}.")
    return found[0]._replace(name=name)


def judges_of(options: Options) -> dict[str, Judge]:
    """Return the judge of each role. The roles embedder, similarity and splitter are always present."""
    named = named_judges(options.judge)
    instruments = {kind: NamedSpec(None, "embedded") for kind in INSTRUMENTS}
    for each in named:
        if each.name in INSTRUMENTS:
            if instruments[each.name].name is not None:
                raise UsageError(f"Two models for '{each.name}' questions. Name each kind once.")
            instruments[each.name] = each
    judges = [each for each in named if each.name not in INSTRUMENTS]
    embedder, similarity = instruments.values()
    return {
        "embedder": embedder_from(
            embedder.spec, base_url=embedder.server.base_url, api_key_env=embedder.server.api_key_env
        ),
        "similarity": cross_encoder_from(similarity.spec),
        "splitter": SplitterJudge(),
        **judges_from(judges if judges or not named else [NamedSpec(None, "embedded")]),
    }


def for_one_judge(options: Options, judge: Judge) -> Options:
    """Return the options of an evaluation by this judge, without those that apply to another judge or to data."""
    return replace(options, judge=judge, draws=1, mapping=None, limit=None, language=None)


def usage_of(run: Run) -> dict[str, Any]:  # Any: numbers and nulls
    """Return requests, tokens, cost and seconds of a run."""
    return {name: run.usage.get(name) for name in _USAGE}


def uses_installed_prompts(options: Options) -> bool:
    """Return True if published metrics send the prompts of their package. Raises UsageError for other prompts."""
    found = {each.prompts for each in named_judges(options.judge)}
    for each in found - {OWN, INSTALLED}:
        raise UsageError(f"prompts must be {OWN} or {INSTALLED}, got {each!r} (--prompts).")
    return INSTALLED in found


class Prepared(NamedTuple):
    """The data in the store, the judges and the metrics of a run, before its first question."""

    intake: Intake
    roles: JudgeRoles
    selection: Selection


def dataset_of(data: str | PathLike[str] | Records | ForeignRecords, options: Options) -> Dataset:
    """Return the data, with its judgements if the options name files of them. Raises what `load` raises."""
    reading = options.reading
    if not isinstance(data, ForeignRecords) and (reading.qrels is not None or reading.documents is not None):
        from merilo.data.span_labels import load_judged

        data = load_judged(data, reading.qrels, reading.documents, mapping=options.mapping, language=options.language)
    return load(data, **options.of_records)


async def prepared(dataset: Dataset, store: Store, judges: dict[str, Judge], options: Options) -> Prepared:
    """Read the data into the store and select the metrics that data and judges support.

    Raises DataError and UsageError.
    """
    roles = JudgeRoles(judges)
    unread_by = unread_check(options.metrics, roles)
    shard = None if options.reading.shard is None else Shard.parse(options.reading.shard)
    may_be_computed = _requested_metrics(options.metrics, roles)
    intake = await take_in(
        dataset,
        store,
        skip_invalid=options.reading.skip_invalid,
        unread_by=unread_by,
        shows={text: metric.shows for text, metric in may_be_computed.items() if isinstance(metric, ShownInRun)},
        shard=shard,
        match_ids=any(metric.needs >= _ID_FIELDS for metric in may_be_computed.values()),
    )
    if dataset.columns.unseen:
        names, known = [*dataset.columns.unseen], [*dataset.columns.recognised, *dataset.columns.kept]
        near = get_close_matches(names[0], known, n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"columns: {named_columns(known)}."
        raise UsageError(f"No record has the mapped column {', '.join(map(repr, names))}; {advice}")
    selection = select(options.metrics, intake, roles, lenient=options.lenient)
    draws = draws_for(selection.metrics, roles, options.draws)
    if options.first_draw:
        draws = dict.fromkeys(selection.metrics, options.draws)
    metrics = reworded(selection.metrics) if uses_installed_prompts(options) else selection.metrics
    undefined = {
        text: metric.not_shown(intake.not_shown[text])
        for text, metric in selection.metrics.items()
        if text in intake.not_shown and isinstance(metric, ShownInRun)
    }
    metrics = unmeasured(repeated(metrics, draws, options.first_draw), undefined)
    return Prepared(intake, roles, replace(selection, metrics=metrics))


def _requested_metrics(asked: Sequence[str | Definition] | None, roles: JudgeRoles) -> dict[str, Metric]:
    """Return the metrics that may be computed."""
    given = definitions_of(requested(asked))
    return {text: each for one in given for text, each in metrics_of(one, lambda: roles.named).items()}


def manifest_of(dataset: Dataset, ready: Prepared, options: Options) -> Manifest:
    """Return the manifest of a run: what it evaluates, and with which judges, metrics and rubrics.

    It has no judge if no metric asks a question, and none is left out because the judge is weak at it.
    """
    intake, roles, selection = ready
    first = roles.judges["judge"]
    used = frozenset[str]().union(*(metric.needs for metric in selection.metrics.values()))
    others = {role: judge for role, judge in roles.judgements.items() if judge is not first}
    judges = {"judge": first} | others | roles.special(selection.kinds) if selection.kinds or selection.weak else {}
    return Manifest(
        merilo=version(),
        data=dataset.name,
        fingerprint=intake.fingerprint,
        samples=intake.samples,
        skipped=tuple(intake.skipped),
        metrics={text: metric.version for text, metric in selection.metrics.items()},
        left_out=selection.left_out,
        judges={
            role: {
                "name": judge.name,
                "fingerprint": judge.fingerprint(),
                "rates": judge.agreement_note,
                **_weak(judge, role, ready),
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
                    *dataset.columns.doubts(used, intake.in_some),
                    "" if "user_input" in intake.in_some else question_advice(dataset.columns),
                    dataset.columns.sentence(),
                    intake.note,
                    f"Only the first {options.limit:,} records were read (--limit)." if options.limit else "",
                    _sample_note(dataset.columns.drawn_from, options),
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


def _weak(judge: Judge, role: str, ready: Prepared) -> dict[str, object]:
    """Return what the manifest says of weak metrics, weak kinds and unsupported languages; without empty entries.

    The metrics are recorded with the judge of the role `judge`, whichever role makes them weak.
    """
    selection, unread = ready.selection, ready.intake.unread
    order = dict.fromkeys([*selection.metrics, *selection.composites, *selection.left_out])
    of = {name: part for name, kind in KINDS.items() if (part := part_for(judge, kind))}
    found = {
        "weak": [text for text in order if text in selection.weak and role == "judge"],
        "weak_kinds": [name for name, part in of.items() if name in getattr(part, "weak_kinds", ())],
        "unread": {text: unread[text].record() for text in selection.metrics if text in unread and role == "judge"},
    }
    return {name: value for name, value in found.items() if value}


def _sample_note(of: int, options: Options) -> str:
    size, drawn = options.reading.sample or of, f"(--sample {options.reading.sample} --seed {options.reading.seed})"
    return f"{size:,} of {of:,} records were drawn at random {drawn}." if size < of else ""


# -- languages that a judge does not support -----------------------------------------------------------

_READ_CHARS: Final = 20_000
"""Characters of a text that are read to identify its language."""


def unread_check(asked: Sequence[str | Definition] | None, roles: JudgeRoles) -> UnreadBy | None:
    """Return the function for `take_in` that names, by metric, the judge and the language that it does not support.

    None if all judges support every language. Raises UsageError for a metric that does not exist.
    """
    metrics = _requested_metrics(asked, roles)
    limited: dict[str, Any] = {}  # Any: judges with the optional attributes `languages` and `supports_language`
    for text, metric in metrics.items():
        asks = [
            (kind, role) for kind in sorted(metric.asks, key=lambda kind: kind.kind) for role in sorted(metric.roles)
        ]
        judges = (roles.judge(kind, role) for kind, role in asks)
        if (judge := next((each for each in judges if hasattr(each, "supports_language")), None)) is not None:
            limited[text] = judge
    # Metrics that read the same fields with the same judge are checked once.
    groups: dict[tuple[int, frozenset[str]], list[str]] = {}
    for text, judge in limited.items():
        groups.setdefault((id(judge), metrics[text].needs), []).append(text)

    def unread_by(sample: Sample) -> Mapping[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for (_, fields), texts in groups.items():
            judge = limited[texts[0]]
            language = _unsupported(judge, sample, fields) if fields <= sample.present else None
            found |= dict.fromkeys(texts, (judge.name, language)) if language is not None else {}
        return found

    return unread_by if groups else None


def _unsupported(judge: Any, sample: Sample, fields: frozenset[str]) -> str | None:  # Any: as above
    """Return the language of a sample that the judge does not support, as the user states it or as identified."""
    languages: frozenset[str] = getattr(judge, "languages", frozenset())
    stated = (sample.language or UNKNOWN).replace("_", "-").split("-")[0].lower()
    if languages and stated not in {*languages, UNKNOWN}:
        return sample.language
    own = [getattr(sample, field) for field in ("user_input", "response", "reference") if field in fields]
    lists = [getattr(sample, field) or () for field in ("retrieved_contexts", "reference_contexts") if field in fields]
    texts = [text[:_READ_CHARS] for text in own if text]
    contexts = [each.text[:_READ_CHARS] for contexts in lists for each in contexts]
    others = [code for text in texts if (code := identify_language(text)) not in languages]
    if languages and others:  # an English context does not make a German response readable
        return others[0]
    given = [text for text in (*texts, *contexts) if any(map(str.isalpha, text))]
    if not given or judge.supports_language(given):
        return None
    others = [code for text in given if (code := identify_language(text)) not in languages]
    return others[0] if others else UNKNOWN
