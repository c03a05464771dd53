"""Mapping of a record's columns to a sample's fields, decided once per set of columns."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.data import check
from merilo.data.content import held, is_prose, names, passages_in
from merilo.data.history import ASSISTANT, SYSTEM, TOOL, USER
from merilo.data.messages import are_messages, kind_of, messages_in
from merilo.data.sample import FIELDS, Columns
from merilo.errors import Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGETS: Final = ("id", *FIELDS, "history", "language", "metadata")
"""The fields that a column may fill."""

TEXT_FIELDS: Final = frozenset({"user_input", "response", "reference"})
LIST_FIELDS: Final = frozenset(FIELDS) - TEXT_FIELDS

_PART = re.compile(r"(.+?)(?:\.(\d{1,9})|\[(\d{1,9})\])(?:\.(?:text|content|page_content))?")  # contexts.0, contexts[0]
_NUMBERED = re.compile(r"(.+?)[_ -]?(\d{1,4})")  # chunk_1, Passage 1, doc1
_SIGNS = re.compile(r"[\W_]+")
_MAX_PLANS = 1000  # data whose columns change with every record must not fill the memory


@dataclass(frozen=True, slots=True)
class Meaning:
    """The field that a column fills in a record that also has the other columns; empty if it fills none."""

    column: str
    field: str
    others: frozenset[str]


@dataclass(frozen=True, slots=True)
class Aliases:
    """The alias file: column to field, ambiguous columns with their required companions, list columns.

    `usual`: names that belong to no system, read if nothing else fills their field. `meanings`: columns whose field the
    other columns decide. `doubtful`: columns that other data fills with the other field. `lists`: columns of lists for
    a field of one text. `words`: words in names that resemble a field.
    """

    fields: Mapping[str, str]
    usual: Mapping[str, str]
    only_with: Mapping[str, frozenset[str]]
    alone: Mapping[str, str]
    """The field of a column that has none of its companions in `only_with`."""
    meanings: tuple[Meaning, ...]
    doubtful: Mapping[str, str]
    lists: frozenset[str]
    words: Mapping[str, frozenset[str]]
    languages: Mapping[str, str]
    exact: Mapping[str, str]
    """Each name in lower case, letters and digits only, with the name as it is written."""

    def name_of(self, column: str) -> str:
        """Return the known name that a column has in other case or with other separators; itself if there is none."""
        if column in self.fields or column in self.usual:
            return column
        return self.exact.get(letters(column)) or self.exact.get(letters(column.partition("(")[0]), column)

    def field_of(self, column: str) -> str | None:
        """Return the field of a column, whatever the other columns are; None for an unknown name."""
        name = self.name_of(column)
        return self.fields.get(name) or self.usual.get(name)


@lru_cache(maxsize=2**15)  # the columns of two records of the largest size, each of which is looked up several times
def letters(name: str) -> str:
    """Return a name in lower case without anything but letters and digits."""
    return _SIGNS.sub("", name.casefold())


@cache
def aliases() -> Aliases:
    """Return the aliases that merilo knows, read once."""
    tables = tomllib.loads(files("merilo.data").joinpath("aliases.toml").read_text("utf-8"))
    own = {name: name for name in TARGETS}
    fields = own | {column: name for system in tables["systems"].values() for column, name in system.items()}
    usual = {
        column: name for kind in ("usual", "foreign") for name, columns in tables[kind].items() for column in columns
    }
    meanings = tuple(Meaning(each["column"], each["field"], frozenset(each["with"])) for each in tables["meaning"])
    companions = {other for each in meanings for other in (each.column, *each.others)}
    return Aliases(
        fields=fields,
        usual=usual,
        only_with={each["column"]: frozenset(each["with"]) for each in tables["alone"]},
        alone={each["column"]: each["field"] for each in tables["alone"]},
        meanings=meanings,
        doubtful=tables["doubtful"],
        lists=frozenset(tables["lists"]),
        words={name: frozenset(words) for name, words in tables["words"].items()},
        languages={name: code for code, names in tables["languages"].items() for name in names},
        # As `letters`, which is not called: this runs at the start of every command.
        exact={_SIGNS.sub("", name.casefold()): name for name in (*companions, *usual, *reversed(fields))},
    )


def language_code(given: str | None) -> str | None:
    """Return the code of a language that a user names by its code or name. Raises UsageError for any other text."""
    if not isinstance(given, str):
        return given
    names, problems = aliases().languages, list[Problem]()
    code = names.get(given.strip().casefold(), given)
    if check.language(code, "language", problems) is None:
        near = get_close_matches(given.casefold(), names, n=1)
        advice = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"The language must be a code or a name, such as 'en' or 'english', got {given!r}.{advice}")
    return code


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
    - `kept`: columns stored in the metadata;
    - `knows_a_field`: True if any column has a value that can be judged;
    - `undecided`: columns whose later values may change the plan.
    """

    fields: tuple[tuple[str, tuple[FieldSource, ...]], ...]
    kept: tuple[str, ...]
    knows_a_field: bool
    undecided: tuple[_Match, ...]


