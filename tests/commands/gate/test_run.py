"""A run held against a minimum and against a baseline: pass, fail or cannot tell, and what would decide."""

import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drop_gates import drop_decisions
from each_case import each_case
from graded_runs import FAILS, graded, many
from grouping import grouped
from imported import import_scores
from judged_rivers import rows
from seals import seal_again
from server import JudgeServer

import merilo
import merilo as api
from merilo.cli import app
from merilo.commands.export import cli as export_cli
from merilo.commands.gate.result import CannotTell, Gate, Gates
from merilo.commands.gate.run import gate_run
from merilo.commands.gate.suite import Suite, read_suite, suite_of
from merilo.commands.gate.text import gates_page, gates_record, junit_text
from merilo.commands.report import cli as report_cli
from merilo.commands.verify import recomputed
from merilo.commands.verify.replay import replay_run
from merilo.errors import DataError, MeriloError, RunError, UsageError
from merilo.results.comparable import score_affecting_differences
from merilo.results.estimate import Missing
from merilo.results.scores import read_scores
from merilo.runs.database import record_digests
from merilo.runs.files import MANIFEST, OUTCOMES, STORE, SUMMARY
from merilo.runs.records import packed, unpacked
from merilo.stats.compare import Policy
from merilo.stats.gate import GateVerdict, gate_minimum

METRIC = "context_relevance"
SHARE = "context_relevance(unit=context)"
PASS, FAIL, CANNOT_TELL = GateVerdict.PASS, GateVerdict.FAIL, GateVerdict.CANNOT_TELL


def grades(*numbers: int) -> dict[str, list[int]]:
    """As many samples of grade 0, 1 and 2 (scores 0, 0.5 and 1) as said, mixed."""
    order = [grade for grade, count in enumerate(numbers) for _ in range(count)]
    mixed = np.random.default_rng(3).permutation(order).tolist()
    return {f"s{place}": [grade] for place, grade in enumerate(mixed)}


def ranked(out: Path, hits: Sequence[bool], **arguments: Any) -> merilo.Run:  # Any: those of evaluate
    """A run of a metric that asks no judge, with a score of 1 or 0 for each sample."""
    rows = [
        {
            "id": f"s{n}",
            "retrieved_context_ids": ["a" if hit else "b"],
            "reference_context_ids": ["a"],
            "metadata": {"qrels": {"a": 1, "b": 0}},
        }
        for n, hit in enumerate(hits)
    ]
    return merilo.evaluate(rows, **grouped(metrics=["reciprocal_rank"], out=out, cache=False, **arguments))


def only(found: Gates) -> Gate:
    """The one gate."""
    (gate,) = found.gates
    return gate


def minimum(run: merilo.Run, asked: float, **fields: Any) -> Gate:  # Any: those of a suite
    """The gate of a minimum."""
    return only(gate_run(run, Suite(minimums={METRIC: asked}, **fields)))


# -- minimums -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "verdict"), [(0.6, PASS), (0.7, CANNOT_TELL), (0.8, FAIL)])
def test_a_minimum_is_met_not_met_or_between(tmp_path: Path, asked: float, verdict: GateVerdict) -> None:
    """A mean of 0.7 over 200 samples is at least 0.6, is not at least 0.8, and may or may not be at least 0.7."""
    run = graded(tmp_path / "run", grades(40, 40, 120))
    gate = minimum(run, asked)
    assert gate.verdict is verdict
    decision = gate_minimum(read_scores(run).columns[METRIC], asked)
    assert (gate.decision, gate.estimate.samples, gate.estimate.missing) == (decision, 200, Missing())


def test_failed_samples_that_keep_a_gate_open_are_named(tmp_path: Path) -> None:
    """If the scored samples alone would pass, the ids of the failed ones are shown with the command to retry them."""
    given = {**grades(40, 40, 120), **many(12, FAILS, start=500)}
    run = graded(tmp_path / "run", given)
    gate = minimum(run, 0.63)
    assert (gate.verdict, gate.decision.open) == (CANNOT_TELL, True)
    assert set(gate.deciding) == {f"s{n}" for n in range(500, 512)}
    assert minimum(graded(tmp_path / "whole", grades(40, 40, 120)), 0.63).verdict is PASS
    text = " ".join(str(gates_page(gate_run(run, Suite(minimums={METRIC: 0.63})), 100)).split())
    assert "failed ones could change that. Retry them: --retry-failed" in text


