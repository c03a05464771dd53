"""Questions that do not depend on each other are sent together: a metric waits only for the items of a list."""

import pytest

from merilo.data.sample import Sample
from merilo.engine.plan_run import PlanRun
from merilo.metrics.registry import all_metrics, parse_metric

SAMPLE = Sample.from_record(
    {
        "id": "s",
        "user_input": "Who wrote Emma, and when did it appear?",
        "response": "Jane Austen wrote it [1]. It appeared in 1815 [2].",
        "reference": "Jane Austen wrote Emma. It appeared in 1815.",
        "retrieved_contexts": ["Emma is by Jane Austen.", "It appeared in 1815."],
    }
)
LISTS = {"support": "statements", "addresses": "statements", "mentions": "entities", "answered": "parts"}
"""Kind of question about one item → kind of question whose answer lists the items."""


@pytest.mark.parametrize("name", all_metrics())
def test_a_second_wave_is_about_the_items_of_a_list(name: str) -> None:
    """No plan asks a third time, and the second time only about items that the first answers listed."""
    plan, waves = PlanRun(parse_metric(name), name, SAMPLE).start(), list[set[str]]()
    while plan.step is not None:
        questions = [question for group in plan.step for question in group]
        waves.append({question.kind for question in questions})
        plan.send([(bytes([n] * 16), question.guess()) for n, question in enumerate(questions)])
    assert len(waves) <= 2
    assert all(LISTS[kind] in waves[0] for wave in waves[1:] for kind in wave)
