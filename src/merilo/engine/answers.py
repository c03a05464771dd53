"""What a run knows: cuts steps into units, looks answers up in the run and the cache, keeps new ones.

The part of the engine that all drivers share; it does no waiting and no sending.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from merilo.errors import UsageError
from merilo.judges.base import PACK_SIZE
from merilo.judging.digests import digest_json, digest_of, digest_text
from merilo.judging.questions import Completion, Embeddings, Pack, Question, Sentences, Similarities
from merilo.judging.verdicts import Failure, Verdict
from merilo.providers.base import ReplyPath
from merilo.runs.store import Exchange

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from merilo.engine.cache import VerdictCache
    from merilo.judges.base import Judge
    from merilo.judging.ask import Answer, Group, Step
    from merilo.providers.base import Reply
    from merilo.runs.store import Store

    Held = dict[bytes, Answer]

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


@dataclass(frozen=True, slots=True)
class Unit:
    """What one conversation answers: a question, questions judged together, or draws of one completion."""

    judge: Judge
    asked: Question[Any] | Pack
    questions: tuple[Question[Any], ...]
    keys: tuple[bytes, ...]

    @property
    def whole(self) -> bool:
        """True for questions that were judged together; draws share a request, but each is an answer by itself."""
        return len(self.questions) > 1 and not isinstance(self.questions[0], Completion)

    def without(self, held: Container[bytes]) -> Unit | None:
        """What is left to ask when the answers under these keys are held; None when nothing is.

        Questions judged together are asked whole or not at all.
        """
        left = {key: question for key, question in zip(self.keys, self.questions, strict=True) if key not in held}
        if not left or self.whole or len(left) == len(self.keys):
            return self if left else None
        return Unit(self.judge, _packed([*left.values()]), tuple(left.values()), tuple(left))


class Answers:
    """Everything answered in one run, kept before any plan sees it."""

    def __init__(self, roles: Roles, store: Store, cache: VerdictCache | None) -> None:
        self._roles = roles
        self._store = store
        self._cache = cache
        self._fingerprints: dict[int, bytes] = {}

    def units(self, step: Step) -> list[Unit]:
        """The units of a step, in ask order; their questions together are the step's questions in order."""
        return [self._unit(asked) for group in step for asked in self._cut(group)]

    def known(self, unit: Unit) -> tuple[Held, Unit | None]:
        """The answers that this run or the cache holds, and what is left to ask; None when nothing is."""
        held: Held = {}
        for key, question in zip(unit.keys, unit.questions, strict=True):
            answer = self._store.answer(key, question.verdict)
            if answer is not None:
                held[key] = answer
        rest = unit.without(held)
        if rest is None or self._cache is None or not unit.judge.cacheable:
            return held, rest
        held |= self._cached(rest, self._cache)
        return held, rest.without(held)

    def _cached(self, unit: Unit, cache: VerdictCache) -> Held:
        """The unit's verdicts that the cache holds, now held by the run too."""
        found: list[tuple[bytes, Question[Any], Answer]] = []
        for key, question in zip(unit.keys, unit.questions, strict=True):
            verdict = cache.get(key, question.verdict)
            if verdict is not None and question.fault(verdict) is None:
                found.append((key, question, verdict))
        if not found or (unit.whole and len(found) < len(unit.keys)):
            return {}
        kept = self._store.keep(found, None)
        self.commit_if_due()
        return {key: answer for (key, *_), answer in zip(found, kept, strict=True)}

    def keep(
        self,
        unit: Unit,
        answers: Sequence[Answer],
        replies: Sequence[Reply | Failure],
        cost: float | None,
        seconds: float,
    ) -> Held:
        """Store what a conversation gave; returns what the run holds now (an earlier verdict wins)."""
        kept = tuple(answers)
        if self._cache is not None and unit.judge.cacheable:
            asked = zip(unit.keys, unit.questions, answers, strict=True)
            kept = tuple(_winner(self._cache, key, question, answer) for key, question, answer in asked)
            self._cache.commit()  # at once: others wait for it while a long question is thought about
        sent = tuple(reply for reply in replies if isinstance(reply, Failure) or reply.path is not ReplyPath.LOCAL)
        exchange = Exchange(unit.judge.name, unit.judge.rubric(unit.asked), sent, cost)
        rows = list(zip(unit.keys, unit.questions, kept, strict=True))
        held = self._store.keep(rows, exchange, seconds=seconds)
        self.commit_if_due()
        return dict(zip(unit.keys, held, strict=True))

    def commit_if_due(self) -> None:
        """Commit run and cache when enough rows or time have gathered."""
        if self._store.due():
            self._store.commit()
        if self._cache is not None and self._cache.due():
            self._cache.commit()

    def commit(self) -> None:
        """Commit run and cache now."""
        self._store.commit()
        if self._cache is not None:
            self._cache.commit()

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

    def _fingerprint(self, judge: Judge) -> bytes:
        found = self._fingerprints.get(id(judge))  # judges live as long as the roles
        if found is None:
            found = self._fingerprints[id(judge)] = digest_json(judge.fingerprint())
        return found

    def _unit(self, asked: Question[Any] | Pack) -> Unit:
        questions = asked.questions if isinstance(asked, Pack) else (asked,)
        judge = self._judge(questions[0])
        together = isinstance(asked, Pack) and not isinstance(questions[0], Completion)
        common = (digest_text(judge.rubric(asked)), self._fingerprint(judge), _schema(questions[0].verdict))
        pack = asked.content if together else b""
        keys = tuple(
            digest_of(
                question.content,
                *common,
                question.draw.to_bytes(4, "little"),
                pack,
                place.to_bytes(2, "little") if together else b"",
            )
            for place, question in enumerate(questions)
        )
        return Unit(judge, asked, questions, keys)


def _winner(cache: VerdictCache, key: bytes, question: Question[Any], answer: Answer) -> Answer:
    """The verdict that the cache holds now; one that contradicts its question is replaced by ours."""
    if isinstance(answer, Failure):
        return answer
    held = cache.put(key, answer)
    if held is answer or question.fault(held) is None:
        return held
    cache.replace(key, answer)
    return answer


def _packed(pack: list[Question[Any]]) -> Question[Any] | Pack:
    return pack[0] if len(pack) == 1 else Pack(tuple(pack))


def _schema(verdict: type[Verdict]) -> bytes:
    found = _SCHEMAS.get(verdict)
    if found is None:
        fields = {name: str(field.type) for name, field in verdict.__dataclass_fields__.items()}
        found = _SCHEMAS[verdict] = digest_json({"verdict": verdict.__name__, "fields": fields})
    return found


_SCHEMAS: dict[type[Verdict], bytes] = {}
