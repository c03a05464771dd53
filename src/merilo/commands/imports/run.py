"""Import of scores that another tool computed as a run, without a judge."""

from __future__ import annotations

import re
import time
import tomllib
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.commands.imports.tables import Rows, refused, score_rows
from merilo.data.measures import measure_columns
from merilo.data.remote import refuse_url
from merilo.data.sentences import SPLITTER_ID
from merilo.errors import DataError, UsageError
from merilo.metrics.base import Score, Undefined
from merilo.metrics.registry import known_definition, known_metric, systems
from merilo.metrics.text import FOREIGN, metric_text
from merilo.results.summary import Tally
from merilo.runs.clusters import cluster_numbers, clusters_by_sample
from merilo.runs.directory import built, free_directory
from merilo.runs.files import OUTCOMES, STORE, part_of
from merilo.runs.ingest import Intake, take_in
from merilo.runs.manifest import Manifest
from merilo.runs.outcomes import Result
from merilo.runs.run import UNSPENT, Run, publish_new
from merilo.runs.run_metrics import Scale, scale_of
from merilo.runs.store import Store
from merilo.version import version

if TYPE_CHECKING:
    from array import array
    from collections.abc import Mapping, Sequence
    from os import PathLike


NOT_SCORED: Final = "not scored there"  # stored in runs: an import repeated into its directory must equal the first
_UNIT: Final = (0.0, 1.0)
_ROUNDING: Final = 1e-9
"""Largest distance of a score from its range that counts as rounding: a cosine may be 1.0000000000000002."""
_NOT_IN_NAMES: Final = re.compile(r"[^\w.:/+-]+")


@dataclass(frozen=True, kw_only=True)
class ImportRequest:
    """The options of an import of scores."""

    id: str | None = None
    """The column with the sample ids. None: `id` or the tool's own name for it, otherwise numbers from 1."""
    scores: Mapping[str, tuple[float, float] | None] = field(default_factory=dict[str, "tuple[float, float] | None"])
    """The columns of scores with their ranges, whose ends may be infinite. A range of None is 0 to 1."""
    lower_is_better: Sequence[str] = ()
    """Columns of scores where lower is better."""
    mapping: Mapping[str, str] | None = None
    """Column → field of the sample, as in `merilo.load`."""
    cluster: str | None = None
    source: str | None = None
    """The package and release that computed the scores, such as `ragas-0.4.3`; its definitions are recorded."""
    out: str | PathLike[str] | None = None
    measures: Sequence[str] = ()
    """Columns of measures, as `COLUMN`, `COLUMN=UNIT` or `COLUMN=higher`."""


async def run_import(source: str | PathLike[str], wanted: ImportRequest) -> Run:
    """Import scores that another tool computed as a run. Asks no judge.

    A sample without a score ("", null, NaN) is undefined: "not scored there". The metrics are called `foreign:` and
    the name of their column. Raises DataError if the file cannot be read, a score is not a number or is outside its
    range, or scores may be in the wrong rows; UsageError if a column does not exist, or a range is needed; RunError if
    the directory cannot be used.
    """
    for column, span in wanted.scores.items():
        if span is not None and (isnan(span[0]) or isnan(span[1]) or not span[0] < span[1]):
            raise UsageError(f"The range of {column!r} needs a minimum below its maximum, got {span[0]} and {span[1]}.")
    stated = None if wanted.source is None else stated_source(wanted.source)
    ordered = stated is not None and stated.keeps_order
    rows = score_rows(
        source,
        id=wanted.id,
        scores=wanted.scores,
        mapping=wanted.mapping,
        ordered=ordered,
        measures=measure_columns(wanted.measures),
    )
    unknown = [name for name in wanted.lower_is_better if name not in wanted.scores and name not in rows.offered]
    if unknown:
        there = ", ".join(rows.offered)
        raise UsageError(f"--lower-is-better: no column of scores {unknown[0]!r}; there are {there}.")
    refuse_url(wanted.out)
    target = free_directory(rows.dataset.name) if wanted.out is None else Path(wanted.out)
    with built(target) as path, closing(Store.open(path / STORE, create=True)) as store:
        await _bring_in(path, store, rows, wanted, stated)
    return Run.open(target)


