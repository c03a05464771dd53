"""Several runs in one table: which may be the best, which are as good, which one to take, and what each costs."""

import json
from pathlib import Path

import numpy as np
import pytest
from demo_runs import Demo
from imported import import_scores
from simulated_settings import METRIC, ranking, rates

import merilo
from merilo.commands.compare.record import comparison_record
from merilo.commands.compare.text import comparison_markdown, comparison_page
from merilo.commands.export.run import export_runs
from merilo.commands.report.run_page import comparison_page as report_page
from merilo.errors import UsageError
from merilo.results.estimate import Verdict

COSTS = {"k2": 0.001, "k4": 0.002, "k8": 0.004}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> list[merilo.Run]:
    """Three settings over 200 questions: k2 is worse, k4 loses one answer in 50, k8 costs twice as much as k4."""
    folder, right = tmp_path_factory.mktemp("settings"), np.random.default_rng(3).random(200) < 0.8
    answers = {"k8": right, "k4": right & (np.arange(200) % 50 > 0), "k2": right & (np.arange(200) % 4 > 0)}
    found = []
    for name, own in answers.items():
        lines = [f"{at},{int(score)},{int(at % 9 > 0)},{COSTS[name]},{900 + at}" for at, score in enumerate(own)]
        table = folder / f"{name}.csv"
        table.write_text("\n".join(["id,answer_correctness,tone,cost_usd,latency_ms", *lines]), encoding="utf-8")
        found.append(import_scores(table, id="id", scores=["answer_correctness", "tone"], out=folder / name))
    return found


def plain(found: object) -> str:
    """The text in one line."""
    return " ".join(str(found).split())


def test_the_table_has_the_set_and_the_cheapest_of_it(settings: list[merilo.Run]) -> None:
    """One line per run, best first, with its cost; the sentence names those that may be the best."""
    found = merilo.compare(settings)
    assert (found.names, found.rankings[0].metric) == (("k8", "k4", "k2"), "foreign:answer_correctness")
    assert found.rankings[0].may_be_best == (0, 1)
    assert found.conclusion == "May be the best, by the judge alone: k8, k4. Of these k4 costs least."
    lines = str(found).splitlines()
    (first,) = [at for at, line in enumerate(lines) if line.split()[:1] == ["k8"]]
    assert [line.split()[0] for line in lines[first : first + 4]] == ["k8", "k4", "cannot", "k2"]
    assert lines[first].split()[2:6] == ["4.00", "USD", "1.00", "s"]
    assert lines[first + 3].endswith("worse")
    for page in (report_page(found), comparison_markdown(found), str(comparison_page(found, 80, full=True))):
        assert "k4 costs least" in page


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"within": 0.1}, "k4 costs 50 % less than k8 and is at most 0.1 worse than every other run."),
        ({"within": 0.1, "against": "k8"}, "k4 costs 50 % less than k8 and is at most 0.1 worse than it."),
        ({"within": 0.01}, "Only k8 is shown to be at most 0.01 worse than every other run."),
        ({"within": 0.9}, "k2 costs 75 % less than k8 and is at most 0.9 worse than every other run."),
    ],
)
def test_the_cheapest_proven_one_is_named(
    settings: list[merilo.Run], options: dict[str, object], sentence: str
) -> None:
    """Among those shown to be at most the margin worse."""
    assert merilo.compare(settings, **options).conclusion.endswith(sentence)


def test_a_measure_that_is_preferred_chooses(settings: list[merilo.Run]) -> None:
    """By its name or without the unit; one that a run lacks is an error, as are wrong margins."""
    found = merilo.compare(settings, within=0.9, prefer="latency")
    assert (found.preferred, found.chosen) == ("latency_s", 0)
    for wrong in ({"prefer": "energy"}, {"within": 0}, {"against": "k8"}, {"within": 0.1, "against": "k99"}):
        with pytest.raises(UsageError, match=r"--(prefer|within|against)"):
            merilo.compare(settings, **wrong)


