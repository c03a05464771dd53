# Upstream page: https://docs.ragas.io/en/v0.1.21/getstarted/evaluation.html
# Lines: 0.1
"""Evaluate a data set of columns with the models that ragas uses by default."""

from datasets import Dataset
from ragas import evaluate
from ragas.metrics import context_precision, context_recall, faithfulness

data_samples = {
    "question": ["When was the Doran lighthouse lit?", "Which birds nest on Gann?"],
    "answer": ["The Doran lighthouse was lit in 1871. It is painted red.", "Terns nest on Gann."],
    "contexts": [
        ["The lamp at Cape Doran first burned in 1871. The tower is white."],
        ["Gann has a jetty.", "Terns nest on Gann and on Iven."],
    ],
    "ground_truth": ["It was lit in 1871.", "Terns and gulls nest on Gann."],
}
dataset = Dataset.from_dict(data_samples)
result = evaluate(dataset, metrics=[faithfulness, context_precision, context_recall])
print(result)
frame = result.to_pandas()
SCORES = {
    "faithfulness": result["faithfulness"],
    "context_precision": result["context_precision"],
    "context_recall": result["context_recall"],
    "precision of 2": frame["context_precision"][1],
    "recall of 2": frame["context_recall"][1],
}
