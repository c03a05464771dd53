"""The answer store of a run: divides steps into work units, looks up answers in the run and the cache, and stores new
ones.

All drivers share this part of the engine. It does not wait and sends nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.errors import UsageError
from merilo.judges.base import PACK_SIZE, BundlingJudge, Judge, is_bundling
from merilo.judges.routed import Routed, part_for, parts_of
from merilo.judging.digests import FRAME, digest_bytes, digest_digests, digest_json, digest_text, framed
from merilo.judging.kinds.responses import Completion
from merilo.judging.questions import Pack, Question
from merilo.judging.registry import SPECIAL
from merilo.judging.verdicts import Failure, Verdict, later_fields, per_type
from merilo.judging.views import ALONE, Bundle
from merilo.providers.base import Reply, ReplyPath
from merilo.runs.records import Exchange, SavedReplies

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.engine.cache import VerdictCache
    from merilo.judging.ask import Answer, Group, Step
    from merilo.runs.store import Store

    KnownAnswers = dict[bytes, Answer]

_REMEMBERED: Final = 4_096


@dataclass(frozen=True, slots=True)
class JudgeRoles:
    """The judge for each question type and role. `judges` maps role names to judges; `judge` is the default role.

    Questions for vectors, similarities and sentences go to the roles of `SPECIAL`, whatever role they carry. If such a
    role has no judge, they go to the judge of the role that they carry.
    """

    judges: Mapping[str, Judge]

    @property
    def judgements(self) -> dict[str, Judge]:
        """Judges by role, without the special roles."""
        return {role: judge for role, judge in self.judges.items() if role not in SPECIAL.values()}

    @property
    def named(self) -> tuple[str, ...]:
        """One role for each judge of judgements, in the given order; a judge with two roles counts once."""
        own = self.judgements
        found = {id(judge): role for role, judge in own.items() if role != "judge"}
        return tuple(found.values()) or tuple(own)

    def judge(self, kind: type[Question[Any]], role: str) -> Judge | None:
        """Return the judge for questions of this type and role; None if no judge answers them."""
        named = self.judges.get(SPECIAL.get(kind, role)) or self.judges.get(role)
        return None if named is None else part_for(named, kind)

    @property
    def bundlers(self) -> list[BundlingJudge]:
        """The judges that are asked questions of several kinds in one request."""
        parts = chain.from_iterable(map(parts_of, self.judges.values()))
        return [each for each in parts if is_bundling(each)]

    def lacking(self, kinds: Iterable[type[Question[Any]]], role: str = "judge") -> str | None:
        """Return why the first of these question types cannot be answered, as a phrase; None if all can."""
        for kind in sorted(kinds, key=lambda kind: kind.kind):
            judge = self.judge(kind, role)
            if judge is None:
                asked = self.judges.get(SPECIAL.get(kind, role)) or self.judges.get(role)
                name = role if asked is None else asked.name
                routed = isinstance(asked, Routed) or (asked is not None and asked in self.bundlers)
                if kind is Completion and not routed:
                    return f"the {name} judge writes no free text. Use an LLM judge: --judge openai:MODEL"
                advice = f" (add --judge {kind.kind}=SPEC)" if routed else ""
                return f"the judge {name} cannot answer '{kind.kind}' questions{advice}"
            unavailable_reason: str | None = getattr(judge, "unavailable_reason", None)
            if unavailable_reason is not None:
                return unavailable_reason
        return None

    def special(self, kinds: Iterable[type[Question[Any]]]) -> dict[str, Judge]:
        """Return the judges of the special roles that answer one of these question types, by role."""
        found = {SPECIAL[kind]: self.judge(kind, "judge") for kind in SPECIAL if kind in set(kinds)}
        return {role: judge for role, judge in found.items() if judge is not None}


class WorkUnit(NamedTuple):
    """A work unit, answered in one judge session: a question, a pack, draws of one completion, or a bundle."""

    judge: Judge
    asked: Question[Any] | Pack
    questions: tuple[Question[Any], ...]
    keys: tuple[bytes, ...]
    rubric: str | None = None
    """The text of the rubric; None if it has to be looked up."""
    sample: str | None = None
    """The id of the sample that it is about; None if it is about no sample of the run."""

    @property
    def key(self) -> bytes:
        """Key of the session about the whole unit."""
        return self.keys[0] if len(self.keys) == 1 else digest_digests(self.keys)

    @property
    def whole(self) -> bool:
        """True for questions that are judged together; those of draws and bundles only share a request."""
        return len(self.questions) > 1 and not (self.bundled or isinstance(self.questions[0], Completion))

    @property
    def bundled(self) -> bool:
        """True if other questions about the same view may be asked in the same request."""
        return self.asked.__class__ is Bundle

    @property
    def view_key(self) -> bytes:
        """The digest of the view of a bundle; equal views share a request."""
        bundle = self.asked
        if not isinstance(bundle, Bundle):
            raise TypeError("only a bundle has a view")
        return bundle.view.digest

    def without(self, held: Container[bytes]) -> WorkUnit | None:
        """Return the unit without the questions whose answers are held under these keys; None if none is left.

        Questions that are judged together stay together: all of them are asked, or none.
        """
        if len(self.keys) == 1:
            return None if self.keys[0] in held else self
        left = {key: place for place, key in enumerate(self.keys) if key not in held}
        if not left or self.whole or len(left) == len(self.keys):
            return self if left else None
        questions = tuple([self.questions[place] for place in left.values()])
        asked = Bundle(questions, self.asked.view) if isinstance(self.asked, Bundle) else _packed(questions)
        return self._replace(asked=asked, questions=questions, keys=(*left,), rubric=None)


def bundle_of(units: Sequence[WorkUnit]) -> WorkUnit:
    """Return one unit of several units of one judge about the same view."""
    first = units[0]
    if not isinstance(first.asked, Bundle) or len(units) == 1:
        return first
    questions = tuple(question for unit in units for question in unit.questions)
    keys = tuple(key for unit in units for key in unit.keys)
    return first._replace(asked=Bundle(questions, first.asked.view), questions=questions, keys=keys, rubric=None)


class AnswerStore:
    """The answer store: every answer is stored in the run before a plan receives it."""

    def __init__(self, roles: JudgeRoles, store: Store, cache: VerdictCache | None) -> None:
        self._roles = roles
        self._store = store
        self._cache = cache
        self._commons: dict[tuple[int, str, type[Verdict]], bytes] = {}
        self._names: dict[int, str] = {}  # by id of a judge, which may compute it from its provider's address
        self._judges: dict[tuple[type[Question[Any]], str], Judge] = {}
        self.bundlers = {id(each): each for each in roles.bundlers}
        """The judges that are asked in bundles, whose answers do not depend on each other."""

    def units(self, step: Step, sample: Sample | None = None) -> list[WorkUnit]:
        """Return the work units of a step, in ask order. Their questions, concatenated, are the step's questions in
        order.

        `sample`: the sample that they are asked about, whose views a judge of bundles reads.
        """
        return [
            self._unit(asked, sample) for group in step for asked in (group if len(group) == 1 else self._cut(group))
        ]

    def known_all(self, units: Sequence[WorkUnit]) -> list[tuple[KnownAnswers, WorkUnit | None]]:
        """Return for each unit the answers that this run or the cache holds, and the unit that is left to ask, if any.

        There is one look-up in the run and one in the cache for all units.
        """
        wanted: dict[bytes, type[Verdict]] = {}
        for unit in units:
            wanted.update(dict.fromkeys(unit.keys, unit.questions[0].verdict))
        held = self._store.answers(wanted)
        cache = self._cache
        if cache is not None and len(held) < len(wanted):
            rests = [unit.without(held) for unit in units] if held else units
            held |= self._cached([unit for unit in rests if unit is not None and unit.judge.cacheable], cache)
        if not held:
            return [({}, unit if len(unit.keys) == 1 else unit.without(())) for unit in units]  # equal draws are one
        found: list[tuple[KnownAnswers, WorkUnit | None]] = []
        for unit in units:
            own = {key: held[key] for key in unit.keys if key in held}
            found.append((own, unit.without(own)))
        return found

    def _cached(self, units: Sequence[WorkUnit], cache: VerdictCache) -> KnownAnswers:
        """Return the units' verdicts that the cache holds, after storing them in the run."""
        wanted = {key: question for unit in units for key, question in zip(unit.keys, unit.questions, strict=True)}
        verdicts = cache.find(wanted)
        if not verdicts:
            return {}
        # questions judged together were judged in one context: a cached part of a pack does not answer it
        torn = {
            key for unit in units if unit.whole and not all(map(verdicts.__contains__, unit.keys)) for key in unit.keys
        }
        found: KnownAnswers = {}
        for unit in units:
            keys = [key for key in dict.fromkeys(unit.keys) if key in verdicts and key not in torn and key not in found]
            rows = [(key, wanted[key], verdicts[key]) for key in keys]
            found.update(zip(keys, self._store.keep(rows, None, sample=unit.sample), strict=True))
        self.commit_if_due()
        return found

    def keep(
        self,
        unit: WorkUnit,
        answers: Sequence[Answer],
        replies: Sequence[Reply | Failure],
        cost: float | None,
        seconds: float,
    ) -> KnownAnswers:
        """Store a session's answers without a commit; return those that the run holds now (an earlier verdict wins)."""
        number = id(unit.judge)
        name = self._names.get(number) or self._names.setdefault(number, unit.judge.name)
        sent = tuple([reply for reply in replies if type(reply) is Failure or reply.path is not ReplyPath.LOCAL])
        rows = list(zip(unit.keys, unit.questions, answers, strict=True))
        if self._cache is not None and unit.judge.cacheable:
            given = [(key, question, answer) for key, question, answer in rows if not isinstance(answer, Failure)]
            self._cache.put(given, name, paid=bool(sent))
        rubric = unit.judge.rubric(unit.asked) if unit.rubric is None else unit.rubric
        exchange = Exchange(name, rubric, sent, cost)
        if self._store.unfinished:
            self._store.forget(unit.key)
        kept = self._store.keep(rows, exchange, sample=unit.sample, seconds=seconds)
        return dict(zip(unit.keys, kept, strict=True))

    def reject(self, keys: Sequence[bytes]) -> None:
        """Share these answers with no other run, since a plan failed with them. This run keeps them, as a record."""
        if self._cache is not None:
            self._cache.drop(keys)

    def leave(
        self, unit: WorkUnit, replies: Sequence[Reply | Failure | None], cost: float | None, seconds: float
    ) -> None:
        """Store the replies of an interrupted judge session; None stands for a reply that has not arrived.

        Replies of a judge on this machine are not stored, since repeating them costs nothing.
        """
        came = tuple(reply for reply in replies if reply is not None)
        if came and not any(isinstance(reply, Reply) and reply.path is ReplyPath.LOCAL for reply in came):
            exchange = Exchange(unit.judge.name, unit.judge.rubric(unit.asked), came, cost)
            self._store.leave(unit.key, exchange, replies, seconds=seconds)

    def saved_replies(self, unit: WorkUnit) -> SavedReplies | None:
        """Return the replies of a session interrupted in an earlier part of the run; None if there are none."""
        return self._store.saved_replies(unit.key) if self._store.unfinished else None

    def commit_if_due(self) -> None:
        """Commit the run and the cache if enough rows or time have accumulated."""
        if self._cache is not None and self._cache.due():
            self.commit()
        elif self._store.due():
            self._store.commit()

    def due_in(self) -> float | None:
        """Return the seconds until `commit_if_due` has work to do; 0.0 if it has now, None if nothing is pending."""
        waits = (self._store.due_in(), None if self._cache is None else self._cache.due_in())
        return min((wait for wait in waits if wait is not None), default=None)

    def commit(self) -> None:
        """Commit the cache and then the run, so that a kill between the two loses nothing."""
        if self._cache is not None:
            self._cache.commit()
        self._store.commit()

    def notices(self) -> Sequence[str]:
        """Return messages about the cache for the user."""
        return () if self._cache is None else self._cache.notices()

    def _cut(self, group: Group) -> Iterable[Question[Any] | Pack]:
        """Yield consecutive questions that may be judged together in packs of at most ten, and others alone."""
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
        return all(getattr(first, name) == getattr(other, name) for name in ("history", *kind.shared))

    def _judge(self, question: Question[Any]) -> Judge:
        known = (type(question), question.role)
        if known in self._judges:
            return self._judges[known]
        judge = self._roles.judge(*known)
        if judge is None:
            raise UsageError(
                f"A metric asked a '{question.kind}' question in role '{question.role}', which no judge of this run "
                "answers. Add the question type to the metric's `asks`."
            )
        self._judges[known] = judge
        return judge

    def _common(self, judge: Judge, rubric: str, verdict: type[Verdict]) -> bytes:
        """Return the framed part of the key that is equal for all questions of this judge, rubric and verdict type."""
        common = self._commons.get((id(judge), rubric, verdict))  # judges live as long as the roles
        if common is None:
            if len(self._commons) >= _REMEMBERED:  # a custom judge may have a rubric per question
                self._commons.clear()
            parts = (digest_text(rubric), digest_json(judge.fingerprint()), _schema(verdict))
            common = self._commons[id(judge), rubric, verdict] = framed(*parts)
        return common

    def _unit(self, asked: Question[Any] | Pack, sample: Sample | None) -> WorkUnit:
        about = None if sample is None else sample.id
        if isinstance(asked, Pack):
            return self._pack_unit(asked, about)
        judge = self._judge(asked)
        rubric = judge.rubric(asked)
        common = self._common(judge, rubric, asked.verdict)
        bundler = self.bundlers.get(id(judge)) if self.bundlers else None
        view = None if bundler is None else bundler.view(asked, sample)
        place = ALONE if view is None else view.key_part
        if asked.facts and getattr(judge, "reads_facts", False):
            place += asked.fact_bytes
        key = _key(asked.content, common, asked.draw, place)
        return WorkUnit(judge, asked if view is None else Bundle((asked,), view), (asked,), (key,), rubric, about)

    def _pack_unit(self, asked: Pack, about: str | None) -> WorkUnit:
        questions = asked.questions
        first = questions[0]
        judge = self._judge(first)
        rubric = judge.rubric(asked)
        common = self._common(judge, rubric, first.verdict)
        if isinstance(first, Completion):
            draws = tuple(_key(question.content, common, question.draw, ALONE) for question in questions)
            return WorkUnit(judge, asked, questions, draws, None, about)
        contents = [question.content for question in questions]
        pack = asked.content
        each = zip(contents, _PLACES, strict=False)
        keys = tuple([_key(content, common, first.draw, FRAME + pack + place) for content, place in each])
        return WorkUnit(judge, asked, questions, keys, rubric, about)