def test_gates_are_true_only_if_they_pass(tmp_path: Path) -> None:
    """`assert merilo.gate(...)` without `.passed` fails as it should."""
    run = graded(tmp_path / "run", grades(40, 40, 120))
    assert gate_run(run, Suite(minimums={METRIC: 0.5}))
    assert not gate_run(run, Suite(minimums={METRIC: 0.9}))
    assert not gate_run(run, Suite(max_drop=0.1), baseline=tmp_path / "none")


# -- baselines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("worse", "options", "verdict"),
    [
        (3, {"max_drop": 0.05}, PASS),
        (60, {"max_drop": 0.05}, FAIL),
        (5, {"max_drop": 0.05}, CANNOT_TELL),
        (8, {"max_drop": 0.05}, FAIL),
        (12, {"max_drop": 0.2}, PASS),
        (3, {"max_drop": {METRIC: 0.05}}, PASS),
    ],
)
def test_a_drop_is_held_against_what_is_allowed(
    tmp_path: Path, worse: int, options: dict[str, Any], verdict: GateVerdict
) -> None:
    """So many of 200 samples lose a whole point: within the allowance, beyond it, or it cannot be told."""
    old = graded(tmp_path / "old", grades(40, 40, 120))
    changed = [sample for sample, (grade,) in grades(40, 40, 120).items() if grade == 2][:worse]
    new = graded(tmp_path / "new", {**grades(40, 40, 120), **{sample: [0] for sample in changed}})
    gate = only(gate_run(new, Suite(**options), baseline=old))
    assert gate.verdict is verdict
    drop = options["max_drop"] if isinstance(options["max_drop"], float) else 0.05
    base, other = (read_scores(run).columns[METRIC] for run in (old, new))
    assert gate.decision == drop_decisions({"m": (other, base)}, {"m": drop})["m"]


def test_a_run_without_many_samples_of_the_baseline_is_refused(tmp_path: Path) -> None:
    """Samples that were renamed or dropped do not leave a gate on the rest; samples that were added do."""
    grades = {f"s{n}": [n % 3] for n in range(60)}
    old = graded(tmp_path / "old", grades)
    fewer = graded(tmp_path / "fewer", {name: grades[name] for name in list(grades)[:53]})
    with pytest.raises(UsageError, match=r"7 of the 60 samples of the baseline .* such as 's53'.*--across-data"):
        gate_run(fewer, Suite(max_drop=0.3), baseline=old)
    enough = graded(tmp_path / "enough", {name: grades[name] for name in list(grades)[:54]})
    assert gate_run(enough, Suite(max_drop=0.3), baseline=old).notes[1].startswith("old: 6 samples that")
    assert gate_run(old, Suite(max_drop=0.3), baseline=fewer).notes[1].startswith("old: 7 samples that")
    renamed = graded(
        tmp_path / "renamed", {(name if n < 9 else f"new-{name}"): grades[name] for n, name in enumerate(grades)}
    )
    with pytest.raises(UsageError, match="51 of the 60 samples"):
        gate_run(renamed, Suite(max_drop=0.3), baseline=old)


def asked(out: Path, questions: Sequence[str], *, worse: int = 0, **fields: Sequence[Any]) -> merilo.Run:
    """A run of ids as the only metrics; the last `worse` samples find nothing. `fields`: a value for each sample."""
    rows = [
        {
            "id": f"q{n}",
            "user_input": question,
            "retrieved_context_ids": ["a" if n < len(questions) - worse else "b"],
            "reference_context_ids": ["a"],
            **{name: values[n] for name, values in fields.items()},
        }
        for n, question in enumerate(questions)
    ]
    return merilo.evaluate(rows, metrics=["id_recall"], out=out, storage={"cache": False})


