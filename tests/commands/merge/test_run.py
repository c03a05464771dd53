"""The runs over all shards of a data set, merged: the same bytes as those of one run over all data."""

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from each_case import each_case
from edits import printed
from grouping import grouped
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_rivers import canonical, rows, verdict_for
from killing import killed_at_each_step
from labelled_run import fill_in
from server import JudgeServer, status

import merilo
from merilo.cli import outcome
from merilo.commands.calibrate.run import label_agreement
from merilo.commands.label.run import label_run
from merilo.commands.merge.run import merge_runs
from merilo.commands.verify.replay import replay_run
from merilo.errors import RunError, UsageError
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Card
from merilo.runs.files import STORE
from merilo.runs.records import packed, unpacked

METRICS = ("context_relevance", "faithfulness")


def judge(question: Question[Any]) -> dict[str, Any] | Failure:
    """A verdict by the words of the question; none about the town of 2."""
    if question.kind == "relevance" and "town of 2" in getattr(question, "sentences", ("",))[0]:
        return Failure(FailureKind.REFUSED, "It will not.")
    return verdict_for(question)


def merge(runs: Sequence[merilo.Run | Path], out: Path) -> merilo.Run:
    """The merged run."""
    return merge_runs(runs, out)


def evaluated(out: Path, data: Sequence[Any], shard: str | None = None, **options: Any) -> merilo.Run:
    """A run with a scripted judge and no cache."""
    given_options = {"metrics": METRICS, "judge": merilo.ScriptedJudge.by(judge, version="1"), **options}
    return merilo.evaluate(data, **grouped(shard=shard, out=out, cache=False, **given_options))


def shards(folder: Path, data: Sequence[Any], of: int, **options: Any) -> list[Path]:
    """The directories of all shards, evaluated."""
    return [evaluated(folder / str(i), data, f"{i}/{of}", **options).path for i in range(1, of + 1)]


@st.composite
def splits(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[int], str | None, bool]:
    """Data, the order in which its shards are merged, a cluster field, and whether invalid records are in it."""
    data = draw(st.permutations(rows(draw(st.integers(1, 9)))))
    for place, row in enumerate(data):
        row["metadata"] = {"doc": draw(st.sampled_from(["a", "b", "ä\u2028"]))}
        if place and draw(st.booleans()):
            del row["response"]
    order = draw(st.permutations(range(draw(st.integers(1, min(4, len(data)))))))
    return data, order, draw(st.sampled_from([None, "doc"])), draw(st.booleans())


