"""Clusters of samples: samples with the same value in one field, such as one document or conversation."""

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
    """None if the sample has no such field."""


def clusters(store: Store, field: str) -> Iterator[Clustered]:
    """Yield the cluster of each sample, in dataset order, by one of its fields or a key of its metadata.

    A cluster's name is the value if it is text, otherwise its JSON. So the number 7 and the text "7" name the same
    cluster. Raises UsageError for the field `id`, RunError for a damaged store.
    """
    if field == "id":
        raise UsageError("Cannot cluster by id: each sample has its own. Name a field that several samples share.")
    for text in store.sample_records():
        try:
            record: dict[str, Any] = _DECODE(text)[0]  # Any: a sample's JSON
            holder = record if field in _FIELDS else record.get("metadata", {})
            yield Clustered(record["id"], _name(cast("dict[str, Any]", holder).get(field)))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RunError(f"A sample of the run is damaged ({error}); start a new run.") from error


def cluster_numbers(store: Store, field: str | None) -> Iterator[int | None]:
    """Yield the number of each sample's cluster, in dataset order, counted from 0 in order of first appearance.

    Yields None without end if no field is named. Raises what `clusters` raises, and DataError at a sample without a
    cluster.
    """
    if field is None:
        yield from repeat(None)
        return
    known: dict[str, int] = {}
    for sample, cluster in clusters(store, field):
        if cluster is None:
            raise without_cluster(field, 1, [sample])
        yield known.setdefault(cluster, len(known))


def clusters_by_sample(store: Store, field: str) -> dict[str, str]:
    """Return the cluster of each sample by its id. Raises DataError that names the first samples without one."""
    found, missing = dict[str, str](), list[str]()
    for sample, cluster in clusters(store, field):
        if cluster is None:
            missing.append(sample)
        else:
            found[sample] = cluster
    if missing:
        raise without_cluster(field, len(missing), missing[:_SHOWN])
    return found


def without_cluster(field: str, missing: int, shown: list[str]) -> DataError:
    """Return the error for this many samples without a cluster; `shown` are the ids of the first of them."""
    more = f" and {missing - len(shown):,} more" if missing > len(shown) else ""
    samples = "sample has" if missing == 1 else "samples have"
    return DataError(
        f"{missing:,} {samples} no cluster field {field!r}: {', '.join(shown)}{more}. "
        "Add the field to every sample or its metadata, or name another field (--cluster)."
    )


def _name(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