def test_other_questions_under_the_same_ids_are_refused(tmp_path: Path) -> None:
    """If more than one in ten ids name another question, the gate decides nothing; nor if all do."""
    base = asked(tmp_path / "base", [f"Who {n}?" for n in range(60)])
    some = asked(tmp_path / "some", [f"{'Where' if n < 7 else 'Who'} {n}?" for n in range(60)])
    with pytest.raises(UsageError, match=r"7 of 60 samples have another user_input .* 'q0': 'Who 0\?' and 'Where 0\?'"):
        gate_run(some, Suite(max_drop=0.2), baseline=base)
    found = api.gate(some, baseline=base, max_drop=0.2, across_data=True)
    assert (only(found).estimate.samples, found.verdict) == (53, PASS)
    assert found.notes[0].startswith("7 of 60 samples have another user_input")
    every = asked(tmp_path / "every", [f"Where {n}?" for n in range(60)])
    with pytest.raises(DataError, match="No question is equal in all runs"):
        gate_run(every, Suite(max_drop=0.9), baseline=base, across_data=True)


def test_a_few_other_questions_are_left_out_and_counted(tmp_path: Path) -> None:
    """Up to one in ten: what the other questions scored counts for nothing, and the notes say how many."""
    questions = [f"Who {n}?" for n in range(60)]
    base = asked(tmp_path / "base", questions)
    new = asked(tmp_path / "new", [*questions[:54], *["Where?"] * 6], worse=6)
    found = gate_run(new, Suite(max_drop=0.06), baseline=base)
    assert (only(found).estimate.samples, only(found).decision.value, found.verdict) == (54, 0.0, PASS)
    (note,) = found.notes
    assert note.startswith("6 of 60 samples have another user_input in")
    assert note.endswith("They are not compared.")


def test_another_truth_is_another_question_for_a_metric_that_reads_it(tmp_path: Path) -> None:
    """Other reference ids make other questions of recall; a reference text, which it does not read, does not."""
    questions = [f"Who {n}?" for n in range(30)]
    base = asked(tmp_path / "base", questions, reference=["one"] * 30)
    text = asked(tmp_path / "text", questions, reference=["two"] * 30)
    ids = asked(tmp_path / "ids", questions, reference_context_ids=[["a", "c"]] * 30)
    assert gate_run(text, Suite(max_drop=0.2), baseline=base).notes == ()
    with pytest.raises(DataError, match="30 of 30 samples have other reference context ids"):
        gate_run(ids, Suite(max_drop=0.2), baseline=base)


# -- nothing changed ----------------------------------------------------------------------------------


def test_the_same_outputs_pass(tmp_path: Path) -> None:
    """Equal inputs and equal scores on every sample: no drop was made, however few samples there are."""
    old, new = (graded(tmp_path / name / "run", grades(5, 5, 10)) for name in ("old", "new"))
    for run in (old, new):
        found = gate_run(run, Suite(max_drop=0.01), baseline=old)
        assert (only(found).verdict, only(found).same_outputs) == (PASS, True)
        assert only(found).reading.startswith("context_relevance: no change. Inputs and scores are equal")
        assert "a drop of up to 0.152 is possible" in only(found).reading
        assert gates_record(found)["gates"][0]["caveats"][0]["code"] == "no-change"
        assert found.notes == ()


def test_equal_scores_of_other_inputs_are_not_the_same_outputs(tmp_path: Path) -> None:
    """The contexts differ, so the builds differ: 200 equal scores exclude a drop of 1.5 %, and none of 1 %."""
    old, new = (graded(tmp_path / name, grades(40, 40, 120)) for name in ("old", "new"))
    gate = only(gate_run(new, Suite(max_drop=0.01), baseline=old))
    assert (gate.verdict, gate.same_outputs, gate.decision.value) == (CANNOT_TELL, False, 0.0)
    assert only(gate_run(new, Suite(max_drop=0.02), baseline=old)).verdict is PASS


