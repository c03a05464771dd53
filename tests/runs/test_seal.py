"""A file of a run that was edited, swapped or removed is noticed by every command that reads the run."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from edits import Printed, byte_edits, line_edits, printed, readers, value_edits
from grouping import grouped
from judged_rivers import canonical
from labelled_run import by_grade, contexts_rows, fill_in, judged_run
from seals import seal_again

import merilo
from merilo.commands.calibrate.run import label_agreement
from merilo.commands.label.run import label_run
from merilo.errors import RunError
from merilo.runs.files import LABELS, MANIFEST, OUTCOMES, SEAL, STORE, SUMMARY, USAGE
from merilo.runs.records import packed, unpacked
from merilo.runs.seal import recover

METRIC = "context_relevance"
DATA = [row | {"metadata": {"doc": str(place % 6)}} for place, row in enumerate(contexts_rows(24))]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two equal runs with labels attached to the first, a run of other data, and an import."""
    path = tmp_path_factory.mktemp("runs")
    run = judged_run(path / "run", DATA, [METRIC])
    judged_run(path / "other", DATA, [METRIC])
    judged_run(path / "elsewhere", contexts_rows(24, seed=2), [METRIC])
    label_run(run, path / "labels.jsonl", samples=22)
    label_agreement(run, fill_in(path / "labels.jsonl", by_grade), attach=True)
    (path / "scores.csv").write_text("id,rating\n" + "".join(f"s{n},{n % 5}\n" for n in range(20)), encoding="utf-8")
    assert printed("import", path / "scores.csv", "--score", "rating=0..4", "--out", path / "imported")[0] == 0
    return path


@pytest.fixture
def copy(here: Path, tmp_path: Path) -> Path:
    shutil.copytree(here / "run", tmp_path / "copy")
    return tmp_path / "copy"


def every_reader(run: Path, here: Path) -> dict[str, Sequence[object]]:
    return readers(run, here / "other", run.parent, sample="s3", metric=METRIC)


def set_values(path: Path) -> None:
    path.write_text(re.sub(r'"value":[0-9.]+', '"value":1.0', path.read_text(encoding="utf-8")), encoding="utf-8")


def repeat_a_line(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines, lines[0]]), encoding="utf-8")


def raise_the_mean(path: Path) -> None:
    summary = json.loads(path.read_text(encoding="utf-8"))
    summary["metrics"][0]["mean"] = 0.99
    path.write_text(json.dumps(summary), encoding="utf-8")


def drop_an_end(path: Path) -> None:
    summary = json.loads(path.read_text(encoding="utf-8"))
    summary["metrics"][0]["interval"].pop()
    path.write_text(json.dumps(summary), encoding="utf-8")


def widen_the_scale(path: Path) -> None:
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["scales"][METRIC]["range"] = [0, 10]
    path.write_text(json.dumps(manifest), encoding="utf-8")


def lower_the_cost(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"requests": 7}), encoding="utf-8")


def relabel(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace('"label": "2"', '"label": "0"'), encoding="utf-8")


def remove(path: Path) -> None:
    path.unlink()


EDITS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "values set to 1": (OUTCOMES, set_values),
    "a line twice": (OUTCOMES, repeat_a_line),
    "no outcomes": (OUTCOMES, remove),
    "another mean": (SUMMARY, raise_the_mean),
    "half an interval": (SUMMARY, drop_an_end),
    "no summary": (SUMMARY, remove),
    "another scale": (MANIFEST, widen_the_scale),
    "no manifest": (MANIFEST, remove),
    "other usage": (USAGE, lower_the_cost),
    "other labels": (LABELS, relabel),
    "no labels": (LABELS, remove),
    "no seal": (SEAL, remove),
    "no store": (STORE, remove),
}


@pytest.mark.parametrize("name", EDITS)
def test_every_reader_notices_an_edit(name: str, here: Path, copy: Path) -> None:
    """One sentence that names the file and what to do, and exit code 2, by every command."""
    file, edit = EDITS[name]
    commands = every_reader(copy, here)
    edit(copy / file)
    for words in commands.values():
        assert printed(*words) == (2, "")
    with pytest.raises(RunError, match=re.escape(str(copy / file))) as caught:
        merilo.Run.open(copy)
    assert re.search(r"--out|merilo runs verify|--labels", str(caught.value))
    assert printed("runs", "verify", copy)[0] == 2


