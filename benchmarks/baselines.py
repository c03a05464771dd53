"""AUROC of simple scores on the labelled records, by task and source, on the path of `merilo judge check`.

    python benchmarks/baselines.py [--labels FILE ...] [--sample N] [--judge SPEC] [--weights FILE] [--json]

Each baseline is a judge that only knows a score; its labels mean nothing, so only AUROC is shown. `--judge` adds a
real judge, and for each task its paired difference to the best baseline. `--weights`, a file of the embedded judge's
encoder, adds the cosine of its vectors and the regression over words and aligned tokens (alignment.py). `--vectors`
adds the cosine of any embedder: a function from a list of texts to a list of vectors.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from alignment import Aligned, Alignment
from evidence import with_chances
from packaged import blended
from scores import Corpus, cosine_of, judge_of, ngram_cosine, of_pairs

from merilo.commands.check.options import CheckOptions
from merilo.commands.check.record import measured
from merilo.commands.check.run import Check, drawn, run_check
from merilo.commands.check.tables import ALL, PEOPLE, table_of
from merilo.data.labels import Task, read_labels
from merilo.judges.encoder.embedder import Embedder
from merilo.judges.encoder.encodings import Encodings
from merilo.judges.encoder.model import Encoder
from merilo.judges.encoder.weights import Weights
from merilo.stats.agreement_intervals import auroc_difference, mean_of
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from held_out import HeldOut

    from merilo.commands.check.items import Item
    from merilo.commands.check.tables import PositiveRule, TaskTable
    from merilo.data.labels import Labelled
    from merilo.judges.base import Judge

    Checks = Mapping[str, Check]
    """By the judge's name, the baselines first."""

DEV = sorted((Path(__file__).parent / "labels" / "dev").glob("*.jsonl.gz"))
GROUPS: Final = {
    "groundedness, answers as models wrote them": frozenset(
        "begin-cmu-dog begin-wow faithdial-audit-cmu faithdial-audit-topical faithdial-audit-wow mtrag "
        "qa-feedback".split()
    ),
    "groundedness, one fact changed": frozenset(
        "boolq pubmedqa q2-wow rumeddanet squad2-halfdev summedits-scitldr xquad".split()
    ),
}
"""Sources of groundedness that need different skills: whether words occur at all, and whether they are right."""


@dataclass(frozen=True, slots=True)
class Table:
    """A selection of judged items."""

    reading: PositiveRule
    constructed: bool
    """True to include synthetic records."""
    among: frozenset[str] | None = None
    """The sources to include; all if empty."""

    def items(self, check: Check) -> list[Item]:
        """Return the items of a check that are in the table."""
        held = check.items.get(self.reading.name if self.reading.alone else self.reading.task.value, ())
        return [
            item
            for item in held
            if self.reading.holds(item)
            and (self.constructed or not item.record.constructed)
            and (self.among is None or item.record.source in self.among)
        ]

    def of(self, check: Check) -> TaskTable | None:
        """Return the figures of a check."""
        tables = (check.everything or ()) if self.constructed else check.people
        if self.among is None:
            return next((table for table in tables if table.reading == self.reading), None)
        return table_of(self.reading, self.items(check), check.resampling)


def main() -> None:
    """Print the tables."""
    arguments = _arguments()
    labels = [Path(each) for each in arguments.labels] or DEV
    wanted = CheckOptions(labels=labels, include_constructed=True, sample=arguments.sample, each_sentence=True)
    resampling = Resampling(resamples=arguments.resamples)
    judges: list[tuple[Any, bool]] = [(each, False) for each in _baselines(arguments, read_labels(labels))]
    judges += [(arguments.judge, True)] if arguments.judge else []
    held_out = _held_out(arguments.rows) if arguments.held_out else None
    judges += [(held_out.judge, False)] if held_out else []
    checks: dict[str, Check] = {}
    for judge, cached in judges:
        asked = asyncio.run(run_check(replace(wanted, judge=judge, cache=cached), resampling))
        own_model = held_out.model_for if held_out and asked.judge.name == held_out.judge.title else None
        check = with_chances(asked, own_model)
        checks[check.judge.name] = check
    own = check.judge if arguments.judge or held_out else None
    record = _record(checks, own, resampling)
    if arguments.json:
        print(json.dumps(record, ensure_ascii=False, indent=2))
        return
    for title in ("people", "all", "groups"):
        _show(title, record[title])


def _baselines(arguments: argparse.Namespace, records: Sequence[Labelled]) -> list[Judge]:
    corpus = Corpus(text for record in records for text in record.texts)
    judges: list[Judge] = [
        judge_of("bm25", of_pairs(corpus.bm25)),
        judge_of("lexical recall", of_pairs(corpus.recall)),
        judge_of("n-gram cosine", of_pairs(ngram_cosine)),
    ]
    if arguments.vectors:
        module, _, function = arguments.vectors.partition(":")
        sys.path.insert(0, "")
        judges.append(judge_of("cosine", of_pairs(cosine_of(getattr(importlib.import_module(module), function)))))
    if arguments.weights:
        weights = Weights.read(arguments.weights)
        embedder = Embedder(Encodings(Encoder(weights)))
        judges.append(judge_of("embedding cosine", of_pairs(cosine_of(lambda texts: embedder.vectors(texts).tolist()))))
        asked = drawn([*records], arguments.sample)
        aligned = Aligned(asked, Alignment(weights, corpus.recall), kept=arguments.features)
        judges.append(judge_of("alignment + lexical", aligned.chance))
    return judges


