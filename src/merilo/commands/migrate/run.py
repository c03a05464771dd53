"""Recognises a result or a script of another package, and recomputes a sample of a result's rows."""

from __future__ import annotations

import json
import random
import shlex
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.evaluate.selection import NothingToCompute
from merilo.commands.imports.problems import refused
from merilo.commands.imports.rows import score_rows
from merilo.commands.migrate.causes import causes_of
from merilo.commands.migrate.result import (
    SAMPLE,
    SEED,
    TOLERANCE,
    MigratedMetric,
    Pair,
    ResultMigration,
    ScriptMigration,
)
from merilo.commands.migrate.script import UNREAD_ADDRESS, read_script
from merilo.commands.migrate.source import matched, source_of_columns, stated_source
from merilo.data import check
from merilo.data.sample import Dataset, Sample
from merilo.engine.answer_store import SPECIAL
from merilo.errors import UsageError
from merilo.judging.kinds.embeddings import Embeddings
from merilo.metrics.lineage.same_verdicts import FORMS, SameVerdicts
from merilo.metrics.registry import known_metric, metric_text
from merilo.runs.publish import write_file

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from merilo.commands.evaluate.options import Options
    from merilo.commands.imports.tables import Rows
    from merilo.commands.migrate.result import Migration
    from merilo.commands.migrate.source import Match, Source
    from merilo.data.sample import BadRecord
    from merilo.runs.run import Run

_SCRIPTS: Final = (".py", ".ipynb")
_MODEL: Final = "openai:MODEL"
"""Stands for a model that the user has to name."""
_OLD, _NEW = "old", "new"


@dataclass(frozen=True, kw_only=True)
class MigrationRequest:
    """The options of a migration that are not those of an evaluation."""

    release: str | None = None
    """The release of the package, as the user states it."""
    sample: int = SAMPLE
    seed: int = SEED
    tolerance: float = TOLERANCE
    same_verdicts: bool = False
    """Compute each definition's formula over the verdicts of merilo's own metrics."""
    in_order: bool = False
    save: str | PathLike[str] | None = None
    """A file for all rows as samples, with their old scores in the metadata."""


async def run_migration(path: str | PathLike[str], wanted: MigrationRequest, options: Options) -> Migration:
    """Return the migration of a result, or of a script, which is read and never run.

    Raises DataError for a file that cannot be read, UsageError for one that no known package wrote.
    """
    if Path(path).suffix in _SCRIPTS:
        return _script(Path(path), wanted)
    if wanted.sample < 0:
        raise UsageError(f"The number of rows to recompute must be 0 or more, got {wanted.sample}.")
    if not 0 <= wanted.tolerance < float("inf"):
        raise UsageError(f"The tolerance must be 0 or more, got {wanted.tolerance}.")
    return await _result(Path(path), wanted, options)


# -- a result ----------------------------------------------------------------------------------------------


async def _result(path: Path, wanted: MigrationRequest, options: Options) -> ResultMigration:
    rows = score_rows(path, scores={}, mapping=options.mapping, in_order=wanted.in_order)
    source = _source_of(rows, path, wanted.release)
    samples = _samples(rows)
    scores = rows.scores()
    if rows.problems:
        raise refused(rows.problems, name=rows.dataset.name, records=len(samples))
    matches = [matched(column, source) for column in rows.offered]
    known = [match for match in matches if match.definition is not None]
    places = _places(scores, [match.name for match in known], wanted)
    if wanted.save is not None:
        _save(Path(wanted.save), samples, scores)
    computed = {match.name: _to_compute(match, same_verdicts=wanted.same_verdicts) for match in known}
    found = await _recomputed(path, [samples[place] for place in places], computed.values(), options)
    found = replace(found, judges=rows.judges)
    metrics = tuple(
        _migrated(match, computed[match.name], [scores[match.name][place] for place in places], found, wanted.tolerance)
        for match in known
    )
    return ResultMigration(
        file=str(path),
        source=source,
        rows=len(samples),
        sampled=len(places),
        seed=wanted.seed,
        metrics=metrics,
        unmatched=tuple(match for match in matches if match.definition is None),
        judge=found.judge,
        run=None if found.run is None else found.run.path,
        commands=_commands(path, wanted.save, source, [str(match.definition) for match in known], options),
        notes=tuple(filter(None, (source.caveat, rows.note, found.stopped))),
    )


