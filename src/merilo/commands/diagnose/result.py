"""The answers in a diagnosis, read from its runs, and the cases that they make."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.commands.diagnose.right import RIGHT
from merilo.results.records import grouped
from merilo.runs.files import CALLS
from merilo.stats.diagnosis import Arm, Case, Form

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from merilo.runs.run import Run

CAUSES: Final = "causes-*"
"""The folders of level 2."""
ASKED: Final = "application.json"
FAILED: Final = "an answer has no verdict"
_SAME: Final = "the application answers the same every time"


class Draw(NamedTuple):
    """One answer of the application."""

    question: str
    arm: Arm
    draw: int
    """0 at level 1, from 1 at level 2."""
    right: bool | None
    """None if the call or the verdict failed, or if the verdict is undefined."""
    failed: bool
    text: str
    reference: str
    answer: str
    error: str
    metadata: Mapping[str, Any]  # Any: JSON


def unjudged(draws: Sequence[Draw]) -> int:
    """Return the number of answers without a verdict, although nothing failed."""
    return sum(each.right is None and not each.failed for each in draws)


def asked_in(path: Path) -> dict[str, str]:
    """Return the application of a diagnosis, its `--right`, and the records left out; empty before."""
    file = path / CALLS / ASKED
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def draws_in(run: Run) -> list[Draw]:
    """Return the answers in a run of a diagnosis, with the judge's own verdicts. Raises RunError."""
    found: list[Draw] = []
    for each in run.read_samples():
        record, sample, own = each.records[RIGHT], each.sample, each.sample.metadata
        value, error = record.get("value"), record.get("error", {}).get("message", "")
        names = str(own["question"]), Arm(str(own["arm"])), int(str(own["draw"]))
        right = None if value is None else value == 1
        texts = sample.user_input or "", sample.reference or "", sample.response or "", error
        found.append(Draw(*names, right, record["outcome"] == "failed", *texts, own))
    return found


def cases_of(draws: Sequence[Draw]) -> dict[str, tuple[Case, str]]:
    """Return, by failing question, its draws as a case, and why nothing can be shown by them; empty if it can."""
    found: dict[str, tuple[Case, str]] = {}
    for question, own in grouped((each.question, each) for each in draws).items():
        arms = {arm: sorted(each, key=lambda one: one.draw) for arm, each in grouped((d.arm, d) for d in own).items()}
        right = {arm: [bool(one.right) for one in each] for arm, each in arms.items()}
        why = FAILED if any(each.right is None for each in own) else ""
        copied = own[0].metadata.get("copies") and any(len({one.answer for one in each}) == 1 for each in arms.values())
        why = why or (_SAME if copied else "")
        idle = frozenset(map(Arm, own[0].metadata.get("idle", ())))
        found[question] = Case(Form(str(own[0].metadata["form"])), right, not why, idle), why
    return found
