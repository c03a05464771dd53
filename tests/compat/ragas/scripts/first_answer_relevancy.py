# Upstream page: https://docs.ragas.io/en/v0.1.21/concepts/metrics/answer_relevance.html
# Lines: 0.1
"""Relevancy of an answer."""

from datasets import Dataset
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from ragas import evaluate
from ragas.metrics import answer_relevancy

dataset = Dataset.from_dict(
    {
        "question": ["How long is the Ketter bridge?"],
        "answer": ["The Ketter bridge is 310 metres long."],
        "contexts": [["The bridge at Ketter measures 310 metres."]],
    }
)
score = evaluate(
    dataset,
    metrics=[answer_relevancy],
    llm=ChatOpenAI(model="gpt-4o"),
    embeddings=OpenAIEmbeddings(check_embedding_ctx_length=False),
)
SCORES = {"answer_relevancy": score["answer_relevancy"]}
