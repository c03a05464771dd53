"""Metrics of the order of contexts in ragas 0.1: average precision, against the reference or the response."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined
from merilo.metrics.formulas import average_precision, majority, smoothed_average_precision
from merilo.metrics.published.asking import UnreadableReply
from merilo.metrics.published.definition import BLANK, bound, is_blank
from merilo.metrics.published.ragas_v0_1 import replies
from merilo.metrics.published.ragas_v0_1.asking import JsonAsker, Voting, json_template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.published.ragas_v0_1.asking import MaybeRead

_NO_CONTEXT: Final = "nothing was retrieved (with ask_blank=false)"
_BLANK_IS_ASKED: Final[Mapping[str, str]] = MappingProxyType({"nothing to judge": "ask_blank"})

_USEFUL: Final = json_template(
    "context_precision",
    'An object {"reason": text, "verdict": 0 or 1}.',
    '{"reason": "It says so.", "verdict": 1}',
    replies.verdict,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPrecision(Voting):
    """Average precision of the contexts useful to arrive at the reference (ragas 0.1).

    Formula: Sum over ranks k of v_k (useful among the first k) / k, divided by (useful + 1e-10).
    Questions: One request for each context; one more for each reply that cannot be read.
    Undefined: what is to be judged is blank (with ask_blank=false) | nothing was retrieved (with ask_blank=false) | a
        reply cannot be read, nor can its repair (Failed, where ragas 0.1.9 stops the run and 0.1.22 has NaN)
    Use: To understand, or to compare with, numbers of ragas 0.1.
    Not: To measure something new: nothing retrieved scores 0, as does nothing useful.
    See: context_precision
    Source: ragas/metrics/_context_precision.py

    Without contexts 0, and nothing is asked. One request for each context, in order; all are made, and it is Failed
    where the verdict on one cannot be read.

    - `reproducibility`, `made_odd`: see `Voting`; whether the replies vote, `first_reply_decides` says.
    - `first_reply_decides`: of these replies the first that can be read decides, whatever the others say.
      False: the majority; ties go to the verdict seen first.
    - `smoothed`: the 1e-10 above, which makes a perfect ranking a hair less than 1. False: exact.
    - `response_stands_in`: if there is no reference, the response replaces it (0.1.9). False: the
      reference is needed (0.1.22).
    - `ask_blank`: blank texts are judged like any others, and no contexts score 0. False: Undefined.
    """

    version: ClassVar[int] = 1
    ranked: ClassVar[bool] = True
    breaks: ClassVar[Mapping[str, str]] = _BLANK_IS_ASKED

    first_reply_decides: bool = True
    smoothed: bool = True
    response_stands_in: bool = False
    ask_blank: bool = True

    @property
    def needs(self) -> frozenset[str]:
        """The user input and the contexts, and the reference unless the response can replace it."""
        common = frozenset({"user_input", "retrieved_contexts"})
        return common if self.response_stands_in else common | {"reference"}

    def max_questions(self, sample: Sample) -> int:
        return _for_contexts(sample, self.needs, self.replies)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), _context_texts(sample)
        stands_in = self.response_stands_in and sample.reference is None and sample.response is not None
        target = sample.require("response" if stands_in else "reference")
        if not self.ask_blank and (reason := _nothing(contexts, user_input, target)):
            return Undefined(reason)
        verdicts, evidence = yield from _usefulness(
            user_input, contexts, target, self.replies, first_reply_decides=self.first_reply_decides
        )
        return _precision(verdicts, evidence, smoothed=self.smoothed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUtilization(Voting):
    """Average precision of the contexts useful to arrive at the response (ragas 0.1).

    Formula: Sum over ranks k of v_k (useful among the first k) / k, divided by (useful + 1e-10).
    Questions: One request for each context; one more for each reply that cannot be read.
    Undefined: what is to be judged is blank (with ask_blank=false) | nothing was retrieved (with ask_blank=false) | a
        reply cannot be read, nor can its repair (Failed, where ragas 0.1.9 stops the run and 0.1.22 has NaN)
    Use: To understand, or to compare with, numbers of ragas 0.1.
    Not: To measure something new: nothing retrieved scores 0, as does nothing useful.
    See: context_utilization
    Source: ragas/metrics/_context_precision.py

    Formula, requests and source as for context_precision, with the response for the reference.

    - `reproducibility`, `made_odd`, `first_reply_decides`, `smoothed`: as for context_precision.
    - `reference_first`: where there is a reference, it is shown in place of the response, so that the metric is
      context_precision (0.1.9). False: always the response (0.1.22).
    - `ask_blank`: blank texts are judged like any others, and no contexts score 0. False: Undefined.
    """

    version: ClassVar[int] = 1
    ranked: ClassVar[bool] = True
    needs = frozenset({"user_input", "retrieved_contexts", "response"})
    breaks: ClassVar[Mapping[str, str]] = _BLANK_IS_ASKED

    first_reply_decides: bool = True
    smoothed: bool = True
    reference_first: bool = False
    ask_blank: bool = True

    def max_questions(self, sample: Sample) -> int:
        return _for_contexts(sample, self.needs, self.replies)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), _context_texts(sample)
        response = sample.require("response")
        target = sample.reference if self.reference_first and sample.reference is not None else response
        if not self.ask_blank and (reason := _nothing(contexts, user_input, target)):
            return Undefined(reason)
        verdicts, evidence = yield from _usefulness(
            user_input, contexts, target, self.replies, first_reply_decides=self.first_reply_decides
        )
        return _precision(verdicts, evidence, smoothed=self.smoothed)


def _context_texts(sample: Sample) -> tuple[str, ...]:
    return tuple(context.text for context in sample.contexts)


def _nothing(contexts: Sequence[str], *given: str) -> str | None:
    """Return the reason if there is nothing to judge."""
    if not contexts:
        return _NO_CONTEXT
    return BLANK if is_blank("".join(contexts), *given) else None


def _for_contexts(sample: Sample, needs: frozenset[str], replies_each: int) -> int:
    return bound(sample, needs, 2 * replies_each * len(sample.retrieved_contexts or ()))


def _usefulness(
    user_input: str, contexts: Iterable[str], target: str, count: int, *, first_reply_decides: bool
) -> Plan[tuple[list[float], tuple[Evidence, ...]]]:
    """Return the verdict on each context as 0 or 1, with its evidence. Raises AskFailed, after the last context."""
    asker = JsonAsker()
    asked: list[tuple[MaybeRead[int], ...]] = []
    for context in contexts:
        values = {"user_input": user_input, "context": context, "answer": target}
        asked.append((yield from asker.samples(_USEFUL, values, count)))
    verdicts: list[float] = []
    evidence: list[Evidence] = []
    for at, read in enumerate(asked):
        readable = tuple(one for one in read if not isinstance(one, UnreadableReply)) or read[:1]
        votes = [one.or_raise() != 0 for one in readable]
        verdicts.append(float(votes[0] if first_reply_decides else majority(votes)))
        evidence.append(readable[0].reply.evidence(EvidenceTarget.CONTEXT, at, verdicts[-1]))
    return verdicts, tuple(evidence)


def _precision(verdicts: Sequence[float], evidence: tuple[Evidence, ...], *, smoothed: bool) -> Score:
    exact = average_precision([verdict > 0 for verdict in verdicts])
    return Score(
        smoothed_average_precision(verdicts) if smoothed else exact,
        evidence=evidence,
        counts={"contexts": len(verdicts), "useful": int(sum(verdicts))},
    )