def test_the_run_to_take_is_warned_of_where_it_is_worse(tmp_path: Path) -> None:
    """If another metric shows it to be worse than its best run."""
    runs = []
    for name, tone, cost in (("a", 1, 2), ("b", 1, 2), ("c", 0, 1)):
        rows = "".join(f"{at},{(at + ord(name)) % 5 > 0:d},{tone},{cost}\n" for at in range(60))
        (tmp_path / f"{name}.csv").write_text("id,answer_correctness,tone,cost_usd\n" + rows, encoding="utf-8")
        scores = ["answer_correctness", "tone"]
        runs.append(import_scores(tmp_path / f"{name}.csv", id="id", scores=scores, out=tmp_path / name))
    text = plain(merilo.compare(runs))
    assert "Of these c costs least." in text
    assert "c is worse than a in foreign:tone, -1.000" in text


def test_the_embedded_judge_alone_names_no_set(tmp_path: Path) -> None:
    """Each run cannot tell, whatever the means; with a margin nothing is as good either."""
    ways = {"a": 2, "b": 1, "c": 0}
    runs = [merilo.evaluate(_samples(way), metrics=["context_relevance"], judge="embedded", storage={"cache": False},
                            out=tmp_path / name) for name, way in ways.items()]  # fmt: skip
    found = merilo.compare(runs, within=0.9)
    assert {row.verdict for row in found.rankings[0].rows} == {Verdict.CANNOT_TELL}
    assert (found.rankings[0].may_be_best, found.rankings[0].as_good, found.verdict) == ((), (), Verdict.CANNOT_TELL)
    assert found.conclusion == "Cannot tell which run is best: no one has checked the judge."
    assert str(found).count("cannot tell") == 2


def _samples(way: int) -> list[dict[str, object]]:
    texts = ["It rained all day.", "The river is long.", "The river Alba is 90 km long."]
    return [
        {"id": str(at), "user_input": "How long is the river Alba?", "retrieved_contexts": [texts[way]]}
        for at in range(30)
    ]


