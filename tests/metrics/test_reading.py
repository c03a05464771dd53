"""What metrics read of an answer: merilo's own read it without frames, published ones and users' questions as it is."""

from typing import Any

from each_case import each_case

import merilo
from merilo.data.answer import judged
from merilo.judges.decision_forms import SampleViews
from merilo.metrics.base import plan_of
from merilo.metrics.registry import parse_metric

FRAMED = "**Answer:** Based on the context, the mill opens at nine [1]. I hope this helps!"
CLEAN = "The mill opens at nine."
SAMPLE = merilo.Sample(
    "s",
    user_input="When does the mill open?",
    retrieved_contexts=("The mill opens at nine.",),
    response=FRAMED,
    reference="**At nine.**",
)


def first_texts(name: str) -> str:
    """The texts of the first questions that a metric asks about the sample."""
    step: Any = next(plan_of(parse_metric(name), SAMPLE))  # type: ignore[arg-type]  # none is a composite
    return "\n".join(text for group in step for question in group for text in question.all_texts)


@each_case(
    ("name", "text", "other"),
    [
        ("faithfulness", CLEAN, FRAMED),
        ("answer_relevancy", CLEAN, FRAMED),
        ("answering", "At nine.", FRAMED),
        ("context_recall", "At nine.", "**"),
        ("critique(aspect=conciseness)", FRAMED, "\x00"),
        ("ragas-0.1.9:faithfulness", FRAMED, "\x00"),
    ],
)
def test_a_metric_reads_the_answer_as_it_declares(name: str, text: str, other: str) -> None:
    """Frames are removed before the first question, or not at all."""
    assert text in first_texts(name)
    assert other not in first_texts(name)


def test_citation_metrics_see_the_marks() -> None:
    """The sentence is clean, and its citation is known."""
    metric: Any = parse_metric("citation_recall")
    assert metric.shows(judged(SAMPLE, metric.reads_answer)) is True
    assert FRAMED not in first_texts("citation_recall")


def test_a_decision_model_sees_the_answer_that_metrics_ask_about() -> None:
    """Its view of the response is the clean text, so the questions about it share a request."""
    assert SampleViews.of(judged(SAMPLE)).response.answer == CLEAN