def test_files_of_another_run_are_noticed(here: Path, copy: Path) -> None:
    """A store of other data does not fit, nor do results that are whole but of another run."""
    shutil.copy(here / "elsewhere" / STORE, copy / STORE)
    with pytest.raises(RunError, match="is damaged or belongs to another run"):
        merilo.Run.open(copy)
    shutil.copy(here / "run" / STORE, copy / STORE)
    for name in (MANIFEST, OUTCOMES, SUMMARY, SEAL):
        shutil.copy(here / "elsewhere" / name, copy / name)
    with pytest.raises(RunError, match=r"changed after merilo wrote it|belongs to another run"):
        merilo.Run.open(copy)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE samples SET record = edited(record, 'What is', 'What was')",
        "UPDATE exchanges SET judge = 'x' || judge",
        "UPDATE exchanges SET record = edited(record, '2', '1')",
        "UPDATE answers SET place = place + 1",
        "UPDATE samples SET row = -row",
        "DELETE FROM samples WHERE row = 3",
        "DELETE FROM answers WHERE rowid = 2",
        "DELETE FROM exchanges WHERE id = 1",
        "INSERT INTO exchanges SELECT max(id) + 1, 'x', rubric, record, 0, 0, 0, 0, 0 FROM exchanges",
        "DELETE FROM meta WHERE name = 'digests'",
        "UPDATE meta SET value = '[]' WHERE name = 'digests'",
    ],
)
def test_a_table_that_was_changed_is_neither_verified_nor_resumed(statement: str, here: Path, copy: Path) -> None:
    """A row that was edited, added, removed or moved differs from the digest of its table. No reader has a bug."""
    with closing(sqlite3.connect(copy / STORE)) as db, db:
        db.create_function("edited", 3, lambda data, old, new: packed(unpacked(data).replace(old, new)))
        assert db.execute(statement).rowcount > 0
    assert printed("runs", "verify", copy) == (2, "")
    for words in every_reader(copy, here).values():
        assert printed(*words)[0] in {0, 1, 2, 3}
    with pytest.raises(RunError, match=r"store\.sqlite is damaged"):
        judged_run(copy, DATA, [METRIC])


def test_an_edited_text_is_not_shown(copy: Path) -> None:
    """A text is stored under its digest."""
    with closing(sqlite3.connect(copy / STORE)) as db, db:
        db.execute("UPDATE texts SET text = 'x' || text")
    assert printed("show", copy, "--sample", "s3") == (2, "")


def make_a_directory(path: Path) -> None:
    path.mkdir()


