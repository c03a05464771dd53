"""The cost of the seal for a reader, and what it notices: random edits of a run's directory.

    python benchmarks/seal.py                  the check at 100,000 outcomes, and 100 edits of each kind
    python benchmarks/seal.py --edits 1000     more edits

An edit changes one byte of a file, one value of its JSON, its lines, the file itself (another run's, a link, a
directory, a pipe, nothing) or rows of the store. Then commands that read a run must refuse it with exit code 2, or
print what they printed before. Each runs in its own process, which is stopped after 60 seconds, so that one that hangs
is counted.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from conclude import ONE, TEN, write_run
from figures import report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

OUTCOMES = 100_000
LONGEST_S = 0.1
REPEATS = 5
HANGS_S = 60
READERS_PER_EDIT = 3
FILES = ("manifest.json", "outcomes.jsonl", "summary.json", "usage.json", "labels.jsonl", "seal.json", "store.sqlite")
STATEMENTS = (
    "DELETE FROM {table} WHERE rowid = (SELECT rowid FROM {table} ORDER BY random() LIMIT 1)",
    "DELETE FROM {table}",
    "UPDATE {table} SET {column} = (SELECT {column} FROM {table} ORDER BY random() LIMIT 1)",
    "UPDATE {table} SET {column} = {column} || ' '",
    "UPDATE {table} SET rowid = -rowid",
    "DROP TABLE {table}",
)
COLUMNS = {"samples": "record", "texts": "text", "exchanges": "replies", "answers": "verdict", "meta": "value"}
OTHERS = ("VACUUM", "REINDEX", "DROP INDEX answers_seal", "DROP INDEX samples_seal", "PRAGMA user_version = 7")


def check_s(folder: Path, metrics: tuple[str, ...]) -> tuple[float, float]:
    """Return the least CPU time of some checks of a run, in seconds, and the size of its outcomes in MB.

    The run has as many stored answers and conversations as outcomes.
    """
    from merilo.judging.digests import digest_of
    from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
    from merilo.providers.base import Reply, Usage
    from merilo.runs.run import Run
    from merilo.runs.seal import inspect_seal, publish
    from merilo.runs.store import Exchange, Store

    path = folder / f"{len(metrics)}"
    write_run(path, OUTCOMES // len(metrics), metrics, 1)
    store = Store.open(path / "store.sqlite")
    question = Relevance("How long is the river?", ("It is 12 km long.",))
    for number in range(OUTCOMES):
        sent = Exchange("openai:m", "the rubric", (Reply(('{"grade": 2}',), usage=Usage(10, 5), model="m"),), 0.25)
        store.keep([(digest_of(str(number).encode()), question, RelevanceVerdict(2, (0,), "It says so."))], sent)
        if number % 1_000 == 0:
            store.commit()
    publish(path, {}, usage={}, store=store)
    store.close()
    if not Run.open(path).sealed:
        raise SystemExit("the run has no seal")
    times: list[float] = []
    for _ in range(REPEATS):
        began = time.process_time()
        found = inspect_seal(path)
        times.append(time.process_time() - began)
        if found.broken:
            raise SystemExit("a whole run is broken")
    return min(times), (path / "outcomes.jsonl").stat().st_size / 1e6


def edits(folder: Path, count: int) -> dict[str, int]:
    """Count how many random edits are refused, do no harm, or are missed; a command may also crash or hang."""
    from edits import readers
    from labelled_run import by_grade, contexts_rows, fill_in, judged_run

    from merilo.commands.calibrate.run import label_agreement
    from merilo.commands.label.run import label_run

    rows = [row | {"metadata": {"doc": str(place % 6)}} for place, row in enumerate(contexts_rows(24))]
    run = judged_run(folder / "run", rows, ["context_relevance"])
    other = judged_run(folder / "other", rows, ["context_relevance"])
    elsewhere = judged_run(folder / "elsewhere", contexts_rows(24, seed=2), ["context_relevance"])
    label_run(run, folder / "labels.jsonl", samples=22)
    filled = fill_in(folder / "labels.jsonl", by_grade)
    for each in (run, elsewhere):
        with contextlib.suppress(Exception):  # labels of other data are refused
            label_agreement(each, filled, attach=True)
    copy = folder / "copy"
    commands: dict[str, Callable[[], tuple[int, str]]] = {
        name: partial(_command, words)
        for name, words in {
            **readers(copy, other.path, folder, sample="s3", metric="context_relevance"),
            "verify": ("runs", "verify", copy),
            "label --labels": ("label", copy, "--labels", filled),
        }.items()
    }
    commands |= {f"Run {what}": partial(_python, copy, what) for what in ("metrics", "samples", "asked", "usage")}
    _fresh(run.path, copy)
    before = {name: _outcome(folder, command) for name, command in commands.items()}
    for name, (code, text) in before.items():
        if code not in {0, 1, 3}:
            raise SystemExit(f"{name} fails on a whole run: {text}")
    source = random.Random(1)
    seen = dict.fromkeys(("edits", "readings", "refused", "harmless", "missed", "crashed", "hung"), 0)
    for label, edit in _edits(run.path, [other.path, elsewhere.path], count, source):
        _fresh(run.path, copy)
        edit(copy)
        seen["edits"] += 1
        for name in source.sample(sorted(commands), READERS_PER_EDIT):
            found = _outcome(folder, commands[name])
            kind = _kind(name, found, before[name])
            seen["readings"] += 1
            seen[kind] += 1
            if kind in {"missed", "crashed", "hung"}:
                print(f"{kind}: {label}, {name}: {found[0]} {found[1][-300:]}", file=sys.__stderr__)
    return seen


def _kind(name: str, found: tuple[int, str], before: tuple[int, str]) -> str:
    """Return the kind of a command's result; `merilo runs verify` may repair a run, and reports other numbers with exit
    code 1.
    """
    code, text = found
    if code == -signal.SIGALRM:
        return "hung"
    if code in {70, 99} or code < 0 or "Traceback" in text:
        return "crashed"
    if code == 2 or (name == "verify" and code == 1):
        return "refused"
    return "harmless" if found == before or (name == "verify" and code == 0) else "missed"


def _edits(
    run: Path, others: Sequence[Path], count: int, source: random.Random
) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Yield edits of a copy of a run, with a name."""
    from edits import byte_edits, line_edits, value_edits

    for file in FILES:
        content = (run / file).read_bytes()
        changed: list[bytes] = [*byte_edits(content, count if file != "store.sqlite" else 2 * count, 1)]
        if file != "store.sqlite":
            changed += [text.encode("utf-8", "replace") for text in value_edits(content.decode(), count, 1)]
            changed += [text.encode() for text in line_edits(content.decode())]
        for edited in changed:
            if edited != content:
                yield f"{file} edited", partial(_write, file, edited)
        for number in range(max(1, count // 10)):
            for name, whole in _whole_edits(file, others, source):
                yield f"{file} {name} {number}", whole
    for _ in range(count):
        statement = source.choice([*STATEMENTS, *OTHERS])
        table = source.choice(sorted(COLUMNS))
        sql = statement.format(table=table, column=COLUMNS[table])
        yield sql, partial(_sql, sql)
    for _ in range(count):  # two at once
        pairs = [each for file in FILES for each in _whole_edits(file, others, source)]
        one, two = source.sample(pairs, 2)
        yield f"{one[0]} and {two[0]}", partial(_both, one[1], two[1])


def _whole_edits(
    file: str, others: Sequence[Path], source: random.Random
) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Yield edits of a file as a whole."""
    other = source.choice(others)
    suffix = source.choice(("", ".part", "-wal", "-journal") if file == "store.sqlite" else ("", ".part"))
    yield (
        f"{file}{suffix} of another run",
        partial(_replaced, file, suffix, lambda at: shutil.copy(_there(other, file), at)),
    )
    yield (
        f"{file}{suffix} linked to another run's",
        partial(_replaced, file, suffix, lambda at: at.symlink_to(_there(other, file))),
    )
    yield f"{file}{suffix} linked to nothing", partial(_replaced, file, suffix, lambda at: at.symlink_to("nowhere"))
    yield f"{file}{suffix} a directory", partial(_replaced, file, suffix, Path.mkdir)
    yield f"{file}{suffix} a pipe", partial(_replaced, file, suffix, os.mkfifo)
    yield f"{file}{suffix} empty", partial(_replaced, file, suffix, lambda at: at.write_bytes(b""))
    yield f"{file} removed", lambda run: (run / file).unlink(missing_ok=True)
    yield f"{file} unreadable", lambda run: (run / file).exists() and (run / file).chmod(0)
    cut = source.random()
    yield f"{file} truncated", lambda run: _truncate(run / file, cut)


def _there(run: Path, file: str) -> Path:
    return run / file if (run / file).exists() else run / "summary.json"


def _write(file: str, content: bytes, run: Path) -> None:
    (run / file).write_bytes(content)


def _replaced(file: str, suffix: str, make: Callable[[Path], object], run: Path) -> None:
    at = run / f"{file}{suffix}"
    if at.is_dir():
        at.rmdir()
    at.unlink(missing_ok=True)
    make(at)


def _truncate(path: Path, part: float) -> None:
    if path.is_file() and not path.is_symlink():
        os.truncate(path, int(path.stat().st_size * part))


def _both(one: Callable[[Path], object], two: Callable[[Path], object], run: Path) -> None:
    one(run)
    with contextlib.suppress(OSError):  # the first may have left nothing for the second
        two(run)


def _sql(statement: str, run: Path) -> None:
    with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as db, contextlib.suppress(sqlite3.Error):
        db.execute(statement)


def _fresh(run: Path, copy: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy)


def _command(words: Sequence[object]) -> tuple[int, str]:
    from edits import printed

    return printed(*words)


def _python(path: Path, what: str) -> tuple[int, str]:
    """Read a run by the library, with the constructor."""
    import merilo

    try:
        run = merilo.Run(path)
        match what:
            case "metrics":
                return 0, f"{run.metrics} {run.complete} {run.manifest}"
            case "samples":
                return 0, str([*run.samples])
            case "asked":
                return 0, str(run.asked([key for record in run.records() for key in record.get("trail", ())]))
            case _:
                return 0, f"{run.usage} {run.labels and run.labels.read_bytes()!r}"
    except merilo.MeriloError as error:
        return 2, str(error)


def _outcome(folder: Path, command: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    """Run a command in its own process; a negative code is the signal that ended it."""
    for written in ("tasks.jsonl", "run.html"):
        (folder / written).unlink(missing_ok=True)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(HANGS_S)
        try:
            found = command()
        except BaseException as error:  # noqa: BLE001  whatever a command lets through is a crash
            found = (99, repr(error))
        with os.fdopen(writer, "w", encoding="utf-8", errors="replace") as out:
            json.dump(found, out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as coming:
        text = coming.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return -os.WTERMSIG(status), ""
    code, printed = json.loads(text)
    return code, re.sub(r"[0-9.]+ (s|ms)\b|\"seconds\": [0-9.e-]+|merilo-replay-\w+", "", printed)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=100)
    count: int = parser.parse_args().edits
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stderr(io.StringIO()):
        for metrics in (ONE, TEN):
            seconds, size = check_s(Path(name), metrics)
            shape = f"{OUTCOMES:,} outcomes of {len(metrics)} metric{'s' * (len(metrics) > 1)}"
            report(f"check the seal, {shape} ({size:.0f} MB), CPU s", seconds, at_most=LONGEST_S)
        seen = edits(Path(name), count)
        report("random edits of a run", seen["edits"])
        report("readings of edited runs", seen["readings"])
        report("refused with exit code 2", seen["refused"])
        report("harmless: the same output", seen["harmless"])
        for kind in ("missed", "crashed", "hung"):
            report(kind, seen[kind], at_most=0)


if __name__ == "__main__":
    main()
