"""The judge that needs no key, no network and no model server: a small model of our own, in the package.

It is `merilo.judges.blended` behind the judge protocol: which words of one text stand in another, and what a compact
encoder reads in both. It follows no instruction hidden in a context: its answers are numbers about likeness, and no
text is an order to it. It cannot tell a contradiction from something not stated.

Vectors and similarities come from the same encoder; where texts are of another language, from `merilo.judges.ngrams`,
which know words and parts of words but no meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from merilo.data.sentences import SPLITTER_ID
from merilo.judges.base import Send
from merilo.judges.blended import CURVES_FILE, WEIGHTS_FILE, BlendedModel
from merilo.judges.embedded_provider import RULES, EmbeddedProvider
from merilo.judges.english import is_english, told_apart
from merilo.judges.lexical_match import RULES_VERSION
from merilo.judges.ngrams import NAME
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.questions import QuestionRequest, answer_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judges.base import Conversation
    from merilo.judging.ask import Answer
    from merilo.providers.base import Reply

_PROVIDER: Final = EmbeddedProvider()

_RATED: Final = {
    "sentence": "evidence sentences",
    "answers": "grade 2 of relevance",
    "sufficient": "sufficiency",
    "supported": "support",
    "answered": "short answers",
    "yes_or_no": "a bare yes or no",
    "supported_statements": "support of statements that people wrote",
    "supported_edited": "support of facts changed on purpose",
    "addresses": "addresses",
}
"""The tasks for which people's labels were held out, as `rates` calls them."""

_LIMITS: Final = (
    "Its grade 1 means on the subject. It may take a changed fact or a contradiction for supported, and what is true "
    "in other words for not, most of all beside a short reference (answer_correctness, noise_sensitivity); of whether "
    "a statement answers (answer_relevancy) it knows little more than chance"
)
_WEAK: Final = frozenset({"answer_correctness", "noise_sensitivity", "answer_relevancy"})
_LONGEST_BEGINNING: Final = 20_000
"""Characters of a text by which its language is told."""
_MARK: Final = 12
"""So many digits of the model's digest are shown."""


@dataclass(frozen=True)
class EmbeddedJudge:
    """The default judge. Equal questions get equal verdicts, whatever else was asked."""

    @property
    def name(self) -> str:
        """`embedded`."""
        return "embedded"

    @property
    def answers(self) -> frozenset[type[Question[Any]]]:
        """Judgements, vectors and similarities; no free text and no sentences of other splitters."""
        return frozenset(RULES)

    @property
    def together(self) -> frozenset[type[Question[Any]]]:
        """None: each statement is judged by itself."""
        return frozenset()

    @property
    def rates(self) -> str | None:
        """Which model it is, and Cohen's kappa with people's labels on held-out public data, with 95 % intervals."""
        model = BlendedModel.load()
        tables = model.agreement
        parts = [_rate(called, tables.get(task, {}).get("people")) for task, called in _RATED.items()]
        shown = ", ".join(part for part in parts if part)
        return f"model {model.fingerprint[:_MARK]}; agreement with people on held-out English data: {shown}. {_LIMITS}"

    @property
    def weak(self) -> frozenset[str]:
        """Metrics that hold texts against a short reference, or ask whether a statement answers."""
        return _WEAK

    @property
    def cacheable(self) -> bool:
        """Yes: the model's digest, the rules' version and the splitter decide every verdict."""
        return True

    @property
    def batched(self) -> bool:
        """Yes: its model takes what many samples ask at once."""
        return True

    def knows(self, texts: Sequence[str]) -> bool:
        """Whether there is English to read: the first text with some of the others. Of the rest it sees words alone."""
        first, *others = [text[:_LONGEST_BEGINNING] for text in texts]
        return any(told_apart(first, others).english) if others else is_english(first)

    def fingerprint(self) -> Mapping[str, object]:
        """The digest of the model files, the version of the reading, the sentence splitter and the vectors."""
        return {
            "judge": "embedded",
            "model": f"{WEIGHTS_FILE}, {CURVES_FILE}",
            "sha256": BlendedModel.load().fingerprint,
            "rules": RULES_VERSION,
            "splitter": SPLITTER_ID,
            "vectors": f"all-MiniLM-L6-v2; {NAME} where texts are not English",
        }

    def rubric(self, question: Question[Any] | Pack) -> str:
        """None: it is asked nothing in words."""
        del question
        return ""

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """One request to the model for each question that it answers, side by side."""
        questions = question.questions if isinstance(question, Pack) else (question,)
        own = [QuestionRequest((), question=each) for each in questions if type(each) in RULES]
        replies = iter((yield tuple(Send(_PROVIDER, request) for request in own)) if own else ())
        return tuple(_read(each, next(replies)) if type(each) in RULES else _unknown(each) for each in questions)


def _unknown(question: Question[Any]) -> Failure:
    return Failure(
        FailureKind.PERMANENT,
        f"The embedded judge does not answer questions of kind {question.kind!r}; ask a language model.",
    )


def _read(question: Question[Any], reply: Reply | Failure) -> Answer:
    return reply if isinstance(reply, Failure) else answer_in(reply.text, question)


def _rate(called: str, table: Mapping[str, Any] | None) -> str:  # Any: the model file's tables
    if table is None:
        return ""
    low, high = table["interval"]
    return f"{called} κ {table['kappa']:.2f} [{low:.2f}, {high:.2f}]"
