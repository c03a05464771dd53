"""The judge that answers `Embeddings` with the vectors of a hosted or local embedding model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.errors import UsageError
from merilo.judges.base import JudgeDefaults, OutgoingRequest
from merilo.judging.kinds.embeddings import Embeddings
from merilo.judging.matrix import MatrixVerdict
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.openai import EmbeddingsRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judges.base import Conversation
    from merilo.judging.ask import Answer
    from merilo.providers.base import Reply
    from merilo.providers.openai import OpenAIEmbeddingsProvider

BATCH = 128
"""Texts per request; endpoints accept between a few dozen and 2,048."""


@dataclass(frozen=True)
class OpenAIEmbeddingsJudge(JudgeDefaults):
    """A judge that asks the embedding model behind a provider: one request per `batch` texts of a question."""

    answers = frozenset({Embeddings})

    provider: OpenAIEmbeddingsProvider
    batch: int = BATCH

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise UsageError(f"An embedder needs a batch size of at least 1, got batch={self.batch}.")

    @property
    def name(self) -> str:
        """`openai-embeddings:` and the model."""
        return f"openai-embeddings:{self.provider.model}"

    def fingerprint(self) -> Mapping[str, object]:
        """Return the provider's fingerprint. The batch size is not part of it, because it changes no vector."""
        return {"judge": "openai-embeddings", "provider": dict(self.provider.fingerprint())}

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Return one matrix per question; if any request of a question fails, its answer is that Failure."""
        answers: list[Answer] = []
        for each in question.questions if isinstance(question, Pack) else (question,):
            texts = each.texts if isinstance(each, Embeddings) else ()
            parts = [texts[at : at + self.batch] for at in range(0, len(texts), self.batch)]
            sends = tuple(OutgoingRequest(self.provider, EmbeddingsRequest((), inputs=part)) for part in parts)
            # A question without texts must not yield an empty step: it needs no reply and gets an empty matrix.
            answers.append(_joined((yield sends) if sends else ()))
        return tuple(answers)


def _joined(replies: Sequence[Reply | Failure]) -> Answer:
    parts: list[MatrixVerdict] = []
    for reply in replies:
        if isinstance(reply, Failure):
            return reply
        parts.append(MatrixVerdict.from_json(reply.text))
    # The rows of a matrix need one length, and a server may change it between requests.
    columns = {part.columns for part in parts}
    if len(columns) > 1:
        lengths = " and ".join(map(str, sorted(columns)))
        return Failure(FailureKind.UNREADABLE, f"The embedder sent vectors of {lengths} numbers for one question.")
    rows, data = sum(part.rows for part in parts), b"".join(part.data for part in parts)
    return MatrixVerdict(rows, columns.pop() if columns else 0, data)