def test_what_the_metric_does_not_read_may_differ(tmp_path: Path) -> None:
    """Relevance reads no response: another one leaves its inputs as they were."""
    old, new = (graded(tmp_path / name / "run", many(20, 2), response=name) for name in ("old", "new"))
    assert only(gate_run(new, Suite(max_drop=0.01), baseline=old)).same_outputs


def test_equal_inputs_with_other_scores_are_the_judge_s_doing(tmp_path: Path) -> None:
    """A judge that changes its mind is no drop of the build, so the gate cannot tell."""
    mood = [2]
    judge = merilo.ScriptedJudge.by(
        lambda _: {"grade": mood[0], "evidence": [0], "reason": "So it feels."}, version="1"
    )
    rows = [{"id": f"s{n}", "user_input": f"What is {n}?", "retrieved_contexts": [f"It is {n}."]} for n in range(30)]
    old = merilo.evaluate(rows, metrics=[METRIC], judge=judge, out=tmp_path / "old", storage={"cache": False})
    mood[0] = 1
    new = merilo.evaluate(rows, metrics=[METRIC], judge=judge, out=tmp_path / "new", storage={"cache": False})
    gate = only(gate_run(new, Suite(max_drop=0.1), baseline=old))
    assert (gate.verdict, gate.same_outputs, gate.decision.value) == (CANNOT_TELL, False, -0.5)
    assert gate.reading.endswith(
        "Cannot tell: the inputs are equal in both runs, so the difference is the judge's own."
    )


def test_imported_scores_without_texts_prove_no_same_outputs(tmp_path: Path) -> None:
    """Nothing is known of the outputs they come from, so equal scores count as scores only; not so of one run."""
    runs = []
    for name in ("old", "new"):
        (tmp_path / f"{name}.csv").write_text("id,ok\n" + "".join(f"q{n},1\n" for n in range(40)), encoding="utf-8")
        runs.append(import_scores(tmp_path / f"{name}.csv", scores=["ok"], out=tmp_path / name))
    gate = only(gate_run(runs[1], Suite(max_drop=0.01), baseline=runs[0]))
    assert (gate.verdict, gate.same_outputs) == (CANNOT_TELL, False)
    assert only(gate_run(runs[0], Suite(max_drop=0.01), baseline=runs[0])).same_outputs


def test_a_metric_that_asks_no_judge_is_comparable_under_any(tmp_path: Path) -> None:
    """Ids are ids: what another judge would say of other metrics moves none of their numbers."""
    hits = [n % 4 > 0 for n in range(80)]
    old = ranked(tmp_path / "old", hits)
    new = ranked(tmp_path / "new", hits, judge=merilo.ScriptedJudge.by(lambda _: {}, version="9"))
    assert only(gate_run(new, Suite(max_drop=0.1), baseline=old)).verdict is PASS


def test_everything_that_moves_numbers_is_named(tmp_path: Path) -> None:
    """Versions of metrics, judges and their parameters, rubrics, splitter and language: a phrase for each."""
    first = graded(tmp_path / "run", grades(1, 1, 1)).manifest
    llm = {"judge": "llm", "provider": {"model": "m"}, "temperature": 0.0}
    first = replace(first, judges={"judge": {"name": "openai:m", "fingerprint": llm}}, rubrics={"relevance": "v1"})
    second = replace(
        first,
        metrics={METRIC: 2},
        judges={"judge": {"name": "openai:m", "fingerprint": {**llm, "temperature": 0.7}}},
        rubrics={"relevance": "v2"},
        splitter="another",
        language="ru",
    )
    assert score_affecting_differences(first, second, metrics=[METRIC]) == (
        f"{METRIC} has version 1 there and 2 here",
        "the judge openai:m differs in temperature 0.0 there, 0.7 here",
        "the rubric of relevance is v1 there and v2 here",
        f"the sentence splitter is {first.splitter} there and another here",
        "the language is each sample's own there and ru here",
    )
    assert score_affecting_differences(first, first, metrics=[METRIC]) == ()
    other = replace(first, judges={"judge": {"name": "openai:n", "fingerprint": {"judge": "llm"}}})
    assert score_affecting_differences(first, other, metrics=[METRIC]) == (
        "the judge is openai:m there and openai:n here",
    )


