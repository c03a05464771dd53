"""Labels of a pair of runs: how tasks are drawn, and how comparisons and gates decide by them."""

import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import Here
from compared import compare_runs
from labelled_run import by_grade, fill_in, grade_of, judged_run, read_tasks

import merilo
from merilo.commands.calibrate.human_labels import attach_files, labels_of
from merilo.commands.calibrate.people import labelling_price
from merilo.commands.calibrate.run import label_agreement
from merilo.commands.compare.record import comparison_record
from merilo.commands.compare.text import comparison_page
from merilo.commands.gate.run import gate_run
from merilo.commands.gate.suite import LabelPolicy, Suite
from merilo.commands.gate.text import gates_page, gates_record, junit_text
from merilo.commands.label.run import label_run, tasks_file
from merilo.commands.label.tasks import unsealed
from merilo.errors import UsageError
from merilo.judging.kinds.contexts import Relevance
from merilo.judging.questions import Question
from merilo.results.estimate import Basis, Verdict
from merilo.stats.gate import GateVerdict

Row = dict[str, Any]
METRIC = "context_relevance"
PASS, FAIL, CANNOT_TELL = GateVerdict.PASS, GateVerdict.FAIL, GateVerdict.CANNOT_TELL


def kind_to_a(question: Question[Any]) -> Row:
    """People's grade, but one more for most contexts of system A."""
    assert isinstance(question, Relevance)
    text = " ".join(question.sentences)
    grade = grade_of(text)
    if "System A" in text and int(text.split("luck ")[1][0]) < 7:
        grade = min(2, grade + 1)
    return {"grade": grade, "evidence": [0] if grade else [], "probability": grade / 2}


def rows(system: str, samples: int, *, seed: int, shared: int = 1, lift: int = 0) -> list[Row]:
    """Samples of one system: three contexts each, the first `shared` of them the same in every system."""
    import random

    dice, found = random.Random(f"{system}{seed}"), list[Row]()
    both = random.Random(seed)
    for number in range(samples):
        base = both.choice([0, 1, 1, 2])
        texts = [f"Shared text {number}-{at}, luck {both.randrange(10)}, is truly {base}." for at in range(shared)]
        for at in range(3 - shared):
            grade = min(2, max(0, base + dice.choice([-1, 0, 0, 1]) + (lift if dice.random() < 0.5 else 0)))
            texts.append(f"System {system}, text {number}-{at}, luck {dice.randrange(10)}, is truly {grade}.")
        found.append({"id": f"s{number}", "user_input": f"What is {number}?", "retrieved_contexts": texts})
    return found


def pair(folder: Path, samples: int = 300, *, lift: int = 0, shared: int = 1) -> tuple[merilo.Run, merilo.Run]:
    """The runs of two systems by a judge that is kinder to the first; `lift`: how much better the second is."""
    first = judged_run(folder / "a", rows("A", samples, seed=5, shared=shared), [METRIC], kind_to_a)
    second = judged_run(folder / "b", rows("B", samples, seed=5, shared=shared, lift=lift), [METRIC], kind_to_a)
    return first, second


def labelled(first: merilo.Run, second: merilo.Run, path: Path, samples: int, **options: Any) -> int:
    """Draw tasks from the pair, fill them in, and attach them to both runs."""
    label_run(first, path, samples=samples, other=second, **options)
    fill_in(path, by_grade)
    return attach_files([str(first.path), str(second.path)], [str(path)])


def open_again(*runs: merilo.Run) -> list[merilo.Run]:
    """The runs as they are on disk now."""
    return [merilo.Run.open(each.path) for each in runs]


# -- drawing ------------------------------------------------------------------------------------------


