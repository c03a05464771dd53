"""How often a judge is wrong, by how sure it is: what a cascade needs to know of its first judge.

A model's card and `merilo judge check --json` hold such tables, one for each kind of question.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, lgamma, log
from typing import TYPE_CHECKING, Final, Self

from merilo.errors import UsageError
from merilo.judging.untyped import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CONFIDENCE: Final = 0.95
"""Of the one-sided limit of the error."""
MOST_RECORDS: Final = 10_000_000
"""Of a table; nobody has labelled so many."""
_NEGLIGIBLE: Final = 1e-17
MOST_STEPS: Final = 200
"""Rows of a table; more would not move a threshold by anything that matters."""
DIGITS: Final = 6
"""To which a sureness is rounded."""


@dataclass(frozen=True, slots=True)
class Step:
    """The records of which a judge was at least so sure."""

    sureness: float
    """The judge's probability that what its verdict says, yes or no, is right."""
    answered: int
    errors: int
    """Those of them where people said otherwise."""


@dataclass(frozen=True, slots=True)
class Sure:
    """From which sureness on a judge is let answer, and what that is worth."""

    least: float
    answered_rate: float
    """The share of the records that it answered so."""
    answered: int
    errors: int


@dataclass(frozen=True, slots=True)
class Reliability:
    """The errors of a judge on held-out records of one kind of question, from the surest verdict to the least sure.

    As JSON: `{"rule": TEXT, "records": N, "sureness": [...], "answered": [...], "errors": [...]}`, the last three with
    an entry for each step; `answered` and `errors` count all records that are at least as sure, so they grow.
    """

    rule: str
    """In words: which records, and what counts as yes."""
    records: int
    """All of them, also those on which the judge gave no probability."""
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, rule: str, verdicts: Iterable[tuple[float | None, bool]]) -> Self:
        """The table of verdicts, each as its sureness (None where the judge gives none) and whether it is wrong."""
        found = list(verdicts)
        told = sorted(((sure, wrong) for sure, wrong in found if sure is not None), key=lambda each: -each[0])
        room = max(1, -(-len(told) // MOST_STEPS))
        steps: list[Step] = []
        errors = 0
        for place, (sure, wrong) in enumerate(told, start=1):
            errors += wrong
            last = place == len(told) or round(told[place][0], DIGITS) != round(sure, DIGITS)
            if last and (place == len(told) or place - (steps[-1].answered if steps else 0) >= room):
                steps.append(Step(round(sure, DIGITS), place, errors))
        return cls(rule, len(found), tuple(steps))

    @classmethod
    def from_fields(cls, fields: object) -> Self:
        """The table that `to_fields` wrote. Raises UsageError for anything else."""
        record = as_object(fields) or {}
        columns = [as_list(record.get(name)) or [] for name in ("sureness", "answered", "errors")]
        rule, records = record.get("rule"), record.get("records")
        fault = "a field is missing"
        if isinstance(rule, str) and isinstance(records, int) and not isinstance(records, bool):
            try:
                if any(len(column) != len(columns[0]) for column in columns):
                    raise ValueError("its columns have different lengths")  # noqa: TRY301  told as any other fault
                steps = tuple(_step(*row) for row in zip(*columns, strict=True))
                _check(steps, records)
                return cls(rule, records, steps)
            except ValueError as error:
                fault = str(error)
        raise UsageError(f"A table of reliability cannot be read ({fault}); make it anew with merilo judge check.")

    def to_fields(self) -> dict[str, object]:
        """This table as JSON-able columns."""
        return {
            "rule": self.rule,
            "records": self.records,
            "sureness": [step.sureness for step in self.steps],
            "answered": [step.answered for step in self.steps],
            "errors": [step.errors for step in self.steps],
        }

    def sure(self, max_error: float) -> Sure | None:
        """The smallest sureness for which the error among the answered records is, with 95 % confidence, at most so.

        The limit is that of Clopper & Pearson, Biometrika 26 (1934), from above. It takes the records for independent
        and looks at one threshold after another, so a run checks a part of what it answers. None where no threshold
        reaches it.
        """
        most = 1 - CONFIDENCE
        fitting = [step for step in self.steps if _chance_of_so_few(step.errors, step.answered, max_error) <= most]
        if not fitting:
            return None
        step = fitting[-1]
        return Sure(step.sureness, step.answered / self.records, step.answered, step.errors)


def _chance_of_so_few(errors: int, answered: int, rate: float) -> float:
    """The chance of at most so many errors at this rate; at most 5 % exactly if the upper limit is at most the rate."""
    if errors >= answered * rate:
        return 1.0  # the limit lies above the share that was seen
    total = 0.0
    for count in range(errors, -1, -1):  # the terms fall from here on, since fewer than the rate were seen
        ways = lgamma(answered + 1) - lgamma(count + 1) - lgamma(answered - count + 1)
        term = exp(ways + count * log(rate) + (answered - count) * log(1 - rate))
        total += term
        if term <= total * _NEGLIGIBLE:
            break
    return total


def tables_from(fields: object) -> Mapping[str, Reliability]:
    """Tables by kind of question, as a card or a check holds them. Raises UsageError."""
    record = as_object(fields)
    if record is None:
        raise UsageError("Tables of reliability are a JSON object of kinds; make them anew with merilo judge check.")
    return {kind: Reliability.from_fields(table) for kind, table in record.items()}


def _check(steps: Sequence[Step], records: int) -> None:
    if not 0 <= records <= MOST_RECORDS:
        raise ValueError(f"the number of its records is not between 0 and {MOST_RECORDS:,}")
    for earlier, step in pairwise(steps):
        if step.sureness >= earlier.sureness or step.answered <= earlier.answered or step.errors < earlier.errors:
            raise ValueError("its steps are in no order")
    if any(not 0 <= step.sureness <= 1 or not 0 <= step.errors <= step.answered <= records for step in steps):
        raise ValueError("a step cannot be")


def _step(sureness: object, answered: object, errors: object) -> Step:
    given = (sureness, answered, errors)
    if any(isinstance(each, bool) for each in given) or not isinstance(sureness, int | float):
        raise ValueError("a step is no three numbers")
    if not isinstance(answered, int) or not isinstance(errors, int):
        raise ValueError("a step is no three numbers")  # noqa: TRY004  told as any other fault of the table
    if not 0 <= sureness <= 1:
        raise ValueError("a sureness is not between 0 and 1")
    return Step(float(sureness), answered, errors)
