"""Reasons of the embedded judge: the probability, its threshold, the closest sentence and the slot that differs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from merilo.judges.words import stems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judges.copied import Position
    from merilo.judges.slots import Difference

_MAX_QUOTED: Final = 160
"""Characters of a sentence in a reason; a longer one is shortened around the words of the statement."""
_MAX_SHARED: Final = 300
_WORD: Final = re.compile(r"\w+")
_WHITE: Final = re.compile(r"\s+")


def support_reason(
    statement: str,
    contexts: Sequence[Sequence[str]],
    cited: Sequence[Position],
    *,
    supported: bool,
    figures: str,
    difference: Difference | None = None,
) -> str:
    """Return the reason of a verdict. `cited`: sentences of the contexts, the best one first."""
    verdict = f"{'Supported' if supported else 'Not supported'} {figures}"
    differs = ""
    if difference is not None:
        differs = f" Differs in: {difference.stated} / {difference.found}."
        differs = differs if difference.found else f" Not in it: {difference.stated}."
    if not cited:
        return f"{verdict}.{differs}"
    best = cited[0]
    quoted = f"'{excerpt(contexts[best.context][best.sentence], statement)}'"
    # A single text may be a reference or a response, so it is not called a context.
    where = f"context {best.context + 1}, " if len(contexts) > 1 else ""
    where += f"sentence {best.sentence + 1}: {quoted}."
    return f"{verdict} by {where}" if supported else f"{verdict}. Closest: {where}{differs}"


def sentence_reason(
    verdict: str, sentences: Sequence[str], about: str, *, evidence: Sequence[int], closest: int | None
) -> str:
    """Return the reason of a verdict on one context, given as its sentences. `about`: the text it was compared with."""
    best = evidence[0] if evidence else closest
    if best is None:
        return f"{verdict}. No sentence is close to it."
    quoted = excerpt(sentences[best], about)
    return f"{verdict}. {'Evidence' if evidence else 'Closest'}: sentence {best + 1}: '{quoted}'."


def excerpt(sentence: str, statement: str, longest: int = _MAX_QUOTED) -> str:
    """Return a sentence on one line, shortened around the words that it shares with the statement."""
    text = _WHITE.sub(" ", sentence).strip()
    if len(text) <= longest:
        return text
    stated = frozenset(stems(statement))
    shared = [
        each.start()
        for each in _WORD.finditer(text)
        if len(each.group()) > 3 and not stated.isdisjoint(stems(each.group()))
    ][:_MAX_SHARED]
    start = max(shared, key=lambda at: sum(at <= other < at + longest * 3 // 4 for other in shared), default=0)
    start = 0 if start < longest // 8 else text.rfind(" ", 0, start) + 1
    end = start + longest
    end = len(text) if end >= len(text) else max(text.rfind(" ", start, end), start + longest // 2)
    return f"{'... ' if start else ''}{text[start:end]}{' ...' if end < len(text) else ''}"
