"""The sentence on the faults of a run."""

import pytest

from merilo.rendering.overview import fault_sentence
from merilo.results.faults import CANNOT_TELL, Faults
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
