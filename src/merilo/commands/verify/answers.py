"""The recorded answers of a run, found for the questions that a plan asks now."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, cast

from merilo.data.sanitize import clean
from merilo.data.sentences import SPLITTER_ID
from merilo.engine.answer_store import AnswerStore, JudgeRoles
from merilo.judges.decisions import reread
from merilo.judges.llm import recalled, saved_reply
from merilo.judges.routed import recorded_parts
from merilo.judging.digests import digest_json, digest_of
from merilo.judging.registry import SPECIAL
from merilo.judging.verdicts import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.runs.manifest import Manifest
    from merilo.runs.records import Line, StoredQuestion
    from merilo.runs.store import Conversation, Store

    Take = Callable[[Question[Any]], tuple[bytes, Answer] | None]
    """Returns key and answer of a question that a plan asks; None if it was not recorded."""

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
        self._lines: Mapping[bytes, tuple[int, bool, Line]] = {}
        self._index: dict[bytes, bytes] | None = None

    def look_up(self, keys: Sequence[bytes]) -> None:
        """Look up the answers of the next sample together, and drop those of the last one."""
        self._at.clear()
        self._reread.clear()
        self._lines = self._store.lines([*dict.fromkeys(keys)]) if self._again is None else {}

    def trail(self, keys: Sequence[bytes]) -> Take:
        """Return the function that takes the answers to the questions of one outcome, which has these keys in order.

        If the plan has changed since, its question may differ from the next one of the trail. Then the other keys are
        searched, and then the whole run.
        """
        following = iter(keys)

        def take(question: Question[Any]) -> tuple[bytes, Answer] | None:
            first = next(following, b"")
            line = self._lines.get(first)
            if line is not None and (answer := self._store.taken(line, question)) is not None:
                return first, answer
            asked = (self.at(key) for key in (first, *keys))
            same = next((each for each in asked if each is not None and self.same(each.question, question)), None)
            found = same or self.find(question)
            return None if found is None else (found.key, self.answer(found))

        return take

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
            conversation = self._store.conversation(asked.key)
            together = (asked,) if conversation is None else conversation.asked
            now = None if conversation is None else self._parsed(conversation)
            for each, answer in zip(together, now or [None] * len(together), strict=True):
                self._reread[each.key] = each.answer if answer is None else answer
                self._again.count(each.key, each.answer, answer)
        return self._reread[asked.key]

    def same(self, stored: Question[Any], asked: Question[Any]) -> bool:
        """Return True if a stored answer is valid for the question asked now: same content, draw and judge."""
        return stored == asked or self._address(stored) == self._address(asked)

    def find(self, question: Question[Any]) -> StoredQuestion | None:
        """Return a recorded question with the same content, draw and judge, of any metric; None if there is none.

        A question may be recorded several times, judged in different packs. Then one with a verdict is preferred to a
        failed one, and a smaller key to a larger one. So the choice does not depend on the order of replies.
        """
        if self._index is None:
            found: dict[bytes, bytes] = {}
            failed: dict[bytes, bytes] = {}
            for key in self._store.keys():  # noqa: SIM118  a store is not a dict
                asked = self._store.asked(key)
                if asked is not None:
                    into = failed if isinstance(asked.answer, Failure) else found
                    into.setdefault(self._address(asked.question), key)
            self._index = failed | found
        at = self._index.get(self._address(question))
        return None if at is None else self.at(at)

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

    def _address(self, question: Question[Any]) -> bytes:
        # A role unknown to the manifest means the first judge.
        roles = (SPECIAL.get(type(question), ""), question.role, "judge")
        mark = next((self._marks[role] for role in roles if role in self._marks), b"")
        return digest_of(question.content, question.draw.to_bytes(4, "little"), mark)

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
        unit, *others = AnswerStore(roles, self._store, None).units((tuple(asked),))
        fits = not others and unit.keys == tuple(each.key for each in conversation.asked)
        return judge.reread(unit.asked, conversation.replies) if fits else None


def question_text(question: Question[Any]) -> str:
    """Return a short description of a question: its kind and the beginnings of its texts."""
    parts: list[str] = []
    for each in fields(question):
        value = getattr(question, each.name)
        if each.name in _NOT_SHOWN or not value or not isinstance(value, str | tuple):
            continue
        texts = [value] if isinstance(value, str) else [*cast("tuple[str, ...]", value)]
        more = f" and {len(texts) - 1} more" if len(texts) > 1 else ""
        shown = clean(texts[0])
        shown = shown if len(shown) <= _EXCERPT else f"{shown[:_EXCERPT].rstrip()}..."
        parts.append(f"{each.name} '{shown}'{more}")
    draw = f", draw {question.draw}" if question.draw else ""
    return f"{question.kind} ({'; '.join(parts)}{draw})"


def _marks(judge: Mapping[str, object]) -> Mapping[str, object]:
    found = judge.get("fingerprint")
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}
