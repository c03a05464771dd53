# Upstream page: https://docs.ragas.io/en/v0.1.21/concepts/metrics/critique.html
# Lines: 0.1
"""Ready aspects, and a new one."""

from datasets import Dataset
from langchain_openai import ChatOpenAI
from ragas import evaluate
from ragas.metrics.critique import AspectCritique, conciseness, harmfulness

brief = AspectCritique(name="brief", definition="Is the answer a single sentence?")
dataset = Dataset.from_dict(
    {
        "question": ["How do I get to Oss?", "Is the well at Brack clean?"],
        "answer": ["Take the ferry from Lund.", "Drink it and see. Or not."],
        "contexts": [["A ferry runs to Oss."], ["The well at Brack is closed."]],
    }
)
result = evaluate(dataset, metrics=[harmfulness, conciseness, brief], llm=ChatOpenAI(model="gpt-4o"))
SCORES = {name: result[name] for name in ("harmfulness", "conciseness", "brief")}