@dataclass(frozen=True, slots=True)
class Planner:
    """A planner that makes one plan per set of columns and records their use in `columns`.

    `mapping` (column to field) takes precedence over every alias; raises UsageError for an unknown field. If the values
    decide, a column is read from the first one that has the form of its field; `awaits` looks at records in advance.
    """

    mapping: Mapping[str, str]
    columns: Columns
    cells: bool = False
    """True if every value is the text of a table's cell."""
    inside: dict[str, str] = field(default_factory=dict, init=False)
    """Path → field for values within the columns, found in the first records."""
    _plans: dict[tuple[str, ...], ColumnPlan] = field(default_factory=dict, init=False)
    _fitting: dict[tuple[str, str], bool | None] = field(default_factory=dict, init=False)
    """For a column and a field: True if any value had the form of the field; None before the first value."""

    def __post_init__(self) -> None:
        for column, name in self.mapping.items():
            if name not in TARGETS:
                raise UsageError(f"No field {name!r}. {_meant(column, name)}")

    def awaits(self, record: Mapping[str, object]) -> bool:
        """Note the forms of the values; return True if further records may change how a column is read."""
        self._matches(record, self._parts(tuple(record)))
        return not all(self._fitting.values())

    def plan(self, record: Mapping[str, object]) -> ColumnPlan:
        """Return the plan for records with these columns, in this order."""
        names = tuple(record)
        plan = self._plans.get(names)
        if plan is None or any(self._fits(each, record) is not each.fits for each in plan.undecided):
            plan = self._make(names, record)
            if names in self._plans or len(self._plans) < _MAX_PLANS:
                self._plans[names] = plan
        return plan

    def _make(self, names: tuple[str, ...], record: Mapping[str, object]) -> ColumnPlan:
        parts = self._parts(names)
        found = self._matches(record, parts)
        best: dict[str, int] = {}
        for each in (each for each in found.values() if each.fits is not False):
            best[each.field] = min(each.rank, best.get(each.field, each.rank))
        sources: dict[str, list[FieldSource]] = {}
        kept: list[str] = []
        for name in names:
            match = found.get(name)
            if match is None or match.fits is False or best[match.field] < match.rank:
                kept.append(name)
            elif name == match.source.columns[0]:
                sources.setdefault(match.field, []).append(match.source)
        undecided = tuple({each.source: each for each in found.values() if not each.fits}.values())
        fields = tuple((name, tuple(each)) for name, each in sources.items())
        plan = ColumnPlan(fields, tuple(kept), not sources.keys().isdisjoint(FIELDS), undecided)
        self._note(plan, record, [*parts])
        self._doubt(plan)
        return plan

    def _matches(self, record: Mapping[str, object], parts: Mapping[str, list[str]]) -> dict[str, _Match]:
        """Return the field of each known column. The columns of a list are judged as one."""
        aliased = Counter(map(aliases().name_of, record))
        found = {name: self._match(name, (), aliased, record) for name in record}
        for base, columns in parts.items():
            found |= dict.fromkeys(columns, self._match(base, tuple(columns), aliased, record))
        return {name: match for name, match in found.items() if match is not None}

    def _match(
        self, column: str, parts: tuple[str, ...], aliased: Mapping[str, int], record: Mapping[str, object]
    ) -> _Match | None:
        """Return the field of a column, or of the numbered columns `parts` together; None for an unknown one."""
        known = aliases()
        alias = _listed(column) if parts else known.name_of(column)
        target, rank = self._target(column, alias, aliased, has_parts=bool(parts))
        if target is None or (parts and target not in LIST_FIELDS):
            return None
        is_list = target == "reference" or column in known.lists
        form = ColumnFormat.LIST if is_list else ColumnFormat.PLAIN
        form = ColumnFormat.PARTS if parts else ColumnFormat.MAPPED if rank == _MAPPED else form
        match = _Match(target, rank, column, FieldSource(parts or (column,), form))
        return match if rank <= _NAMED else match._replace(fits=self._fits(match, record))

    def _target(
        self, column: str, alias: str, aliased: Mapping[str, int], *, has_parts: bool
    ) -> tuple[str | None, int]:
        """Return the field that a name means, whatever the values are, and the rank of the name."""
        if column in self.mapping:
            return self.mapping[column], _MAPPED
        if column in self.inside:
            return self.inside[column], _NAMED
        known = aliases()
        for each in (each for each in known.meanings if each.column == alias and each.others <= aliased.keys()):
            usual = known.fields.get(alias)  # a name that another column has, too, keeps its usual meaning
            if usual is None or all(known.fields.get(other) != each.field for other in aliased if other != alias):
                return each.field or None, _NAMED
        if alias in known.alone and known.only_with[alias].isdisjoint(aliased):
            return known.alone[alias], _USUAL
        rank = _USUAL if alias in known.usual else _NAMED if alias == column or has_parts else _LIKE
        return known.field_of(alias), rank

    def _fits(self, match: _Match, record: Mapping[str, object]) -> bool | None:
        """Return True if any value so far had the form of the field; None if there was no value."""
        key, columns = (match.column, match.field), match.source.columns
        values = [record[column] for column in columns if not _is_blank(record[column])]
        fits = self._fitting.get(key)
        if not fits and values:
            fits = self._has_form(values if match.source.form is ColumnFormat.PARTS else values[0], match.field)
        if len(self._fitting) < _MAX_PLANS or key in self._fitting:
            self._fitting[key] = fits
        return fits

    def _has_form(self, value: object, target: str) -> bool:
        if target == "metadata":
            return check.is_mapping(value)
        if isinstance(value, str) and (target in (*TEXT_FIELDS, "language") or (target in _IDS and not self.cells)):
            return target not in _IDS
        if target in TEXT_FIELDS and (
            check.is_record(value) or (check.is_list(value) and len(value) == 1 and isinstance(value[0], str))
        ):
            return text_in(value, target, strict=True) is not None
        return target in fitting(value)

    def _parts(self, names: tuple[str, ...]) -> dict[str, list[str]]:
        """Return the columns that form a list together, by their common name, in the order of their numbers."""
        numbered: dict[str, dict[int, str]] = {}
        loose: set[str] = set()
        for name in names:
            if name in self.mapping or aliases().field_of(name):
                continue
            part = _PART.fullmatch(name)
            found = part or _NUMBERED.fullmatch(name)
            if found is not None and (found[1] in self.mapping or aliases().field_of(_listed(found[1]))):
                numbered.setdefault(found[1], {})[int(found[2] or found[3])] = name
                loose |= set() if part else {found[1]}
        return {
            base: [each[number] for number in sorted(each)]
            for base, each in numbered.items()
            if base not in loose or (min(each) <= 1 and max(each) - min(each) == len(each) - 1)
        }

    def _note(self, plan: ColumnPlan, record: Mapping[str, object], bases: list[str]) -> None:
        for name in (*record, *bases):
            self.columns.unseen.pop(name, None)
        for name in plan.kept:
            if len(self.columns.kept) < _MAX_PLANS or name in self.columns.kept:
                self.columns.kept[name] = self.columns.kept.get(name) or fitting(record[name])
        for name, sources in plan.fields:
            self.columns.recognised.update((column, name) for found in sources for column in found.columns)

    def _doubt(self, plan: ColumnPlan) -> None:
        """Note the columns that may have the value of another field, if no other column decides."""
        known, filled = aliases(), dict(plan.fields)
        special = {each.column for each in known.meanings}
        for name, (source, *_) in plan.fields:
            column = source.columns[0]
            alias = known.name_of(column)
            other = known.doubtful.get(alias)
            if column in self.mapping or other is None:
                continue
            if name == other and alias in special:
                self.columns.doubtful[column] = "response" if name in TEXT_FIELDS else "retrieved_contexts"
            elif name != other and other not in filled and (name == "response" or "response" not in filled):
                self.columns.doubtful[column] = other


