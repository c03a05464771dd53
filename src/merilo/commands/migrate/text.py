"""A migration as a page of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.commands.migrate.result import ResultMigration
from merilo.rendering.page import Page, Span, Tone
from merilo.rendering.wording import NONE, count, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.migrate.result import MigratedMetric, Migration, ScriptMigration

_ROWS: Final = 3
"""Number of rows that are shown for each metric, the largest differences first."""


def migration_page(found: Migration, width: int) -> Page:
    """Return the page of a migration."""
    page = Page(width)
    if isinstance(found, ResultMigration):
        _result(page, found)
    else:
        _script(page, found)
    return page


def _result(page: Page, found: ResultMigration) -> None:
    judged = f", judged by {found.judge}" if found.judge else ""
    recomputed = f"{found.sampled:,}" if found.run is not None else "none"
    page.text(
        f"{found.file}: {found.source.title}, {count(found.rows, 'row')}; {recomputed} recomputed{judged}",
        tone=Tone.STRONG,
    )
    for note in found.notes:
        page.text(note, tone=Tone.QUIET)
    done = [each for each in found.metrics if each.computed is not None]
    if done:
        page.blank()
        _table(page, done)
        page.text(
            f"old, new: means over the compared rows. equal: scores that differ by at most {done[0].tolerance:g}.",
            tone=Tone.QUIET,
        )
    for each in done:
        _differences(page, each)
    _not_computed(page, [each for each in found.metrics if each.computed is None])
    _unmatched(page, [(each.name, each.reason) for each in found.unmatched])
    _commands(page, found.commands)
    if found.run is not None:
        page.blank()
        page.line(f"  stored in {found.run}")


def _table(page: Page, metrics: Sequence[MigratedMetric]) -> None:
    rows = [("column -> definition", "old", "new", "compared", "equal", "differ")]
    for each in metrics:
        means = each.means
        old, new = (NONE, NONE) if means is None else (number(means[0]), number(means[1]))
        rows.append(
            (
                f"{each.match.name} -> {each.computed}",
                old,
                new,
                f"{len(each.compared):,}",
                f"{each.equal:,}",
                f"{len(each.parted):,}",
            )
        )
    page.table(rows, [Tone.QUIET, *[Tone.PLAIN] * len(metrics)])


def _differences(page: Page, found: MigratedMetric) -> None:
    """Add the rows of a metric that differ most, and the known reasons; nothing if all scores are equal."""
    if not (found.parted or found.causes):
        return
    page.heading(f"{found.match.name}: where and why scores differ")
    for pair in found.parted[:_ROWS]:
        shown = f"{number(pair.old or 0.0)} -> {number(pair.new or 0.0)}"
        page.line(f"  {shown}  sample ", Span(pair.sample, Tone.STRONG))
    if len(found.parted) > _ROWS:
        page.text(f"and {count(len(found.parted) - _ROWS, 'other row')}", indent=2, tone=Tone.QUIET)
    for cause in found.causes:
        page.text(f"- {cause}", indent=2, tone=Tone.QUIET)


def _not_computed(page: Page, metrics: Sequence[MigratedMetric]) -> None:
    if metrics:
        page.heading("Matched but not recomputed")
        page.entries([(f"{each.match.name} -> {each.match.definition}", each.reason) for each in metrics])
        if any("cannot answer" in each.reason for each in metrics):
            page.text(
                "An LLM judge answers them (--judge openai:MODEL). --same-verdicts computes the formulas that merilo "
                "has with any judge.",
                tone=Tone.QUIET,
            )


def _unmatched(page: Page, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        page.heading("Without a definition in merilo")
        page.entries(rows)


def _script(page: Page, found: ScriptMigration) -> None:
    facts = found.facts
    by = f" (by {facts.evidence})" if facts.evidence else ""
    page.text(f"{found.file}: uses {facts.source.title}{by}", tone=Tone.STRONG)
    for note in found.notes:
        page.text(note, tone=Tone.QUIET)
    known = [each for each in facts.metrics if each.match.definition is not None]
    if known:
        page.heading("Metrics")
        page.entries([(f"line {each.line}: {each.match.name}", str(each.match.definition)) for each in known])
        for each in known:
            if each.ignored:
                page.text(f"{each.match.name}: not carried over: {', '.join(each.ignored)}", indent=2, tone=Tone.QUIET)
            if each.match.reason:
                page.text(f"{each.match.name}: {each.match.reason}", indent=2, tone=Tone.QUIET)
    _unmatched(
        page,
        [
            (f"line {each.line}: {each.match.name}", each.match.reason)
            for each in facts.metrics
            if each.match.definition is None
        ],
    )
    models = [("judge", facts.judge), ("embedder", facts.embedder), ("data", facts.data)]
    if any(value for _, value in models):
        page.heading("Named in the script")
        page.entries([(label, value) for label, value in models if value])
    _commands(page, found.commands)


def _commands(page: Page, commands: Mapping[str, str]) -> None:
    for purpose, text in commands.items():
        page.heading(f"To {purpose}")
        page.line(f"  {text}")
