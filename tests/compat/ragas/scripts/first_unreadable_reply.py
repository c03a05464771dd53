# Upstream page: https://docs.ragas.io/en/v0.1.21/howtos/customisations/run_config.html
# Lines: 0.1
"""A row whose judge never gives JSON has no score."""

from datasets import Dataset
from langchain_openai import ChatOpenAI
from ragas import evaluate
from ragas.metrics import context_recall
from ragas.run_config import RunConfig

dataset = Dataset.from_dict(
    {
        "question": ["What is sold at Noll?", "What is in the barn?"],
        "contexts": [["Wool is sold at Noll."], ["The barn holds hay."]],
        "ground_truth": ["Wool is sold at Noll.", "Hay is in the barn."],
    }
)
result = evaluate(
    dataset, metrics=[context_recall], llm=ChatOpenAI(model="gpt-4o"), run_config=RunConfig(max_retries=1)
)
rows = result.to_pandas()["context_recall"]
SCORES = {"mean": result["context_recall"], "first": rows[0], "second": rows[1]}
