"""The recorded answers of a run, found for the questions that a plan asks now."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, cast

from merilo.data.sentences import SPLITTER_ID
from merilo.engine.answer_store import AnswerStore, JudgeRoles, WorkUnit
from merilo.judges.decisions import reread
from merilo.judges.recorded_replies import recalled, saved_reply
from merilo.judges.routed import recorded_parts
from merilo.judging.digests import digest_json, digest_of
from merilo.judging.registry import SPECIAL
from merilo.judging.verdicts import Failure
from merilo.rendering.sanitize import clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.runs.manifest import Manifest
    from merilo.runs.records import StoredQuestion
    from merilo.runs.store import Conversation, Store

_EXCERPT = 60
_NOT_SHOWN = frozenset({"role", "draw", "language", "likely"})


@dataclass(slots=True)
class Reread:
    """The result of parsing the raw replies again; every question counts once."""

    read: int = 0
    """Questions whose replies could be parsed again."""
    different: int = 0
    """Questions among these with a different answer now."""
    unread: int = 0
    """Questions without recorded replies, or that would need another reply now; their recorded answers are used."""
    _seen: set[bytes] = field(default_factory=set[bytes], repr=False)

    def count(self, key: bytes, stored: Answer, now: Answer | None) -> None:
        """Count one question, with its stored answer and the one parsed now."""
        if key not in self._seen:
            self._seen.add(key)
            self.read += now is not None
            self.unread += now is None
            self.different += now is not None and now != stored


class Recorded:
    """Looks up recorded answers, by the keys of a trail or by the content of a question.

    With `again`, answers are parsed from the raw replies with the current rules, if that is possible.
    """

    def __init__(self, store: Store, manifest: Manifest, *, again: Reread | None = None) -> None:
        self._store = store
        self._judges = manifest.judges
        self._splitter = manifest.splitter
        self._marks = {role: digest_json(_marks(judge)) for role, judge in manifest.judges.items()}
        self._again = again
        self._at: dict[bytes, StoredQuestion | None] = {}
        self._reread: dict[bytes, Answer] = {}
        self._index: dict[bytes, bytes] | None = None

    def forget(self) -> None:
        """Drop the lookups of a sample; the next one asks about other texts."""
        self._at.clear()
        self._reread.clear()

    def trail(self, keys: Sequence[bytes]) -> Trail:
        """Return the questions with these keys, for the plan that asked them in this order."""
        return Trail(self, tuple(keys))

    def at(self, key: bytes) -> StoredQuestion | None:
        """Return the question with this key; None if there is none."""
        if key not in self._at:
            self._at[key] = self._store.asked(key)
        return self._at[key]

    def answer(self, asked: StoredQuestion) -> Answer:
        """Return the answer to a recorded question."""
        if self._again is None:
            return asked.answer
        if asked.key not in self._reread:
            self._read_again(asked)
        return self._reread[asked.key]

    def same(self, stored: Question[Any], asked: Question[Any]) -> bool:
        """Return True if a stored answer is valid for the question asked now: same content, draw and judge."""
        if stored == asked:
            return True
        return self._address(stored) == self._address(asked)

    def find(self, question: Question[Any]) -> StoredQuestion | None:
        """Return a recorded question with the same content, draw and judge, of any metric; None if there is none.

        A question may be recorded several times, judged in different packs. Then one with a verdict is preferred to a
        failed one, and a smaller key to a larger one. So the choice does not depend on the order of replies.
        """
        if self._index is None:
            self._index = self._indexed()
        key = self._index.get(self._address(question))
        return None if key is None else self.at(key)

    def names(self) -> tuple[str, ...]:
        """Return the names of the run's judges in order, for metrics that ask several judges."""
        others = tuple(role for role in self._judges if role not in {"judge", *SPECIAL.values()})
        first = str(self._judges.get("judge", {}).get("name", "judge"))
        known = {*self._judges, first}
        for key in self._store.keys():  # noqa: SIM118  a store is not a dict
            asked = self._store.asked(key)
            if asked is not None and asked.question.role not in known:
                first = asked.question.role  # the first judge was given another name, which the manifest leaves out
                break
        return (first, *others)

    def _indexed(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        failed: dict[bytes, bytes] = {}
        for key in self._store.keys():  # noqa: SIM118  a store is not a dict
            asked = self._store.asked(key)
            if asked is not None:
                into = failed if isinstance(asked.answer, Failure) else found
                into.setdefault(self._address(asked.question), key)
        return failed | found

    def _address(self, question: Question[Any]) -> bytes:
        return digest_of(question.content, question.draw.to_bytes(4, "little"), self._mark(question))

    def _mark(self, question: Question[Any]) -> bytes:
        """Return the fingerprint of the judge that answers; a role unknown to the manifest means the first judge."""
        special = self._marks.get(SPECIAL.get(type(question), ""))
        return special or self._marks.get(question.role) or self._marks.get("judge", b"")

    def _read_again(self, asked: StoredQuestion) -> None:
        conversation = self._store.conversation(asked.key)
        together = (asked,) if conversation is None else conversation.asked
        now = None if conversation is None else self._parsed(conversation)
        for each, answer in zip(together, now or [None] * len(together), strict=True):
            self._reread[each.key] = each.answer if answer is None else answer
            if self._again is not None:
                self._again.count(each.key, each.answer, answer)

    def _parsed(self, conversation: Conversation) -> tuple[Answer, ...] | None:
        """Return the answers that the current rules parse from a conversation; None if they cannot be determined.

        If failed questions of a pack were asked again, the store has only the others, while the replies are about the
        whole pack. Then the recomputed keys differ from the stored ones.
        """
        first = conversation.asked[0].question
        role = first.role if first.role in self._judges else "judge"
        parts = recorded_parts(self._judges.get(role, {}))
        marks = next((part.fingerprint for part in parts if first.kind in part.kinds), None)
        asked = [each.question for each in conversation.asked]
        if marks is not None and marks.get("judge") == "decisions":
            return reread(asked, [*map(saved_reply, conversation.replies)], conversation.rubric)
        judge = None if marks is None else recalled(marks, conversation.rubric)
        if judge is None or not conversation.replies:
            return None
        if judge.numbers_sentences(first) and self._splitter != SPLITTER_ID:
            return None  # its numbers mean sentences of other rules
        roles = JudgeRoles({"judge": judge, first.role: judge})
        unit = _unit_of(AnswerStore(roles, self._store, None), asked, tuple(each.key for each in conversation.asked))
        return None if unit is None else judge.reread(unit.asked, conversation.replies)


def _unit_of(answers: AnswerStore, asked: Sequence[Question[Any]], keys: tuple[bytes, ...]) -> WorkUnit | None:
    """Return the unit that these questions were, if its keys are the stored ones."""
    unit, *others = answers.units((tuple(asked),))
    return None if others or unit.keys != keys else unit


@dataclass(slots=True)
class Trail:
    """The recorded questions of one outcome, in the order in which they were asked."""

    _recorded: Recorded
    _keys: tuple[bytes, ...]
    _place: int = 0

    def take(self, question: Question[Any]) -> tuple[bytes, Answer] | None:
        """Return key and answer of the next question; None if it was not recorded.

        If the plan has changed since, its question may differ from the trail; then the whole run is searched.
        """
        place, self._place = self._place, self._place + 1
        asked = self._recorded.at(self._keys[place]) if place < len(self._keys) else None
        if asked is None or not self._recorded.same(asked.question, question):
            asked = self._elsewhere(question)
        return None if asked is None else (asked.key, self._recorded.answer(asked))

    def _elsewhere(self, question: Question[Any]) -> StoredQuestion | None:
        for key in self._keys:
            asked = self._recorded.at(key)
            if asked is not None and self._recorded.same(asked.question, question):
                return asked
        return self._recorded.find(question)


def question_text(question: Question[Any]) -> str:
    """Return a short description of a question: its kind and the beginnings of its texts."""
    parts: list[str] = []
    for each in fields(question):
        value = getattr(question, each.name)
        if each.name in _NOT_SHOWN or not value or not isinstance(value, str | tuple):
            continue
        texts = [value] if isinstance(value, str) else [*cast("tuple[str, ...]", value)]
        more = f" and {len(texts) - 1} more" if len(texts) > 1 else ""
        parts.append(f"{each.name} {_excerpt(texts[0])}{more}")
    draw = f", draw {question.draw}" if question.draw else ""
    return f"{question.kind} ({'; '.join(parts)}{draw})"


def _excerpt(text: str) -> str:
    shown = clean(text)
    return f"'{shown}'" if len(shown) <= _EXCERPT else f"'{shown[:_EXCERPT].rstrip()}...'"


def _marks(judge: Mapping[str, object]) -> Mapping[str, object]:
    found = judge.get("fingerprint")
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}
