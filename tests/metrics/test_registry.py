from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.data.sample import Sample
from merilo.errors import UsageError
from merilo.judging.ask import Plan
from merilo.metrics import registry
from merilo.metrics.answer_metrics import AnswerCompleteness, AnswerCorrectness, AnswerRelevancy
from merilo.metrics.base import Card, Family, Kinds, Metric, MetricDefaults, Score, Undefined
from merilo.metrics.choice_metrics import Critique
from merilo.metrics.context_metrics import (
    ContextPrecision,
    ContextRanking,
    ContextRelevance,
    ContextSufficiency,
    RelevanceTarget,
    Unit,
)
from merilo.metrics.id_metrics import (
    NDCG,
    AveragePrecision,
    HitRate,
    IdPrecision,
    IdRecall,
    Precision,
    Recall,
    ReciprocalRank,
)
from merilo.metrics.registry import (
    all_metrics,
    core_metrics,
    families,
    metric_names,
    native,
    native_metrics,
    parse_metric,
    register,
)
from merilo.metrics.statement_metrics import (
    ContextEntityRecall,
    ContextRecall,
    ContextUtilization,
    Faithfulness,
    NoiseSensitivity,
    NoiseSource,
)
from merilo.metrics.steps import is_blank
from merilo.metrics.text import Parameter, build, metric_text, parameters_of, read_call

NATIVE_METRICS = st.one_of(
    st.builds(ContextRelevance, unit=st.sampled_from(Unit)),
    st.builds(ContextRelevance, unit=st.just(Unit.CONTEXT), at=st.sampled_from([1, 2])),
    st.builds(ContextRanking, k=st.none() | st.integers(1, 10**6)),
    st.builds(ContextPrecision, against=st.sampled_from(RelevanceTarget)),
    *(
        st.builds(metric)
        for metric in (
            ContextRecall,
            ContextSufficiency,
            ContextUtilization,
            Faithfulness,
            AnswerRelevancy,
            AnswerCompleteness,
            ContextEntityRecall,
            IdPrecision,
            IdRecall,
            AveragePrecision,
        )
    ),
    st.builds(
        AnswerCorrectness,
        beta=st.floats(0, exclude_min=True, allow_infinity=False),
        similarity_weight=st.floats(0, 1),
    ),
    st.builds(NoiseSensitivity, of=st.sampled_from(NoiseSource)),
    *(st.builds(metric, k=st.none() | st.integers(1, 10**6)) for metric in (ReciprocalRank, NDCG)),
    *(st.builds(metric, k=st.integers(1, 10**6)) for metric in (HitRate, Precision, Recall)),
    st.builds(Critique, aspect=st.sampled_from(["coherence", "harmlessness"])),
    st.builds(Critique, aspect=st.just("of my own"), definition=st.text().filter(lambda text: not is_blank(text))),
)


class Colour(StrEnum):
    RED = "red"
    NONE = "none"
    ODD = "a b, (c)"


@dataclass(frozen=True)
class Painted(MetricDefaults):
    """A metric with a parameter of every type."""

    name: ClassVar[str] = "made/painted-1"
    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = frozenset()
    asks: ClassVar[Kinds] = frozenset()
    card: ClassVar[Card] = Card("How it is painted.", family="made")

    colour: Colour
    label: str | None = None
    title: str = "plain"
    share: float = 0.5
    strict: bool = False
    k: int | None = None

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        yield from ()
        del sample
        return Score(self.share)


@dataclass(frozen=True)
class Spelled(Painted):
    """A metric with a parameter whose annotation is not a type."""

    way: Literal["up", "down"] = "up"


def test_a_parameter_of_no_known_type_is_refused() -> None:
    """The error names the parameter and the types that the text form knows."""
    with pytest.raises(UsageError, match=r"declares way as .*; a parameter must be text, a number"):
        parameters_of(Spelled)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registrations of this test end with it."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


@given(NATIVE_METRICS)
def test_the_text_of_a_native_metric_reads_back(metric: Metric) -> None:
    """Text and metric are two forms of one thing, for every combination of parameters."""
    assert parse_metric(metric_text(metric)) == metric