def make_a_pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_nothing(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("make", [make_a_directory, make_a_pipe, link_to_nothing])
@pytest.mark.parametrize(
    "name", [MANIFEST, OUTCOMES, SUMMARY, USAGE, LABELS, SEAL, STORE, f"{STORE}-wal", f"{SUMMARY}.part", ".lock"]
)
def test_what_is_not_a_file_is_one_sentence(name: str, make: Callable[[Path], None], here: Path, copy: Path) -> None:
    """No command waits for a pipe or reports a bug."""
    (copy / name).unlink(missing_ok=True)
    make(copy / name)
    for command in ("show", "gate", "verify"):
        assert printed(*every_reader(copy, here)[command]) == (2, "")
    assert printed("runs", "verify", copy) == (2, "")
    assert printed("label", copy, "--labels", here / "labels.jsonl") == (2, "")
    with pytest.raises(RunError, match=re.escape(f"{copy / name} is not a regular file.")):
        merilo.Run(copy)


def test_a_plan_does_not_read_a_store_of_another_run(here: Path, copy: Path) -> None:
    """What a run holds already is not asked again, so its store must be its own."""
    (copy.parent / "data.jsonl").write_text(json.dumps(contexts_rows(1)[0]), encoding="utf-8")
    words = ("run", "--plan", copy.parent / "data.jsonl", "--metrics", METRIC, "--out", copy)
    assert printed(*words)[0] == 0
    shutil.copy(here / "elsewhere" / STORE, copy / STORE)
    assert printed(*words) == (2, "")


def test_a_run_that_changes_while_it_is_open_is_noticed(copy: Path) -> None:
    """A Run object does not read outcomes that were changed since it was opened."""
    run = merilo.Run.open(copy)
    assert run.to_frame().shape[0] == 24
    set_values(copy / OUTCOMES)
    with pytest.raises(RunError, match="was changed after merilo wrote it"):
        run.to_frame()


def test_random_edits_are_noticed_or_do_no_harm(here: Path, copy: Path) -> None:
    """One byte or one JSON value of a sealed file: exit code 2, or what was printed before."""
    commands = every_reader(copy, here)
    chosen = [commands[name] for name in ("show --json", "compare", "gate")]
    before = [printed(*words) for words in chosen]
    assert {code for code, _ in before} <= {0, 1, 3}
    for name in (MANIFEST, OUTCOMES, SUMMARY, USAGE, LABELS, SEAL):
        content = (copy / name).read_bytes()
        edits = [*byte_edits(content, 8, 1), *(text.encode() for text in value_edits(content.decode(), 8, 1))]
        for place, edited in enumerate(edits):
            (copy / name).write_bytes(edited)
            at = place % len(chosen)
            assert edited == content or same_or_refused(printed(*chosen[at]), before[at]), (name, place)
        (copy / name).write_bytes(content)


def same_or_refused(found: Printed, before: Printed) -> bool:
    return found[0] == 2 or found == before


def forge_seal(run: Path) -> None:
    """Seal the run again unless its usage is unreadable, which breaks the seal anyway."""
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        seal_again(run)


def test_forged_files_are_never_a_bug(here: Path, copy: Path) -> None:
    """A value of a wrong kind or beyond its range, NaN and a lost field, with a seal that fits, are no bug of ours."""
    commands = [*every_reader(copy, here).values()]
    for name in (OUTCOMES, SUMMARY):
        content = (copy / name).read_text(encoding="utf-8")
        edits = [*value_edits(content, 16, 2), *(line_edits(content) if name == OUTCOMES else ())]
        for place, edited in enumerate(edits):
            (copy / name).write_text(edited, encoding="utf-8", errors="replace")
            forge_seal(copy)
            assert printed(*commands[place % len(commands)])[0] in {0, 1, 2, 3}, (name, place)
        (copy / name).write_text(content, encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (SUMMARY, '"mean":', '"mean": NaN, "was":'),
        (SUMMARY, '"mean":', '"meen":'),
        (SUMMARY, '"mean": 0', '"mean": 5'),
        (SUMMARY, '"interval": [', '"interval": [ 0.1,'),
    ],
)
def test_numbers_that_cannot_be_are_refused(file: str, old: str, new: str, copy: Path) -> None:
    """NaN, a lost mean and an interval of three ends are damage, even if the seal fits."""
    text = (copy / file).read_text(encoding="utf-8")
    assert old in text
    (copy / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    assert printed("show", seal_again(copy)) == (2, "")


def test_the_command_that_wrote_a_run_repairs_it(tmp_path: Path) -> None:
    """Resumed, a run whose results were edited has the bytes of one that was not, and says which file was changed."""
    rows = contexts_rows(6)

    def evaluate(out: str, **more: Any) -> merilo.Run:
        from labelled_run import lenient

        judge = merilo.ScriptedJudge.by(lenient)
        return merilo.evaluate(rows, **grouped(metrics=[METRIC], judge=judge, out=tmp_path / out, cache=False, **more))

    whole = evaluate("whole")
    for name, edit in ((OUTCOMES, set_values), (SUMMARY, raise_the_mean), (USAGE, remove), (MANIFEST, widen_the_scale)):
        shutil.copytree(whole.path, tmp_path / name)
        edit(tmp_path / name / name)
        repaired = evaluate(name)
        assert canonical(repaired) == canonical(whole)
        assert (repaired.path / SEAL).read_bytes() == (whole.path / SEAL).read_bytes()


def test_a_store_of_another_run_is_not_resumed(tmp_path: Path) -> None:
    """Its answers may be of another judge, so nothing is asked and nothing is written."""
    first = judged_run(tmp_path / "first", contexts_rows(4), [METRIC])
    second = judged_run(tmp_path / "second", contexts_rows(4, seed=3), [METRIC])
    shutil.copy(second.path / STORE, first.path / STORE)
    with pytest.raises(RunError, match="belongs to another run"):
        judged_run(first.path, contexts_rows(4), [METRIC])


def test_changed_labels_are_repaired_by_attaching_them_again(here: Path, copy: Path) -> None:
    """A resumed run does not seal labels that were changed; label --labels does, since it is given them."""
    relabel(copy / LABELS)
    assert printed("show", copy)[0] == 2
    assert printed("label", copy, "--labels", here / "labels.jsonl")[0] == 0
    assert printed("show", copy)[0] == 0
    assert (copy / LABELS).read_bytes() == (here / "run" / LABELS).read_bytes()
    assert (copy / SEAL).read_bytes() == (here / "run" / SEAL).read_bytes()


def test_recovering_leaves_a_whole_run_alone(copy: Path) -> None:
    """Part files that no seal names are removed, and nothing else changes."""
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    (copy / f"{OUTCOMES}.part").write_text("half of")
    (copy / f"{SEAL}.part").write_text("{}")
    recover(copy)
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before