# -- what cannot be decided ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suite", "baseline", "sentence"),
    [
        (Suite(), False, "No gate given"),
        (Suite(max_drop=0.1), False, "--max-drop needs a baseline"),
        (Suite(minimums={METRIC: 0.5}), True, "--baseline needs the largest allowed drop"),
        (Suite(minimums={"context_relevence": 0.5}), False, "did you mean context_relevance"),
        (Suite(minimums={METRIC: 80}), False, "is always between 0 and 1, so a limit of 80 decides nothing"),
        (Suite(max_drop={"faithfulness": 0.1}), True, "has no faithfulness. Add it: merilo run ..."),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(
    tmp_path: Path, suite: Suite, baseline: bool, sentence: str
) -> None:
    """Nothing asked, half of a question, an unknown metric, a value outside the range."""
    run = graded(tmp_path / "run", grades(5, 5, 5))
    with pytest.raises(UsageError, match=sentence):
        gate_run(run, suite, baseline=run if baseline else None)


@pytest.mark.parametrize("which", ["run", "baseline"])
def test_a_run_that_was_stopped_is_no_ground_for_a_decision(tmp_path: Path, which: str) -> None:
    """The first samples are not all samples: an incomplete run or baseline is refused."""
    runs = {name: graded(tmp_path / name, grades(5, 5, 5)) for name in ("run", "baseline")}
    path = runs[which].path / SUMMARY
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "complete": False}), encoding="utf-8")
    seal_again(runs[which].path)
    with pytest.raises(RunError, match="stopped before its last sample"):
        gate_run(runs["run"].path, Suite(max_drop=0.1), baseline=runs["baseline"].path)


# -- together -----------------------------------------------------------------------------------------


def test_one_gate_that_fails_fails_all_and_one_that_cannot_tell_leaves_it_open(tmp_path: Path) -> None:
    """Fail goes before cannot tell, and that before pass; what cannot tell counts as is the suite's to say."""
    run = graded(tmp_path / "run", grades(40, 40, 120), metrics=[METRIC, SHARE])

    def verdict(first: float, second: float, cannot_tell: CannotTell | None = None) -> GateVerdict:
        return gate_run(run, Suite(minimums={METRIC: first, SHARE: second}, cannot_tell=cannot_tell)).verdict

    assert (verdict(0.1, 0.1), verdict(0.7, 0.1), verdict(0.99, 0.1)) == (PASS, CANNOT_TELL, FAIL)
    assert verdict(0.7, 0.1, CannotTell.PASS) is PASS
    assert verdict(0.7, 0.1, CannotTell.FAIL) is FAIL
    assert verdict(0.99, 0.1, CannotTell.PASS) is FAIL
    assert not gate_run(run, Suite(minimums={METRIC: 0.7})).passed


def test_the_headline_counts_what_could_not_be_decided(tmp_path: Path) -> None:
    """A suite that lets undecided gates pass says how many it let pass: on the page, in JSON and in JUnit."""
    run = graded(tmp_path / "run", grades(40, 40, 120), metrics=[METRIC, SHARE])
    found = gate_run(run, Suite(minimums={METRIC: 0.7, SHARE: 0.1}, cannot_tell=CannotTell.PASS))
    assert found.headline == "pass: 1 passed, 1 cannot tell, by the judge alone"
    assert str(gates_page(found, 80)).startswith("pass: 1 passed, 1 cannot tell, by the judge alone\n")
    assert str(found).startswith(found.headline)
    assert repr(found) == "<pass: 1 passed, 1 cannot tell, by the judge alone>"
    assert gates_record(found)["counts"] == {"failed": 0, "met": 1, "undecided": 1}
    assert 'errors="0" skipped="1"' in junit_text(found)
    assert "<system-out>pass: 1 passed, 1 cannot tell, by the judge alone</system-out>" in junit_text(found)


