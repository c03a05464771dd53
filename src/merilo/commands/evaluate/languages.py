"""Find the samples whose language the judge of a metric does not support."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from merilo.commands.evaluate.selection import definitions_of, metrics_of, requested
from merilo.data.language import UNKNOWN, identify_language

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.engine.answer_store import JudgeRoles
    from merilo.metrics.base import Definition, Metric
    from merilo.runs.ingest import UnreadBy

_READ_CHARS: Final = 20_000
"""Characters of a text that are read to identify its language."""


class _Limited(Protocol):
    """A judge that supports some languages only."""

    @property
    def name(self) -> str: ...

    @property
    def languages(self) -> frozenset[str]: ...

    def supports_language(self, texts: Sequence[str]) -> bool: ...


def unread_check(asked: Sequence[str | Definition] | None, roles: JudgeRoles) -> UnreadBy | None:
    """Return the function for `take_in` that names, by metric, the judge and the language that it does not support.

    None if all judges support every language. Raises UsageError for a metric that does not exist.
    """
    metrics: dict[str, Metric] = {}
    for given in definitions_of(requested(asked)):
        metrics |= metrics_of(given, lambda: roles.named)
    limited = {text: judge for text, metric in metrics.items() if (judge := _limited(metric, roles)) is not None}
    # Metrics that read the same fields with the same judge are checked once.
    groups: dict[tuple[int, frozenset[str]], list[str]] = {}
    for text, judge in limited.items():
        groups.setdefault((id(judge), metrics[text].needs), []).append(text)

    def unread_by(sample: Sample) -> Mapping[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for (_, fields), texts in groups.items():
            judge = limited[texts[0]]
            language = _unsupported(judge, sample, fields) if fields <= sample.present else None
            found |= dict.fromkeys(texts, (judge.name, language)) if language is not None else {}
        return found

    return unread_by if groups else None


def _limited(metric: Metric, roles: JudgeRoles) -> _Limited | None:
    """Return the first judge of a metric that supports some languages only; None if there is none."""
    for kind in sorted(metric.asks, key=lambda kind: kind.kind):
        for role in sorted(metric.roles):
            judge: Any = roles.judge(kind, role)  # Any: `supports_language` is an optional attribute of a judge
            if hasattr(judge, "supports_language"):
                return cast("_Limited", judge)
    return None


def _unsupported(judge: _Limited, sample: Sample, fields: frozenset[str]) -> str | None:
    """Return the language of a sample that the judge does not support, as the user states it or as identified."""
    languages: frozenset[str] = getattr(judge, "languages", frozenset())
    stated = (sample.language or UNKNOWN).replace("_", "-").split("-")[0].lower()
    if languages and stated not in {*languages, UNKNOWN}:
        return sample.language
    own = [getattr(sample, field) for field in ("user_input", "response", "reference") if field in fields]
    lists = [getattr(sample, field) or () for field in ("retrieved_contexts", "reference_contexts") if field in fields]
    texts = [text[:_READ_CHARS] for text in own if text]
    contexts = [each.text[:_READ_CHARS] for contexts in lists for each in contexts]
    others = [code for text in texts if (code := identify_language(text)) not in languages]
    if languages and others:  # an English context does not make a German response readable
        return others[0]
    given = [text for text in (*texts, *contexts) if any(map(str.isalpha, text))]
    if not given or judge.supports_language(given):
        return None
    others = [code for text in given if (code := identify_language(text)) not in languages]
    return others[0] if others else UNKNOWN
