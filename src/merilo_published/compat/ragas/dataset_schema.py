"""ragas' samples and data sets. Fields have ragas' names; those of ragas 0.1 (`question`, `contexts`) are read too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from merilo.data import check
from merilo.data.load import load
from merilo.data.sample import FIELDS, BadRecord, Sample
from merilo.errors import DataError, UsageError

from ..missing import Refused

if TYPE_CHECKING:
    from os import PathLike

FORMER: Final[Mapping[str, str]] = {
    "question": "user_input",
    "contexts": "retrieved_contexts",
    "answer": "response",
    "ground_truth": "reference",
    "ground_truths": "reference",
}
"""Name in ragas 0.0 and 0.1 → today's name."""
_OTHER: Final = ("multi_responses", "rubrics", "persona_name", "query_style", "query_length")
"""Fields of a sample that are stored and returned, and that no metric of merilo reads."""


@dataclass(kw_only=True)
class SingleTurnSample:
    """One question with what was retrieved and answered; unknown values are None."""

    user_input: str | None = None
    retrieved_contexts: Sequence[str] | None = None
    reference_contexts: Sequence[str] | None = None
    retrieved_context_ids: Sequence[str | int] | None = None
    reference_context_ids: Sequence[str | int] | None = None
    response: str | None = None
    multi_responses: Sequence[str] | None = None
    reference: str | None = None
    rubrics: Mapping[str, str] | None = None
    persona_name: str | None = None
    query_style: str | None = None
    query_length: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are not None."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def model_dump(self, *, exclude_none: bool = True, **_: object) -> dict[str, Any]:
        """Return the fields, as pydantic does for ragas' class."""
        return self.to_dict() if exclude_none else dict(vars(self))

    def get_features(self) -> list[str]:
        """Return the names of the fields that are not None."""
        return list(self.to_dict())


class MultiTurnSample(Refused):
    """A conversation in ragas, which merilo does not evaluate as one sample."""

    advice = (
        "merilo does not evaluate a MultiTurnSample. Give each turn as a SingleTurnSample with its own question, "
        "contexts and response."
    )


class EvaluationDataset:
    """Samples in order."""

    def __init__(self, samples: Iterable[SingleTurnSample] = (), **_: object) -> None:
        self.samples = [_checked(sample) for sample in samples]

    @classmethod
    def from_list(cls, data: Iterable[Mapping[str, Any] | SingleTurnSample], **_: object) -> EvaluationDataset:
        """Return a data set from mappings of fields. Raises DataError for a record that is none."""
        return cls(sample_from(record) for record in data)

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Sequence[Any]]) -> EvaluationDataset:
        """Return a data set from columns."""
        return cls.from_list(_rows(mapping))

    @classmethod
    def from_pandas(cls, dataframe: Any, **_: object) -> EvaluationDataset:
        """Return a data set from a pandas data frame; NaN is missing."""
        return cls.from_list(dataframe.to_dict("records"))

    from_hf_dataset = from_list

    @classmethod
    def from_jsonl(cls, path: str | PathLike[str], **_: object) -> EvaluationDataset:
        """Return the data set in a JSON Lines file."""
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return cls.from_list(json.loads(line) for line in lines if line.strip())

    def to_list(self) -> list[dict[str, Any]]:
        """Return the samples as mappings."""
        return [sample.to_dict() for sample in self.samples]

    def to_jsonl(self, path: str | PathLike[str]) -> None:
        """Write the samples as JSON Lines."""
        lines = (json.dumps(record, ensure_ascii=False) for record in self.to_list())
        Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def to_pandas(self) -> Any:
        """Return the samples as a pandas data frame. Raises UsageError without pandas."""
        return pandas_frame(self.to_list())

    def features(self) -> set[str]:
        """Return the names of the fields that the first sample has."""
        return set(self.samples[0].get_features()) if self.samples else set()

    def get_sample_type(self) -> type[SingleTurnSample]:
        """Return the class of the samples."""
        return SingleTurnSample

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[SingleTurnSample]:
        return iter(self.samples)

    def __getitem__(self, place: int | slice) -> Any:
        """Return a sample, or the data set of a slice."""
        if isinstance(place, slice):
            return EvaluationDataset(self.samples[place])
        return self.samples[place]

    def __repr__(self) -> str:
        return f"EvaluationDataset(features={sorted(self.features())}, len={len(self)})"


def dataset_from(given: object, column_map: Mapping[str, str] | None = None) -> EvaluationDataset:
    """Return the data set that a script passes: ours, a Hugging Face data set, a data frame, columns, or records.

    `column_map`: ragas' name → the column that has it. Raises DataError for anything else.
    """
    if isinstance(given, EvaluationDataset):
        return given
    if hasattr(given, "to_dict") and hasattr(given, "iloc"):
        frame: Any = given  # a data frame, known by its methods
        given = frame.to_dict("records")
    columns = isinstance(given, Mapping)
    records: Any = _rows(cast("Mapping[str, Sequence[Any]]", given)) if columns else given  # checked below
    if not isinstance(records, Iterable) or isinstance(records, str):
        raise DataError(f"A data set must be an EvaluationDataset or a list of records, got {type(records).__name__}.")
    renamed = {column: name for name, column in (column_map or {}).items()}
    return EvaluationDataset(sample_from(record, renamed) for record in cast("Iterable[Mapping[str, Any]]", records))


def sample_from(
    given: Mapping[str, Any] | SingleTurnSample, renamed: Mapping[str, str] | None = None
) -> SingleTurnSample:
    """Return a sample from a mapping of fields; other keys are left out. Raises DataError for a conversation."""
    if isinstance(given, SingleTurnSample):
        return given
    record: object = given
    if not isinstance(record, Mapping):
        _refuse(record)
    fields: dict[str, Any] = {}
    for key, value in given.items():
        name = (renamed or {}).get(key, key)
        name = FORMER.get(name, name)
        if (name in FIELDS or name in _OTHER) and not check.is_missing(value):
            texts = [value] if key == "contexts" and isinstance(value, str) else value  # as ragas 0.1 accepts it
            fields.setdefault(name, _plain(name, texts))
    if isinstance(fields.get("user_input"), list | tuple):
        MultiTurnSample()
    return SingleTurnSample(**fields)


def merilo_samples(dataset: EvaluationDataset) -> list[Sample]:
    """Return the samples for merilo, numbered from 1. Raises DataError for a value that does not fit its field."""
    found: list[Sample] = []
    records = ({name: value for name, value in each.to_dict().items() if name in FIELDS} for each in dataset)
    for number, sample in enumerate(load([{"id": str(at), **record} for at, record in enumerate(records, 1)]), 1):
        if isinstance(sample, BadRecord):
            raise DataError(f"Sample {number}: {' '.join(map(str, sample.problems))}")
        found.append(sample)
    return found


def pandas_frame(records: Sequence[Mapping[str, Any]]) -> Any:
    """Return records as a pandas data frame. Raises UsageError without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("to_pandas() needs pandas: pip install pandas.") from None
    return pd.DataFrame(list(records))


def _plain(name: str, value: Any) -> Any:
    """Return a value as lists and texts: arrays become lists, a list of references becomes one text."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return "\n".join(cast("list[str]", value)) if name == "reference" and isinstance(value, list) else value


def _rows(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _checked(sample: object) -> SingleTurnSample:
    return sample if isinstance(sample, SingleTurnSample) else _refuse(sample)


def _refuse(sample: object) -> NoReturn:
    raise DataError(f"A sample must be a SingleTurnSample or a mapping of its fields, got {type(sample).__name__}.")
