"""Known reasons why a recomputed score differs from that of another package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.metrics.lineage.same_verdicts import FORMS
from merilo.metrics.registry import asks_judge
from merilo.metrics.text import bare_name, read_call
from merilo.rendering.reproduction import reproduction
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from merilo.commands.migrate.result import MigratedMetric


def causes_of(found: MigratedMetric, judge: str) -> tuple[str, ...]:
    """Return the known reasons for the differences of a metric; empty if all scores are equal.

    They come from what the definition does not reproduce, from the judge, and from missing scores.
    """
    causes = [*_missing(found)]
    if not found.parted:
        return tuple(causes)
    definition = str(found.match.definition)
    if found.match.reason:
        causes.append(f"{found.match.reason}.")
    if found.computed != definition:
        causes += _formula_only(definition, found.computed or "")
    elif not asks_judge(definition):
        causes.append("No model is asked, so the data, a parameter or the release differs.")
    if asks_judge(definition):
        there = f"{found.old_judge} judged in the file" if found.old_judge else "The file does not record its judge"
        causes.append(f"{there}; here {judge} answered. Judges also vary between calls.")
    if found.computed == definition and (kept := reproduction(bare_name(definition))) is not None:
        causes += [f"Not reproduced: {each}." for each in kept.not_reproduced]
    return tuple(causes)


def _formula_only(definition: str, computed: str) -> list[str]:
    """Return sentences on a formula over merilo's own verdicts."""
    of = read_call(computed).parameters["of"].strip('"')
    release = "" if of == definition else f", which stands for {definition},"
    form = FORMS[of]
    return [
        f"Only the formula of {of}{release} is computed, over the verdicts of merilo's own metrics.",
        *([f"Left out: {form.left_out}."] if form.left_out else []),
    ]


def _missing(found: MigratedMetric) -> list[str]:
    """Return sentences on the samples that are scored on one side only."""
    here = [pair for pair in found.one_sided if pair.old is None]
    there = [pair for pair in found.one_sided if pair.new is None]
    reasons = "; ".join(dict.fromkeys(pair.reason for pair in there if pair.reason))
    return [
        *(
            [f"{count(len(here), 'row')} without a score in the file: that job failed or was undefined there."]
            if here
            else []
        ),
        *([f"{count(len(there), 'row')} without a score here: {reasons or 'no reason recorded'}."] if there else []),
    ]
