"""Slots of texts: numbers, dates, names and words of comparison in the forms of three languages."""

from __future__ import annotations

import pytest
from each_case import each_case

from merilo.judges.slots import dates_differ, equal_dates, equal_numbers, slots


@each_case(
    ("one", "other"),
    [
        ("4 hours", "240 minutes"),
        ("1,000 people", "1000 people"),
        ("1 000 рублей", "1000 руб."),
        ("1.000 Meter hoch und alt", "1000 Meter hoch und alt"),
        ("2 million euros", "2,000,000 euros"),
        ("12 %", "twelve percent"),
        ("12 Prozent", "zwölf Prozent"),
        ("1.2 km", "1200 m"),
        ("1,2 км", "1 200 метров"),
        ("vierundzwanzig Stunden", "24 Stunden"),
        ("две тысячи километров", "2000 км"),
        ("$1.5 million", "1.5 million dollars"),
        ("one hundred and five metres", "105 metres"),
        ("about 1,500 visitors", "1,497 visitors"),
        ("more than 100 rooms", "120 rooms"),
        ("四百二十公里", "420 km"),
        ("४५ किलोमीटर", "45 km"),
        ("٤٥ كيلومترا", "45 km"),
        ("４５キロメートル", "45 km"),
        ("3.5万米", "35 km"),
        ("935 degrees Celsius", "935 °C"),
    ],
)
def test_a_number_is_equal_in_every_form(one: str, other: str) -> None:
    """Formats, words, units and rounding do not make another number."""
    (mine,), (theirs,) = slots(one).numbers, slots(other).numbers
    assert equal_numbers(mine, theirs)


@each_case(
    ("one", "other"),
    [
        ("24 hours", "4 hours"),
        ("4 hours", "4 days"),
        ("5 km", "5 kg"),
        ("1.25 million litres", "1,250 million litres"),
        ("$40", "40 euros"),
        ("the second floor", "the third floor"),
        ("less than 100 rooms", "120 rooms"),
        ("3,000 seats", "2,000 seats"),
        ("-40 °C", "40 °C"),
        ("-40 °C", "-40 °F"),
        ("36米", "36公里"),
    ],
)
def test_another_value_or_unit_is_another_number(one: str, other: str) -> None:
    """What remains after conversion differs."""
    (mine,), (theirs,) = slots(one).numbers, slots(other).numbers
    assert not equal_numbers(mine, theirs)


@each_case(
    "text",
    [
        "12 March 2020",
        "March 12, 2020",
        "12th of March 2020",
        "2020-03-12",
        "12.03.2020",
        "12. März 2020",
        "12 марта 2020",
        "12 de marzo de 2020",
        "12 mars 2020",
    ],
)
def test_a_date_is_equal_in_every_order(text: str) -> None:
    """Day, month and year are found in each form, and another day differs."""
    (found,) = slots(f"It began on {text}.").dates
    (other,) = slots("It began on 13 March 2020.").dates
    assert found[:3] == (2020, 3, 12)
    assert dates_differ(found, other)


@pytest.mark.parametrize(
    ("one", "other"), [("in the 18th century", "in 1712"), ("in the 1990s", "in 1994"), ("03/04/2020", "3 April 2020")]
)
def test_a_date_within_another_is_no_difference(one: str, other: str) -> None:
    """A year of a century or decade fits it, and an ambiguous order fits both readings."""
    (mine,), (theirs,) = slots(one).dates, slots(other).dates
    assert equal_dates(mine, theirs)


def test_a_year_is_a_date_and_a_count_is_not() -> None:
    """Four digits before a plural are a count."""
    assert [each.year for each in slots("It opened in 1963.").dates] == [1963]
    assert [each.raw for each in slots("It seats 1963 people.").numbers] == [(1963.0,)]


def test_phrases_of_comparison_are_read_as_one() -> None:
    """No more than is at most, and not only denies nothing."""
    assert [(axis, pole) for _, axis, pole in slots("no more than five rooms").poles] == [("bound", -1)]
    assert slots("not only the roof").negations == ()
    assert len(slots("it is not allowed").negations) == 1
    assert slots("No, it is allowed.").negations == ()
