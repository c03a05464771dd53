"""Which samples belong together: those with the same value in one field, such as one document or conversation."""

from __future__ import annotations

import json
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from merilo.data.sample import FIELDS
from merilo.errors import DataError, RunError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.runs.store import Store

_FIELDS: Final = frozenset({*FIELDS, "language"})
_SHOWN = 5
_DECODE: Final = json.JSONDecoder().raw_decode  # a third of the time of json.loads, for texts whose checksum holds


class Clustered(NamedTuple):
    """A sample's id and the name of its cluster."""

    sample: str
    cluster: str | None
    """None where the sample has no such field."""


def clusters(store: Store, field: str) -> Iterator[Clustered]:
    """The cluster of each sample, in dataset order, by a field of it or else a key of its metadata.

    A name is the value where it is text, else its JSON, so that the number 7 and the text "7" name the same
    cluster. Raises UsageError for the field `id`, RunError for a damaged store.
    """
    if field == "id":
        raise UsageError("Samples are not clustered by id, since each has its own; name a field that several share.")
    for text in store.sample_records():
        try:
            record: dict[str, Any] = _DECODE(text)[0]  # Any: a sample's JSON
            holder = record if field in _FIELDS else record.get("metadata", {})
            yield Clustered(record["id"], _name(cast("dict[str, Any]", holder).get(field)))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RunError(f"A sample of the run is damaged ({error}); start a new run.") from error


def cluster_numbers(store: Store, field: str | None) -> Iterator[int | None]:
    """The number of each sample's cluster, in dataset order, counted from 0 as clusters first come.

    None for ever where no field is named. Raises what `clusters` raises, and DataError at a sample without one.
    """
    if field is None:
        yield from repeat(None)
        return
    known: dict[str, int] = {}
    for sample, cluster in clusters(store, field):
        if cluster is None:
            raise without_cluster(field, 1, [sample])
        yield known.setdefault(cluster, len(known))


def check_clusters(store: Store, field: str) -> None:
    """Raises DataError that names the first samples without a cluster, where there are any."""
    missing, shown = 0, list[str]()
    for sample, cluster in clusters(store, field):
        if cluster is None:
            missing += 1
            if len(shown) < _SHOWN:
                shown.append(sample)
    if missing:
        raise without_cluster(field, missing, shown)


def without_cluster(field: str, missing: int, shown: list[str]) -> DataError:
    """The error that so many samples, of which the first are `shown`, are in no cluster."""
    more = f" and {missing - len(shown):,} more" if missing > len(shown) else ""
    samples = "sample has" if missing == 1 else "samples have"
    return DataError(
        f"{missing:,} {samples} no {field!r}, by which samples are clustered: {', '.join(shown)}{more}; "
        "give every sample one, as a field or in its metadata, or name another field (--cluster)."
    )


def _name(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
