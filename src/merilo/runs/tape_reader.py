"""Reads a tape back into a run directory. A tape may come from anywhere, so every line is validated."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from typing import IO, TYPE_CHECKING, Any, Final

from merilo.data.sample import Sample
from merilo.data.source import open_unpacked
from merilo.errors import MeriloError, RunError
from merilo.judging.digests import SIZE
from merilo.judging.json_types import Json, as_list, as_object, loaded
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Finish, Reply, ReplyPath, TruncatedText
from merilo.runs.run import MANIFEST, OUTCOMES, STORE, SUMMARY, Run, read_manifest, unchecked_run, write_json
from merilo.runs.store import Exchange, Store
from merilo.runs.tape_writer import HEAD, HELD_TEXTS, TAPE_FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import TypeAdapter

    from merilo.data.lines import Peekable
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question

_LONGEST: Final = 256 * 1024 * 1024
"""Maximum bytes of a line; a longer one is not from a tape and would only fill the memory."""
_MAX_HEAD: Final = 2**20
"""Maximum bytes of the first line, which shows whether the file is a tape."""
_ORDER: Final = ("manifest", "sample", "text", "conversation", "outcome", "summary", "end")
_MAPPINGS: Final = ("metrics", "left_out", "judges")


class _Damaged(ValueError):
    """The problem of a line, as the end of a sentence "line 7 ..."."""


def unpack(tape: Path, into: Path) -> Run:
    """Return the run on a tape, as a directory created from it in `into`, which is empty.

    It has no usage, since a tape does not record it. Raises RunError if the file is not a tape, or is newer, damaged or
    incomplete.
    """
    reader = _Reader(into)
    try:
        with open_unpacked(tape) as lines:
            reader.read(lines)
    except _Damaged as error:
        raise RunError(f"{tape} is damaged: line {reader.line} {error}. Record it again.") from error
    except MeriloError as error:
        raise RunError(f"{tape} cannot be replayed: {error}") from error
    except (EOFError, zlib.error) as error:
        raise RunError(f"{tape} is truncated after line {reader.line}. Record it again.") from error
    except OSError as error:
        raise RunError(f"{tape} cannot be read ({error}).") from error
    finally:
        reader.close()
    return unchecked_run(into)  # the tape's digest was checked; a tape has no seal


@dataclass(slots=True)
class _Reader:
    into: Path
    line: int = 0
    """The line that is being read, counted from 1."""
    _digest: Any = field(default_factory=lambda: blake2b(digest_size=16))  # Any: hashlib does not name its type
    _texts: dict[str, object] = field(default_factory=dict[str, object])
    _stage: int = 0
    _store: Store | None = None
    _outcomes: IO[bytes] | None = None

    def read(self, lines: Peekable) -> None:
        """Read the whole tape. Raises _Damaged, RunError."""
        self._head(lines.readline(_MAX_HEAD))
        self._store = Store.open(self.into / STORE, create=True)
        self._store.expect_samples()
        self._outcomes = (self.into / OUTCOMES).open("wb")
        for raw, name, value in self._named(lines):
            if name == "end":
                self._end(value, lines)
                return
            self._digest.update(raw)
            self._take(name, value, raw)
        raise _Damaged("is the last one, but the 'end' line is missing")

    def close(self) -> None:
        """Close the open files."""
        if self._outcomes is not None:
            self._outcomes.close()
        if self._store is not None:
            self._store.close()

    def _head(self, raw: bytes) -> None:
        self.line = 1
        try:
            head = as_object(loaded(raw.decode()))
        except ValueError:
            head = None
        if head is None or HEAD not in head:
            raise RunError("it is neither a run directory nor a tape.")
        found = head[HEAD]
        if not isinstance(found, int) or isinstance(found, bool):
            raise _Damaged("names no format")
        if found > TAPE_FORMAT:
            raise RunError(f"it has format {found}; this merilo reads formats up to {TAPE_FORMAT}. Upgrade merilo.")
        self._digest.update(raw)

    def _named(self, lines: Peekable) -> Iterator[tuple[bytes, str, object]]:
        """Yield the lines after the head: their bytes, their name and their value."""
        while raw := lines.readline(_LONGEST):
            self.line += 1
            if not raw.endswith(b"\n"):
                raise _Damaged("is truncated" if len(raw) < _LONGEST else "is too long")
            try:
                record = as_object(loaded(raw.decode()))
            except ValueError:
                record = None
            if record is None or len(record) != 1 or (name := next(iter(record))) not in _ORDER:
                raise _Damaged("is not a valid line of a tape")
            self._in_order(name)
            yield raw, name, record[name]

    def _in_order(self, name: str) -> None:
        stage = _ORDER.index(name)
        stage += name == "text"  # text lines are mixed with the conversations
        if stage < self._stage or (name == "manifest") == (self._stage > 0):
            raise _Damaged(f"is a {name} line in the wrong place")
        self._stage = max(stage, 1)

    def _take(self, name: str, value: object, raw: bytes) -> None:
        try:
            match name:
                case "manifest":
                    self._manifest(value)
                case "sample":
                    self._sample(value)
                case "text":
                    self._named_text(value)
                case "conversation":
                    self._conversation(value)
                case "outcome":
                    self._outcome(value, raw)
                case _:
                    write_json(self.into / SUMMARY, _object(value))
        except _Damaged:
            raise
        except (ValueError, KeyError, TypeError, MeriloError) as error:  # pydantic's ValidationError is a ValueError
            raise _Damaged(f"is not a valid {name} line ({_first_line(error)})") from error

    def _manifest(self, value: object) -> None:
        manifest = _object(value)
        for name in _MAPPINGS:
            _object(manifest.get(name))
        write_json(self.into / MANIFEST, manifest)
        if not isinstance(manifest.get("samples"), int) or not isinstance(manifest.get("format"), int):
            raise _Damaged("does not state the number of samples")
        read_manifest(self.into / MANIFEST)

    def _sample(self, value: object) -> None:
        if self._open().add_sample(Sample.from_record(_object(value))) is not None:
            raise _Damaged("repeats a sample")
        self._commit()

    def _named_text(self, value: object) -> None:
        name, text = _list(value)
        if len(self._texts) >= HELD_TEXTS:
            self._texts.clear()
        self._texts[str(name)] = text

    def _conversation(self, value: object) -> None:
        record = _object(value)
        rows = [self._asked(_object(each)) for each in _list(record.get("asked"))]
        exchange = None
        if "judge" in record:
            replies = tuple(_reply(_object(each)) for each in _list(record.get("replies")))
            exchange = Exchange(_text(record.get("judge")), _text(self._value(record.get("rubric"))), replies)
        self._open().keep(rows, exchange)
        self._commit()

    def _asked(self, record: Json) -> tuple[bytes, Question[Any], Answer]:
        key = _key(record["key"])
        kind = KINDS[_text(record["kind"])]
        values = {name: self._value(value) for name, value in _object(record["question"]).items()}
        if values.keys() - {each.name for each in fields(kind)}:
            raise _Damaged("has a question with unknown fields")
        question = _adapter(kind).validate_python(values)
        if "verdict" in record:
            return key, question, kind.verdict.from_json(json.dumps(record["verdict"]))
        failure = _object(record["failure"])
        return key, question, Failure(FailureKind(_text(failure["kind"])), _text(failure["message"]))

    def _value(self, value: object) -> object:
        """Return the value, or the text that it refers to."""
        reference = as_object(value)
        return value if reference is None else self._texts[_text(reference["text"])]

    def _outcome(self, value: object, raw: bytes) -> None:
        record = _object(value)
        for name in ("sample", "metric"):
            _text(record[name])
        for key in _list(record["trail"]):
            _key(key)
        if self._outcomes is not None:
            self._outcomes.write(raw.removeprefix(b'{"outcome":').removesuffix(b"}\n") + b"\n")

    def _end(self, value: object, lines: Peekable) -> None:
        if value != self._digest.hexdigest():
            raise _Damaged("has a digest that does not match the lines above it: one of them was changed")
        if lines.read(1):
            raise _Damaged("is the 'end' line, but more lines follow")
        store = self._open()
        store.accept_samples()
        store.commit()

    def _open(self) -> Store:
        if self._store is None:
            raise _Damaged("comes before the head")
        return self._store

    def _commit(self) -> None:
        if self._open().due():
            self._open().commit()


def _object(value: object) -> Json:
    found = as_object(value)
    if found is None:
        raise _Damaged("has another value in place of an object")
    return found


def _list(value: object) -> list[object]:
    found = as_list(value)
    if found is None:
        raise _Damaged("has another value in place of a list")
    return found


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Damaged("has another value in place of a text")
    return value


def _key(value: object) -> bytes:
    key = bytes.fromhex(_text(value))
    if len(key) != SIZE:
        raise _Damaged("has a key of the wrong length")
    return key


def _reply(record: Json) -> Reply | Failure:
    if "failure" in record:
        failure = _object(record["failure"])
        return Failure(FailureKind(_text(failure["kind"])), _text(failure["message"]))
    texts = tuple(map(_text, _list(record["texts"])))
    finish, path = Finish(_text(record["finish"])), ReplyPath(_text(record["path"]))
    truncated = tuple(TruncatedText.from_fields(_object(each)) for each in _list(record.get("truncated", [])))
    return Reply(texts, finish, path=path, model=_text(record["model"]), truncated=truncated)


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}  # Any: one for each question type, built on first use


def _adapter(kind: type[Question[Any]]) -> TypeAdapter[Any]:  # Any: as above
    if kind not in _ADAPTERS:
        from pydantic import TypeAdapter

        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