def _held_out(rows: Path | None) -> HeldOut | None:
    """Return the embedded judge with curves fitted on other records than it is asked about; None without curves."""
    model = blended()
    if model is None:
        return None
    from held_out import HeldOut  # needs what training needs

    return HeldOut(DEV[0].parent, model, rows=rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--labels", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--judge", metavar="SPEC")
    parser.add_argument("--held-out", action="store_true", help="as --judge embedded, by held_out.py")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="keeps what --held-out is fitted on between calls")
    parser.add_argument("--weights", type=Path, metavar="FILE")
    parser.add_argument("--features", type=Path, metavar="FILE", help="keeps the numbers of --weights between calls")
    parser.add_argument("--vectors", metavar="MODULE:FUNCTION")
    parser.add_argument("--resamples", type=int, default=500, metavar="N")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _record(checks: Checks, own: Judge | None, resampling: Resampling) -> dict[str, Any]:
    """Return the figures as a JSON-able object.

    `people`, `all` and `groups` contain table → source and `mean` → judge → AUROC. `difference`, next to the sources,
    has the judge minus the best baseline of the table, `also` its other means.
    """
    baselines = [name for name in checks if own is None or name != own.name]
    first = next(iter(checks.values()))
    grounded = next(each for each in ALL if each.task is Task.GROUNDEDNESS)
    tables = {
        "people": {reading.name: Table(reading, constructed=False) for reading in PEOPLE},
        "all": {reading.name: Table(reading, constructed=True) for reading in ALL},
        "groups": {name: Table(grounded, constructed=True, among=among) for name, among in GROUPS.items()},
    }
    return {
        "judge": None if own is None else {"name": own.name, "fingerprint": dict(own.fingerprint())},
        "labels": [{"file": each.name, "sha256": each.sha256, "records": each.records} for each in first.files],
        "baselines": baselines,
        "resampling": {"seed": resampling.seed, "resamples": resampling.resamples},
        **{
            name: {title: found for title, table in own_tables.items() if (found := _rows(checks, own, table))}
            for name, own_tables in tables.items()
        },
    }


def _rows(checks: Checks, own: Judge | None, table: Table) -> dict[str, Any]:
    tables = {name: found for name, check in checks.items() if (found := table.of(check))}
    if not tables:
        return {}
    first = next(iter(tables.values()))
    found: dict[str, Any] = {
        source: {name: measured(each.sources[source].agreement.auroc) for name, each in tables.items()}
        for source, figures in first.sources.items()
        if figures.agreement.has_both
    }
    found["mean"] = {name: measured(each.macro["auroc"]) for name, each in tables.items()}
    if own is not None and own.name in tables:
        counting = [source for source, figures in first.sources.items() if figures.counts]
        best = max((name for name in tables if name != own.name), key=lambda name: _mean(tables[name]))
        paired = _difference((checks[own.name], checks[best]), table, counting)
        found["difference"] = {"best": best, "sources": counting} | paired
        found["also"] = {name: measured(each) for name, each in tables[own.name].macro.items()}
    return found


def _mean(table: TaskTable) -> float:
    return table.macro["auroc"].value or 0.0


def _difference(checks: tuple[Check, Check], table: Table, sources: Sequence[str]) -> dict[str, Any]:
    """Return the mean, over the sources that count, of the paired differences in AUROC."""
    parts = []
    reading = table.reading
    for source in sources:
        one, other = (_places(replace(table, among=frozenset({source})).items(check)) for check in checks)
        both = [key for key in one if key in other]
        ranks = [[reading.rank(own[key]) or 0.0 for key in both] for own in (one, other)]
        people = [one[key].people >= reading.least for key in both]
        clusters = [one[key].cluster for key in both]
        parts.append(auroc_difference(people, *ranks, clusters=clusters, resampling=checks[0].resampling))
    return measured(mean_of(parts))


def _places(items: Sequence[Item]) -> dict[tuple[str, int], Item]:
    """Return judged items by record and position in it."""
    found: dict[tuple[str, int], Item] = {}
    places: Counter[str] = Counter()
    for item in items:
        places[item.record.id] += 1
        if item.judge is not None:
            found[item.record.id, places[item.record.id]] = item
    return found


def _show(title: str, tables: dict[str, Any]) -> None:
    print(f"AUROC, {title}")
    for task, sources in tables.items():
        names = list(sources["mean"])
        if all(sources["mean"][name]["value"] is None for name in names):
            continue
        print(f"  {task:<26}" + "".join(f"{name:>22}" for name in names))
        for source, row in sources.items():
            if source == "difference":
                best = row["best"]
                print(f"    {'judge - ' + best:<24}" + f"{_cell(row):>{22 * len(names)}}")
            elif source != "also":
                print(f"    {source:<24}" + "".join(f"{_cell(row[name]):>22}" for name in names))


def _cell(each: dict[str, Any]) -> str:
    if each["value"] is None:
        return "-"
    ends = each["interval"]
    return f"{each['value']:.3f}" + (f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else "")


if __name__ == "__main__":
    main()
