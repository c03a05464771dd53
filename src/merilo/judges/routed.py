"""A judge made of several: each kind of question goes to the judge of its route.

::

    --judge relevance,usefulness=embedded --judge support=local:factcg --judge rest=openai:MODEL

The engine replaces a routed judge by the judge of the question's kind before it makes a key (`part_for`). So a verdict
is keyed by the judge that gives it, and a judge shares its verdicts between runs in which it answers alone and runs in
which it has a route. See design/judges.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from merilo.errors import UsageError
from merilo.judges.base import Conversation, Judge, JudgeDefaults, JudgeLike
from merilo.judging.json_types import as_object
from merilo.judging.questions import Pack, Question
from merilo.judging.registry import ALL_KINDS, KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Kinds = frozenset[type[Question[Any]]]


REST: Final = "rest"
"""The name of the route for all kinds without a route."""
ROUTED: Final = "routed"
"""The value of `judge` in the fingerprint of a routed judge."""
_SEPARATOR: Final = "; "


class Route(NamedTuple):
    """Kinds of question and the judge that answers them."""

    label: str
    """The kinds as in a specification (`relevance,usefulness`), or `rest`."""
    kinds: Kinds
    """The kinds that go to the judge. It may answer only some of those of `rest`."""
    judge: Judge


@dataclass(frozen=True)
class Routed(JudgeDefaults):
    """A judge that passes each question to the judge of its kind; make one with `routed_of`."""

    routes: tuple[Route, ...]

    @property
    def name(self) -> str:
        """The routes in the order of their kinds: `relevance,usefulness=embedded; rest=openai:gpt-4.1-mini`."""
        return _SEPARATOR.join(f"{each.label}={each.judge.name}" for each in self.routes)

    @property
    def answers(self) -> Kinds:
        """The kinds that have a route whose judge answers them."""
        return frozenset(kind for each in self.routes for kind in each.kinds & each.judge.answers)

    @property
    def together(self) -> Kinds:
        """The kinds that the judge of their route takes in packs."""
        return frozenset(kind for each in self.routes for kind in each.kinds & each.judge.together)

    @property
    def cacheable(self) -> bool:
        """True if all its judges are cacheable. The engine asks the judge of the route instead."""
        return all(each.judge.cacheable for each in self.routes)

    @property
    def agreement_note(self) -> str | None:
        """The notes of all its judges, each after its route; None if no judge has one."""
        notes = [each.judge.agreement_note for each in self.routes]
        if not any(notes):
            return None
        shown = (note or "not compared with human labels" for note in notes)
        return _SEPARATOR.join(f"{each.label}: {note}" for each, note in zip(self.routes, shown, strict=True))

    def part(self, kind: type[Question[Any]]) -> Judge | None:
        """Return the judge that answers questions of this kind; None if there is none."""
        found = (each.judge for each in self.routes if kind in each.kinds)
        judge = next(found, None)
        return judge if judge is not None and kind in judge.answers else None

    def fingerprint(self) -> Mapping[str, object]:
        """Return the routes with the fingerprint of each judge."""
        routes = {
            each.label: {"name": each.judge.name, "judge": dict(each.judge.fingerprint())} for each in self.routes
        }
        return {"judge": ROUTED, "routes": routes}

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Return the conversation of the judge that answers the question. The engine asks that judge itself."""
        kind = type(question.questions[0]) if isinstance(question, Pack) else type(question)
        if (part := self.part(kind)) is None:
            raise UsageError(f"The judge {self.name} cannot answer '{kind.kind}' questions.")
        return part.answer(question)


def routed_of(routes: Mapping[type[Question[Any]], Judge], rest: Judge | None = None) -> Judge:
    """Return a judge that passes questions of these kinds to these judges, and all others to `rest`.

    Equal routings make equal judges: kinds of one judge become one route, and a kind that goes to `rest` anyway needs
    no route. If nothing but `rest` is left, it is returned itself.

    Raises UsageError if a judge does not answer a kind of its route.
    """
    for kind, judge in routes.items():
        if kind not in judge.answers:
            known = ", ".join(name for name, each in KINDS.items() if each in judge.answers)
            raise UsageError(
                f"The judge {judge.name} cannot answer '{kind.kind}' questions, so it cannot have this route. "
                f"It answers: {known or 'none'}."
            )
    by_judge: dict[int, tuple[Judge, list[str]]] = {}
    for name, kind in KINDS.items():
        own = routes.get(kind)
        if own is not None and own is not rest:
            by_judge.setdefault(id(own), (own, []))[1].append(name)
    found = [
        Route(",".join(names), frozenset(map(KINDS.__getitem__, names)), judge) for judge, names in by_judge.values()
    ]
    if rest is not None:
        found.append(Route(REST, ALL_KINDS.difference(*(each.kinds for each in found)), rest))
    if rest is not None and len(found) == 1:
        return rest
    return Routed(tuple(found))


