"""A metric without code: from a file to a value, and back to the file by its digest."""

from pathlib import Path

import pytest
from metrics.saying import Says, outcome

from merilo.commands.option import metric_texts
from merilo.data.sample import Sample
from merilo.errors import UsageError
from merilo.judging.kinds.responses import Choice
from merilo.metrics.base import Score, Undefined
from merilo.metrics.choice_metrics import RubricMetric
from merilo.metrics.contract import check_metric
from merilo.metrics.registry import parse_metric
from merilo.metrics.text import metric_text

POLITE = """
name: politeness
question: How polite is the response?
texts: [user_input, response]
labels:
  - {label: rude, points: 0, definition: it insults}
  - {label: plain, points: 1}
  - {label: polite, points: 4}
"""
SAMPLE = Sample(
    "s", user_input="Hi?", response="Go away.", retrieved_contexts=["One.", "Two."], reference_contexts=["Three."]
)


def rubric(folder: Path, text: str = POLITE, name: str = "polite.yaml") -> str:
    path = folder / name
    path.write_text(text, "utf-8")
    return str(path)


def test_the_value_is_where_the_label_stands(tmp_path: Path) -> None:
    """One point of 0 to 4 is a quarter; the evidence holds the points as they are."""
    found = outcome(RubricMetric(file=rubric(tmp_path)), SAMPLE, Says(label="plain"))
    assert isinstance(found, Score)
    assert (found.value, [each.value for each in found.evidence]) == (0.25, [1.0])


def test_the_judge_sees_the_texts_that_the_file_names(tmp_path: Path) -> None:
    """In the file's order, a list of contexts one by one."""
    texts = POLITE.replace("[user_input, response]", "[response, retrieved_contexts, reference_contexts]")
    says = Says(label="plain")
    outcome(RubricMetric(file=rubric(tmp_path, texts)), SAMPLE, says)
    assert says.asked == [
        Choice(
            "How polite is the response?",
            labels=("rude", "plain", "polite"),
            definitions=("it insults", "", ""),
            names=("response", "context 1", "context 2", "reference context 1"),
            values=("Go away.", "One.", "Two.", "Three."),
        )
    ]


@pytest.mark.usefixtures("seeds")
@pytest.mark.parametrize("texts", ["[response]", "[user_input, retrieved_contexts, response]", "[reference_contexts]"])
def test_a_rubric_keeps_the_law(tmp_path: Path, texts: str) -> None:
    """A metric from a file keeps the law that every metric is held to, and needs the texts that it shows."""
    metric = RubricMetric(file=rubric(tmp_path, POLITE.replace("[user_input, response]", texts)))
    check_metric(metric)
    assert metric.needs == frozenset(texts.strip("[]").split(", "))


def test_nothing_to_show_is_undefined(tmp_path: Path) -> None:
    """Without a context, or with blank texts alone, there is nothing to judge, and nothing is asked."""
    says = Says(label="plain")
    metric = RubricMetric(file=rubric(tmp_path))
    assert outcome(metric, Sample("s", user_input=" ", response=""), says) == Undefined(
        "every text that the rubric shows is blank"
    )
    shown = RubricMetric(file=rubric(tmp_path, POLITE.replace("[user_input,", "[retrieved_contexts,")))
    assert outcome(shown, Sample("s", retrieved_contexts=[], response="Yes."), says) == Undefined(
        "no context was retrieved"
    )
    assert says.asked == []


def test_the_text_names_file_and_content(tmp_path: Path) -> None:
    """The text reads back as the same metric; a path with spaces is quoted, and survives the command line."""
    (tmp_path / "my rubrics").mkdir()
    metric = RubricMetric(file=rubric(tmp_path / "my rubrics"))
    text = metric_text(metric)
    assert text == f'rubric_metric(file="{metric.file}", digest={metric.digest})'
    assert parse_metric(text) == metric
    assert metric_texts([f'faithfulness,rubric_metric(file="{metric.file}")']) == [
        "faithfulness",
        f'rubric_metric(file="{metric.file}")',
    ]


def test_an_edited_rubric_is_another_metric(tmp_path: Path) -> None:
    """What bears on a value changes the text; notes do not; and a text with the old digest is refused."""
    before = RubricMetric(file=rubric(tmp_path))
    assert RubricMetric(file=rubric(tmp_path, f"# a note\n{POLITE}")) == before
    after = RubricMetric(file=rubric(tmp_path, POLITE.replace("points: 4", "points: 3")))
    assert metric_text(after) != metric_text(before)
    with pytest.raises(UsageError, match=f"has the digest {after.digest}, not {before.digest}"):
        parse_metric(metric_text(before))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\n", "polite.yaml: question: Field required"),
        (POLITE.replace("response]", "answer]"), "polite.yaml: texts.1: Input should be 'user_input'"),
        ("- x", "polite.yaml must contain one object"),
    ],
)
def test_a_file_that_is_no_rubric_is_told_at_the_door(tmp_path: Path, text: str, message: str) -> None:
    """The metric is not made, and the error names file and key."""
    with pytest.raises(UsageError) as error:
        parse_metric(f'rubric_metric(file="{rubric(tmp_path, text)}")')
    assert message in str(error.value)
