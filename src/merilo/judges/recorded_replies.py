"""Parsing of recorded replies: an LLM judge receives them as if they had just arrived."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, cast

from merilo.errors import RubricError
from merilo.judges.base import Packing
from merilo.judges.llm import LLMJudge
from merilo.judging.json_types import as_object
from merilo.judging.questions import Pack
from merilo.judging.rubric import rubric_with_text
from merilo.judging.verdicts import Failure
from merilo.providers.base import Finish, Reply, ReplyPath, TruncatedText, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.judging.rubric import Rubric


@dataclass(frozen=True)
class RecordedLLMJudge(LLMJudge):
    """An LLM judge as a run recorded it: current parsing rules with the recorded fingerprint."""

    marks: Mapping[str, object] = field(default_factory=dict[str, object], kw_only=True)
    recorded_rubric: str = field(default="", kw_only=True)

    def fingerprint(self) -> Mapping[str, object]:
        """Return the recorded fingerprint."""
        return self.marks

    def rubric(self, question: Question[Any] | Pack) -> str:
        """Return the recorded rubric of the question."""
        del question
        return self.recorded_rubric

    def _rubric(self, question: Question[Any] | Pack) -> Rubric:
        """Return the rubric that the recorded text is a version of: its version decides how a reply is read.

        Raises RubricError for another text if a kind has several versions.
        """
        found = rubric_with_text(question, self.recorded_rubric, language=self.language)
        if found is not None:
            return found
        first = question.questions[0] if isinstance(question, Pack) else question
        if first.rubric_version > 1:
            raise RubricError(f"No rubric of the kind '{first.kind}' has the recorded text.")
        return super()._rubric(question)

    def numbers_sentences(self, question: Question[Any]) -> bool:
        """Return True if the recorded prompt of a question numbered the sentences of its contexts."""
        asked = (question, Pack((question,)))
        found = (rubric_with_text(each, self.recorded_rubric, language=self.language) for each in asked)
        return any(each is not None and each.numbers_contexts for each in found)

    def reread(self, asked: Question[Any] | Pack, replies: Sequence[Mapping[str, Any]]) -> tuple[Answer, ...] | None:
        """Parse the recorded replies of one conversation with the current rules; return an answer per question.

        None if the current rules would need a reply that was not recorded, or if the rubric no longer exists.
        """
        recorded = deque(map(saved_reply, replies))
        conversation = self.answer(asked)
        try:
            sends = next(conversation)
            # Fewer replies than requests: the current rules ask for a reply that was not recorded.
            while len(recorded) >= len(sends):
                sends = conversation.send(tuple(recorded.popleft() for _ in sends))
        except StopIteration as stop:
            return cast("tuple[Answer, ...]", stop.value)  # what a conversation returns
        except RubricError:
            return None
        finally:
            conversation.close()
        return None


def recalled(marks: Mapping[str, object], rubric: str) -> RecordedLLMJudge | None:
    """Return the judge with this fingerprint and rubric; None if it was not an LLM judge."""
    provider = as_object(marks.get("provider"))
    if marks.get("judge") != "llm" or provider is None:
        return None
    own: Any = marks  # Any: the fields of `LLMJudge.fingerprint`, which the run's seal covers
    return RecordedLLMJudge(
        _Nobody(provider),
        language=own["language"],
        max_tokens=own["max_tokens"],
        reasks=own["reasks"],
        judged=Packing.QUESTION if marks.get("judged") == Packing.QUESTION else Packing.SAMPLE,
        marks=marks,
        recorded_rubric=rubric,
    )


def saved_reply(record: Mapping[str, Any]) -> Reply | Failure:  # Any: JSON
    """Return a recorded reply, or the failure that was recorded instead."""
    if "failure" in record:
        return Failure.from_fields(record["failure"])
    path, tokens = ReplyPath(record["path"]), record["usage"]
    usage = Usage(tokens["input_tokens"], tokens["output_tokens"])
    truncated = tuple(TruncatedText(**each) for each in record.get("truncated", ()))
    texts, model = tuple(record["texts"]), record["model"]
    return Reply(texts, Finish(record["finish"]), usage, path, model, truncated=truncated)


@dataclass(frozen=True, slots=True)
class _Nobody:
    """The provider of recorded replies: it has a fingerprint, and nothing is ever sent to it."""

    marks: Mapping[str, object]

    def fingerprint(self) -> Mapping[str, object]:
        return self.marks

    def connect(self, *, known: Mapping[str, str] | None = None) -> NoReturn:
        del known
        raise RuntimeError("a recorded judge sends no requests")

    def price_usd(self, usage: Usage) -> float:
        del usage
        return 0.0
