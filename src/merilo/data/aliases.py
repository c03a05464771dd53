"""Mapping of a record's columns to a sample's fields, decided once per set of columns."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Final

from merilo.data.sample import FIELDS, Columns
from merilo.errors import UsageError

TARGETS: Final = ("id", *FIELDS, "history", "language", "metadata")
"""The fields that a column may fill."""

LIST_FIELDS: Final = frozenset(FIELDS) - {"user_input", "response", "reference"}

_PART = re.compile(r"(.+?)(?:\.(\d{1,9})|\[(\d{1,9})\])")  # contexts.0, contexts[0]
_MAX_PLANS = 1000  # data whose columns change with every record must not fill the memory


@dataclass(frozen=True, slots=True)
class Aliases:
    """The alias file: column to field, ambiguous columns with their required companions, list columns, context names.

    `meaning`: column to a field, and to the other columns that a record must have for this meaning.
    `lists`: columns of lists for a field of one text. `one_text`: columns of a list field that may contain one text.
    """

    fields: Mapping[str, str]
    only_with: Mapping[str, frozenset[str]]
    meaning: Mapping[str, tuple[str, frozenset[str]]]
    lists: frozenset[str]
    one_text: frozenset[str]
    context: Mapping[str, str]


@cache
def aliases() -> Aliases:
    """Return the aliases that merilo knows, read once."""
    tables = tomllib.loads(files("merilo.data").joinpath("aliases.toml").read_text("utf-8"))
    own = {name: name for name in TARGETS}
    return Aliases(
        fields=own | {column: name for system in tables["systems"].values() for column, name in system.items()},
        only_with={column: frozenset(others) for column, others in tables["only_beside"].items()},
        meaning={column: (each["field"], frozenset(each["with"])) for column, each in tables["meaning"].items()},
        lists=frozenset(tables["lists"]),
        one_text=frozenset(tables["one_text"]),
        context=dict(tables["context"]),
    )


class ColumnFormat(Enum):
    """Representations of a field's value in a column."""

    PLAIN = "plain"
    MAPPED = "mapped"  # named by the user, so never ambiguous
    LIST = "list"  # a list with one item for a text field
    PARTS = "parts"  # one of several columns that form a list together


@dataclass(frozen=True, slots=True)
class FieldSource:
    """The column of a field's value, or the columns of its parts in order."""

    columns: tuple[str, ...]
    form: ColumnFormat


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """The treatment of records with the same columns.

    - `fields`: each field with its sources (more than one: ambiguous if their values differ);
    - `unclear`: columns with an ambiguous meaning;
    - `kept`: columns stored in the metadata;
    - `knows_a_field`: True if any column has a value that can be judged.
    """

    fields: tuple[tuple[str, tuple[FieldSource, ...]], ...]
    unclear: tuple[str, ...]
    kept: tuple[str, ...]
    knows_a_field: bool


@dataclass(frozen=True, slots=True)
class Planner:
    """A planner that makes one plan per set of columns and records their use in `columns`.

    `mapping` (column to field) takes precedence over every alias; raises UsageError for an unknown field.
    """

    mapping: Mapping[str, str]
    columns: Columns
    _plans: dict[tuple[str, ...], ColumnPlan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for column, name in self.mapping.items():
            if name not in TARGETS:
                raise UsageError(
                    f"Column {column!r} is mapped to {name!r}, which is not a field; fields: {', '.join(TARGETS)}."
                )

        self.columns.unseen.update(self.mapping)

    def plan(self, names: tuple[str, ...]) -> ColumnPlan:
        """Return the plan for records with these columns, in this order."""
        plan = self._plans.get(names)
        if plan is None:
            plan = self._make(names)
            if len(self._plans) < _MAX_PLANS:
                self._plans[names] = plan
        return plan

    def _make(self, names: tuple[str, ...]) -> ColumnPlan:
        sources: dict[str, list[FieldSource]] = {}
        unclear: list[str] = []
        kept: list[str] = []
        parts: dict[tuple[str, str], list[tuple[int, str]]] = {}
        mapped = {self.mapping[name] for name in names if name in self.mapping}
        special = _special_meanings(names)
        for name in names:
            target = self.mapping.get(name) or special.get(name) or aliases().fields.get(name)
            part = None if target else _PART.fullmatch(name)
            base = part[1] if part else name
            target = target or self.mapping.get(base) or aliases().fields.get(base)
            is_mapped = base in self.mapping
            company = aliases().only_with.get(base)
            if target is None or (part and target not in LIST_FIELDS) or (target in mapped and not is_mapped):
                kept.append(name)
            elif company and not is_mapped and name not in special and company.isdisjoint(names):
                unclear.append(name)
            elif part:
                parts.setdefault((target, base), []).append((int(part[2] or part[3]), name))
            else:
                sources.setdefault(target, []).append(FieldSource((name,), _form(name, target, is_mapped=is_mapped)))
        for (target, _), numbered in parts.items():
            found = FieldSource(tuple(name for _, name in sorted(numbered)), ColumnFormat.PARTS)
            sources.setdefault(target, []).append(found)
        fields = tuple((name, tuple(found)) for name, found in sources.items())
        knows_a_field = bool(unclear) or not sources.keys().isdisjoint(FIELDS)
        plan = ColumnPlan(fields, tuple(unclear), tuple(kept), knows_a_field)
        self._note(plan, names, [base for _, base in parts])
        return plan

    def _note(self, plan: ColumnPlan, names: tuple[str, ...], bases: list[str]) -> None:
        for name in (*names, *bases):
            self.columns.unseen.pop(name, None)
        if len(self.columns.kept) < _MAX_PLANS:
            self.columns.kept.update(dict.fromkeys(plan.kept))
        for name, sources in plan.fields:
            self.columns.recognised.update((column, name) for found in sources for column in found.columns)


def _special_meanings(names: tuple[str, ...]) -> dict[str, str]:
    """Return the columns whose meaning the other columns of the record decide, with their fields."""
    return {
        column: name
        for column, (name, others) in aliases().meaning.items()
        if column in names and others.issubset(names)
    }


def _form(column: str, target: str, *, is_mapped: bool) -> ColumnFormat:
    if column in aliases().lists and target not in LIST_FIELDS and not is_mapped:
        return ColumnFormat.LIST
    return ColumnFormat.MAPPED if is_mapped else ColumnFormat.PLAIN
