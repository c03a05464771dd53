"""What is wrong with a file of scores, in as few sentences as tell it: equal faults once, with their places."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from merilo.data.faults import told_once
from merilo.errors import DataError
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.errors import Problem

_FAULTS_SHOWN: Final = 20
_VALUES_SHOWN: Final = 3


def refused(problems: Sequence[Problem], *, name: str, records: int) -> DataError:
    """The error that nothing was brought in, with each fault once: what came instead, and the first places.

    `records`: how many were read, good and bad.
    """
    if len(problems) == 1:
        return DataError.of(*problems)
    told = told_once(_alike(problems), records=records)
    places = {each.line for each in problems if each.line is not None}
    which = f"{count(len(places), 'record')} of {records:,}" if places else count(len(problems), "fault")
    first = f"{name}: nothing was brought in, for {which} cannot be read as scores."
    more = [f"... and {len(told) - _FAULTS_SHOWN} more."] if len(told) > _FAULTS_SHOWN else []
    return DataError("\n".join([first, *told[:_FAULTS_SHOWN], *more]), problems=tuple(problems))


def _alike(problems: Sequence[Problem]) -> list[Problem]:
    """The same with one text for all that came where one and the same was expected of a field."""
    came: dict[Problem, dict[str, None]] = {}
    for each in problems:
        came.setdefault(_sort(each), {})[each.got] = None
    return [replace(each, got=_listed([*came[_sort(each)]])) for each in problems]


def _sort(problem: Problem) -> Problem:
    return replace(problem, line=None, got="")


def _listed(values: Sequence[str]) -> str:
    more = len(values) - _VALUES_SHOWN
    return ", ".join(values[:_VALUES_SHOWN]) + (f" and {more:,} others" if more > 0 else "")
