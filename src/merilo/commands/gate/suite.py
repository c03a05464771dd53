"""A suite of gates, from a file or from arguments."""

from collections.abc import Mapping
from dataclasses import field, fields
from difflib import get_close_matches
from enum import StrEnum
from os import PathLike
from typing import Annotated, Any, Final

from pydantic import Field, StrictBool, StrictStr, ValidationError
from pydantic.dataclasses import dataclass

from merilo.commands.gate.result import CannotTell, FirstRun
from merilo.data.check import shown
from merilo.data.config_files import read_document
from merilo.errors import UsageError
from merilo.stats.compare import Policy

_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Drop = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]


class LabelPolicy(StrEnum):
    """Whether gates need human labels."""

    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Suite:
    """The gates of a run. Raises ValidationError for an invalid value; the functions below turn it into UsageError."""

    minimums: dict[str, _Number] = field(default_factory=dict[str, float])
    """Metric, by full text or name → its minimum mean; its maximum mean if lower is better."""
    max_drop: _Drop | dict[str, _Drop] | None = None
    """Largest allowed loss against the baseline, on the scale of the metric: one number for every metric that both
    runs have, or one per metric. A rise if lower is better.
    """
    cluster: StrictStr | None = None
    """Field or metadata key; samples with equal values form one cluster. "": no clusters."""
    undefined: Policy | None = None
    """drop: leave Undefined outcomes out; worst: count them as the worst value. None: the gate passes or fails only if
    it does so in the best and the worst case.
    """
    cannot_tell: CannotTell | None = None
    """The final verdict for a gate that cannot tell; None: "cannot tell"."""
    trust_judge: StrictBool = False
    """True: the embedded judge alone may decide minimums. By default it decides nothing."""
    labels: LabelPolicy | None = None
    """required: without 20 labelled samples (pairs for a drop) a gate cannot tell."""
    maximums: dict[str, _Number] = field(default_factory=dict[str, float])
    """Metric for which lower is better, by full text or name → its maximum mean."""
    first_run: FirstRun | None = None
    """What a baseline that does not exist counts as; None: cannot tell."""

    @property
    def means(self) -> Mapping[str, float]:
        """Metric → the mean that it must reach: `minimums` and `maximums` together."""
        return {**self.minimums, **self.maximums}

    @property
    def empty(self) -> bool:
        """True if the suite has no gate."""
        return not self.means and (self.max_drop is None or self.max_drop == {})


_FIELDS: Final = tuple(each.name for each in fields(Suite))
_EXPECTED: Final = {
    "cluster": "the name of a field",
    "undefined": "drop or worst",
    "cannot_tell": "pass or fail",
    "trust_judge": "true or false",
    "labels": "required",
    "first_run": "pass or cannot tell or fail",
}
"""Field → what its value must be; the values of other fields are numbers."""


def read_suite(path: str | PathLike[str]) -> Suite:
    """Return the suite in a TOML, YAML or JSON file. Raises UsageError with the file and the key."""
    return suite_of(read_document(path), source=str(path))


def suite_of(record: Mapping[str, object], *, source: str) -> Suite:
    """Return the suite in a mapping of plain values. Raises UsageError for an unknown key, with a similar known one."""
    for key in record:
        if key not in _FIELDS:
            near = get_close_matches(key, _FIELDS, n=1)
            advice = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(_FIELDS)}."
            raise UsageError(f"{source}: unknown key {key!r}; {advice}")
    try:
        return _checked(record)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def suite_from(
    path: str | PathLike[str] | None,
    *,
    minimums: Mapping[str, float] | None = None,
    maximums: Mapping[str, float] | None = None,
    **others: object,
) -> Suite:
    """Return the suite in a file, or an empty one; arguments other than None override its fields. Raises UsageError."""
    suite = Suite() if path is None else read_suite(path)
    given = _checked({"minimums": minimums or {}, "maximums": maximums or {}})
    return _checked(
        {
            **{name: getattr(suite, name) for name in _FIELDS},
            **{name: value for name, value in others.items() if value is not None},
            "minimums": _without(suite.minimums, given.maximums) | given.minimums,
            "maximums": _without(suite.maximums, given.minimums) | given.maximums,
        }
    )


def _without(limits: Mapping[str, float], others: Mapping[str, float]) -> dict[str, float]:
    return {metric: limit for metric, limit in limits.items() if metric not in others}


def _checked(record: Mapping[str, Any]) -> Suite:  # Any: values of a file, checked here
    """Return the suite with these fields. Raises UsageError that names the first wrong one."""
    try:
        suite = Suite(**record)
    except ValidationError as error:
        raise UsageError(_sentence(error, record)) from None
    if both := suite.minimums.keys() & suite.maximums.keys():
        raise UsageError(f"{min(both)} is in minimums and in maximums. Give one.")
    return suite


def _sentence(error: ValidationError, record: Mapping[str, Any]) -> str:  # Any: as above
    problems = error.errors(include_url=False, include_context=False)
    name = str(problems[0]["loc"][0])
    by_metric = name not in _EXPECTED and isinstance(record[name], Mapping)
    own = [each for each in problems if each["loc"][0] == problems[0]["loc"][0]]
    problem = own[-1 if by_metric else 0]  # the last one of max_drop is that of a mapping
    where = f"{name} of {problem['loc'][-1]}" if by_metric else name
    got = shown(problem["input"])
    if problem["type"] == "dict_type" and name != "max_drop":
        return f"{name} must give a number for each metric, as in faithfulness = 0.8; got {got}."
    if problem["type"] == "greater_than_equal":
        return f"{where} must be 0 or more, got {problem['input']:g}; write 0.05 to allow a drop of 0.05."
    return f"{where} must be {_EXPECTED.get(name, 'a finite number')}, got {got}."
