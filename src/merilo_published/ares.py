"""ARES: three yes-or-no judgments of a question, a document and an answer, read from marks in brackets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.base import EvidenceTarget, Metric, Score, Undefined
from merilo.metrics.formulas import mean
from merilo_published.asking import Asker, RequestTemplate, evidence_of
from merilo_published.definition import Published

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


_UNREAD: Final = "a reply without a label was scored 0"
_LIKELY: Final = "[[Yes]]"
_LABEL: Final = re.compile(r"\[\[?\s*(Yes|No)\s*\]\]?")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Label(Published):
    """Share of the contexts for which the judge says yes, in [0, 1]; 0 or 1 for a single document.

    Questions: One request for each retrieved document.
    Undefined: no context was retrieved
    Use: To compare with the labels of ARES' prompted judge; correct their mean over samples by `ppi_mean`.
    Not: Alone, where a few human labels could say how far the judge is off.
    Source: ARES (stanford-futuredata), git c7c9018: prompted judge, labels and their extraction

    The reply must hold `[[Yes]]` or `[[No]]`; one bracket a side will do. ARES averages the labels over samples and
    corrects the mean by human labels, which `ppi_mean` in `merilo.stats.correction` does; its fine-tuned classifiers
    are not part of this, nor is its habit of asking five times, a minute apart, where a request fails: the provider
    retries.

    A reply without a label is scored 0, with a flag. A reply that holds both labels is a yes. `[[yes]]` is not a label.
    """

    needs = frozenset({"user_input", "retrieved_contexts"})
    rubric: ClassVar[str]
    """The rubric, which is filled with the needed fields."""

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        values = {"query": sample.require("user_input")}
        contexts = sample.contexts
        if "response" in self.needs:
            values["answer"] = sample.require("response")
        if not contexts:
            return Undefined("no context was retrieved")
        asker, template = Asker("ares"), RequestTemplate(self.rubric, _LIKELY, lambda reply: label_in(reply.text))
        replies = yield from asker.read_each(template, [{**values, "document": context.text} for context in contexts])
        read = [reply.value for reply in replies]
        labels = [1.0 if label else 0.0 for label in read]
        return Score(
            mean(labels),
            evidence=evidence_of(EvidenceTarget.CONTEXT, replies, labels),
            counts={"contexts": len(read), "yes": read.count(True), "extraction_failed": read.count(None)},
            flags=(_UNREAD,) if None in read else (),
        )


def label_in(reply: str) -> bool | None:
    """Return True for `[[Yes]]` in a reply, False for `[[No]]` alone, None if it holds neither."""
    labels = _LABEL.findall(reply)
    return "Yes" in labels if labels else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRelevance(_Label):
    """Share of the documents that hold what the query asks (ARES).

    Formula: Mean over the documents of 1 for yes and 0 for no.
    See: context_relevance | umbrela:relevance
    """

    name: ClassVar[str] = "ares:context_relevance"
    rubric: ClassVar[str] = "context_relevance"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFaithfulness(_Label):
    """Share of the documents to which the answer is faithful (ARES).

    Formula: Mean over the documents of 1 for yes and 0 for no; ARES gives one document a sample.
    Not: With several documents of which each supports a part of the answer: take faithfulness.
    See: faithfulness
    """

    name: ClassVar[str] = "ares:answer_faithfulness"
    rubric: ClassVar[str] = "answer_faithfulness"
    needs = frozenset({"user_input", "retrieved_contexts", "response"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevance(_Label):
    """Share of the documents with which the answer replies to the query (ARES).

    Formula: Mean over the documents of 1 for yes and 0 for no; ARES gives one document a sample.
    See: answer_relevancy
    """

    name: ClassVar[str] = "ares:answer_relevance"
    rubric: ClassVar[str] = "answer_relevance"
    needs = frozenset({"user_input", "retrieved_contexts", "response"})


METRICS: Final[tuple[type[Metric], ...]] = (ContextRelevance, AnswerFaithfulness, AnswerRelevance)