_MAPPED, _NAMED, _LIKE, _USUAL = range(4)


def _meant(column: str, name: str) -> str:
    """Return advice for a column that is mapped to no field."""
    if column in TARGETS:
        return f"The other way round: --map {shlex.quote(f'{name}={column}')}"
    near = aliases().field_of(name) or next(iter(get_close_matches(name, TARGETS, n=1)), None)
    return (
        f"Fields: {', '.join(TARGETS)}." if near is None else f"Did you mean --map {shlex.quote(f'{column}={near}')}?"
    )


class _Match(NamedTuple):
    """The field of a column and the rank of its name: of several columns, those of the lowest rank fill the field.

    `fits`: True if the name decides or any value had the form of the field; None before the first value.
    """

    field: str
    rank: int
    column: str
    source: FieldSource
    fits: bool | None = True


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip()) or (check.is_list(value) and not value)


def _listed(base: str) -> str:
    """Return the known name of numbered columns: `chunk_1` and `chunk_2` are `chunks`."""
    known = aliases()
    return known.name_of(base) if known.field_of(base) else known.name_of(f"{base}s")


_CONTEXTS: Final = frozenset({"retrieved_contexts", "reference_contexts"})
_IDS: Final = frozenset({"retrieved_context_ids", "reference_context_ids"})
_MAX_ID: Final = 200
_ADDRESS: Final = re.compile(r"\s*(?:https?|file|s3)://\S*\s*")
_LISTED: Final = re.compile(r"\s*(?:\[|array\(|\()")