async def _bring_in(path: Path, store: Store, rows: Rows, wanted: ImportRequest, stated: Source | None) -> None:
    began = time.monotonic()
    try:
        intake = await take_in(rows.dataset, store, skip_invalid=False, measures=wanted.measures)
    except DataError as error:
        if not error.problems:
            raise
        problems = [*error.problems, *rows.scores.problems]
        raise refused(problems, name=rows.dataset.name, records=len(rows.scores.places)) from error
    if rows.scores.problems:
        raise refused(rows.scores.problems, name=rows.dataset.name, records=len(rows.scores.places))
    foreign = [
        each
        for column, values in rows.scores.values.items()
        if (each := _foreign(column, values, rows, wanted, stated)) is not None
    ]
    if not foreign:
        raise UsageError(
            f"{rows.dataset.name} has no column of scores from 0 to 1. Name its columns of scores with --score."
        )
    manifest = _manifest(rows, intake, foreign, wanted, stated)
    store.accept_samples()
    if wanted.cluster is not None:
        clusters_by_sample(store, wanted.cluster)
    tallies = [Tally(each.scale.span, each.text) for each in foreign]
    clusters = cluster_numbers(store, wanted.cluster)
    with part_of(path / OUTCOMES).open("w", encoding="utf-8", errors="replace", newline="\n") as out:
        for place, sample in enumerate(store.sample_ids()):
            number = next(clusters)
            for each, tally in zip(foreign, tallies, strict=True):
                value = each.values[place]
                outcome = Undefined(NOT_SCORED) if isnan(value) else Score(value)
                tally.add(outcome, number)
                out.write(Result(sample, each.text, outcome).line())
    aggregates = [tally.aggregate().to_fields() for tally in tallies]
    summary = {"complete": True, "samples": intake.samples, "metrics": aggregates}
    usage: dict[str, object] = {**UNSPENT, "seconds": round(time.monotonic() - began, 3), "stopped": None}
    publish_new(path, manifest, summary, usage, store)


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A metric of another tool with one value per sample, NaN if there is none."""

    column: str
    text: str
    values: array[float]
    scale: Scale
    definition: str | None
    """The published definition that computes it, if the source is stated and has one here."""


def _foreign(
    column: str, values: array[float], rows: Rows, wanted: ImportRequest, stated: Source | None
) -> _Foreign | None:
    """Return the metric of a column; None for a column that was not named and has values outside 0 to 1.

    Raises UsageError if a named column needs a range, DataError if a value is outside the given range.
    """
    definition = None if stated is None else matched(column, stated).definition
    known = None if definition is None else known_metric(definition)
    span = wanted.scores.get(column) or (_UNIT if known is None else scale_of(known).span)
    _clamp(values, span)
    scored = [value for value in values if not isnan(value)]
    low, high = min(scored, default=0.0), max(scored, default=0.0)
    if not (span[0] <= low and high <= span[1]):
        if column not in wanted.scores:
            rows.left_out[column] = (
                f"its values go from {low:g} to {high:g}; name it: --score '{column}=LOW..HIGH' or --measure '{column}'"
            )
            return None
        if wanted.scores[column] is None:
            raise UsageError(
                f"The scores in {column!r} go from {low:g} to {high:g}, so their range is needed: "
                f"--score '{column}=LOW..HIGH', such as 1..5 (scores={{{column!r}: (1, 5)}})."
            )
        raise DataError.of(rows.scores.outside(column, span))
    lower = column in wanted.lower_is_better or column in rows.lower_is_better
    lower = lower or (known is not None and not known.higher_is_better)
    text = FOREIGN + (_NOT_IN_NAMES.sub("_", column).strip("_") or "score")
    return _Foreign(column, text, values, Scale(span, higher_is_better=not lower), definition)


def _clamp(values: array[float], span: tuple[float, float]) -> None:
    """Replace values that rounding put outside the range by its nearest end."""
    low, high = span
    for place, value in enumerate(values):
        if low - _ROUNDING <= value < low:
            values[place] = low
        elif high < value <= high + _ROUNDING:
            values[place] = high


def _manifest(
    rows: Rows, intake: Intake, foreign: Sequence[_Foreign], wanted: ImportRequest, stated: Source | None
) -> Manifest:
    texts = [each.text for each in foreign]
    if twice := next((each for each in foreign if texts.count(each.text) > 1), None):
        raise UsageError(f"Several columns of scores would be named {twice.text}. Rename {twice.column!r}.")
    # The notes are part of the sealed results: new wording would make a repeated import differ from the first.
    renamed = [f"{each.text} is {each.column!r} there" for each in foreign if each.text != FOREIGN + each.column]
    lower = [each.column for each in foreign if not each.scale.higher_is_better]
    notes = [
        rows.dataset.columns.sentence(intake.measures),
        *(f"Not read: {column}: {why}." for column, why in rows.left_out.items()),
        f"{'; '.join(renamed)}." if renamed else "",
        f"A lower value is the better one of {', '.join(lower)}." if lower else "",
        *(() if stated is None else _source_notes(stated, foreign)),
    ]
    return Manifest(
        merilo=version(),
        data=rows.dataset.name,
        fingerprint=intake.fingerprint,
        samples=intake.samples,
        skipped=(),
        metrics=dict.fromkeys(texts, 1),
        left_out=rows.left_out,
        judges={},
        splitter=SPLITTER_ID,
        notes=tuple(filter(None, notes)),
        scales={each.text: each.scale.record() for each in foreign},
        cluster=wanted.cluster,
        measures=intake.measures,
        origin=rows.origin,
        source="" if stated is None else stated.title,
        definitions={each.text: each.definition for each in foreign if each.definition is not None},
    )


def _source_notes(stated: Source, foreign: Sequence[_Foreign]) -> Sequence[str]:
    """Return the definitions that the scores count as, and the reason for each that has none."""
    known = [f"{each.text} as {each.definition}" for each in foreign if each.definition is not None]
    others = [(each.text, matched(each.column, stated).reason) for each in foreign if each.definition is None]
    return (
        f"Comparable, since the source is stated as {stated.title}: {', '.join(known)}." if known else "",
        *(f"No definition for {text}: {reason}." for text, reason in others),
        stated.caveat,
    )


# -- the stated source --------------------------------------------------------------------------------
# `upstream.toml` holds the facts; nothing here imports another package or reads a file of the user.

_STATED: Final = re.compile(r"(?P<package>[a-z]++)(?:[\s=:@v-]*+(?P<release>\d++(?:\.\d++)*+)\S*)?", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+")
_WORD_END: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SUFFIX: Final = re.compile(r"(?:(?<!\s)\s++)?+[\[(](?:g-?eval|dag|conversational g-?eval)[\])]$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Source:
    """A package, its release as far as known, and the system of definitions that stands for the release."""

    package: str
    """`ragas`, `deepeval` or `trulens`."""
    system: str
    """The beginning of the names of its definitions, such as `ragas-0.4.3`."""
    releases: str
    """The release as stated; empty if the user states none."""

    @property
    def title(self) -> str:
        """The package's name with its releases, for users."""
        return f"{_facts()[self.package]['title']} {self.releases}".rstrip()

    @property
    def keeps_order(self) -> bool:
        """True if the release is known to leave the scores in their rows although some failed."""
        return self.package == "ragas" and _numbers(self.releases) >= (0, 1, 10)

    @property
    def caveat(self) -> str:
        """A sentence if the definitions may be those of another release; otherwise empty."""
        if "-" not in self.system:
            return ""
        if not self.releases:
            return f"The release is not stated; {self.system} is used. State it with --source {self.system}."
        row = _row_of(self.package, _numbers(self.releases))
        if _numbers(self.releases) >= _numbers(str(row["since"])):
            return ""
        return f"merilo has no definitions of {self.title}; {self.system} has the nearest ones."


