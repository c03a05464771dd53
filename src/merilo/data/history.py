"""The earlier turns of a conversation, in the forms in which chat systems store them.

A turn is a text of one speaker. Accepted forms: a text (user and assistant alternate, the user first), an object with
`role` and `content` or `text`, an object with `type` and `content` (LangChain), and one with `type` and a nested `data`
object (LangChain's stored messages). Message objects with these attributes are read too. A content may be a list of
parts, of which the texts are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, runtime_checkable

from merilo.data import check
from merilo.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from merilo.data.check import JSON

USER: Final = "user"
ASSISTANT: Final = "assistant"
SYSTEM: Final = "system"
TOOL: Final = "tool"
ROLES: Final[Mapping[str, str]] = {
    **{each: each for each in (USER, ASSISTANT, SYSTEM, TOOL)},
    "human": USER,
    "ai": ASSISTANT,
    "bot": ASSISTANT,
    "model": ASSISTANT,
    "chatbot": ASSISTANT,
    "agent": ASSISTANT,
    "gpt": ASSISTANT,
    "developer": SYSTEM,
    "function": TOOL,
    "humanmessage": USER,
    "humanmessagechunk": USER,
    "aimessage": ASSISTANT,
    "aimessagechunk": ASSISTANT,
}
"""Role as chat systems write it, in lower case → role."""

SPEAKERS: Final = ("role", "type", "speaker", "from")
_TEXTS: Final = ("content", "text", "value")

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


@runtime_checkable
class _Message(Protocol):
    """A message object of LangChain (with a `type`) or OpenAI (with a `role`); neither library is imported for it."""

    content: object


TurnLike: TypeAlias = "Turn | str | Mapping[str, object]"


def history_of(given: object, field: str, problems: list[Problem]) -> tuple[Turn, ...] | None:
    """Return the turns in a value, or None if it is missing or empty. A turn without a text is left out."""
    if check.is_missing(given):
        return None
    if not check.is_ordered(given):
        advice = 'write [{"role": "user", "content": "..."}, ...]'
        problems.append(Problem("a list of turns", check.shown(given), field, advice=advice))
        return None
    items = list(islice(given, MAX_TURNS + 1))
    if len(items) > MAX_TURNS:
        problems.append(Problem(f"at most {MAX_TURNS:,} turns", "more", field))
        return None
    turns = [turn_of(item, place, f"{field}[{place}]", problems) for place, item in enumerate(items)]
    found = tuple(turn for turn in turns if turn is not None)
    if sum(len(turn.text) for turn in found) > MAX_CHARACTERS:
        problems.append(Problem(f"at most {MAX_CHARACTERS:,} characters in all turns", "more", field))
        return None
    return found or None


def turn_of(item: object, place: int, field: str, problems: list[Problem]) -> Turn | None:
    """Return the turn in an item; None if it has no text, such as a call of a tool, or after noting a problem.

    `place`: the position in the conversation, which gives the role of a plain text.
    """
    if isinstance(item, Turn):
        return item
    if isinstance(item, str):
        return _turn((USER, ASSISTANT)[place % 2], item, field, problems)
    if isinstance(item, _Message):
        item = {"role": getattr(item, "role", None) or getattr(item, "type", None), "content": item.content}
    if not check.is_mapping(item):
        problems.append(Problem("a turn: a text, or an object with role and content", check.shown(item), field))
        return None
    inner = item.get("data")
    message = {**item, **inner} if check.is_mapping(inner) else item  # LangChain stores a message inside `data`
    named = next((item[name] for name in SPEAKERS if name in item), None)
    role = ROLES.get(named.casefold()) if isinstance(named, str) else None
    if role is None:
        needed = "a role: user, assistant, system or tool"
        problems.append(Problem(needed, check.shown(named), f"{field}.role"))
        return None
    content = next((message[name] for name in _TEXTS if name in message), None)
    return _turn(role, content, f"{field}.content", problems)


def text_of_message(item: object) -> object:
    """Return the text of an object with the text of a message or answer; any other value as it is."""
    if not check.is_mapping(item):
        return item
    return next((item[name] for name in (*_TEXTS, "answer") if isinstance(item.get(name), str)), item)


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


def _turn(role: str, content: object, field: str, problems: list[Problem]) -> Turn | None:
    if check.is_list(content):
        content = "\n".join(texts_in(content))
    text = check.text(content, field, problems)
    return Turn(role, text) if text is not None and text.strip() else None


def texts_in(content: Iterable[object]) -> list[str]:
    """Return the texts among the parts of a message; images and calls have none."""
    found = [part.get("text") if check.is_mapping(part) else part for part in content]
    return [each for each in found if isinstance(each, str)]
