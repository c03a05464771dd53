"""A recorded run with published definitions, whose replies were read loosely, still recomputes to its values."""

import gzip
import shutil
from pathlib import Path

import pytest
from each_case import each_case

import merilo
from merilo.commands.verify.replay import State, verify_run
from merilo.metrics.registry import parse_metric
from merilo.metrics.text import is_called, metric_text

RECORDED = Path(__file__).parent.parent / "recorded" / "published"
"""Six samples with readable and unreadable replies of a language model."""
OLD = "deepeval:contextual_relevancy"


def test_a_recorded_run_recomputes_bit_equal(tmp_path: Path) -> None:
    """Every value, interval and count follows from the stored replies as it did when they were recorded."""
    shutil.copytree(RECORDED, tmp_path / "run")
    packed = tmp_path / "run" / "store.sqlite.gz"
    packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    found = verify_run(tmp_path / "run")
    assert (found.state, found.recomputed, found.different) == (State.VERIFIED, 30, 0)
    assert any(each.failed for each in merilo.Run.open(tmp_path / "run").metrics.values())


@each_case(
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
