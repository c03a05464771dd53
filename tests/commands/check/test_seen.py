"""Records of a data set on which a local model was trained: marked, and left out of the overall figures."""

import json
from pathlib import Path
from typing import Any

from tiny_models import NLI_CARD, nli

from merilo.commands.check.options import CheckOptions
from merilo.commands.check.page import JudgeCheck, check_page, check_record
from merilo.commands.check.run import run_check
from merilo.commands.evaluate.options import Storage
from merilo.stats.resampling import Resampling

QUICK = Resampling(resamples=20)
TRAINED = NLI_CARD.replace('languages = ["en"]', 'languages = ["en"]\ntrained_on = ["MS Marco"]')


def records(name: str, *, wrong: bool, **meta: Any) -> list[dict[str, Any]]:
    """Sixty labelled records that the rigged model judges all right, or all wrong."""
    return [
        {
            "id": f"{name}-{number}{len(meta)}",
            "task": "nli",
            "source": name,
            "context": f"The tower {number} is in Paris.",
            "statement": "Paris?" if number % 2 else "Rome?",
            "label": number % 2 ^ wrong,
            "meta": meta,
        }
        for number in range(60)
    ]


async def checked(tmp_path: Path, rows: list[dict[str, Any]], card: str = TRAINED) -> JudgeCheck:
    """A check of the rigged model on these records."""
    labels = tmp_path / "ours.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    judge = f"local:{nli(tmp_path / 'model', card)}"
    return await run_check(
        CheckOptions(judge=judge, labels=[labels], tasks=["nli"], storage=Storage(cache=False)), QUICK
    )


async def test_a_source_of_the_training_data_is_marked_and_not_in_the_mean(tmp_path: Path) -> None:
    """The model is right on what it has seen and wrong on the rest; the mean shows only the rest."""
    found = await checked(tmp_path, [*records("ms-marco", wrong=False), *records("ours", wrong=True)])
    shown = check_record(found)
    task = shown["tasks"]["nli"]
    sources = task["sources"]
    assert (sources["ms-marco"]["seen"], sources["ms-marco"]["kappa"]["value"]) == (True, 1.0)
    assert "seen" not in sources["ours"]
    assert [name for name, each in sources.items() if each["in_mean"]] == ["ours"]
    assert (task["n"], task["kappa"]["value"]) == (60, -1.0)
    page = str(check_page(found, width=80, full=True))
    assert next(line.split()[:4] for line in page.splitlines() if "ms-marco" in line) == [
        "-",
        "ms-marco",
        "60/60",
        "1.00",
    ]
    assert max(map(len, page.splitlines())) <= 80


async def test_the_origin_of_a_record_counts_too(tmp_path: Path) -> None:
    """`meta.source` names the data set of a single record; the other records of its source count."""
    found = await checked(
        tmp_path,
        [*records("mix", wrong=False, source="msmarco"), *records("mix", wrong=True), *records("x", wrong=True)],
    )
    sources = check_record(found)["tasks"]["nli"]["sources"]
    assert list(sources) == ["mix", "mix (seen)", "x"]
    assert [sources[name]["kappa"]["value"] for name in sources] == [-1.0, 1.0, -1.0]
    assert [name for name, each in sources.items() if each["in_mean"]] == ["mix", "x"]
    assert "- mix (seen)  60/60" in str(check_page(found, width=80, full=True))


async def test_if_all_sources_are_seen_there_is_no_overall_figure(tmp_path: Path) -> None:
    """No mean and no pooled figure, instead of figures over records that say little."""
    found = await checked(tmp_path, records("msmarco", wrong=False))
    task = check_record(found)["tasks"]["nli"]
    assert (task["sources"]["msmarco"]["in_mean"], task["kappa"]["value"], task["n"]) == (False, None, 0)
