"""What a run knows: cuts steps into units, looks answers up in the run and the cache, keeps new ones.

The part of the engine that all drivers share; it does no waiting and no sending.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.errors import UsageError
from merilo.judges.base import PACK_SIZE
from merilo.judges.cascade import Cascade, with_stages
from merilo.judging.digests import FRAME, digest_bytes, digest_json, digest_of, digest_text, framed
from merilo.judging.questions import Completion, Embeddings, Pack, Question, Sentences, Similarities
from merilo.judging.verdicts import Failure, Verdict
from merilo.providers.base import Reply, ReplyPath
from merilo.runs.store import Exchange

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from merilo.engine.cache import VerdictCache
    from merilo.judges.base import Judge
    from merilo.judging.ask import Answer, Group, Step
    from merilo.runs.store import Heard, Store

    Held = dict[bytes, Answer]

_REMEMBERED: Final = 4_096

SPECIAL: Final[Mapping[type[Question[Any]], str]] = {
    Embeddings: "embedder",
    Similarities: "similarity",
    Sentences: "splitter",
}
"""The kinds of question that have a role of their own: no judgements, but measurements of texts."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Which judge answers which kind and role. `judges` maps role names to judges; `judge` is the default.

    Vectors, similarities and sentences go to the roles of `SPECIAL`, whatever role the question carries; where
    such a role is not filled, to the judge of the question's own.
    """

    judges: Mapping[str, Judge]

    @property
    def judgements(self) -> dict[str, Judge]:
        """The judges by role, without the special roles."""
        return {role: judge for role, judge in self.judges.items() if role not in SPECIAL.values()}

    @property
    def named(self) -> tuple[str, ...]:
        """One role for each judge of judgements, in the order given; a judge with two roles counts once."""
        own = self.judgements
        found = {id(judge): role for role, judge in own.items() if role != "judge"}
        return tuple(found.values()) or tuple(own)

    def judge(self, kind: type[Question[Any]], role: str) -> Judge | None:
        """The judge for questions of this type and role; None when none answers them."""
        named = self.judges.get(SPECIAL.get(kind, role)) or self.judges.get(role)
        return named if named is not None and kind in named.answers else None

    def lacking(self, kinds: Iterable[type[Question[Any]]], role: str = "judge") -> str | None:
        """The first of these question types that nobody answers, as a phrase; None when all are answered."""
        for kind in sorted(kinds, key=lambda kind: kind.kind):
            judge = self.judge(kind, role)
            if judge is None:
                asked = self.judges.get(SPECIAL.get(kind, role)) or self.judges.get(role)
                name = role if asked is None else asked.name
                return f"the judge {name} does not answer questions of kind '{kind.kind}'"
            unready: str | None = getattr(judge, "unready", None)
            if unready is not None:
                return unready
        return None

    def special(self, kinds: Iterable[type[Question[Any]]]) -> dict[str, Judge]:
        """Those of the special roles that answer one of these question types, by role."""
        found = {SPECIAL[kind]: self.judge(kind, "judge") for kind in SPECIAL if kind in set(kinds)}
        return {role: judge for role, judge in found.items() if judge is not None}


class Unit(NamedTuple):
    """What one conversation answers: a question, questions judged together, or draws of one completion."""

    judge: Judge
    asked: Question[Any] | Pack
    questions: tuple[Question[Any], ...]
    keys: tuple[bytes, ...]

    @property
    def key(self) -> bytes:
        """Of the conversation about all of it."""
        return self.keys[0] if len(self.keys) == 1 else digest_of(*self.keys)

    @property
    def whole(self) -> bool:
        """True for questions that were judged together; draws share a request, but each is an answer by itself."""
        return len(self.questions) > 1 and not isinstance(self.questions[0], Completion)

    def without(self, held: Container[bytes]) -> Unit | None:
        """What is left to ask when the answers under these keys are held; None when nothing is.

        Questions judged together are asked whole or not at all.
        """
        if len(self.keys) == 1:
            return None if self.keys[0] in held else self
        left = {key: question for key, question in zip(self.keys, self.questions, strict=True) if key not in held}
        if not left or self.whole or len(left) == len(self.keys):
            return self if left else None
        return Unit(self.judge, _packed([*left.values()]), tuple(left.values()), tuple(left))


class Answers:
    """Everything answered in one run, kept before any plan sees it."""

    def __init__(self, roles: Roles, store: Store, cache: VerdictCache | None) -> None:
        self._roles = Roles(with_stages(roles.judges))
        self._store = store
        self._cache = cache
        self._commons: dict[tuple[int, str, type[Verdict]], bytes] = {}

    def units(self, step: Step) -> list[Unit]:
        """The units of a step, in ask order; their questions together are the step's questions in order."""
        return [self._unit(asked) for group in step for asked in self._cut(group)]

    def known(self, unit: Unit) -> tuple[Held, Unit | None]:
        """The answers that this run or the cache holds, and what is left to ask; None when nothing is."""
        return self.known_all((unit,))[0]

    def known_all(self, units: Sequence[Unit]) -> list[tuple[Held, Unit | None]]:
        """`known` for each of these units, with one look-up in the run and one in the cache for all of them."""
        wanted: dict[bytes, type[Verdict]] = {}
        for unit in units:
            wanted.update(dict.fromkeys(unit.keys, unit.questions[0].verdict))
        held = self._store.answers(wanted)
        cache = self._cache
        if cache is not None and len(held) < len(wanted):
            rests = [unit.without(held) for unit in units]
            held |= self._cached([unit for unit in rests if unit is not None and unit.judge.cacheable], cache)
        found: list[tuple[Held, Unit | None]] = []
        for unit in units:
            own = {key: held[key] for key in unit.keys if key in held}
            found.append((own, unit.without(own)))
        return found

    def _cached(self, units: Sequence[Unit], cache: VerdictCache) -> Held:
        """The units' verdicts that the cache holds, now held by the run too."""
        wanted = {key: question for unit in units for key, question in zip(unit.keys, unit.questions, strict=True)}
        verdicts = cache.find(wanted)
        if not verdicts:
            return {}
        torn = {
            key for unit in units if unit.whole and not all(map(verdicts.__contains__, unit.keys)) for key in unit.keys
        }
        rows: list[tuple[bytes, Question[Any], Answer]] = [
            (key, wanted[key], verdict) for key, verdict in verdicts.items() if key not in torn
        ]
        kept = self._store.keep(rows, None)
        self.commit_if_due()
        return {key: answer for (key, *_), answer in zip(rows, kept, strict=True)}

    def keep(
        self,
        unit: Unit,
        answers: Sequence[Answer],
        replies: Sequence[Reply | Failure],
        cost: float | None,
        seconds: float,
    ) -> Held:
        """Store what a conversation gave; returns what the run holds now (an earlier verdict wins)."""
        name = unit.judge.name
        sent = tuple(reply for reply in replies if isinstance(reply, Failure) or reply.path is not ReplyPath.LOCAL)
        rows = list(zip(unit.keys, unit.questions, answers, strict=True))
        if self._cache is not None and unit.judge.cacheable:
            rows = _winners(self._cache, rows, name, paid=bool(sent))
        exchange = Exchange(name, unit.judge.rubric(unit.asked), sent, cost)
        if self._store.unfinished:
            self._store.forget(unit.key)
        held = self._store.keep(rows, exchange, seconds=seconds)
        self.commit_if_due()
        return dict(zip(unit.keys, held, strict=True))

    def leave(self, unit: Unit, replies: Sequence[Reply | Failure | None], cost: float | None, seconds: float) -> None:
        """Store what a conversation heard that is broken off; None stands for a reply that has not come.

        That of a judge on this machine costs nothing anew, and is not stored.
        """
        came = tuple(reply for reply in replies if reply is not None)
        if came and not any(isinstance(reply, Reply) and reply.path is ReplyPath.LOCAL for reply in came):
            exchange = Exchange(unit.judge.name, unit.judge.rubric(unit.asked), came, cost)
            self._store.leave(unit.key, exchange, replies, seconds=seconds)

    def heard(self, unit: Unit) -> Heard | None:
        """What a conversation about this had heard when an earlier part of the run ended; None where there was none."""
        return self._store.heard(unit.key) if self._store.unfinished else None

    def cascades(self) -> list[tuple[Cascade, tuple[str, ...]]]:
        """The cascades among the judges, each once, with all its roles."""
        roles: dict[int, list[str]] = {}
        found: dict[int, Cascade] = {}
        for role, judge in self._roles.judges.items():
            if isinstance(judge, Cascade):
                found[id(judge)] = judge
                roles.setdefault(id(judge), []).append(role)
        return [(cascade, tuple(roles[key])) for key, cascade in found.items()]

    def judge_of(self, kind: type[Question[Any]], role: str) -> Judge | None:
        """Return the judge for questions of this kind and role; None if no judge answers them."""
        return self._roles.judge(kind, role)

    def recast(self, cascades: Sequence[Cascade]) -> None:
        """Answer by these cascades from now on, in the order of `cascades`: the same ones with other thresholds."""
        changed = {id(old): new for (old, _), new in zip(self.cascades(), cascades, strict=True)}
        judges = {role: changed.get(id(judge), judge) for role, judge in self._roles.judges.items()}
        self._roles = Roles(judges)
        self._commons.clear()  # it is keyed by the ids of judges

    def commit_if_due(self) -> None:
        """Commit run and cache when enough rows or time have gathered."""
        if self._cache is not None and self._cache.due():
            self.commit()
        elif self._store.due():
            self._store.commit()

    def due_in(self) -> float | None:
        """Seconds until `commit_if_due` has something to do; 0.0 when it has, None while nothing waits."""
        waits = (self._store.due_in(), None if self._cache is None else self._cache.due_in())
        return min((wait for wait in waits if wait is not None), default=None)

    def commit(self) -> None:
        """Commit run and cache now; the cache first, so that a stop between the two loses nothing."""
        if self._cache is not None:
            self._cache.commit()
        self._store.commit()

    def notices(self) -> Sequence[str]:
        """What the user should be told once of the cache."""
        return () if self._cache is None else self._cache.notices()

    def _cut(self, group: Group) -> Iterable[Question[Any] | Pack]:
        """Consecutive questions that may be judged together, in packs of at most ten; others alone."""
        pack: list[Question[Any]] = []
        for question in group:
            if pack and (len(pack) == PACK_SIZE or not self._mates(pack[0], question)):
                yield _packed(pack)
                pack = []
            pack.append(question)
        if pack:
            yield _packed(pack)

    def _mates(self, first: Question[Any], other: Question[Any]) -> bool:
        if type(first) is not type(other) or first.role != other.role or first.language != other.language:
            return False
        if isinstance(first, Completion):
            return first.at(0) == other.at(0)
        kind = type(first)
        if not kind.shared or first.draw != other.draw or kind not in self._judge(first).together:
            return False
        return all(getattr(first, name) == getattr(other, name) for name in kind.shared)

    def _judge(self, question: Question[Any]) -> Judge:
        judge = self._roles.judge(type(question), question.role)
        if judge is None:
            raise UsageError(
                f"A metric asked a question of kind '{question.kind}' as role '{question.role}', which no judge "
                "of this run answers; name the question type in the metric's `asks`."
            )
        return judge

    def _common(self, judge: Judge, rubric: str, verdict: type[Verdict]) -> bytes:
        """What the keys of all questions have in common that are asked so of this judge, framed."""
        common = self._commons.get((id(judge), rubric, verdict))  # judges live as long as the roles
        if common is None:
            if len(self._commons) >= _REMEMBERED:  # a judge of one's own may have a rubric for each question
                self._commons.clear()
            parts = (digest_text(rubric), digest_json(judge.fingerprint()), _schema(verdict))
            common = self._commons[id(judge), rubric, verdict] = framed(*parts)
        return common

    def _unit(self, asked: Question[Any] | Pack) -> Unit:
        questions = asked.questions if isinstance(asked, Pack) else (asked,)
        first = questions[0]
        judge = self._judge(first)
        common = self._common(judge, judge.rubric(asked), first.verdict)
        if not isinstance(asked, Pack):
            return Unit(judge, asked, questions, (_key(asked.content, common, asked.draw, _ALONE),))
        if isinstance(first, Completion):
            draws = tuple(_key(question.content, common, question.draw, _ALONE) for question in questions)
            return Unit(judge, asked, questions, draws)
        contents = [question.content for question in questions]
        pack = digest_of(b"pack", *contents)
        keys = tuple(
            _key(content, common, question.draw, framed(pack, place.to_bytes(2, "little")))
            for place, (content, question) in enumerate(zip(contents, questions, strict=True))
        )
        return Unit(judge, asked, questions, keys)


