"""A run that stops when its gates are decided: minimums, drops against a baseline, and whole clusters."""

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND, Here
from edits import printed
from graded_runs import judge
from grouping import grouped
from judged_rivers import canonical
from seals import seal_again
from server import Asked, JudgeServer

import merilo
from merilo import api
from merilo.commands.gate.suite import Suite
from merilo.commands.verify.replay import replay_run
from merilo.errors import MeriloError, RunError, UsageError
from merilo.judging.questions import Question
from merilo.results.early_stopping import STOPPED_NOTE, random_place
from merilo.results.scores import read_scores
from merilo.runs.run import MANIFEST
from merilo.stats.compare import Policy
from merilo.stats.gate import GateVerdict, drop_decisions, gate_minimum
from merilo.stats.sequential import confidence_sequence

METRIC = "context_relevance"
UNIT = (0.0, 1.0)
SAMPLES = 300


def rows(count: int = SAMPLES, relevant: float = 0.8, *, per_document: int = 3) -> list[dict[str, Any]]:
    """Samples of which this share is relevant; those that are not come last, so that their order would show."""
    return [
        {
            "id": f"s{n}",
            "user_input": f"What is {n}?",
            "retrieved_contexts": [f"Grade {2 if n < count * relevant else 0}. Context of {n}."],
            "metadata": {"document": f"d{n // per_document}"},
        }
        for n in range(count)
    ]


def evaluated(data: list[dict[str, Any]], out: Path, until: Suite | Path | None, **arguments: Any) -> merilo.Run:
    """A run with a scripted judge."""
    options = {"metrics": [METRIC], "judge": merilo.ScriptedJudge.by(judge, version="1"), "cache": False}
    return merilo.evaluate(data, **grouped(**{**options, "out": out, "until_decided": until, **arguments}))


async def slow(question: Question[Any]) -> Any:
    """The same judge, whose answers come in another order than they were asked for."""
    await asyncio.sleep(hash(repr(question)) % 5 / 1000)
    return judge(question)


def decided(run: merilo.Run) -> dict[str, Any]:
    """What the summary says of the gates."""
    found = run.until_decided
    assert found is not None
    return dict(found)


def taken(run: merilo.Run) -> list[str]:
    """The samples, in the order in which they were taken."""
    return [record["sample"] for record in run.records()]


def test_a_run_stops_where_the_confidence_sequence_decides(tmp_path: Path) -> None:
    """The run is complete at the first check that decides, and says its verdict, its limits and what it saved."""
    whole = evaluated(rows(), tmp_path / "whole", None)
    run = evaluated(rows(), tmp_path / "run", Suite({METRIC: 0.6}))
    order = sorted(read_scores(whole).ids, key=lambda each: random_place(0, each))
    count = len(taken(run))
    assert taken(run) == order[:count]
    assert run.complete
    assert run.usage["stopped"] is None
    found = decided(run)
    assert (found["decided"], found["samples"], found["saved"]) == (True, count, SAMPLES - count)
    (gate,) = found["gates"]
    assert (gate["kind"], gate["verdict"], gate["samples"]) == ("minimum", "pass", count)
    values = read_scores(run).columns[METRIC].values
    assert (gate["lower"], gate["upper"]) == confidence_sequence(values, UNIT).ends
    before = confidence_sequence(values[: int(count / 1.03) - 1], UNIT).ends
    assert before is not None
    # A check comes after at most 3 % more samples.
    assert before[0] < 0.6 <= gate["lower"]


def test_the_order_is_drawn_by_ids_and_seed_alone(tmp_path: Path) -> None:
    """Data in another order are taken in the same one; another seed draws another; the manifest keeps it."""
    until = Suite({METRIC: 0.6}, seed=4)
    first = evaluated(rows(), tmp_path / "first", until)
    turned = evaluated(rows()[::-1], tmp_path / "turned", until)
    other = evaluated(rows(), tmp_path / "other", Suite({METRIC: 0.6}, seed=5))
    assert taken(first) == taken(turned)
    assert taken(first)[:20] != taken(other)[:20]
    assert first.manifest.until is not None
    assert (first.manifest.until["minimums"], first.manifest.until["seed"]) == ({METRIC: 0.6}, 4)


