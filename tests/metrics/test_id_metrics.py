"""Metrics of ids: against small cases by hand, and against trec_eval on random runs."""

import random
from math import log2
from pathlib import Path

import pytest
import pytrec_eval
from each_case import each_case

from merilo.data.check import JSON
from merilo.data.context import Context
from merilo.data.sample import Sample
from merilo.data.trec import load_trec
from merilo.metrics.base import Metric, Score, Undefined, drive
from merilo.metrics.contract import check_metric
from merilo.metrics.id_metrics import (
    NDCG,
    AveragePrecision,
    HitRate,
    IdPrecision,
    IdRecall,
    Precision,
    Recall,
    ReciprocalRank,
)
from merilo.metrics.registry import parse_metric

ALL = (IdPrecision(), IdRecall(), ReciprocalRank(), AveragePrecision(), NDCG(), HitRate(), Precision(), Recall())
CUTOFFS = (1, 3, 5, 10)
TREC_NAMES = {
    "average_precision": "map",
    "reciprocal_rank": "recip_rank",
    "nDCG": "ndcg",
    "id_precision": "set_P",
    "id_recall": "set_recall",
    **{f"precision@{k}": f"P_{k}" for k in CUTOFFS},
    **{f"recall@{k}": f"recall_{k}" for k in CUTOFFS},
    **{f"hit_rate@{k}": f"success_{k}" for k in CUTOFFS},
    **{f"nDCG@{k}": f"ndcg_cut_{k}" for k in CUTOFFS},
}
"""Each metric with the measure of trec_eval that it is to equal."""


def ranked(retrieved: str, relevant: str, qrels: JSON = None) -> Sample:
    """A sample whose ids are single letters."""
    metadata = None if qrels is None else {"qrels": qrels}
    return Sample("s", retrieved_context_ids=list(retrieved), reference_context_ids=list(relevant), metadata=metadata)


def outcome(metric: Metric, sample: Sample) -> Score | Undefined:
    def unasked(question: object) -> None:
        raise AssertionError(question)

    return drive(metric.plan(sample), unasked)  # type: ignore[arg-type]  # nothing is answered because nothing is asked


def value(metric: Metric, sample: Sample) -> float:
    found = outcome(metric, sample)
    assert isinstance(found, Score), found
    return found.value


@each_case(
    ("metric", "expected"),
    [
        (HitRate(k=1), 0),
        (HitRate(k=2), 1),
        (Precision(k=2), 0.5),
        (Precision(k=10), 0.2),
        (Recall(k=2), 1 / 3),
        (Recall(k=10), 2 / 3),
        (ReciprocalRank(), 0.5),
        (ReciprocalRank(k=1), 0),
        (AveragePrecision(), (1 / 2 + 2 / 4) / 3),
        (IdPrecision(), 0.5),
        (IdRecall(), 2 / 3),
        (NDCG(), (1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / log2(4))),
        (NDCG(k=2), (1 / log2(3)) / (1 + 1 / log2(3))),
    ],
)
def test_by_hand(metric: Metric, expected: float) -> None:
    """Retrieved a, b, c, d; relevant b, d and z, which was not retrieved."""
    assert value(metric, ranked("abcd", "bdz")) == pytest.approx(expected)


def test_a_repeated_id_takes_one_rank() -> None:
    """A document of which several pieces were retrieved stands at its first rank; the others move up."""
    assert value(ReciprocalRank(), ranked("aaab", "b")) == 0.5
    assert value(IdPrecision(), ranked("aab", "b")) == 0.5
    assert value(NDCG(), ranked("bbb", "b")) == 1


def test_grades_stand_in_the_metadata() -> None:
    """With grades b 3 and d 1 the ideal is 3 at the first rank; a reference id without a grade has 1."""
    graded = ranked("abcd", "bd", {"b": 3, "d": 1})
    assert value(NDCG(), graded) == pytest.approx((3 / log2(3) + 1 / log2(5)) / (3 + 1 / log2(3)))
    assert value(NDCG(), ranked("ab", "ab", {"b": 2})) == pytest.approx((1 + 2 / log2(3)) / (2 + 1 / log2(3)))
    assert value(NDCG(), ranked("ab", "ab", {"a": -1, "b": 1})) == pytest.approx(1 / log2(3))


