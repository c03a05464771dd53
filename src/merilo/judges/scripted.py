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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merilo.errors import UsageError
from merilo.judges.base import Conversation, JudgeDefaults
from merilo.judging.digests import digest_of
from merilo.judging.json_types import Json, as_list, as_object, loaded
from merilo.judging.questions import Pack, Question
from merilo.judging.registry import ALL_KINDS, KINDS
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.providers.questions import Given, qualified_name, verdict_given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from merilo.judging.ask import Answer


QuestionType = type[Question[Any]]


@dataclass(frozen=True)
class ScriptedJudge(JudgeDefaults):
    """A judge that answers from a script; make one with `of`, `by` or `from_file`."""

    name: str
    """`scripted:` and `list`, the function's qualified name or the file's path."""
    find: Callable[[Question[Any]], Given]
    """Returns the answer to a question; None if there is none."""
    marks: Mapping[str, object] = field(hash=False)
    """The digest of the answers, or the function's name and version; its code is not read."""
    answers: frozenset[QuestionType] = ALL_KINDS
    together: frozenset[QuestionType] = frozenset()  # pyright: ignore[reportIncompatibleMethodOverride]  never set
    """The question types that it accepts in packs, for tests of questions that are judged together."""
    cacheable: bool = False  # pyright: ignore[reportIncompatibleMethodOverride]  never set
    """True for a file, which its digest identifies, and for a function with a version."""
    deterministic: bool = False
    """True for a file that does not choose answers by the draw."""
    supports_batches: bool = False
    """True for a file: it needs no requests, and the order of questions does not matter."""

    @classmethod
    def of(cls, answers: Iterable[Given], *, packs: frozenset[QuestionType] = frozenset()) -> ScriptedJudge:
        """Answer in the order of asking, using each answer once; for drivers that ask one question at a time.

        Only this kind of scripted judge remembers its position: make a new one for each run.
        """
        items = tuple(answers)
        left = iter(items)
        marks = {"script": digest_of(*(given_json(item).encode() for item in items)).hex()}
        return cls("scripted:list", lambda _: next(left, None), marks, together=packs)

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
        name = qualified_name(function)
        marks = {"function": name, "version": version}
        return cls(f"scripted:{name}", function, marks, answers, packs, cacheable=bool(version))

    @classmethod
    def from_file(cls, path: str | Path) -> ScriptedJudge:
        """Answer from a script file, for the kinds of question that it names. Raises UsageError."""
        entries: dict[str, list[Entry]] = {}
        found = entries_from(Path(path))
        for entry in found:
            entries.setdefault(entry.kind, []).append(entry)
        marks = {"script": digest_of(*(entry.json.encode() for entry in found)).hex()}

        def find(question: Question[Any]) -> Given:
            return next((each.given for each in entries.get(question.kind, ()) if each.fits(question)), None)

        return cls(
            f"scripted:{path}",
            find,
            marks,
            frozenset(KINDS[kind] for kind in entries),
            cacheable=True,
            deterministic=not any("draw" in each.match for each in found),
            supports_batches=True,
        )

    def fingerprint(self) -> Mapping[str, object]:
        """Return the digest of the script, or the function's name and version."""
        return {"judge": "scripted", **self.marks}

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Return the script's answers without any request."""
        # Makes this a generator function although it needs no request.
        yield from ()
        questions = question.questions if isinstance(question, Pack) else (question,)
        return tuple(self._answer(each) for each in questions)

    def _answer(self, question: Question[Any]) -> Answer:
        given = self.find(question)
        if given is None:
            return Failure(FailureKind.PERMANENT, f"{self.name} has no answer to this {question.kind} question.")
        answer = verdict_given(question, given)
        if isinstance(answer, str):
            return Failure(
                FailureKind.PERMANENT, f"The answer of {self.name} to this question {answer}: {_shown(question)}."
            )
        return answer


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
    patterns = [pattern for each in (match or {}).values() if (pattern := as_object(each)) is not None]
    wrong = any(list(each) != ["contains"] or not isinstance(each["contains"], str) for each in patterns)
    if match is None or not match.keys() <= known or wrong:
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


def _matches(value: str | int | tuple[str, ...], wanted: object) -> bool:
    pattern = as_object(wanted)
    if pattern is not None:
        texts = value if isinstance(value, tuple) else (str(value),)
        return any(str(pattern["contains"]) in text for text in texts)
    items = as_list(wanted)
    return value == (wanted if items is None else tuple(items))
