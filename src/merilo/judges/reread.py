"""Reads recorded replies again: a language model's judge is told them as if they came just now."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, cast

from merilo.errors import RubricError
from merilo.judges.llm import Judged, LLMJudge
from merilo.judging.untyped import as_object
from merilo.judging.verdicts import Failure
from merilo.providers.base import Finish, Reply, ReplyPath, TruncatedText, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Pack, Question


@dataclass(frozen=True)
class Recalled(LLMJudge):
    """A language model's judge as a run recorded it: it reads as one of today would, and bears its old marks."""

    marks: Mapping[str, object] = field(default_factory=dict[str, object], kw_only=True)
    recorded_rubric: str = field(default="", kw_only=True)

    def fingerprint(self) -> Mapping[str, object]:
        """As it was recorded."""
        return self.marks

    def rubric(self, question: Question[Any] | Pack) -> str:
        """The text that the question was asked through."""
        del question
        return self.recorded_rubric

    def reread(self, asked: Question[Any] | Pack, replies: Sequence[Mapping[str, Any]]) -> tuple[Answer, ...] | None:
        """What the rules of today read from the recorded replies of one conversation, an answer for each question.

        None where they would ask for a reply that was not recorded, or where the rubric is gone.
        """
        told = deque(map(heard, replies))
        talk = self.answer(asked)
        try:
            sends = next(talk)
            while len(told) >= len(sends):
                sends = talk.send(tuple(told.popleft() for _ in sends))
        except StopIteration as stop:
            return cast("tuple[Answer, ...]", stop.value)  # what a conversation returns
        except RubricError:
            return None
        finally:
            talk.close()
        return None


def recalled(marks: Mapping[str, object], rubric: str) -> Recalled | None:
    """The judge with this fingerprint, for questions asked through this rubric; None for no language model's."""
    provider = as_object(marks.get("provider"))
    if marks.get("judge") != "llm" or provider is None:
        return None
    language, tokens, reasks = marks.get("language"), marks.get("max_tokens"), marks.get("reasks")
    if not isinstance(language, str | None) or not isinstance(tokens, int) or not isinstance(reasks, int):
        return None
    return Recalled(
        _Nobody(provider),
        language=language,
        max_tokens=tokens,
        reasks=reasks,
        judged=Judged.EACH if marks.get("judged") == Judged.EACH else Judged.TOGETHER,
        marks=marks,
        recorded_rubric=rubric,
    )


def heard(record: Mapping[str, Any]) -> Reply | Failure:  # Any: JSON
    """A reply, or what came in its place, as it was recorded."""
    if "failure" in record:
        return Failure.from_fields(record["failure"])
    path, told = ReplyPath(record["path"]), record["usage"]
    usage = Usage(told["input_tokens"], told["output_tokens"])
    truncated = tuple(map(TruncatedText.from_fields, record.get("truncated", ())))
    texts, model = tuple(record["texts"]), record["model"]
    return Reply(texts, Finish(record["finish"]), usage, path, model, truncated=truncated)


@dataclass(frozen=True, slots=True)
class _Nobody:
    """The provider of recorded replies: it has marks, and is never sent anything."""

    marks: Mapping[str, object]

    def fingerprint(self) -> Mapping[str, object]:
        return self.marks

    def connect(self, *, known: Mapping[str, str] | None = None) -> NoReturn:
        del known
        raise RuntimeError("recorded replies are read, nothing is sent")

    def price_usd(self, usage: Usage) -> float:
        del usage
        return 0.0
