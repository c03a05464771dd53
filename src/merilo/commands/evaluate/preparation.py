"""The options, judges, data, metrics and manifest of a run, before its first question."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from merilo.commands.evaluate.options import Judges, Model, Options
from merilo.commands.keywords import part_from
from merilo.commands.option import metric_texts
from merilo.data import check
from merilo.data.language import UNKNOWN, identify_language
from merilo.data.lines import ForeignRecords
from merilo.data.load import Records, load
from merilo.data.problem_report import named_columns, question_advice, unread_columns
from merilo.data.sample import FIELDS, Dataset, Sample
from merilo.data.sentences import SPLITTER_ID
from merilo.engine.answer_store import JudgeRoles
from merilo.engine.repeated import (
    draws_for,
    draws_of,
    reasons_of,
    repeated,
    reworded,
    unmeasured,
    wordings_of,
)
from merilo.errors import UsageError
from merilo.judges.base import Judge, JudgeLike, decided_kinds, is_weak
from merilo.judges.routed import INSTRUMENTS, REST, NamedSpec, Server, check_kinds, named_spec, part_for
from merilo.judges.spec import at_server, cross_encoder_from, embedder_from, judges_from
from merilo.judges.splitter import SplitterJudge
from merilo.judging.digests import digest_json
from merilo.judging.registry import KINDS
from merilo.judging.rubric import rubric_versions
from merilo.metrics.base import Composite, CompositeOfRun, Definition, Metric, NeedsLibrary, ShownInRun, is_composite
from merilo.metrics.registry import ALL, all_metrics, core_metrics, parse_metric
from merilo.metrics.text import metric_text
from merilo.runs.ingest import Intake, take_in
from merilo.runs.manifest import Manifest
from merilo.runs.run_metrics import WEAK_LEFT_OUT, scales_of
from merilo.runs.seal import file_digest_of
from merilo.runs.shards import Shard
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from os import PathLike

    from merilo.judging.questions import Question
    from merilo.runs.ingest import UnreadBy
    from merilo.runs.run import Run
    from merilo.runs.store import Store


_OF_RESULTS: Final = ("mapping", "language", "cluster", "limit", "draws", "first_draw", "lenient")
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


def inputs_digest(data: object, judges: Mapping[str, Judge], options: Options) -> str | None:
    """Return a digest of all that the results and the cost of a run depend on, with the bytes of its files.

    None if the data is not a file, or if an option is an object that only this process knows.
    """
    given: tuple[object, ...] = data, options.reading.qrels, options.reading.documents
    files = [str(each) for each in given if isinstance(each, str) or hasattr(each, "__fspath__")]
    asked = options.metrics
    if len(files) < sum(each is not None for each in given) or not all(Path(each).is_file() for each in files):
        return None
    if asked is not None and not all(isinstance(each, str) for each in asked):
        return None
    metrics = _requested_metrics(asked, JudgeRoles(judges))
    inputs = {
        "merilo": [version(), SPLITTER_ID],
        "files": [[each, file_digest_of(Path(each))] for each in files],
        "metrics": [asked, {text: metric.version for text, metric in metrics.items()}],
        "judges": {role: [judge.name, judge.fingerprint()] for role, judge in judges.items()},
        "prompts": uses_installed_prompts(options),
        "reading": {name: str(value) for name, value in vars(options.reading).items()},
        "options": [str(options.limits.unanswered), *(getattr(options, name) for name in _OF_RESULTS)],
    }
    try:
        return digest_json(inputs).hex()
    except TypeError:
        return None


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
        measures=options.reading.measures or (),
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
                    dataset.columns.sentence(intake.measures),
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
        measures=intake.measures,
        undefined=reasons_of(selection.metrics),
    )


def _weak(judge: Judge, role: str, ready: Prepared) -> dict[str, object]:
    """Return what the manifest holds on weak metrics, weak kinds and unsupported languages; without empty entries.

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


# -- the metrics of a run ----------------------------------------------------------------------------------

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Selection:
    """The metrics of a run by text, its composites, and the metrics that are left out with the reason."""

    metrics: Mapping[str, Metric]
    left_out: Mapping[str, str]
    composites: Mapping[str, Chosen] = field(default_factory=dict[str, "Chosen"])
    weak: frozenset[str] = frozenset()
    """The metrics and composites that are weak with their judge, including those that are left out for it."""

    @property
    def kinds(self) -> frozenset[type[Question[Any]]]:
        """The types of all questions that the metrics may ask."""
        return frozenset(kind for metric in self.metrics.values() for kind in metric.asks)


class Chosen(NamedTuple):
    """A composite and the texts of its parts, in its order."""

    composite: Composite
    parts: tuple[str, ...]


