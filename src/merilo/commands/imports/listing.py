"""`merilo import --list` and `--out FILE.jsonl`: what a file of another system contains, and its samples as a file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from merilo.adapters.conventions import conventions
from merilo.adapters.exports import RESULT_FILES, damage_of, export_of
from merilo.data.problem_report import grouped_messages
from merilo.data.sample import Sample
from merilo.errors import DataError, UsageError
from merilo.rendering.page import Page, Tone, cut
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count
from merilo.runs.publish import staged

if TYPE_CHECKING:
    from os import PathLike

    from merilo.adapters.exports import Export
    from merilo.adapters.items import Item
    from merilo.errors import Problem

SHOWN: Final = 20
"""Maximum samples that a page lists."""
_ID_WIDTH: Final = 36


@dataclass(slots=True)
class Contents:
    """What a file of another system contains."""

    path: Path
    name: str
    title: str
    package: str
    version: str
    of_spans: bool
    samples: int = 0
    kinds: Counter[str] = field(default_factory=Counter[str])
    missing: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])
    scores: Counter[str] = field(default_factory=Counter[str])
    problems: list[Problem] = field(default_factory=list["Problem"])
    first: list[Item] = field(default_factory=list["Item"])
    """The first items that are not broken records."""

    def add(self, item: Item, unit: str) -> None:
        """Count one item."""
        if item.problems:
            self.problems += [
                replace(each, source=self.path.name, line=item.place, unit=unit) for each in item.problems
            ]
            return
        self.kinds.update(item.kinds)
        if item.record is None:
            self.left_out[item.reason] += 1
        else:
            self.samples += 1
            self.missing.update(item.missing)
            self.scores.update(item.scores.keys())
        if len(self.first) < SHOWN:
            self.first.append(item)


def contents_of(source: str | PathLike[str]) -> Contents:
    """Return what the file contains. Raises UsageError if merilo does not know the kind of file, DataError."""
    found = _known(source)
    contents = Contents(found.path, found.name, found.title, found.package, found.version, found.of_spans)
    for item in found.items():
        contents.add(item, found.unit)
    return contents


def write_samples(source: str | PathLike[str], out: str | PathLike[str]) -> Contents:
    """Write the samples in a file as JSON Lines and return what the file contains.

    A broken record is reported and the others are written. Raises DataError if no sample can be read.
    """
    found = _known(source)
    contents = Contents(found.path, found.name, found.title, found.package, found.version, found.of_spans)
    with staged(Path(out)) as file:
        for number, item in enumerate(found.items(), start=1):
            contents.add(item, found.unit)
            _write(item, file, number, found, contents)
        if not contents.samples:
            problems = "\n".join(_problem_lines(contents)) or "No trace in it is a sample (--list shows why)."
            raise DataError(f"{found.path.name}: no sample was written.\n{problems}")
    return contents


def _write(item: Item, file: IO[bytes], number: int, found: Export, contents: Contents) -> None:
    if item.record is None:
        return
    record = {"id": str(number), **{name: value for name, value in item.record.items() if value is not None}}
    try:
        sample = Sample.from_record(record)
    except DataError as error:
        contents.samples -= 1
        contents.problems += [
            replace(each, source=found.path.name, line=item.place, unit=found.unit) for each in error.problems
        ]
        return
    file.write(json.dumps(sample.to_record(), ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def _known(source: str | PathLike[str]) -> Export:
    path = Path(source)
    if not path.is_file():
        raise DataError(f"No such file: {path}.")
    found = export_of(path)
    if found is None:
        if (damage := damage_of(path)) is not None:
            raise damage
        titles = ", ".join([each.title for each in conventions().files] + [each.title for each in RESULT_FILES])
        raise UsageError(f"{path.name} is not a file of traces or results that merilo knows: {titles}.")
    return found


def contents_record(found: Contents, out: str | None) -> dict[str, Any]:  # Any: JSON
    """Return the contents as a JSON-able object."""
    return {
        "file": str(found.path),
        "kind": found.name,
        "package": found.package,
        "version": found.version or None,
        "samples": found.samples,
        "spans": dict(sorted(found.kinds.items())),
        "not_samples": dict(sorted(found.left_out.items())),
        "missing": dict(sorted(found.missing.items())),
        "scores": dict(sorted(found.scores.items())),
        "problems": [each.message for each in found.problems],
        "out": out,
    }


def contents_page(found: Contents, width: int, out: str | None) -> Page:
    """Return the contents as a page: counts, then the first items."""
    page = Page(width)
    version = f" {found.version}" if found.version else ""
    unit = "trace" if found.of_spans else "row"
    total = found.samples + sum(found.left_out.values())
    page.text(f"{clean(found.path.name)}: {found.title}{version}, {count(total, unit)}", tone=Tone.STRONG)
    rows = [("samples", f"{found.samples:,}")]
    if found.kinds:
        rows.append(("spans", ", ".join(f"{number:,} {kind}" for kind, number in sorted(found.kinds.items()))))
    rows += [("not a sample", f"{number:,}: {reason}") for reason, number in sorted(found.left_out.items())]
    rows += [("missing", f"{name} in {count(number, 'sample')}") for name, number in sorted(found.missing.items())]
    if found.scores:
        rows.append(("scores", ", ".join(f"{clean(name)} ({n:,})" for name, n in sorted(found.scores.items()))))
    page.entries(rows)
    for line in _problem_lines(found):
        page.text(line, indent=2, tone=Tone.BAD)
    if out is not None:
        page.text(f"{count(found.samples, 'sample')} written to {clean(out)}. Evaluate them: merilo run {clean(out)}")
        return page
    page.blank()
    for item in found.first:
        page.line(cut(f"  {_line(item)}", page.width))
    if (more := total - len(found.first)) > 0:
        page.text(f"... and {more:,} more.", indent=2)
    return page


def _problem_lines(found: Contents) -> list[str]:
    total = found.samples + sum(found.left_out.values()) + len(found.problems)
    return grouped_messages(found.problems, records=total)[:SHOWN] if found.problems else []


def _line(item: Item) -> str:
    name = cut(clean(item.id or str(item.place)), _ID_WIDTH)
    if item.record is None:
        return f"{name}: not a sample: {item.reason}"
    contexts = item.record.get("retrieved_contexts")
    ids = item.record.get("retrieved_context_ids")
    parts = [count(len(ids), "context id") if ids else count(len(contexts), "context") if contexts is not None else ""]
    parts += ["response" if item.record.get("response") is not None else "", *(f"no {each}" for each in item.missing)]
    question = clean(str(item.record.get("user_input") or ""))
    return f"{name}: {', '.join(filter(None, parts))}: {question}"
