"""Rows of published definitions: what a variant takes from its base, and what it changes."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from metrics.test_contract import Lawful

from merilo.metrics.base import Card
from merilo.metrics.registry import published_metrics
from merilo.metrics.text import parameters_of
from merilo.metrics.variants import variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Base(Lawful):
    """A definition with parameters."""

    name: ClassVar[str] = "system:base"
    card: ClassVar[Card] = Card("Some metric.")
    extra: ClassVar[str]

    first: int = 1
    second: str = "text"


def test_a_variant_changes_defaults_and_declarations_alone() -> None:
    """Changed parameters keep their place and their type; everything else is the base's."""
    made = variant(Base, "system:other_name", "Another one.", second="changed", version=2)
    assert (made.name, made.version, made.__name__, made.__doc__) == (
        "system:other_name",
        2,
        "OtherName",
        "Another one.",
    )
    assert made.card is Base.card
    assert [(each.name, each.allowed, each.default) for each in parameters_of(made)] == [
        ("first", "a whole number", "1"),
        ("second", "text", "changed"),
    ]
    assert (made(), made(first=2)) == (made(second="changed"), made(first=2))
    assert made() != Base(second="changed")


def test_an_unknown_change_is_an_error() -> None:
    """A misspelled parameter raises instead of adding an attribute that nothing reads."""
    with pytest.raises(TypeError, match="system:other: Base has no parameter and no attribute 'secnod'"):
        variant(Base, "system:other", "Another one.", secnod="text")


def test_every_published_definition_has_a_docstring_and_readable_parameters() -> None:
    """Types of changed parameters are found in the module that declares them."""
    for metric in published_metrics():
        assert metric.__doc__
        assert metric.__doc__[0].isupper() or metric.__doc__.startswith(("1 ", "`"))
        parameters_of(metric)