@given(
    st.builds(
        Painted,
        colour=st.sampled_from(Colour),
        label=st.none() | st.text(),
        title=st.text(),
        share=st.floats(allow_nan=False),
        strict=st.booleans(),
        k=st.none() | st.integers(),
    )
)
def test_parameters_of_every_type_read_back(metric: Painted) -> None:
    """Text of any signs, numbers, truth values, enumerations and none survive the text form."""
    assert build(Painted, read_call(metric_text(metric))) == metric


@each_case(
    ("metric", "text"),
    [
        (ContextRelevance(), "context_relevance"),
        (ContextRelevance(unit=Unit.CONTEXT), "context_relevance(unit=context)"),
        (ContextRelevance(unit=Unit.CONTEXT, at=2), "context_relevance(unit=context, at=2)"),
        (ContextRanking(), "context_ranking"),
        (ContextRanking(k=5), "context_ranking@5"),
        (ContextPrecision(), "context_precision"),
        (ContextPrecision(against=RelevanceTarget.QUESTION), "context_precision"),
        (ContextPrecision(against=RelevanceTarget.REFERENCE), "context_precision(against=reference)"),
        (Faithfulness(), "faithfulness"),
        (Precision(), "precision@10"),
        (NDCG(), "nDCG"),
        (NDCG(k=10), "nDCG@10"),
        (Painted(Colour.RED, k=3, strict=True), "made/painted-1@3(colour=red, strict=true)"),
        (Painted(Colour.ODD, label="none"), 'made/painted-1(colour="a b, (c)", label="none")'),
    ],
)
def test_canonical_text_leaves_defaults_out(metric: Metric, text: str) -> None:
    """The canonical text names what differs from the default, what has none, and every cutoff."""
    assert metric_text(metric) == text


@each_case(
    ("text", "metric"),
    [
        ("context_relevance(unit=grade, at=1)", ContextRelevance()),
        ("context_relevance()", ContextRelevance()),
        (" context_relevance ( unit = context , at = 2 ) ", ContextRelevance(unit=Unit.CONTEXT, at=2)),
        ("context_relevance(at=2,unit=context,)", ContextRelevance(unit=Unit.CONTEXT, at=2)),
        ("context_precision(against=question)", ContextPrecision()),
        ("context_ranking(k=5)", ContextRanking(k=5)),
        ("context_ranking(k=none)", ContextRanking()),
        ('context_relevance(unit="sentence")', ContextRelevance(unit=Unit.SENTENCE)),
    ],
)
def test_text_may_be_written_at_length(text: str, metric: Metric) -> None:
    """Defaults, white space, order and a parameter k in brackets are all understood."""
    assert parse_metric(text) == metric


@each_case(
    ("text", "message"),
    [
        ("faithfullness", "No metric 'faithfullness'; did you mean faithfulness"),
        ("Context_Recalls", "did you mean context_recall"),
        ("ndcg@10", "did you mean nDCG?"),
        ("MRR", "did you mean reciprocal_rank?"),
        ("zzz", "No metric 'zzz'; to list all: merilo metrics."),
        (
            "context_relevance(units=grade)",
            "has no parameter 'units'; it has unit (grade or context or sentence), at (a whole number).",
        ),
        ("faithfulness@3", "'faithfulness' has no parameter 'k'; it has none."),
        ("context_relevance(at=x)", "takes at=a whole number, got 'x'."),
        ("context_relevance(unit=word)", "takes unit=grade or context or sentence, got 'word'."),
        ("context_ranking@x", "takes k=a whole number or none, got 'x'."),
        ("context_ranking@0", "@k), got @0."),
        ("context_relevance(at=1, at=2)", "has the parameter 'at' twice."),
        ("context_ranking@3(k=4)", "has the parameter 'k' twice."),
        ("context_relevance(unit)", "at 'unit'; write name, name@k"),
        ("context_relevance(unit=grade", "Invalid metric"),
        ("", "Invalid metric ''"),
        ("critique", "needs aspect=... (text); see merilo metrics critique."),
        ("precision@0", "needs a cutoff of at least 1 (precision@k), got @0."),
        ("context_precision(against=reader)", "takes against=question or reference, got 'reader'."),
    ],
)
def test_what_cannot_be_read_says_what_to_write(text: str, message: str) -> None:
    """Every wrong text is a UsageError that names what was wrong and what would be right."""
    with pytest.raises(UsageError) as error:
        parse_metric(text)
    assert message in str(error.value)