def test_tasks_of_a_pair_ask_about_both_runs_and_show_neither(tmp_path: Path) -> None:
    """Every drawn sample has contexts of both systems in mixed order; a shared context is asked once."""
    first, second = pair(tmp_path, 60)
    tasks = label_run(first, tmp_path / "t.jsonl", samples=20, items=3, other=second)
    found = read_tasks(tmp_path / "t.jsonl")
    assert (tasks.samples, tasks.population) == (20, 60)
    by_sample: dict[str, list[str]] = {}
    for task in found:
        ticket = unsealed(task["ticket"])
        assert ticket is not None
        by_sample.setdefault(ticket.sample, []).append(task["context"])
        assert not {"a", "b", str(first.path), str(second.path)} & {str(value) for value in task.values()}
    assert all(len(set(texts)) == len(texts) == 5 for texts in by_sample.values())
    leading = Counter(next(text.split()[1].rstrip(",") for text in texts) for texts in by_sample.values())
    assert min(leading["A"], leading["B"], leading["text"]) > 0
    assert {task["run"] for task in found} == {first.manifest.fingerprint}


def test_a_pair_is_drawn_from_the_samples_that_either_scored(tmp_path: Path) -> None:
    """A sample without contexts in both runs cannot be drawn, and the draw depends on the ids alone."""
    one, two = rows("A", 30, seed=1), rows("B", 30, seed=1)
    one[3]["retrieved_contexts"] = two[3]["retrieved_contexts"] = one[4]["retrieved_contexts"] = []
    runs = [judged_run(tmp_path / name, each, [METRIC], kind_to_a) for name, each in (("a", one), ("b", two))]
    tasks = label_run(runs[0], samples=40, other=runs[1])
    assert (tasks.samples, tasks.population) == (29, 29)
    assert {line.ticket.sample for line in tasks.lines} == {f"s{n}" for n in range(30)} - {"s3"}
    few, fewer = (label_run(runs[0], samples=count, other=runs[1]) for count in (12, 6))
    assert {each.ticket.sample for each in fewer.lines} < {each.ticket.sample for each in few.lines}


def test_a_pair_with_other_contexts_is_labelled_for_two_metrics_in_one_pass(tmp_path: Path) -> None:
    """Relevance of each context, then whether they suffice, sample by sample; the labels correct both differences."""

    def judge(question: Question[Any]) -> Row:
        return kind_to_a(question) if isinstance(question, Relevance) else {"label": "sufficient", "missing": ""}

    both = [METRIC, "context_sufficiency"]
    runs = [judged_run(tmp_path / name, rows(name, 60, seed=5), both, judge) for name in "AB"]
    tasks = label_run(runs[0], tmp_path / "t.jsonl", samples=None, items=None, other=runs[1])
    assert tasks.metric == " and ".join(both)
    asked = [(each.ticket.sample, each.ticket.metric) for each in tasks.lines]
    drawn = dict.fromkeys(sample for sample, _ in asked)
    assert [*dict.fromkeys(asked)] == [(sample, metric) for sample in drawn for metric in both]
    fill_in(tmp_path / "t.jsonl", lambda task: "insufficient" if "sufficiency" in task["metric"] else by_grade(task))
    attach_files([str(each.path) for each in runs], [str(tmp_path / "t.jsonl")])
    again = open_again(*runs)
    assert {row.metric for row in again[1].compare(again[0]).rows if row.estimate.basis is Basis.LABELS} == {*both}
    more = labelling_price(again)
    assert (more.questions, more.population) == (60 - len(drawn), 60)  # those labelled are not asked again


def test_labels_of_a_larger_draw_add_to_the_earlier_ones(tmp_path: Path) -> None:
    """A larger draw contains the smaller one; the same draw labelled again replaces its labels."""
    first, second = pair(tmp_path, 60)
    counts = list[int]()
    for name, samples in (("a.jsonl", 20), ("b.jsonl", 40), ("c.jsonl", 40)):
        labelled(first, second, tmp_path / name, samples)
        counts.append(len(labels_of(open_again(first)[0])))
    assert counts == [100, 200, 200]


# -- comparing ----------------------------------------------------------------------------------------