@each_case("qrels", [["a"], "a", {"a": "2"}, {"a": True}, {"a": None}])
def test_qrels_that_are_no_grades_give_no_value(qrels: JSON) -> None:
    """Metadata of another meaning under that name are not read as grades."""
    assert outcome(NDCG(), ranked("a", "a", qrels)) == Undefined("the metadata's qrels are not a number for each id")


@each_case(
    "written", ["caf\u00e9 1", "cafe\u0301 1", " caf\u00e9\t 1\n", "caf\u00e9\u00a01", "\ufeffcafe\u0301\u200b 1"]
)
def test_one_id_may_be_written_in_several_ways(written: str) -> None:
    """Unicode forms, white space and invisible characters do not distinguish ids, in fields and in qrels."""
    for metric in ALL:
        plain = Sample("s", retrieved_context_ids=["caf\u00e9 1"], reference_context_ids=[written])
        graded = Sample(
            "s", retrieved_context_ids=[written], reference_context_ids=[], metadata={"qrels": {"caf\u00e9 1": 1}}
        )
        assert value(metric, plain) == value(metric, ranked("a", "a"))
        assert metric.name != "nDCG" or value(metric, graded) == 1


def test_ids_are_those_of_the_contexts() -> None:
    """Where the sample names no ids itself, its contexts' ids count."""
    sample = Sample(
        "s",
        retrieved_contexts=[Context("One.", id="a"), Context("Two.", id="b")],
        reference_contexts=[Context("Two.", id="b")],
    )
    assert value(ReciprocalRank(), sample) == 0.5


@pytest.mark.parametrize("metric", [HitRate(), Precision(), Recall()], ids=lambda metric: str(metric.name))
def test_a_cutoff_behind_the_made_up_ranks_keeps_the_law(metric: Metric) -> None:
    """With a sample long enough for its cutoff, each keeps the law that all metrics are held to."""
    letters = "abcdefghijklmnop"
    check_metric(metric, [Sample("long", retrieved_context_ids=list(letters), reference_context_ids=list("ab"))])


def random_run(chance: random.Random) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Grades and scores of a few topics, with ties, equal 32-bit scores, and documents that nobody judged."""
    documents = [f"d{chance.choice('abXÉ')}{number}" for number in range(chance.randint(3, 30))]

    def some() -> list[str]:
        return chance.sample(documents, chance.randint(1, len(documents)))

    def score() -> float:
        return chance.choice((chance.random(), round(chance.random(), 1), 2.0**24 + chance.randint(0, 3)))

    topics = [f"q{number}" for number in range(chance.randint(1, 4))]
    qrels = {topic: {document: chance.choice((0, 0, 1, 2, 3)) for document in some()} for topic in topics}
    return qrels, {topic: {document: score() for document in some()} for topic in topics}


@each_case("seed", range(40))
def test_values_are_those_of_trec_eval(seed: int, tmp_path: Path) -> None:
    """On random runs and grades every value is trec_eval's; where nothing is relevant we say so, and it says 0."""
    qrels, run = random_run(random.Random(seed))
    run_file, qrels_file = tmp_path / "a.trec", tmp_path / "a.qrels"
    run_file.write_text(
        "".join(f"{t} Q0 {d} 0 {s!r} tag\n" for t, scores in run.items() for d, s in scores.items()), "utf-8"
    )
    qrels_file.write_text(
        "".join(f"{t} 0 {d} {g}\n" for t, grades in qrels.items() for d, g in grades.items()), "utf-8"
    )
    measures = {name.rpartition("_")[0] + f".{name.rpartition('_')[2]}" if name[-1].isdigit() else name
                for name in TREC_NAMES.values()}  # fmt: skip
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    for sample in load_trec(run_file, qrels_file):
        assert isinstance(sample, Sample)
        for text, measure in TREC_NAMES.items():
            found = outcome(parse_metric(text), sample)  # type: ignore[arg-type]  # none of these is a composite
            ours = found.value if isinstance(found, Score) else 0.0
            assert ours == pytest.approx(theirs[sample.id][measure], abs=1e-12), (sample.id, text)
            assert isinstance(found, Score) == any(grade > 0 for grade in qrels[sample.id].values())
