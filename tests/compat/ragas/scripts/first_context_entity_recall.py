# Upstream page: https://docs.ragas.io/en/v0.1.21/concepts/metrics/context_entities_recall.html
# Lines: 0.1
"""Entities of the ground truth in the contexts."""

from datasets import Dataset
from ragas import evaluate
from ragas.metrics import context_entity_recall, context_utilization

dataset = Dataset.from_dict(
    {
        "question": ["Who opened the observatory?"],
        "answer": ["Mira Tolk did."],
        "contexts": [["The observatory of Henge was opened by Mira Tolk.", "It has a dome."]],
        "ground_truth": ["Mira Tolk opened the observatory at Henge in 1954."],
    }
)
score = evaluate(dataset, metrics=[context_entity_recall, context_utilization])
SCORES = {name: score[name] for name in ("context_entity_recall", "context_utilization")}
