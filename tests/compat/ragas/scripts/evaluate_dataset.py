# Upstream page: https://docs.ragas.io/en/v0.2.15/getstarted/rag_eval/
# Lines: 0.2 0.3 0.4
"""Evaluate the answers of a small RAG with three metrics."""

from langchain_openai import ChatOpenAI
from ragas import EvaluationDataset, evaluate
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import FactualCorrectness, Faithfulness, LLMContextRecall

dataset = [
    {
        "user_input": "How many villages has Iven?",
        "retrieved_contexts": ["Iven, an isle, has two villages, North and South."],
        "response": "The isle of Iven has two villages, a harbour and a school.",
        "reference": "The isle of Iven has two villages and a harbour.",
    },
    {
        "user_input": "When was the Doran lighthouse lit?",
        "retrieved_contexts": ["The lamp at Cape Doran first burned in 1871. The tower is white."],
        "response": "The Doran lighthouse was lit in 1871.",
        "reference": "The lamp of Doran was lit in 1871.",
    },
]
evaluation_dataset = EvaluationDataset.from_list(dataset)
evaluator_llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o"))
result = evaluate(
    dataset=evaluation_dataset,
    metrics=[LLMContextRecall(), Faithfulness(), FactualCorrectness()],
    llm=evaluator_llm,
)
print(result)
frame = result.to_pandas()
SCORES = {
    "context_recall of 1": result["context_recall"][0],
    "faithfulness of 1": result["faithfulness"][0],
    "faithfulness of 2": result["faithfulness"][1],
    "factual of 1": result["factual_correctness(mode=f1)"][0],
    "mean recall": frame["context_recall"].mean(),
    "mean factual": frame["factual_correctness(mode=f1)"].mean(),
}
