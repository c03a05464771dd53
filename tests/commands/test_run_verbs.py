"""The verbs of a run are the public functions, and its samples can be chosen by fault and metadata."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from faulty_run import AMOUNTS, faulty, rows

import merilo
from merilo.commands.compare.record import comparison_record
from merilo.commands.compare.text import comparison_markdown
from merilo.short_repr import GUESSES


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    """A run with every fault, and the team that asked."""
    samples = [{**row, "metadata": {"team": "ab"[place % 2]}} for place, row in enumerate(rows())]
    return faulty(tmp_path_factory.mktemp("runs") / "run", samples)


def test_verbs_are_the_public_functions(run: merilo.Run, tmp_path: Path) -> None:
    """Compare, gate, label and report do what the functions do."""
    other = faulty(tmp_path / "other", rows({**AMOUNTS, ("enough", "strayed"): 12}))
    assert str(run.compare(other)) == str(merilo.compare(other, run))
    assert str(run.gate({"faithfulness": 0.1})) == str(merilo.gate(run, minimums={"faithfulness": 0.1}))
    run.label(metric="faithfulness", number=3, out=tmp_path / "a.jsonl")
    merilo.label(run, metric="faithfulness", number=3, out=tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    one, two = run.report(tmp_path / "one.html"), merilo.report(run, out=tmp_path / "two.html")
    assert one.read_bytes() == two.read_bytes()


def test_worst_samples_are_chosen_by_fault_and_metadata(run: merilo.Run) -> None:
    """A count alone, a fault and values of the metadata choose samples; an unknown fault is refused."""
    assert len(run.worst(3)) == 3
    strayed = run.worst(9, metric="faithfulness", fault="beyond_evidence")
    assert [each.sample.id.rpartition("-")[0] for each in strayed] == ["enough-strayed"] * 4
    team = run.worst(9, metric="faithfulness", fault="beyond_evidence", where={"team": "a"})
    assert {each.sample.id for each in team} < {each.sample.id for each in strayed}
    assert {each.sample.metadata["team"] for each in team} == {"a"}
    with pytest.raises(KeyError, match="No fault 'hallucinated'"):
        run.worst(fault="hallucinated")


def test_a_sample_has_its_fault_and_scores(run: merilo.Run) -> None:
    """The fault is that of the run's table, and the scores are those of the records; None if there is none."""
    for found in run.samples:
        assert found.fault == run.faults.samples[found.sample.id]
        assert found.scores == {name: record.get("value") for name, record in found.records.items()}
    assert run.sample("short-strayed-0").fault == "invented"


def test_a_comparison_leaves_as_a_report_and_a_frame(run: merilo.Run, tmp_path: Path) -> None:
    """Both are those of `merilo.report` and `to_frame`; a file of another kind is refused."""
    other = faulty(tmp_path / "other", rows({**AMOUNTS, ("enough", "strayed"): 12}))
    found = other.compare(run)
    one, two = found.report(tmp_path / "one.html"), merilo.report(run, other, out=tmp_path / "two.html")
    assert one.read_bytes() == two.read_bytes()
    with pytest.raises(merilo.UsageError, match=r"name it .*one\.html"):
        found.report(tmp_path / "one.pdf")
    pytest.importorskip("pandas")
    assert found.to_pandas().equals(found.to_frame())


def test_a_plot_is_svg_with_every_interval(run: merilo.Run, tmp_path: Path) -> None:
    """The figure is well-formed, has each metric with its mean and interval, and its lines are where the ends are."""
    figure = run.plot()
    root = ET.fromstring(figure.save(tmp_path / "means.svg").read_text(encoding="utf-8"))  # noqa: S314  our own file
    assert figure.svg == figure._repr_svg_() == (tmp_path / "means.svg").read_text(encoding="utf-8")
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    lines = [each for each in root.iter("{http://www.w3.org/2000/svg}line") if each.get("stroke-width") == "4"]
    known = [metric for metric in run.metrics.values() if metric.interval is not None]
    assert len(lines) == len(known) > 0
    left = 24 + 7 * max(map(len, run.metrics))
    for metric, line in zip(known, lines, strict=True):
        low, high = metric.interval or (0, 0)
        assert {metric.metric, f"{metric.mean:.3f} ({low:.3f} - {high:.3f})"} <= {*texts}
        drawn = [float(line.get(end) or 0) for end in ("x1", "x2")]
        assert drawn == pytest.approx([left + 300 * low, left + 300 * high], abs=0.1)


@pytest.mark.parametrize(
    ("thing", "name", "advice"),
    [
        ("run", "to_df", "use run.to_pandas()"),
        ("run", "to_dataframe", "use run.to_pandas()"),
        ("run", "results", "use run.samples"),
        ("run", "faithfulness", "use run['faithfulness']"),
        ("comparison", "to_df", "use comparison.to_pandas()"),
        ("comparison", "winner", "use comparison.verdict"),
        ("sample", "response", "use sample.sample.response"),
        ("sample", "verdict", "use sample.fault"),
    ],
)
def test_a_name_that_users_try_says_what_to_use(run: merilo.Run, thing: str, name: str, advice: str) -> None:
    """The error has the advice; another name has none."""
    result = {"run": run, "comparison": merilo.compare(run, run), "sample": run.samples[0]}[thing]
    with pytest.raises(AttributeError, match=rf"^A {thing} has no attribute '{name}': {re.escape(advice)}\.$"):
        getattr(result, name)
    with pytest.raises(AttributeError, match=rf"^A {thing} has no attribute 'nowhere'\.$"):
        getattr(result, "nowhere")  # noqa: B009  type checkers report it


def test_advice_names_what_exists(run: merilo.Run) -> None:
    """Each attribute that the advice names is one of the result, and no attribute with advice is."""
    results = {"run": run, "comparison": merilo.compare(run, run), "sample": run.samples[0]}
    assert {thing for thing, _ in GUESSES} == results.keys()
    for (thing, guess), advice in GUESSES.items():
        assert not hasattr(results[thing], guess), guess
        named = re.search(rf"{thing}(?:\.sample)?\.(\w+)", advice)
        owner = results[thing].sample if ".sample." in advice else results[thing]
        assert named is None or hasattr(owner, named[1]), advice


def test_a_comparison_counts_the_verdicts_of_both_runs(run: merilo.Run, tmp_path: Path) -> None:
    """One sentence on every page: each verdict in the base and in the run, over the common samples only."""
    fewer = [row for row in rows({**AMOUNTS, ("enough", "strayed"): 12}) if row["id"] != "enough-supported-0"]
    found = faulty(tmp_path / "other", fewer).compare(run)
    assert [each["right"] for each in found.faults] == [AMOUNTS["enough", "supported"] - 1] * 2
    sentence = "Verdicts of the judge: beyond the evidence 4 to 4, right 4 to 4, "
    assert sentence in " ".join(str(found).split())
    assert sentence in comparison_markdown(found)
    assert sentence in found.report(tmp_path / "both.html").read_text(encoding="utf-8")
    assert comparison_record(found)["faults"] == [each.counts for each in found.faults]
