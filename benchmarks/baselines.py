"""What simple scores make of the labelled records: AUROC by task and source, on the path of `merilo judge check`.

    python benchmarks/baselines.py [--labels FILE ...] [--sample N] [--judge SPEC] [--vectors MODULE:FUNCTION] [--json]

Each baseline is a judge that knows nothing but a score; its labels mean nothing, so only AUROC is shown. `--judge` adds
a real judge, and for each task its paired difference to the best baseline. `--vectors` adds the cosine of any embedder:
a function that takes a list of texts and gives a list of vectors.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import math
import re
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merilo.checking.check import Check, Wanted, run_check
from merilo.checking.record import measured
from merilo.checking.tables import ALL, PEOPLE
from merilo.data.labels import read_labels
from merilo.judges.callables import CallableJudge
from merilo.judges.ngrams import likeness, ngram_vector
from merilo.judging.questions import Addresses, Question, Relevance, Sufficiency, Support
from merilo.judging.verdicts import (
    AddressesVerdict,
    RelevanceVerdict,
    SufficiencyLabel,
    SufficiencyVerdict,
    SupportLabel,
    SupportVerdict,
)
from merilo.options import Options
from merilo.stats.agreement_intervals import auroc_difference, mean_of
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from merilo.checking.items import Item
    from merilo.checking.tables import Reading, TaskTable
    from merilo.judging.verdicts import Verdict

    Score = Callable[[str, str], float]
    """How well a text (second) holds what was asked or stated (first), from 0 to 1."""

DEV = sorted((Path(__file__).parent / "labels" / "dev").glob("*.jsonl.gz"))
KINDS: frozenset[type[Question[Any]]] = frozenset({Relevance, Support, Sufficiency, Addresses})
K1, B = 1.2, 0.75
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")


@lru_cache(maxsize=50_000)
def terms(text: str) -> tuple[str, ...]:
    """The words of a text, folded; pairs of signs where words are not divided by blanks."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        found += [word[at : at + 2] for at in range(max(1, len(word) - 1))] if _UNSPACED.search(word) else [word]
    return tuple(found)


class Corpus:
    """How common words are in the labelled texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        distinct = set(texts)
        self._count = len(distinct)
        self._documents = Counter(term for text in distinct for term in set(terms(text)))
        self._length = sum(len(terms(text)) for text in distinct) / max(1, self._count)

    def weight(self, term: str) -> float:
        """The inverse document frequency, above 0 (as in Lucene)."""
        there = self._documents[term]
        return math.log1p((self._count - there + 0.5) / (there + 0.5))

    def bm25(self, asked: str, text: str) -> float:
        """Okapi BM25, brought below 1 by s / (1 + s)."""
        counts, long = Counter(terms(text)), len(terms(text)) / (self._length or 1.0)
        score = sum(
            self.weight(term) * counts[term] * (K1 + 1) / (counts[term] + K1 * (1 - B + B * long))
            for term in set(terms(asked))
            if term in counts
        )
        return score / (1 + score)

    def recall(self, asked: str, text: str) -> float:
        """The share of what was asked, by the weight of its words, that stands in the text."""
        wanted, there = set(terms(asked)), set(terms(text))
        total = math.fsum(self.weight(term) for term in wanted)
        return math.fsum(self.weight(term) for term in wanted & there) / total if total else 0.0


def ngram_cosine(asked: str, text: str) -> float:
    """The cosine of merilo's own vectors of character n-grams."""
    return max(0.0, min(1.0, likeness(ngram_vector(asked), ngram_vector(text))))


def cosine_of(embed: Callable[[list[str]], Sequence[Sequence[float]]]) -> Score:
    """The cosine of an embedder's vectors, from -1..1 to 0..1."""

    @lru_cache(maxsize=50_000)
    def vector(text: str) -> tuple[float, ...]:
        (found,) = embed([text])
        length = math.sqrt(math.fsum(each * each for each in found)) or 1.0
        return tuple(each / length for each in found)

    def score(asked: str, text: str) -> float:
        both = zip(vector(asked), vector(text), strict=True)
        return max(0.0, min(1.0, (1 + math.fsum(one * other for one, other in both)) / 2))

    return score


def judge_of(title: str, score: Score) -> CallableJudge:
    """A judge that says yes to everything, with the score as its probability."""

    def answer(question: Question[Any]) -> Verdict:
        match question:
            case Relevance():
                found = score(question.user_input, " ".join(question.sentences))
                return RelevanceVerdict(1, (0,), probability=found)
            case Support():
                found = max(score(question.statement, context) for context in question.contexts)
                return SupportVerdict(SupportLabel.SUPPORTED, (0,), probability=found)
            case Sufficiency():
                found = score(question.user_input, " ".join(question.contexts))
                return SufficiencyVerdict(SufficiencyLabel.SUFFICIENT, probability=found)
            case Addresses():
                return AddressesVerdict(addresses=True, probability=score(question.user_input, question.statement))
            case _:
                raise TypeError(f"a baseline has no score for {question.kind}")

    return CallableJudge(answer, answers=KINDS, title=title)