def test_its_summary_holds_what_is_valid_after_stopping(tmp_path: Path) -> None:
    """Intervals are confidence sequences, of gated and other metrics; shares and composites have none; it says so."""
    run = evaluated(rows(), tmp_path / "run", Suite({METRIC: 0.6}), metrics=[METRIC, "context_precision"])
    scores = read_scores(run)
    for text, aggregate in run.metrics.items():
        assert aggregate.interval == confidence_sequence(scores.columns[text].values, UNIT).ends
        assert aggregate.method == "hedged capital"
        assert all(share.interval is None for share in aggregate.shares.values())
    assert decided(run)["note"] == STOPPED_NOTE


@pytest.mark.parametrize("arguments", [{"concurrency": 1}, {"concurrency": 64}, {"judge": "slow"}])
def test_timing_moves_nothing(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """However many requests are in the air, and in whatever order replies come, the bytes are the same."""
    until = Suite({METRIC: 0.6})
    if "judge" in arguments:
        first = evaluated(rows(), tmp_path / "first", until, judge=slow, concurrency=1)
        second = evaluated(rows(), tmp_path / "second", until, judge=slow, concurrency=32)
    else:
        first = evaluated(rows(), tmp_path / "first", until)
        second = evaluated(rows(), tmp_path / "second", until, **arguments)
    assert canonical(first) == canonical(second)


def test_the_same_call_again_changes_nothing(tmp_path: Path) -> None:
    """A run that was decided is resumed without a request, to the same bytes."""
    until = Suite({METRIC: 0.6})
    first = canonical(evaluated(rows(), tmp_path / "run", until, judge=slow))
    again = evaluated(rows(), tmp_path / "run", until, judge=slow, max_requests=0)
    assert canonical(again) == first
    assert again.complete


def test_a_limit_stops_it_before_and_the_same_call_goes_on(tmp_path: Path) -> None:
    """Stopped at a limit it is incomplete; resumed without one it ends where it would have."""
    until = Suite({METRIC: 0.6})
    part = evaluated(rows(), tmp_path / "run", until, judge=slow, max_requests=10)
    assert not part.complete
    assert not decided(part)["decided"]
    done = evaluated(rows(), tmp_path / "run", until, judge=slow)
    assert canonical(done) == canonical(evaluated(rows(), tmp_path / "whole", until, judge=slow))


def test_what_is_never_decided_takes_every_sample(tmp_path: Path) -> None:
    """A minimum at the mean is not decided; the run is complete all the same, and its intervals stay valid."""
    run = evaluated(rows(60), tmp_path / "run", Suite({METRIC: 0.8}))
    found = decided(run)
    assert (run.complete, found["decided"], found["samples"], found["saved"]) == (True, False, 60, 0)
    assert run.metrics[METRIC].method == "hedged capital"
    assert api.gate(run, minimums={METRIC: 0.8}).verdict.value == "cannot tell"


def test_every_gate_must_be_decided(tmp_path: Path) -> None:
    """With two minimums the run goes on until the later one is decided; the earlier keeps its place."""
    until = Suite({METRIC: 0.1, "context_relevance(unit=context)": 0.65})
    metrics = [METRIC, "context_relevance(unit=context)"]
    gates = decided(evaluated(rows(), tmp_path / "run", until, metrics=metrics))["gates"]
    assert gates[0]["samples"] < gates[1]["samples"]
    assert [gate["verdict"] for gate in gates] == ["pass", "pass"]


def test_missing_outcomes_decide_only_what_holds_either_way(tmp_path: Path) -> None:
    """Undefined samples put off a decision; left out, the scored ones decide."""
    data = [{**row, "retrieved_contexts": []} if n % 3 == 0 else row for n, row in enumerate(rows(120))]
    assert not decided(evaluated(data, tmp_path / "both", Suite({METRIC: 0.55})))["decided"]
    run = evaluated(data, tmp_path / "drop", Suite({METRIC: 0.4}, undefined=Policy.DROP))
    assert decided(run)["decided"]


def test_a_gate_on_it_takes_the_sequence(tmp_path: Path) -> None:
    """`gate` says what the run said, of drops too; a baseline that could stop early is refused."""
    run = evaluated(rows(), tmp_path / "run", Suite({METRIC: 0.6}))
    base = evaluated(rows(), tmp_path / "base", None)
    found = api.gate(run, minimums={METRIC: 0.6}, baseline=base, max_drop=0.5)
    (gate, drop) = found.gates
    assert found.passed
    assert (gate.sequential, drop.sequential) == (True, True)
    (known,) = decided(run)["gates"]
    assert (gate.decision.lower, gate.decision.upper) == (known["lower"], known["upper"])
    assert drop.samples == len(taken(run))
    assert "A run could stop early (--until), so intervals are confidence sequences, which are wider." in found.notes
    with pytest.raises(UsageError, match="so not all its samples have scores"):
        api.gate(base, baseline=run, max_drop=0.5)


def test_a_comparison_of_it_has_confidence_sequences(tmp_path: Path) -> None:
    """`compare` has the interval of the gate; as the base, such a run is refused."""
    run = evaluated(rows(), tmp_path / "run", Suite({METRIC: 0.6}))
    base = evaluated(rows(), tmp_path / "base", None)
    found = api.compare(base, run)
    drop = api.gate(run, baseline=base, max_drop=0.5).gates[0]
    assert found.sequential
    assert found.metrics[METRIC].interval == (drop.decision.lower, drop.decision.upper)
    with pytest.raises(UsageError, match="Only the second of two runs may do so"):
        api.compare(run, base)


def test_it_replays_to_the_same_bytes(tmp_path: Path) -> None:
    """A replay recomputes the outcomes, the intervals and the decision."""
    run = evaluated(rows(), tmp_path / "run", Suite({METRIC: 0.6}))
    found = replay_run(run.path, out=tmp_path / "again")
    assert found.same
    assert canonical(found.run) == canonical(run)


@pytest.mark.parametrize(
    ("field", "value"),
    [("ends", None), ("ends", [3, 2]), ("level", 0), ("baseline", {}), ("drops", {METRIC: -1})],
)
def test_a_rule_that_was_changed_is_damage(tmp_path: Path, field: str, value: object) -> None:
    """Whatever the rule in a manifest holds, it is refused in one sentence, also under a new seal."""
    evaluated(rows(), tmp_path / "base", None)
    run = evaluated(rows(), tmp_path / "run", suite(tmp_path, DROP), baseline=tmp_path / "base")
    manifest = json.loads((run.path / MANIFEST).read_text("utf-8"))
    manifest["until"][field] = value
    (run.path / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    seal_again(run.path)
    assert printed("runs", "verify", run.path)[0] == 2


def test_another_suite_is_another_run(tmp_path: Path) -> None:
    """A run is resumed with the minimums it began with; with others, or none, it is refused."""
    evaluated(rows(30), tmp_path / "run", Suite({METRIC: 0.6}))
    for until in (Suite({METRIC: 0.7}), None):
        with pytest.raises(RunError, match="differs in when to stop"):
            evaluated(rows(30), tmp_path / "run", until)


@pytest.mark.parametrize(
    ("suite", "arguments", "sentence"),
    [
        ("level = 0.9\n", {}, "Early stopping needs a gate"),
        (
            "[minimums]\nfaithfulness = 0.5\n",
            {},
            r"this run \(--until\) has no faithfulness\. Add it: merilo run \.\.\. --metrics faithfulness",
        ),
        (f"[minimums]\n{METRIC} = 50\n", {}, "50 decides nothing"),
        (f"[maximums]\n{METRIC} = 0.5\n", {}, f"Higher is better for {METRIC}, so it has no maximum"),
        (f'labels = "required"\n[minimums]\n{METRIC} = 0.5\n', {}, "needs labels, which a run gets after it"),
        (f"[minimums]\n{METRIC} = 0.5\n", {"judge": "embedded"}, "The level of the embedded judge is not calibrated"),
    ],
)
def test_a_suite_that_cannot_end_a_run_is_refused_before_it_begins(
    tmp_path: Path, suite: str, arguments: dict[str, Any], sentence: str
) -> None:
    """No minimum, an unknown metric, a value outside the range: a sentence, and no run is left."""
    (tmp_path / "gates.toml").write_text(suite, encoding="utf-8")
    with pytest.raises(MeriloError, match=sentence):
        evaluated(rows(5), tmp_path / "run", tmp_path / "gates.toml", **arguments)
    assert not (tmp_path / "run" / MANIFEST).exists()


# -- drops and clusters --------------------------------------------------------------------------------

DROP = "max_drop = 0.1\n"
CLUSTER = f'cluster = "document"\n[minimums]\n{METRIC} = 0.5\n'


def suite(folder: Path, text: str) -> Path:
    path = folder / "gates.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def base(tmp_path: Path) -> merilo.Run:
    """A whole run to compare with."""
    return evaluated(rows(), tmp_path / "base", None)


def test_a_drop_stops_where_the_differences_decide(tmp_path: Path, base: merilo.Run) -> None:
    """The limits are those of the differences that hold at any time; `gate` returns the same."""
    run = evaluated(rows(relevant=0.5), tmp_path / "run", suite(tmp_path, DROP), baseline=base)
    found = decided(run)
    (gate,) = found["gates"]
    assert (gate["kind"], gate["verdict"], found["decided"]) == ("drop", "fail", True)
    assert len(taken(run)) == found["samples"] == gate["samples"] < SAMPLES
    both = [read_scores(each) for each in (base, run)]
    order = {sample: at for at, sample in enumerate(both[0].ids)}
    before, after = both[0].at([order[sample] for sample in taken(run)]).columns[METRIC], both[1].columns[METRIC]
    expected = drop_decisions({METRIC: (after, before)}, {METRIC: 0.1}, early=1)[METRIC]
    assert (gate["lower"], gate["upper"], expected.verdict) == (expected.lower, expected.upper, GateVerdict.FAIL)
    (again,) = api.gate(run, baseline=base, max_drop=0.1).gates
    assert (again.decision.lower, again.decision.upper, again.verdict.value) == (gate["lower"], gate["upper"], "fail")


def test_whole_clusters_are_taken_and_decide(tmp_path: Path) -> None:
    """No cluster of unequal size is cut; their order depends on their names alone, and limits are clustered."""
    data = [{**row, "metadata": {"document": f"d{n * n // 900}"}} for n, row in enumerate(rows())]
    run = evaluated(data, tmp_path / "run", suite(tmp_path, CLUSTER))
    turned = evaluated(data[::-1], tmp_path / "turned", suite(tmp_path, CLUSTER))
    assert taken(run) == taken(turned)
    documents = [int(sample[1:]) ** 2 // 900 for sample in taken(run)]
    assert documents != sorted(documents)
    whole = [n * n // 900 for n in range(SAMPLES)]
    assert all(documents.count(each) == whole.count(each) for each in set(documents))
    scores, found = read_scores(run), decided(run)
    (gate,) = found["gates"]
    assert (gate["verdict"], found["samples"], run.manifest.cluster) == ("pass", len(documents), "document")
    largest = max(map(whole.count, whole))
    expected = gate_minimum(scores.columns[METRIC], 0.5, clusters=documents, early=largest)
    assert (gate["lower"], gate["upper"]) == (expected.lower, expected.upper)
    aggregate = run.metrics[METRIC]
    assert (aggregate.method, aggregate.clusters) == ("hedged capital", len(set(documents)))


def test_gate_of_clusters_needs_the_same_clusters(tmp_path: Path, base: merilo.Run) -> None:
    """The run's own clusters decide; none, or others, are refused; so are clusters for a run without them."""
    run = evaluated(rows(), tmp_path / "run", suite(tmp_path, CLUSTER))
    (gate,) = api.gate(run, minimums={METRIC: 0.5}).gates
    (known,) = decided(run)["gates"]
    assert (gate.decision.lower, gate.verdict.value) == (known["lower"], known["verdict"])
    for other in ("", "user_input"):
        with pytest.raises(UsageError, match="took whole clusters of document until it stopped"):
            api.gate(run, minimums={METRIC: 0.5}, cluster=other)
    single = evaluated(rows(relevant=0.5), tmp_path / "single", suite(tmp_path, DROP), baseline=base)
    with pytest.raises(UsageError, match="took single samples until it stopped"):
        api.gate(single, minimums={METRIC: 0.5}, cluster="document")


@pytest.mark.parametrize("kind", ["drop", "cluster"])
def test_timing_resuming_and_replaying_move_nothing(tmp_path: Path, kind: str) -> None:
    """Concurrency, a limit and a second call change no byte; a replay needs no baseline."""
    arguments = {"baseline": evaluated(rows(), tmp_path / "base", None, judge=slow)} if kind == "drop" else {}
    until, data = suite(tmp_path, DROP if kind == "drop" else CLUSTER), rows(relevant=0.5)
    first = evaluated(data, tmp_path / "first", until, judge=slow, concurrency=1, **arguments)
    second = evaluated(data, tmp_path / "second", until, judge=slow, concurrency=32, **arguments)
    assert canonical(first) == canonical(second)
    part = evaluated(data, tmp_path / "part", until, judge=slow, max_requests=10, **arguments)
    assert (part.complete, decided(part)["decided"]) == (False, False)
    for most in (None, 0):
        whole = evaluated(data, tmp_path / "part", until, judge=slow, max_requests=most, **arguments)
        assert canonical(whole) == canonical(first)
    again = replay_run(first.path, out=tmp_path / "again")
    assert again.same
    assert canonical(again.run) == canonical(first)


def test_another_baseline_is_another_run(tmp_path: Path, base: merilo.Run) -> None:
    """A run resumes only with a baseline of the same outcomes, wherever that is stored."""
    until, data = suite(tmp_path, DROP), rows(relevant=0.5)
    first = evaluated(data, tmp_path / "run", until, baseline=base)
    same = evaluated(rows(), tmp_path / "same", None)
    assert canonical(evaluated(data, tmp_path / "run", until, baseline=same.path)) == canonical(first)
    other = evaluated(rows(relevant=0.6), tmp_path / "other", None)
    with pytest.raises(RunError, match="differs in when to stop"):
        evaluated(data, tmp_path / "run", until, baseline=other)


def test_baselines_that_are_not_comparable_are_refused(tmp_path: Path, base: merilo.Run) -> None:
    """Another judge, other data, an incomplete or an early stopped baseline: a sentence before any question."""
    until = suite(tmp_path, DROP)
    judged = evaluated(rows(), tmp_path / "judged", None, judge=merilo.ScriptedJudge.by(judge, version="2"))
    partial = evaluated(rows(), tmp_path / "partial", None, judge=slow, max_requests=10)
    early = evaluated(rows(), tmp_path / "early", Suite({METRIC: 0.5}))
    asking = evaluated([{**row, "user_input": f"Why {n}?"} for n, row in enumerate(rows())], tmp_path / "asking", None)
    cases = (
        (judged, rows(relevant=0.5), "are not comparable: the judge"),
        (partial, rows(relevant=0.5), "was stopped before its last sample"),
        (early, rows(relevant=0.5), "could stop early"),
        (asking, rows(relevant=0.5), "300 of 300 samples ask another question"),
        (base, rows(400, 0.5), "100 of 400 samples are not in the baseline"),
        (base, rows(200, 0.5), "100 of the 300 samples of the baseline"),
    )
    for baseline, data, sentence in cases:
        with pytest.raises(MeriloError, match=sentence):
            evaluated(data, tmp_path / "run", until, baseline=baseline)
        assert not (tmp_path / "run" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        (DROP, {}, "max_drop needs a run to compare with"),
        (CLUSTER, {"baseline": "base"}, "baseline needs the largest allowed drop"),
        (CLUSTER, {"cluster": "user_input"}, "Two cluster fields"),
        (None, {"baseline": "base"}, "baseline needs a suite with max_drop"),
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
        evaluated(rows(5), tmp_path / "run", until, **arguments)
    assert not (tmp_path / "run" / "manifest.json").exists()


# -- over HTTP ----------------------------------------------------------------------------------------

CONCURRENCY = 4


def answer(asked: Asked) -> int:
    """Nothing is relevant after the first four fifths."""
    return 2 if int(asked.about.partition("Context of ")[2].partition(".")[0]) < SAMPLES * 0.8 else 0


def start(here: Here, server: JudgeServer, name: str, more: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    words = ["--judge", "openai:m", "--base-url", server.base_url, "--metrics", METRIC, "--quiet", "--no-cache"]
    limits = ["--concurrency", str(CONCURRENCY), "--until", "gates.toml", "--out", name, *more]
    return subprocess.Popen([COMMAND, "run", "data.jsonl", *words, *limits], cwd=here.path, env=here.environment)


def test_kills_move_no_byte_and_little_is_asked_for_nothing(tmp_path: Path) -> None:
    """Killed twice and started again, the same command ends at the same sample with the same bytes.

    Beyond the sample that decides, no more is asked than may be in the air.
    """
    here = Here(tmp_path)
    here.write("data.jsonl", rows())
    (tmp_path / "gates.toml").write_text(f"[minimums]\n{METRIC} = 0.9\n", encoding="utf-8")
    with JudgeServer(answer, delay_s=0.01) as server:
        assert start(here, server, "whole").wait() == 0
        whole = merilo.Run.open(tmp_path / "whole")
        assert 60 < len(taken(whole)) < SAMPLES
        assert len(server.sent) <= len(taken(whole)) + CONCURRENCY
        for _ in range(2):
            process = start(here, server, "killed")
            enough = len(server.sent) + 25
            while len(server.sent) < enough and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        assert start(here, server, "killed").wait() == 0
    assert canonical(merilo.Run.open(tmp_path / "killed")) == canonical(whole)


def test_the_command_says_what_was_decided_and_saved(tmp_path: Path) -> None:
    """The page names the gate, the samples saved and why its intervals are wide; JSON has the same."""
    here = Here(tmp_path)
    hits = [
        {"id": f"s{n}", "retrieved_context_ids": ["a"], "reference_context_ids": ["a" if n % 5 else "b"]}
        for n in range(SAMPLES)
    ]
    here.write("data.jsonl", hits)
    (tmp_path / "gates.yaml").write_text("minimums: {id_recall: 0.6}\n", encoding="utf-8")
    words = ["run", "data.jsonl", "--metrics", "id_recall", "--until", "gates.yaml", "--out", "out"]
    done = here.merilo(*words)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    found = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))["until_decided"]
    assert f"All gates decided after {found['samples']} samples of 300: {found['saved']} samples saved" in text
    assert "pass id_recall: minimum 0.6" in text
    assert STOPPED_NOTE in text
    assert here.json("show", "out")["until_decided"] == found
