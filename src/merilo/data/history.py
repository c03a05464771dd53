"""The earlier turns of a conversation: what a sample keeps of them, and what judges and pages read.

`merilo.data.messages` reads them from the forms in which chat systems store them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.check import JSON

USER: Final = "user"
ASSISTANT: Final = "assistant"
SYSTEM: Final = "system"
TOOL: Final = "tool"
MAX_TURNS: Final = 1_000
"""Maximum number of turns in one history."""
MAX_CHARACTERS: Final = 2_000_000
"""Maximum number of characters of all turns of one history."""
READ_TURNS: Final = 10
"""Number of last turns that a judge reads."""
READ_CHARACTERS: Final = 1_500
"""Number of characters of each turn that a judge reads."""
_SHOWN_TURNS: Final = 6
_SHOWN_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier turn of a conversation."""

    role: str
    """`user`, `assistant`, `system` or `tool`."""
    text: str

    def to_record(self) -> dict[str, JSON]:
        """Return the turn as a JSON object."""
        return {"role": self.role, "content": self.text}

    def short(self, most: int) -> str:
        """Return `role: text`, with at most `most` characters of the text."""
        return f"{self.role}: {self.text if len(self.text) <= most else self.text[:most] + ' ...'}"


TurnLike: TypeAlias = "Turn | str | Mapping[str, object]"


def read_turns(turns: Sequence[Turn] | None) -> tuple[str, ...]:
    """Return the turns that a judge reads, as texts: the last ones of the user and the assistant, shortened."""
    spoken = [turn for turn in turns or () if turn.role in {USER, ASSISTANT}]
    return tuple(turn.short(READ_CHARACTERS) for turn in spoken[-READ_TURNS:])


def shown_history(turns: Sequence[Turn] | None) -> str | None:
    """Return the last turns, shortened, as lines for a page that shows the sample; None without a history."""
    if not turns:
        return None
    more = [f"({len(turns) - _SHOWN_TURNS:,} earlier turns)"] if len(turns) > _SHOWN_TURNS else []
    return "\n".join([*more, *(turn.short(_SHOWN_CHARACTERS) for turn in turns[-_SHOWN_TURNS:])])
