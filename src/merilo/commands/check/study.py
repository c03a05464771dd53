"""Judges compared with each other and with people: judges of runs, or files of grades of queries and documents.

With human labels the judges' errors are compared, and a combination of the judges is fitted. With runs of retrieval
systems, their rankings under the grades of two judges are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.agreement import consensus
from merilo.commands.calibrate.human_labels import read_people
from merilo.commands.check.judges import GRADE, GivenLabel, JudgePair, Rater, pair_of, raters_of, remarks_on
from merilo.data.source import data_name, no_such_file
from merilo.data.trec import load_qrels, load_rankings
from merilo.errors import DataError, UsageError
from merilo.judging.labels import LabelForm
from merilo.metrics.formulas import ndcg
from merilo.results.records import grouped
from merilo.runs.run import MANIFEST, Run, opened
from merilo.short_repr import short_repr
from merilo.stats.panel import RankAgreement, Stacking, effective_votes, rank_agreement, stacking
from merilo.stats.platt import logit
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.commands.check.judges import Key
    from merilo.stats.resampling import Measurement

    Grades = Mapping[str, Mapping[str, float]]
    Scores = Mapping[str, Sequence[float]]

_RANKS: Final = 10
"""The ranks that nDCG@10 counts."""
_TWO, _THREE = 2, 3
_MAX_GRADES: Final = 21
_TINY: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Panel:
    """All judges on the questions of one kind that each of them answered."""

    kind: str
    questions: int
    clusters: int
    votes: Measurement | None
    """Number of independent judges that they are worth; None for two judges, and for labels without an order."""
    stacked: Stacking | str | None
    """The combination fitted to human labels, or why there is none; None without human labels."""


@dataclass(frozen=True, slots=True)
class JudgesAgreement:
    """The agreement of judges with each other and with people."""

    judges: tuple[str, ...]
    """Their names, with the run or file if several have one name."""
    sources: tuple[Path, ...]
    """The run or file of each judge."""
    pairs: tuple[JudgePair, ...]
    """Those with people first."""
    panels: tuple[Panel, ...]
    """By kind; empty for two judges without human labels."""
    people: bool
    """True if there are human labels."""
    systems: int
    remarks: tuple[str, ...]
    """Notes on the comparison, one sentence each."""
    cluster: str | None
    """The field that questions were clustered by; None for the sample."""

    def __repr__(self) -> str:
        return short_repr(self, judges=self.judges, pairs=self.pairs, remarks=self.remarks, cluster=self.cluster)


def judges_agreement(
    sources: Sequence[Run | str | PathLike[str]],
    *,
    labels: Sequence[str | PathLike[str]] = (),
    systems: str | PathLike[str] | None = None,
) -> JudgesAgreement:
    """Compare the judges of runs, or files of grades (TREC qrels, tables, JSON).

    `labels`: human labels; for runs the files of `merilo label`, for files one file of grades. `systems`: a folder
    with runs of retrieval systems in TREC format, for files. Raises UsageError, DataError if two judges have no
    question in common, and RunError.
    """
    if len(sources) < _TWO:
        raise UsageError(f"Comparing judges needs two runs or files of grades, got {len(sources)}. Name another one.")
    runs = [opened(each) for each in sources if isinstance(each, Run) or Path(each, MANIFEST).is_file()]
    files = [Path(each) for each in sources if not isinstance(each, Run) and not Path(each, MANIFEST).is_file()]
    if (missing := next((path for path in files if not path.is_file()), None)) is not None:
        raise no_such_file(missing)
    if files and runs:
        raise UsageError(f"{files[0]} is not a run. Compare runs with runs, or files of grades with files of grades.")
    paths = [run.path for run in runs] or [*files, *map(Path, labels)]
    resolved = [path.resolve() for path in paths]
    for path, full in zip(paths, resolved, strict=True):
        if resolved.count(full) > 1:
            raise UsageError(f"{path} is named twice. Name each run or file once.")
    if files:
        return _of_files(files, [*map(Path, labels)], None if systems is None else Path(systems))
    if systems is not None:
        raise UsageError("--systems needs files of grades. Compare runs without it.")
    skipped = set[str]()
    judges = raters_of(runs, skipped)
    remarks = [*remarks_on(runs, judges)]
    if skipped:
        remarks.append(f"Not compared, as their answers are not labels: {', '.join(sorted(skipped))} questions.")
    return _agreement(judges, _people(judges, labels) if labels else None, {}, remarks, runs[0].manifest.cluster)


def _of_files(paths: Sequence[Path], labels: Sequence[Path], systems: Path | None) -> JudgesAgreement:
    if len(labels) > 1:
        raise UsageError(f"Files of grades need one file of human grades, got {len(labels)}. Name one with --labels.")
    tables = {path: load_qrels(path) for path in [*paths, *labels]}
    every = {int(grade) for table in tables.values() for graded in table.values() for grade in graded.values()}
    low, high = min(every, default=0), max(every, default=0)
    if high - low >= _MAX_GRADES:
        raise DataError(f"Grades from {low} to {high} are too many to compare. Use at most {_MAX_GRADES} grades.")
    form = LabelForm(GRADE, "", (), tuple(map(str, range(min(low, 0), max(high, 1) + 1))), graded=True)
    names = [data_name(path) for path in paths]
    names = [name if names.count(name) == 1 else str(path) for name, path in zip(names, paths, strict=True)]
    judges = [_grader(name, path, tables[path], form) for name, path in zip(names, paths, strict=True)]
    people = _grader("people", labels[0], tables[labels[0]], form) if labels else None
    ranked = _systems(systems) if systems is not None else []
    scores = {path: _scores(table, ranked) for path, table in tables.items()} if ranked else {}
    return _agreement(judges, people, scores, [], "query")


def _grader(name: str, path: Path, grades: Grades, form: LabelForm) -> Rater:
    found: dict[Key, GivenLabel] = {
        (query, document): GivenLabel(form.kind, form, str(int(grade)), query, query)
        for query, graded in grades.items()
        for document, grade in graded.items()
    }
    return Rater(name, path, found)


def _people(judges: Sequence[Rater], paths: Sequence[str | PathLike[str]]) -> Rater:
    """Return the annotators' labels of the questions of runs, by most votes."""
    given = grouped((each.ticket.mark, each.label) for each in read_people(paths).labels)
    found: dict[Key, GivenLabel] = {}
    for key, asked in {key: asked for judge in judges for key, asked in judge.labels.items()}.items():
        known = [label for text in given.get(asked.mark, ()) if (label := asked.form.label(text)) is not None]
        if known:
            label = consensus(known, asked.form.labels)
            found[key] = GivenLabel(asked.kind, asked.form, label, asked.sample, asked.cluster)
    return Rater("people", Path(paths[0]), found)


