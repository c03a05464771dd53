"""Every output of a result has the same verdict and the same figures."""

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from compared import compare_runs
from edits import printed
from labelled_run import fill_in

import merilo
from merilo.commands.calibrate.human_labels import attach_files
from merilo.commands.check.page import check_page, check_record
from merilo.commands.compare.options import ComparisonRequest
from merilo.commands.compare.record import comparison_record
from merilo.commands.compare.result import Row, RunComparison
from merilo.commands.compare.text import comparison_markdown
from merilo.commands.compare.text import comparison_page as terminal_page
from merilo.commands.gate.result import Gates
from merilo.commands.gate.run import gate_run
from merilo.commands.gate.suite import Suite
from merilo.commands.gate.text import gates_markdown, gates_page, gates_record, junit_text
from merilo.commands.label.run import label_run
from merilo.commands.report.run_page import _slice_table, report_text
from merilo.commands.report.run_page import comparison_page as report_page
from merilo.commands.show.summary import record_of, run_markdown, run_page
from merilo.commands.watch.evidence import State
from merilo.commands.watch.report import prometheus_text, watch_page
from merilo.judging.questions import Question
from merilo.results.estimate import DECIDED, Basis, Verdict
from merilo.stats.gate import GateVerdict
from merilo.stats.intervals import Interval
from merilo.stats.resampling import Measurement

SAMPLES = 30
ALLOWED = 0.05
IDS, SPANS = ("id_recall", "nDCG"), ("span_recall",)
GOOD, BAD = "River {n} is 120 km long.", "The market of town {n} opens on Sundays."
WINNER = re.compile(r"\b(better|worse)\b")


class Situation(NamedTuple):
    """What a pair of runs is like."""

    judge: str
    """`embedded`, or `scripted`: another judge."""
    effect: str
    """`worse`, `better` or `mixed`, the run against the base; `same`: equal inputs."""
    labels: int
    """Labelled questions."""
    contexts: str = "other"
    """`other`: the runs retrieved other contexts; `equal`: they differ in the response."""
    metrics: tuple[str, ...] = ()
    """By default the one that reads what differs."""
    sides: int = 2
    """Runs with labels: both, or 1."""
    runs: int = 2
    """Those after the second are like the first and the second in turn."""


JUDGES, EFFECTS, LABELS = ("embedded", "scripted"), ("worse", "better", "mixed", "same"), (0, 11, 24)
SITUATIONS = [
    *product(JUDGES, EFFECTS, LABELS, ["other"]),
    *product(JUDGES, EFFECTS[:3], [0], ["equal"]),
]
RELEVANCE = ("context_relevance", "context_precision")
MORE = [
    *(Situation("scripted", effect, 0, metrics=each) for effect in EFFECTS for each in (IDS, SPANS)),
    *(Situation(judge, effect, 24, sides=1) for judge in JUDGES for effect in EFFECTS[:3]),
    *(Situation(*each, metrics=RELEVANCE) for each in product(JUDGES, EFFECTS[:3], (0, 24))),
    *(Situation("scripted", effect, 0, runs=5) for effect in EFFECTS),
]


def marks(judge: str, effect: str, labels: int) -> pytest.MarkDecorator | tuple[()]:
    """Leave half of the situations to `make test-long`; the others have each pair of values of two fields."""
    places = JUDGES.index(judge) + EFFECTS.index(effect) + LABELS.index(labels)
    return pytest.mark.long if places % 2 else ()


def good(effect: str, side: int, n: int) -> bool:
    """True if the run of this side found, or says, what is asked for in sample n."""
    if effect in {"mixed", "same"}:
        return (n % 2 == 0) if effect == "same" or not side else (n % 2 == 1)
    return n % 5 < 4 if (effect == "better") == bool(side) else n % 5 == 0


def rows(situation: Situation, side: int) -> list[dict[str, Any]]:
    """The samples of one run."""
    found = []
    for n in range(SAMPLES):
        text = (GOOD if good(situation.effect, side, n) else BAD).format(n=n)
        row = {"id": f"s{n}", "user_input": f"How long is river {n}?", "retrieved_contexts": [text]}
        if situation.metrics == IDS:
            row |= {"retrieved_context_ids": ["a" if text != BAD.format(n=n) else "b"], "reference_context_ids": ["a"]}
        if situation.metrics == SPANS:
            row["reference_contexts"] = [GOOD.format(n=n)]
        if situation.contexts == "equal":
            row |= {"retrieved_contexts": [GOOD.format(n=n)], "response": text}
        found.append(row)
    return found