def main() -> None:
    """Print the tables."""
    arguments = _arguments()
    labels = [Path(each) for each in arguments.labels] or DEV
    corpus = Corpus(text for record in read_labels(labels) for text in record.texts)
    judges: list[Any] = [
        judge_of("bm25", corpus.bm25),
        judge_of("lexical recall", corpus.recall),
        judge_of("n-gram cosine", ngram_cosine),
    ]
    if arguments.vectors:
        module, _, function = arguments.vectors.partition(":")
        sys.path.insert(0, "")
        judges.append(judge_of("cosine", cosine_of(getattr(importlib.import_module(module), function))))
    baselines = len(judges)
    judges += [arguments.judge] if arguments.judge else []
    wanted = Wanted(labels=labels, include_constructed=True, sample=arguments.sample, each_sentence=True)
    resampling = Resampling(resamples=arguments.resamples)
    checks: dict[str, Check] = {}
    for judge in judges:
        check = asyncio.run(run_check(wanted, Options(judge=judge, cache=False), resampling))
        checks[check.judge.name] = check
    record = {
        "people": _table(checks, PEOPLE, baselines, resampling, constructed=False),
        "all": _table(checks, ALL, baselines, resampling, constructed=True),
    }
    if arguments.json:
        print(json.dumps(record, ensure_ascii=False, indent=2))
    else:
        for title, tables in record.items():
            _show(title, tables)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--labels", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--judge", metavar="SPEC")
    parser.add_argument("--vectors", metavar="MODULE:FUNCTION")
    parser.add_argument("--resamples", type=int, default=500, metavar="N")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _table(
    checks: dict[str, Check], readings: Sequence[Reading], baselines: int, resampling: Resampling, *, constructed: bool
) -> dict[str, Any]:
    """Task → source and `mean` → baseline → AUROC; `difference` holds judge minus the best baseline of the task."""
    found: dict[str, Any] = {}
    for reading in readings:
        tables = {name: table for name, check in checks.items() if (table := _of(check, reading, constructed))}
        if not tables:
            continue
        first = next(iter(tables.values()))
        sources: dict[str, Any] = {
            source: {name: measured(table.sources[source].agreement.auroc) for name, table in tables.items()}
            for source, figures in first.sources.items()
            if figures.agreement.has_both
        }
        sources["mean"] = {name: measured(table.macro["auroc"]) for name, table in tables.items()}
        found[reading.name] = sources
        names = list(checks)
        if len(names) > baselines:
            best = max(names[:baselines], key=lambda name: tables[name].macro["auroc"].value or 0.0)
            pair = (checks[names[-1]], checks[best])
            found[reading.name]["difference"] = {"best": best} | _difference(pair, reading, first, resampling)
    return found


def _of(check: Check, reading: Reading, constructed: bool) -> TaskTable | None:  # noqa: FBT001  two tables
    tables = (check.everything or ()) if constructed else check.people
    return next((table for table in tables if table.reading == reading), None)


def _difference(
    checks: tuple[Check, Check], reading: Reading, table: TaskTable, resampling: Resampling
) -> dict[str, Any]:
    """The mean over the sources that count of the paired differences in AUROC."""
    parts = []
    for source, figures in table.sources.items():
        if figures.counts:
            one, other = (_items(check, reading, source, figures.records) for check in checks)
            both = [key for key in one if key in other]
            items = [one[key] for key in both]
            ranks = [[reading.rank(own[key]) or 0.0 for key in both] for own in (one, other)]
            people = [item.people >= reading.least for item in items]
            clusters = [item.cluster for item in items]
            parts.append(auroc_difference(people, *ranks, clusters=clusters, resampling=resampling))
    return measured(mean_of(parts))


def _items(check: Check, reading: Reading, source: str, records: int) -> dict[tuple[str, int], Item]:
    """A source's judged items in a reading, by record and place in it."""
    found: dict[tuple[str, int], Item] = {}
    places: Counter[str] = Counter()
    held = check.items[reading.name if reading.alone else reading.task.value]
    own = [item for item in held if item.record.source == source and reading.holds(item)]
    if len({item.record.id for item in own}) > records:  # the table of people
        own = [item for item in own if not item.record.constructed]
    for item in own:
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
            else:
                print(f"    {source:<24}" + "".join(f"{_cell(row[name]):>22}" for name in names))


def _cell(each: dict[str, Any]) -> str:
    if each["value"] is None:
        return "-"
    ends = each["interval"]
    return f"{each['value']:.3f}" + (f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else "")


if __name__ == "__main__":
    main()
