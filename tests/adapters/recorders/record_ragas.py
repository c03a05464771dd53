"""Record a result with ragas's own result classes, 0.1 to 0.4. Argument: a folder. Needs ragas.

The scores are set, so no model is asked.
"""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

QUESTIONS = ["When was the tower completed?", "Who built it?"]
CONTEXTS = [["The tower was completed in 1889."], ["Rome has seven hills.", "It's of iron."]]
RESPONSES = ["In 1889.", "Eiffel."]
REFERENCES = ["1889", "Eiffel"]
SCORES = [{"faithfulness": 1.0, "answer_relevancy": 0.75}, {"faithfulness": 0.5, "answer_relevancy": float("nan")}]


def of_0_1() -> Any:
    """Return a result as 0.1 makes it."""
    from datasets import Dataset
    from ragas.evaluation import Result

    columns = {"question": QUESTIONS, "contexts": CONTEXTS, "answer": RESPONSES, "ground_truth": REFERENCES}
    return Result(scores=Dataset.from_list(SCORES), dataset=Dataset.from_dict(columns))


def of_0_2() -> Any:
    """Return a result as 0.2 and later make it."""
    import ragas.dataset_schema as schema

    schema.parse_run_traces = lambda *_: []  # no evaluation ran, so there is no record of its calls
    rows = zip(QUESTIONS, CONTEXTS, RESPONSES, REFERENCES, strict=True)
    names = ("user_input", "retrieved_contexts", "response", "reference")
    samples = [schema.SingleTurnSample(**dict(zip(names, row, strict=True))) for row in rows]
    return schema.EvaluationResult(scores=SCORES, dataset=schema.EvaluationDataset(samples), binary_columns=[])


def main() -> None:
    """Write `ragas_0_X.csv` and `.json`, and for 0.2 and later the data set as `.jsonl`."""
    minor = int(version("ragas").split(".")[1])
    result = of_0_1() if minor < 2 else of_0_2()
    folder = Path(sys.argv[1])
    frame = result.to_pandas()
    frame.to_csv(folder / f"ragas_0_{minor}.csv", index=False)
    frame.to_json(folder / f"ragas_0_{minor}.json", orient="records", indent=1)
    if minor > 1:
        result.dataset.to_jsonl(folder / f"ragas_0_{minor}_data.jsonl")


main()
