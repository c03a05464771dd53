"""Nugget recall: the fraction of the question's nuggets that the response states."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.data.nuggets import NO_NUGGETS, NUGGETS, NuggetError, nuggets_in
from merilo.errors import UsageError
from merilo.judging.kinds.support import Support
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.metrics.steps import DistinctStatement, about_statements, any_averaged, is_blank, support_by
from merilo.metrics.variants import ResponseMetric

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

_NOTHING_COUNTS: Final = "the sample has no vital nugget, and okay ones have the weight 0"


@dataclass(frozen=True, slots=True)
class NuggetRecall(ResponseMetric):
    """Share of the question's nuggets, weighted by importance, that the response states.

    Meaning: expected facts that are stated
    Formula: Weights of the stated nuggets / weights of all nuggets; a vital nugget has the weight 1. Each verdict
        counts as its probability if the judge's probabilities are averaged.
    Questions: One Support question for each nugget.
    Undefined: the sample has no nuggets | nuggets are not a list of texts, or of objects with "text" and "vital" or
        "importance" | the sample has no vital nugget, and okay ones have the weight 0
    Use: To see whether answers say what matters, with facts that are stored once and used for every system.
    Not: To see whether the rest of the answer is true: also use faithfulness.
    See: answer_correctness | answer_completeness
    Source: After the AutoNuggetizer framework, Pradeep et al. 2024 (arXiv 2411.09607); strict scores.

    Nuggets are the facts that a good answer has, in the metadata of the sample or in a column `nuggets`: a list of
    texts, or of objects with `text` and `vital` (or `importance`: "vital" or "okay"). 0 when the response is blank;
    no question is asked then.

    - `okay_weight`: the weight of a nugget that is not vital, in [0, 1]: 0.5 weighted, 0 vital nuggets only, 1 all.

    Differences from the AutoNuggetizer framework: nuggets are judged one by one, and there is no partial support.
    """

    name: ClassVar[str] = "nugget_recall"
    needs = frozenset({"response"})
    truth_in_metadata: ClassVar[frozenset[str]] = frozenset({NUGGETS})
    asks = Kinds({Support})

    okay_weight: float = 0.5
    """The weight of a nugget that is not vital, in [0, 1]."""

    def __post_init__(self) -> None:
        if not 0 <= self.okay_weight <= 1:
            raise UsageError(f"Metric {self.name!r} takes okay_weight=a number from 0 to 1, got {self.okay_weight}.")

    def max_questions(self, sample: Sample) -> int:
        if sample.response is None or is_blank(sample.response):
            return 0
        try:
            return len(nuggets_in(sample.metadata))
        except NuggetError:
            return 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("response")
        try:
            found = nuggets_in(sample.metadata)
        except NuggetError as error:
            return Undefined(str(error))
        weights = [1.0 if nugget.vital else self.okay_weight for nugget in found]
        whole = fsum(weights)
        if not whole:
            return Undefined(_NOTHING_COUNTS if found else NO_NUGGETS)
        statements = [DistinctStatement(index, nugget.text) for index, nugget in enumerate(found)]
        verdicts = yield from support_by(sample, "response", statements)
        stated = fsum(weight * verdict.credit for weight, verdict in zip(weights, verdicts, strict=True))
        vital = [verdict.supported for nugget, verdict in zip(found, verdicts, strict=True) if nugget.vital]
        return Score(
            min(stated / whole, 1.0),
            evidence=about_statements(statements, verdicts),
            counts={
                "nuggets": len(found),
                "stated": sum(verdict.supported for verdict in verdicts),
                "vital": len(vital),
                "vital_stated": sum(vital),
            },
            averaged=any_averaged(verdicts),
        )


METRICS: Final = (NuggetRecall,)
