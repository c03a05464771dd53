"""User-defined scales: one question about texts, a closed list of labels, and the points of each label.

The file's keys, of which the first four are required::

    name: politeness
    question: How polite is the response to the user?
    texts: [user_input, response]      # fields of the sample that the judge sees
    labels:                            # at least two; quote a label that is yes, no or a number
      - {label: rude, points: 0, definition: it insults or orders about}
      - {label: plain, points: 1}
      - {label: polite, points: 2, definition: it greets, thanks or regrets where one would}
    version: 1
    range: [0, 2]                      # the points that 0 and 1 stand for; default: the lowest and highest points
    higher_is_better: true             # false: fewer points are better, and 1 still stands for the best
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Final, Self

from merilo.errors import UsageError
from merilo.judging.digests import digest_json
from merilo.judging.json_types import as_list, as_mapping, as_object

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

KEYS: Final = ("name", "question", "texts", "labels", "version", "range", "higher_is_better")
_NEEDED: Final = KEYS[:4]
_LABEL_KEYS: Final = ("label", "points", "definition")
_MOST_SHOWN: Final = 60
_LARGEST: Final = 1e15
_UNWRITABLE: Final = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Label:
    """One answer of the scale."""

    text: str
    points: float
    definition: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """A question with a closed list of answers. Create one with `of`, which validates the user's file."""

    name: str
    question: str
    texts: tuple[str, ...]
    labels: tuple[Label, ...]
    version: int
    low: float
    high: float
    higher_is_better: bool

    @classmethod
    def of(cls, fields: Mapping[str, object], *, source: str, texts: Collection[str]) -> Self:
        """Return the scale in the fields of a file; `texts` are the sample fields that may be shown.

        Raises UsageError that names the file, the key, the expected value and the actual one.
        """
        reader = _Reader(source)
        reader.keys(fields, KEYS, _NEEDED, "")
        labels = reader.labels(fields["labels"])
        low, high = reader.range(fields.get("range"), labels)
        return cls(
            name=reader.text(fields["name"], "name"),
            question=reader.text(fields["question"], "question"),
            texts=reader.texts(fields["texts"], texts),
            labels=labels,
            version=reader.version(fields.get("version", 1)),
            low=low,
            high=high,
            higher_is_better=reader.flag(fields.get("higher_is_better", True), "higher_is_better"),
        )

    @property
    def digest(self) -> str:
        """12 hexadecimal digits that identify everything that affects a value; notes and layout of the file do not."""
        return digest_json(
            {
                "name": self.name,
                "version": self.version,
                "question": self.question,
                "texts": list(self.texts),
                "labels": [[each.text, each.points, each.definition] for each in self.labels],
                "range": [self.low, self.high],
                "higher_is_better": self.higher_is_better,
            }
        ).hex()[:12]

    def points(self, label: str) -> float:
        """Return the points of a label of the scale."""
        return next(each.points for each in self.labels if each.text == label)

    def share(self, points: float) -> float:
        """Return the position of the points in the range, in [0, 1]; 1 is the best, also if fewer points are better."""
        share = (points - self.low) / (self.high - self.low)
        return share if self.higher_is_better else 1 - share


