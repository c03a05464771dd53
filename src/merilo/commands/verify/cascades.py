"""Recomputes from the store of a run which judges answered in its cascades, and the results of their audits.

The thresholds are read from the store. Their pilot is not repeated: only its thresholds are compared.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from merilo.commands.evaluate.cascade import audit_result, stored_thresholds
from merilo.commands.verify.compared import JSON, differing
from merilo.engine.cascade_check import answered, audits_of, chosen_audits
from merilo.judges.cascade import SIGN, Cascade, Decision, Stage, stage_role
from merilo.judges.routed import recorded_parts
from merilo.judging.registry import KINDS
from merilo.rendering.cascade import cascade_record
from merilo.runs.run import STORE, open_store
from merilo.runs.stages import answers_in, given_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from merilo.engine.cascade_check import Audited
    from merilo.judges.base import Judge
    from merilo.judges.routed import RecordedPart
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.runs.run import Run
    from merilo.runs.store import Store


@dataclass(frozen=True, slots=True)
class _Named:
    """A placeholder for a judge of a recorded cascade: its name, and the kinds of question that it answered."""

    name: str
    answers: frozenset[type[Question[Any]]]


def cascade_differences(run: Run) -> Iterator[str]:
    """Yield the path of each value of the summary's cascades that does not follow from the store."""
    stored = [dict(each) for each in run.cascades]
    with closing(open_store(run)) as store:
        now = _recomputed(run, store)
    if [each.get("judge") for each in stored] != [each["judge"] for each in now]:
        yield "judge"
        return
    until_stopped = run.until_decided is not None and run.until_decided["decided"]
    for mine, theirs in zip(stored, now, strict=True):
        if "level" not in mine:
            continue
        if until_stopped or not run.complete:
            _drop_audits(mine, theirs)
        yield from differing(_without_tests(mine), _without_tests(theirs), older=False)


def audited(cascades: Sequence[Mapping[str, Any]]) -> bool:  # Any: JSON
    """Return True if every audit of these cascades has an answer to all its questions."""
    for each in cascades:
        last = str(each["judge"]).rpartition(">")[2]
        for kind in each["kinds"].values():
            audit = kind.get("audit")
            earlier = any(count for name, count in kind["answered"].items() if name != last)
            if audit is None:
                if earlier and "level" in each:
                    return False
            elif not audit["failed"] and audit["asked"] + audit["without_verdict"] < audit["wanted"]:
                return False
    return True


def _recomputed(run: Run, store: Store) -> list[JSON]:
    path = run.file(STORE)
    until = run.until_decided
    roles: dict[tuple[str, str], list[str]] = {}
    parts: dict[tuple[str, str], RecordedPart] = {}
    for role, judge in run.manifest.judges.items():
        for part in recorded_parts(judge):
            if part.fingerprint.get("judge") == "cascade":
                key = part.label, json.dumps(part.fingerprint, sort_keys=True)
                parts.setdefault(key, part)
                own = roles.setdefault(key, [])
                own += [each for each in (role, str(judge.get("name"))) if each not in own]  # questions may use either
    found: list[JSON] = []
    for key, own in roles.items():
        part = parts[key]
        if "pilot" not in part.fingerprint:  # of merilo 0.1.0, whose thresholds come from other data
            found.append({"judge": part.name})
            continue
        settled = stored_thresholds(store, own[0], part.label)
        cascade = _cascade(run, part, own, settled)
        audits = {
            **chosen_audits(store, path, cascade, own),
            **{
                kind: audits_of(store, cascade, own[0], {bytes.fromhex(key): place for key, place in places})
                for kind, places in settled["revoked"].items()
            },
        }
        results = {
            kind: audit_result(each, _last_answers(path, store, each, own), cascade.max_error)
            for kind, each in audits.items()
        }
        trails = _trails(run) if until is not None and until["decided"] else None
        found.append(cascade_record(cascade, answered(path, cascade, own, trails), {}, results))
        _add_thresholds(found[-1], cascade)
    return found


def _cascade(run: Run, part: RecordedPart, roles: Sequence[str], settled: JSON) -> Cascade:
    """Return the cascade as the run recorded it, with judges that only have names."""
    path, marks = run.file(STORE), part.fingerprint
    judges: list[Judge] = []
    for place, each in enumerate([*marks["stages"], marks["last"]]):
        answered = {answer.kind for role in roles for answer in answers_in(path, stage_role(role, place))}
        kinds = answered & part.kinds  # a cascade on another route has the same roles
        named = _Named(str(each["name"]), frozenset(KINDS[kind] for kind in kinds))
        judges.append(cast("Judge", named))  # a record uses only the name and the kinds of a judge
    thresholds: list[dict[Decision, float]] = [{} for _ in judges[:-1]]
    for kind, rows in settled["thresholds"].items():
        for place, yes, threshold in rows:
            thresholds[place][Decision(kind, yes)] = threshold
    audit, pilot = marks["audit"], marks["pilot"]
    return Cascade(
        tuple(Stage(judge, own) for judge, own in zip(judges[:-1], thresholds, strict=True)),
        judges[-1],
        marks["max_error"],
        pilot["questions"],
        audit["rate"],
        audit["min"],
        audit["max"],
        pilot["seed"],
        revoked=frozenset(settled["revoked"]),
        route=part.label,
        kinds=frozenset(KINDS[kind] for kind in part.kinds) if part.label else None,
    )


def _last_answers(path: Path, store: Store, audits: Sequence[Audited], roles: Sequence[str]) -> list[Answer | None]:
    """Return the answers of the last judge to audited questions, asked in any of the roles of its cascade."""
    found: list[Answer | None] = [None for _ in audits]
    for role in roles:
        asked = [
            replace(each.question, role=f"{role}{SIGN}{each.question.role.rpartition(SIGN)[2]}") for each in audits
        ]
        given = given_to(path, store, asked)
        found = [one if one is not None else other for one, other in zip(found, given, strict=True)]
    return found


def _drop_audits(stored: JSON, now: JSON) -> None:
    """Drop recomputed audits that the run had not begun when it stopped."""
    for kind, each in now["kinds"].items():
        if kind in stored["kinds"] and stored["kinds"][kind].get("audit") is None:
            each["audit"] = None


def _trails(run: Run) -> Iterator[bytes]:
    for record in run.records():
        yield from map(bytes.fromhex, record.get("trail", ()))


def _add_thresholds(record: JSON, cascade: Cascade) -> None:
    for place, stage in enumerate(cascade.stages):
        for decision, threshold in stage.thresholds.items():
            kind = record["kinds"].setdefault(decision.kind, {})
            kind.setdefault("thresholds", {})[f"{cascade.judges[place].name} {decision.yes}"] = threshold


def _without_tests(record: JSON) -> JSON:
    """Return a record with the thresholds of its pilot in place of the pilot, without kinds that were not asked."""
    kinds: JSON = {}
    for kind, each in record["kinds"].items():
        pilot = each.get("pilot")
        thresholds = each.get("thresholds", {}) if pilot is None else _pilot_thresholds(pilot)
        fields = {name: value for name, value in each.items() if name not in {"pilot", "thresholds"}}
        if thresholds or each.get("questions"):
            kinds[kind] = {**fields, "thresholds": dict(sorted(thresholds.items()))}
    return {**record, "kinds": kinds}


def _pilot_thresholds(pilot: JSON) -> dict[str, float]:
    return {
        f"{own['judge']} {own['verdict'] == 'yes'}": own["threshold"]
        for own in pilot["classes"]
        if own["threshold"] is not None
    }
