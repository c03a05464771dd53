"""Metrics of spans: against small cases by hand, and laws over random chunkings of random documents."""

from collections.abc import Sequence
from itertools import pairwise
from math import log2

import pytest
from each_case import each_case
from hypothesis import given, settings
from hypothesis import strategies as st

from merilo.data.corpus import Documents
from merilo.data.sample import BadRecord, Sample
from merilo.data.sentences import DenseSpan, dense
from merilo.data.span_labels import SpanLabel, by_sample, located
from merilo.metrics.base import Score, Undefined, drive
from merilo.metrics.contract import check_metric
from merilo.metrics.registry import parse_metric
from merilo.metrics.span_metrics import NO_SPANS, NOT_JUDGED, NOT_LOCATED

TEXT = "The tower was built in 1889. It is made of iron. It is 330 m high."
CORPUS = Documents({"tower": TEXT, "rome": "Rome has seven hills. It is old."})
METRICS = ("span_precision", "span_recall", "span_nDCG")
LONG = "".join(chr(0x4E00 + at) for at in range(3_000))


def outcome(text: str, sample: Sample) -> Score | Undefined:
    def unasked(question: object) -> None:
        raise AssertionError(question)

    return drive(parse_metric(text).plan(sample), unasked)  # type: ignore[arg-type]  # nothing is asked


def value(text: str, sample: Sample) -> float:
    found = outcome(text, sample)
    assert isinstance(found, Score), found
    return found.value


def labelled(contexts: Sequence[str], grades: dict[str, float], corpus: Documents = CORPUS) -> Sample:
    """A sample with these contexts, and with labels given by the text of each span."""
    labels = []
    for text, grade in grades.items():
        span = corpus.find(text)
        assert span is not None
        labels.append(SpanLabel("s", span, grade))
    found = located(Sample("s", retrieved_contexts=contexts), corpus, by_sample(labels))
    assert isinstance(found, Sample)
    return found


GRADES = {"The tower was built in 1889.": 2.0, "It is made of iron.": 0.0, "It is 330 m high.": 1.0}
BUILT, IRON, HIGH = (len(dense(text)) for text in GRADES)


def test_by_hand() -> None:
    """The first two of three sentences were retrieved, of which the first has grade 2 and the third grade 1."""
    sample = labelled(["The tower was built in 1889. It is made of iron."], GRADES)
    assert value("span_precision", sample) == BUILT / (BUILT + IRON)
    assert value("span_recall", sample) == BUILT / (BUILT + HIGH)
    assert value("span_nDCG", sample) == pytest.approx(2 * BUILT / (2 * BUILT + HIGH))


def test_a_cutoff_reads_the_first_characters() -> None:
    """With characters=10, ten characters of the first context count, and nothing after them."""
    sample = labelled(["The tower was built in 1889.", "It is 330 m high."], GRADES)
    assert value("span_recall(characters=10)", sample) == 10 / (BUILT + HIGH)
    assert value("span_precision(characters=10)", sample) == 1.0


def test_text_without_a_label_gives_bounds() -> None:
    """A retrieved sentence without a label gives no value, and the lowest and the highest that labels could give."""
    grades = {"The tower was built in 1889.": 1.0, "It is 330 m high.": 1.0}
    sample = labelled([TEXT[:48]], grades)
    assert outcome("span_recall", sample) == Undefined(NOT_JUDGED)
    assert value("span_precision(unjudged=low)", sample) == BUILT / (BUILT + IRON)
    assert value("span_precision(unjudged=high)", sample) == 1.0
    assert value("span_recall(unjudged=low)", sample) == BUILT / (BUILT + HIGH)
    assert value("span_recall(unjudged=high)", sample) == (BUILT + IRON) / (BUILT + HIGH + IRON)


