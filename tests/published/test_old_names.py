"""Runs of merilo 0.1.0 with definitions that have other names and defaults today stay readable and replay alike."""

from __future__ import annotations

from pathlib import Path

import pytest

import merilo
from merilo.commands.show.worst import metric_of
from merilo.metrics.registry import metric_text, parse_metric
from merilo.metrics.text import is_called
from merilo.results.scores import read_scores

TAPE = Path(__file__).parent.parent / "replays" / "published-0.1.0.jsonl.gz"
"""Six samples with readable and unreadable replies, recorded by 0.1.0."""
OLD = "deepeval:contextual_relevancy"


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> merilo.Replay:
    return merilo.replay(TAPE, out=tmp_path_factory.mktemp("old") / "run")


def test_a_tape_of_0_1_0_replays_bit_equal(replay: merilo.Replay) -> None:
    """Loose reading and the collections without re-asks are still what a recorded version 1 means."""
    assert (replay.equal, replay.different) == (30, 0)
    assert replay.versions == {}
    assert any(each.failed for each in replay.run.metrics.values())


def test_a_replayed_run_keeps_the_version_that_it_computes(replay: merilo.Replay) -> None:
    """The replay of a replay is equal too, since the new manifest names version 1."""
    assert set(replay.run.manifest.metrics.values()) == {1}
    assert merilo.replay(replay.run.path).same


@pytest.mark.parametrize("name", [OLD, "deepeval-4.3.1:contextual_relevancy"])
def test_an_old_run_is_read_by_both_names(replay: merilo.Replay, name: str) -> None:
    """The name with and the name without a version find the metric, in Python and on the command line."""
    assert replay.run.metrics[name].metric == OLD
    assert metric_of(replay.run, name) == OLD
    assert [*read_scores(replay.run.path, metrics=[name]).columns] == [OLD]


@pytest.mark.parametrize(
    ("text", "name", "called"),
    [
        ("deepeval-4.3.1:faithfulness(reply=loose)", "deepeval:faithfulness", True),
        ("deepeval-4.3.1:faithfulness(reply=loose)", "deepeval:faithfulness(reply=loose)", True),
        ("deepeval-4.3.1:faithfulness(reply=loose)", "deepeval:faithfulness(reply=schema)", False),
        ("deepeval-4.3.1:faithfulness", "faithfulness", False),
        ("precision@5", "precision", True),
        ("critique(aspect=deepeval:x)", "critique", True),
    ],
)
def test_a_metric_is_called_by_its_text_or_its_name(text: str, name: str, called: bool) -> None:
    """A name without parameters finds the metric with any; the version may be left out where it is the newest."""
    assert is_called(text, name) is called


def test_a_new_metric_names_its_version() -> None:
    """`deepeval:...` is the newest version, and its text names that version."""
    assert metric_text(parse_metric(OLD)) == "deepeval-4.3.1:contextual_relevancy"
    with pytest.raises(merilo.UsageError, match=r"'deepeval:faithfullness'; did you mean deepeval-4"):
        parse_metric("deepeval:faithfullness")
