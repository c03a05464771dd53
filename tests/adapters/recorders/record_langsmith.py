"""Record runs with the models of LangSmith's own client. Argument: a folder. Needs langsmith."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from langsmith.schemas import Run

DONE = "The tower was completed in 1889."
QUESTION = "When was the tower completed?"
FIRST = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
IDS = [UUID(int=0x11111111111141118111111111111100 + number) for number in range(3)]


def run(number: int, kind: str, name: str, given: dict, made: dict, **more: object) -> Run:
    """Return a run as `Client.list_runs` does."""
    return Run(
        id=IDS[number],
        trace_id=IDS[0],
        parent_run_id=IDS[0] if number else None,
        name=name,
        run_type=kind,
        start_time=FIRST + timedelta(seconds=number),
        end_time=FIRST + timedelta(seconds=number + 1),
        inputs=given,
        outputs=made,
        dotted_order="",
        **more,
    )


def main() -> None:
    """Write `langsmith.jsonl`, one run per line."""
    document = {"page_content": DONE, "metadata": {"source": "guide.md"}, "type": "Document"}

    def message(kind: str, text: str) -> dict:
        names = ["langchain", "schema", "messages", kind]
        return {"lc": 1, "type": "constructor", "id": names, "kwargs": {"content": text}}

    lines = [
        run(
            0,
            "chain",
            "ask",
            {"question": QUESTION},
            {"answer": "In 1889."},
            feedback_stats={"correctness": {"n": 2, "avg": 0.5}},
        ),
        run(1, "retriever", "retrieve", {"query": "tower"}, {"documents": [document]}),
        run(
            2,
            "llm",
            "chat",
            {"messages": [[message("SystemMessage", DONE), message("HumanMessage", QUESTION)]]},
            {"generations": [[{"text": "In 1889.", "message": message("AIMessage", "In 1889.")}]]},
        ),
    ]
    text = "".join(each.model_dump_json(exclude_none=True) + "\n" for each in lines)
    Path(sys.argv[1], "langsmith.jsonl").write_text(text, encoding="utf-8")


main()
