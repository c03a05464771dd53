"""What `merilo judge fetch` downloads, and what it downloaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.commands.check.run import Check
    from merilo.judges.local.card import Card
    from merilo.judges.local.golden import GoldenCheck

UNKNOWN: Final = "unknown"
_NON_COMMERCIAL: Final = re.compile(r"(?:^|[^a-z])nc(?:$|[^a-z])|non-?commercial|research-only", re.IGNORECASE)


class HubFile(NamedTuple):
    """A file of a repository, as the hub describes it."""

    name: str
    """Its path in the repository, with `/` between folders."""
    size: int
    """In bytes."""
    sha256: str | None
    """Hex digits; None for a file that is not stored with Git LFS."""
    git_digest: str | None
    """The SHA-1 that Git gives the content, as hex digits."""


@dataclass(frozen=True, slots=True)
class HubModel:
    """One revision of a repository, as the hub describes it."""

    model: str
    """ORG/NAME."""
    revision: str
    """The commit, 40 hex digits."""
    licence: str
    files: tuple[HubFile, ...]
    """The files whose size the hub reports."""


@dataclass(frozen=True, slots=True)
class Download:
    """The files to take from one revision of a repository."""

    name: str
    """What the user called the judge: the name of a card, or ORG/NAME."""
    source: HubModel
    files: tuple[HubFile, ...]
    needs_export: bool
    """True if the repository has no ONNX file, so that its weights must be exported before merilo can use them."""
    card: Card | None
    """The card of the judge; None if the user has to write one."""
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(each.size for each in self.files)

    @property
    def licence(self) -> str:
        """The licence that the hub names, otherwise that of the card."""
        known = self.source.licence != UNKNOWN or self.card is None
        return self.source.licence if known or self.card is None else self.card.licence

    @property
    def non_commercial(self) -> bool:
        """True if the hub or the card names a licence that forbids commercial use."""
        named = (self.source.licence, "" if self.card is None else self.card.licence)
        return any(_NON_COMMERCIAL.search(each) for each in named)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A judge whose files are on this machine and agree with its lock."""

    name: str
    model: str
    revision: str
    licence: str
    non_commercial: bool
    needs_export: bool
    has_card: bool
    files: tuple[HubFile, ...]
    folder: Path
    """The folder of the revision, in the cache of the hub."""
    lock: Path
    downloaded: bool
    """False if all files were there already and only their digests were compared."""

    @property
    def is_usable(self) -> bool:
        """True if the judge can be tested: it has an ONNX file and a card."""
        return self.has_card and not self.needs_export


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of testing a fetched judge."""

    problem: str | None
    """Why the judge cannot be used, as a sentence; None if it works."""
    golden: GoldenCheck | None = None
    """How the logits of the card's golden pairs differ; None if the card has none, or the model cannot be loaded."""
    agreement: str | None = None
    """The agreement with human labels, as a phrase; None if it is unknown."""
    notes: tuple[str, ...] = ()
    """Sentences on the check."""
    check: Check | None = None
    """The check of this call; None if there was none."""
