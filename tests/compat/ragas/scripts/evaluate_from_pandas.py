# Upstream page: https://docs.ragas.io/en/v0.3.9/getstarted/evals/
# Lines: 0.2 0.3 0.4
"""Evaluate a data frame, with a model passed as it is."""

import pandas as pd
from langchain_openai import ChatOpenAI
from ragas import EvaluationDataset, RunConfig, evaluate
from ragas.metrics import context_precision, context_recall

frame = pd.DataFrame(
    {
        "user_input": ["Which birds nest on Gann?", "Who owns the inn at Oss?"],
        "retrieved_contexts": [["Terns nest on Gann.", "Gann has a jetty."], ["The inn at Oss is old."]],
        "reference": ["Terns nest on Gann.", "Jon Bree owns the inn at Oss."],
    }
)
dataset = EvaluationDataset.from_pandas(frame)
result = evaluate(
    dataset,
    metrics=[context_precision, context_recall],
    llm=ChatOpenAI(model="gpt-4o"),
    run_config=RunConfig(max_workers=4),
    show_progress=False,
)
scores = result.to_pandas()
SCORES = {f"{name} of {at}": scores[name][at] for name in ("context_precision", "context_recall") for at in (0, 1)}
