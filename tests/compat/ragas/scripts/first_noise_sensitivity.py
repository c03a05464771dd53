# Upstream page: https://docs.ragas.io/en/v0.1.21/concepts/metrics/noise_sensitivity.html
# Lines: 0.1
"""Noise sensitivity, relevant and irrelevant."""

from datasets import Dataset
from langchain_openai import ChatOpenAI
from ragas import evaluate
from ragas.metrics import noise_sensitivity_irrelevant, noise_sensitivity_relevant

dataset = Dataset.from_dict(
    {
        "question": ["What happens at Pell in January?"],
        "answer": ["The harbour at Pell freezes. Boats are moved to Oss."],
        "ground_truth": ["The harbour at Pell freezes. Boats are pulled ashore."],
        "contexts": [["In January Pell harbour is ice-bound.", "Boats from Pell winter at Oss, says an old song."]],
    }
)
result = evaluate(
    dataset, metrics=[noise_sensitivity_relevant, noise_sensitivity_irrelevant], llm=ChatOpenAI(model="gpt-4o")
)
SCORES = {name: value for name, value in result.items()}
