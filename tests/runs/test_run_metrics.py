"""One resolver of metric names: what it accepts, and what it suggests."""

import pytest

from merilo import UsageError
from merilo.runs.run_metrics import resolve_metric

TEXTS = (
    "faithfulness(unit=sentence)",
    "recall@1",
    "recall@2",
    "deepeval-4.3.1:faithfulness",
    "foreign:tone",
    "context_relevance",
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("recall@1", "recall@1"),
        ("faithfulness", "faithfulness(unit=sentence)"),
        ("deepeval:faithfulness", "deepeval-4.3.1:faithfulness"),
        ("foreign:tone", "foreign:tone"),
        ("tone", "foreign:tone"),
    ],
)
def test_a_name_without_parameters_version_or_foreign_is_enough(name: str, text: str) -> None:
    """The full text, the name without parameters, without a version and without `foreign:` all name the metric."""
    assert resolve_metric(name, TEXTS) == text


def test_a_full_text_is_that_metric_even_if_it_is_also_another_ones_name() -> None:
    """An exact match wins over a metric with the same name and parameters."""
    assert resolve_metric("recall", ("recall", "recall@2")) == "recall"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("recall", "No unique metric 'recall' in this run; did you mean recall@1 or recall@2?"),
        ("deep", "No metric 'deep' in this run; did you mean deepeval-4.3.1:faithfulness?"),
        ("context_relevence", "No metric 'context_relevence' in this run; did you mean context_relevance?"),
        (
            "Faithfullness",
            (
                "No metric 'Faithfullness' in this run; did you mean faithfulness(unit=sentence) or "
                "deepeval-4.3.1:faithfulness?"
            ),
        ),
        (
            "zzz",
            (
                "No metric 'zzz' in this run; its metrics: faithfulness(unit=sentence), recall@1, recall@2, "
                "deepeval-4.3.1:faithfulness, foreign:tone and 1 more."
            ),
        ),
        ("ragas_score", "ragas_score is a composite, which has no value per sample; name the metrics it combines."),
    ],
)
def test_other_names_are_refused_with_the_names_that_may_be_meant(name: str, message: str) -> None:
    """An ambiguous name lists its metrics, a misspelt one the similar names, any other the first five metrics."""
    with pytest.raises(UsageError) as caught:
        resolve_metric(name, TEXTS, composites=("ragas_score",))
    assert str(caught.value) == message


def test_a_prefix_is_not_a_name() -> None:
    """`context` is refused, because another metric of the run may begin with it too."""
    with pytest.raises(UsageError, match=r"No metric 'context_rel' in runs/a; did you mean context_relevance\?"):
        resolve_metric("context_rel", TEXTS, where="runs/a")
