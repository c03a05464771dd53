# Upstream page: https://docs.ragas.io/en/v0.1.21/howtos/applications/custom_prompts.html
# Lines: 0.1
"""Columns with other names."""

from datasets import Dataset
from langchain_openai import ChatOpenAI
from ragas import evaluate
from ragas.metrics import context_recall

dataset = Dataset.from_dict(
    {
        "query": ["What grows in the Orrin valley?"],
        "passages": [["Barley and rye grow in the Orrin valley."]],
        "truth": ["Barley grows in the Orrin valley. Rye grows there. So do apples."],
    }
)
columns = {"question": "query", "contexts": "passages", "ground_truth": "truth"}
result = evaluate(dataset, metrics=[context_recall], llm=ChatOpenAI(model="gpt-4o"), column_map=columns)
SCORES = {"context_recall": result["context_recall"]}