def test_the_record_and_the_pages_say_the_same(tmp_path: Path) -> None:
    """JSON, page and JUnit hold the verdict, the reading and the samples that would decide; ids are only data."""
    given = {f"{sample}\x1b[31m<&>": each for sample, each in {**grades(40, 40, 120), "no": [FAILS]}.items()}
    run = graded(tmp_path / "run", given)
    lower = minimum(run, 0.5).decision.lower or 0.0
    found = gate_run(run, Suite(minimums={METRIC: lower - 0.001}))
    record, page, junit = gates_record(found), str(gates_page(found, 100)), junit_text(found)
    (row,) = record["gates"]
    assert (record["verdict"], record["passed"], row["kind"]) == ("cannot tell", False, "minimum")
    assert row["deciding"] == list(only(found).deciding) == ["no\x1b[31m<&>"]
    assert "\x1b" not in page
    assert "\\x1b[31m" in page
    assert f"merilo show {found.run} --sample" in page
    assert '<error message="' in junit
    assert 'errors="1"' in junit
    assert only(found).reading in str(found)


# -- suites -------------------------------------------------------------------------------------------

TOML = """
cluster = "document"
undefined = "worst"
cannot_tell = "fail"

[minimums]
faithfulness = 0.8
"nDCG@10" = 0.4

[max_drop]
faithfulness = 0.02
"""
YAML = """
cluster: document
undefined: worst
cannot_tell: fail
minimums: {faithfulness: 0.8, nDCG@10: 0.4}
max_drop: {faithfulness: 0.02}
"""


