"""A migration as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from merilo.commands.migrate.result import ResultMigration

if TYPE_CHECKING:
    from merilo.commands.migrate.result import MigratedMetric, Migration, Pair, ScriptMigration
    from merilo.commands.migrate.source import Match, Source


def migration_record(found: Migration) -> dict[str, Any]:  # Any: JSON
    """Return a migration as a JSON-able object."""
    return _result(found) if isinstance(found, ResultMigration) else _script(found)


def _result(found: ResultMigration) -> dict[str, Any]:  # Any: JSON
    return {
        "file": found.file,
        "source": _source(found.source),
        "rows": found.rows,
        "sampled": found.sampled,
        "seed": found.seed,
        "judge": found.judge or None,
        "run": None if found.run is None else str(found.run),
        "metrics": [_metric(each) for each in found.metrics],
        "unmatched": [_match(each) for each in found.unmatched],
        "notes": list(found.notes),
        "commands": dict(found.commands),
    }


def _metric(found: MigratedMetric) -> dict[str, Any]:  # Any: JSON
    means = found.means
    return {
        **_match(found.match),
        "computed": found.computed,
        "not_computed": found.reason or None,
        "tolerance": found.tolerance,
        "old_judge": found.old_judge or None,
        "compared": len(found.compared),
        "equal": found.equal,
        "differ": len(found.parted),
        "scored_in_one_only": len(found.one_sided),
        "old_mean": None if means is None else means[0],
        "new_mean": None if means is None else means[1],
        "rows": [_pair(each) for each in found.pairs],
        "causes": list(found.causes),
    }


def _pair(pair: Pair) -> dict[str, Any]:  # Any: JSON
    return {
        "sample": pair.sample,
        "old": pair.old,
        "new": pair.new,
        "difference": pair.difference,
        "reason": pair.reason or None,
    }


def _script(found: ScriptMigration) -> dict[str, Any]:  # Any: JSON
    facts = found.facts
    return {
        "file": found.file,
        "source": {**_source(facts.source), "evidence": facts.evidence or None},
        "metrics": [
            {"line": each.line, **_match(each.match), "ignored_arguments": list(each.ignored)} for each in facts.metrics
        ],
        "judge": facts.judge,
        "base_url": facts.base_url,
        "embedder": facts.embedder,
        "embedder_base_url": facts.embedder_base_url,
        "data": facts.data,
        "notes": list(found.notes),
        "commands": dict(found.commands),
    }


def _source(source: Source) -> dict[str, Any]:  # Any: JSON
    return {
        "package": source.package,
        "releases": source.releases or None,
        "stated": source.stated,
        "system": source.system,
    }


def _match(match: Match) -> dict[str, Any]:  # Any: JSON
    return {"name": match.name, "definition": match.definition, "reason": match.reason or None}
