"""A shard: the part of a data set that one of several runs evaluates, to be merged later."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from merilo.data.sample import Fingerprint
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample

_TEXT: Final = re.compile(r"([1-9]\d{0,8})/([1-9]\d{0,8})")


@dataclass(frozen=True, slots=True)
class Shard:
    """The shard with this number, from 1, of `of` shards: every `of`-th sample of the data."""

    index: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the shard in a text such as `2/8`. Raises UsageError."""
        found = _TEXT.fullmatch(text)
        shard = None if found is None else cls(int(found[1]), int(found[2]))
        if shard is None or shard.index > shard.of:
            raise UsageError(f"A shard is I/N with I from 1 to N, such as 1/4, got {text!r} (--shard).")
        return shard

    @classmethod
    def recorded(cls, record: Mapping[str, object]) -> Self:
        """Return the shard that a manifest records."""
        return cls(int(str(record["index"])), int(str(record["of"])))

    def holds(self, position: int) -> bool:
        """Return True if the sample at this position of the data, from 1, is in the shard."""
        return (position - self.index) % self.of == 0

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


@dataclass(slots=True)
class ShardTally:
    """Number and fingerprint of the samples of a shard, while the whole data is read."""

    shard: Shard
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    samples: int = 0

    def add(self, sample: Sample) -> None:
        """Add the next sample of the shard."""
        self.fingerprint.add(sample)
        self.samples += 1

    def record(self, samples: int, fingerprint: str) -> dict[str, object]:
        """Return the manifest's entry for the shard of data with this many samples and this fingerprint.

        Raises UsageError if the shard is empty.
        """
        if not self.samples:
            raise UsageError(
                f"Shard {self.shard} is empty: the data has {samples:,} samples. Choose at most {samples:,} shards."
            )
        return {"index": self.shard.index, "of": self.shard.of, "samples": samples, "fingerprint": fingerprint}