def select(
    asked: Sequence[str | Definition] | None, intake: Intake, roles: JudgeRoles, *, lenient: bool = False
) -> Selection:
    """Return the metrics to compute. The parts of a composite are among them, each once.

    Of the core set and of `all`, metrics that are weak with their judge are left out.

    Raises UsageError if a requested metric cannot be computed (unless `lenient`), or if none is left.
    """
    metrics: dict[str, Metric] = {}
    composites: dict[str, Chosen] = {}
    left_out: dict[str, str] = {}
    weak = set[str]()
    named_by_user = 0 if asked is None else len([each for each in asked if each != ALL])
    wanted = definitions_of(requested(asked, intake.in_some))
    for place, given in enumerate(wanted, start=named_by_user - len(wanted)):
        named = place >= 0 and not lenient
        parts = metrics_of(given, lambda: roles.named)
        obstacles = (_obstacle(metric, intake, roles) for metric in parts.values())
        reason = next((reason for reason in obstacles if reason is not None), None)
        text = metric_text(given) if is_composite(given) else next(iter(parts))
        if reason is None:
            found = {part for part, metric in parts.items() if _is_weak(metric, roles)}
            weak |= {*found, text} if found else found
            if found and place < 0:
                left_out[text] = f"{WEAK_LEFT_OUT} (--metrics {text})"
                continue
            metrics |= {part: metrics.get(part, metric) for part, metric in parts.items()}
            if is_composite(given):
                composites[text] = Chosen(given, tuple(parts))
        elif named:
            raise UsageError(_refusal(text, parts, reason, intake))
        else:
            left_out[text] = reason
    if not metrics and asked is None:  # such as questions with responses alone
        return select((ALL,), intake, roles, lenient=lenient)
    if not metrics:  # to compute weak metrics silently would mislead
        why = (
            f"The only metrics that this data supports are weak with the {roles.judges['judge'].name} judge (not "
            f"clearly better than chance): {', '.join(sorted(weak))}. Use another judge (--judge openai:MODEL), or run "
            f"them by name (--metrics {','.join(sorted(weak))})."
            if weak
            else f"No metric can be computed on this data ({_reasons(left_out)})."
        )
        raise UsageError(why + _unread(intake, frozenset(FIELDS) - intake.in_some))
    return Selection(metrics, left_out, composites, frozenset(weak))


def requested(
    asked: Sequence[str | Definition] | None, fields: Collection[str] | None = None
) -> list[str | Definition]:
    """Return the metrics to compute: the core set if `asked` is None; first all others if `all` is among them.

    `fields`: the fields of the data, which decide what the core set is. None: unknown, so all that it may be.
    """
    if asked is None:
        return [
            *dict.fromkeys(
                (*core_metrics(("response",)), *core_metrics(())) if fields is None else core_metrics(fields)
            )
        ]
    named = [each for each in asked if each != ALL]
    return [*(name for name in all_metrics() if name not in named), *named] if ALL in asked else named


def _refusal(text: str, parts: Mapping[str, Metric], reason: str, intake: Intake) -> str:
    missing = frozenset[str]().union(*(metric.needs for metric in parts.values())) - intake.in_some
    if not missing:
        return f"{text} cannot be computed: {reason}."
    return f"{text} needs {' and '.join(sorted(missing))}.{_unread(intake, missing)}"


def _unread(intake: Intake, missing: frozenset[str]) -> str:
    """Return sentences, each after a space, on columns that may have the missing fields; empty if there are none.

    Without an unread column, a doubtful reading of any other one is stated.
    """
    columns = intake.columns
    empty = [repr(column) for column, name in columns.recognised.items() if name in missing]
    unread = unread_columns(columns, missing)
    said = (
        f"No record has a value in {', '.join(empty)}." if empty else "",
        *columns.doubts(missing if unread else intake.in_some, intake.in_some),
        unread,
        columns.note() if columns.note is not None and "retrieved_contexts" in missing else "",
    )
    return "".join(f" {each}" for each in said if each)


def _is_weak(metric: Metric, roles: JudgeRoles) -> bool:
    """Return True if a judge is weak in a decision of this metric."""
    kinds = decided_kinds(metric)
    return any(is_weak(roles.judge(kind, role), kind, metric.name) for role in metric.roles for kind in kinds)


def definitions_of(asked: Sequence[str | Definition]) -> list[Definition]:
    """Return what was asked for, each composite made of the other metrics that were asked for if it takes those."""
    given = [parse_metric(each) if isinstance(each, str) else each for each in asked]
    metrics = [metric_text(each) for each in given if not is_composite(each)]
    return [each.of_run(metrics) if isinstance(each, CompositeOfRun) else each for each in given]


def _reasons(left_out: Mapping[str, str]) -> str:
    """Return the reasons why metrics are left out, each once with its first metrics."""
    metrics: dict[str, list[str]] = {}
    for text, reason in left_out.items():
        metrics.setdefault(reason, []).append(text)
    return "; ".join(
        f"{', '.join(texts[:_NAMED])}{f' and {len(texts) - _NAMED} more' * (len(texts) > _NAMED)}: {reason}"
        for reason, texts in metrics.items()
    )


def metrics_of(given: Definition, judges: Callable[[], Sequence[str]]) -> dict[str, Metric]:
    """Return by text the metrics that are computed for a definition: itself, or the parts of a composite.

    `judges` returns the names of the run's judges, for metrics that ask several.

    Raises UsageError for a part that is itself a composite.
    """
    if not is_composite(given):
        metric = cast("Metric", given)  # anything but a composite is a metric
        bind: Callable[[Sequence[str]], Metric] | None = getattr(metric, "for_judges", None)  # of several judges
        metric = metric if bind is None else bind(judges())
        return {metric_text(metric): metric}
    found: dict[str, Metric] = {}
    for text in given.parts:
        part = parse_metric(text)
        if is_composite(part):
            raise UsageError(f"{given.name} combines {text}, which has no value for a sample. Parts must be metrics.")
        found |= metrics_of(part, judges)
    return found


def missing_fields(metric: Metric, in_some: frozenset[str]) -> str | None:
    """Return why a metric cannot be computed on data with these fields; None if it can."""
    missing = sorted(metric.needs - in_some)
    return f"no sample has {' or '.join(missing)}" if missing else None


def _obstacle(metric: Metric, intake: Intake, roles: JudgeRoles) -> str | None:
    if isinstance(metric, NeedsLibrary):
        metric.load_library()
    if (missing := missing_fields(metric, intake.in_some)) is not None:
        return missing
    lacking = (roles.lacking(metric.asks, role) for role in sorted(metric.roles))
    return next((reason for reason in lacking if reason is not None), None)
