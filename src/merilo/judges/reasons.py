"""Reasons of the embedded judge: the probability, its threshold, the closest sentence and the differences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from merilo.judges.lexical_text import prefix, stems_of, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judges.slot_types import Difference
    from merilo.judges.support_candidates import Position

_MAX_QUOTED: Final = 160
"""Characters of a sentence in a reason; a longer one is shortened around the words of the statement."""
_WORD: Final = re.compile(r"\w+")
_WHITE: Final = re.compile(r"\s+")


def support_reason(
    statement: str,
    contexts: Sequence[Sequence[str]],
    cited: Sequence[Position],
    *,
    supported: bool,
    probability: float,
    yes_from: float,
    differences: Sequence[Difference] = (),
) -> str:
    """Return the reason of a verdict. `cited`: sentences of the contexts, the best one first."""
    verdict = "Supported" if supported else "Not supported"
    figures = f"{verdict} ({probability:.2f}; threshold {yes_from:.2f})"
    if not cited:
        return f"{figures}." if supported else f"{figures}. No sentence is close to it."
    best = cited[0]
    quoted = f"'{excerpt(contexts[best.context][best.sentence], statement)}'"
    # A single text may be a reference or a response, so it is not called a context.
    where = f"sentence {best.sentence + 1}"
    if len(contexts) > 1:
        where = f"context {best.context + 1}, {where}"
    if supported:
        return f"{figures} by {where}: {quoted}."
    reason = f"{figures}. Closest: {where}: {quoted}."
    other = [f"{each.stated} / {each.found}" for each in differences if each.found]
    missing = [each.stated for each in differences if not each.found]
    reason += f" Differs in: {'; '.join(other)}." if other else ""
    return reason + (f" Not in it: {'; '.join(missing)}." if missing else "")


def sentence_reason(
    verdict: str,
    sentences: Sequence[str],
    about: str,
    *,
    evidence: Sequence[int],
    closest: int | None,
    probability: float,
    yes_from: float,
) -> str:
    """Return the reason of a verdict on one context, given as its sentences. `about`: the text it was compared with."""
    figures = f"{verdict} ({probability:.2f}; threshold {yes_from:.2f})"
    best = evidence[0] if evidence else closest
    if best is None:
        return f"{figures}. No sentence is close to it."
    found = "Evidence" if evidence else "Closest"
    return f"{figures}. {found}: sentence {best + 1}: '{excerpt(sentences[best], about)}'."


def excerpt(sentence: str, statement: str, most: int = _MAX_QUOTED) -> str:
    """Return a sentence on one line, shortened around the words that it shares with the statement."""
    text = _WHITE.sub(" ", sentence).strip()
    if len(text) <= most:
        return text
    stated = {prefix(stem) for stem in words(statement).distinct}
    shared = [
        each.start()
        for each in _WORD.finditer(text)
        if len(each.group()) > 3 and not stated.isdisjoint(map(prefix, stems_of(each.group())))
    ]
    start = _best_start(shared, most)
    start = 0 if start < most // 8 else text.rfind(" ", 0, start) + 1
    end = start + most
    end = len(text) if end >= len(text) else max(text.rfind(" ", start, end), start + most // 2)
    return f"{'... ' if start else ''}{text[start:end]}{' ...' if end < len(text) else ''}"


def pairs_of(cited: Sequence[Position]) -> tuple[tuple[int, int], ...]:
    """Return positions as pairs of context and sentence."""
    return tuple((each.context, each.sentence) for each in cited)


def _best_start(places: Sequence[int], most: int) -> int:
    """Return the start of the stretch of at most `most` characters with most of these ascending places."""
    best, count, first = 0, 0, 0
    for last, place in enumerate(places):
        while place - places[first] > most * 3 // 4:
            first += 1
        if last - first + 1 > count:
            best, count = places[first], last - first + 1
    return best
