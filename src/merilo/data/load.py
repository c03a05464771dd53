"""Data of any known shape as samples: files, standard input, or records in memory."""

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import itemgetter
from os import PathLike
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias, cast

from merilo.data import check
from merilo.data.aliases import (
    LIST_FIELDS,
    TEXT_FIELDS,
    ColumnFormat,
    ColumnPlan,
    FieldSource,
    Planner,
    aliases,
    language_code,
    letters,
    text_in,
)
from merilo.data.content import (
    CellError,
    at_path,
    held,
    is_text,
    is_unreadable,
    joined,
    list_in_cell,
    parts_of,
    passage_of,
    passages_in,
)
from merilo.data.context import Context
from merilo.data.conversations import CONVERSATION, HOPS, unfolded
from merilo.data.history import USER
from merilo.data.lines import ForeignRecords, RawRecord, adapted
from merilo.data.messages import are_messages, history_of, messages_in
from merilo.data.objects import plain, role_of
from merilo.data.problem_report import mapping_advice, named_columns
from merilo.data.remote import fetched_file, is_url
from merilo.data.sample import FIELDS, UNREADABLE, BadRecord, Columns, Dataset, Sample, in_language
from merilo.data.shapes import awaits, has_rows_of_contexts, inner_columns, joined_rows, plain_record, records_in
from merilo.data.source import MAX_LINE_BYTES, Format, RecordFile, data_name, format_of
from merilo.errors import DataError, Problem, UsageError

__all__ = ["MAX_LINE_BYTES", "BadRecord", "Problem", "Records", "load"]

Records: TypeAlias = Iterable[Mapping[str, object] | Sample] | Dataset
_Numbered: TypeAlias = tuple[int, RawRecord | Sample]

_CONTEXT_FIELDS: Final = frozenset({"retrieved_contexts", "reference_contexts"})
_CONTEXTS: Final = "retrieved_contexts"
_UNDUMPED: Final = frozenset({"id", "history", "language", "metadata"})
_SEVERAL_IDS: Final = re.compile(r"[,;|\s]")
_RECORD: Final = {"question": "...", "contexts": ["..."], "answer": "..."}
_PRINTED_MISSING: Final = frozenset({"nan", "NaN", "NaT", "<NA>", "None", "null"})
"""Missing values as Python, numpy, pandas and JSON print them; in a cell of a text field these are texts."""

_AHEAD: Final = 20
"""Maximum number of records that are read before it is decided whether a column's values have the form of its field."""

_TRIED: Final = 3
"""Records on which advice is tried."""
_JSON_TYPES: Final[frozenset[type]] = frozenset({str, int, bool, list, dict})
"""Types of nearly all values, which are never missing."""