def _source_of(rows: Rows, path: Path, release: str | None) -> Source:
    """Return the source of a result. Raises UsageError if neither the file nor the user states it."""
    by_file = stated_source(rows.package) if rows.package else source_of_columns(rows.columns)
    if release is not None:
        return stated_source(release, None if by_file is None else by_file.package)
    if by_file is None:
        raise UsageError(f"{path.name} is not a known result; state its package and release (--version ragas-0.4.3).")
    return by_file


def _samples(rows: Rows) -> list[Sample]:
    samples = [*rows.dataset]
    bad = [problem for each in samples if not isinstance(each, Sample) for problem in each.problems]
    if bad:
        raise refused([*bad, *rows.problems], name=rows.dataset.name, records=len(samples))
    return [each for each in samples if isinstance(each, Sample)]


def _places(scores: Mapping[str, array[float]], columns: Sequence[str], wanted: MigrationRequest) -> list[int]:
    """Return the rows to recompute, at random by the seed, in the file's order; those without any score come last."""
    rows = max(map(len, scores.values()), default=0)
    order = random.Random(wanted.seed).sample(range(rows), rows)  # noqa: S311  no secret
    order.sort(key=lambda place: all(isnan(scores[column][place]) for column in columns))
    return sorted(order[: wanted.sample]) if columns else []


def _save(path: Path, samples: Sequence[Sample], scores: Mapping[str, array[float]]) -> None:
    lines: list[str] = []
    for place, sample in enumerate(samples):
        old = {column: values[place] for column, values in scores.items() if not isnan(values[place])}
        record = sample.to_record()
        record["metadata"] = {**sample.metadata, "old_scores": old}
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    try:
        write_file(path, "".join(lines))
    except OSError as error:
        raise UsageError(f"Cannot write {path} ({error.strerror or error}).") from None


def _to_compute(match: Match, *, same_verdicts: bool) -> str:
    """Return the metric to compute: the definition, or its formula over merilo's verdicts.

    If there is no formula for a release, the one of another release of the package is used.
    """
    definition = str(match.definition)
    if not same_verdicts:
        return definition
    system, _, name = definition.partition(":")
    package = system.partition("-")[0]
    alike = [form for form in FORMS if form.startswith(package) and form.partition(":")[2] == name]
    form = definition if definition in FORMS else next(reversed(alike), None)
    return definition if form is None else metric_text(SameVerdicts(of=form))


@dataclass(frozen=True, slots=True)
class _Recomputed:
    """The run of the sampled rows."""

    ids: tuple[str, ...]
    run: Run | None = None
    """None if nothing was computed."""
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    outcomes: Mapping[tuple[str, str], tuple[float | None, str]] = field(
        default_factory=dict[tuple[str, str], tuple[float | None, str]]
    )
    """Metric and sample → the score, or None with the reason."""
    judges: Mapping[str, str] = field(default_factory=dict[str, str])
    """Column of the file → the model that judged there."""

    @property
    def judge(self) -> str:
        """The name of the judge; empty if nothing was computed."""
        return "" if self.run is None else str(self.run.manifest.judges.get("judge", {}).get("name", ""))

    @property
    def stopped(self) -> str:
        """The limit that stopped the run; empty if it is complete."""
        return "" if self.run is None else str(self.run.usage.get("stopped") or "")


async def _recomputed(path: Path, samples: Sequence[Sample], metrics: Iterable[str], options: Options) -> _Recomputed:
    """Evaluate the metrics that data and judge support over the samples."""
    names = list(dict.fromkeys(metrics))
    if not (samples and names):
        return _Recomputed((), left_out=dict.fromkeys(names, "no row was recomputed"))
    ids = tuple(sample.id for sample in samples)
    records: list[Sample | BadRecord] = [*samples]
    dataset = Dataset(f"{path.stem}-sample", lambda: iter(records))
    wanted = replace(options, metrics=names, lenient=True, mapping=None, limit=None)
    try:
        run = await run_evaluation(dataset, wanted)
    except NothingToCompute as error:
        return _Recomputed(ids, left_out=error.left_out)
    return _Recomputed(ids, run, run.manifest.left_out, _outcomes(run))


def _outcomes(run: Run) -> dict[tuple[str, str], tuple[float | None, str]]:
    found: dict[tuple[str, str], tuple[float | None, str]] = {}
    for record in run.records():
        reason = record.get("reason", "")
        error = record.get("error")
        if error is not None:
            reason = f"failed: {error['message']}"
        score = record.get("value", 0.0) if record["outcome"] == "score" else None
        found[record["metric"], record["sample"]] = (score, reason)
    return found


