"""What an adapter of files yields for each sample: a record, its scores, and what the file does not state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.errors import Problem


@dataclass(frozen=True, slots=True)
class Item:
    """One trace, test case or row of a file, at a place (line or record, from 1).

    - `record`: the sample as a record with merilo's field names; None if this is not a sample or cannot be read;
    - `problems`: what is wrong with a line or record that cannot be read;
    - `scores`: the scores that the file states, NaN for one without a value;
    - `reason`: why this is not a sample; blank if it is one, or cannot be read;
    - `missing`: the parts that it does not state;
    - `kinds`: the number of spans by kind; empty for a file without spans.
    """

    place: int
    record: dict[str, Any] | None = None  # Any: JSON
    problems: tuple[Problem, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    reason: str = ""
    missing: tuple[str, ...] = ()
    id: str = ""
    kinds: Mapping[str, int] = field(default_factory=dict[str, int])