def fitting(value: object) -> frozenset[str]:
    """Return the fields whose form a value has; empty for a missing value."""
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return frozenset({"id"})
    if check.is_record(value):
        found = passages_in(value)
        return _CONTEXTS if found and found[0] is not value else frozenset()
    if not check.is_list(value) or not value:
        return frozenset()
    first = value[0]
    if are_messages(value):
        return frozenset({"user_input", "history"} | ({"reference"} if len(value) == 1 else set()))
    if isinstance(first, str):
        own = _IDS if all(isinstance(each, str) and _is_id(each) for each in value) else frozenset[str]()
        texts = {"reference", "history"} | (
            _CONTEXTS if any(isinstance(each, str) and is_prose(each) for each in value) else frozenset[str]()
        )
        return own | texts
    if isinstance(first, int):
        return _IDS
    return _CONTEXTS if passages_in(value) is not None else frozenset()


def _of_text(text: str) -> frozenset[str]:
    found: set[str] = set()
    if not text.strip() or _ADDRESS.fullmatch(text):
        return frozenset()
    if _LISTED.match(text):
        found |= {"reference", "history", *_CONTEXTS, *_IDS}
    if is_prose(text):
        found |= {"user_input", *_CONTEXTS}
    if is_prose(text) or not _is_id(text) or text.strip(".,;:!?'\"").isalpha():
        found |= {"response", "reference"}
    if _is_id(text):
        found.add("id")
    return frozenset(found)


def _is_id(text: str) -> bool:
    return 0 < len(text) <= _MAX_ID and not any(char.isspace() for char in text)


_MAX_NESTED: Final = 6
_LAST_MESSAGES: Final = 50
"""Messages among which the last one of a speaker is looked for."""


def text_in(value: object, name: str, depth: int = 0, *, strict: bool = False) -> str | None:
    """Return the text for a field of a sample in an input or output: of the last message, or under a known name.

    None if there is none; with `strict`, also if several columns of tables have different texts.
    """
    value = held(value)
    if isinstance(value, str):
        return value if depth else None
    if depth > _MAX_NESTED or value is None:
        return None
    if check.is_list(value):
        messages = messages_in(value[-_LAST_MESSAGES:])
        if messages is None:
            return text_in(value[0], name, depth + 1, strict=strict) if value else None
        role = USER if name == "user_input" else ASSISTANT
        return next(
            (each.text for each in reversed(messages) if each.role == role and each.text and not each.calls), None
        )
    if not check.is_record(value):
        return None
    if kind_of(value) in {USER, ASSISTANT, SYSTEM, TOOL} and any(key in value for key in names()["message"]["text"]):
        return text_in([value], name, depth)
    columns, others = text_names(name)
    found = [text_in(value[key], name, depth + 1, strict=strict) for key in columns if key in value]
    texts = [each for each in found if each is not None]
    if strict and len({*texts}) > 1:
        return None
    texts = texts or [text for key in others if (text := text_in(value.get(key), name, depth + 1)) is not None][:1]
    return texts[0] if texts else text_in(next(iter(value.values())), name, depth + 1) if len(value) == 1 else None


@cache
def text_names(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of a text field, and further names of it in inputs and outputs.

    For a reference also those of a response: in an object of expected values its name is often that of the answer.
    """
    wanted = {"reference": ("reference", "response")}.get(name, (name,))
    known = [each for each in (*aliases().fields, *aliases().usual) if aliases().field_of(each) in wanted]
    return tuple(known), names()["texts"][USER if name == "user_input" else ASSISTANT]