def scripted(question: Question[Any]) -> dict[str, Any]:
    """A judge that is right."""
    if question.kind == "relevance":
        found = "120 km" in " ".join(question.sentences)
        return {"grade": 2 * found, "evidence": [0] if found else []}
    if question.kind == "statements":
        return {"statements": [{"text": text, "sentence": at} for at, text in enumerate(question.sentences)]}
    if question.kind != "support":
        return {"noncommittal": False}
    found = "120 km" in question.statement
    return {"label": "supported" if found else "not_stated", "evidence": [0] if found else []}


def pair(folder: Path, situation: Situation) -> list[Path]:
    """The runs, with their labels attached."""
    metrics = situation.metrics or ("context_relevance" if situation.contexts == "other" else "faithfulness",)
    judge = "embedded" if situation.judge == "embedded" else merilo.ScriptedJudge.by(scripted, version="1")
    runs = [folder / name for name in ("base", "run", "c", "d", "e")[: situation.runs]]
    for side, out in enumerate(runs):
        data = rows(situation, side % 2)
        merilo.evaluate(data, metrics=[*metrics], judge=judge, out=out, storage={"cache": False})
    if situation.labels:
        tasks = folder / "tasks.jsonl"
        own = runs[: situation.sides]
        label_run(runs[0], tasks, samples=situation.labels, other=runs[1] if len(own) > 1 else None)
        fill_in(tasks, lambda task: str(2 * ("120 km" in task["context"])))
        attach_files([str(run) for run in own], [str(tasks)])
    return runs


def expected(situation: Situation) -> tuple[Verdict, bool]:
    """The verdict, and whether it is one by the judge alone."""
    if situation.effect == "same":
        return Verdict.NO_CHANGE, False
    labelled = situation.labels >= 20 and situation.sides > 1
    if situation.judge == "embedded" and not labelled:
        return Verdict.CANNOT_TELL, False
    found = {"worse": Verdict.WORSE, "better": Verdict.BETTER, "mixed": Verdict.NOT_SHOWN}[situation.effect]
    return found, not labelled and found is not Verdict.NOT_SHOWN


def gate_verdict(row: Row) -> GateVerdict:
    """The verdict of a gate that allows a drop of ALLOWED, by the verdict and the interval of the comparison."""
    if row.verdict is Verdict.NO_CHANGE:
        return GateVerdict.PASS
    if row.verdict is Verdict.CANNOT_TELL or row.interval is None:
        return GateVerdict.CANNOT_TELL
    if row.interval[0] >= -ALLOWED:
        return GateVerdict.PASS
    return GateVerdict.FAIL if row.verdict is Verdict.WORSE else GateVerdict.CANNOT_TELL


def outputs(found: RunComparison, gates: Gates) -> dict[str, str]:
    """Every output of the comparison and of the gate."""
    page = report_page(found)
    return {
        "terminal": str(found),
        "full": str(terminal_page(found, 100, full=True)),
        "html": re.sub(r"<[^>]*>", " ", page[page.index("<header") : page.index('id="samples"')]),
        "markdown": comparison_markdown(found),
        "notebook": found._repr_html_(),
        "gate": str(gates_page(gates, 100)),
        "gate markdown": gates_markdown(gates),
        "junit": junit_text(gates),
        "gate text": str(gates),
    }


@pytest.mark.parametrize(
    "situation",
    [pytest.param(Situation(*each), id="-".join(map(str, each)), marks=marks(*each[:3])) for each in SITUATIONS],
)
def test_all_outputs_agree(tmp_path: Path, situation: Situation) -> None:
    """Verdict word, difference and interval are the same in terminal, HTML, Markdown, JSON, JUnit and exit codes."""
    runs = pair(tmp_path, situation)
    found = compare_runs(runs, ComparisonRequest(samples=0))
    (row,) = found.rows
    verdict, alone = expected(situation)
    assert (row.verdict, found.verdict) == (verdict, verdict)
    assert (row.estimate.basis is Basis.LABELS) == (situation.labels >= 20)
    gates = gate_run(runs[1], Suite(max_drop=ALLOWED), baseline=runs[0])
    (gate,) = gates.gates
    assert gate.verdict is gates.verdict is gate_verdict(row)

    record, gated = comparison_record(found), gates_record(gates)["gates"][0]
    (compared,) = record["comparisons"]
    assert (record["verdict"], compared["verdict"], gated["verdict"]) == (verdict, verdict, gate.verdict)
    assert (gated["value"], compared["difference"]) == (row.difference, row.difference)
    assert gated["interval"] == compared["interval"]
    assert (gated["baseline_mean"], gated["run_mean"]) == (compared["first_mean"], compared["second_mean"])

    shown = outputs(found, gates)
    for name, text in shown.items():
        words = set(WINNER.findall(text.replace("which is better", "")))
        assert words <= {verdict.value}, name
        assert ("by the judge alone" in text) or not (alone and words), name
        if verdict is not Verdict.NO_CHANGE and row.difference is not None:  # the embedded judge may judge no pair
            assert f"{row.difference:+.3f}" in text, name
            assert all(f"{end:+.3f}" in text for end in row.interval or ()), name
    for name in ("terminal", "html", "markdown"):
        assert verdict.value in shown[name].lower(), name
    for name in ("gate", "gate markdown", "junit", "gate text"):
        assert gate.verdict.value in shown[name] or (name, gate.verdict) == ("junit", GateVerdict.PASS), name

    told = json.loads(printed("compare", *runs, "--json")[1])
    assert (told["conclusion"], told["comparisons"]) == (record["conclusion"], record["comparisons"])
    code, text = printed("gate", runs[1], "--baseline", runs[0], "--max-drop", str(ALLOWED))
    assert code == {GateVerdict.PASS: 0, GateVerdict.FAIL: 1, GateVerdict.CANNOT_TELL: 3}[gate.verdict]
    assert " ".join(gate.reading.split()) in " ".join(text.split())


