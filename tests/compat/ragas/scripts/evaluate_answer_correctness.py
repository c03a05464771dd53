# Upstream page: https://docs.ragas.io/en/v0.2.15/references/evaluate/
# Lines: 0.2 0.3 0.4
"""Correctness in evaluate, with models for all metrics."""

from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from ragas import EvaluationDataset, SingleTurnSample, evaluate
from ragas.metrics import answer_correctness, answer_similarity

sample = SingleTurnSample(
    user_input="Who built the mill at Sarn?",
    response="Ada Holt built the mill at Sarn in 1902.",
    reference="Ada Holt built the mill at Sarn in 1912.",
)
result = evaluate(
    EvaluationDataset(samples=[sample]),
    metrics=[answer_correctness, answer_similarity],
    llm=ChatOpenAI(model="gpt-4o"),
    embeddings=OpenAIEmbeddings(check_embedding_ctx_length=False),
)
SCORES = {name: scores for name in ("answer_correctness",) for scores in result[name]}
SCORES["similarity"] = next(iter(result.scores))[[name for name in result.scores[0] if "similarity" in name][0]]
