"""`merilo import --list` and `--out FILE.jsonl`: what a file of another system contains, and its samples as a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.exports import Contents, Export, damage_of, export_of, result_files
from merilo.adapters.spans import SpanFile, conventions
from merilo.data.problem_report import grouped_messages
from merilo.data.sample import Sample
from merilo.data.sanitize import clean
from merilo.errors import DataError, UsageError
from merilo.numbers import count
from merilo.rendering.page import Page, Tone, cut
from merilo.runs.files import staged

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from merilo.adapters.base import Item

SHOWN: Final = 20
"""Maximum samples that a page lists."""
_ID_WIDTH: Final = 36


def contents_of(source: str | PathLike[str]) -> tuple[Contents, list[Item]]:
    """Return what the file contains, and its first items. Raises UsageError for an unknown kind of file, DataError."""
    found = Contents(_known(source))
    first: list[Item] = []
    for item in found.items():
        if not item.problems and len(first) < SHOWN:
            first.append(item)
    return found, first


def write_samples(source: str | PathLike[str], out: str | PathLike[str]) -> Contents:
    """Write the samples in a file as JSON Lines and return what the file contains.

    A broken record is reported and the others are written. Raises DataError if no sample can be read.
    """
    found = Contents(_known(source))
    name, unit = found.export.path.name, found.export.unit
    with staged(Path(out)) as file:
        for number, item in enumerate(found.items(), start=1):
            if item.record is None:
                continue
            record = {"id": str(number), **{key: value for key, value in item.record.items() if value is not None}}
            try:
                text = json.dumps(Sample.from_record(record).to_record(), ensure_ascii=False)
            except DataError as error:
                found.samples -= 1
                found.problems += [replace(each, source=name, line=item.place, unit=unit) for each in error.problems]
            else:
                file.write(text.encode("utf-8", "replace") + b"\n")
        if not found.samples:
            problems = "\n".join(_problem_lines(found)) or "No trace in it is a sample (--list shows why)."
            raise DataError(f"{name}: no sample was written.\n{problems}")
    return found


def _known(source: str | PathLike[str]) -> Export:
    path = Path(source)
    found = export_of(path)
    if found is None:
        if not path.is_file():
            raise DataError(f"No such file: {path}.")
        if (damage := damage_of(path)) is not None:
            raise damage
        titles = ", ".join([each.title for each in conventions().files] + [each.title for each in result_files()])
        raise UsageError(f"{path.name} is not a file of traces or results that merilo knows: {titles}.")
    return found


def contents_record(found: Contents, out: str | None) -> dict[str, Any]:  # Any: JSON
    """Return the contents as a JSON-able object."""
    return {
        "file": str(found.export.path),
        "kind": found.export.kind.name,
        "package": found.export.kind.package,
        "version": found.export.version or None,
        "samples": found.samples,
        "spans": dict(sorted(found.kinds.items())),
        "not_samples": dict(sorted(found.left_out.items())),
        "missing": dict(sorted(found.missing.items())),
        "scores": dict(sorted(found.scores.items())),
        "problems": [each.message for each in found.problems],
        "out": out,
    }


def contents_page(found: Contents, first: Sequence[Item], width: int, out: str | None) -> Page:
    """Return the contents as a page: counts, then the first items."""
    page = Page(width)
    version = f" {found.export.version}" if found.export.version else ""
    unit = "row" if not isinstance(found.export.kind, SpanFile) else "retrieval" if found.export.hops else "trace"
    total = found.samples + sum(found.left_out.values())
    title = f"{clean(found.export.path.name)}: {found.export.kind.title}{version}"
    page.text(f"{title}, {count(total, unit)}", tone=Tone.STRONG)
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
    for item in first:
        page.line(cut(f"  {_line(item)}", page.width))
    if (more := total - len(first)) > 0:
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
