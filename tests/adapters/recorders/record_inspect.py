"""Record a log with Inspect's own log writer. Argument: a folder. Needs inspect-ai."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import inspect_ai
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import includes, match
from inspect_ai.solver import Generate, Solver, TaskState, solver


@solver
def answer() -> Solver:
    """Answer without a model."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("none", "In 1889." if state.sample_id == "a" else "The king.")
        return state

    return solve


def main() -> None:
    """Write `inspect.json`, without events, and `inspect.eval`."""
    samples = [
        Sample(
            id="a",
            input="When was the tower completed?",
            target=["1889", "in the year 1889"],
            metadata={"retrieved_contexts": ["The tower was completed in 1889."], "topic": "towers"},
        ),
        Sample(id="b", input="Who built it?", target="Eiffel"),
    ]
    folder = Path(sys.argv[1])
    with TemporaryDirectory() as logs:
        task = Task(name="tower", dataset=samples, solver=answer(), scorer=[includes(), match()])
        (log,) = inspect_ai.eval(task, model="mockllm/model", log_dir=logs, log_format="eval", display="none")
        full = read_eval_log(log.location)
        for each in full.samples or ():
            each.events = []
        write_eval_log(full, str(folder / "inspect.json"))
        write_eval_log(full, str(folder / "inspect.eval"))


main()