@settings(max_examples=8)
@given(case=splits())
def test_any_split_merged_in_any_order_gives_the_bytes_of_one_run(
    case: tuple[list[dict[str, Any]], list[int], str | None, bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Failed and undefined outcomes, clusters, skipped records and composites included, for all sealed files."""
    data, order, cluster, invalid = case
    folder = tmp_path_factory.mktemp("split")
    options = {"cluster": cluster, "skip_invalid": True, "metrics": METRICS}
    given_data = [*data[:1], {"id": data[0]["id"]}, *data[1:]] if invalid else data
    whole = evaluated(folder / "whole", given_data, **options)
    parts = shards(folder, given_data, len(order), **options)
    merged = merge([parts[place] for place in order], folder / "merged")
    assert canonical(merged) == canonical(whole)
    assert (merged.path / "seal.json").read_bytes() == (whole.path / "seal.json").read_bytes()
    assert merged.usage["requests"] == whole.usage["requests"]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three shards of nine samples, in 1, 2 and 3, and the whole run."""
    folder = tmp_path_factory.mktemp("shards")
    evaluated(folder / "whole", rows(9))
    shards(folder, rows(9), 3)
    return folder


def test_a_merged_run_holds_what_a_whole_run_holds(here: Path, tmp_path: Path) -> None:
    """It verifies, its samples and questions are those of the whole run, and repeating its run asks nothing."""
    merged = merge([here / name for name in "213"], tmp_path / "merged")
    assert printed("runs", "verify", merged.path)[0] == 0
    assert [each.sample for each in merged.samples] == [each.sample for each in merilo.Run.open(here / "whole").samples]
    whole = merilo.Run.open(here / "whole")
    keys = [key for each in whole.records() for key in each["trail"]]
    assert [(each.question, each.answer) for each in merged.asked(keys)] == [
        (each.question, each.answer) for each in whole.asked(keys)
    ]
    before = canonical(merged)
    broken = merilo.ScriptedJudge.by(judge, version="1")
    again = evaluated(merged.path, rows(9), judge=broken)
    assert canonical(again) == before


@dataclass(frozen=True, slots=True)
class Product:
    """The product of two means."""

    name: ClassVar[str] = "made:merged_product"
    version: ClassVar[int] = 3
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = True
    card: ClassVar[Card] = Card("The product of two means.", family="made")

    @property
    def parts(self) -> tuple[str, ...]:
        return METRICS

    def combine(self, means: Sequence[float]) -> float | None:
        return means[0] * means[1]


def test_a_composite_is_computed_over_all_shards(tmp_path: Path) -> None:
    """A composite has no value for a sample, so its value over all data follows from its parts in all shards."""
    merilo.register(Product)
    chosen = {"metrics": [Product.name], "judge": merilo.ScriptedJudge.by(verdict_for, version="1")}
    data = rows(5)[1:]
    whole = evaluated(tmp_path / "whole", data, **chosen)
    merged = merge(shards(tmp_path, data, 3, **chosen), tmp_path / "merged")
    assert merged.metrics[Product.name].parts == METRICS
    assert merged.metrics[Product.name].mean is not None
    assert canonical(merged) == canonical(whole)


def test_requests_and_cost_are_those_of_all_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several draws from a server: the ledgers are joined, unanswered requests included, and they add up."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    chosen = {"metrics": ["context_sufficiency"], "draws": 2, "judge": "openai:gpt-4.1-mini"}
    with JudgeServer() as server:
        chosen |= {"base_url": server.base_url, "prices": [{"model": "gpt-4.1-mini", "input": 1.0, "output": 4.0}]}
        whole = evaluated(tmp_path / "whole", rows(6), **chosen)
        server.fail_next(status(500), status(429))
        parts = [merilo.Run.open(each) for each in shards(tmp_path, rows(6), 3, **chosen)]
    merged = merge(parts, tmp_path / "merged")
    assert canonical(merged) == canonical(whole)
    assert merged.usage["requests"] == sum(each.usage["requests"] for each in parts) > whole.usage["requests"]
    assert merged.usage["cost_usd"] == pytest.approx(sum(each.usage["cost_usd"] for each in parts))
    assert printed("runs", "verify", merged.path)[0] == 0


OTHERS: dict[str, tuple[list[dict[str, Any]], str | None, dict[str, Any], str]] = {
    "data": (rows(8), "3/3", {}, "different data"),
    "order": (rows(9)[::-1], "3/3", {}, "different data"),
    "judge": (rows(9), "3/3", {"judge": merilo.ScriptedJudge.by(judge, version="2")}, "differ in judges .*version"),
    "metrics": (rows(9), "3/3", {"metrics": ["context_relevance"]}, "differ in metrics"),
    "limit": (rows(9), "3/3", {"limit": 9}, "differ in notes"),
    "number of shards": (rows(9), "3/4", {}, "same number of shards"),
    "twice": (rows(9), "2/3", {}, "are the same shard"),
    "no shard": (rows(9), None, {}, "is not a shard"),
    "unfinished": (rows(9), "3/3", {"max_seconds": 0.0}, "is not finished: 0 of 3 samples"),
}
"""By name: data, shard and options of the third run, and the error."""


@each_case("name", OTHERS)
def test_shards_that_do_not_fit_are_refused_with_the_difference(name: str, here: Path, tmp_path: Path) -> None:
    """The message names both runs and what differs; nothing is written."""
    data, shard, chosen, message = OTHERS[name]
    if "max_seconds" in chosen:
        with JudgeServer() as server:
            chosen = {**chosen, "judge": "openai:m", "base_url": server.base_url, "max_seconds": 1e-9}
            other = evaluated(tmp_path / "other", data, shard, **chosen)
    else:
        other = evaluated(tmp_path / "other", data, shard, **chosen)
    with pytest.raises(UsageError, match=message):
        merge([here / "1", here / "2", other], tmp_path / "merged")
    assert not list(tmp_path.glob("merged*"))


def test_a_replay_of_a_shard_is_refused(here: Path, tmp_path: Path) -> None:
    """Its cost is not that of the shard, so the merged run's would be wrong."""
    replayed = replay_run(here / "3", out=tmp_path / "replayed").run
    with pytest.raises(UsageError, match="was recomputed"):
        merge([here / "1", here / "2", replayed], tmp_path / "merged")


SAME = [{"id": str(n), "user_input": "How long?", "retrieved_contexts": ["A river. It is long."]} for n in range(4)]


def counted(grades: Sequence[int]) -> merilo.ScriptedJudge:
    """A judge that gives the next of these grades each time it is asked; -1: it fails."""
    left = iter(grades)

    def by(question: Question[Any]) -> dict[str, Any] | Failure:
        grade = next(left)
        return Failure(FailureKind.REFUSED, "No.") if grade < 0 else {"grade": grade, "evidence": [0] if grade else []}

    return merilo.ScriptedJudge.by(by, version="1")


@pytest.mark.parametrize(
    ("grades", "message"),
    [((1, 2), "relevance.*MERILO_CACHE"), ((1, -1), "relevance.*--retry-failed"), ((-1, -1), ""), ((2, 2), "")],
)
def test_a_question_in_two_shards_has_one_answer(grades: tuple[int, int], message: str, tmp_path: Path) -> None:
    """Equal answers are stored once, like in a run over all data; answers that differ are an error."""
    chosen = {"metrics": ["context_relevance"]}
    parts = [
        evaluated(tmp_path / str(i), SAME, f"{i}/2", judge=counted([grade]), **chosen).path
        for i, grade in enumerate(grades, start=1)
    ]
    if message:
        with pytest.raises(RunError, match=rf"Shards 1/2 and 2/2 .*{message}"):
            merge(parts, tmp_path / "merged")
        assert not list(tmp_path.glob("merged*"))
        return
    merged = merge(parts, tmp_path / "merged")
    with closing(sqlite3.connect(merged.path / STORE)) as db:
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (1,)
    assert canonical(merged) == canonical(evaluated(tmp_path / "whole", SAME, judge=counted(grades[:1]), **chosen))
    assert printed("runs", "verify", merged.path)[0] == 0


DAMAGE = {
    "sample": "UPDATE samples SET record = edited(record, 'river', 'rivet')",
    "question": "UPDATE exchanges SET record = edited(record, 'relevance', 'support') WHERE rowid = 2",
    "verdict": "UPDATE exchanges SET record = edited(record, '1', '0')",
    "replies": "UPDATE exchanges SET judge = 'other' WHERE id = 1",
    "text": "UPDATE texts SET text = text || '.'",
    "lost row": "DELETE FROM answers WHERE rowid = 1",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_shard_is_refused(name: str, here: Path, tmp_path: Path) -> None:
    """A row of its store that was edited or removed is noticed, and the message names the shard."""
    shutil.copytree(here / "2", tmp_path / "2")
    with closing(sqlite3.connect(tmp_path / "2" / STORE, isolation_level=None)) as db:
        db.create_function("edited", 3, lambda data, old, new: packed(unpacked(data).replace(old, new)))
        db.execute(DAMAGE[name])
        assert db.execute("SELECT changes()").fetchone()[0]
    with pytest.raises(RunError, match=rf"{tmp_path}/2/store.sqlite is damaged"):
        merge([here / "1", tmp_path / "2", here / "3"], tmp_path / "merged")
    assert not list(tmp_path.glob("merged*"))


def test_a_killed_merge_leaves_nothing_half_and_finishes_when_repeated(here: Path, tmp_path: Path) -> None:
    """Killed before each of its writes: the run is there whole, or not at all."""
    for name in "123":
        shutil.copytree(here / name, tmp_path / "template" / name)
    words = ("runs", "merge", "3", "1", "2", "-o", "merged")
    *killed, whole = killed_at_each_step(words, tmp_path / "template", tmp_path / "killed")
    expected = canonical(merilo.Run.open(whole / "merged"))
    assert expected == canonical(merilo.Run.open(here / "whole"))
    assert len(killed) > 5
    there = 0
    for place in killed:
        if (place / "merged").exists():
            there += 1
            assert canonical(merilo.Run.open(place / "merged")) == expected
        again = merge([place / name for name in "123"], place / "merged")
        assert canonical(again) == expected
        assert sorted(each.name for each in place.iterdir()) == ["1", "2", "3", "merged"]
    assert 0 < there < len(killed)


def test_only_an_equal_run_may_be_there(here: Path, tmp_path: Path) -> None:
    """A repeated merge changes nothing; another run or other files are never replaced."""
    parts = [here / name for name in "123"]
    first = merge(parts, tmp_path / "merged")
    before = (first.path / STORE).read_bytes()
    assert (merge(parts, tmp_path / "merged").path / STORE).read_bytes() == before
    evaluated(tmp_path / "other", rows(2))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "notes.txt").write_text("mine")
    shutil.copytree(tmp_path / "files", tmp_path / ".new.part")
    for name, message in (("other", "other results"), ("files", "other files"), ("new", "in the way")):
        with pytest.raises(RunError, match=message):
            merge(parts, tmp_path / name)
    assert (tmp_path / "files" / "notes.txt").read_text() == "mine"
    assert (tmp_path / ".new.part" / "notes.txt").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert canonical(merge(parts, tmp_path / "empty")) == canonical(first)


def test_the_command_prints_the_summary_and_leaves_labels_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels of a shard were sampled from that shard, so they say nothing about all data; the command reports it."""
    parts = shards(tmp_path, rows(50), 2, metrics=["context_relevance"])
    label_run(parts[0], tmp_path / "labels.jsonl", samples=22)
    label_agreement(parts[0], fill_in(tmp_path / "labels.jsonl", lambda _: "1"), attach=True)
    assert outcome(["runs", "merge", *map(str, parts), "-o", str(tmp_path / "merged")]) == 0
    text = capsys.readouterr()
    assert "50 samples" in text.out
    assert "1 shard had human labels" in text.err
    assert merilo.Run.open(tmp_path / "merged").labels is None
