"""A judge that answers from a script: a list, a function or a file. No model, no network, no requests.

A script file is JSON (a list of entries) or JSON Lines (one entry per line)::

    {"kind": "relevance", "match": {"user_input": "Who wrote Emma?"}, "verdict": {"grade": 0}}
    {"kind": "support", "match": {"statement": {"contains": "1889"}}, "verdict": {"label": "not_stated"}}
    {"kind": "statements", "failure": {"kind": "refused", "message": "It will not."}}

- `kind` names the question type; `match` gives values of its fields (also `role`, `draw`, `language`).
  A value is compared with the whole field; `{"contains": "..."}` searches a text, or each
  text of a tuple. Without `match` an entry fits every question of its kind.
- The first entry that fits answers. Its indices are 0-based, as in every verdict.
- A question that no entry fits fails as PERMANENT: retrying would change nothing, and a script
  never guesses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from merilo.judges.base import JudgeDefaults
from merilo.judges.scripts import Entry, entries_from, given_json
from merilo.judging.coercion import Given, verdict_given
from merilo.judging.digests import digest_of
from merilo.judging.questions import Pack, Question
from merilo.judging.registry import ALL_KINDS, KINDS
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.questions import qualified_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from merilo.judges.base import Conversation
    from merilo.judging.ask import Answer

QuestionType = type[Question[Any]]


class Script(Protocol):
    """The source of a scripted judge's answers."""

    @property
    def title(self) -> str:
        """The name in messages and reports."""
        ...

    @property
    def cacheable(self) -> bool:
        """True if the fingerprint and the question together determine the answer."""
        ...

    def fingerprint(self) -> Mapping[str, object]:
        """Return the identity of its answers."""
        ...

    def find(self, question: Question[Any]) -> Given:
        """Return the answer to a question; None if there is none."""
        ...


@dataclass(frozen=True)
class ScriptedJudge(JudgeDefaults):
    """A judge that answers from a script; make one with `of`, `by` or `from_file`.

    `packs`: the question types that it accepts in packs, for tests of questions that are judged together.
    """

    script: Script
    answers: frozenset[QuestionType] = ALL_KINDS
    packs: frozenset[QuestionType] = frozenset()

    @classmethod
    def of(cls, answers: Iterable[Given], *, packs: frozenset[QuestionType] = frozenset()) -> ScriptedJudge:
        """Answer in the order of asking, using each answer once; for drivers that ask one question at a time.

        Only this kind of scripted judge remembers its position: make a new one for each run.
        """
        return cls(ListScript(tuple(answers)), packs=packs)

    @classmethod
    def by(
        cls,
        function: Callable[[Question[Any]], Given],
        *,
        version: str = "",
        answers: frozenset[QuestionType] = ALL_KINDS,
        packs: frozenset[QuestionType] = frozenset(),
    ) -> ScriptedJudge:
        """Answer with a function of the question, which must return the same for the same question.

        Give `version` a new value whenever the function changes: it is part of the fingerprint.
        """
        return cls(FunctionScript(function, version), answers=answers, packs=packs)

    @classmethod
    def from_file(cls, path: str | Path) -> ScriptedJudge:
        """Answer from a script file, for the kinds of question that it names. Raises UsageError."""
        script = FileScript(str(path), entries_from(Path(path)))
        kinds = frozenset(KINDS[entry.kind] for entry in script.entries)
        return cls(script, answers=kinds)

    @property
    def name(self) -> str:
        """`scripted:` and the script's title."""
        return f"scripted:{self.script.title}"

    @property
    def together(self) -> frozenset[QuestionType]:
        """The question types in `packs`."""
        return self.packs

    @property
    def cacheable(self) -> bool:
        """True for a file, which its digest identifies, and for a function with a version."""
        return self.script.cacheable

    @property
    def deterministic(self) -> bool:
        """True for a file that does not choose answers by the draw."""
        return isinstance(self.script, FileScript) and not any("draw" in each.match for each in self.script.entries)

    @property
    def supports_batches(self) -> bool:
        """True for a file: it needs no requests, and the order of questions does not matter."""
        return isinstance(self.script, FileScript)

    def fingerprint(self) -> Mapping[str, object]:
        """Return the digest of the script, or the function's name and version."""
        return {"judge": "scripted", **self.script.fingerprint()}

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Return the script's answers without any request."""
        # Makes this a generator function although it needs no request.
        yield from ()
        questions = question.questions if isinstance(question, Pack) else (question,)
        return tuple(self._answer(each) for each in questions)

    def unused(self) -> tuple[str, ...]:
        """Return the positions of entries that have not answered a question yet; empty for a function."""
        # Optional in the protocol: a function has no entries.
        unused: tuple[str, ...] = getattr(self.script, "unused", tuple)()
        return unused

    def _answer(self, question: Question[Any]) -> Answer:
        given = self.script.find(question)
        if given is None:
            return Failure(FailureKind.PERMANENT, f"{self.name} has no answer to this {question.kind} question.")
        answer = verdict_given(question, given)
        if isinstance(answer, str):
            return Failure(
                FailureKind.PERMANENT, f"The answer of {self.name} to this question {answer}: {_shown(question)}."
            )
        return answer


