"""Files in TREC format, a run (retrieved documents) and qrels (relevant documents), as samples.

A run has lines `topic Q0 document rank score tag`, qrels have lines `topic iteration document grade`, with fields
separated by white space; either file may be gzipped. A table is read too, whose header names topic, document and value
(BEIR: `query-id corpus-id score`, with tabs).

Documents are ranked by score alone, as in trec_eval, which reads scores as 32-bit numbers: higher scores first, and on
ties the document whose id is greater by its bytes. The rank column, the second column of both files and the tag do not
affect the ranking.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.data.aliases import letters
from merilo.data.lines import SHOWN_PROBLEMS, Lines, refusal
from merilo.data.sample import Dataset, Sample, matching_id
from merilo.data.source import data_name, no_such_file, open_unpacked, unreadable
from merilo.errors import DataError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedReader
    from os import PathLike

    from merilo.data.check import JSON

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,9}")
_MAX_LINE_BYTES: Final = 2**20
RUN_FIELDS: Final = "six fields: topic Q0 document rank score tag"
_QRELS_FIELDS: Final = "four fields: topic iteration document grade"
_ADVICE: Final = "name the columns of a table in its first line: query-id corpus-id score"
_NAMES: Final = {
    "topic": ("queryid", "qid", "query", "topic", "topicid", "questionid", "q"),
    "document": ("corpusid", "docid", "documentid", "docno", "did", "pid", "passageid", "chunkid", "doc", "document"),
    "value": ("score", "relevance", "relevancy", "rel", "grade", "label", "judgement", "judgment"),
}
"""Column of a header → its names, in lower case without other characters than letters and digits."""


def load_trec(run: str | PathLike[str], qrels: str | PathLike[str]) -> Dataset:
    """Return one sample per topic of either file, those of the qrels first, in the order of the files.

    A sample has these fields:

    - `id`: the topic;
    - `retrieved_context_ids`: best first; empty for a topic that the run lacks, which counts as nothing found, like
      `trec_eval -c`;
    - `reference_context_ids`: the documents of grade 1 and above, best grade first; missing for a topic that the
      qrels lack;
    - `metadata`: every grade under `qrels` and the run's tag under `run`.

    Both files are read at once. Raises DataError with the file and line of at most 20 problems: a wrong number of
    fields, an invalid score or grade, a document twice under one topic, an empty file. Also raises DataError for a
    gzip file that unpacks to more than `MAX_UNPACKED_BYTES`, and if the files have no topic in common.
    """
    retrieved, judged = _Table(Path(run).name, of_run=True), _Table(Path(qrels).name, of_run=False)
    problems: list[Problem] = []
    for source, table in ((run, retrieved), (qrels, judged)):
        _read(Path(source), table, problems)
    if problems:
        raise refusal(problems)
    topics = dict.fromkeys((*judged.values, *retrieved.values))
    samples = tuple(_sample(topic, retrieved, judged) for topic in topics)
    if retrieved.values.keys().isdisjoint(judged.values):
        first, other = next(iter(retrieved.values)), next(iter(judged.values))
        got, advice = f"none ({first!r} against {other!r})", f"name the topics as in {retrieved.name}"
        raise DataError.of(Problem("a topic of the run in the qrels", got, source=judged.name, advice=advice))
    return Dataset(data_name(Path(run)), lambda: iter(samples))


@dataclass(slots=True)
class _Table:
    """The scores of a run, or the grades of qrels, by topic and document."""

    name: str
    of_run: bool
    values: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    tag: str = ""

    def take(self, fields: list[str], problem: Callable[[str, str], None]) -> None:
        if len(fields) != (6 if self.of_run else 4):
            problem(RUN_FIELDS if self.of_run else _QRELS_FIELDS, f"{len(fields)}")
            return
        self.tag = fields[-1]
        self.add(fields[0], fields[2], fields[4 if self.of_run else 3], problem)

    def add(self, topic: str, document: str, written: str, problem: Callable[[str, str], None]) -> None:
        value = _number(written) if self.of_run else int(written) if _WHOLE.fullmatch(written) else None
        if value is None:
            problem("a finite number as the score" if self.of_run else "a whole number as the grade", repr(written))
        elif document in self.values.setdefault(topic, {}):
            problem("each document once in a topic", f"{document!r} again in topic {topic!r}")
        else:
            self.values[topic][document] = value

    def ranked(self, topic: str) -> list[str]:
        """Return the documents of a topic of a run, best first, as trec_eval orders them."""
        scores = self.values.get(topic, {})
        if len({*scores.values()}) == len(scores):
            return sorted(scores, key=scores.__getitem__, reverse=True)
        # Texts are ordered by code points, as their bytes in UTF-8 are. The sort by score keeps that order on ties.
        return sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)


def _sample(topic: str, run: _Table, qrels: _Table) -> Sample:
    grades = qrels.values.get(topic)
    metadata: dict[str, JSON] = {"run": run.tag}
    relevant: list[str] | None = None
    if grades is not None:
        metadata["qrels"] = dict(grades)
        relevant = sorted((each for each in grades if grades[each] >= 1), key=lambda each: -grades[each])
    return Sample(topic, retrieved_context_ids=run.ranked(topic), reference_context_ids=relevant, metadata=metadata)


def _read(path: Path, table: _Table, problems: list[Problem]) -> None:
    name = table.name
    try:
        with open_unpacked(path) as stream:
            is_empty = not _read_lines(stream, table, problems)
    except UnicodeDecodeError as error:
        problems.append(Problem("UTF-8 text", f"byte 0x{error.object[error.start]:02X}", source=name))
    except FileNotFoundError as error:
        raise no_such_file(path) from error
    except (OSError, EOFError, zlib.error) as error:
        problems.append(replace(unreadable(error), source=name))
    else:
        if is_empty and not problems:
            problems.append(Problem("at least one line", "an empty file", source=name))


def _read_lines(stream: BufferedReader, table: _Table, problems: list[Problem]) -> bool:
    """Read lines until there are enough problems; return True if any line was not blank."""
    has_lines = False
    header: _Header | None = None
    lines = Lines(stream, _MAX_LINE_BYTES, table.name)

    def problem(expected: str, got: str) -> None:
        advice = _ADVICE if expected == _QRELS_FIELDS and got == "3" else ""
        problems.append(Problem(expected, got, source=table.name, line=lines.number, advice=advice))

    for line in lines:
        if len(problems) >= SHOWN_PROBLEMS:
            return True
        if isinstance(line, Problem):
            problem(line.expected, line.got)
        elif not (text := line.decode()).strip():
            continue
        elif "\0" in text:
            problem("text", "a NUL character")
        elif not has_lines and (header := _header(text)) is not None:
            pass
        elif header is None:
            table.take(matching_id(text).split(" "), problem)
        else:
            cells = [cell.strip() for cell in text.split(header.separator)]
            if len(cells) <= max(header.places):
                problem("a field for each column of the header", f"{len(cells)}")
            else:
                topic, document, written = (cells[place] for place in header.places)
                table.add(matching_id(topic), matching_id(document), written.removesuffix(".0"), problem)
        has_lines = True
    return has_lines


class _Header(NamedTuple):
    """The separator of a table, and the places of its topic, document and value."""

    separator: str | None
    places: tuple[int, ...]


def _header(line: str) -> _Header | None:
    """Return the header in a first line; None if the line is not one."""
    separator = next((each for each in "\t," if each in line.strip()), None)
    cells = [letters(cell) for cell in line.split(separator)]
    places = [[place for place, cell in enumerate(cells) if cell in names] for names in _NAMES.values()]
    return _Header(separator, tuple(each[0] for each in places)) if all(len(each) == 1 for each in places) else None


def _number(text: str) -> float | None:
    """Return a finite number in 32 bits, as in trec_eval; None for anything else, also for `1_0` and other digits."""
    if not text.isascii() or "_" in text:
        return None
    try:
        number = float(text)
        return float(struct.unpack("<f", struct.pack("<f", number))[0]) if isfinite(number) else None
    except (ValueError, OverflowError):
        return None