def test_json_and_tables_have_the_numbers(settings: list[merilo.Run], tmp_path: Path) -> None:
    """The record names runs; a CSV has one row per run, LaTeX marks the best and what is worse."""
    found = comparison_record(merilo.compare(settings, within=0.1))["ranking"]
    assert (found["best"], found["may_be_best"], found["as_good"]) == (["k8"], ["k8", "k4"], ["k8", "k4"])
    assert (found["chosen"], found["preferred"], found["against"]) == (["k4"], "cost_usd", [])
    assert [row["cost_usd mean"] for row in found["runs"]] == pytest.approx([0.004, 0.002, 0.001])
    json.dumps(found)
    assert export_runs(settings, tmp_path / "t.csv").runs == 3
    assert (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()[1].startswith("k8,0.8")
    export_runs(settings, tmp_path / "t.tex")
    table = (tmp_path / "t.tex").read_text(encoding="utf-8")
    assert r"k8 & \textbf{0.8" in table
    assert r"$^\dagger$" in table.splitlines()[7]
    with pytest.raises(UsageError, match="three runs or more"):
        export_runs(settings[:2], tmp_path / "t.csv")


def test_equal_runs_with_other_latencies_have_no_plain_no_change(tmp_path: Path) -> None:
    """The conclusion of a pair says what differs, with numbers below the table."""
    runs = []
    for name, ms in (("a", 1000), ("b", 600)):
        data = [{**each, "id": str(at), "latency_ms": ms + at} for at, each in enumerate(_samples(2))]
        runs.append(
            merilo.evaluate(data, metrics=["context_relevance"], storage={"cache": False}, out=tmp_path / f"l{name}")
        )
    found = merilo.compare(runs)
    assert found.conclusion == "No change in scores: lb has the inputs and scores of la, but another latency."
    assert "Latency: median 1.01 s to 0.61" in plain(found)
    (measure,) = comparison_record(found)["measures"]
    assert measure["difference"] == pytest.approx(-0.4)


def test_labels_correct_the_differences() -> None:
    """A judge that is kinder to one run makes it the best; labels of the pairs show that the other one is."""
    rng = np.random.default_rng(5)
    truth = (rng.random((200, 3)) < [0.9, 0.5, 0.5]).astype(float)
    judged = truth.copy()
    judged[:, 1] = 1.0
    labelled = np.sort(rng.choice(200, 60, replace=False))
    assert ranking(judged).best == 1
    found = ranking(judged, None, truth, labelled)
    assert (found.best, found.may_be_best) == (0, (0,))
    assert found.metric == METRIC


@pytest.mark.parametrize("options", [{"clustered": True}, {"labels": True}])
def test_equal_runs_are_seldom_told_apart(options: dict[str, bool]) -> None:
    """Simulated: four equal runs, and three that lose exactly the margin."""
    equal = rates("0/1 at .8", 60, 4, studies=60, seed=11, **options)
    assert max(equal.named, equal.worse, equal.excluded) <= 0.12
    behind = rates("0/1 at .8", 60, 4, studies=40, seed=12, lost=0.03, **options)
    assert max(behind.excluded, behind.as_good) <= 0.12


def test_labels_attached_to_pairs_correct_the_table(demo: Demo, tmp_path: Path) -> None:
    """The rows of labelled pairs are corrected and decide, although the embedded judge alone may not."""
    demo.copied(tmp_path / "demo")
    better, worse = (tmp_path / "demo" / name for name in ("bm25", "overlap"))
    found = merilo.compare(better, worse, worse, primary="context_relevance")
    assert [row.comparison.labelled for row in found.rankings[0].rows] == [40, 40]
    assert found.rankings[0].may_be_best == (0,)
    assert "bm25 is better than every other run, corrected by human labels: context_relevance 0.2" in found.conclusion
    alone = merilo.compare(better, worse, worse, primary="context_relevance", judge_only=True)
    assert alone.conclusion == "Cannot tell which run is best: no one has checked the judge."


# -- incomplete and unlike data -----------------------------------------------------------------------


def table(
    folder: Path, name: str, rows: list[str], columns: str = "id,hit,cost_usd,calls", **options: object
) -> merilo.Run:
    """A run of imported scores."""
    (folder / f"{name}.csv").write_text("\n".join(["id,hit,cost_usd,calls", *rows]), encoding="utf-8")
    return import_scores(folder / f"{name}.csv", id="id", scores=["hit"], out=folder / name, **options)


def test_costs_are_compared_over_the_questions_that_have_one_in_every_run(tmp_path: Path) -> None:
    """Half the costs of b, its dear questions, are missing: b costs half as much again as a, not less."""
    right = [at % 5 > 0 for at in range(60)]
    a = table(tmp_path, "a", [f"{at},{hit:d},{2 if at % 2 else 1},0" for at, hit in enumerate(right)])
    b = table(tmp_path, "b", [f"{at},{hit:d},{'' if at % 2 else 1.5},0" for at, hit in enumerate(right)])
    c = table(tmp_path, "c", [f"{at},{hit and at % 3 > 0:d},9,0" for at, hit in enumerate(right)])
    found = merilo.compare(a, b, c, within=0.9)
    assert found.names[found.chosen or 0] == "a"
    assert "cost over 30 of 60 questions." in plain(found)
    assert [each["cost_usd"].typical for each in found.measures] == [1, 1.5, 9]


def test_equal_measures_leave_the_choice_to_the_mean(tmp_path: Path) -> None:
    """The best of the runs with as few calls is named, with the others."""
    runs = [
        table(tmp_path, name, [f"{at},{at % 10 < good:d},1,0" for at in range(60)], measures=["calls"])
        for name, good in (("low", 5), ("high", 9), ("mid", 7))
    ]
    found = merilo.compare(runs, within=0.95, prefer="calls")
    assert found.names[found.chosen or 0] == "high"
    assert "high has the same calls as low, mid and the best mean of them." in plain(found)


def test_means_are_those_of_the_runs(tmp_path: Path) -> None:
    """A sample that one run did not score leaves the means of the others as they are."""
    rows = [f"{at},{at % 5 > 0:d},1,0" for at in range(60)]
    best = table(tmp_path, "best", rows)
    holes = table(tmp_path, "holes", [f"{at},{'' if at % 5 == 0 else 0},1,0" for at in range(60)])
    low = table(tmp_path, "low", [f"{at},{at % 5 > 3:d},1,0" for at in range(60)])
    means = merilo.compare(best, holes, low).rankings[0].means
    assert means == {0: pytest.approx(0.8), 2: pytest.approx(0.2), 1: 0.0}
