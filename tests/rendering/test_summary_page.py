"""The short summary: at most 20 lines, with what a reader must not miss."""

import re
from pathlib import Path

import pytest

import merilo
from merilo.commands.report.run_page import report_text
from merilo.commands.show.summary import record_of, run_markdown, run_page
from merilo.judges.base import embedded_right
from merilo.metrics.registry import all_metrics
from merilo.runs.run import Run
from merilo.runs.run_metrics import metric_to_inspect, weak_metrics

ROWS = [
    {
        "id": f"q{n}",
        "user_input": f"When was house {n} built?",
        "retrieved_contexts": [f"House {n} was built in 19{n:02}.", "Rome has seven hills."],
        "response": f"House {n} was built in 19{n:02}." if n % 3 else "Nobody knows that.",
        "reference": f"In 19{n:02}.",
        "retrieved_context_ids": ["a", "b"],
        "reference_context_ids": ["a"],
    }
    for n in range(8)
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    cuts = [f"{name}@{cutoff}" for name in ("hit_rate", "precision", "recall", "nDCG") for cutoff in (1, 2)]
    names = [name for name in all_metrics() if name not in {"context_entity_recall", "answer_completeness"}]
    names = [*names, *cuts]
    return merilo.evaluate(ROWS, metrics=names, out=tmp_path_factory.mktemp("run") / "out", storage={"cache": False})


def refusing(sentence: str) -> merilo.ScriptedJudge:
    """A judge that does not answer about a sentence."""
    return merilo.ScriptedJudge.by(
        lambda asked: merilo.Failure("refused", "no") if sentence in str(asked) else {"grade": 2, "evidence": [0]}
    )


def test_failed_samples_are_named_with_the_command_that_retries_them(tmp_path: Path) -> None:
    """The row counts them; below are the reason and the command. --full has the bounds of the mean."""
    metrics = ["context_relevance"]
    run = merilo.evaluate(ROWS, metrics=metrics, judge=refusing("1900"), out=tmp_path / "run", storage={"cache": False})
    text = str(run_page(run, 100, again="merilo run again --retry-failed"))
    assert re.search(r"context_relevance  1\.000  .* 7  1 failed\n", text)
    assert "1 outcome failed: no.\nRetry what failed: merilo run again --retry-failed\n" in text
    assert "0.875 - 1.000 with failed samples" in str(run_page(run, 80, full=True))


def test_undefined_samples_are_counted_in_the_row(tmp_path: Path) -> None:
    """A metric without any value says why; one with some has their number in its row."""
    rows = [{**row, "retrieved_contexts": row["retrieved_contexts"] if place else []} for place, row in enumerate(ROWS)]
    judge = merilo.ScriptedJudge.by(lambda _: {"grade": 1, "evidence": [0]})
    run = merilo.evaluate(
        rows, metrics=["context_relevance"], judge=judge, out=tmp_path / "run", storage={"cache": False}
    )
    assert re.search(r"context_relevance +0\.500 .* 7  1 undefined\n", str(run))
    empty = [{**row, "retrieved_contexts": []} for row in ROWS]
    none = merilo.evaluate(
        empty, metrics=["context_relevance"], judge=judge, out=tmp_path / "none", storage={"cache": False}
    )
    assert "context_relevance: 8 undefined: no context was retrieved.\n" in str(none)


def test_a_run_prints_and_finds_its_samples(run: Run) -> None:
    """`print(run)` is the table; samples are found by position, by id, by fault and from the worst."""
    assert "context_relevance " in str(run)
    assert "Details:" not in str(run)
    assert len(run.samples) == len(ROWS)
    assert (run.samples[0].sample.id, run.samples[-1].sample.id) == ("q0", "q7")
    assert run.sample("q3").sample.id == "q3"
    assert len(run) == len(list(run)) == len(ROWS)
    assert run["faithfulness"] is run.metrics["faithfulness"]
    assert run.mean("faithfulness") == run["faithfulness"].mean
    assert [value for value in run.values("faithfulness") if value is not None]
    assert {found.sample.id for found in run.worst("faithfulness", 3)} == {"q1", "q2", "q4"}
    assert len(run.worst()) == 5
    with pytest.raises(IndexError, match="8 samples"):
        run.samples[8]
    with pytest.raises(KeyError, match=r"'q3' is a sample: use run\.sample\('q3'\)"):
        run["q3"]
    with pytest.raises(KeyError, match="nowhere"):
        run["nowhere"]
    with pytest.raises(merilo.UsageError, match=r"No metric 'faith' in .*; did you mean faithfulness\?"):
        run.worst("faith")


def test_the_metric_to_inspect_asks_a_judge_that_is_not_weak(run: Run) -> None:
    """A metric of ids, or one that the judge is weak for, is chosen only if there is no other."""
    chosen = metric_to_inspect(run.manifest, run.metrics)
    assert chosen is not None
    weak = weak_metrics(run.manifest)
    assert weak & set(run.metrics)
    assert chosen in run.metrics
    assert chosen not in weak | {"id_precision", "id_recall", "reciprocal_rank", "average_precision"}


HALL = "The hall opened in 1907."
OPENED = [
    {"user_input": "When did the hall open?", "retrieved_contexts": [HALL], "response": said}
    for said in (HALL, "The hall opened in 1999.", "The hall opened late because of a strike, as everybody recalls.")
]


def test_the_first_screen_of_the_embedded_judge_says_what_it_knows(tmp_path: Path) -> None:
    """Terminal, Markdown, JSON and report have the same counts; other judges are named with a computed price."""
    ids = [{"retrieved_context_ids": ["a"], "reference_context_ids": [gold]} for gold in "aab"]
    rows = [row | own for row, own in zip(OPENED, ids, strict=True)]
    run = merilo.evaluate(rows, out=tmp_path / "run", storage={"cache": False})
    lines = str(run_page(run, 120)).splitlines()
    right = round(10 * embedded_right())
    judge = f"free, offline; {right} of 10 of its verdicts hold"
    assert lines[:3] == [
        f"3 answers, by the embedded judge ({judge}).",
        "1 stated by a passage, 1 with a value that no passage holds, 1 not judged.",
        "Gold passage retrieved for 2 of 3 questions: evidence missing in 1.",
    ]
    assert [line.split()[1:3] for line in lines[5:6]] == [["Beyond", "the"]]
    characters = sum(len(f"{row['user_input']}{row['response']}{HALL}") for row in rows)
    usd = 2 * characters / 4 * 0.1 / 1e6
    (more,) = [line for line in lines if line.startswith("More verdicts: ")]
    assert float(re.findall(r"gpt-6-luna \(([\d.]+) USD here\)", more)[0]) == pytest.approx(usd, rel=0.1)
    counts = "1 stated by a passage, 1 with a value that no passage holds, 1 not judged."
    record = record_of(run)
    assert (record["lead"][1], record["gold"]) == (counts, {"questions": 3, "retrieved": 2})
    assert record["answers"] == {"supported": 1, "strayed": 1, "unknown": 1}
    assert counts in run_markdown(run)
    assert counts in report_text([run])
