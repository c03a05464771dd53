"""What a run refuses to compute, and the way out that it names."""

from pathlib import Path

import pytest

import merilo

ADVICE = "cannot be computed: the embedded judge writes no free text. Use an LLM judge: judge='openai:MODEL'."
ROW = {"user_input": "When?", "response": "In 1889.", "retrieved_contexts": ["It was completed in 1889."]}


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("ragas-0.1.9:faithfulness", f"ragas-0.1.9:faithfulness {ADVICE}"),
        ("trulens:groundedness", f"trulens:groundedness {ADVICE}"),
        ("ragas-0.1.9:context_recall", "ragas-0.1.9:context_recall needs reference."),
    ],
)
def test_a_published_metric_names_the_way_out(metric: str, message: str, tmp_path: Path) -> None:
    """The embedded judge writes no free text: the refusal says who does."""
    with pytest.raises(merilo.UsageError) as refused:
        merilo.evaluate([ROW], metrics=[metric], out=tmp_path / "run", storage={"cache": False})
    assert str(refused.value) == message
    assert not (tmp_path / "run").exists()


def test_a_refusal_names_the_unread_columns(tmp_path: Path) -> None:
    """A missing field is refused with the columns that were not read, and the mapping of one that has its form."""
    row = {"question": "When?", "answer": "In 1889.", "my_context": ["It was completed in 1889."], "context_url": "a/b"}
    with pytest.raises(merilo.UsageError) as refused:
        merilo.evaluate([row], metrics=["context_relevance"], out=tmp_path / "run", storage={"cache": False})
    assert str(refused.value) == (
        "context_relevance needs retrieved_contexts. Unread columns: 'my_context' (lists of texts), 'context_url'. "
        "Read it: mapping={'my_context': 'retrieved_contexts'}"
    )
