"""The tables of `merilo lineage` as people read them, and what the command does beside them."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import Here

import merilo
from merilo.commands.evaluate.cli import run
from merilo.commands.lineage.cli import lineage
from merilo.commands.lineage.text import lineage_page, lineage_sample_page
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.embeddings import Embeddings
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.sentences import Sentences
from merilo.judging.kinds.similarities import Similarities
from merilo.judging.registry import KINDS
from merilo.metrics.lineage.formula import Lineage

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.commands.lineage.result import LineageTables
    from merilo.judging.questions import Question

HOLISTIC = "axion:contextual_relevancy(mode=holistic, mode_effect=documented)"
ROWS = [
    {"id": "tower", "user_input": "When?", "retrieved_contexts": ["In 1889. Of iron.", "Rome has hills."]},
    {"id": "river", "user_input": "How long?", "retrieved_contexts": ["It is 120 km long."]},
    {"id": "empty", "user_input": "Who?", "retrieved_contexts": []},
]


def answer(question: Question[Any]) -> Any:
    """Figures are relevant; axion's list of verdicts cannot be read, every other reply is the likely one."""
    if isinstance(question, Relevance):
        found = any(sign.isdigit() for sign in question.sentences[0])
        return {"grade": 2 * found, "evidence": [0] if found else []}
    if isinstance(question, Completion) and "relevancy_task" in question.rubric:
        return {"text": "No idea."}
    return question.guess()


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> LineageTables:
    answers = frozenset(KINDS.values()) - {Sentences, Embeddings, Similarities}
    return merilo.lineage(
        ROWS,
        families=["context_relevance"],
        as_published=True,
        judge=ScriptedJudge.by(answer, answers=answers),
        out=tmp_path_factory.mktemp("run") / "r",
        cache=False,
    )


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_name_stands_whole_in_its_table(published: LineageTables, width: int) -> None:
    """A name too long for its column has a line of its own: two rows are never told apart by "..." alone."""
    text = str(lineage_page(published, width))
    table = text.split("\n\n")[1].splitlines()
    for row in published.families[Lineage.CONTEXT_RELEVANCE]:
        assert any(line.split("  ")[0] == row.definition for line in table), row.definition
    assert "..." not in text
    assert all(len(line) <= width for line in text.splitlines() if not line.startswith(("  kept in", HOLISTIC)))


def test_below_the_table_stands_why_samples_are_not_scored_and_what_was_scored_all_the_same(
    published: LineageTables,
) -> None:
    """Samples that "scored" does not count and those under "flags" have their reasons on the page, with counts."""
    text = str(lineage_page(published, 200))
    assert "  context_relevance" in text
    assert "    unscored: 1 undefined: no context was retrieved (1)\n" in text
    flags = next(
        row.aggregate.flags
        for row in published.families[Lineage.CONTEXT_RELEVANCE]
        if row.definition == "axion:contextual_relevancy"
    )
    assert flags
    told = "; ".join(f"{flag} ({amount})" for flag, amount in flags.items())
    assert f"  axion:contextual_relevancy\n    scored anyway: {told}\n" in text


def test_a_count_that_a_definition_does_not_make_is_not_laid_to_the_judge(published: LineageTables) -> None:
    """The holistic relevancy of axion counts no chunks; that is its way, and no lack of this judge."""
    text = str(lineage_sample_page(published, "river", 100))
    after = text.split(HOLISTIC)[1].splitlines()[1]
    assert after.strip() == "contexts 1"


def test_a_sample_leads_on_to_its_replies(published: LineageTables) -> None:
    """The page of one sample ends with the command that shows every reply behind it."""
    text = str(lineage_sample_page(published, "river", 100))
    assert text.endswith(f"show {published.run.path} --sample river\n")


# -- through the command line --------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path) -> Here:
    made = Here(tmp_path)
    made.write("data.jsonl", ROWS)
    return made


def test_a_sample_alone_is_evaluated(here: Here) -> None:
    """`--sample` asks about that sample only, and of a run that is there about all, as the run has them."""
    arguments = ("lineage", "data.jsonl", "--family", "context_relevance", "--sample", "river")
    found = here.json(*arguments)
    manifest = json.loads((here.path / found["run"] / "manifest.json").read_text())
    assert (manifest["samples"], manifest["data"]) == (1, "data")
    here.merilo("lineage", "data.jsonl", "--family", "context_relevance", "--out", "whole")
    again = here.json(*arguments, "--out", "whole")
    assert again["families"] == found["families"]


def test_a_sample_that_is_not_there_is_refused_before_anything_is_asked(here: Here) -> None:
    """An unknown id is told with those that there are, and no run is begun."""
    done = here.merilo("lineage", "data.jsonl", "--sample", "nope")
    assert done.returncode == 2
    assert done.stderr == "data has no sample with the id 'nope'; its first ones are tower, river, empty.\n"
    assert not (here.path / ".merilo").exists()


def test_a_judge_that_writes_nothing_is_told(here: Here) -> None:
    """With `--as-published` and the embedded judge no published row is there, and what to do is said."""
    done = here.merilo("lineage", "data.jsonl", "--family", "context_relevance", "--as-published")
    assert done.returncode == 0
    assert "--judge openai:MODEL" in done.stderr


def test_lineage_takes_what_run_takes() -> None:
    """Options of `merilo run` that `merilo lineage` lacks bound, split, repeat or reword its work, or write reports."""
    missing = set(inspect.signature(run).parameters) - set(inspect.signature(lineage).parameters)
    assert missing == {
        *("metrics", "qrels", "max_failed", "record", "prices", "full", "github", "markdown"),
        *("max_cost", "max_requests", "max_seconds", "unanswered", "until_decided", "baseline", "draws"),
        *("shard", "batch", "batch_files", "outcomes", "documents", "prompts", "runner", "workers"),
    }