class Match(NamedTuple):
    """The canonical text of the definition here that matches a metric of another package; without one, the reason."""

    definition: str | None
    reason: str = ""


def stated_source(text: str) -> Source:
    """Return the source that a user states: `ragas-0.4.3`, `ragas==0.1.9`, `deepeval`.

    Raises UsageError for anything else.
    """
    found = _STATED.fullmatch(text.strip())
    name = "" if found is None else found["package"].lower()
    if found is None or name not in _facts():
        raise UsageError(f"No known source {text!r}; write {', '.join(_facts())}, with a release: ragas-0.4.3.")
    release: str = found["release"] or ""
    if not release and len(_facts()[name]["releases"]) > 1:
        newest = max((system for system in systems() if system.startswith(f"{name}-")), key=_numbers)
        raise UsageError(f"Name the release of {_facts()[name]['title']}, such as {newest}.")
    system = str(_row_of(name, _numbers(release))["system"])
    return Source(name, system, release)


def matched(name: str, source: Source) -> Match:
    """Return the definition of a metric of this source."""
    facts = _facts()[source.package]
    base, bracket, rest = name.partition("(")
    plain = _snake_case(_SUFFIX.sub("", name) if source.package == "deepeval" else base)
    if source.package == "deepeval" and _SUFFIX.search(name):
        return Match(None, facts["missing"]["g_eval"])
    known: str = facts["names"].get(base, facts["names"].get(plain, plain))
    parameters = f"{bracket}{rest}" if source.package == "ragas" else ""
    for candidate in (known, plain):
        found = known_definition(f"{source.system}:{candidate}{parameters}")
        if found is not None:
            return Match(metric_text(found))
    if plain in facts["missing"]:
        return Match(None, facts["missing"][plain])
    others = [system for system in systems() if system.startswith(source.package)]
    near = [f"{system}:{known}" for system in others if known_definition(f"{system}:{known}") is not None]
    also = f"; {max(near, key=_numbers)} is of another release" if near else ""
    return Match(None, f"merilo has no definition of it among those of {source.system}{also}")


def _snake_case(name: str) -> str:
    """Return a class or display name in snake case, without `Metric` at its end."""
    return _WORD_END.sub("_", name.strip()).replace(" ", "_").replace("-", "_").lower().removesuffix("_metric")


@cache
def _facts() -> dict[str, dict[str, Any]]:  # Any: a file of ours
    return tomllib.loads(files("merilo.commands.imports").joinpath("upstream.toml").read_text("utf-8"))


def _row_of(package: str, release: tuple[int, ...]) -> Mapping[str, Any]:  # Any: as above
    rows: list[Mapping[str, Any]] = _facts()[package]["releases"]
    return next((row for row in rows if release and "before" in row and release < _numbers(row["before"])), rows[-1])


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in _NUMBER.findall(release))
