"""Context relevance and context precision: published formulas over merilo's verdicts on contexts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.judging.kinds.usefulness import Usefulness, UsefulnessVerdict
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.metrics.formulas import (
    average_precision,
    capped_fraction,
    fraction,
    mean,
    scaled_rating,
    smoothed_average_precision,
)
from merilo.metrics.steps import (
    NOTHING_RETRIEVED,
    about_contexts,
    max_contexts,
    relevance_of_contexts,
    usefulness_of_contexts,
)
from merilo_published.lineage.formula import DefinitionFormula, Lineage, SharedVerdicts

if TYPE_CHECKING:
    from merilo.data.sample import Sample

Graded = Sequence[RelevanceVerdict]
Useful = Sequence[UsefulnessVerdict]

_RELEVANCE: Final[SharedVerdicts[Graded]] = SharedVerdicts(
    frozenset({"user_input", "retrieved_contexts"}), Kinds({Relevance}), relevance_of_contexts, max_contexts
)
_USEFULNESS: Final[SharedVerdicts[Useful]] = SharedVerdicts(
    frozenset({"user_input", "retrieved_contexts", "reference"}),
    Kinds({Usefulness}),
    usefulness_of_contexts,
    max_contexts,
)
_FOUR_LEVELS: Final = {0: 0, 1: 2, 2: 3}
"""merilo's grades on a scale of 0 to 3, whose level 1 ("related, but no answer") they cannot express."""


def _counts(sample: Sample, graded: Graded, sentences: int | None = None) -> dict[str, int | None]:
    grades = [verdict.grade for verdict in graded]
    return {
        "contexts": len(grades),
        "relevant": sum(grade >= 1 for grade in grades),
        "best": max(grades, default=0),
        "points": sum(grades),
        "points_of_three": sum(_FOUR_LEVELS[grade] for grade in grades),
        "sentences": sum(len(context.sentences) for context in sample.contexts) if sentences is None else sentences,
        "evidence_sentences": sum(len(verdict.evidence) for verdict in graded),
    }


def _graded(
    value: Callable[[Sample, Graded], float], *, empty: float | None
) -> Callable[[Sample, Graded], Score | Undefined]:
    """Return a formula over the grades, with the definition's value if nothing was retrieved."""

    def score(sample: Sample, graded: Graded) -> Score | Undefined:
        if not graded:
            return Undefined(NOTHING_RETRIEVED) if empty is None else Score(empty, counts=_counts(sample, graded))
        return Score(value(sample, graded), about_contexts(graded), _counts(sample, graded))

    return score


def _sentence_ratio(sample: Sample, graded: Graded) -> float:
    counts = _counts(sample, graded)
    return capped_fraction(counts["evidence_sentences"] or 0, counts["sentences"] or 0)


def _ratio_of_periods(sample: Sample, graded: Graded) -> Score:
    """Return the ratio of sentences counted as pieces between full stops with a space, over all contexts joined."""
    joined = "\n".join(context.text for context in sample.contexts).strip()
    counts = _counts(sample, graded, sentences=len(joined.split(". ")))
    return Score(
        capped_fraction(counts["evidence_sentences"] or 0, counts["sentences"] or 1), about_contexts(graded), counts
    )


def _best_grade(sample: Sample, graded: Graded) -> float:
    question = sample.require("user_input").strip()
    joined = "\n".join(context.text for context in sample.contexts).strip()
    if not question or not joined or joined in question:
        return 0.0  # decided without a request
    return scaled_rating(max(verdict.grade for verdict in graded), 2)


def _share_of_relevant(sample: Sample, graded: Graded) -> float:
    del sample
    return fraction(sum(verdict.grade >= 1 for verdict in graded), len(graded))


def _any_relevant(sample: Sample, graded: Graded) -> float:
    del sample
    return float(any(verdict.grade >= 1 for verdict in graded))


def _mean_grade(sample: Sample, graded: Graded) -> float:
    del sample
    return mean(scaled_rating(verdict.grade, 2) for verdict in graded)


def _mean_of_three(sample: Sample, graded: Graded) -> float:
    del sample
    return mean(scaled_rating(_FOUR_LEVELS[verdict.grade], 3) for verdict in graded)


def _relevance(
    definition: str, formula: str, left_out: str, working: str, score: Callable[[Sample, Graded], Score | Undefined]
) -> DefinitionFormula[Graded]:
    return DefinitionFormula(definition, Lineage.CONTEXT_RELEVANCE, formula, left_out, working, _RELEVANCE, score)


