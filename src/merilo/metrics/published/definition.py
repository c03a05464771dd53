"""The base class of published definitions, and their steps before the first request.

The docstring of a published definition is its card. A blank line after the summary come the fields, each on a line
that begins with its label; what follows the next blank line is for readers of the code:

    Share of the contexts that are relevant.

    Formula: relevant contexts / contexts.
    Questions: One request for each context.
    Undefined: no context was retrieved | the user input is blank
    Use: To compare with numbers of that system.
    Not: For new work: a lost reply scores 0.
    See: context_relevance | context_precision
    Source: that system 1.0, metrics/relevance.py

A field that is left out is inherited. The family is the system in the name. Without docstrings (`python -OO`) the
cards are empty.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from enum import StrEnum
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from merilo.errors import UsageError
from merilo.judging.kinds.completion import Completion
from merilo.metrics.base import Card, Kinds, MetricDefaults, choice
from merilo.metrics.variants import D, camel_case, variant

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from merilo.data.sample import Sample

BLANK: Final = "what is to be judged is blank (with ask_blank=false)"
"""The reason of an Undefined outcome."""

_LABELS: Final[Mapping[str, str]] = {
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
_COUNTS: Final = frozenset({"strictness", "tries", "max_citations"})
"""Parameters that are numbers of replies or of citations, at least 1."""
_FIELD: Final = re.compile(rf"^({'|'.join(_LABELS)}): ", re.MULTILINE)


class Published(MetricDefaults):
    """A published definition of a metric: its first version, judged by free text, unless it declares otherwise."""

    __slots__ = ()

    name: ClassVar[str]
    version: ClassVar[int] = 1
    card: ClassVar[Card] = Card("")
    asks = Kinds({Completion})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        card = cls.card if "card" in vars(cls) else described(cls.__doc__ or "", cls.card)
        name = getattr(cls, "name", "")
        relatives = tuple(each for each in card.relatives if each != name)
        cls.card = replace(card, family=name.partition(":")[0], relatives=relatives)

    def __post_init__(self) -> None:
        """Turn texts given for enumerations into their members, and check numbers of replies. Raises UsageError."""
        name = str(getattr(self, "name", type(self).__name__))
        for each in fields(cast("Any", self)):  # subclasses are dataclasses
            given = getattr(self, each.name)
            if isinstance(each.default, StrEnum):
                object.__setattr__(self, each.name, choice(type(each.default), given, metric=name, parameter=each.name))
            elif each.name in _COUNTS and given < 1:
                raise UsageError(f"Metric {name!r} takes {each.name}=a whole number of at least 1, got {given!r}.")


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
        found[name] = tuple(line.split(" | ")) if name in _LISTS else line
    return replace(inherited, **found)


def joined(sample: Sample) -> str:
    """Return the retrieved contexts as one text, with a line break between two. Raises MissingField."""
    return "\n".join(context.text for context in sample.contexts)


def is_blank(*texts: str) -> bool:
    """Return True if one of the texts holds only white space."""
    return not all(text.strip() for text in texts)


def bound(sample: Sample, needs: Collection[str], questions: int) -> int:
    """Return this maximum number of questions; 0 for a sample that lacks a needed field."""
    return questions if sample.present.issuperset(needs) else 0


def check_count(metric: str, parameter: str, count: int) -> None:
    """Raise UsageError unless a number of replies is at least 1."""
    if count < 1:
        raise UsageError(f"Metric {metric!r} takes {parameter}=a whole number of at least 1, got {count!r}.")


def ragas_variant(
    base: D, name: str, note: str = "", class_name: str = "", /, *, relatives: tuple[str, ...] = (), **changes: object
) -> D:
    """Return a definition as one release of ragas has it; its name begins with `ragas-RELEASE:`.

    `note`: the rest of its docstring, after the release. `relatives`: more metrics of the same release for its card.
    """
    system, _, metric = name.partition(":")
    release = system.removeprefix("ragas-")
    card = replace(
        base.card,
        relatives=(*base.card.relatives, *(f"{system}:{each}" for each in relatives)),
        sources=tuple(f"ragas {release}, {file}" for file in base.card.sources),
        family=system,
    )
    return variant(
        base,
        name,
        f"{base.__name__} as in ragas {release}{note}.",
        class_name or camel_case(metric) + release.rpartition(".")[2],
        card=card,
        **changes,
    )
