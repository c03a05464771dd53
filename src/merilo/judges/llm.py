"""The judge that asks a language model: renders a question through a rubric and parses the reply.

And the judge that answers `Embeddings` with the vectors of a hosted or local embedding model; and one that parses
recorded replies as if they had just arrived.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from merilo.data.sentences import judged_sentences
from merilo.errors import RubricError, UsageError
from merilo.judges.base import Conversation, JudgeDefaults, OutgoingRequest, Packing
from merilo.judges.conversation import ReasoningLimit, TurnResult, read_answers, side_by_side, turn
from merilo.judging import rubric
from merilo.judging.json_extraction import MAX_REPLY_CHARACTERS
from merilo.judging.json_types import as_object
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Pack, Question
from merilo.judging.registry import KINDS
from merilo.judging.reply_fields import ReplySchema, schema_of
from merilo.judging.reply_parsing import AskedForm, ParsedReply, read_pack, read_reply, schema_for
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Finish, Message, Provider, Reply, ReplyPath, Request, TruncatedText, Usage
from merilo.providers.openai import EmbeddingsRequest, OpenAIEmbeddingsProvider

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judging.ask import Answer
    from merilo.judging.reply_fields import SentencesOfContexts
    from merilo.judging.rubric import Rubric, SharedPrefix

_VERSION = 4
"""Part of the fingerprint: raised when the text of re-asks or the parsing of replies changes."""
_AUTHORS = ("assistant", "user")
"""Authors of the turns after a rubric, in alternation."""
_JUDGEMENTS: Final = frozenset(kind for kind in KINDS.values() if kind.reply is not None)
_PACKED: Final = frozenset(kind for kind in _JUDGEMENTS if isinstance(kind.reply, ReplySchema) and kind.reply.pack_item)
_TOGETHER: Final[Mapping[Packing, frozenset[type[Question[Any]]]]] = {
    Packing.SAMPLE: _PACKED,
    Packing.UNIT: frozenset(kind for kind in _PACKED if not kind.judges_context),
    Packing.QUESTION: frozenset(),
}
"""Kinds that are judged in packs."""


@dataclass(frozen=True)
class LLMJudge(JudgeDefaults):
    """A judge that asks the model behind a provider.

    - `language`: of the rubrics; None uses each question's own language.
    - `temperature`, `seed`: None leaves them to the model; draw n of a question uses seed + n.
    - `max_tokens`: limit of one reply, reasoning included; None for that of the kind of question. If a list is
      truncated, the limit is multiplied by four, at most twice; for a free text, once. A truncated rating is read if
      its decision is complete, otherwise re-asked.
    - `reasks`: how often merilo re-asks after an unreadable reply.
    - `judged`: which questions share a prompt. By default, the statements of one text that are compared with the same
      contexts. `together`: also the relevance of all contexts. `each`: none.
    """

    provider: Provider
    language: str | None = None
    temperature: float | None = 0.0
    seed: int | None = None
    max_tokens: int | None = None
    reasks: int = 2
    judged: Packing = Packing.UNIT
    _reasoning: ReasoningLimit = field(default_factory=ReasoningLimit, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if (self.max_tokens is not None and self.max_tokens < 1) or self.reasks < 0:
            raise UsageError(
                f"A judge needs max_tokens of at least 1 and reasks of at least 0, "
                f"got {self.max_tokens} and {self.reasks}."
            )

    @property
    def name(self) -> str:
        """The provider and the model: `openai:gpt-4.1-mini`."""
        fingerprint = self.provider.fingerprint()
        return f"{fingerprint.get('provider', 'llm')}:{fingerprint.get('model', '?')}"

    @property
    def answers(self) -> frozenset[type[Question[Any]]]:
        """All judgements and completions; no vectors and no similarities."""
        return _JUDGEMENTS | {Completion}

    @property
    def together(self) -> frozenset[type[Question[Any]]]:
        """Support, addresses, answered and mentions, unless `judged` is `each`; relevance only if it is `together`."""
        return _TOGETHER[self.judged]

    def fingerprint(self) -> Mapping[str, object]:
        """Return the provider's fingerprint, the parameters and the version of the reply parsing."""
        return {
            "judge": "llm",
            "version": _VERSION,
            "provider": dict(self.provider.fingerprint()),
            "language": self.language,
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "reasks": self.reasks,
            "judged": self.judged.value,
        }

    def rubric(self, question: Question[Any] | Pack) -> str:
        """Return the rubric's text exactly as in its file, or in its two files. Raises RubricError."""
        return self._rubric(question).text

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Return one answer per question. Raises RubricError before the first request.

        A pack of draws of one completion is one request. A pack of a kind that is judged together is one
        conversation. Any other pack is one conversation per question, run side by side.
        """
        if not isinstance(question, Pack):
            return self._completions((question,)) if isinstance(question, Completion) else self._one(question)
        questions = question.questions
        # Draws of one completion differ in nothing but their number, so one request with `samples` answers them all.
        if isinstance(questions[0], Completion) and len({each.at(0) for each in questions}) == 1:
            return self._completions(questions)
        if type(questions[0]) in self.together:
            return self._pack(question)
        return side_by_side([self.answer(each) for each in questions])

    def _rubric(self, question: Question[Any] | Pack) -> Rubric:
        return rubric.rubric_for(question, language=self.language)

    def _one(self, question: Question[Any]) -> Conversation:
        form, filled = self._filled(question)

        def read(text: str, wanted: frozenset[int]) -> ParsedReply:
            del wanted
            return read_reply(text, question, form)

        # A kind may have a schema for each question, such as its labels; only the current version has.
        current = form.version == question.rubric_version
        general = schema_for(question.kind, version=form.version)
        schema = _numbered(question, form) if current else general
        request = self._judgement(question, filled, question.kind, schema, *([general] if question.places else ()))
        rating = isinstance(question.reply, ReplySchema)
        return read_answers(
            self.provider, request, read, size=1, reasks=self.reasks, rating=rating, reasoning=self._reasoning
        )

    def _pack(self, pack: Pack) -> Conversation:
        form, filled = self._filled(pack)

        def read(text: str, wanted: frozenset[int]) -> ParsedReply:
            return read_pack(text, pack.questions, form, wanted=wanted)

        general = schema_for(pack.kind, together=True, version=form.version)
        places = sum(map(len, form.sentences)) or max(each.places for each in pack.questions)
        current = form.version == pack.questions[0].rubric_version
        schema = schema_for(pack.kind, together=True, version=form.version, places=places) if current else general
        request = self._judgement(pack, filled, f"{pack.kind}_together", schema, general)
        return read_answers(
            self.provider, request, read, size=len(pack.questions), reasks=self.reasks, reasoning=self._reasoning
        )

    def _filled(self, question: Question[Any] | Pack) -> tuple[AskedForm, SharedPrefix]:
        """Return the form in which a question is asked, and its rubric filled in."""
        asked = self._rubric(question)
        sentences: SentencesOfContexts = ()
        if asked.numbers_contexts:
            first = question.questions[0] if isinstance(question, Pack) else question
            sentences = tuple(judged_sentences(text, first.language) for text in first.cited_texts)
        return AskedForm(asked.version, sentences), rubric.render_shared(question, asked, sentences=sentences)

    def _judgement(
        self, question: Question[Any] | Pack, filled: SharedPrefix, name: str, *schemas: Mapping[str, object]
    ) -> Request:
        first = question.questions[0] if isinstance(question, Pack) else question
        return Request(
            messages=_messages(filled),
            schema=schemas[0],
            general_schema=schemas[1] if len(schemas) > 1 else None,
            schema_name=name,
            max_tokens=self._limit(question),
            temperature=self.temperature,
            seed=None if self.seed is None else self.seed + first.draw,
        )

    def _completions(self, questions: tuple[Question[Any], ...]) -> Conversation:
        """Return free texts, all from one request; texts that the provider did not return are requested singly."""
        first = questions[0]
        temperature = first.temperature if isinstance(first, Completion) else None
        earlier, schema = (first.earlier, first.schema) if isinstance(first, Completion) else ((), "")
        turns = tuple(Message(_AUTHORS[place % 2], text) for place, text in enumerate(earlier))
        request = Request(
            messages=(*_messages(rubric.render_shared(first, self._rubric(first))), *turns),
            schema=_loaded(schema) if schema else None,
            max_tokens=self._limit(first),
            temperature=self.temperature if temperature is None else temperature,
            seed=None if self.seed is None else self.seed + first.draw,
            samples=len(questions),
        )
        result = yield from turn(self.provider, request, reasoning=self._reasoning)
        answers = _texts(result, len(questions))
        rest = questions[len(answers) :]
        # A provider may return fewer texts than requested.
        if rest and len(questions) > 1:
            answers += yield from side_by_side([self._completions((each,)) for each in rest])
        elif rest:
            answers = (Failure(FailureKind.UNREADABLE, "The reply holds no text at all."),)
        return answers

    def _limit(self, asked: Question[Any] | Pack) -> int:
        """Return the limit of a reply in tokens."""
        if self.max_tokens is not None:
            return self.max_tokens
        if isinstance(asked, Pack):
            limit = min(Question.reply_tokens, len(asked.questions) * asked.questions[0].reply_tokens)
        else:
            limit = asked.reply_tokens
        return max(limit, self._reasoning.tokens)


def _numbered(question: Question[Any], form: AskedForm) -> Mapping[str, object]:
    """Return the schema of a reply that names only sentences or contexts that the prompt numbers."""
    sentences = sum(map(len, form.sentences)) if form.sentences else 0
    if sentences and isinstance(question.reply, ReplySchema):
        return schema_of(question.reply, sentences)
    return question.reply_schema()


def _texts(result: TurnResult, wanted: int) -> tuple[Answer, ...]:
    if isinstance(result.reply, Failure):
        return (result.reply,) * wanted
    most = f"at most {MAX_REPLY_CHARACTERS:,} are read."
    truncated = {
        each.index: Failure(FailureKind.UNREADABLE, f"The reply has {each.characters:,} characters; {most}")
        for each in result.reply.truncated
    }
    return tuple(
        truncated.get(index) or CompletionVerdict(text) for index, text in enumerate(result.reply.texts[:wanted])
    )


@lru_cache(maxsize=64)
def _loaded(schema: str) -> Mapping[str, object]:
    """Return a schema parsed from JSON, the same object for the same text: providers compare schemas by identity."""
    found = as_object(json.loads(schema))
    if found is None:
        raise UsageError(f"The schema of a completion must be a JSON object, got {schema[:60]!r}.")
    return found


def _messages(filled: SharedPrefix) -> tuple[Message, ...]:
    text, shared = filled
    user = Message("user", text.user, shared)
    return (Message("system", text.system), user) if text.system else (user,)


# -- vectors of an embedding model ----------------------------------------------------------------------

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
            answers.append(_joined_rows((yield sends) if sends else ()))
        return tuple(answers)


def _joined_rows(replies: Sequence[Reply | Failure]) -> Answer:
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


# -- recorded replies -----------------------------------------------------------------------------------


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
        found = rubric.rubric_with_text(question, self.recorded_rubric, language=self.language)
        if found is not None:
            return found
        first = question.questions[0] if isinstance(question, Pack) else question
        if first.rubric_version > 1:
            raise RubricError(f"No rubric of the kind '{first.kind}' has the recorded text.")
        return super()._rubric(question)

    def numbers_sentences(self, question: Question[Any]) -> bool:
        """Return True if the recorded prompt of a question numbered the sentences of its contexts."""
        asked = (question, Pack((question,)))
        found = (rubric.rubric_with_text(each, self.recorded_rubric, language=self.language) for each in asked)
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