def load(
    source: "str | PathLike[str] | Records | ForeignRecords",
    *,
    mapping: Mapping[str, str] | None = None,
    language: str | None = None,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    ignore: Collection[str] = (),
    tools: Collection[str] | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Dataset:
    """Return the data set in a file (.jsonl, .ndjson, .json, .csv, .tsv, .gz accepted) or in memory.

    Adapters add other sources, such as .parquet files, data frames and results of frameworks (`merilo.adapters`). A
    data set in memory keeps its name. A file at an address such as s3://bucket/data.jsonl is copied first (extra
    `fsspec`). "-" is JSON Lines on standard input. JSON Lines and CSV stream in constant memory. One
    object, also in memory, may hold the records as a list under "samples", "data" or "rows", as columns (a list for
    each), or by their ids. An empty CSV cell is missing, and so are null and NaN. A record without an id gets its
    number, from 1, as its id. A conversation (`messages`, or lines with `conversation_id`, `role` and `content`)
    becomes one sample for each answer. A gzip file may unpack to 4 GiB; a line or a row of a table may have
    `max_line_bytes`.

    `mapping` (column to field) takes precedence over the names that other systems use; `language` over the samples'
    and contexts' own. `tools` names the tools whose results are the contexts of a conversation; None: all that return
    passages. `limit` is the maximum number of records to read, good or bad. `sample` is the number of records to draw
    at random from those, each equally likely; equal seeds draw equal records, which keep their order. Columns to
    `ignore` are treated as absent.

    Iterating yields a Sample for each good record and a BadRecord, with all its problems, for each bad one. Raises
    DataError if the source as a whole cannot be read or has no record: here if that is known when it is opened,
    otherwise while iterating. Raises UsageError for an invalid argument.
    """
    language = language_code(language)
    for name, value in (("limit", limit), ("sample", sample)):
        if value is not None and (type(value) is not int or value < 1):
            raise UsageError(f"The {name} must be at least 1, got {value}.")
    if isinstance(source, str) and source.lstrip()[:1] in ("[", "{"):
        raise UsageError("Data must be a path or a list of records, got JSON. Use json.loads(text).")
    if is_url(source):
        source = fetched_file(str(source))
    columns = Columns(unseen=dict(mapping or {}))
    rules = _Reader(Planner(dict(mapping or {}), columns), language, frozenset(ignore), tools, limit, sample, seed)
    if isinstance(source, (str, PathLike)):
        return _of_path(None if source == "-" else Path(source), rules, max_line_bytes)
    if not isinstance(source, (list, tuple, Dataset, ForeignRecords)) and (found := adapted(source)) is not None:
        return _of_records(found, rules)
    if check.is_record(source) and not isinstance(source, (Dataset, Sample)):
        return _of_records(_records_in_memory(source), rules)
    if _is_pipeline(source):
        raise UsageError(
            f"Data must be a path or a list of records, got a pipeline of type {type(source).__name__}. "
            "Use merilo.evaluate_pipeline(pipeline, data), which asks it each question."
        )
    if not check.is_ordered(source):
        raise UsageError(f"Data must be a path or a list of records, got {check.shown(source)}.")
    return _of_records(source, rules)


def _of_path(path: Path | None, rules: "_Reader", max_line_bytes: int) -> Dataset:
    """Return the data set of a file, or of standard input."""
    if path is not None and (found := adapted(path)) is not None:
        return _of_records(found, rules)
    if path is not None and path.name.endswith(HOPS) and not path.exists():
        path, rules = path.with_name(path.name.removesuffix(HOPS)), replace(rules, hops=True)
        rules.planner.columns.cluster = CONVERSATION
    named = Format.JSONL if path is None else format_of(path)
    file = RecordFile(path, named, max_line_bytes).by_content()
    rules.planner.columns.separated = file.separated
    planner = replace(rules.planner, cells=file.format in (Format.CSV, Format.TSV))
    reader = replace(rules, planner=planner, name=file.name, unit=file.unit, records=file.records)
    name = file.name if path is None else data_name(path)
    return Dataset(name, reader.read if path else _once(reader.read, file.name), planner.columns)


def _of_records(source: object, rules: "_Reader") -> Dataset:
    """Return the data set of records in memory, or of those that an adapter reads."""
    records = cast("Records | ForeignRecords", source)  # ordered: checked by `load`, or promised by an adapter
    name, shown, unit, columns = "records", "records", "record", rules.planner.columns
    if isinstance(records, ForeignRecords):
        if records.of_traces is not None:
            records = records.of_traces(rules.tools)
        name, shown, unit, is_once = records.name, records.shown, records.unit, records.is_once
        columns.note, columns.cluster = records.note, records.cluster
    else:
        is_once = iter(records) is records
        if isinstance(records, Dataset):
            name = shown = records.name
            columns.note = records.columns.note
    reader = replace(rules, name=shown, unit=unit, records=lambda: _raw_records(records))
    return Dataset(name, _once(reader.read, "the iterator") if is_once else reader.read, columns)


def _records_in_memory(source: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the records of one object. Raises UsageError for several data sets under names."""
    tables = [name for name, value in source.items() if not check.is_list(value) and adapted(value) is not None]
    if tables and len(tables) == len(source) and not any(role_of(value) for value in source.values()):
        raise UsageError(
            f"Data must be one data set, got an object with {len(tables)} of them: {', '.join(tables)}. "
            f"Pass one, such as data[{tables[0]!r}]."
        )
    try:
        choose = f"pass one, such as data[{next(iter(source), '')!r}]"
        return records_in({name: _with_text_keys(plain(value)) for name, value in source.items()}, choose)
    except DataError as error:
        raise UsageError(f"Data must be a path or a list of records. {error}") from error


def _with_text_keys(value: object) -> object:
    """Return an object with its keys as texts, such as a column of pandas by the numbers of its rows."""
    if not isinstance(value, dict):
        return value
    found = cast("dict[object, object]", value)  # isinstance does not narrow keys and values
    return {str(key): item for key, item in found.items()}


def _is_pipeline(source: object) -> bool:
    """Return True for a function or an object of a framework that answers questions.

    LangChain's runnables are iterable too: they yield their own fields.
    """
    if check.is_ordered(source):
        return not isinstance(source, (list, tuple, Dataset)) and hasattr(source, "invoke")
    if isinstance(source, (str, bytes, int, float, dict)) or source is None:
        return False
    return callable(source) or any(hasattr(source, name) for name in _ASKED_BY)


def _once(read: Callable[[], Iterator[Sample | BadRecord]], name: str) -> Callable[[], Iterator[Sample | BadRecord]]:
    unread = [True]

    def read_once() -> Iterator[Sample | BadRecord]:
        if not unread:
            raise UsageError(f"{name[0].upper()}{name[1:]} can be read only once; save it to a file to read it again.")
        unread.clear()
        return read()

    return read_once


def _raw_records(records: Records | ForeignRecords) -> Iterator[RawRecord | Sample]:
    for place, record in enumerate(records, start=1):
        if isinstance(record, (Sample, RawRecord)):
            yield record
            continue
        if isinstance(record, BadRecord):
            yield RawRecord(place, None, record.problems)
            continue
        try:
            found = plain_record(record)
        except DataError as error:
            yield RawRecord(place, None, error.problems)
            continue
        if found is None:
            needed, advice = "an object with text keys, or a Sample", "a record is " + json.dumps(_RECORD)
            yield RawRecord(place, None, (Problem(needed, check.shown(record), advice=advice),))
        else:
            yield RawRecord(place, found)


_ASKED_BY: Final = ("invoke", "query", "retrieve", "run")
"""Methods by which the pipelines of frameworks are asked."""


@dataclass(frozen=True, slots=True)
class _Reader:
    """A reader that turns raw records into samples."""

    planner: Planner
    language: str | None
    ignored: frozenset[str]
    tools: Collection[str] | None
    limit: int | None
    sample: int | None
    seed: int
    hops: bool = False
    name: str = ""
    unit: str = ""
    records: Callable[[], Iterator[RawRecord | Sample]] = lambda: iter(())

    @property
    def cells(self) -> bool:
        """True if every value is the text of a table's cell."""
        return self.planner.cells

    def read(self) -> Iterator[Sample | BadRecord]:
        """Return the samples. Each pass decides again how columns are read."""
        return replace(self, planner=replace(self.planner)).samples()

    def samples(self) -> Iterator[Sample | BadRecord]:
        number = 0
        found = unfolded(self.records(), self.tools, hops=self.hops)
        records, ahead, first = islice(found, self.limit), list[RawRecord | Sample](), list[dict[str, object]]()
        for raw in records:
            ahead.append(raw)
            record = {} if isinstance(raw, Sample) else self._present(raw.value or {})
            if record:
                first.append(record)
            planner = replace(self.planner, columns=Columns())
            is_open = len(ahead) < _AHEAD and len(record) <= check.MAX_COLUMNS
            if not is_open or not (self.planner.awaits(record) or awaits(record, planner)):
                break
        rows = enumerate(self._as_samples(chain(ahead, records), first), start=1)
        for number, raw in rows if self.sample is None else self._drawn(rows, self.sample):
            if isinstance(raw, Sample):
                language = self.language
                yield raw if language is None else in_language(raw, language, lambda _: self.language)
            else:
                problems = list(raw.problems)
                sample = self._sample(raw.value, number, problems) if raw.value is not None else None
                if self.cells and sample is not None and not problems and not sample.present:
                    self.planner.columns.blank += 1
                    continue
                placed = [replace(each, source=self.name, line=raw.place, unit=self.unit) for each in problems]
                named = map(self._with_column, placed) if self.unit == "row" else placed
                yield sample if sample is not None and not problems else BadRecord(tuple(named))
        if not number:
            raise DataError.of(Problem("at least one record", "none", source=self.name))

    def _drawn(self, rows: Iterator[_Numbered], size: int) -> list[_Numbered]:
        """Return `size` of the rows, each equally likely, in their order (Algorithm R); all if there are fewer."""
        # Python promises equal numbers in all releases for `random` alone.
        uniform, drawn, number = Random(self.seed).random, [*islice(rows, size)], size  # noqa: S311  no secret
        for number, raw in rows:
            if (place := int(uniform() * number)) < size:
                drawn[place] = (number, raw)
        self.planner.columns.drawn_from = number if len(drawn) == size else len(drawn)
        return sorted(drawn, key=itemgetter(0))

    def _as_samples(
        self, rows: Iterator[RawRecord | Sample], first: list[dict[str, object]]
    ) -> Iterator[RawRecord | Sample]:
        """Return the records; those of rows of contexts joined. Notes where their first ones have the fields."""
        if first and all(_is_span(record) for record in first):
            got, advice = "spans of a system that merilo does not know", "write a record for each answer"
            raise DataError.of(Problem("samples", got, source=self.name, advice=f"{advice}: {json.dumps(_RECORD)}"))
        planner, columns = self.planner, self.planner.columns
        columns.blank, columns.filled, columns.first = 0, self._filled, [*columns.first, *first][:_TRIED]
        planner.inside.update(inner_columns(first, replace(planner, columns=Columns())))
        if has_rows_of_contexts(first, planner):
            columns.rows = f"one row for each of the {_CONTEXTS}"
            return joined_rows(rows, self._present, planner)
        if has_rows_of_contexts(first, planner, "id"):
            columns.rows = "each row of one question is a sample, since its id differs"
        return rows

    def _filled(self, mapping: Mapping[str, str]) -> set[str]:
        """Return the fields that a mapping fills in the first records; all of it if none of them has its columns."""
        roots = {column: re.split(r"[.\[]", column)[0] for column in mapping}
        first = [each for each in self.planner.columns.first if not each.keys().isdisjoint(roots.values())]
        if not first:
            return {*mapping.values()}
        planner = replace(self.planner, mapping={**self.planner.mapping, **mapping}, columns=Columns())
        reader = replace(self, planner=planner)
        read = (reader._sample({**record}, 1, []) for record in first)  # noqa: SLF001  another reader
        return {name for sample in read if sample is not None for name in sample.present}

    def _with_column(self, problem: Problem) -> Problem:
        """Name the column of a table in memory if it has another name than the field."""
        field = (problem.field or "").partition("[")[0]
        columns = [column for column, name in self.planner.columns.recognised.items() if name == field != column]
        if len(columns) != 1 or "column" in problem.got:
            return problem
        return replace(problem, got=f"{problem.got} in the column {columns[0]!r}")

    def _present(self, record: Mapping[str, object]) -> dict[str, object]:
        """Return a record without the ignored columns, with None for each missing value, and with mapped paths."""
        found = {
            name: None if type(value) not in _JSON_TYPES and check.is_missing(value) else value
            for name, value in record.items()
            if name not in self.ignored
        }
        planner = self.planner
        paths = [name for name in planner.mapping if name not in record and ("." in name or "[" in name)]
        paths += [name for name in planner.inside if name not in record]
        return {**found, **{name: value for name in paths if (value := at_path(found, name)) is not None}}

    def _sample(self, given: dict[str, object], number: int, problems: list[Problem]) -> Sample | None:
        record = self._present(given)
        if len(record) > check.MAX_COLUMNS:
            problems.append(Problem(f"at most {check.MAX_COLUMNS:,} columns", f"{len(record):,}"))
            return None
        plan = self.planner.plan(record)
        values: dict[str, object] = {"id": None}
        for field, sources in plan.fields:
            if (value := self._chosen(record, field, sources, problems)) is None:
                continue
            values[field] = value
            if field == "user_input" and are_messages(value):
                values.update(_question_in(value, problems, has_history="history" in dict(plan.fields)))
        if values["id"] is None:
            values["id"] = str(number)
            self.planner.columns.note_number(number)
        if self.language is not None:
            values["language"] = self.language
        problems += self._without_field(plan)
        noted = self._unreadable(values, plan)
        if plan.kept or noted or "metadata" in values:
            own = held(values.get("metadata")) if self.cells else values.get("metadata")
            rest = [pair for column in plan.kept for pair in self._rest(column, record[column]).items()]
            values["metadata"] = _with_metadata(own, (*rest, *noted.items()))
        try:
            return Sample(**cast("dict[str, Any]", values))  # the constructor checks every value
        except DataError as error:
            problems += error.problems
            return None

    def _rest(self, column: str, value: object) -> dict[str, object]:
        """Return an unread column for the metadata: of one in which fields were found, the other keys."""
        inside = [path for path in self.planner.inside if path.startswith(f"{column}.")]
        found = held(value) if inside else value
        if not inside or not check.is_record(found):
            return {column: value}
        return {
            key: each
            for key, each in found.items()
            if not any(f"{path}.".startswith(f"{column}.{key}.") for path in inside)
        }

    def _value(self, value: object, field: str, source: FieldSource, problems: list[Problem]) -> object:
        """Return a value in the form of its field."""
        if field in LIST_FIELDS:
            return self._list(value, field, source, problems)
        if field in TEXT_FIELDS:
            return self._text(value, field, source, problems)
        if field == "history":
            value = _printed(value, field, problems) if self.cells and isinstance(value, str) else value
            if check.is_list(value) and messages_in(value) is None:  # pairs of a question and an answer
                return [
                    turn for each in value for turn in (each if check.is_list(each) else [each]) if turn is not None
                ]
        if field == "language" and isinstance(value, str):
            return aliases().languages.get(value.strip().casefold(), value)
        return value

    def _text(self, value: object, field: str, source: FieldSource, problems: list[Problem]) -> object:
        """Return the text in a value: of messages, of an object, or the only one of a list; other values as they are.

        Of several the first, or all texts of a response, if the user named the column.
        """
        column, is_mapped = source.columns[0], source.form is ColumnFormat.MAPPED
        if self.cells and isinstance(value, str):
            if column in aliases().lists and not is_mapped:
                value = None if value.strip() in _PRINTED_MISSING else _printed(value, field, problems)
            elif source.form is not ColumnFormat.PLAIN:
                texts = _printed(value, field, [])  # anything but a list of texts is a text itself
                value = texts if check.is_list(texts) and texts and _are_texts(texts) else value
            elif value in _PRINTED_MISSING:
                self.planner.columns.printed_missing[field] = None
        if check.is_list(value) and not are_messages(value):
            value = self._only_text(value, field, source, problems)
        is_turns = field != "user_input" and check.is_list(value)
        if is_turns or check.is_record(value) or (isinstance(value, str) and held(value) is not value):
            found = text_in(value, field, strict=True)
            return value if found is None else found
        return str(value) if type(value) is int and field != "user_input" else value

    def _only_text(self, value: Sequence[object], field: str, source: FieldSource, problems: list[Problem]) -> object:
        """Return the only text of a list, or its parts as one; None after noting a problem."""
        column, is_mapped = source.columns[0], source.form is ColumnFormat.MAPPED
        items = [value[0], *(each for each in value[1:] if each != value[0])] if value else []
        if value and all(map(check.is_record, value)) and (text := joined(value)):
            return text
        is_text = field != "response" or not items or isinstance(items[0], str)
        if not is_mapped and (len(items) > 1 or not is_text):
            options = f"use --map {shlex.quote(f'{column}={field}')} to take the first item"
            if field == "response":
                options = f"{options[: options.rindex(' to ')]} to join the texts"
                is_doubtful = aliases().name_of(column) in aliases().doubtful
                other = f", or --map {shlex.quote(f'{column}=reference')} to take the first one"
                options += other if is_doubtful else ""
            got = f"a list of {len(value)} in the column {column!r}"
            problems.append(Problem("one text", got, field, advice=options))
            return None
        if field == "response" and _are_texts(value):
            return "\n".join(map(str, value)) or None
        return next(iter(items), None)

    def _unreadable(self, values: Mapping[str, object], plan: ColumnPlan) -> dict[str, object]:
        """Return the note of a text that still is JSON or a printed object, unless the user mapped its column."""
        for field, (source, *_) in plan.fields:
            value = values.get(field)
            is_given = field not in _UNDUMPED and source.form is not ColumnFormat.MAPPED
            first = value[0] if check.is_list(value) and value else value  # what is printed is printed alike
            if is_given and isinstance(first, str) and is_unreadable(first):
                self.planner.columns.unreadable[source.columns[0]] = field
                return {UNREADABLE: field}
        return {}

    def _without_field(self, plan: ColumnPlan) -> list[Problem]:
        """Return the problem of a record without a known column; none for any other."""
        if plan.knows_a_field:
            return []
        got = f"an object with {named_columns(plan.kept)}" if plan.kept else "an empty object"
        advice = mapping_advice(self.planner.columns, FIELDS) if plan.kept else ""
        return [Problem(f"at least one of the fields {', '.join(FIELDS)}", got, advice=advice)]

    def _chosen(
        self, record: dict[str, object], field: str, sources: tuple[FieldSource, ...], problems: list[Problem]
    ) -> object:
        """Return the value of a field, which its columns must agree on; None if it is missing."""
        if len(sources) == 1 and sources[0].form is not ColumnFormat.PARTS:  # nearly all
            value = record[sources[0].columns[0]]
            return None if self._is_missing(value, field) else self._value(value, field, sources[0], problems)
        found: list[tuple[str, object]] = []
        for source in sources:
            values = [each for column in source.columns if not self._is_missing(each := record[column], field)]
            if values or (source.form is ColumnFormat.PARTS and len(sources) == 1):
                given = values if source.form is ColumnFormat.PARTS else values[0]
                found.append((source.columns[0], self._value(given, field, source, problems)))
        found = [each for each in found if each[1] is not None]
        if len(found) > 1 and any(value != found[0][1] for _, value in found):
            columns = " and ".join(repr(column) for column, _ in found)
            choices = (shlex.quote(f"{column}={field}") for column, _ in found)
            advice = f"choose one with --map {' or --map '.join(choices)}"
            problems.append(Problem("one column", f"different values in the columns {columns}", field, advice=advice))
        return found[0][1] if found else None

    def _is_missing(self, value: object, field: str) -> bool:
        """Return True if a field has no value; a cell of any but a text field may print that as `nan` or `None`."""
        if not self.cells or field in TEXT_FIELDS or not isinstance(value, str):
            return value is None
        return value.strip() in _PRINTED_MISSING

    def _list(self, value: object, field: str, source: FieldSource, problems: list[Problem]) -> object:
        takes_text = self.cells or source.form is ColumnFormat.MAPPED or field in _CONTEXT_FIELDS
        if isinstance(value, str) and takes_text:
            value = self._items(value, field, problems)
        if field not in _CONTEXT_FIELDS:
            return value
        first = value[0] if check.is_list(value) and value else value
        if not (check.is_list(value) and (isinstance(first, Context) or is_text(first))):
            value = passages_in(value) or value
        if not check.is_list(value) or (
            held(first) is first and all(type(item) is str and item[:1] != "{" for item in value)
        ):
            return value
        return [_context(item, self.language) for item in value]

    def _items(self, value: str, field: str, problems: list[Problem]) -> object:
        if check.is_record(found := held(value)):
            return found if passages_in(found) else [value]
        if (found := _printed(value, field, problems)) is not value:
            return found
        if field not in _CONTEXT_FIELDS and _SEVERAL_IDS.search(value):
            advice = 'write the ids as JSON, for instance ["a", "b"]'
            problems.append(Problem("a list of ids", check.shown(value), field, advice=advice))
        if field in _CONTEXT_FIELDS and len(parts := parts_of(value)) > 1:
            return parts
        self.planner.columns.single[field] = None
        return [value]


def _is_span(record: Mapping[str, object]) -> bool:
    found = {letters(name) for name in record} if "user_input" not in record else set[str]()
    return "spanid" in found and not found.isdisjoint({"parentid", "parentspanid"})


def _are_texts(items: Iterable[object]) -> bool:
    return all(isinstance(each, str) for each in items)


def _printed(cell: str, field: str, problems: list[Problem]) -> object:
    """Return the list printed in a cell, the cell itself if it is plain text, or None after noting a problem."""
    try:
        found = list_in_cell(cell)
    except CellError as error:
        problems.append(Problem("a list", error.got, field, advice=error.advice))
        return None
    return cell if found is None else found


def _context(item: object, language: str | None) -> object:
    """Return a context in the form of `Context.from_record`, in a language if one is given."""
    if isinstance(item, Context):
        return item if language is None else replace(item, language=language)
    found = passage_of(item)
    return {**found, "language": language} if language is not None and check.is_record(found) else found


def _question_in(messages: object, problems: list[Problem], *, has_history: bool) -> dict[str, object]:
    """Return the last message of the user as `user_input` and the turns before as `history`.

    Notes a problem if another turn is last, or if the record has a column of history, too.
    """
    faults = len(problems)
    turns = history_of(messages, "user_input", problems) or ()
    if len(problems) == faults and (not turns or turns[-1].role != USER):
        got = f"a turn of the {turns[-1].role}" if turns else "no text"
        problems.append(Problem("a conversation that ends with the user's question", got, "user_input"))
    if len(turns) > 1 and has_history:
        problems.append(Problem("one history", "one in user_input and another as a column", "history"))
    if len(problems) > faults or not turns:
        return {"user_input": None}
    return {"user_input": turns[-1].text, **({} if has_history else {"history": turns[:-1]})}


def _with_metadata(own: object, other: Iterable[tuple[str, object]]) -> object:
    """Return the record's own metadata, merged with its other columns; names that collide get a prefix."""
    if isinstance(own, str) or check.is_list(own):
        own = {"metadata": own}
    if own is not None and not check.is_mapping(own):
        return own  # rejected, with its field, when the sample is created
    merged = dict(own or {})
    for name, value in other:
        if value is not None:
            merged[f"column {name}" if name in merged else name] = value
    return merged
