"""Definitions that differ from another one in parameters and declarations only: one row each; and cards.

A docstring can be the card of its definition. A blank line after the summary come the fields, each on a line that
begins with its label; what follows the next blank line is for readers of the code:

    Share of the contexts that are relevant.

    Formula: relevant contexts / contexts.
    Questions: One request for each context.
    Undefined: no context was retrieved | the user input is blank
    Use: To compare with numbers of that system.
    Not: For new work: a lost reply scores 0.
    See: context_relevance | context_precision
    Source: that system 1.0, metrics/relevance.py

A field that is left out is inherited. In a list `...` stands for what is inherited; `none` alone is an empty list.
Without docstrings (`python -OO`) the cards are empty.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from inspect import cleandoc, get_annotations
from types import new_class
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

from merilo.data.answer import Reading
from merilo.metrics.base import Card, Definition, Family, MetricDefaults

if TYPE_CHECKING:
    from collections.abc import Mapping
    from dataclasses import Field


D = TypeVar("D", bound="type[Definition]")

_LABELS: Final[Mapping[str, str]] = {
    "Meaning": "meaning",
    "Formula": "formula",
    "Questions": "questions",
    "Undefined": "undefined",
    "Use": "when",
    "Not": "when_not",
    "See": "relatives",
    "Source": "sources",
}
"""The labels in a docstring, and the fields of a card."""
_LISTS: Final = frozenset({"undefined", "relatives", "sources"})
_FIELD: Final = re.compile(rf"^({'|'.join(_LABELS)}): ", re.MULTILINE)
_WORD: Final = re.compile(r"(?:^|[_.])(\w)([^_.]*)")


def variant(base: D, name: str, doc: str = "", /, **changes: object) -> D:
    """Return a definition that is `base` under another name, with these changes.

    `doc`: its docstring. `changes`: new defaults of parameters, such as `temperature=0.3`, and other values of what a
    definition declares, such as `card` or `version`. A card does not name the definition itself as a relative.
    Raises TypeError for a change to something that `base` does not have.
    """
    parameters: dict[str, Field[Any]] = {each.name: each for each in fields(cast("Any", base))}  # Protocol
    body: dict[str, Any] = {
        "__doc__": cleandoc(doc) or f"As `{base.__name__}`.",
        "__module__": base.__module__,
        "__annotations__": {},
        "name": name,
    }
    for key, value in changes.items():
        if (parameter := parameters.get(key)) is not None:
            body["__annotations__"][key] = parameter.type
            body[key] = field(default=value, kw_only=parameter.kw_only)
        elif hasattr(base, key) or any(key in get_annotations(each) for each in base.__mro__):
            body[key] = (
                replace(value, relatives=tuple(each for each in value.relatives if each != name))
                if isinstance(value, Card)
                else value
            )
        else:
            raise TypeError(f"{name}: {base.__name__} has no parameter and no attribute {key!r}.")
    if not body["__annotations__"]:  # it is a dataclass as its base is; decorating it again takes 0.3 ms
        body["__slots__"] = ()
    class_name = _WORD.sub(lambda word: word[1].upper() + word[2], name.rpartition(":")[2])  # in camel case
    made: Any = new_class(class_name, (base,), exec_body=lambda space: space.update(body))
    if body["__annotations__"]:  # the fields are those of the base, and so are repr, equality and hash
        made = dataclass(frozen=True, slots=True, repr=False, eq=False)(made)
    return cast("D", made)  # it has the attributes of its base


class Described(MetricDefaults):
    """A metric of version 1, unless it declares otherwise, whose docstring is its card; see `described`."""

    __slots__ = ()

    name: ClassVar[str]
    version: ClassVar[int] = 1
    card: ClassVar[Card] = Card("")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "card" not in vars(cls):
            cls.card = described(cls.__doc__ or "", cls.card)


class RetrievalMetric(Described):
    """A metric of merilo's own, of the retriever."""

    __slots__ = ()

    reads_answer: ClassVar[Reading] = Reading.CLEAN
    card: ClassVar[Card] = Card("", family=Family.RETRIEVAL)


class ResponseMetric(Described):
    """A metric of merilo's own, of the response."""

    __slots__ = ()

    reads_answer: ClassVar[Reading] = Reading.CLEAN
    card: ClassVar[Card] = Card("", family=Family.RESPONSE)


def described(doc: str, inherited: Card) -> Card:
    """Return the card that a docstring describes; `inherited` as it is for a docstring without fields."""
    summary, _, rest = cleandoc(doc).partition("\n\n")
    fields = rest.partition("\n\n")[0]
    if not _FIELD.match(fields):
        return inherited
    _, *parts = _FIELD.split(fields)
    found: dict[str, Any] = {"summary": " ".join(summary.split())}  # Any: texts and tuples of texts
    for label, text in zip(parts[::2], parts[1::2], strict=True):
        name, line = _LABELS[label], " ".join(text.split())
        found[name] = line
        if name in _LISTS:
            items = ((getattr(inherited, name) if item == "..." else (item,)) for item in line.split(" | "))
            found[name] = tuple(dict.fromkeys(item for several in items for item in several if item != "none"))
    return replace(inherited, **found)
