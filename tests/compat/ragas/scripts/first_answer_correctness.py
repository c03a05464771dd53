# Upstream page: https://docs.ragas.io/en/v0.1.21/concepts/metrics/answer_correctness.html
# Lines: 0.1
"""Correctness and likeness, with LangChain's models."""

from datasets import Dataset
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from ragas import evaluate
from ragas.metrics import answer_correctness, answer_similarity

dataset = Dataset.from_dict(
    {
        "question": ["Who built the mill at Sarn?"],
        "answer": ["Ada Holt built the mill at Sarn in 1902."],
        "ground_truth": ["Ada Holt built the mill at Sarn in 1912."],
    }
)
score = evaluate(
    dataset,
    metrics=[answer_correctness, answer_similarity],
    llm=ChatOpenAI(model="gpt-4o"),
    embeddings=OpenAIEmbeddings(check_embedding_ctx_length=False),
)
SCORES = dict(score)
