"""How often a judge is wrong by how sure it is, by kind of question: what a cascade asks of its first judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.checking.asking import KIND
from merilo.data.labels import Task
from merilo.judges.reliability import Reliability
from merilo.judging.saying import says_yes, sureness_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.checking.items import Item

_RULES: Final[Mapping[str, str]] = {
    "relevance": "chunk_relevance; yes is grade 1 or 2, and what people called relevant",
    "sufficiency": "sufficiency",
    "support": "groundedness and nli, responses of one statement only",
    "addresses": "answer_relevance, responses of one sentence only",
}
"""By kind of question, the records behind a table; those of several questions do not say which one was wrong."""
_TASKS: Final = (Task.CHUNK_RELEVANCE, Task.SUFFICIENCY, Task.GROUNDEDNESS, Task.NLI, Task.ANSWER_RELEVANCE)


def reliability_of(items: Mapping[str, Sequence[Item]]) -> dict[str, Reliability]:
    """Tables by kind of question, over all records that were asked about; `items` by task.

    A verdict is wrong where it says yes and people no, or the other way round. Kinds without a probability have none.
    """
    found: dict[str, list[tuple[float | None, bool]]] = {}
    made: dict[str, int] = {}
    for task in _TASKS:
        kind = KIND[task].kind
        for item in items.get(task.value, ()):
            if item.verdict is not None:
                wrong = says_yes(item.verdict) != _yes(item)
                found.setdefault(kind, []).append((sureness_of(item.verdict), wrong))
                made[kind] = made.get(kind, 0) + item.record.constructed
    return {
        kind: Reliability.of(_rule(kind, made[kind]), verdicts)
        for kind, verdicts in sorted(found.items())
        if any(sureness is not None for sureness, _ in verdicts)
    }


def _yes(item: Item) -> bool:
    """What people said: of contexts with grades, 1 or 2 is yes."""
    return item.record.yes if item.record.grade is None else item.record.grade >= 1


def _rule(kind: str, constructed: int) -> str:
    return f"{_RULES[kind]}; {constructed} made by rule" if constructed else _RULES[kind]
