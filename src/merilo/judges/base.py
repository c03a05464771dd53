"""The protocol of a judge: a plan one level below a metric's plan, which yields requests and returns verdicts.

`answer` is a generator like a metric's plan: it yields steps of `OutgoingRequest`s, is sent one `Reply` or `Failure`
for each, and returns the verdict. It does no I/O and keeps no state, so every driver runs it unchanged.
"""

from __future__ import annotations

import tomllib
from collections.abc import Generator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeGuard

from merilo.judging.verdicts import DecisionVerdict, Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Pack, Question
    from merilo.judging.views import View
    from merilo.metrics.base import Metric
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
      not clear chance (`merilo.judges.base`). Metrics that ask them for a decision are weak with it;
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


# -- the measured agreement of a judge with human labels --------------------------------------------------
# A table with one row for each kind of question. A kind is weak if the lower limit of its interval is below
# `LOWEST_LIMIT`. A metric is weak with a judge if it asks a weak kind that decides something. Nothing else decides
# this, except for a judge that names metrics itself (`Judge.weak_metrics`).

EMBEDDED_FILE: Final = "embedded_agreement.toml"

LOWEST_LIMIT: Final = 0.6
"""The smallest lower limit of a kind that is not weak: chance (0.5) and a margin of 0.1.

An AUROC of 0.6 means that the judge puts a positive record above a negative one in 60 of 100 pairs. A judge that may
be below this limit cannot be distinguished from chance in practice.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAgreement:
    """The agreement of a judge with human labels on one kind of question, on sources that it was not fitted on."""

    kind: str
    """The kind of question, such as `support`."""
    form: str = ""
    """The part of the kind that the row covers, such as "short answers"; empty for the kind as a whole.

    Only a row for the kind as a whole makes the kind weak: most questions do not have the form.
    """
    value: float
    lower: float | None = None
    upper: float | None = None
    """The ends of the 95 % interval over families of sources; None if there is one family."""
    families: int | None = None
    """Number of families of sources; None if not recorded."""

    @property
    def clears_chance(self) -> bool:
        """True if the lower limit is at least `LOWEST_LIMIT`; one family shows nothing about another."""
        return self.lower is not None and self.lower >= LOWEST_LIMIT

    def __str__(self) -> str:
        interval = "one family" if self.lower is None else f"{self.lower:.2f} - {self.upper:.2f}"
        families = f", {self.families} families" if self.lower is not None and self.families else ""
        return f"{self.form or self.kind} {self.value:.2f} ({interval}{families})"


@cache
def _table() -> dict[str, Any]:  # Any: parsed TOML
    return tomllib.loads(files("merilo.judges").joinpath(EMBEDDED_FILE).read_text(encoding="utf-8"))


@cache
def embedded_agreement() -> tuple[MeasuredAgreement, ...]:
    """Return the measured agreement of the embedded judge."""
    shown = ("kind", "form", "value", "lower", "upper", "families")
    return tuple(
        MeasuredAgreement(**{name: each[name] for name in shown if name in each}) for each in _table()["measured"]
    )


def embedded_right() -> float:
    """Return the fraction of the embedded judge's verdicts on support that are right, on answers that no fit has seen.

    Answers that it does not judge do not count.
    """
    return float(_table()["right"])


def weak_kinds(rows: Iterable[MeasuredAgreement]) -> frozenset[str]:
    """Return the kinds of question whose agreement does not clear chance.

    A kind without a row for the kind as a whole is not among them: nothing is known about it.
    """
    return frozenset(each.kind for each in rows if not each.form and not each.clears_chance)


def decided_kinds(metric: Metric) -> frozenset[type[Question[Any]]]:  # Any: whatever its verdict is
    """Return the kinds of question of a metric whose verdicts decide something.

    A list of statements decides nothing.
    """
    return frozenset(kind for kind in metric.asks if issubclass(kind.verdict, DecisionVerdict))


def is_weak(judge: Judge | None, kind: type[Question[Any]], metric: str) -> bool:  # Any: as above
    """Return True if a judge is weak in this kind of question, or names the metric as weak. None: no judge."""
    weak: frozenset[str] = getattr(judge, "weak_kinds", frozenset())
    named: frozenset[str] = getattr(judge, "weak_metrics", frozenset())
    return kind.kind in weak or metric in named