def test_a_judge_that_is_kinder_to_one_run_does_not_decide_after_labels(tmp_path: Path) -> None:
    """By the judge alone A is better; with 40 labelled pairs the difference shrinks to what people say: none."""
    first, second = pair(tmp_path)
    alone = merilo.compare(first, second)
    assert alone.verdict is Verdict.WORSE
    assert "b is worse, by the judge alone" in str(alone).splitlines()[0]
    assert comparison_record(alone)["comparisons"][0]["basis"] == "judge alone"
    labelled(first, second, tmp_path / "t.jsonl", 40)
    runs = open_again(first, second)
    found = merilo.compare(*runs)
    record = comparison_record(found)["comparisons"][0]
    each = found.metrics[METRIC]
    assert found.verdict is Verdict.NOT_SHOWN
    assert abs(each.difference or 1) < 0.05
    assert (each.run_mean or 0) - (each.base_mean or 0) == pytest.approx(each.difference)
    (labels,) = [each["facts"] for each in record["caveats"] if each["code"] == "labelled"]
    assert (record["basis"], labels["labelled"]) == ("human labels", 40)
    assert labels["difference"] == pytest.approx(alone.metrics[METRIC].difference)
    text = " ".join(str(found).split())
    assert "Corrected by 40 labelled questions: no difference shown" in text
    assert "by the judge alone" not in text
    full = " ".join(str(comparison_page(found, 100, full=True)).split())
    assert "corrected by 40 labelled pairs; by the judge alone:" in full
    uncorrected = merilo.compare(*runs, judge_only=True)
    assert uncorrected.metrics[METRIC] == alone.metrics[METRIC]


def test_labels_of_one_run_correct_its_mean_and_no_difference(tmp_path: Path) -> None:
    """The comparison says that the labels are of one run, and how to draw a pair."""
    first, second = pair(tmp_path, 40)
    label_run(first, tmp_path / "t.jsonl", samples=30)
    fill_in(tmp_path / "t.jsonl", by_grade)
    label_agreement(first, tmp_path / "t.jsonl", attach=True)
    found = merilo.compare(*open_again(first, second))
    assert found.rows[0].estimate.basis is Basis.JUDGE
    assert f"merilo label {first.path} {second.path}" in " ".join(each.sentence for each in found.caveats)


def test_labels_of_a_pair_correct_the_means_of_both_runs(tmp_path: Path) -> None:
    """`show` and a minimum use them too, for the kinder and the fair half of the pair."""
    first, second = pair(tmp_path, 120)
    labelled(first, second, tmp_path / "t.jsonl", 60)
    for run, judged in zip(open_again(first, second), (first, second), strict=True):
        gate = gate_run(run, Suite(minimums={METRIC: 0.4})).gates[0]
        mean = judged.metrics[METRIC].mean
        assert (gate.estimate.basis.value, gate.by_judge["labelled"]) == ("human labels", 60)
        assert mean is not None
        assert (gate.decision.value or 0) < mean + 0.02


def test_labels_drawn_before_samples_changed_are_not_used(tmp_path: Path) -> None:
    """Tasks drawn from the whole pair do not correct a comparison over a part of it."""
    first, second = pair(tmp_path, 60)
    labelled(first, second, tmp_path / "t.jsonl", 40)
    part = judged_run(tmp_path / "part", rows("B", 60, seed=5)[:40], [METRIC], kind_to_a)
    found = merilo.compare(merilo.Run.open(first.path), part)
    assert found.rows[0].estimate.basis is Basis.JUDGE


# -- gates --------------------------------------------------------------------------------------------


def test_a_minimum_is_decided_by_the_corrected_mean(tmp_path: Path) -> None:
    """A lenient judge passes the minimum alone; annotators do not, and every output says so."""
    first, second = pair(tmp_path)
    mean = first.metrics[METRIC].mean
    assert mean is not None
    asked = round(mean - 0.06, 2)
    assert gate_run(first, Suite(minimums={METRIC: asked})).verdict is PASS
    labelled(first, second, tmp_path / "t.jsonl", 100)
    (run, _) = open_again(first, second)
    found = gate_run(run, Suite(minimums={METRIC: asked}))
    assert found.verdict is not PASS
    gate, record = found.gates[0], gates_record(found)["gates"][0]
    (caveat,) = record["caveats"]
    assert caveat["facts"]["mean"] == pytest.approx(mean)
    assert "300 questions, 100 labelled;" in gate.reading
    assert "300 questions, 100 labelled;" in junit_text(found)
    assert gate_run(run, Suite(minimums={METRIC: asked}), judge_only=True).verdict is PASS


