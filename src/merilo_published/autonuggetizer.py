"""AutoNuggetizer: recall of the vital and okay nuggets of a question, with full and partial support."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.data.sample import NUGGETS, Nugget, NuggetError, Sample, nuggets_in
from merilo.judging.ask import Plan, ask, together
from merilo.judging.json_types import as_list
from merilo.metrics.base import EvidenceTarget, Metric, Score, Undefined
from merilo.metrics.variants import variant
from merilo_published.asking import Asker, ReadReply, Recovery, Reply, ReplyFault, RequestTemplate, json_array
from merilo_published.definition import Published, fraction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_WINDOW: Final = 10
_TEMPERATURE: Final = 0.0
_REASK_TEMPERATURE: Final = 0.2
_SUPPORT: Final = "support"
_PARTIAL: Final = "partial_support"
_UNLABELLED: Final = "nuggets without a label were left out"
_OTHER_LABEL: Final = "another label was taken as not_support"
_LABELS: Final = frozenset({_SUPPORT, _PARTIAL, "not_support"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AllScore(Published):
    """Share of the nuggets that the response supports, half for partial support (AutoNuggetizer).

    Formula: (supported + partly supported / 2) / nuggets.
    Questions: One request for every ten nuggets, repeated up to `tries` times (5) until a reply can be read.
    Undefined: the sample has no nuggets | nuggets are not a list of texts, or of objects with "text" and "vital" or
        "importance"
    Use: To compare with nugget scores of the TREC RAG track.
    Not: If nuggets that the judge does not label must not raise the score.
    See: nugget_recall
    Source: nuggetizer 0.0.5 (castorini); Pradeep et al. 2024 (arXiv 2411.09607)

    The nuggets are in the metadata of the sample, or in a column `nuggets`; see `nugget_recall`. One request labels
    ten of them as support, partial_support or not_support. A reply is a list in the syntax of
    Python, in code fences or not. Another label counts as not_support, with a flag. Labels beyond the number of
    nuggets are ignored. Nuggets for which a reply has too few labels are left out, with a flag. A blank response
    supports nothing unasked. Without a nugget that counts, such as a vital one, the score is 0.

    - `tries`: the maximum number of requests for one reply that can be read, at temperature 0, then 0.2; nuggetizer
      sends up to 500. Afterwards the outcome is Failed; nuggetizer counts these nuggets as not supported.
    """

    name: ClassVar[str] = "autonuggetizer:all_score"
    needs = frozenset({"user_input", "response"})
    truth_in_metadata: ClassVar[frozenset[str]] = frozenset({NUGGETS})
    okay_weight: ClassVar[float] = 1.0
    partial: ClassVar[float] = 0.5
    """The value of a partly supported nugget."""

    tries: int = 5

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        query, passage = sample.require("user_input"), sample.require("response")
        try:
            nuggets = nuggets_in(sample.metadata)
        except NuggetError as error:
            return Undefined(str(error))
        windows = [nuggets[start : start + _WINDOW] for start in range(0, len(nuggets), _WINDOW)]
        asked = windows if passage.strip() else []
        replies = yield from together([self._labels(query, passage, window) for window in asked])
        labelled = [pair for window, reply in zip(asked, replies, strict=True) for pair in zip(window, reply.value)]  # noqa: B905  a short reply leaves nuggets out
        if not asked:
            labelled = [(nugget, "not_support") for nugget in nuggets]
        weights = [1.0 if nugget.vital else self.okay_weight for nugget, _ in labelled]
        labels = [label for _, label in labelled]
        worth = fsum(weight * self._value(label) for weight, label in zip(weights, labels, strict=True))
        flags = [_UNLABELLED] * (len(labels) < len(nuggets))
        flags += [_OTHER_LABEL] * (not _LABELS.issuperset(labels))
        counts = {"nuggets": len(labels), "stated": labels.count(_SUPPORT), "partly_stated": labels.count(_PARTIAL)}
        evidence = [
            reply.evidence(EvidenceTarget.STATEMENT, _WINDOW * number + at, self._value(label), window[at].text)
            for number, (window, reply) in enumerate(zip(asked, replies, strict=True))
            for at, label in enumerate(reply.value)
        ]
        return Score(fraction(worth, fsum(weights)), tuple(evidence), counts, tuple(flags))

    def _labels(self, query: str, passage: str, window: Sequence[Nugget]) -> Plan[ReadReply[list[str]]]:
        def read(reply: Reply) -> list[str]:
            return _labels_in(reply.text)[: len(window)]

        def again(reply: Reply, fault: str, number: int) -> Plan[tuple[Reply, Callable[[Reply], list[str]]]]:
            del fault
            question = replace(reply.question, temperature=_REASK_TEMPERATURE, draw=number)
            return Reply(question, (yield from ask(question))), read

        texts = [nugget.text for nugget in window]
        values = {"count": str(len(window)), "query": query, "passage": passage, "nuggets": json_array(texts)}
        template = RequestTemplate("assign", json_array([_SUPPORT] * len(window)), read)
        asker = Asker("autonuggetizer", temperature=_TEMPERATURE)
        return (yield from asker.read(template, values, recovery=Recovery(self.tries - 1, again)))

    def _value(self, label: str) -> float:
        return 1.0 if label == _SUPPORT else self.partial if label == _PARTIAL else 0.0


def _labels_in(reply: str) -> list[str]:
    """Return the labels in a reply, in lower case. Raises ReplyFault."""
    text = reply.replace("```python", "").replace("```json", "").replace("```", "").strip()
    try:
        loaded: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise ReplyFault("The reply is not a list of labels.") from None
    items = as_list(list(loaded) if isinstance(loaded, tuple) else loaded)  # pyright: ignore[reportUnknownArgumentType]  of any items
    if items is None or not all(isinstance(item, str) for item in items):
        raise ReplyFault("The reply is not a list of labels.")
    return [str(item).lower() for item in items]


def _score(name: str, summary: str, formula: str, **changes: float) -> type[AllScore]:
    doc = f"{summary} (AutoNuggetizer).\n\nFormula: {formula}\n\nFor the rest see `AllScore`."
    return variant(AllScore, f"autonuggetizer:{name}", doc, **changes)


METRICS: Final[tuple[type[Metric], ...]] = (
    AllScore,
    _score(
        "strict_all_score",
        "Share of the nuggets that the response supports in full",
        "Supported / nuggets.",
        partial=0.0,
    ),
    _score(
        "vital_score",
        "Share of the vital nuggets that the response supports, half for partial support",
        "(supported + partly supported / 2) / nuggets, of the vital ones.",
        okay_weight=0.0,
    ),
    _score(
        "strict_vital_score",
        "Share of the vital nuggets that the response supports in full",
        "Supported / nuggets, of the vital ones.",
        okay_weight=0.0,
        partial=0.0,
    ),
    _score(
        "weighted_score",
        "Share of the nuggets that the response supports, half for partial support, and okay ones with half the weight",
        "Sum of weight x support / sum of weights; weights are 1 and 1/2, support is 1, 1/2 or 0.",
        okay_weight=0.5,
    ),
    _score(
        "strict_weighted_score",
        "Share of the nuggets that the response supports in full, okay ones with half the weight",
        "Weights of the supported nuggets / sum of weights; weights are 1 and 1/2.",
        okay_weight=0.5,
        partial=0.0,
    ),
)