def test_text_in_no_document_is_named() -> None:
    """A context that is in no document gives no value, with another reason; the bounds flag it."""
    sample = labelled(["The tower was built in 1889.", "Not in the corpus."], GRADES)
    assert outcome("span_recall", sample) == Undefined(NOT_LOCATED)
    found = outcome("span_recall(unjudged=low)", sample)
    assert isinstance(found, Score)
    assert found.flags == (NOT_LOCATED,)


def test_evidence_that_comes_late_gains_less() -> None:
    """A hundred characters of evidence after 2,000 others have rank 3: gain 1 / log2(4) of 1 / log2(2)."""
    corpus = Documents({"d": LONG})
    sample = labelled([LONG[1_000:], LONG[:1_000]], {LONG[:100]: 1.0, LONG[100:]: 0.0}, corpus)
    assert value("span_nDCG", sample) == pytest.approx(1 / log2(4))


def test_wrong_metadata_is_named() -> None:
    """Metadata that is not spans gives no value, and no crash."""
    for rows in (
        "text",
        [1],
        [["d", 0]],
        [["d", 5, 1, 1]],
        [["d", 0, 10**15, 1]],
        [["d", 0, 1, "x"]],
        [["d", 0, 1, 1e308]],
        [["d", 0, 1, 10**400]],
        [[0, 0, 1, 1]],
        {"a": 1},
    ):
        sample = Sample("s", retrieved_contexts=["a"], reference_contexts=[], metadata={"span_labels": rows})
        assert outcome("span_recall", sample) == Undefined(NO_SPANS), rows


@pytest.mark.usefixtures("seeds")
@each_case("metric", [f"{name}{form}" for name in METRICS for form in ("", "(unjudged=high)")])
def test_the_contract_is_met(metric: str) -> None:
    """The metrics meet the contract of every metric; nDCG needs a sample with overlap to show that order matters."""
    sample = Sample("long", retrieved_contexts=[LONG[1_000:], LONG[:1_000]], reference_contexts=[LONG[:100]])
    check_metric(parse_metric(metric), [sample])


# -- reference contexts ---------------------------------------------------------------------------------


@each_case(
    ("contexts", "recall", "precision"),
    [
        (["The tower was built in 1889."], 1.0, 1.0),
        (["Intro. The tower was  built\r\nin 1889. It is made of iron."], 1.0, BUILT / (len("Intro.") + BUILT + IRON)),
        (["The tower was built", "in 1889."], 1.0, 1.0),
        (["tower was built in 1889. It is made of iron."], (BUILT - 3) / BUILT, (BUILT - 3) / (BUILT - 3 + IRON)),
        (["Rome has seven hills."], 0.0, 0.0),
        ([], 0.0, None),
    ],
)
def test_reference_contexts_are_found_by_text(contexts: list[str], recall: float, precision: float | None) -> None:
    """Without documents: a context in the reference, around it, in two parts, overlapping its end, and elsewhere."""
    sample = Sample("s", retrieved_contexts=contexts, reference_contexts=["The tower was built in 1889."])
    assert value("span_recall", sample) == recall
    if precision is None:
        assert isinstance(outcome("span_precision", sample), Undefined)
    else:
        assert value("span_precision", sample) == precision


def test_reference_contexts_are_found_in_documents() -> None:
    """With documents, reference contexts are the only relevant text, and one that is in none is a bad record."""
    sample = Sample("s", retrieved_contexts=[TEXT[:48]], reference_contexts=["The tower was built in 1889."])
    found = located(sample, CORPUS, None)
    assert isinstance(found, Sample)
    assert value("span_precision", found) == BUILT / (BUILT + IRON)
    lost = located(Sample("s", retrieved_contexts=[], reference_contexts=["Elsewhere."]), CORPUS, None)
    assert isinstance(lost, BadRecord)
    assert "reference_contexts[0]" in str(lost.problems[0])


# -- laws -----------------------------------------------------------------------------------------------