def test_a_drop_is_decided_by_the_corrected_difference(tmp_path: Path) -> None:
    """The judge sees a drop from the system it is kind to; annotators see none of that size."""
    first, second = pair(tmp_path)
    assert gate_run(second, Suite(max_drop=0.05), baseline=first).verdict is FAIL
    labelled(first, second, tmp_path / "t.jsonl", 100)
    base, new = open_again(first, second)
    found = gate_run(new, Suite(max_drop=0.05), baseline=base)
    gate = found.gates[0]
    assert gate.verdict is not FAIL
    assert gate.by_judge["difference"] < gate.decision.value
    assert gate.decision.value == merilo.compare(base, new).metrics[METRIC].difference


def test_a_suite_may_require_labels(tmp_path: Path) -> None:
    """Without 20 labels neither a minimum nor a drop is decided."""
    first, second = pair(tmp_path, 60)
    suite = Suite(minimums={METRIC: 0.01}, max_drop=0.5, labels=LabelPolicy.REQUIRED)
    found = gate_run(second, suite, baseline=first)
    assert [gate.verdict for gate in found.gates] == [CANNOT_TELL, CANNOT_TELL]
    assert "the suite requires human labels" in found.gates[0].reading
    assert f"merilo label {first.path} {second.path} (" in " ".join(str(gates_page(found, 200)).split())
    labelled(first, second, tmp_path / "t.jsonl", 40)
    base, new = open_again(first, second)
    assert gate_run(new, suite, baseline=base).verdict is PASS


def embedded(folder: Path, metrics: Sequence[str] = (METRIC,)) -> merilo.Run:
    """A run by the embedded judge over contexts that repeat the question's words."""
    data = [
        {
            "id": f"s{n}",
            "user_input": f"Where is bridge {n} in Bern?",
            "retrieved_contexts": [f"Bridge {n} is in Bern, near the old town."],
            "retrieved_context_ids": ["x"],
            "reference_context_ids": ["x"],
        }
        for n in range(30)
    ]
    return merilo.evaluate(data, metrics=list(metrics), out=folder, storage={"cache": False})


def test_the_embedded_judge_alone_decides_no_minimum(tmp_path: Path) -> None:
    """No one has checked it, so the gate cannot tell; `trust_judge` lets it, and other metrics are unaffected."""
    run = embedded(tmp_path / "run", [METRIC, "reciprocal_rank"])
    found = gate_run(run, Suite(minimums={METRIC: 0.01, "reciprocal_rank": 0.5}))
    by_metric = {gate.metric: gate for gate in found.gates}
    assert by_metric[METRIC].verdict is CANNOT_TELL
    assert by_metric["reciprocal_rank"].verdict is PASS
    assert by_metric["reciprocal_rank"].estimate.basis.value == "no judge"
    assert "Cannot tell: no one has checked the judge." in by_metric[METRIC].reading
    assert found.headline == "cannot tell: 1 passed, 1 cannot tell (1 by the judge alone)"
    trusted = gate_run(run, Suite(minimums={METRIC: 0.01}, trust_judge=True))
    assert (trusted.verdict, trusted.headline) == (PASS, "pass: 1 passed, by the judge alone")


def test_the_embedded_judge_alone_decides_no_drop(tmp_path: Path) -> None:
    """Another system may change its error, so the gate cannot tell, and says what labels take."""
    base = embedded(tmp_path / "base")
    data = [
        {"id": f"s{n}", "user_input": f"Where is bridge {n} in Bern?", "retrieved_contexts": ["Cows eat grass."]}
        for n in range(30)
    ]
    new = merilo.evaluate(data, metrics=[METRIC], out=tmp_path / "new", storage={"cache": False})
    found = gate_run(new, Suite(max_drop=0.1), baseline=base)
    assert found.verdict is CANNOT_TELL
    assert "Cannot tell: no one has checked the judge." in found.gates[0].reading
    assert "30 questions, 60 items, about 7 min" in str(gates_page(found, 400))


