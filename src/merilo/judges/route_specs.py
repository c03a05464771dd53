"""Routes in what a user writes: `support=SPEC`, `relevance,usefulness=SPEC`, `rest=SPEC`, or a mapping in Python.

A name in which every comma-separated part is a kind of question is a route. Any other name is the name of a judge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.errors import UsageError
from merilo.judges.routed import REST
from merilo.judging.registry import KINDS

if TYPE_CHECKING:
    from merilo.judges.base import JudgeLike

_WORD: Final = r"[A-Za-z_][\w-]*"
_NAMED: Final = re.compile(rf"({_WORD}(?:\s*,\s*{_WORD})*)\s*=(.+)", re.DOTALL)
_INSTRUMENTS: Final = {
    "embeddings": "the embedder; name it with --embedder (embedder)",
    "similarities": "the cross-encoder; name it with --cross-encoder (cross_encoder)",
    "sentences": "the built-in sentence splitter",
}
"""Kinds that no judge of judgements is asked, and what answers them."""
_MISSPELT: Final = 0.87
"""Similarity from which the name of a judge counts as a misspelt kind: `supports` for `support`."""


class NamedSpec(NamedTuple):
    """A judge as the user wrote it, with the name before its `=`."""

    name: str | None
    spec: JudgeLike


@dataclass(slots=True)
class Routing:
    """The routes among the judges that a user wrote."""

    routes: dict[str, JudgeLike] = field(default_factory=dict[str, "JudgeLike"])
    """By kind of question."""
    rest: JudgeLike | None = None
    others: list[NamedSpec] = field(default_factory=list[NamedSpec])
    """The judges that are not part of the routes."""


def named_specs(given: JudgeLike | Sequence[JudgeLike] | Mapping[str, JudgeLike]) -> list[NamedSpec]:
    """Return the judges that a user wrote: one, a list of them, or a mapping from kinds of question.

    Raises UsageError for a key of the mapping that is not a kind.
    """
    if isinstance(given, Mapping):
        routes: dict[str, JudgeLike] = {**given}
        for name in routes:
            if name != REST:
                _check_kinds(name)
        return [NamedSpec(name, spec.strip() if isinstance(spec, str) else spec) for name, spec in routes.items()]
    if isinstance(given, str) or not isinstance(given, Sequence):
        return [named_spec(given)]
    specs: list[JudgeLike] = [*given]
    return [named_spec(each) for each in specs]


def named_spec(given: JudgeLike) -> NamedSpec:
    """Split `NAME=SPEC`. The name is None if there is none."""
    if not isinstance(given, str):
        return NamedSpec(None, given)
    named = _NAMED.fullmatch(given.strip())
    return NamedSpec(named[1], named[2].strip()) if named else NamedSpec(None, given.strip())


def is_route(name: str | None) -> bool:
    """Return True if a name before `=` makes a route. Raises UsageError if it looks like a misspelt one."""
    if name is None:
        return False
    parts = _parts(name)
    if name == REST or all(part in KINDS for part in parts):
        return True
    if len(parts) > 1:
        _check_kinds(name)
    if name.isalpha() and (close := get_close_matches(name, [*KINDS, REST], n=1, cutoff=_MISSPELT)):
        raise UsageError(
            f"{name!r} is not a kind of question; did you mean {close[0]!r}? "
            "To name a judge, choose a name that differs more from the kinds."
        )
    return False


def routing_in(named: Sequence[NamedSpec]) -> Routing:
    """Separate the routes from the other judges. With a route, the judge without a name answers the rest.

    Raises UsageError for a kind with two judges, two judges for the rest, and a kind that needs no judge.
    """
    routing = Routing()
    routed = any(is_route(name) for name, _ in named)
    for each in named:
        if not routed or (each.name is not None and not is_route(each.name)):
            routing.others.append(each)
        elif each.name is None or each.name == REST:
            if routing.rest is not None:
                raise UsageError(
                    f"Two judges answer the rest: {_shown(routing.rest)} and {_shown(each.spec)}. Give the second one "
                    "a name (second=SPEC) or kinds of question (support=SPEC)."
                )
            routing.rest = each.spec
        else:
            _add(routing.routes, each.name, each.spec)
    return routing


def one_judge(specs: Sequence[str]) -> list[str]:
    """Return the texts if they make one judge: one text, or routes. Raises UsageError otherwise."""
    named = named_specs(specs)
    routing = routing_in(named)
    if len(routing.others) > 1 or (routing.others and len(routing.others) < len(named)):
        judges = ", ".join(_shown(each.spec) for each in named)
        raise UsageError(
            f"One judge is tested at a time, got {judges}. To combine judges, give each kinds of question, "
            "as in support=SPEC."
        )
    return list(specs)


def _add(routes: dict[str, JudgeLike], name: str, spec: JudgeLike) -> None:
    for kind in _parts(name):
        if kind in _INSTRUMENTS:
            raise UsageError(f"'{kind}' questions take no route: they go to {_INSTRUMENTS[kind]}.")
        if kind in routes:
            raise UsageError(
                f"Two judges for '{kind}' questions: {_shown(routes[kind])} and {_shown(spec)}. Name each kind once."
            )
        routes[kind] = spec


def _check_kinds(name: str) -> None:
    """Raise UsageError unless every part of the name is a kind."""
    parts = _parts(name)
    if REST in parts:
        raise UsageError(f"{REST!r} stands for all other kinds and cannot be combined with one; write rest=SPEC.")
    for part in parts:
        if part not in KINDS:
            close = get_close_matches(part, KINDS, n=1)
            kinds = ", ".join(kind for kind in KINDS if kind not in _INSTRUMENTS)
            advice = f"Did you mean {close[0]!r}?" if close else f"Kinds: {kinds}."
            raise UsageError(f"Unknown kind of question {part!r} in {name}=SPEC. {advice}")


def _parts(name: str) -> list[str]:
    return [part.strip() for part in name.split(",")]


def _shown(spec: JudgeLike) -> str:
    return spec if isinstance(spec, str) else type(spec).__name__
