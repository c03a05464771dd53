"""Resolves the name that a user writes for a metric of a run."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError
from merilo.metrics.text import bare_name, is_called

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_MAX_NEAR: Final = 3
_MAX_LISTED: Final = 5


def resolve_metric(
    name: str, texts: Collection[str], *, composites: Iterable[str] = (), where: object = "this run"
) -> str:
    """Return the full text of the only metric with this name.

    `name`: a full text, or one without parameters, without its system's version or without `foreign:`. `texts`: the
    full texts of the run's metrics. `composites`: those of its composites, if they cannot be chosen. `where`: the
    run, as the message names it.

    Raises UsageError if no metric or several metrics have the name; the message suggests names.
    """
    if name in texts:
        return name
    same = [text for text in texts if is_called(text, name)]
    if len(same) == 1:
        return same[0]
    if same:
        raise UsageError(f"No unique metric {name!r} in {where}; did you mean {' or '.join(same)}?")
    if any(is_called(text, name) for text in composites):
        raise UsageError(f"{name} is a composite, which has no value per sample; name the metrics it combines.")
    raise UsageError(f"No metric {name!r} in {where}; {_advice(name, texts)}")


def _advice(name: str, texts: Collection[str]) -> str:
    """Return the metrics with similar names as a question, or the first metrics if no name is similar."""
    spellings: dict[str, str] = {}
    for text in texts:
        spellings.setdefault(bare_name(text).lower(), text)
        spellings[text.lower()] = text
    low = name.lower()
    longer = [spelling for spelling in spellings if low and spelling.startswith(low)][:_MAX_NEAR]
    near = dict.fromkeys(spellings[each] for each in get_close_matches(low, spellings, n=_MAX_NEAR) or longer)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if not texts:
        return "it has no metrics."
    more = f" and {len(texts) - _MAX_LISTED} more" * (len(texts) > _MAX_LISTED)
    return f"its metrics: {', '.join(list(texts)[:_MAX_LISTED])}{more}."
