"""Scores over the first contexts of a sample, computed from the stored verdicts; nothing is asked."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from math import isclose
from typing import TYPE_CHECKING, Any, Final

from merilo.judging.ask import AskFailed
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import EvidenceTarget, JudgesContextsAlone, Score, Undefined, drive, plan_of
from merilo.metrics.registry import known_metric
from merilo.runs.run import SampleResult, open_store
from merilo.runs.store_errors import missing_text_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.metrics.base import Metric
    from merilo.runs.outcomes import OutcomeRecord
    from merilo.runs.run import Run

_SLACK: Final = 1e-9  # another version of Python may add floats in another order
_NO_VERDICT: Final = Failure(FailureKind.BROKEN, "The evidence has no verdict on this question.")


def scores_of_first(
    run: Run, metrics: Sequence[str], lengths: Mapping[str, int]
) -> dict[str, dict[str, Score | Undefined]]:
    """Return, by metric and sample id, the outcome over the first `lengths[id]` contexts.

    Only for metrics that judge each context alone, and for samples with a stored score. A metric is left out if the
    verdicts on all contexts do not give the stored score again, for example because its formula has changed.
    """
    known = {text: metric for text in metrics if (metric := _alone(text)) is not None}
    found: dict[str, dict[str, Score | Undefined]] = {text: {} for text in known}
    if not (known and lengths):
        return found
    with closing(open_store(run)) as store:
        for record in run.records_of(lengths):
            text, sample_id = record["metric"], record["sample"]
            if text not in found or record["outcome"] != "score":
                continue
            sample = store.sample(sample_id)
            if sample is None:
                raise missing_text_error(run.path, sample_id)
            outcome = _of_record(known[text], sample, record, lengths[sample_id])
            if outcome is None:
                del found[text]
            else:
                found[text][sample_id] = outcome
    return found


def score_of_first(metric: Metric, sample: Sample, score: Score, length: int) -> Score | Undefined | None:
    """Return the outcome over the first `length` contexts from the evidence of a score over all of them.

    None if the evidence lacks the verdict on one of these contexts.
    """
    contexts = sample.contexts
    verdicts = {
        contexts[piece.index].sentences: piece.verdict
        for piece in score.evidence
        if piece.about is EvidenceTarget.CONTEXT and piece.index < len(contexts)
    }

    def answer(question: Question[Any]) -> Answer:  # Any: a question of any verdict type
        sentences = question.context_sentences
        verdict = None if sentences is None else verdicts.get(sentences)
        return verdict if isinstance(verdict, question.verdict) else _NO_VERDICT

    try:
        return drive(plan_of(metric, replace(sample, retrieved_contexts=contexts[:length])), answer)
    except AskFailed:
        return None


def _alone(text: str) -> Metric | None:
    """Return the metric if it is known here and judges each context alone."""
    metric = known_metric(text)
    return metric if isinstance(metric, JudgesContextsAlone) and metric.contexts_judged_alone else None


def _of_record(metric: Metric, sample: Sample, record: OutcomeRecord, length: int) -> Score | Undefined | None:
    """Return the outcome over the first `length` contexts; None unless the one over all is the stored score."""
    stored = SampleResult.of(sample, [record]).outcomes[record["metric"]]
    if not isinstance(stored, Score):
        return None
    again = score_of_first(metric, sample, stored, len(sample.contexts))
    if not (isinstance(again, Score) and isclose(again.value, stored.value, rel_tol=0.0, abs_tol=_SLACK)):
        return None
    return score_of_first(metric, sample, stored, length)
