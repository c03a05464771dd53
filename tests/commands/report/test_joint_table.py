"""The report on a run with the metric `answering`: its categories, with shares and culprits, instead of the grid."""

import re
from pathlib import Path
from typing import Any

import merilo
from merilo.commands.report.faults import CATEGORIES, FAULTS
from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import run_page
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.kinds.noncommittal import Noncommittal
from merilo.judging.kinds.statements import Statements
from merilo.judging.kinds.sufficiency import Sufficiency
from merilo.judging.questions import Question
from merilo.metrics.answering import Category

ANSWER, REFUSAL, EMPTY = "It is tall.", "I decline.", "See above."
ROWS = (
    *(("It is tall.", ANSWER) for _ in range(4)),
    *(("Rome has hills.", ANSWER) for _ in range(3)),
    *(("It is tall.", REFUSAL) for _ in range(2)),
    ("Rome has hills.", REFUSAL),
    ("It is tall.", EMPTY),
)


def judge(question: Question[Any]) -> dict[str, Any]:
    """A reader of exact words."""
    match question:
        case Sufficiency():
            return {"label": "sufficient" if ANSWER in question.contexts else "insufficient"}
        case Noncommittal():
            return {"noncommittal": question.response == REFUSAL}
        case Statements():
            stated = [{"text": text, "sentence": at} for at, text in enumerate(question.sentences) if text == ANSWER]
            return {"statements": stated}
        case _:
            found = ANSWER in question.all_texts[1:]
            return {"label": "supported" if found else "not_stated", "evidence": [0] if found else []}


def test_each_category_is_counted_with_its_share_and_culprit(tmp_path: Path) -> None:
    """The table counts every category over the run; one without samples has 0, and shares have intervals."""
    rows = [
        {"id": f"s{n}", "user_input": f"How tall is {n}?", "retrieved_contexts": [context], "response": response}
        for n, (context, response) in enumerate(ROWS)
    ]
    run = merilo.evaluate(
        rows, metrics=["answering"], judge=ScriptedJudge.by(judge), out=tmp_path / "r", storage={"cache": False}
    )
    page = run_page(report_run(run))
    cells = {int(at): int(amount) for at, amount in re.findall(r'data-fault="(\d+)"><b>(\d+)</b>', page)}
    found = {category: cells[at] for category, at in CATEGORIES.items() if cells.get(at)}
    expected = {Category.RIGHT: 4, Category.INVENTED: 3, Category.DECLINED_WRONGLY: 2, Category.RIGHTLY_DECLINED: 1}
    assert found == {**expected, "cannot tell": 1}
    assert "Culprit: the generator." in page
    assert re.search(r'<span class="soft">0\.300 \(0\.\d+ - 0\.\d+\)</span>', page)
    assert "<b>5 of 11 samples</b> have a likely fault, most often <b>evidence missing, invented</b> (3)" in page
    assert FAULTS[CATEGORIES[Category.INVENTED]].name in page.split('id="samples"')[0]
