"""The embedded judge: a small packaged model that needs no key, no network and no model server.

It adapts `merilo.judges.blended` to the judge protocol. The model compares the words and the vectors of two texts and
reads both with a small network. It ignores instructions hidden in a context: its answers are numbers about similarity,
and no text is an instruction to it. It cannot distinguish a contradiction from something that is not stated. What it
cannot judge better than by chance, it does not judge (`FailureKind.NOT_JUDGED`).

Vectors and similarities come from the same encoder. For texts in another language they come from
`merilo.judges.words`, which compares words and parts of words but not meaning.

Each run creates this judge, for vectors and similarities. The model is imported when the judge is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from merilo.data.sentences import SPLITTER_ID
from merilo.errors import UsageError
from merilo.judges.base import Conversation, JudgeDefaults, OutgoingRequest, embedded_agreement, weak_kinds
from merilo.judges.words import NAME, is_english, split_english
from merilo.judging.kinds.contexts import Relevance, Sufficiency, Support, Usefulness
from merilo.judging.kinds.measured import Embeddings, Similarities
from merilo.judging.kinds.responses import Addresses, Noncommittal, Statements
from merilo.judging.questions import Pack, Question
from merilo.providers.questions import QuestionRequest, answer_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.providers.base import Provider

_ANSWERS: Final[frozenset[type[Question[Any]]]] = frozenset(
    {Relevance, Usefulness, Statements, Support, Sufficiency, Addresses, Noncommittal, Embeddings, Similarities}
)
_USE: Final = (
    "Use it for a first look, for regressions of one system and to find evidence; not for single verdicts, absolute "
    "levels or comparisons of different kinds of retrievers"
)
_MAX_BEGINNING: Final = 20_000
"""Characters of a text that are read to detect its language."""
_MARK: Final = 12
"""Hexadecimal digits of the model's digest in `agreement_note`."""


@dataclass(frozen=True)
class EmbeddedJudge(JudgeDefaults):
    """The default judge. Equal questions always get equal verdicts, whatever other questions are asked."""

    name = "embedded"
    answers = _ANSWERS
    """Judgements, vectors and similarities; no free text and no sentences of other splitters."""
    deterministic = True
    reads_facts = True
    supports_batches = True
    """One call takes the questions of many samples."""
    languages = frozenset({"en"})

    @property
    def agreement_note(self) -> str | None:
        """The model's digest, and its agreement with human labels, with 95 % intervals over families of sources."""
        from merilo.judges.blended import BlendedModel

        return f"model {BlendedModel.load().fingerprint[:_MARK]}; {_measured()}"

    @property
    def weak_kinds(self) -> frozenset[str]:
        """The kinds of question on which its measured agreement does not clear chance."""
        return weak_kinds(embedded_agreement())

    def supports_language(self, texts: Sequence[str]) -> bool:
        """Return True if the texts are English: the first text together with a part of the others.

        In other languages words alone decide relevance, and nothing else is judged.
        """
        # The beginning is enough to detect a language, and contexts may have a million characters.
        first, *others = [text[:_MAX_BEGINNING] for text in texts]
        return any(split_english(first, others)) if others else is_english(first)

    def fingerprint(self) -> Mapping[str, object]:
        """Return the digest of the model files, and the versions of rules, sentence splitter and vectors."""
        from merilo.judges.blended import CURVES_FILE, RULES_VERSION, WEIGHTS_FILE, BlendedModel

        _provider()  # a run that asks this judge imports the rest here, before its progress begins
        return {
            "judge": "embedded",
            "model": f"{WEIGHTS_FILE}, {CURVES_FILE}",
            "sha256": BlendedModel.load().fingerprint,
            "rules": RULES_VERSION,
            "splitter": SPLITTER_ID,
            "vectors": f"all-MiniLM-L6-v2; {NAME} where texts are not English",
        }

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Return one answer per question, with one request to the model for each."""
        questions = question.questions if isinstance(question, Pack) else (question,)
        provider = _provider()
        replies = yield tuple(OutgoingRequest(provider, QuestionRequest((), question=each)) for each in questions)
        return tuple(map(answer_of, questions, replies))


@cache
def _provider() -> Provider:
    from merilo.judges.embedded_provider import EmbeddedProvider

    return EmbeddedProvider()


@cache
def _measured() -> str:
    figures = ", ".join(str(each) for each in embedded_agreement() if each.clears_chance or each.form)
    return f"AUROC with human labels on left-out families of sources: {figures}. {_USE}"


def embedded_judge(text: str) -> EmbeddedJudge:
    """Return the embedded judge, for the judge spec `embedded`. Raises UsageError for text after a colon."""
    if text:
        raise UsageError(f"The embedded judge takes no argument, got 'embedded:{text}'.")
    return EmbeddedJudge()