def _migrated(
    match: Match, metric: str, old_scores: Sequence[float], found: _Recomputed, tolerance: float
) -> MigratedMetric:
    """Return the old and new scores of one metric."""
    if found.run is None or metric not in found.run.manifest.metrics:
        return MigratedMetric(
            match, None, found.left_out.get(metric, "not computed"), old_judge=found.judges.get(match.name, "")
        )
    pairs: list[Pair] = []
    for sample, old in zip(found.ids, old_scores, strict=True):
        new, reason = found.outcomes.get((metric, sample), (None, "the run was stopped before this row"))
        pairs.append(Pair(sample, None if isnan(old) else old, new, reason))
    migrated = MigratedMetric(match, metric, "", tuple(pairs), tolerance, found.judges.get(match.name, ""))
    return replace(migrated, causes=causes_of(migrated, found.judge))


# -- a script ----------------------------------------------------------------------------------------------


def _script(path: Path, wanted: MigrationRequest) -> ScriptMigration:
    facts = read_script(path, wanted.release)
    definitions = [str(each.match.definition) for each in facts.metrics if each.match.definition is not None]
    notes = [facts.source.caveat]
    if not facts.metrics:
        notes.append("The script names no metric that can be read from its text.")
    if facts.data is None:
        notes.append("The script reads no data file that can be read from its text; write your file for DATA.")
    commands: dict[str, str] = {}
    if definitions:
        judges = [] if facts.judge is None else [facts.judge]
        words = _run_words(facts.data or "DATA", definitions, judges, facts.embedder)
        for option, address in (("--base-url", facts.base_url), ("--embedder-base-url", facts.embedder_base_url)):
            if address is not None and ("--judge" if option == "--base-url" else "--embedder") in words:
                words += [option, address]
        commands["evaluate"] = shlex.join(words)
    if UNREAD_ADDRESS in (facts.base_url, facts.embedder_base_url):
        notes.append(f"The script computes the address of a server; write it for {UNREAD_ADDRESS}.")
    return ScriptMigration(str(path), facts, commands, tuple(filter(None, notes)))


# -- commands ----------------------------------------------------------------------------------------------


def _commands(
    path: Path, save: str | PathLike[str] | None, source: Source, definitions: Sequence[str], options: Options
) -> dict[str, str]:
    """Return the commands that evaluate all rows, import the old scores and compare both; none without definitions."""
    if not definitions:
        return {}
    runs, found = Path("runs"), dict[str, str]()
    data = str(path) if source.package == "ragas" else save  # merilo run reads no DeepEval or TruLens files
    if data is None:
        data = "samples.jsonl"
        found["write the rows as samples"] = shlex.join(
            ["merilo", "migrate", str(path), "--sample", "0", "--save", data]
        )
    judges: list[object] = [*options.judge] if check.is_list(options.judge) else [options.judge]
    named = [each for each in judges if isinstance(each, str) and each != "embedded"]
    embedder = options.embedder if isinstance(options.embedder, str) and options.embedder != "embedded" else None
    release = source.releases if source.stated else source.system.partition("-")[2]
    stated = f"{source.package}-{release}" if release else source.package
    address = [] if options.base_url is None else ["--base-url", options.base_url]
    words = [*_run_words(str(data), definitions, named, embedder), *address, "--out", str(runs / _NEW)]
    found["evaluate all rows"] = shlex.join(words)
    imported = ["merilo", "import", str(path), "--source", stated, "--out", str(runs / _OLD)]
    found["import the old scores"] = shlex.join(imported)
    found["compare them"] = shlex.join(["merilo", "compare", str(runs / _OLD), str(runs / _NEW)])
    return found


def _run_words(data: str, definitions: Sequence[str], judges: Sequence[str], embedder: str | None) -> list[str]:
    """Return the command that computes the definitions; a model that is not known is left for the user to write."""
    asked = {kind for each in definitions if (metric := known_metric(each)) is not None for kind in metric.asks}
    words = ["merilo", "run", data, "--metrics", ",".join(definitions)]
    if asked - SPECIAL.keys():
        words += [word for judge in judges or [_MODEL] for word in ("--judge", judge)]
    if Embeddings in asked:
        words += ["--embedder", embedder or _MODEL]
    return words