@dataclass(frozen=True)
class ListScript:
    """Answers in the order of asking."""

    items: tuple[Given, ...]
    _left: list[int] = field(default_factory=list, init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        self._left.extend(reversed(range(len(self.items))))

    @property
    def title(self) -> str:
        """`list`."""
        return "list"

    @property
    def cacheable(self) -> bool:
        """Always False: the answer depends on earlier questions."""
        return False

    def fingerprint(self) -> Mapping[str, object]:
        """Return the digest of the answers in order."""
        return {"script": digest_of(*(given_json(item).encode() for item in self.items)).hex()}

    def find(self, question: Question[Any]) -> Given:
        """Return the next answer; None if all are used."""
        del question
        return self.items[self._left.pop()] if self._left else None

    def unused(self) -> tuple[str, ...]:
        """Return `item N` for each answer that was not reached, counted from 1."""
        return tuple(f"item {index + 1}" for index in sorted(self._left))


@dataclass(frozen=True)
class FunctionScript:
    """Answers computed from the question."""

    function: Callable[[Question[Any]], Given]
    version: str = ""

    @property
    def title(self) -> str:
        """The function's qualified name."""
        return qualified_name(self.function)

    @property
    def cacheable(self) -> bool:
        """True only with a version: the name does not change when the code does."""
        return bool(self.version)

    def fingerprint(self) -> Mapping[str, object]:
        """Return the function's qualified name and version; its code is not read."""
        return {"function": self.title, "version": self.version}

    def find(self, question: Question[Any]) -> Given:
        """Return the function's result; its exceptions are not caught, because they belong to the test."""
        return self.function(question)


@dataclass(frozen=True)
class FileScript:
    """Answers from the entries of a file; the first entry that fits answers."""

    path: str
    entries: tuple[Entry, ...]
    _used: set[int] = field(default_factory=set, init=False, repr=False, compare=False, hash=False)

    @property
    def title(self) -> str:
        """The file's path."""
        return self.path

    @property
    def cacheable(self) -> bool:
        """Always True: the digest of the entries is in the fingerprint."""
        return True

    def fingerprint(self) -> Mapping[str, object]:
        """Return the digest of the entries in order; the path is not part of it."""
        return {"script": digest_of(*(entry.json.encode() for entry in self.entries)).hex()}

    def find(self, question: Question[Any]) -> Given:
        """Return the answer of the first entry that fits; None if no entry fits."""
        for position in self._of_kind.get(question.kind, ()):
            if self.entries[position].fits(question):
                self._used.add(position)
                return self.entries[position].given
        return None

    def unused(self) -> tuple[str, ...]:
        """Return `FILE entry N` for each entry that has not answered a question yet, counted from 1."""
        return tuple(f"{self.path} entry {n + 1}" for n in range(len(self.entries)) if n not in self._used)

    @cached_property
    def _of_kind(self) -> dict[str, tuple[int, ...]]:
        kinds = {entry.kind for entry in self.entries}
        return {kind: tuple(n for n, entry in enumerate(self.entries) if entry.kind == kind) for kind in kinds}


def _shown(question: Question[Any]) -> str:
    text = repr(question)
    return text if len(text) <= 300 else text[:300] + "..."
