"""The judge that answers `Embeddings` with the vectors of a hosted or local embedding model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.errors import UsageError
from merilo.judges.base import Send
from merilo.judging.questions import Embeddings, Pack, Question
from merilo.judging.verdicts import Failure, FailureKind, MatrixVerdict
from merilo.providers.openai_embeddings import EmbeddingsRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judges.base import Conversation
    from merilo.judging.ask import Answer
    from merilo.providers.base import Reply
    from merilo.providers.openai_embeddings import OpenAIEmbeddingsProvider

BATCH = 128
"""Texts of one request; endpoints take between some dozens and 2,048."""


@dataclass(frozen=True)
class OpenAIEmbeddingsJudge:
    """Asks the embedding model behind a provider: one request for a question, more for more than `batch` texts."""

    provider: OpenAIEmbeddingsProvider
    batch: int = BATCH

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise UsageError(f"An embedder sends at least 1 text a request, got batch={self.batch}.")

    @property
    def name(self) -> str:
        """`openai-embeddings:` and the model."""
        return f"openai-embeddings:{self.provider.model}"

    @property
    def answers(self) -> frozenset[type[Question[Any]]]:
        """Embeddings alone."""
        return frozenset({Embeddings})

    @property
    def together(self) -> frozenset[type[Question[Any]]]:
        """None."""
        return frozenset()

    @property
    def rates(self) -> str | None:
        """It judges nothing."""
        return None

    @property
    def cacheable(self) -> bool:
        """Yes: address and model stand in the fingerprint."""
        return True

    def fingerprint(self) -> Mapping[str, object]:
        """The provider's; how many texts share a request decides no vector."""
        return {"judge": "openai-embeddings", "provider": dict(self.provider.fingerprint())}

    def rubric(self, question: Question[Any] | Pack) -> str:
        """None."""
        del question
        return ""

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """One matrix for each question; a question of which any request fails gets its Failure."""
        answers: list[Answer] = []
        for each in question.questions if isinstance(question, Pack) else (question,):
            texts = each.texts if isinstance(each, Embeddings) else ()
            parts = [texts[at : at + self.batch] for at in range(0, len(texts), self.batch)]
            sends = tuple(Send(self.provider, EmbeddingsRequest((), inputs=part)) for part in parts)
            answers.append(_joined((yield sends) if sends else ()))
        return tuple(answers)


def _joined(replies: Sequence[Reply | Failure]) -> Answer:
    """The rows of all replies as one matrix, or the first failure."""
    parts: list[MatrixVerdict] = []
    for reply in replies:
        if isinstance(reply, Failure):
            return reply
        parts.append(MatrixVerdict.from_json(reply.text))
    columns = {part.columns for part in parts}
    if len(columns) > 1:
        told = " and ".join(map(str, sorted(columns)))
        return Failure(FailureKind.UNREADABLE, f"The embedder sent vectors of {told} numbers for one question.")
    rows, data = sum(part.rows for part in parts), b"".join(part.data for part in parts)
    return MatrixVerdict(rows, columns.pop() if columns else 0, data)
