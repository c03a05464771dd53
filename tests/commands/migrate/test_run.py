"""Old scores of real results are recomputed, and differences have their reasons.

The files in `files/` were written by the packages that they are named after: ragas 0.4.3 and 0.2.15 (`to_csv` of a
result of metrics that ask no model), DeepEval 4.3.1 (with the replies of `REPLIES`) and TruLens 2.16.0 (the table of
`get_records_and_feedback`, without its dumps of the app; scores made for the purpose).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import merilo
from merilo.commands.compare.run import ComparisonRequest, compare_runs
from merilo.commands.evaluate.options import Options
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.imports.run import ImportRequest, run_import
from merilo.commands.migrate.record import migration_record
from merilo.commands.migrate.result import ResultMigration
from merilo.commands.migrate.run import MigrationRequest, run_migration
from merilo.commands.migrate.text import migration_page
from merilo.errors import UsageError

if TYPE_CHECKING:
    from merilo.judging.questions import Question

FILES = Path(__file__).parent / "files"
REPLIES = {
    "faithfulness.truths": {"truths": ["The tower was completed in 1889."]},
    "faithfulness.claims": {"claims": ["It was completed in 1889.", "It is of stone."]},
    "faithfulness.verdicts": {"verdicts": [{"verdict": "yes", "reason": "a"}, {"verdict": "no", "reason": "b"}]},
    "contextual_recall.verdicts": {"verdicts": [{"verdict": "yes", "reason": "a"}, {"verdict": "no", "reason": "b"}]},
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory in which each test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def migrated(file: str | Path, judge: Any = "embedded", **wanted: Any) -> ResultMigration:
    found = await run_migration(file, MigrationRequest(**wanted), Options(judge=judge, cache=False))
    assert isinstance(found, ResultMigration)
    return found


def scripted(replies: dict[str, Any]) -> merilo.ScriptedJudge:
    def answer(question: Question[Any]) -> dict[str, str]:
        rubric = getattr(question, "rubric", "")
        return {"text": json.dumps(next((reply for name, reply in replies.items() if name in rubric), {"reason": "r"}))}

    return merilo.ScriptedJudge.by(answer)


@pytest.mark.parametrize(("release", "system"), [("0.4.3", "ragas-0.4.3"), ("0.2.15", "ragas-0.3.0")])
async def test_scores_of_ragas_without_a_model_are_equal(release: str, system: str) -> None:
    """Every score of a metric that asks no model equals the one that the package wrote."""
    found = await migrated(FILES / f"ragas-{release}.csv", release=release, tolerance=1e-9)
    assert [each.computed for each in found.metrics] == [
        f"{system}:{name}"
        for name in (
            "exact_match",
            "string_present",
            "non_llm_string_similarity",
            "non_llm_context_recall",
            "non_llm_context_precision_with_reference",
        )
    ]
    assert [(len(each.compared), each.equal) for each in found.metrics] == [(3, 3)] * 5
    assert [(each.name, each.reason) for each in found.unmatched] == [("bleu_score", "merilo has no BLEU score")]


async def test_scores_of_deepeval_are_equal_with_the_same_replies() -> None:
    """A judge with the replies that DeepEval got gives the same scores."""
    found = await migrated(FILES / "deepeval-4.3.1.json", scripted(REPLIES))
    assert [(each.match.definition, each.equal, len(each.parted)) for each in found.metrics] == [
        ("deepeval-4.3.1:faithfulness", 2, 0),
        ("deepeval-4.3.1:contextual_recall", 2, 0),
    ]


async def test_differences_have_rows_and_reasons() -> None:
    """Other replies give other scores: the rows are listed with both scores, the judges and what is not reproduced."""
    other = {**REPLIES, "faithfulness.verdicts": {"verdicts": [{"verdict": "no", "reason": "a"}] * 2}}
    found = await migrated(FILES / "deepeval-4.3.1.json", scripted(other))
    faithfulness, recall = found.metrics
    assert [(pair.sample, pair.old, pair.new) for pair in faithfulness.parted] == [
        ("test_case_0", 0.5, 0.0),
        ("test_case_1", 0.5, 0.0),
    ]
    causes = " ".join(faithfulness.causes)
    assert "scripted judged in the file; here scripted:" in causes
    assert "wording of the prompts" in causes
    assert not recall.causes
    page = str(migration_page(found, 100))
    assert "0.500 -> 0.000  sample test_case_0" in page
    assert "To evaluate all rows" in page


async def test_without_a_judge_that_writes_text_nothing_is_made_up() -> None:
    """The embedded judge cannot answer a published definition: it is matched and not computed, with the reason."""
    found = await migrated(FILES / "deepeval-4.3.1.json")
    assert found.run is None
    assert all(each.computed is None and "cannot answer" in each.reason for each in found.metrics)
    assert "--same-verdicts" in str(migration_page(found, 100))


async def test_the_formula_over_own_verdicts_needs_no_such_judge() -> None:
    """With same_verdicts the formula is computed with the embedded judge, and the reasons say so."""
    found = await migrated(FILES / "trulens-2.16.0.csv", same_verdicts=True)
    computed = {each.match.name: each.computed for each in found.metrics}
    assert computed["Context Relevance"] == "same_verdicts(of=trulens:context_relevance)"
    relevance = next(each for each in found.metrics if each.match.name == "Context Relevance")
    assert "Only the formula of trulens:context_relevance is computed" in " ".join(relevance.causes)


async def test_trulens_records_bring_their_contexts(here: Path) -> None:
    """Contexts of TruLens are those that its feedback functions were given; saved rows are samples of merilo."""
    await migrated(FILES / "trulens-2.16.0.csv", sample=0, save="samples.jsonl")
    record = json.loads((here / "samples.jsonl").read_text("utf-8").splitlines()[0])
    assert record["retrieved_contexts"] == ["The tower was completed in 1889.", "It is of iron."]
    assert record["metadata"]["old_scores"]["Groundedness"] == 0.5


async def test_the_sample_is_seeded_and_prefers_scored_rows(here: Path) -> None:
    """Equal seeds choose equal rows; rows without any score are chosen last."""
    rows = "".join(f"Q{n},['c'],r,r,{'' if n < 30 else 1.0}\n" for n in range(40))
    (here / "r.csv").write_text(f"user_input,retrieved_contexts,response,reference,exact_match\n{rows}", "utf-8")
    first, again, other = [await migrated("r.csv", sample=8, seed=seed) for seed in (1, 1, 2)]
    chosen = [[pair.sample for pair in each.metrics[0].pairs] for each in (first, again, other)]
    assert chosen[0] == chosen[1] != chosen[2]
    assert all(int(sample) > 30 for sample in chosen[0])
    assert first.sampled == 8


async def test_an_unknown_table_needs_a_release(here: Path) -> None:
    """A table that no known package wrote is refused with advice."""
    (here / "t.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UsageError, match="columns of scores"):
        await migrated("t.csv")
    with pytest.raises(UsageError, match="is a result of DeepEval"):
        await migrated(FILES / "deepeval-4.3.1.json", release="ragas-0.4.3")


async def test_the_record_is_json() -> None:
    """The JSON has every pair and command."""
    record = migration_record(await migrated(FILES / "ragas-0.4.3.csv", release="0.4.3"))
    again = json.loads(json.dumps(record))
    assert again["metrics"][0]["rows"][0] == {
        "sample": "1",
        "old": 1.0,
        "new": 1.0,
        "difference": 0.0,
        "reason": None,
    }
    assert again["commands"]["import the old scores"].endswith("--source ragas-0.4.3 --out runs/old")


async def test_imported_scores_are_comparable_with_their_definition() -> None:
    """With a stated source, compare pairs imported scores with the definition, and states where they are from."""
    file = FILES / "ragas-0.4.3.csv"
    old = await run_import(file, ImportRequest(source="ragas-0.4.3", out="old"))
    metrics = ["ragas-0.4.3:exact_match", "ragas-0.4.3:non_llm_string_similarity"]
    new = await run_evaluation(file, Options(metrics=metrics, out="new", cache=False))
    found = compare_runs([old, new])
    assert [(row.metric, row.comparison.difference) for row in found.rows] == [(each, 0.0) for each in metrics]
    assert any("imported from ragas 0.4.3" in note and "foreign:exact_match with" in note for note in found.notes)
    assert found.left_out["foreign:bleu_score"] == "not in new"
    backwards = compare_runs([new, old], ComparisonRequest(metrics=metrics[:1], primary=metrics[:1]))
    assert [row.metric for row in backwards.rows] == ["ragas-0.4.3:exact_match"]


async def test_without_a_stated_source_nothing_is_paired() -> None:
    """An import without a source records no definitions, so compare finds no common metric."""
    file = FILES / "ragas-0.4.3.csv"
    old = await run_import(file, ImportRequest(out="old"))
    assert "definitions" not in old.manifest.to_fields()
    new = await run_evaluation(file, Options(metrics=["ragas-0.4.3:exact_match"], out="new", cache=False))
    with pytest.raises(UsageError, match="no metric in common"):
        compare_runs([old, new])