def family_size(situation: Situation) -> int:
    """The size of the family: metrics of the same labels count once, and those that cannot decide do not count."""
    if situation.effect == "same" or (situation.judge == "embedded" and (not situation.labels or situation.sides < 2)):
        return 1
    labelled = situation.labels >= 20 and situation.sides > 1
    return 1 if labelled else max(1, len(situation.metrics))


@pytest.mark.parametrize(
    "situation",
    [
        pytest.param(each, id=f"{n}-" + "-".join(map(str, each[:3])), marks=pytest.mark.long if n % 4 else ())
        for n, each in enumerate(MORE)
    ],
)
def test_no_verdict_contradicts_its_interval_in_any_output(tmp_path: Path, situation: Situation) -> None:
    """With ids, references, labels of one run, several metrics of the same labels, and five runs."""
    runs = pair(tmp_path, situation)
    found = compare_runs(runs, ComparisonRequest(samples=0))
    verdict, _ = expected(situation)
    rows = found.rankings[0].rows if found.rankings else found.rows
    if not found.rankings:
        assert (found.verdict, {row.verdict for row in rows}) == (verdict, {verdict})
        assert max(round(0.05 / (1 - row.comparison.interval.level)) for row in rows) == family_size(situation)
    gates = gate_run(runs[1], Suite(max_drop=ALLOWED), baseline=runs[0])
    shown, record = outputs(found, gates), comparison_record(found)
    allowed = {*(row.verdict.value for row in found.rows if row.verdict), found.verdict.value}
    assert all({*WINNER.findall(text.replace("which is better", ""))} <= allowed for text in shown.values())
    for row, compared in zip(found.rows, record["comparisons"], strict=True):
        assert bool(row.estimate.sign) == (row.verdict in DECIDED) or row.verdict is Verdict.CANNOT_TELL
        assert compared["interval"] == (None if row.interval is None else list(row.interval))
        for name in () if row not in rows else ("terminal", "full", "html", "markdown", "notebook"):
            assert f"{row.difference:+.3f}" in shown[name], name
            assert all(f"{end:+.3f}" in shown[name] for end in row.interval or ()), name
    if situation.runs == 2:
        assert [gate.estimate for gate in gates.gates] == [row.estimate for row in found.rows]
        assert [gate.verdict for gate in gates.gates] == [gate_verdict(row) for row in found.rows]


@pytest.mark.parametrize("ends", [(0.111, 0.222), (-0.222, -0.111), (-0.111, 0.222)])
def test_every_output_draws_the_one_estimate(tmp_path: Path, ends: tuple[float, float]) -> None:
    """Another estimate in the row gives its verdict, number and interval in every output; nothing of the old stays."""
    runs = pair(tmp_path, Situation("scripted", "better", 24))
    found = compare_runs(runs, ComparisonRequest(samples=0))
    gates = gate_run(runs[1], Suite(max_drop=ALLOWED), baseline=runs[0])
    (row,), value = found.rows, sum(ends) / 2
    estimate = replace(row.estimate, value=value, interval=ends)
    changed = replace(found, rows=(replace(row, estimate=estimate),))
    gated = replace(gates, gates=(replace(gates.gates[0], estimate=estimate),))
    said = Verdict.NOT_SHOWN if ends[0] < 0 < ends[1] else Verdict.BETTER if value > 0 else Verdict.WORSE
    old = [f"{each:+.3f}" for each in (row.difference or 0, *(row.interval or ()))]
    for name, text in outputs(changed, gated).items():
        # The notes have the number by the judge alone; nothing else has one.
        plain = text.partition("Human labels")[0]
        assert all(f"{each:+.3f}" in plain for each in (value, *ends)), name
        assert not any(each in plain for each in old), name
        assert said in text.lower() or "gate" in name or name == "junit", name
    record = comparison_record(changed)
    (compared,), (gate,) = record["comparisons"], gates_record(gated)["gates"]
    assert (record["verdict"], compared["verdict"]) == (said, said)
    assert (compared["difference"], compared["interval"]) == (gate["value"], gate["interval"]) == (value, list(ends))


