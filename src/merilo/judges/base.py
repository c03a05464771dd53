"""What a judge is: a plan one floor down, that yields requests and returns verdicts.

`answer` is a generator like a metric's plan: it yields steps of `Send`s, is sent one `Reply` or `Failure`
for each, and returns the verdict. It does no I/O and keeps no state, so every driver runs it unchanged.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Pack, Question
    from merilo.judging.verdicts import Failure
    from merilo.providers.base import Provider, Reply, Request

PACK_SIZE = 10


@dataclass(frozen=True, slots=True)
class Send:
    """A request on its way to a provider."""

    provider: Provider
    request: Request


if TYPE_CHECKING:
    Conversation = Generator[tuple[Send, ...], tuple[Reply | Failure, ...], tuple[Answer, ...]]
else:
    Conversation = Generator
"""Yields steps of sends, is sent a reply or failure for each, returns one answer for each question asked."""


class Judge(Protocol):
    """Who answers questions. Implementations are frozen dataclasses.

    A judge may also have

    - `unready: str | None`: why it can answer nothing here (a package is missing), as a phrase, told before a run;
    - `batched: bool`: whether all that it sends goes to providers that answer batches (`BatchProvider`), and the order
      in which it is asked does not matter, so that a run may ask in rounds;
    - `knows: Callable[[Sequence[str]], bool]`: whether it knows the language of these texts, of which the first is what
      is asked. A run says which samples it does not, and a cascade leaves such questions to the next judge;
    - `weak: frozenset[str]`: the names of metrics of which its verdicts tell little, as `rates` says in words.
    """

    @property
    def name(self) -> str:
        """How reports call it: `embedded`, `openai:gpt-4.1-mini`."""
        ...

    @property
    def answers(self) -> frozenset[type[Question[Any]]]:
        """The question types it answers; others are never sent to it."""
        ...

    @property
    def together(self) -> frozenset[type[Question[Any]]]:
        """The question types it judges in packs of at most `PACK_SIZE`; a subset of `answers`."""
        ...

    @property
    def rates(self) -> str | None:
        """One line on how well it agrees with people, for the summary; None where it is not known."""
        ...

    @property
    def cacheable(self) -> bool:
        """Whether other runs may use its verdicts: false when the fingerprint cannot tell two versions apart."""
        ...

    def fingerprint(self) -> Mapping[str, object]:
        """Everything that may change a verdict but the rubric: provider, model, parameters, weights hash.

        JSON-able, no secrets.
        """
        ...

    def rubric(self, question: Question[Any] | Pack) -> str:
        """The full text of the rubric this question is asked through; empty when there is none."""
        ...

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """A conversation that returns one answer for each question: one for a question, n for a pack of n."""
        ...
