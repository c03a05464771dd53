"""axion's data set item, as a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from merilo.data import check
from merilo.data.sample import Sample
from merilo.errors import DataError

if TYPE_CHECKING:
    from merilo.data.sample import JSON

FIELD_OF: Final[Mapping[str, str]] = {
    "user_input": "query",
    "retrieved_contexts": "retrieved_content",
    "response": "actual_output",
    "reference": "expected_output",
}
"""axion's name of each field of a sample that a metric may need, in the order of messages."""


@dataclass(frozen=True, kw_only=True)
class DatasetItem:
    """One case under axion's names; unknown values are None.

    Raises DataError for a value that does not fit its field.
    """

    query: str | None = None
    retrieved_content: Sequence[str] | None = None
    expected_output: str | None = None
    actual_output: str | None = None
    id: str | None = None
    """Returned with the results, which are always in data set order."""
    conversation: Sequence[Mapping[str, str]] | None = None
    """Messages with `role` (user or assistant) and `content`, for AnswerRelevancy over all turns."""

    def __post_init__(self) -> None:
        for name in ("query", "expected_output", "actual_output", "id"):
            value: object = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise DataError(f"DatasetItem takes {name} as text, got {value!r}.")
        content: object = self.retrieved_content
        texts = isinstance(content, Sequence) and not isinstance(content, str)
        if content is not None and not (texts and all(isinstance(text, str) for text in self.retrieved_content or ())):
            raise DataError(f"DatasetItem takes retrieved_content as a list of texts, got {content!r}.")

    def lacking(self, needs: frozenset[str]) -> tuple[str, ...]:
        """Return the names, in axion, of the needed fields that are missing; a blank text is missing."""
        return tuple(name for field, name in FIELD_OF.items() if field in needs and self._is_missing(name))

    def sample(self, id: str) -> Sample:
        """Return this item as a sample with this id."""
        talk: JSON = [dict(message) for message in self.conversation or ()]
        return Sample(
            id,
            user_input=self.query,
            retrieved_contexts=self.retrieved_content,
            response=self.actual_output,
            reference=self.expected_output,
            metadata=None if self.conversation is None else {"conversation": talk},
        )

    def _is_missing(self, name: str) -> bool:
        value: str | Sequence[str] | None = getattr(self, name)
        return value is None or (isinstance(value, str) and not value.strip())


def item_from(given: DatasetItem | Mapping[str, object]) -> DatasetItem:
    """Return an item, or make one from a mapping under axion's names; other keys are ignored. Raises DataError."""
    if isinstance(given, DatasetItem):
        return given
    raw: object = given
    if not isinstance(raw, Mapping):
        raise DataError(f"An item must be a DatasetItem or a mapping with its field names, got {given!r}.")
    known = [field.name for field in fields(DatasetItem) if field.name in given]
    if not known:
        names = ", ".join(field.name for field in fields(DatasetItem))
        got = ", ".join(map(str, given)) or "none"
        raise DataError(f"A record of a data set needs some of the fields {names}, got {got}.")
    values = {name: None if check.is_missing(given[name]) else given[name] for name in known}
    return DatasetItem(**values)  # type: ignore[arg-type]  # the constructor checks
