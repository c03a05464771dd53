"""The sentence on the faults of a run, and the fault of a sample."""

from typing import Any, cast

import pytest

from merilo.rendering.run_doc import fault_sentence
from merilo.results.faults import CANNOT_TELL, Answer, Faults, judgement_of
from merilo.runs.outcomes import OutcomeRecord
from merilo.stats.intervals import Interval
from merilo.stats.means import MeanEstimate


def of(**amounts: int) -> Faults:
    """Faults with these numbers of samples."""
    keys = [key for key, amount in amounts.items() for _ in range(amount)]
    return Faults({f"s{at}": key for at, key in enumerate(keys)})


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        (
            of(invented=2, right=1, beyond_evidence=3, wrong=2),
            "8 answers: 1 right, 3 beyond the evidence, 2 invented, 2 wrong.",
        ),
        (of(right=1), "1 answer: 1 right."),
        (of(evidence_found=3, evidence_missing=1_000), "1,003 questions: 1,000 evidence missing, 3 evidence found."),
        (of(supported=3, declined=1), "4 answers: 3 supported, 1 declined."),
        (Faults({"a": CANNOT_TELL, "b": "right"}), "2 answers: 1 right, 1 cannot tell."),
        (Faults({}), ""),
    ],
)
def test_counts_name_right_answers_first_then_the_most_frequent_fault(faults: Faults, expected: str) -> None:
    """A run without responses has questions, one without a fault table has no sentence."""
    assert fault_sentence(faults) == expected


def test_labels_turn_counts_into_shares_in_their_own_order() -> None:
    """Corrected shares have intervals and replace the judge's counts; a share of 0 is left out."""
    shares = {"right": (0.25, (0.121, 0.4)), "invented": (0.0, (0.0, 0.1)), "beyond_evidence": (0.75, None)}
    corrected = {key: MeanEstimate(value, Interval(ends), 40) for key, (value, ends) in shares.items()}
    faults = Faults(of(invented=4).samples, None, corrected)
    expected = "4 answers, corrected by human labels: right 25 % (12 to 40 %), beyond the evidence 75 %."
    assert fault_sentence(faults) == expected


def record(metric: str, labels: str = "", value: float | None = None, **fields: Any) -> OutcomeRecord:
    """An outcome with one verdict for each label; undefined without a value."""
    kind = "sufficiency" if metric == "context_sufficiency" else "support"
    evidence = [{"kind": kind, "verdict": {"label": label}} for label in labels.split()]
    state = {"outcome": "undefined"} if value is None else {"outcome": "score", "value": value}
    return cast("OutcomeRecord", {"sample": "a", "metric": metric, "evidence": evidence, **state, **fields})


IDS = {found: record("id_recall", value=found / 2, counts={"relevant": 2, "found": found}) for found in range(3)}
HELD, SHORT = (record("context_sufficiency", label, 1.0) for label in ("sufficient", "insufficient"))
NO_SUPPORT = {"labels": "not_stated", "value": 0.0}
ALL, SOME = record("faithfulness", "supported", 1.0), record("faithfulness", "supported", probability=0.2)
NOT_ALL = record("faithfulness", "supported not_stated", probability=0.2)


@pytest.mark.parametrize(
    ("outcomes", "fault"),
    [
        ((HELD, ALL), "right"),
        ((HELD, ALL, IDS[0]), "evidence_missing"),
        ((SHORT, ALL, IDS[2]), "right"),
        ((SHORT, ALL, IDS[1]), "evidence_missing"),
        ((HELD, NOT_ALL), "beyond_evidence"),
        ((HELD, NOT_ALL, IDS[0]), "invented"),
        ((record("context_sufficiency"), NOT_ALL), "not_supported"),
        ((HELD, SOME), CANNOT_TELL),
        ((SHORT, SOME), "evidence_missing"),
        ((record("answering"), HELD, ALL), CANNOT_TELL),
        ((record("answering"), HELD, NOT_ALL), "beyond_evidence"),
        ((record("answering", "not_stated"),), "not_supported"),
    ],
)
def test_known_facts_decide_before_verdicts_and_verdicts_before_what_is_open(
    outcomes: tuple[OutcomeRecord, ...], fault: str
) -> None:
    """Ids decide what the contexts hold; a statement that is not supported counts although others are open."""
    assert judgement_of({each["metric"]: each for each in outcomes}).fault == fault


def test_what_is_open_is_read_after_likely_faults_by_its_probability() -> None:
    """The lowest probability comes first; without one, an open sample is not listed."""
    found = {
        name: judgement_of({"context_sufficiency": HELD, "faithfulness": record("faithfulness", **fields)})
        for name, fields in {"c": {"probability": 0.7}, "b": {"probability": 0.1}, "d": {}, "a": NO_SUPPORT}.items()
    }
    samples = {name: each.fault for name, each in found.items()}
    faults = Faults(samples, orders={name: each.order for name, each in found.items()})
    assert faults.worst(9) == [("a", "beyond_evidence"), ("b", CANNOT_TELL), ("c", CANNOT_TELL)]
    assert [found[name].answer for name in "abcd"] == [Answer.STRAYED, *[Answer.UNKNOWN] * 3]
