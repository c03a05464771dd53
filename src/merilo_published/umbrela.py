"""UMBRELA: a relevance label of 0 to 3 for each passage, read from free text by patterns in order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.base import EvidenceTarget, Metric, Score, Undefined
from merilo.metrics.formulas import mean
from merilo_published.asking import Asker, RequestTemplate, evidence_of
from merilo_published.definition import Published

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


_UNREAD: Final = "a reply without a label was scored 0"
# Possessive (*+, ?+, ++), so that a reply of endless white space or letters is read in one pass.
_LABEL: Final = r"([0-3])"
_SIGN: Final = r"\s*+[:;<=]?+\s*+"  # the published patterns mean colon, dash or equals sign, and write a range


def _patterns(*names: str, then: str = _SIGN) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(name + then + _LABEL) for name in names)


_PATTERNS: Final = (
    *_patterns('"o"', "'o'", "o"),
    *_patterns('"overall_score"', '"overall"', '"overall score"', '"final score"', "final score"),
    *_patterns("final score", then=" is "),
    *_patterns('"final_score"', '"score"', '"o_score"'),
    *_patterns("output score", "score", then=" is "),
    re.compile(rf"(?<![a-z])[a-z]++\s++is\s++{_LABEL}\s"),
    *_patterns("relevance category"),
    *_patterns("relevance category", then=" is "),
    *_patterns("it falls into the category", then=" "),
    *_patterns("category", then=r"\s*+"),
    *_patterns("relevance category for this passage", "the relevance category", then=" would be "),
    *_patterns("", then=""),
)


class Prompt(StrEnum):
    """The prompt for a label."""

    BING = "bing"
    """In steps: the intent, how well the passage matches it, how far it can be trusted, then the label."""
    BASIC = "basic"
    """The four labels and nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance(Published):
    """Mean relevance label of the contexts, 0 to 3 (UMBRELA).

    Formula: Mean over the contexts of a label: 0 unrelated, 1 related, 2 some answer, 3 dedicated and exact.
    Questions: One request for each context.
    Undefined: no context was retrieved
    Use: To compare with relevance judgments made by UMBRELA.
    Not: If a number that happens to be in a passage must not become its label.
    See: context_relevance | trulens:context_relevance
    Source: UMBRELA (castorini), git e2c4e41, zero-shot prompts and reply parser

    UMBRELA makes relevance judgments of its labels and takes no mean; divide by 3 for a share. A reply is read by
    patterns in order: the letter o, names of scores, names of categories, a digit; of the first pattern that matches,
    the last match counts. The letter o before a digit counts before the words "final score", so "relates to 3 topics.
    ##final score: 1" reads as 3. A reply without a label is the label 0, with a flag. A blank query is judged like any
    other.
    """

    name: ClassVar[str] = "umbrela:relevance"
    range: ClassVar[tuple[float, float]] = (0.0, 3.0)
    needs = frozenset({"user_input", "retrieved_contexts"})

    prompt: Prompt = Prompt.BING

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        if not contexts:
            return Undefined("no context was retrieved")
        template = RequestTemplate(f"relevance.{self.prompt}", _LIKELY, lambda reply: label_in(reply.text))
        asked = [{"query": user_input, "passage": context.text} for context in contexts]
        replies = yield from Asker("umbrela").read_each(template, asked)
        read = [reply.value for reply in replies]
        labels = [label or 0 for label in read]
        return Score(
            mean(labels),
            evidence=evidence_of(EvidenceTarget.CONTEXT, replies, labels),
            counts={"contexts": len(contexts), "valid": sum(label is not None for label in read)},
            flags=(_UNREAD,) if None in read else (),
        )


def label_in(reply: str) -> int | None:
    """Return the label in a reply: the last match of the first pattern that matches; None if none does."""
    text = reply.strip().lower()
    matches = (pattern.findall(text) for pattern in _PATTERNS)
    return next((int(found[-1]) for found in matches if found), None)


_LIKELY: Final = "##final score: 1"

METRICS: Final[tuple[type[Metric], ...]] = (Relevance,)