NEW = (0.4321, (0.1234, 0.7654))
"""A mean and its interval that no run has."""


def shows(text: str, old: tuple[float, tuple[float, float]]) -> None:
    """The text has the new number and interval with three decimals, and none of the old ones."""
    value, ends = NEW
    assert all(f"{each:.3f}" in text for each in (value, *ends))
    assert not any(f"{each:.3f}" in text for each in (old[0], *old[1]))


def test_every_output_of_a_run_draws_the_one_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`show`, the end of `run`, notebook, Markdown, JSON and report have the mean and interval of the one estimate."""
    run = merilo.evaluate(
        rows(Situation("scripted", "better", 0), 1),
        metrics=["context_relevance"],
        judge=merilo.ScriptedJudge.by(scripted, version="1"),
        out=tmp_path / "run",
        storage={"cache": False},
    )
    (own,) = run.metrics.values()
    assert own.mean is not None
    assert own.interval is not None
    changed = (replace(own, mean=NEW[0], interval=NEW[1], shares={}, bounds=None, bounds_with_undefined=None),)
    monkeypatch.setattr("merilo.rendering.run_doc.corrected_aggregates", lambda *_: changed)
    page = report_text([run])
    outputs = {
        "show": str(run_page(run, 80)),
        "full": str(run_page(run, 80, full=True)),
        "print": str(run),
        "notebook": run._repr_html_(),
        "markdown": run_markdown(run),
        "report": re.sub(r"<[^>]*>", " ", page[page.index("<header") : page.index('id="samples"')]),
    }
    for text in outputs.values():
        shows(text, (own.mean, own.interval))
    (record,) = record_of(run)["metrics"].values()
    assert (record["mean"], record["interval"]) == (NEW[0], list(NEW[1]))


def test_every_output_of_slices_draws_the_one_estimate(tmp_path: Path) -> None:
    """Table, notebook, JSON and report have the mean of a slice."""
    data = [{**row, "metadata": {"half": str(at % 2)}} for at, row in enumerate(rows(Situation("", "better", 0), 1))]
    run = merilo.evaluate(data, metrics=["context_relevance"], out=tmp_path / "run", storage={"cache": False})
    found = run.by("half")
    means = {
        name: replace(each.means["context_relevance"], value=NEW[0], interval=NEW[1]) for name, each in found.items()
    }
    slices = {name: replace(each, means={"context_relevance": means[name]}) for name, each in found.items()}
    changed = replace(found, slices=slices)
    for text in (str(changed), changed._repr_html_(), str(_slice_table(changed, 0, corrected=False))):
        assert text.count("0.432 (0.123 - 0.765)") == len(found)
    figures = [each["metrics"]["context_relevance"] for each in changed.record().values()]
    assert [(each["mean"], each["interval"]) for each in figures] == [(NEW[0], list(NEW[1]))] * len(found)


def test_every_output_of_a_judge_check_draws_the_one_estimate() -> None:
    """The page, short and full, and the JSON have kappa of the one measurement."""
    found = merilo.judge_check(number=4, tasks=["groundedness"])
    ((name, table),) = [*found.tables.items()][:1]
    kappa = Measurement(NEW[0], Interval(NEW[1]))
    changed = replace(found, tables={name: replace(table, kappa=kappa, sources={})})
    for text in (str(changed), str(check_page(changed, full=True))):
        assert "0.43 (0.12 - 0.77)" in text
    told = check_record(changed)["tasks"][name]["kappa"]
    assert (told["value"], told["interval"]) == (NEW[0], list(NEW[1]))


def test_every_output_of_a_watch_draws_the_one_record() -> None:
    """The lines of a look and the metrics for Prometheus have the figures of the JSON."""
    row = {"metric": "m", "slice": "", "mean": NEW[0], "reference": NEW[1][1], "alarm_line": NEW[1][0]}
    found = {
        "at": "2030-01-01T00:00:00Z",
        "counts": {},
        "look": None,
        "learning": None,
        "evidence_ratio": 0.5,
        "state": State.NOTHING.value,
        "alarm": None,
        "problem": None,
        "waiting": 0,
        "learned_days": 14,
        "least_drop": None,
        "metrics": [{**row, "evidence_ratio": 0.5}],
    }
    shows(str(watch_page(found, 80)), (2.0, (2.0, 2.0)))
    told = prometheus_text(found)
    assert all(str(each) in told for each in (NEW[0], *NEW[1]))
