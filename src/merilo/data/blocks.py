"""Markdown as blocks: headings, table rows, code, list items and paragraphs, each with its position.

Blocks cover everything except white space. Only markup that moves sentence boundaries is recognised; a text without
Markdown is returned as its paragraphs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from merilo.data.spans import Span

_LINE: Final = re.compile(
    r"""
    (?P<blank>\s*(?:\n|\Z))
    | [ \t]*+ (?P<fence>```++|~~~++)
    | [ ]{0,3} (?P<heading>\#{1,6}[ \t])
    | [ \t]*+ (?P<row>\|)
    | [ \t]*+ (?P<rule>(?:-{3,}+|={3,}+|\*{3,}+|_{3,}+)[ \t\r]*+(?:\n|\Z))
    | (?P<item>[ \t>]*+ (?:[-*+•–]|\d{1,3}[.)]) [ \t]++ (?=\S))
    | (?P<quote>[ \t]*+ >[ \t>]*+)
    """,
    re.VERBOSE,
)
_MAY_INTERRUPT: Final = re.compile(r"[ \t>]*+(?:[-*+•–]|1[.)])")  # as in CommonMark
_CLOSING_MARKS: Final = frozenset(".!?…。！？｡:;,，、-")
_TITLE_CHARS: Final = 80
_TITLE_SHARE: Final = 0.6


@dataclass(slots=True)
class Block:
    """A stretch of the text; `marks` are list and quote markers in it, which are not part of its prose.

    `is_prose` is False for a block that is a single unit: a heading, a table row, code.
    """

    start: int
    end: int
    is_prose: bool = True
    marks: list[Span] = field(default_factory=list)


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a text, in order, without overlaps and with only white space between them."""
    reader = _Reader(text)
    position, size = 0, len(text)
    while position < size:
        found = _LINE.match(text, position)
        kind = found.lastgroup if found else None
        mark_end = found.end() if found else position
        if kind == "blank":
            yield from reader.close()
            position = mark_end
            continue
        end = _line_end(text, position)
        match kind:
            case "fence":
                end = _code_end(text, end, text[position:mark_end].strip())
                yield from reader.unit(position, end)
            case "heading" | "row":
                yield from reader.unit(position, end)
            case "rule":
                yield from reader.ruled(position, end)
            case _:
                yield from reader.line(position, end, kind, mark_end)
        position = end
    yield from reader.close()


class _Reader:
    """The current block, and the state that determines how the next line continues it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.block: Block | None = None
        self.in_list = False
        self.in_quote = False

    def close(self) -> Iterator[Block]:
        """Yield the current block, if any, and end it."""
        if self.block:
            yield self.block
        self.block = None

    def unit(self, start: int, end: int) -> Iterator[Block]:
        """Yield the current block, then these lines as one unit."""
        yield from self.close()
        yield Block(start, end, is_prose=False)
        self.in_list = self.in_quote = False

    def ruled(self, start: int, end: int) -> Iterator[Block]:
        """Yield the block above a ruled line together with the line; the line alone if there is no such block."""
        if self.block is None:
            yield from self.unit(start, end)
        else:
            self.block.marks.append(Span(start, end))
            self.block.end = end
            yield from self.close()
        self.in_list = self.in_quote = False

    def line(self, start: int, end: int, kind: str | None, mark_end: int) -> Iterator[Block]:
        """Add a line of prose, with or without a list or quote marker; yield the block that it ends."""
        is_item, is_quote = kind == "item", kind == "quote"
        if is_item and self.block and not self.in_list and not _MAY_INTERRUPT.match(self.text, start):
            is_item = False  # prose whose line begins with a year or the like
        if self.block is None or is_item or (is_quote and not self.in_quote) or self.follows_title(start, end):
            self.in_list = is_item or (self.in_list and self.text[start] in " \t")
            yield from self.close()
            self.block = Block(start, end)
            self.in_quote = is_quote
        self.block.end = end
        if is_item or is_quote:
            self.block.marks.append(Span(start, mark_end))

    def follows_title(self, start: int, end: int) -> bool:
        """Return True if the current block is a title and the next line starts a new block.

        A title is one short line without final punctuation, followed by a longer one: "Eiffel Tower", a line break,
        "The tower was built from 1887 to 1889.". It is not a wrapped line, because wrapped lines have about the same
        length.
        """
        block, text = self.block, self.text
        if block is None:
            return False
        length = block.end - block.start
        return (
            length <= _TITLE_CHARS
            and length < (end - start) * _TITLE_SHARE
            and text[start].isupper()
            and "\n" not in text[block.start : block.end - 1]
            and text[block.start : block.end].rstrip()[-1:] not in _CLOSING_MARKS
        )


def _line_end(text: str, start: int) -> int:
    found = text.find("\n", start)
    return len(text) if found < 0 else found + 1


def _code_end(text: str, start: int, fence: str) -> int:
    """Return the end of the code that this fence opened: after the closing fence, otherwise at the end of the text."""
    closing = re.compile(rf"^[ \t]*{re.escape(fence)}[{fence[0]}]*[ \t\r]*$", re.MULTILINE).search(text, start)
    return _line_end(text, closing.end()) if closing else len(text)
