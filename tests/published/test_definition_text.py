"""The table of `merilo metrics NAME --on DATA`, and the page for one sample."""

from pathlib import Path

import pytest
from command_line import Here

from merilo.commands.blocking import run_blocking
from merilo.commands.evaluate.options import Storage
from merilo_published.definition_tables import DefinitionTables, compute_definitions, definitions_page

ROWS = [
    {"id": "tower", "user_input": "When?", "retrieved_contexts": ["In 1889. Of iron.", "Rome has hills."]},
    {"id": "river", "user_input": "How long?", "retrieved_contexts": ["It is 120 km long."]},
    {"id": "empty", "user_input": "Who?", "retrieved_contexts": []},
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> DefinitionTables:
    out = tmp_path_factory.mktemp("run") / "r"
    return run_blocking(compute_definitions(ROWS, "context_relevance", out=out, storage=Storage(cache=False)))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_name_is_whole_in_its_table(tables: DefinitionTables, width: int) -> None:
    """A name too long for its column has its own line, so that no two rows look equal."""
    text = str(definitions_page(tables, width))
    table = text.split("\n\n")[1].splitlines()
    for row in tables.rows:
        assert any(line.split("  ")[0].rstrip("*") == row.definition for line in table), row.definition
    assert "..." not in text


def test_notes_give_the_reasons_for_missing_scores(tables: DefinitionTables) -> None:
    """Samples that a definition did not score have their reason and count below the table."""
    assert "unscored: 1 undefined: no context was retrieved (1)\n" in str(definitions_page(tables, 200))


def test_one_sample_shows_how_each_definition_computes_its_number(tmp_path: Path) -> None:
    """From the command line: a file with one sample prints the computation, and the command that shows all replies."""
    here = Here(tmp_path)
    here.write("data.jsonl", ROWS[:1])
    done = here.merilo("metrics", "context_relevance", "--on", "data.jsonl")
    assert done.returncode == 0, done.stderr
    assert "ragas-0.1.9:context_relevancy\n" in done.stdout
    assert " of 3 sentences\n" in done.stdout
    assert "--sample tower\n" in done.stdout
    found = here.json("metrics", "context_relevance", "--on", "data.jsonl")
    assert [each["definition"] for each in found["definitions"][:2]] == [
        "context_relevance",
        "context_relevance(unit=context)",
    ]


def test_a_name_without_definitions_is_refused(tmp_path: Path) -> None:
    """The families are listed; --judge without --on is a usage error."""
    here = Here(tmp_path)
    here.write("data.jsonl", ROWS[:1])
    done = here.merilo("metrics", "answering", "--on", "data.jsonl")
    assert done.returncode == 2
    assert "context_relevance, context_precision" in done.stderr
    assert here.merilo("metrics", "--judge", "embedded").returncode == 2
