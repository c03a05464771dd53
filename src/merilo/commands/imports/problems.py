"""Problems of a file of scores as one error, with equal problems grouped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from merilo.data.problem_report import grouped_messages
from merilo.errors import DataError
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.errors import Problem

_PROBLEMS_SHOWN: Final = 20
_VALUES_SHOWN: Final = 3


def refused(problems: Sequence[Problem], *, name: str, records: int) -> DataError:
    """Return the error that nothing was imported; each problem is listed once, with the values found and first places.

    `records`: number of records that were read, good and bad.
    """
    if len(problems) == 1:
        return DataError.of(*problems)
    lines = grouped_messages(_merged(problems), records=records)
    places = {each.line for each in problems if each.line is not None}
    which = f"{count(len(places), 'invalid record')} of {records:,}" if places else count(len(problems), "problem")
    first = f"{name}: nothing was imported ({which})."
    more = [f"... and {len(lines) - _PROBLEMS_SHOWN} more."] if len(lines) > _PROBLEMS_SHOWN else []
    return DataError("\n".join([first, *lines[:_PROBLEMS_SHOWN], *more]), problems=tuple(problems))


def _merged(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems; those that differ only in line and found value get one text of all found values."""
    found: dict[Problem, dict[str, None]] = {}
    for each in problems:
        found.setdefault(_without_value(each), {})[each.got] = None
    return [replace(each, got=_listed([*found[_without_value(each)]])) for each in problems]


def _without_value(problem: Problem) -> Problem:
    return replace(problem, line=None, got="")


def _listed(values: Sequence[str]) -> str:
    more = len(values) - _VALUES_SHOWN
    return ", ".join(values[:_VALUES_SHOWN]) + (f" and {more:,} others" if more > 0 else "")
