from math import log2

import pytest
from each_case import each_case

from merilo.commands.metrics.text import Edge, edge_outcome, edge_scores, edges
from merilo.metrics.base import Score
from merilo.metrics.registry import parse_metric

TEXTS = (
    "context_relevance context_ranking context_precision context_precision(against=reference) context_recall "
    "context_sufficiency context_utilization faithfulness answer_relevancy context_entity_recall noise_sensitivity "
    "answer_completeness answer_correctness critique(aspect=coherence) id_precision id_recall nDCG hit_rate@1 "
    "precision@2 citation_recall citation_precision citation_f1 nugget_recall"
).split()
U = None
ONE_OF_TWO = 1 / (1 + 1 / log2(3))
"""nDCG of one relevant id of two, at the first rank."""
EXPECTED = {
    "the usual case": (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
    "nothing was retrieved": (U, U, U, U, 0, 0, U, 0, 1, 0, U, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1),
    "every context is blank": (0, U, 0, 0, 0, 0, U, 0, 1, 0, U, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1),
    "there is one context": (1, U, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0.5, ONE_OF_TWO, 1, 0.5, 0.5, 0.5, 0.5, 1),
    "no context is relevant": (0, U, 0, 0, 1, 1, U, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
    "the response is blank": (1, 1, 1, 1, 1, 1, U, U, U, 1, U, 0, 0, U, 1, 1, 1, 1, 1, U, U, U, 0),
    "the response declines to answer": (1, 1, 1, 1, 1, 1, 1, U, U, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, U, U, U, 1),
    "the response makes no statement": (1, 1, 1, 1, 1, 1, 0, U, U, 1, U, 1, 0, 1, 1, 1, 1, 1, 1, U, U, U, 1),
    "the response cites nothing": (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, U, 0, 1),
    "the response cites a number without a context": (
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        0.5,
        2 / 3,
        1,
    ),
    "the question has no nuggets": (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, U),
    "the reference is blank": (1, 1, 1, U, U, 1, 1, 1, 1, U, U, 1, U, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
    "the reference makes no statement": (1, 1, 1, 1, U, 1, 1, 1, 1, 1, U, 1, U, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
    "the reference names no entity": (1, 1, 1, 1, 1, 1, 1, 1, 1, U, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
    "no context is named as relevant": (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, U, U, U, U, U, 1, 1, 1, 1),
    "the user input is blank": (U, U, U, U, 1, U, U, 1, U, 1, 0, U, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
    "the user input asks for nothing": (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, U, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
    "a needed field is missing": (U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U),
}
"""The value of each metric of TEXTS in each case; U where it is undefined."""


@each_case("edge", edges())
def test_edge_cases(edge: Edge) -> None:
    """Each metric gives at each edge what the table says."""
    outcomes = [edge_outcome(parse_metric(text), edge) for text in TEXTS]
    values = tuple(each.value if isinstance(each, Score) else U for each in outcomes)
    assert values == pytest.approx(EXPECTED[edge.name])


def test_scores_at_edges() -> None:
    """A metric's page names the edges that change its score to 0 or 1: not those that leave it undefined or between."""
    assert edge_scores(parse_metric("id_recall")) == {"nothing was retrieved": 0}
    assert edge_scores(parse_metric("context_ranking")) == {}
    assert edge_scores(parse_metric("answering.declined_wrongly")) == {
        "the response is blank": 1,
        "the response declines to answer": 1,
    }
