"""Record observations with the models of Langfuse's own client. Argument: a folder. Needs langfuse."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from langfuse.api.commons.types.observation_v2 import ObservationV2

DONE = "The tower was completed in 1889."
QUESTION = "When was the tower completed?"
FIRST = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
ROOT = "a1b2c3d4e5f60718"


def observation(id: str, kind: str, name: str, given: object, made: object, at: int) -> ObservationV2:
    """Return an observation as the interface of Langfuse returns it."""
    return ObservationV2(
        id=id,
        trace_id="9f0c2d1e5b7a4c3d8e6f102938475665",
        start_time=FIRST + timedelta(seconds=at),
        end_time=FIRST + timedelta(seconds=at + 1),
        project_id="guide",
        parent_observation_id=None if id == ROOT else ROOT,
        type=kind,
        name=name,
        input=given,
        output=made,
        session_id="visit-3",
    )


def main() -> None:
    """Write `langfuse.jsonl`, one observation per line."""
    found = [{"page_content": DONE, "metadata": {"source": "guide.md"}, "type": "Document"}]
    messages = [{"role": "system", "content": DONE}, {"role": "user", "content": QUESTION}]
    lines = [
        observation(ROOT, "CHAIN", "ask", {"question": QUESTION}, {"answer": "In 1889."}, 0),
        observation("b1b2c3d4e5f60718", "RETRIEVER", "retrieve", "tower", found, 1),
        observation(
            "c1b2c3d4e5f60718", "GENERATION", "chat", messages, {"role": "assistant", "content": "In 1889."}, 2
        ),
    ]
    text = "".join(each.model_dump_json(by_alias=True, exclude_none=True) + "\n" for each in lines)
    Path(sys.argv[1], "langfuse.jsonl").write_text(text, encoding="utf-8")


main()