_ALONE: Final = framed(b"", b"")
"""The place in a pack of a question that is asked alone."""


def _key(content: bytes, common: bytes, draw: int, place: bytes) -> bytes:
    return digest_bytes(b"".join((FRAME, content, common, _framed_draw(draw), place)))


@lru_cache(maxsize=256)
def _framed_draw(draw: int) -> bytes:
    return framed(draw.to_bytes(4, "little"))


def _winners(
    cache: VerdictCache, rows: list[tuple[bytes, Question[Any], Answer]], judge: str, *, paid: bool
) -> list[tuple[bytes, Question[Any], Answer]]:
    """The rows with the verdicts that the cache holds now, which are earlier ones where it had any."""
    verdicts = [(key, question, answer) for key, question, answer in rows if not isinstance(answer, Failure)]
    held = dict(zip((key for key, *_ in verdicts), cache.put(verdicts, judge, paid=paid), strict=True))
    return [(key, question, held.get(key, answer)) for key, question, answer in rows]


def _packed(pack: list[Question[Any]]) -> Question[Any] | Pack:
    return pack[0] if len(pack) == 1 else Pack(tuple(pack))


def _schema(verdict: type[Verdict]) -> bytes:
    found = _SCHEMAS.get(verdict)
    if found is None:
        fields = {name: str(field.type) for name, field in verdict.__dataclass_fields__.items()}
        found = _SCHEMAS[verdict] = digest_json({"verdict": verdict.__name__, "fields": fields})
    return found


_SCHEMAS: dict[type[Verdict], bytes] = {}
