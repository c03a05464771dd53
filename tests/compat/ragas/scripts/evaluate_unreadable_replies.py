# Upstream page: https://docs.ragas.io/en/v0.2.15/references/evaluate/
# Lines: 0.2 0.3 0.4
"""A row whose judge never gives JSON has no score; the mean is over the others."""

import math

from langchain_openai import ChatOpenAI
from ragas import EvaluationDataset, evaluate
from ragas.metrics import LLMContextRecall

dataset = EvaluationDataset.from_list(
    [
        {
            "user_input": "What is sold at Noll?",
            "retrieved_contexts": ["Wool is sold at Noll."],
            "reference": "Wool is sold at Noll.",
        },
        {
            "user_input": "What is in the barn?",
            "retrieved_contexts": ["The barn holds hay."],
            "reference": "Hay is in the barn.",
        },
    ]
)
result = evaluate(dataset, metrics=[LLMContextRecall()], llm=ChatOpenAI(model="gpt-4o"))
first, second = result["context_recall"]
SCORES = {"first": first, "second": second, "second is missing": math.isnan(second)}
