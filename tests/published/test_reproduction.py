"""What the cards of published definitions say is reproduced is what their plans do."""

from typing import Any

from each_case import each_case

from merilo.commands.metrics.text import card_page, card_record
from merilo.judging.kinds.responses import Completion
from merilo.metrics.base import is_composite
from merilo.metrics.registry import native_metrics, parse_metric, published_metrics
from merilo_published.fidelity import WORDING, Sampling, families, reproduction, sampling_of

NAMES = [metric.name for metric in published_metrics()]


@each_case("name", NAMES)
def test_every_published_definition_says_what_it_reproduces(name: str) -> None:
    """Each has a formula and a source of comparison, and its prompts are named as ours if it has any."""
    found = reproduction(name)
    assert found is not None
    assert found["checked"]
    assert "{" not in "".join(found["reproduced"])
    definition = parse_metric(name)
    if not is_composite(definition):
        assert (WORDING in found["not_reproduced"]) == (Completion in definition.asks)
        assert bool(found["sampling"]) == (Completion in definition.asks)


def test_no_family_is_declared_twice_or_for_nothing() -> None:
    """Each row is the first that fits some definition."""
    first = {next(row for row in families() if name.startswith(row)) for name in NAMES}
    assert [row for row in families() if row not in first] == []


def test_our_own_metrics_reproduce_nothing() -> None:
    """A native metric's card has no such entry."""
    for name in native_metrics():
        assert reproduction(name) is None


@each_case(
    ("text", "sampling"),
    [
        ("ragas-0.0.12:context_relevancy", [Sampling(0.2, 2)]),
        ("ragas-0.0.15:faithfulness", [Sampling(0.0, 1)]),
        ("ragas-0.1.9:answer_relevancy", [Sampling(0.3, 3)]),
        ("ragas-0.1.9:faithfulness", [Sampling(1e-8, 1)]),
        ("ragas-0.1.9:faithfulness(reproducibility=3)", [Sampling(1e-8, 1), Sampling(0.3, 3)]),
        ("ragas-0.3.0:faithfulness", [Sampling(1e-8, 1)]),
        ("ragas-0.4.3:answer_relevancy", [Sampling(0.3, 3)]),
        ("ragas-0.4.3:collections.answer_relevancy", [Sampling(0.01, 1)]),
        ("nvidia:context_relevance", [Sampling(0.1, 1)]),
        ("spring-ai-ragas:context_relevance", [Sampling(0.1, 1)]),
        ("trulens:context_relevance", [Sampling(0.0, 1)]),
        ("axion:faithfulness", [Sampling(None, 1)]),
        ("deepeval-4.3.1:faithfulness", [Sampling(None, 1)]),
        ("umbrela:relevance", [Sampling(None, 1)]),
        ("ragas-0.4.3:exact_match", []),
    ],
)
def test_the_sampling_is_what_the_plan_asks_for(text: str, sampling: list[Sampling]) -> None:
    """Temperature and replies for each request are found in the requests, so a parameter changes them."""
    metric: Any = parse_metric(text)
    assert sampling_of(metric) == sampling


@each_case("name", [name for name in NAMES if not is_composite(parse_metric(name))])
def test_a_temperature_that_is_left_to_the_judge_is_no_claim(name: str) -> None:
    """The temperature stands under what is reproduced if every request has one, else under what is not."""
    found, metric = reproduction(name), parse_metric(name)
    assert found is not None
    given = {each.temperature is not None for each in sampling_of(metric)}  # type: ignore[arg-type]  # no composite
    assert len(given) <= 1
    assert any(each.startswith("the sampling: ") for each in found["reproduced"]) == (given == {True})
    assert any("the temperature among them" in each for each in found["not_reproduced"]) == (given == {False})


def test_a_card_names_the_parameters_of_its_own_definition() -> None:
    """The text of a family is filled with the defaults of each definition."""
    record = card_record("ragas-0.4.3:collections.faithfulness")["reproduction"]
    assert any("re-asked up to 2 times" in each for each in record["reproduced"])
    assert any("top_p=0.1" in each for each in record["not_reproduced"])
    text = " ".join(str(card_page("deepeval:faithfulness", 100)).split())
    assert f"differs {WORDING}" in text
    assert "checked compared with a run of DeepEval 4.3.1" in text