RELEVANCE_FORMS: Final = (
    _relevance(
        "ragas-0.0.12:context_relevancy",
        'evidence sentences / pieces between ". " of all contexts joined, at most 1',
        "the agreement of several replies; sentences copied by the judge, also some that are in no context",
        "{evidence_sentences} evidence sentences of {sentences} pieces",
        _ratio_of_periods,
    ),
    _relevance(
        "ragas-0.1.9:context_relevancy",
        "evidence sentences / sentences of all contexts, at most 1; 0 for no sentence",
        "sentences copied by the judge and counted by pysbd; a no-answer phrase that counts as a sentence",
        "{evidence_sentences} of {sentences} sentences",
        _graded(_sentence_ratio, empty=0.0),
    ),
    _relevance(
        "nvidia:context_relevance",
        "best grade of the contexts / 2; 0 where they say no more than the question",
        "one rating of all contexts joined, by two prompts averaged",
        "best grade {best} of 2",
        _graded(_best_grade, empty=0.0),
    ),
    _relevance(
        "spring-ai-ragas:context_relevance",
        "mean of grade / 2 over the contexts",
        "several models averaged; a context that no model rated leaves the mean",
        "{points} points of 2 for each of {contexts} contexts",
        _graded(_mean_grade, empty=None),
    ),
    _relevance(
        "axion:contextual_relevancy",
        "contexts of grade 1 or 2 / contexts; 0 when nothing was retrieved",
        "all contexts in one request; verdicts missing from the reply leave the denominator",
        "{relevant} of {contexts} contexts",
        _graded(_share_of_relevant, empty=0.0),
    ),
    _relevance(
        "axion:contextual_relevancy(mode=holistic, mode_effect=documented)",
        "1 when any context has grade 1 or 2, else 0",
        "the judge sees all contexts joined",
        "{relevant} of {contexts} contexts, one is enough",
        _graded(_any_relevant, empty=0.0),
    ),
    _relevance(
        "deepeval-4.3.1:contextual_relevancy",
        "evidence sentences / sentences, pooled over the contexts; 0 for none",
        "statements that the judge makes of each context, in place of its sentences",
        "{evidence_sentences} of {sentences} sentences, pooled",
        _graded(_sentence_ratio, empty=0.0),
    ),
    _relevance(
        "trulens:context_relevance",
        "mean over the contexts of a rating / 3, with our grades 0, 1, 2 as 0, 2, 3",
        "its level 1 (slightly related), which our grades do not tell from 0",
        "{points_of_three} points of 3 for each of {contexts} contexts",
        _graded(_mean_of_three, empty=None),
    ),
    _relevance(
        "ares:context_relevance",
        "contexts of grade 1 or 2 / contexts",
        "a reply without a label counts as no; correction by human labels",
        "{relevant} of {contexts} contexts",
        _graded(_share_of_relevant, empty=None),
    ),
)
"""Context relevance, oldest first."""


# -- precision ----------------------------------------------------------------------------------------


def _ranked(
    value: Callable[[Sequence[bool]], float], *, empty: float | None = 0.0
) -> Callable[[Sample, Useful], Score | Undefined]:
    def score(_: Sample, useful: Useful) -> Score | Undefined:
        flags = [verdict.useful for verdict in useful]
        counts = {"contexts": len(flags), "useful": sum(flags), "first": _first(flags)}
        if not flags:
            return Undefined(NOTHING_RETRIEVED) if empty is None else Score(empty, counts=counts)
        return Score(value(flags), about_contexts(useful), counts)

    return score


def _ranked_by_relevance(_: Sample, graded: Graded) -> Score:
    flags = [verdict.grade >= 1 for verdict in graded]
    counts = {"contexts": len(flags), "useful": sum(flags), "first": _first(flags)}
    return Score(average_precision(flags), about_contexts(graded), counts)


def _first(flags: Sequence[bool]) -> int | None:
    return flags.index(True) + 1 if True in flags else None


def _smoothed(flags: Sequence[bool]) -> float:
    return smoothed_average_precision([float(flag) for flag in flags])


def _rank_free(flags: Sequence[bool]) -> float:
    return fraction(sum(flags), len(flags))


def _precision(
    definition: str, formula: str, left_out: str, score: Callable[[Sample, Useful], Score | Undefined]
) -> DefinitionFormula[Useful]:
    return DefinitionFormula(definition, Lineage.CONTEXT_PRECISION, formula, left_out, _RANKED, _USEFULNESS, score)


_RANKED = "{useful} of {contexts} contexts serve, the first at rank {first}"

PRECISION_FORMS: Final = (
    _precision(
        "ragas-0.1.9:context_precision",
        "average precision over usefulness for the reference, with 1e-10 added to the number of useful ones",
        "a context whose reply cannot be read, which fails the sample",
        _ranked(_smoothed),
    ),
    DefinitionFormula(
        "axion:contextual_ranking",
        Lineage.CONTEXT_PRECISION,
        "average precision over relevance to the user input",
        "all contexts in one request",
        _RANKED,
        _RELEVANCE,
        _ranked_by_relevance,
    ),
    _precision(
        "axion:contextual_precision",
        "average precision over usefulness for the reference",
        "a lost reply counts as not useful",
        _ranked(average_precision),
    ),
    _precision(
        "deepeval-4.3.1:contextual_precision",
        "average precision over usefulness for the reference",
        "all contexts in one request; verdicts are not counted against contexts",
        _ranked(average_precision),
    ),
    _precision(
        "spring-ai-ragas:context_precision",
        "average precision over usefulness for the reference",
        "several models averaged; a failed call counts as not relevant",
        _ranked(average_precision),
    ),
    DefinitionFormula(
        "ragchecker:context_precision",
        Lineage.CONTEXT_PRECISION,
        "useful contexts / contexts, whatever their order",
        "usefulness is one question here, where it is whether a claim of the reference is entailed",
        "{useful} of {contexts} contexts serve",
        _USEFULNESS,
        _ranked(_rank_free),
    ),
)
"""Context precision, oldest first."""