def part_for(judge: Judge, kind: type[Question[Any]]) -> Judge | None:
    """Return the judge that answers questions of this kind: that of the route if `judge` is a routed one.

    None if it does not answer them.
    """
    if isinstance(judge, Routed):
        return judge.part(kind)
    return judge if kind in judge.answers else None


def parts_of(judge: Judge) -> tuple[Judge, ...]:
    """Return the judges of all routes; the judge itself if it is not a routed one."""
    return tuple(each.judge for each in judge.routes) if isinstance(judge, Routed) else (judge,)


def each_judge(judges: Iterable[Judge]) -> Iterator[Judge]:
    """Yield all judges that are asked directly: those of the routes of a routed judge."""
    return chain.from_iterable(map(parts_of, judges))


def unavailable_reason(judge: Judge, kinds: Iterable[type[Question[Any]]]) -> str | None:
    """Return why `judge` cannot answer one of these kinds here, such as a missing package; None if it can."""
    parts = (part_for(judge, kind) for kind in kinds)
    reasons = (cast("str | None", getattr(part, "unavailable_reason", None)) for part in parts)
    return next((reason for reason in reasons if reason is not None), None)


class RecordedPart(NamedTuple):
    """A judge as a manifest records it: the whole judge, or that of one route."""

    label: str
    """The label of its route; empty for a whole judge."""
    kinds: frozenset[str]
    """The kinds of question that go to it."""
    name: str
    fingerprint: Mapping[str, Any]  # Any: JSON


def recorded_parts(judge: Mapping[str, object]) -> tuple[RecordedPart, ...]:
    """Return the judges that answered in place of a judge recorded in a manifest: one for each of its routes."""
    marks = as_object(judge.get("fingerprint")) or {}
    every = frozenset(KINDS)
    if marks.get("judge") != ROUTED:
        return (RecordedPart("", every, str(judge.get("name")), marks),)
    routes = as_object(marks.get("routes")) or {}
    named = frozenset(kind for label in routes if label != REST for kind in label.split(","))
    found: list[RecordedPart] = []
    for label, part in routes.items():
        fields = as_object(part) or {}
        kinds = every - named if label == REST else frozenset(label.split(","))
        found.append(RecordedPart(label, kinds, str(fields.get("name")), as_object(fields.get("judge")) or {}))
    return tuple(found)


def is_deterministic(judge: Judge) -> bool:
    """Return True if asking the judge again cannot change a verdict, for a routed judge: all its parts.

    Judges declare this with the attribute `deterministic`; without it, a judge may vary.
    """
    return all(getattr(each, "deterministic", False) for each in each_judge([judge]))


# -- routes in specifications -------------------------------------------------------------------------
# A name in which every comma-separated part is a kind of question is a route. Any other name is the name of a judge.

_WORD: Final = r"[A-Za-z_][\w-]*"
_NAMED: Final = re.compile(rf"({_WORD}(?:\s*,\s*{_WORD})*)\s*=(.+)", re.DOTALL)
INSTRUMENTS: Final = ("embeddings", "similarities")
"""Kinds that compare texts. Each has its own model, which is asked no other kind."""
_NOT_ROUTED: Final = (*INSTRUMENTS, "sentences")
_MISSPELT: Final = 0.87
"""Similarity from which the name of a judge counts as a misspelt kind: `supports` for `support`."""


class Server(NamedTuple):
    """The address of a provider's models, the variable of their key, and how questions are sent."""

    base_url: str | None = None
    api_key_env: str | None = None
    judged: str | None = None


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
            f"These are not one judge: {judges}. To combine judges, give each kinds of question, as in support=SPEC."
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
