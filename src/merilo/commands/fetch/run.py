"""Downloads a local judge: resolve the name, choose the files, download, compare with the hub, write the lock.

::

    plan_fetch    name → ORG/NAME and revision → files and licence, which the user is asked about
    fetch         each file → the cache of the hub → compared with the size and digest that the hub reports
                  all files right → judge.lock, in one step

Without the lock a judge does not count as fetched. So an interrupted download leaves nothing that merilo would use, and
the same command resumes it.
"""

from __future__ import annotations

import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.commands.fetch.choice import choose, is_allowed
from merilo.commands.fetch.hub import describe, difference, download, remove
from merilo.commands.fetch.result import Download, Fetched, HubFile, HubModel
from merilo.errors import UsageError
from merilo.judges.local.card import builtin_cards
from merilo.judges.local.files import file_digest
from merilo.judges.local.find import card_for, fetched_folder, hub_snapshot
from merilo.judges.local.lock import LOCK_NAME, Lock, read_lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.judges.local.card import Card

_MODEL: Final = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_DEFAULT: Final = "main"
_ATTEMPTS: Final = 2
"""A file that is in the cache already and differs from the hub is downloaded once more."""


class Wanted(NamedTuple):
    """A judge to fetch."""

    name: str
    """The name of a card, or ORG/NAME."""
    model: str
    """ORG/NAME."""
    revision: str | None
    """A branch, a tag or a commit; None if the user named none."""
    card: Card | None


def wanted(text: str, revision: str | None = None) -> Wanted:
    """Return the judge that a text names: a card's name or ORG/NAME[@REVISION]. Raises UsageError."""
    name, _, own = text.strip().removeprefix("local:").partition("@")
    if own and revision is not None and own != revision:
        raise UsageError(f"Two revisions are named: {own} and {revision}. Name one.")
    card = card_for(name)
    model = name if _MODEL.fullmatch(name) else card.model if card is not None else ""
    if not model:
        names = ", ".join(builtin_cards())
        raise UsageError(f"No local judge {name!r}. Name a model of the hub (ORG/NAME) or a card: {names}.")
    return Wanted(name, model, revision or own or None, card)


def verified(judge: Wanted) -> Fetched | None:
    """Return the judge if it was fetched before and no file has changed; None otherwise.

    A changed file is removed. Sends no request. Raises UsageError for an unreadable lock.
    """
    home = fetched_folder(judge.name)
    lock = read_lock(home)
    if lock is None or lock.model != judge.model or judge.revision not in {None, lock.revision}:
        return None
    folder = hub_snapshot(lock.model, lock.revision)
    if folder is None or not lock.files:
        return None
    complete = True
    for name, digest in lock.files.items():
        path = folder / name
        if not is_allowed(name) or not path.is_file():
            complete = False
        elif _digest(path) != digest:
            remove(path)
            complete = False
    if not complete:
        return None
    files = tuple(HubFile(name, (folder / name).stat().st_size, digest, None) for name, digest in lock.files.items())
    needs_export = not any(name.endswith(".onnx") for name in lock.files)
    source = HubModel(lock.model, lock.revision, lock.licence, files)
    found = Download(judge.name, source, files, needs_export, judge.card)
    return _fetched(found, folder, home, downloaded=False)


def plan_fetch(judge: Wanted) -> Download:
    """Return the files to download, as the hub describes them. Raises UsageError."""
    lock = read_lock(fetched_folder(judge.name))
    locked = lock.revision if lock is not None and lock.model == judge.model else None
    pinned = judge.card.revision if judge.card is not None and judge.card.model == judge.model else None
    source = describe(judge.model, judge.revision or locked or pinned or _DEFAULT)
    return choose(judge.name, source, judge.card)


def fetch(plan: Download, advance: Callable[[str], None] = lambda _: None) -> Fetched:
    """Download the files, compare them with the hub, and write the lock.

    `advance` is called with the name of each file before it is downloaded. Raises UsageError.
    """
    digests: dict[str, str] = {}
    paths: list[Path] = []
    for each in plan.files:
        advance(each.name)
        path = _downloaded(plan, each)
        paths.append(path)
        digests[each.name] = each.sha256 or _digest(path)
    folder = paths[0].parents[plan.files[0].name.count("/")]
    home = fetched_folder(plan.name)
    today = datetime.now(UTC).date().isoformat()
    lock = Lock(model=plan.source.model, revision=plan.source.revision, licence=plan.licence, date=today, files=digests)
    _write(lock, home)
    return _fetched(plan, folder, home, downloaded=True)


def _downloaded(plan: Download, file: HubFile) -> Path:
    """Return the path of a file that agrees with the hub. Raises UsageError if two downloads do not."""
    problem: str | None = None
    for _ in range(_ATTEMPTS):
        path = download(plan.source.model, plan.source.revision, file.name)
        problem = difference(path, file)
        if problem is None:
            return path
        remove(path)
    raise UsageError(
        f"{file.name} of {plan.source.model} differs from the description of the hub: {problem}. "
        "It was removed, and the judge is not installed."
    )


def _digest(path: Path) -> str:
    try:
        return file_digest(path)
    except OSError as error:
        raise UsageError(f"Cannot read {path} ({error.strerror}).") from error


def _write(lock: Lock, home: Path) -> None:
    """Write the lock in one step, so that a killed command leaves the old one or the new one."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=home) as folder:
            lock.write(Path(folder))
            Path(folder, LOCK_NAME).replace(home / LOCK_NAME)
    except OSError as error:
        raise UsageError(f"Cannot write {home / LOCK_NAME} ({error.strerror}).") from error


def _fetched(plan: Download, folder: Path, home: Path, *, downloaded: bool) -> Fetched:
    return Fetched(
        name=plan.name,
        model=plan.source.model,
        revision=plan.source.revision,
        licence=plan.licence,
        non_commercial=plan.non_commercial,
        needs_export=plan.needs_export,
        has_card=plan.card is not None,
        files=plan.files,
        folder=folder,
        lock=home / LOCK_NAME,
        downloaded=downloaded,
    )