@dataclass(frozen=True, slots=True)
class _Reader:
    """Parses the parts of a scale, and reports invalid ones."""

    source: str

    def wrong(self, key: str, expected: str, got: object) -> UsageError:
        place = f"{self.source}, key {key!r}" if key else self.source
        return UsageError(f"{place}: expected {expected}, got {_shown(got)}.")

    def keys(self, fields: Mapping[str, object], known: Collection[str], needed: Collection[str], where: str) -> None:
        if unknown := [key for key in fields if key not in known]:
            raise self.wrong(f"{where}{unknown[0]}", f"only the keys {', '.join(known)}", unknown[0])
        if missing := [key for key in needed if key not in fields]:
            raise self.wrong(f"{where}{missing[0]}", "a value", None)

    def text(self, value: object, key: str, *, blank: bool = False) -> str:
        if not isinstance(value, str):
            advice = " (put it in quotation marks)" if isinstance(value, (bool, int, float)) else ""
            raise self.wrong(key, f"a text{advice}", value)
        if not (blank or value.strip()):
            raise self.wrong(key, "a text that is not blank", value)
        if _UNWRITABLE.search(value):
            raise self.wrong(key, "a text without NUL and half surrogate pairs", value)
        return value.strip()

    def flag(self, value: object, key: str) -> bool:
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false", value)
        return value

    def version(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
            raise self.wrong("version", "a whole number of at least 1", value)
        return value

    def number(self, value: object, key: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < inf:
            raise self.wrong(key, "a number", value)
        if abs(value) > _LARGEST:
            raise self.wrong(key, "a number between -10^15 and 10^15", value)
        return float(value)

    def texts(self, value: object, known: Collection[str]) -> tuple[str, ...]:
        names = as_list(value)
        expected = f"a list of fields, each once, of {', '.join(known)}"
        if not names:
            raise self.wrong("texts", expected, value)
        found = [name for name in names if isinstance(name, str)]
        for name in names:
            if name not in known or found.count(str(name)) > 1:
                raise self.wrong("texts", expected, name)
        return tuple(found)

    def labels(self, value: object) -> tuple[Label, ...]:
        items = as_list(value)
        if items is None or len(items) < 2:
            raise self.wrong("labels", "a list of at least two labels", value)
        found: list[Label] = []
        seen: set[str] = set()
        for place, item in enumerate(items, start=1):
            label = self.label(item, f"labels[{place}]")
            if label.text.casefold() in seen:
                raise self.wrong(f"labels[{place}].label", "a label that is in the list once", label.text)
            seen.add(label.text.casefold())
            found.append(label)
        return tuple(found)

    def label(self, item: object, key: str) -> Label:
        fields = as_object(item)
        if fields is None:
            raise self.wrong(key, "an object with label, points and, optionally, definition", item)
        self.keys(fields, _LABEL_KEYS, _LABEL_KEYS[:2], f"{key}.")
        return Label(
            self.text(fields["label"], f"{key}.label"),
            self.number(fields["points"], f"{key}.points"),
            self.text(fields.get("definition", ""), f"{key}.definition", blank=True),
        )

    def range(self, value: object, labels: tuple[Label, ...]) -> tuple[float, float]:
        lowest, highest = min(each.points for each in labels), max(each.points for each in labels)
        if value is None:
            low, high = lowest, highest
        else:
            ends = as_list(value)
            if ends is None or len(ends) != 2:
                raise self.wrong("range", "two numbers, [lowest, highest]", value)
            low, high = self.number(ends[0], "range"), self.number(ends[1], "range")
        if not low < high:
            if value is None:
                raise self.wrong("labels", "labels with different points", low)
            raise self.wrong("range", "two numbers, the lower one first", low)
        if lowest < low or highest > high:
            expected = f"points within the range {low:g} to {high:g}"
            raise self.wrong("labels", expected, lowest if lowest < low else highest)
        return low, high


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(_cut(value), ensure_ascii=False, default=str)
    text = _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _cut(value: object, levels: int = 3) -> object:
    """Return the value truncated in depth and width: a YAML file can contain itself, or more than fits into memory."""
    items, fields = as_list(value), as_object(value)
    if items is not None:
        return [_cut(item, levels - 1) for item in items[:_MOST_SHOWN]] if levels else "..."
    if fields is not None:
        first = islice(fields.items(), _MOST_SHOWN)
        return {name: _cut(item, levels - 1) for name, item in first} if levels else "..."
    if as_mapping(value) is not None:
        return "an object"
    return "a larger number" if isinstance(value, int) and abs(value) > _LARGEST else value