# -- the terminal --------------------------------------------------------------------------------------


def test_one_command_draws_asks_resumes_and_attaches(tmp_path: Path) -> None:
    """Answers on standard input; quitting keeps them, and the same command goes on with the rest."""
    first, second = pair(tmp_path, 40, shared=0)
    runs = [str(first.path), str(second.path)]
    path = tasks_file(runs, label_run(first, samples=20, items=None, other=second))
    arguments = ["label", *runs, "--number", "20"]

    def answer(count: int, last: str = "") -> subprocess.CompletedProcess[str]:
        left = [task for task in read_tasks(path) if not task["label"]]
        typed = [str(by_grade(task)) for task in left[:count]]
        return Here(tmp_path).merilo(*arguments, stdin="\n".join([*typed, last]) + "\n")

    assert answer(30, last="q").returncode == 0
    assert sum(bool(task["label"]) for task in read_tasks(path)) == 30
    done = answer(1_000)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        f"120 of 120 answered; attached to {first.path} and {second.path}. The judge agrees with people on"
        in " ".join(done.stdout.split())
    )
    assert f"merilo compare {first.path} {second.path}" in done.stdout
    found = merilo.compare(*open_again(first, second))
    assert found.metrics[METRIC].comparison.correction is not None
    assert found.metrics[METRIC].comparison.correction.labelled == 20


def test_another_draw_has_another_file(tmp_path: Path) -> None:
    """The tasks of a larger draw have their own file, and a named file with tasks is not overwritten."""
    first, second = pair(tmp_path, 20)
    path = tmp_path / "t.jsonl"
    draws = [label_run(first, samples=samples, other=second) for samples in (10, 11, 11)]
    files = [tasks_file([first.path, second.path], each) for each in draws]
    assert files[0] != files[1] == files[2]
    assert files[0].name.startswith(f"{first.path.name}-{second.path.name}-{METRIC}-")
    label_run(first, path, samples=10, other=second)
    with pytest.raises(UsageError, match="exists and may contain labels"):
        label_run(first, path, samples=11, other=second)
    assert path.read_bytes() == files[0].read_bytes()


def test_the_library_draws_pairs_too(tmp_path: Path) -> None:
    """`merilo.label(a, b, out=...)` writes what the command writes, and `labels=` attaches to both runs."""
    first, second = pair(tmp_path, 20)
    merilo.label(first, second, number=10, out=tmp_path / "one.jsonl", html=tmp_path / "one.html")
    label_run(first, tmp_path / "two.jsonl", samples=10, items=None, other=second)
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert "System A, text 0-1" not in (tmp_path / "one.html").read_text(encoding="utf-8").split("<script")[0]
    found = merilo.label(first, second, labels=fill_in(tmp_path / "one.jsonl", by_grade))
    assert found.metrics[METRIC].correction.labelled == 10
    assert [len(labels_of(each)) for each in open_again(first, second)] == [50, 50]


# -- until decided -------------------------------------------------------------------------------------


def test_the_draw_and_the_comparison_tell_how_many_labels_decide(tmp_path: Path) -> None:
    """The draw states its power as if the judge were useless; a comparison, the labels of a small difference."""
    first, second = pair(tmp_path, 300, lift=0, shared=0)
    (few,), (many,) = (label_run(first, other=second, metric=METRIC, samples=n).remarks for n in (40, 160))
    found = re.fullmatch(r"A true difference of 0\.1 is found in about ([1-9]) of 10 studies\. With .*", few)
    assert found is not None
    assert many == "A true difference of 0.1 is found in nearly every study."
    labelled(first, second, tmp_path / "t.jsonl", 60)
    text = " ".join(str(compare_runs([first, second])).split())
    assert re.search(
        r"To show a difference of 0.05: about [0-9,]+ (labelled questions|questions, all labelled)\.", text
    )
