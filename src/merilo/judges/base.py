"""The protocol of a judge: a plan one level below a metric's plan, which yields requests and returns verdicts.

`answer` is a generator like a metric's plan: it yields steps of `OutgoingRequest`s, is sent one `Reply` or `Failure`
for each, and returns the verdict. It does no I/O and keeps no state, so every driver runs it unchanged.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Pack, Question
    from merilo.judging.verdicts import Failure
    from merilo.judging.views import View
    from merilo.providers.base import Provider, Reply, Request
    from merilo.providers.questions import AnswerWith

PACK_SIZE = 10


class Packing(StrEnum):
    """Which questions about a sample share a request of a decision model; for language models see `LLMJudge.judged`."""

    SAMPLE = "together"
    """As many as possible: all about the contexts, all about the response."""
    UNIT = "context"
    """All about one context, about all contexts together, or about texts without contexts; each reads only these."""
    QUESTION = "each"
    """None: every question is one request, with its own texts only."""


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request and the provider that it is for."""

    provider: Provider
    request: Request
    key: bytes = field(default=b"", compare=False)
    """Identifies the request within its run, whatever was asked before; set by `drive_rounds`."""


if TYPE_CHECKING:
    Conversation = Generator[tuple[OutgoingRequest, ...], tuple[Reply | Failure, ...], tuple[Answer, ...]]
else:
    Conversation = Generator
"""A generator: yields steps of sends, is sent a reply or failure for each, returns one answer per question."""


class Judge(Protocol):
    """A model or function that answers questions. Implementations are frozen dataclasses.

    A judge may also have these attributes:

    - `unavailable_reason: str | None`: why it cannot answer anything here (for example, a missing package), as a
      phrase. It is reported before a run starts;
    - `deterministic: bool`: True if equal questions always get equal verdicts, whatever their draw. Such a judge has
      no noise, so a run refuses to ask it several times;
    - `supports_batches: bool`: True if all its requests go to providers that answer batches (`BatchProvider`) and the
      order of the questions does not matter. A run may then ask in rounds;
    - `supports_language: Callable[[Sequence[str]], bool]`: True if it supports the language of these texts, the first
      of which is the question or statement. A run reports samples in other languages;
    - `reads_facts: bool`: True if its verdicts depend on the facts of a question (`Question.facts`);
    - `languages: frozenset[str]`: the codes of those languages; empty if any. A language that the user states for a
      sample, and that of each text but contexts, must be among them;
    - `weak_kinds: frozenset[str]`: the kinds of question (`addresses`) on which its agreement with human labels does
      not clear chance (`merilo.judges.measured_agreement`). Metrics that ask them for a decision are weak with it;
    - `weak_metrics: frozenset[str]`: the names of further metrics that are weak with it. A run leaves weak metrics out
      unless they are named, and marks them wherever it shows them. `agreement_note` explains this in words.
    """

    @property
    def name(self) -> str:
        """The name in reports: `embedded`, `openai:gpt-4.1-mini`."""
        ...

    @property
    def answers(self) -> frozenset[type[Question[Any]]]:
        """The question types that the judge answers; it receives no others."""
        ...

    @property
    def together(self) -> frozenset[type[Question[Any]]]:
        """The question types that are judged in packs of at most `PACK_SIZE`; a subset of `answers`."""
        ...

    @property
    def agreement_note(self) -> str | None:
        """Agreement with human labels, as one line for the summary; None if unknown."""
        ...

    @property
    def cacheable(self) -> bool:
        """True if other runs may use the verdicts; False if the fingerprint cannot distinguish two versions."""
        ...

    def fingerprint(self) -> Mapping[str, object]:
        """Return everything except the rubric that can change a verdict: provider, model, parameters, weights hash.

        The result can be written as JSON and contains no secrets.
        """
        ...

    def rubric(self, question: Question[Any] | Pack) -> str:
        """Return the full text of the rubric for this question; empty if the judge uses none."""
        ...

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Return a conversation that returns one answer per question: one for a question, n for a pack of n."""
        ...


class JudgeDefaults:
    """Default declarations to inherit from: one question at a time, no known agreement, cacheable, no rubric."""

    @property
    def together(self) -> frozenset[type[Question[Any]]]:
        """Always empty."""
        return frozenset()

    @property
    def agreement_note(self) -> str | None:
        """Always None."""
        return None

    @property
    def cacheable(self) -> bool:
        """Always True: the fingerprint determines every answer."""
        return True

    def rubric(self, question: Question[Any] | Pack) -> str:
        """Return an empty text."""
        del question
        return ""


class BundlingJudge(Judge, Protocol):
    """A judge that is asked all questions about one view of a sample in one `Bundle`.

    No answer may depend on the other questions of the bundle: the engine keys it by its question and its view, and asks
    likely questions ahead.
    """

    def view(self, question: Question[Any], sample: Sample | None) -> View | None:
        """Return the texts that the question is asked about; None for a question that shares no request.

        `sample`: whose texts other questions are about; None if there is none.
        """
        ...


def is_bundling(judge: Judge) -> TypeGuard[BundlingJudge]:
    """Return True for a judge that is asked in bundles. `isinstance` would read every property, and so load a model."""
    return hasattr(judge, "view")


JudgeLike: TypeAlias = "str | Judge | AnswerWith"
"""Everything that a user may pass as a judge."""
