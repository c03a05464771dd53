"""Routes in what a user writes: `support=SPEC`, `relevance,usefulness=SPEC`, `rest=SPEC`, or a mapping in Python.

A name in which every comma-separated part is a kind of question is a route. Any other name is the name of a judge.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.errors import UsageError
from merilo.judges.routed import REST
from merilo.judging.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from merilo.judges.base import JudgeLike

_WORD: Final = r"[A-Za-z_][\w-]*"
_NAMED: Final = re.compile(rf"({_WORD}(?:\s*,\s*{_WORD})*)\s*=(.+)", re.DOTALL)
INSTRUMENTS: Final = ("embeddings", "similarities")
"""Kinds that compare texts. Each has its own model, which is asked no other kind."""
_NOT_ROUTED: Final = (*INSTRUMENTS, "sentences")
_MISSPELT: Final = 0.87
"""Similarity from which the name of a judge counts as a misspelt kind: `supports` for `support`."""


class Server(NamedTuple):
    """The address of a provider's models, the variable of their key, how questions are sent, and a fit file."""

    base_url: str | None = None
    api_key_env: str | None = None
    judged: str | None = None
    fit: str | PathLike[str] | None = None


class NamedSpec(NamedTuple):
    """A judge as the user wrote it, with the name before its `=`."""

    name: str | None
    spec: JudgeLike
    server: Server = Server()
    prompts: str = "merilo"
    """The prompts that published metrics send: those of merilo, or those of the `installed` package."""


@dataclass(slots=True)
class Routing:
    """The routes among the judges that a user wrote."""

    routes: dict[str, NamedSpec] = field(default_factory=dict[str, NamedSpec])
    """By kind of question."""
    rest: NamedSpec | None = None
    others: list[NamedSpec] = field(default_factory=list[NamedSpec])
    """The judges that are not part of the routes."""


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
        check_kinds(name)
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
    routed = any(is_route(each.name) for each in named)
    for each in named:
        if not routed or (each.name is not None and not is_route(each.name)):
            routing.others.append(each)
        elif each.name is None or each.name == REST:
            if routing.rest is not None:
                raise UsageError(
                    f"Two judges answer the rest: {_shown(routing.rest)} and {_shown(each)}. Give the second one "
                    "a name (second=SPEC) or kinds of question (support=SPEC)."
                )
            routing.rest = each
        else:
            _add(routing.routes, each.name, each)
    return routing


def one_judge(specs: Sequence[str]) -> list[str]:
    """Return the texts if they make one judge: one text, or routes. Raises UsageError otherwise."""
    named = [named_spec(each) for each in specs]
    routing = routing_in(named)
    if len(routing.others) > 1 or (routing.others and len(routing.others) < len(named)):
        judges = ", ".join(_shown(each) for each in named)
        raise UsageError(
            f"One judge is tested at a time, got {judges}. To combine judges, give each kinds of question, "
            "as in support=SPEC."
        )
    return list(specs)


def _add(routes: dict[str, NamedSpec], name: str, spec: NamedSpec) -> None:
    for kind in _parts(name):
        if kind in INSTRUMENTS:
            raise UsageError(f"'{kind}' questions have their own model. Name it alone: {kind}=SPEC.")
        if kind in _NOT_ROUTED:
            raise UsageError(f"'{kind}' questions take no route: they go to the built-in sentence splitter.")
        if kind in routes:
            raise UsageError(
                f"Two judges for '{kind}' questions: {_shown(routes[kind])} and {_shown(spec)}. Name each kind once."
            )
        routes[kind] = spec


def check_kinds(name: str) -> None:
    """Raise UsageError unless every part of the name is a kind."""
    parts = _parts(name)
    if REST in parts:
        raise UsageError(f"{REST!r} stands for all other kinds and cannot be combined with one; write rest=SPEC.")
    for part in parts:
        if part not in KINDS:
            close = get_close_matches(part, KINDS, n=1)
            kinds = ", ".join(kind for kind in KINDS if kind != "sentences")
            advice = f"Did you mean {close[0]!r}?" if close else f"Kinds: {kinds}."
            raise UsageError(f"Unknown kind of question {part!r} in {name}=SPEC. {advice}")


def _parts(name: str) -> list[str]:
    return [part.strip() for part in name.split(",")]


def _shown(named: NamedSpec) -> str:
    return named.spec if isinstance(named.spec, str) else type(named.spec).__name__
