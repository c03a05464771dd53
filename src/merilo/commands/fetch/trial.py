"""Test a fetched judge, and compare it with human labels.

The golden pairs of the card show that the files and the card fit. The check measures the agreement that reports print,
and stores it as `agreement.json` next to the lock. Neither removes what was downloaded.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from merilo.commands.check.labels import label_files
from merilo.commands.check.options import CheckOptions
from merilo.commands.check.record import check_record
from merilo.commands.check.run import run_check
from merilo.commands.fetch.result import Trial
from merilo.commands.judge.trial import try_out
from merilo.errors import ProviderDown, UsageError
from merilo.judges.local.agreement import write_agreement
from merilo.judges.local.judge import local_judge
from merilo.rendering.wording import said
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.engine.progress import Progress
    from merilo.judges.local.judge import LocalJudge

_AS_USUAL: Final = Resampling()


def try_judge(name: str) -> tuple[Trial, LocalJudge | None]:
    """Ask a fetched judge a question of each kind, and compare its golden logits; return the judge if it works."""
    try:
        judge = local_judge(name)
        golden = judge.golden_check()
        trials = try_out(judge)
    except (UsageError, ProviderDown) as error:
        return Trial(str(error)), None
    failed = next((each for each in trials if not each.works), None)
    if golden is not None and not golden.agree:
        return Trial(golden.note, golden), None
    if failed is not None:
        return Trial(f"A question of kind {failed.kind!r} failed: {said(failed.answers[0])}", golden), None
    checked = judge.agreement()
    return Trial(None, golden, None if checked is None else checked.note), judge


def checked(
    trial: Trial,
    judge: LocalJudge,
    labels: Sequence[str],
    progress: Progress | None,
    resampling: Resampling = _AS_USUAL,
) -> Trial:
    """Compare a judge with human labels, the shipped ones if no file is named, unless this was done before.

    A finished check is stored. Raises DataError for invalid labels and UsageError for files that cannot be read.
    """
    known = judge.agreement()
    if known is not None and known.label_digests == frozenset(each.sha256 for each, _ in label_files(labels)):
        return trial
    options = CheckOptions(judge=judge, labels=labels, progress=progress)
    try:
        found = asyncio.run(run_check(options, resampling))
    except UsageError as error:
        if labels:
            raise
        return replace(trial, notes=(str(error),))  # for example if no shipped label fits the card
    if found.stopped is not None:
        return replace(trial, notes=(found.stopped,), check=found)
    write_agreement(judge.provider.found.home, check_record(found))
    stored = judge.agreement()
    return replace(trial, agreement=None if stored is None else stored.note, check=found)