_PLACES: Final = tuple(framed(n.to_bytes(2, "little")) for n in range(PACK_SIZE))


def _key(content: bytes, common: bytes, draw: int, place: bytes) -> bytes:
    return digest_bytes(b"%b%b%b%b%b" % (FRAME, content, common, _framed_draw(draw), place))


@lru_cache(maxsize=256)
def _framed_draw(draw: int) -> bytes:
    return framed(draw.to_bytes(4, "little"))


def _packed(pack: Sequence[Question[Any]]) -> Question[Any] | Pack:
    return pack[0] if len(pack) == 1 else Pack(tuple(pack))


@per_type
def _schema(verdict: type[Any]) -> bytes:
    # Without class variables, and without fields that were added to a released verdict: stored keys must not move.
    later = later_fields(verdict)
    own = {field.name: str(field.type) for field in fields(verdict) if field.name not in later}
    return digest_json({"verdict": verdict.__name__, "fields": own})


@dataclass(frozen=True, slots=True)
class LookUp:
    """Finds known answers; writes nothing."""

    run: Store | None
    cache: VerdictCache | None
    failures: bool
    """True if a failure in the run counts as an answer; otherwise it is asked again."""

    def held(self, unit: WorkUnit) -> KnownAnswers:
        """Return the answers to the questions of a unit in the run, or otherwise in the cache."""
        wanted = {key: question.verdict for key, question in zip(unit.keys, unit.questions, strict=True)}
        stored = {} if self.run is None else self.run.answers(wanted)
        held = {key: answer for key, answer in stored.items() if self.failures or not isinstance(answer, Failure)}
        rest = unit.without(held)
        if rest is None or self.cache is None or not unit.judge.cacheable:
            return held
        found = self.cache.find(dict(zip(rest.keys, rest.questions, strict=True)))
        if not rest.whole or len(found) == len(rest.keys):
            held.update(found)
        return held