def _agreement(
    judges: Sequence[Rater],
    people: Rater | None,
    scores: Mapping[Path, Scores],
    remarks: Sequence[str],
    cluster: str | None,
) -> JudgesAgreement:
    raters = [*judges] if people is None else [people, *judges]
    return JudgesAgreement(
        judges=tuple(judge.name for judge in judges),
        sources=tuple(judge.source for judge in judges),
        pairs=tuple(pair_of(one, other, _ranks(one, other, scores)) for one, other in combinations(raters, 2)),
        panels=_panels(judges, people) if people is not None or len(judges) >= _THREE else (),
        people=people is not None,
        systems=max((len(row) for rows in scores.values() for row in rows.values()), default=0),
        remarks=tuple(remarks),
        cluster=cluster,
    )


# -- all judges together ------------------------------------------------------------------------------


def _panels(judges: Sequence[Rater], people: Rater | None) -> tuple[Panel, ...]:
    """Return the figures of all judges by kind of question."""
    tables = [rater.labels for rater in ([*judges] if people is None else [*judges, people])]
    kinds: dict[str, list[list[GivenLabel]]] = {}
    for key, first in tables[0].items():
        row = [given for table in tables if (given := table.get(key)) is not None and given.label is not None]
        if len(row) == len(tables):
            kinds.setdefault(first.kind, []).append(row)
    has_people = people is not None
    return tuple(_panel(kind, kinds[kind], len(judges), has_people=has_people) for kind in sorted(kinds))


def _panel(kind: str, rows: Sequence[Sequence[GivenLabel]], judges: int, *, has_people: bool) -> Panel:
    """Return the votes and the combination of judges. In each row human labels come last, if there are any."""
    labels = [*dict.fromkeys(label for row in rows for label in row[0].form.labels)]
    ordered, clusters = rows[0][0].form.ordered, [row[0].cluster for row in rows]
    places = [[labels.index(each.label or "") for each in row] for row in rows]
    votes: Measurement | None = None
    if judges >= _THREE and (has_people or ordered):
        columns = [
            [float(row[judge] != row[-1] if has_people else row[judge]) for row in places] for judge in range(judges)
        ]
        votes = effective_votes(columns, clusters=clusters, resampling=Resampling())
    stacked: Stacking | str | None = None
    if has_people and ordered:
        scores = [_scores_of([row[judge] for row in rows], labels) for judge in range(judges)]
        # Grade 0 and grades below it are a no; of other labels the first one.
        lowest = labels.index("0") if "0" in labels else 0
        yes = [row[-1] > lowest for row in places]
        stacked = stacking(scores, yes, clusters=clusters, resampling=Resampling())
    return Panel(kind, len(rows), len({*clusters}), votes, stacked)


def _scores_of(given: Sequence[GivenLabel], labels: Sequence[str]) -> list[float]:
    """Return the logit of each probability of yes; the places of the labels if a probability is missing."""
    chances = [each.probability for each in given if each.probability is not None]
    if len(chances) == len(given):
        return [logit(chance, _TINY) for chance in chances]
    return [float(labels.index(each.label or "")) for each in given]


# -- systems ------------------------------------------------------------------------------------------


def _systems(path: Path) -> list[dict[str, list[str]]]:
    files = sorted(each for each in path.iterdir() if each.name[0] != ".") if path.is_dir() else []
    if len(files) < _TWO:
        raise UsageError(
            f"--systems needs a folder with at least two runs in TREC format, not {path}. Name another one."
        )
    return [load_rankings(each) for each in files]


def _scores(grades: Grades, systems: Sequence[Mapping[str, Sequence[str]]]) -> Scores:
    """Return nDCG of each system by query; 0 for a query without a relevant document, as in trec_eval."""
    found: dict[str, list[float]] = {}
    for query, graded in grades.items():
        gains = {document: max(grade, 0.0) for document, grade in graded.items()}
        ranked = ([gains.get(document, 0.0) for document in system.get(query, ())] for system in systems)
        found[query] = [ndcg(each, _RANKS, judged=[*gains.values()]) or 0.0 for each in ranked]
    return found


def _ranks(one: Rater, other: Rater, scores: Mapping[Path, Scores]) -> RankAgreement | None:
    """Return the agreement of the rankings of systems over the queries that both graded; None without such a query."""
    first, second = scores.get(one.source, {}), scores.get(other.source, {})
    queries = [query for query in first if query in second]
    if not queries:
        return None
    return rank_agreement(*([rows[each] for each in queries] for rows in (first, second)), resampling=Resampling())