ALPHABET = "ab é\u0301\u200b界😀 \r\n\t."
documents = st.text(ALPHABET, min_size=1, max_size=60).filter(lambda text: len(dense(text)) > 1)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Documents, list[SpanLabel], str]:
    """A document, overlapping labels, and a metric of any form."""
    text = draw(documents)
    end = len(dense(text))
    places = st.integers(0, end)
    ends = draw(st.lists(st.tuples(places, places, st.sampled_from([0.0, 1.0, 2.0])), max_size=6))
    labels = [SpanLabel("s", DenseSpan("d", min(a, b), max(a, b)), grade) for a, b, grade in ends]
    form = draw(st.sampled_from(["", "(unjudged=low)", "(unjudged=high)"]))
    return Documents({"d": text}), labels, draw(st.sampled_from(METRICS)) + form


def chunked(corpus: Documents, cuts: Sequence[int], labels: list[SpanLabel]) -> Sample:
    """The whole document as contexts that end at these dense positions, located by their offsets."""
    end = corpus.whole("d").end
    ends = [0, *sorted({cut % end for cut in cuts} - {0}), end]
    contexts = []
    for a, b in pairwise(ends):
        start, stop = corpus["d"].span_of(a, b)
        place = {"document": "d", "start": start, "end": stop}
        contexts.append({"text": " ".join(corpus["d"].text[start:stop].split()), "metadata": place})
    found = located(Sample("s", retrieved_contexts=contexts), corpus, by_sample(labels))
    assert isinstance(found, Sample)
    return found


@given(cases(), st.lists(st.integers(0, 99), max_size=5), st.lists(st.integers(0, 99), max_size=5))
@settings(max_examples=150, deadline=None)
def test_rechunking_changes_nothing(
    case: tuple[Documents, list[SpanLabel], str], first: list[int], second: list[int]
) -> None:
    """Two chunkings of the same text in the same order have the same outcome, whatever its white space."""
    corpus, labels, metric = case
    one, other = (outcome(metric, chunked(corpus, cuts, labels)) for cuts in (first, second))
    if isinstance(one, Score) and isinstance(other, Score):
        assert one.value == pytest.approx(other.value)
        assert one.counts == other.counts
    else:
        assert one == other


@given(cases(), st.lists(st.integers(0, 99), max_size=4), st.sampled_from([0.0, 1.0, 2.0]))
@settings(max_examples=150, deadline=None)
def test_bounds_hold_for_every_label(
    case: tuple[Documents, list[SpanLabel], str], cuts: list[int], grade: float
) -> None:
    """Whatever grade the unjudged text gets, up to the highest label, the value is between the two bounds."""
    corpus, labels, metric = case
    name = metric.partition("(")[0]
    sample = chunked(corpus, cuts, labels)
    low, high = (outcome(f"{name}(unjudged={end})", sample) for end in ("low", "high"))
    top = max((each.grade for each in labels), default=0.0)
    rest = SpanLabel("s", corpus.whole("d"), min(grade, top), "judge:any")  # applies where people gave no label
    full = outcome(name, chunked(corpus, cuts, [*labels, rest]))
    if isinstance(low, Score) and isinstance(high, Score) and isinstance(full, Score):
        assert low.value - 1e-9 <= full.value <= high.value + 1e-9


@given(documents, st.integers(0, 99), st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_overlapping_contexts_count_once(text: str, first: int, second: int) -> None:
    """A context that repeats text changes neither recall nor precision."""
    corpus = Documents({"d": text})
    labels = [SpanLabel("s", corpus.whole("d"), 0.0), SpanLabel("s", DenseSpan("d", 0, 1), 1.0)]
    once = chunked(corpus, [first], labels)
    assert once.retrieved_contexts is not None
    again = [*once.retrieved_contexts, once.retrieved_contexts[second % len(once.retrieved_contexts)]]
    twice = Sample(
        "s", retrieved_contexts=again, reference_contexts=once.reference_contexts, metadata=dict(once.metadata)
    )
    for metric in ("span_recall", "span_precision"):
        assert value(metric, once) == value(metric, twice)
