"""A run that stops at planned looks: drops against a baseline, and whole clusters in random order."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from graded_runs import judge
from grouping import grouped
from judged_rivers import canonical

import merilo
from merilo import api
from merilo.commands.replay.run import replay_run
from merilo.commands.show.run import summarise
from merilo.errors import MeriloError, RunError, UsageError
from merilo.results.early_stopping import EarlyStop
from merilo.results.planned_stopping import PLANNED_NOTE
from merilo.results.scores import read_scores
from merilo.stats.gate import gate_drop, gate_minimum
from merilo.stats.looks import look_levels
from merilo.stats.means import mean_interval

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.judging.questions import Question

METRIC = "context_relevance"
SAMPLES = 300


def rows(relevant: float, count: int = SAMPLES, *, per_document: int = 3) -> list[dict[str, Any]]:
    """Samples of which this share is relevant, the others last, so that their order would show."""
    return [
        {
            "id": f"s{n}",
            "user_input": f"What is {n}?",
            "retrieved_contexts": [f"Grade {2 if n < count * relevant else 0}. Context of {n}."],
            "metadata": {"document": f"d{n // per_document}"},
        }
        for n in range(count)
    ]


def evaluated(data: list[dict[str, Any]], out: Path, until: Any = None, **arguments: Any) -> merilo.Run:
    """A run with a scripted judge."""
    options = {"metrics": [METRIC], "judge": merilo.ScriptedJudge.by(judge, version="1"), "cache": False}
    return merilo.evaluate(data, **grouped(**{**options, "out": out, "until_decided": until, **arguments}))


async def slow(question: Question[Any]) -> Any:
    """The same judge, whose answers arrive in another order than they were asked for."""
    await asyncio.sleep(hash(repr(question)) % 5 / 1000)
    return judge(question)


def suite(folder: Path, text: str) -> Path:
    path = folder / "gates.toml"
    path.write_text(text, encoding="utf-8")
    return path


def decided(run: merilo.Run) -> dict[str, Any]:
    """The part of the summary about the gates."""
    found = run.until_decided
    assert found is not None
    return dict(found)


def taken(run: merilo.Run) -> list[str]:
    """The samples, in the order in which they were taken."""
    return [record["sample"] for record in run.records()]


DROP = "max_drop = 0.1\n"
CLUSTER = f'cluster = "document"\n[minimums]\n{METRIC} = 0.5\n'


@pytest.fixture
def base(tmp_path: Path) -> merilo.Run:
    """A whole run to compare with."""
    return evaluated(rows(0.8), tmp_path / "base")


def test_a_drop_stops_at_the_first_look_that_decides(tmp_path: Path, base: merilo.Run) -> None:
    """The looks are at 40, 80, 160 and all pairs; the limits are those of `gate_drop` at the level of the look."""
    run = evaluated(rows(0.5), tmp_path / "run", suite(tmp_path, DROP), baseline=base)
    found = decided(run)
    assert found["looks"] == [40, 80, 160, 300]
    assert found["levels"] == list(look_levels([40 / 300, 80 / 300, 160 / 300, 1.0]))
    assert found["note"] == PLANNED_NOTE
    (gate,) = found["gates"]
    assert (gate["kind"], gate["verdict"], found["decided"]) == ("drop", "fail", True)
    assert len(taken(run)) == found["samples"] == gate["samples"] == found["looks"][gate["look"] - 1]
    assert found["samples"] < SAMPLES
    both = [read_scores(each) for each in (base, run)]
    order = {sample: at for at, sample in enumerate(both[0].ids)}
    before = both[0].at([order[sample] for sample in taken(run)])
    for number in range(1, gate["look"] + 1):
        size, level = found["looks"][number - 1], found["levels"][number - 1]
        columns = [each.columns[METRIC].first(size) for each in (before, both[1])]
        expected = gate_drop(*columns, 0.1, level=level)
        assert (expected.verdict.value == "fail") is (number == gate["look"])
    assert (gate["lower"], gate["upper"], gate["level"]) == (expected.lower, expected.upper, level)


def test_whole_clusters_are_taken_and_decide(tmp_path: Path) -> None:
    """Looks are after 40, 80 and 100 clusters, none is cut, and the limits are clustered."""
    run = evaluated(rows(0.8), tmp_path / "run", suite(tmp_path, CLUSTER))
    found = decided(run)
    assert (found["unit"], found["looks"], found["sizes"]) == ("cluster", [40, 80, 100], [120, 240, 300])
    (gate,) = found["gates"]
    assert (gate["verdict"], gate["look"], found["samples"]) == ("pass", 1, 120)
    documents = [int(sample[1:]) // 3 for sample in taken(run)]
    assert len(set(documents)) == 40
    assert documents != sorted(documents)
    expected = gate_minimum(read_scores(run).columns[METRIC], 0.5, clusters=documents, level=gate["level"])
    assert (gate["lower"], gate["upper"]) == (expected.lower, expected.upper)
    assert run.manifest.cluster == "document"


def test_clusters_of_unequal_size_stay_whole(tmp_path: Path) -> None:
    """The samples at a look are those of its clusters; the clusters' order depends on their names alone."""
    data = [{**row, "metadata": {"document": f"d{n * n // 900}"}} for n, row in enumerate(rows(0.8))]
    run = evaluated(data, tmp_path / "run", suite(tmp_path, CLUSTER))
    turned = evaluated(data[::-1], tmp_path / "turned", suite(tmp_path, CLUSTER))
    assert taken(run) == taken(turned)
    found = decided(run)
    documents = [int(sample[1:]) ** 2 // 900 for sample in taken(run)]
    assert len(set(documents)) == found["looks"][found["look"] - 1]
    whole = {n * n // 900: 0 for n in range(SAMPLES)}
    for n in range(SAMPLES):
        whole[n * n // 900] += 1
    assert all(documents.count(each) == whole[each] for each in set(documents))


@pytest.mark.parametrize("kind", ["drop", "cluster"])
def test_timing_and_resuming_move_nothing(tmp_path: Path, kind: str) -> None:
    """Concurrency, the order of replies, a limit and a second call do not change a byte."""
    arguments = {"baseline": evaluated(rows(0.8), tmp_path / "base", judge=slow)} if kind == "drop" else {}
    until = suite(tmp_path, DROP if kind == "drop" else CLUSTER)
    first = evaluated(rows(0.5), tmp_path / "first", until, judge=slow, concurrency=1, **arguments)
    second = evaluated(rows(0.5), tmp_path / "second", until, judge=slow, concurrency=32, **arguments)
    assert canonical(first) == canonical(second)
    part = evaluated(rows(0.5), tmp_path / "part", until, judge=slow, max_requests=10, **arguments)
    assert not part.complete
    assert (decided(part)["decided"], decided(part)["look"]) == (False, 0)
    assert part.metrics[METRIC].interval is None
    for most in (None, 0):
        whole = evaluated(rows(0.5), tmp_path / "part", until, judge=slow, max_requests=most, **arguments)
        assert canonical(whole) == canonical(first)


@pytest.mark.parametrize("kind", ["drop", "cluster"])
def test_it_replays_to_the_same_bytes(tmp_path: Path, base: merilo.Run, kind: str) -> None:
    """A replay needs no baseline: its outcomes are in the manifest."""
    arguments = {"baseline": base} if kind == "drop" else {}
    run = evaluated(rows(0.5), tmp_path / "run", suite(tmp_path, DROP if kind == "drop" else CLUSTER), **arguments)
    found = replay_run(run.path, out=tmp_path / "again")
    assert found.same
    assert canonical(found.run) == canonical(run)


def test_gate_decides_at_the_level_of_the_look(tmp_path: Path, base: merilo.Run) -> None:
    """`gate` returns the verdict, the limits and the level of the run, and its note names the look."""
    run = evaluated(rows(0.5), tmp_path / "run", suite(tmp_path, f"{DROP}[minimums]\n{METRIC} = 0.1\n"), baseline=base)
    stored = {each["kind"]: each for each in decided(run)["gates"]}
    found = api.gate(run, minimums={METRIC: 0.1}, baseline=base, max_drop=0.1)
    assert [gate.kind.value for gate in found.gates] == ["minimum", "drop"]
    for gate in found.gates:
        known = stored[gate.kind.value]
        decision = gate.decision
        assert (gate.verdict.value, gate.look, gate.samples) == (known["verdict"], known["look"], known["samples"])
        assert (decision.lower, decision.upper, decision.level) == (known["lower"], known["upper"], known["level"])
        assert decision.level > 0.95
        assert f"at look {gate.look} " in decision.reason
    assert any(
        "The run could stop at 4 planned looks. Limits are those of look 1 (after 40 samples" in each
        for each in found.notes
    )


def test_gate_of_clusters_needs_the_same_clusters(tmp_path: Path, base: merilo.Run) -> None:
    """The run's own clusters decide; none, or others, are refused; so are clusters for a run without them."""
    run = evaluated(rows(0.8), tmp_path / "run", suite(tmp_path, CLUSTER))
    (gate,) = api.gate(run, minimums={METRIC: 0.5}).gates
    (known,) = decided(run)["gates"]
    assert (gate.decision.lower, gate.decision.level) == (known["lower"], known["level"])
    for other in ("", "user_input"):
        with pytest.raises(UsageError, match="took whole clusters until it stopped: use --cluster document"):
            api.gate(run, minimums={METRIC: 0.5}, cluster=other)
    single = evaluated(rows(0.5), tmp_path / "single", suite(tmp_path, DROP), baseline=base)
    with pytest.raises(UsageError, match="took single samples until it stopped"):
        api.gate(single, minimums={METRIC: 0.5}, cluster="document")
    with pytest.raises(UsageError, match="could stop at planned looks"):
        api.gate(base, baseline=single, max_drop=0.1)


def test_intervals_have_the_level_of_the_look(tmp_path: Path) -> None:
    """Means are shown with clustered intervals at the level of the look; fractions have none."""
    run = evaluated(rows(0.8), tmp_path / "run", suite(tmp_path, CLUSTER))
    scores = read_scores(run)
    for level, found in ((0.95, run.metrics[METRIC]), (0.9, summarise(run, level=0.9)[METRIC])):
        at_look = 2 * look_levels([0.4, 0.8, 1.0], (1 + level) / 2)[0] - 1
        wanted = mean_interval(scores.columns[METRIC].values, (0, 1), clusters=scores.clusters, level=at_look)
        assert found.interval == pytest.approx(wanted.interval.ends)
        assert (found.level, found.clusters) == (level, 40)
        assert all(share.interval is None for share in found.shares.values())
    assert summarise(run)[METRIC] == run.metrics[METRIC]


def test_what_is_never_decided_takes_all(tmp_path: Path, base: merilo.Run) -> None:
    """A drop at the allowed one is not decided; the run is complete, and the last look has all pairs."""
    run = evaluated(rows(0.7), tmp_path / "run", suite(tmp_path, DROP), baseline=base)
    found = decided(run)
    assert (run.complete, found["decided"], found["saved"], found["look"]) == (True, False, 0, 4)
    assert run.metrics[METRIC].interval is not None


def test_another_baseline_is_another_run(tmp_path: Path, base: merilo.Run) -> None:
    """A run resumes only with a baseline of the same outcomes, wherever that is stored."""
    until = suite(tmp_path, DROP)
    first = evaluated(rows(0.5), tmp_path / "run", until, baseline=base)
    same = evaluated(rows(0.8), tmp_path / "same")
    assert canonical(evaluated(rows(0.5), tmp_path / "run", until, baseline=same.path)) == canonical(first)
    other = evaluated(rows(0.6), tmp_path / "other")
    with pytest.raises(RunError, match="differs in when to stop"):
        evaluated(rows(0.5), tmp_path / "run", until, baseline=other)


def test_baselines_that_are_not_comparable_are_refused(tmp_path: Path, base: merilo.Run) -> None:
    """Another judge, other data, an incomplete or an early stopped baseline: a sentence before any question."""
    until = suite(tmp_path, DROP)
    judged = evaluated(rows(0.8), tmp_path / "judged", judge=merilo.ScriptedJudge.by(judge, version="2"))
    partial = evaluated(rows(0.8), tmp_path / "partial", judge=slow, max_requests=10)
    early = evaluated(rows(0.8), tmp_path / "early", EarlyStop({METRIC: 0.5}))
    asking = evaluated([{**row, "user_input": f"Why {n}?"} for n, row in enumerate(rows(0.8))], tmp_path / "asking")
    cases = (
        (judged, rows(0.5), "are not comparable: the judge"),
        (partial, rows(0.5), "was stopped before its last sample"),
        (early, rows(0.5), "could stop early"),
        (asking, rows(0.5), "300 of 300 samples ask another question"),
        (base, rows(0.5, 400), "100 of 400 samples are not in the baseline"),
        (base, rows(0.5, 200), "100 of the 300 samples of the baseline"),
    )
    for baseline, data, sentence in cases:
        with pytest.raises(MeriloError, match=sentence):
            evaluated(data, tmp_path / "run", until, baseline=baseline)
        assert not (tmp_path / "run" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        (DROP, {}, "max_drop needs a run to compare with"),
        (CLUSTER, {"baseline": "base"}, "--baseline needs the largest allowed drop"),
        (CLUSTER, {"cluster": "user_input"}, "Two cluster fields"),
        (None, {"baseline": "base"}, "--baseline needs a suite with max_drop"),
        ('cluster = "nowhere"\n[minimums]\ncontext_relevance = 0.5\n', {}, "5 samples have no cluster field 'nowhere'"),
        ('cluster = "document"\n', {}, "Early stopping needs a gate"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, text: str | None, arguments: dict[str, Any], sentence: str
) -> None:
    """Each missing or doubled part has its sentence, and no run is left."""
    until = None if text is None else suite(tmp_path, text)
    with pytest.raises(MeriloError, match=sentence):
        evaluated(rows(0.8, 5), tmp_path / "run", until, **arguments)
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_the_page_names_the_look_and_the_levels(tmp_path: Path, base: merilo.Run) -> None:
    """The summary says what decided, after which look, and at which level."""
    from merilo.rendering.overview import overview_page

    run = evaluated(rows(0.5), tmp_path / "run", suite(tmp_path, DROP), baseline=base)
    (gate,) = decided(run)["gates"]
    text = " ".join(str(overview_page(run, 400)).split())
    assert f"All gates decided after {gate['samples']} samples of 300" in text
    assert f"{METRIC}: largest drop 0.1; improvement {gate['lower']:+.3f} to {gate['upper']:+.3f}" in text
    assert f"look {gate['look']} (level {gate['level']:.4f})" in text
    assert "Planned looks after samples, with their one-sided levels: 40 (0." in text
    assert json.loads((run.path / "summary.json").read_text(encoding="utf-8"))["until_decided"] == decided(run)
