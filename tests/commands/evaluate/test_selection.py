"""What a run refuses to compute, and the way out that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import merilo

if TYPE_CHECKING:
    from pathlib import Path

ADVICE = "which asks for free text: use an LLM judge (--judge openai:MODEL)"
FORMULA = "or compute its formula over the embedded judge's verdicts: merilo metrics faithfulness --on DATA"
ROW = {"user_input": "When?", "response": "In 1889.", "retrieved_contexts": ["It was completed in 1889."]}


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (
            "ragas-0.1.9:faithfulness",
            f"The embedded judge cannot answer ragas-0.1.9:faithfulness, {ADVICE}, {FORMULA}.",
        ),
        (
            "trulens:groundedness",
            f"The embedded judge cannot answer trulens:groundedness, {ADVICE}.",
        ),
        ("ragas-0.1.9:context_recall", "ragas-0.1.9:context_recall cannot be computed: no sample has reference."),
    ],
)
def test_a_published_metric_names_the_way_out(metric: str, message: str, tmp_path: Path) -> None:
    """The embedded judge writes no free text: the refusal says who does, and where the formula alone is computed."""
    with pytest.raises(merilo.UsageError) as refused:
        merilo.evaluate([ROW], metrics=[metric], out=tmp_path / "run", cache=False)
    assert str(refused.value) == message
    assert not (tmp_path / "run").exists()