def test_a_choice_that_must_be_made_is_named() -> None:
    """A required parameter that is left out is a UsageError with what it may be."""
    with pytest.raises(UsageError, match=r"needs colour=\.\.\., one of: red or none or a b, \(c\)\."):
        build(Painted, read_call("made/painted-1"))


def test_a_run_takes_what_needs_no_choice() -> None:
    """`all` stands for the metrics that need no choice; those with a cutoff, an aspect or a file run only by name."""
    assert [metric_text(parse_metric(name)) for name in all_metrics()] == list(all_metrics())
    assert {*core_metrics(("response",)), *core_metrics(())} <= {*all_metrics()}
    by_name = {name for name in native_metrics() if name not in all_metrics()}
    assert by_name >= {"hit_rate", "precision", "recall", "critique", "rubric_metric"}


def test_families_name_every_metric_once() -> None:
    """Every native metric is in one of the families, in the order in which they are shown; new ones come last."""
    retrieval = (
        "context_relevance",
        "context_ranking",
        "context_precision",
        "context_recall",
        "context_sufficiency",
        "context_entity_recall",
        "id_precision",
        "id_recall",
        "reciprocal_rank",
        "average_precision",
        "nDCG",
        "hit_rate",
        "precision",
        "recall",
    )
    response = (
        "context_utilization",
        "faithfulness",
        "noise_sensitivity",
        "answer_relevancy",
        "answer_completeness",
        "answer_correctness",
        "critique",
        "rubric_metric",
    )
    assert families()[Family.RETRIEVAL][: len(retrieval)] == retrieval
    assert families()[Family.RESPONSE][: len(response)] == response
    assert set(native_metrics()) <= {*families()[Family.RETRIEVAL], *families()[Family.RESPONSE]}


@each_case("metric", native())
def test_every_native_metric_has_a_full_card(metric: type[Metric]) -> None:
    """A card leaves nothing out, and its relatives are metrics."""
    card = metric.card
    assert all((card.summary, card.formula, card.questions, card.undefined, card.when, card.when_not))
    assert all((card.relatives, card.sources, card.family))
    assert "\n" not in card.summary
    assert set(card.relatives) <= set(native_metrics()) - {metric.name}


def test_parameters_are_described() -> None:
    """What a parameter takes, and its default, can be shown."""
    assert parameters_of(ContextRelevance) == (
        Parameter("unit", "grade or context or sentence", "grade"),
        Parameter("at", "a whole number", "1"),
    )
    assert parameters_of(ContextPrecision) == (
        Parameter("against", "question or reference", "question"),
        Parameter("at", "a whole number", "1"),
    )
    assert parameters_of(ContextRanking) == (Parameter("k", "a whole number or none", "none"),)


@pytest.mark.usefixtures("known")
def test_a_registered_metric_is_found_by_its_name() -> None:
    """Registration makes a metric readable and listed, and may be repeated."""
    assert register(Painted) is Painted
    register(Painted)
    assert parse_metric("made/painted-1@2(colour=red)") == Painted(Colour.RED, k=2)
    assert metric_names()[-1] == "made/painted-1"
    assert "made/painted-1" in families()["made"]  # other tests of this process may have registered more


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("context_recall", "is taken by merilo.metrics.statement_metrics.ContextRecall; choose another."),
        ("two words", "Invalid metric name 'two words'; a name has letters, digits"),
        ("", "Invalid metric name ''"),
        ("a@3", "Invalid metric name 'a@3'"),
    ],
)
def test_a_name_must_be_free_and_writable(name: str, message: str) -> None:
    """A name that is taken, or that the text form cannot hold, is refused."""
    metric = type("Other", (Painted,), {"name": name})
    with pytest.raises(UsageError) as error:
        register(metric)
    assert message in str(error.value)
