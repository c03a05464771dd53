"""`merilo metrics`."""

import pytest
from command_line import Here

from merilo.commands.metrics.text import card_record


def test_every_native_metric_is_listed_with_its_needs(here: Here) -> None:
    """The list names each metric with one line and the fields it needs."""
    found = {each["name"]: each for each in here.json("metrics")["metrics"]}
    assert found["faithfulness"]["needs"] == ["response", "retrieved_contexts", "user_input"]
    shown = here.merilo("metrics").stdout
    for name, each in found.items():
        assert f"  {name} " in shown
        assert each["summary"].split()[0] in shown


def test_a_card_says_what_there_is_to_know(here: Here) -> None:
    """A card shows needs, range, formula, questions, when to use it, when not, relatives and parameters."""
    shown = here.merilo("metrics", "context_precision").stdout
    labels = ("needs", "range", "formula", "undefined", "asks", "parameter", "use it", "do not", "see also", "source")
    starts = [line.split("  ")[0] for line in shown.splitlines()]
    assert [label for label in labels if label not in starts] == []
    assert "reference with against=reference" in shown
    assert here.json("metrics", "context_precision")["needs_with"] == {"against=reference": ["reference"]}


def test_published_systems_are_listed_in_a_line_each(here: Here) -> None:
    """Below the native metrics each system stands with the number of its definitions and how to list them."""
    shown = here.merilo("metrics").stdout
    systems = {each["system"]: each["definitions"] for each in here.json("metrics")["published"]}
    assert {"ragas-0.0.12", "ragas-0.1.9", "nvidia", "deepeval-4.3.1"} <= systems.keys()
    assert f"ragas-0.1.9 {systems['ragas-0.1.9']} definitions; merilo metrics ragas-0.1.9" in " ".join(shown.split())
    assert "ragas-0.1.9:" not in shown


def test_a_system_lists_its_definitions(here: Here) -> None:
    """The name of a system lists what it defines, composites too, with what each needs."""
    found = {each["name"]: each for each in here.json("metrics", "ragas-0.0.12")["metrics"]}
    assert found["ragas-0.0.12:context_relevancy"]["needs"] == ["retrieved_contexts", "user_input"]
    assert "ragas-0.0.12:ragas_score" in found
    shown = here.merilo("metrics", "ragas-0.0.12").stdout
    assert [name for name in found if f"  {name}\n" not in shown] == []


def test_a_published_metric_has_a_card(here: Here) -> None:
    """It has its parameters with their published values, and the laws that its quirks break."""
    record = here.json("metrics", "ragas-0.0.15:context_relevancy")
    parameters = {each["name"]: each["default"] for each in record["parameters"]}
    assert parameters == {"strictness": "1", "agreement_metric": "bert_score"}
    shown = here.merilo("metrics", "ragas-0.0.15:context_relevancy").stdout
    assert "nothing to judge: broken on purpose (contexts without a sentence score 0)" in " ".join(shown.split())


@pytest.mark.parametrize("name", ["nDCG@10", "recall@3", "context_precision(against=reference)"])
def test_a_metric_is_explained_as_a_run_names_it(name: str) -> None:
    """With its parameters: the fields are those that it needs then."""
    record = card_record(name)
    assert record["name"] == name
    assert any(field.startswith("reference") for field in record["needs"])