def test_a_suite_is_the_same_in_toml_and_yaml(tmp_path: Path) -> None:
    """Every key of a suite is read from either."""
    (tmp_path / "gates.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "gates.yaml").write_text(YAML, encoding="utf-8")
    found = read_suite(tmp_path / "gates.toml")
    assert found == read_suite(tmp_path / "gates.yaml")
    assert found == Suite(
        minimums={"faithfulness": 0.8, "nDCG@10": 0.4},
        max_drop={"faithfulness": 0.02},
        cluster="document",
        undefined=Policy.WORST,
        cannot_tell=CannotTell.FAIL,
    )


@each_case(
    ("record", "sentence"),
    [
        ({"minimum": {"m": 1}}, r"gates: unknown key 'minimum'; did you mean minimums\?"),
        ({"xyz": 1}, "known keys: minimums, max_drop, cluster"),
        ({"minimums": [1]}, "minimums must give a number for each metric"),
        ({"minimums": {"m": "high"}}, "minimums of m must be a finite number, got the text 'high'"),
        ({"minimums": {"m": float("nan")}}, "minimums of m must be a finite number, got NaN"),
        ({"max_drop": -0.1}, "max_drop must be 0 or more, got -0.1"),
        ({"max_drop": {"m": True}}, "max_drop of m must be a finite number, got true"),
        ({"max_drop": {"m": True}, "first_run": []}, "max_drop of m must be a finite number, got true"),
        ({"undefined": "best"}, "undefined must be drop or worst, got the text 'best'"),
        ({"cannot_tell": "maybe"}, "cannot_tell must be pass or fail, got the text 'maybe'"),
        ({"trust_judge": "yes"}, "trust_judge must be true or false, got the text 'yes'"),
        ({"cluster": 3}, "cluster must be the name of a field, got the number 3"),
    ],
)
def test_a_suite_with_a_fault_is_refused(record: dict[str, Any], sentence: str) -> None:
    """Each fault is told with the suite's name, what was expected and what came."""
    with pytest.raises(UsageError, match=sentence):
        suite_of(record, source="gates")


def test_arguments_go_before_the_suite(tmp_path: Path) -> None:
    """`gate` takes the suite's minimums and what is given besides; of the same metric what is given."""
    (tmp_path / "gates.toml").write_text(f'[minimums]\n{METRIC} = 0.99\n"{SHARE}" = 0.1\n', encoding="utf-8")
    run = graded(tmp_path / "run", grades(40, 40, 120), metrics=[METRIC, SHARE])
    assert not api.gate(run, suite=tmp_path / "gates.toml").passed
    assert merilo.gate(str(run.path), suite=tmp_path / "gates.toml", minimums={METRIC: 0.1}).passed


def forged_value(run: Path) -> Path:
    path = run / OUTCOMES
    path.write_text(re.sub(r'"value":[0-9.]+', '"value":1.0', path.read_text("utf-8")), "utf-8")
    return run


def forged_twice(run: Path) -> Path:
    """Give each outcome two values: a reader of the beginning of a line sees the first, JSON has the last."""
    path = run / OUTCOMES
    path.write_text(re.sub(r'"value":([0-9.]+)(.*)}', r'"value":1.0\2,"value":\1}', path.read_text("utf-8")), "utf-8")
    return run


def forged_undefined(run: Path) -> Path:
    """Give each outcome two kinds, as above."""
    path = run / OUTCOMES
    lines = path.read_text("utf-8")
    path.write_text(lines.replace('"outcome":"score"', '"outcome":"undefined","outcome":"score"', 1), "utf-8")
    return run


def forged_direction(run: Path) -> Path:
    path = run / MANIFEST
    text = path.read_text("utf-8")
    path.write_text(text.replace('"higher_is_better": true', '"higher_is_better": false'), "utf-8")
    with closing(sqlite3.connect(run / STORE)) as db, db:
        db.execute("UPDATE meta SET value = ? WHERE name = ?", (path.read_text("utf-8"), MANIFEST))
    return run


def forged_judge(run: Path) -> Path:
    path = run / MANIFEST
    path.write_text(path.read_text("utf-8").replace('"name": "', '"name": "openai:'), "utf-8")
    return run


def removed_sample(run: Path) -> Path:
    lines = (run / OUTCOMES).read_text("utf-8").splitlines(keepends=True)
    (run / OUTCOMES).write_text("".join(lines[1:]), "utf-8")
    summary = json.loads((run / SUMMARY).read_text("utf-8"))
    (run / SUMMARY).write_text(json.dumps({**summary, "samples": summary["samples"] - 1}), "utf-8")
    return run


def forged_answers(run: Path) -> Path:
    """Edit the answers too, with all their seals, and replay them: everything fits but the raw replies."""
    with closing(sqlite3.connect(run / STORE)) as db, db:
        for number, record in db.execute("SELECT id, record FROM exchanges").fetchall():
            other = re.sub(r'"grade": ?[01]\b', '"grade":2', unpacked(record))
            db.execute("UPDATE exchanges SET record = ? WHERE id = ?", (packed(other), number))
        record_digests(db)
    seal_again(run)
    return replay_run(run, out=run.with_name("replayed")).run.path


@each_case(
    "forge",
    [forged_value, forged_twice, forged_undefined, forged_direction, forged_judge, removed_sample, forged_answers],
)
@each_case("as_baseline", [False, True])
def test_a_forged_run_with_right_digests_is_no_pass(forge: Any, as_baseline: bool, tmp_path: Path) -> None:
    """Values, samples, directions, names of judges and answers follow from something else, whatever the digests say."""
    with JudgeServer() as server:
        options = {"judge": "openai:test-model", "base_url": server.base_url, "cache": False, "metrics": [METRIC]}
        runs = [
            merilo.evaluate(rows(12), **grouped(out=tmp_path / name, **options)).path for name in ("honest", "copy")
        ]
    suite = Suite(max_drop=0.9) if as_baseline else Suite(minimums={METRIC: 0.0})
    bad = forge(runs[1])
    if bad == runs[1]:
        seal_again(bad)
    run, baseline = (runs[0], bad) if as_baseline else (bad, None)
    with pytest.raises(MeriloError, match=r"does not follow|not comparable|different scales"):
        gate_run(run, suite, baseline=baseline)
    assert gate_run(runs[0], suite, baseline=runs[0] if as_baseline else None).passed


def forged_mean(run: Path) -> Path:
    path = run / SUMMARY
    path.write_text(re.sub(r'"mean": [0-9.]+', '"mean": 0.99', path.read_text("utf-8")), "utf-8")
    return run


@each_case("forge", [forged_value, forged_mean, removed_sample])
def test_a_forged_run_is_not_shown_beside_others(forge: Any, tmp_path: Path) -> None:
    """The commands compare, report and export recompute a few samples first; runs that follow are shown."""
    runs = [str(graded(tmp_path / name, grades(4, 4, 4)).path) for name in ("honest", "copy")]
    shown: list[Callable[[], object]] = [
        lambda: app()(["compare", *runs], standalone_mode=False),
        lambda: report_cli.report(runs=[runs[1]], out=str(tmp_path / "report.html")),
        lambda: export_cli.export([runs[1]], str(tmp_path / "table.csv")),
    ]
    for show in shown:
        show()
    seal_again(forge(Path(runs[1])))
    for show in shown:
        with pytest.raises(RunError, match="does not follow"):
            show()


def test_answers_that_cannot_be_compared_with_their_replies_are_said(tmp_path: Path) -> None:
    """A run of another merilo, or of a judge that cannot be built here, may have edited answers; a note says so."""
    with JudgeServer() as server:
        options = {"judge": "openai:test-model", "base_url": server.base_url, "cache": False, "metrics": [METRIC]}
        run = merilo.evaluate(rows(12), **grouped(out=tmp_path / "run", **options)).path
    assert gate_run(run, Suite(minimums={METRIC: 0.0})).notes == ()
    text = (run / MANIFEST).read_text("utf-8")
    for pattern, new in ((r'"merilo": "[^"]*"', '"merilo": "0.0.9"'), (r'"judge": "', '"judge": "other ')):
        (run / MANIFEST).write_text(re.sub(pattern, new, text, count=1), "utf-8")
        with closing(sqlite3.connect(run / STORE)) as db, db:
            db.execute("UPDATE meta SET value = ? WHERE name = ?", ((run / MANIFEST).read_text("utf-8"), MANIFEST))
        seal_again(run)
        (note,) = gate_run(run, Suite(minimums={METRIC: 0.0})).notes
        assert "were not compared with their raw replies" in note


def test_a_sample_of_a_large_run_is_recomputed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit a random sample is recomputed, and a note says so; a forged half is seen."""
    monkeypatch.setattr(recomputed, "MAX_SAMPLES", 10)
    run = ranked(tmp_path / "run", [True, False] * 20)
    (note,) = gate_run(run, Suite(minimums={"reciprocal_rank": 0.1})).notes
    assert note.startswith(f"10 of 40 samples of {run.path}, drawn at random, were recomputed from the stored answers.")
    forged_value(run.path)
    seal_again(run.path)
    with pytest.raises(RunError, match=r"has another (value|mean of reciprocal_rank)"):
        gate_run(run.path, Suite(minimums={"reciprocal_rank": 0.1}))


def test_values_of_another_version_are_said_not_to_be_recomputed(tmp_path: Path) -> None:
    """A metric of another version, or one that cannot be built here, is gated with a note."""
    run = ranked(tmp_path / "run", [True] * 20)
    for other, reason in (('"reciprocal_rank": 7', "has version 7, this merilo version"), (None, "cannot be built")):
        for name in (MANIFEST, OUTCOMES, SUMMARY):
            path = run.path / name
            text = path.read_text("utf-8")
            text = text.replace('"reciprocal_rank": 2', other) if other else text.replace("reciprocal_rank", "gone")
            path.write_text(text, "utf-8")
        with closing(sqlite3.connect(run.path / STORE)) as db, db:
            copy = (run.path / MANIFEST).read_text("utf-8")
            db.execute("UPDATE meta SET value = ? WHERE name = ?", (copy, MANIFEST))
        seal_again(run.path)
        (note,) = gate_run(run.path, Suite(minimums={"gone" if other is None else "reciprocal_rank": 0.1})).notes
        assert "not recomputed" in note
        assert reason in note
