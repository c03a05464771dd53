"""What a run knows: cuts steps into units, looks answers up in the run and the cache, keeps new ones.

The part of the engine that all drivers share; it does no waiting and no sending.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.errors import UsageError
from merilo.judges.base import PACK_SIZE
from merilo.judging.digests import digest_json, digest_of, digest_text
from merilo.judging.questions import Completion, Embeddings, Pack, Question, Sentences, Similarities
from merilo.judging.verdicts import Failure, Verdict
from merilo.runs.store import Exchange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from merilo.engine.cache import VerdictCache
    from merilo.judges.base import Judge
    from merilo.judging.ask import Answer, Group, Step
    from merilo.providers.base import Reply
    from merilo.runs.store import Store

_SPECIAL: dict[type[Question[Any]], str] = {
    Embeddings: "embedder",
    Similarities: "similarity",
    Sentences: "splitter",
}


@dataclass(frozen=True, slots=True)
class Roles:
    """Which judge answers which kind and role. `judges` maps role names to judges; `judge` is the default."""

    judges: Mapping[str, Judge]

    @property
    def named(self) -> tuple[str, ...]:
        """One role for each judge of judgements, in the order given; a judge with two roles counts once."""
        own = {role: judge for role, judge in self.judges.items() if role not in _SPECIAL.values()}
        found = {id(judge): role for role, judge in own.items() if role != "judge"}
        return tuple(found.values()) or tuple(own)

    def judge(self, kind: type[Question[Any]], role: str) -> Judge | None:
        """The judge for questions of this type and role; None when none answers them."""
        named = self.judges.get(_SPECIAL.get(kind, role)) or self.judges.get(role)
        return named if named is not None and kind in named.answers else None

    def lacking(self, kinds: Iterable[type[Question[Any]]], role: str = "judge") -> str | None:
        """The first of these question types that nobody answers, as a phrase; None when all are answered."""
        for kind in sorted(kinds, key=lambda kind: kind.kind):
            if self.judge(kind, role) is None:
                name = self.judges[role].name if role in self.judges else role
                return f"the judge {name} does not answer questions of kind '{kind.kind}'"
        return None


@dataclass(frozen=True, slots=True)
class Unit:
    """What one conversation answers: a question, or questions asked as one pack."""

    judge: Judge
    asked: Question[Any] | Pack
    questions: tuple[Question[Any], ...]
    keys: tuple[bytes, ...]

    @property
    def flight(self) -> bytes:
        """Equal for equal units: only one of them is in the air at a time."""
        return self.keys[0] if len(self.keys) == 1 else digest_of(*self.keys)


class Answers:
    """Everything answered in one run, kept before any plan sees it."""

    def __init__(self, roles: Roles, store: Store, cache: VerdictCache | None) -> None:
        self._roles = roles
        self._store = store
        self._cache = cache
        self._fingerprints: dict[int, bytes] = {
            id(judge): digest_json(judge.fingerprint()) for judge in roles.judges.values()
        }

    def units(self, step: Step) -> list[Unit]:
        """The units of a step, in ask order; their questions together are the step's questions in order."""
        return [self._unit(asked) for group in step for asked in self._cut(group)]

    def known(self, unit: Unit) -> tuple[Answer, ...] | None:
        """The answers to all questions of a unit, from this run or the cache; None when one is missing."""
        in_run = [self._store.answer(key, q.verdict) for key, q in zip(unit.keys, unit.questions, strict=True)]
        answers = [answer for answer in in_run if answer is not None]
        if len(answers) == len(in_run):
            return tuple(answers)
        if self._cache is None or not unit.judge.cacheable:
            return None
        cached = [self._cache.get(key, q.verdict) for key, q in zip(unit.keys, unit.questions, strict=True)]
        verdicts = [
            verdict
            for verdict, question in zip(cached, unit.questions, strict=True)
            if verdict is not None and question.fault(verdict) is None
        ]
        if len(verdicts) < len(cached):
            return None
        self._store.keep(list(zip(unit.keys, unit.questions, verdicts, strict=True)), None)
        self.commit_if_due()
        return tuple(verdicts)

    def keep(
        self,
        unit: Unit,
        answers: Sequence[Answer],
        replies: Sequence[Reply | Failure],
        cost: float | None,
        seconds: float,
    ) -> tuple[Answer, ...]:
        """Store what a conversation gave; returns what the run holds now (an earlier cached verdict wins)."""
        kept = tuple(answers)
        if self._cache is not None and unit.judge.cacheable:
            asked = zip(unit.keys, unit.questions, answers, strict=True)
            kept = tuple(_winner(self._cache, key, question, answer) for key, question, answer in asked)
            self._cache.commit()  # at once: others wait for it while a long question is thought about
        exchange = Exchange(unit.judge.name, unit.judge.rubric(unit.asked), tuple(replies), cost)
        self._store.keep(list(zip(unit.keys, unit.questions, kept, strict=True)), exchange, seconds=seconds)
        self.commit_if_due()
        return kept

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

    def _unit(self, asked: Question[Any] | Pack) -> Unit:
        questions = asked.questions if isinstance(asked, Pack) else (asked,)
        judge = self._judge(questions[0])
        together = isinstance(asked, Pack) and not isinstance(questions[0], Completion)
        common = (digest_text(judge.rubric(asked)), self._fingerprints[id(judge)], _schema(questions[0].verdict))
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
