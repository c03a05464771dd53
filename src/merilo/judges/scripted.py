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

import json
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merilo.errors import UsageError
from merilo.judges.base import JudgeDefaults
from merilo.judging.digests import digest_of
from merilo.judging.json_types import as_list, as_object, loaded
from merilo.judging.questions import Pack, Question
from merilo.judging.registry import ALL_KINDS, KINDS
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.providers.questions import Given, qualified_name, verdict_given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from merilo.judges.base import Conversation
    from merilo.judging.ask import Answer
    from merilo.judging.json_types import Json


QuestionType = type[Question[Any]]


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

    title = "list"
    cacheable = False
    """The answer depends on earlier questions."""

    items: tuple[Given, ...]
    _left: list[int] = field(default_factory=list, init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        self._left.extend(reversed(range(len(self.items))))

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

    cacheable = True
    """The digest of the entries is in the fingerprint."""

    title: str
    """The file's path."""
    entries: tuple[Entry, ...]
    _used: set[int] = field(default_factory=set, init=False, repr=False, compare=False, hash=False)

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
        return tuple(f"{self.title} entry {n + 1}" for n in range(len(self.entries)) if n not in self._used)

    @cached_property
    def _of_kind(self) -> dict[str, tuple[int, ...]]:
        kinds = {entry.kind for entry in self.entries}
        return {kind: tuple(n for n, entry in enumerate(self.entries) if entry.kind == kind) for kind in kinds}


Script = ListScript | FunctionScript | FileScript
"""The source of a scripted judge's answers."""


def _shown(question: Question[Any]) -> str:
    text = repr(question)
    return text if len(text) <= 300 else text[:300] + "..."


# -- script files -------------------------------------------------------------------------------------

_KEYS = frozenset({"kind", "match", "verdict", "failure"})


@dataclass(frozen=True)
class Entry:
    """One answer and the questions that it fits."""

    kind: str
    match: Mapping[str, object]
    given: Given
    json: str
    """The entry as canonical JSON; input of the script's digest."""

    def fits(self, question: Question[Any]) -> bool:
        """Return True if the question is of this kind and each named field matches."""
        return question.kind == self.kind and all(
            _matches(getattr(question, name), wanted) for name, wanted in self.match.items()
        )


def entries_from(path: Path) -> tuple[Entry, ...]:
    """Return the entries of a JSON or JSON Lines file. Raises UsageError that names the position of a problem."""
    try:
        if path.is_char_device():  # such as /dev/zero, which has no end
            raise UsageError(f"Cannot read the script {path}: it is a device.")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read the script {path} ({error}); expected a JSON or JSON Lines file.") from error
    if text.lstrip().startswith("["):
        items = as_list(_loaded(text, str(path))) or []
        places = [(f"entry {n}", item) for n, item in enumerate(items, start=1)]
    else:
        lines = enumerate(text.splitlines(), start=1)
        places = [(f"line {n}", _loaded(line, f"{path}, line {n}")) for n, line in lines if line.strip()]
    if not places:
        raise UsageError(f"The script {path} has no entries.")
    return tuple(_entry(item, f"{path}, {place}") for place, item in places)


def given_json(given: Given) -> str:
    """Return an answer to a question as canonical JSON; equal answers give equal text."""
    if isinstance(given, Verdict):
        return f"{type(given).__name__} {given.to_json()}"
    if isinstance(given, Failure):
        return json.dumps({"failure": given.to_fields()}, sort_keys=True)
    return json.dumps(given, sort_keys=True, ensure_ascii=False, default=str)


def _loaded(text: str, place: str) -> object:
    try:
        return loaded(text)
    except ValueError as error:
        raise UsageError(f"{place}: not valid JSON ({error}).") from error


def _entry(item: object, place: str) -> Entry:
    parts = as_object(item)
    if parts is None or not parts.keys() <= _KEYS or ("verdict" in parts) == ("failure" in parts):
        raise UsageError(
            f"{place}: an entry is an object with 'kind', either 'verdict' or 'failure', and optionally 'match'."
        )
    kind, match = parts.get("kind"), as_object(parts.get("match", {}))
    if not isinstance(kind, str) or kind not in KINDS:
        raise UsageError(f"{place}: the kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    known = {field.name for field in fields(KINDS[kind])}
    if match is None or not match.keys() <= known or not all(map(_can_match, match.values())):
        raise UsageError(
            f"{place}: 'match' must name fields of {kind} ({', '.join(sorted(known))}), each with its value or "
            f'{{"contains": text}}, got {parts["match"]!r}.'
        )
    return Entry(kind, match, _given(parts, place), json.dumps(parts, sort_keys=True, ensure_ascii=False))


def _given(parts: Json, place: str) -> Given:
    if "verdict" in parts:
        verdict = as_object(parts["verdict"])
        if verdict is None:
            raise UsageError(f"{place}: 'verdict' must be an object of the verdict's fields, got {parts['verdict']!r}.")
        return verdict
    failure = as_object(parts["failure"]) or {}
    kind, message = failure.get("kind"), failure.get("message")
    if kind not in set(FailureKind) or not isinstance(message, str):
        kinds = ", ".join(FailureKind)
        raise UsageError(f"{place}: 'failure' needs 'kind' (one of {kinds}) and 'message', got {parts['failure']!r}.")
    return Failure(FailureKind(str(kind)), message)


def _can_match(wanted: object) -> bool:
    pattern = as_object(wanted)
    return pattern is None or (list(pattern) == ["contains"] and isinstance(pattern["contains"], str))


def _matches(value: str | int | tuple[str, ...], wanted: object) -> bool:
    pattern = as_object(wanted)
    if pattern is not None:
        texts = value if isinstance(value, tuple) else (str(value),)
        return any(str(pattern["contains"]) in text for text in texts)
    items = as_list(wanted)
    return value == (wanted if items is None else tuple(items))
