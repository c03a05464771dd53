"""`merilo run` with a published composite: embedder, cross-encoder and composite on the command line."""

from command_line import Here
from embedding_server import EmbeddingServer
from server import Asked, JudgeServer

SAMPLE = {
    "id": "1",
    "user_input": "Where is the tower?",
    "retrieved_contexts": ["The tower is in Paris. It is tall."],
    "response": "It is in Paris.",
    "reference": "The tower is in Paris.",
}


VECTORS = """
from merilo.judges.embeddings import OpenAIEmbeddingsJudge
from merilo.providers.openai import OpenAIProvider
from merilo.providers.openai import OpenAIEmbeddingsProvider

JUDGE = OpenAIEmbeddingsJudge(OpenAIEmbeddingsProvider(OpenAIProvider("e", base_url="{}")))
"""


def reply(asked: Asked) -> str:
    """A reply that each of the four metrics can read."""
    del asked
    return "1. The tower is in Paris. So [Attributed]"


def test_a_composite_is_computed_from_the_command_line(here: Here) -> None:
    """Its parts come with it, vectors from the embedding model; `run` tells the composite below its parts."""
    here.write("data.jsonl", [SAMPLE])
    with JudgeServer(reply) as judges, EmbeddingServer() as vectors:
        arguments = [
            "run",
            "data.jsonl",
            "--metrics",
            "ragas-0.0.12:ragas_score",
            "--judge",
            "openai:m",
            "--out",
            "out",
        ]
        (here.path / "vectors.py").write_text(VECTORS.format(vectors.base_url), encoding="utf-8")
        arguments += ["--base-url", judges.base_url, "--judge", "embeddings=vectors.py:JUDGE"]
        found = here.json(*arguments, "--max-failed", "1")
        assert vectors.asked[0]["model"] == "e"
    texts = list(found["metrics"])
    assert texts[-1] == "ragas-0.0.12:ragas_score"
    assert found["metrics"]["ragas-0.0.12:ragas_score"]["made_of"] == texts[:-1]
    means = [found["metrics"][text]["mean"] for text in texts]
    assert None not in means
    assert abs(means[-1] - 4 / sum(1 / mean for mean in means[:-1])) < 1e-9
    shown = here.merilo("show", "out", "--full").stdout
    assert "openai-embeddings:e" in shown
    assert "embedded (all-MiniLM-L6-v2;" in shown


def test_an_unknown_cross_encoder_is_told(here: Here) -> None:
    """A form that does not exist is wrong use."""
    here.write("data.jsonl", [SAMPLE])
    done = here.merilo("run", "data.jsonl", "--judge", "similarities=openai:m")
    assert done.returncode == 2
    assert "A cross-encoder is one of embedded, local:MODEL, scripted:FILE" in done.stderr
