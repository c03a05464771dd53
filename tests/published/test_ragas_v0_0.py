"""What ragas 0.0.12 to 0.0.15 measured, quirk by quirk; long because five metrics share their law and their judge."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from broken_laws import broken_laws
from each_case import each_case

from merilo.data.sample import Sample
from merilo.errors import UsageError
from merilo.judging.ask import AskFailed
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict, Sentences, Similarities, TextsVerdict
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.judging.rubric import render
from merilo.judging.verdicts import Verdict
from merilo.metrics.base import Metric, Score, Undefined, drive
from merilo.metrics.registry import parse_metric
from merilo.metrics.text import metric_text
from merilo_published.ragas_v0_0 import COMPOSITES, METRICS

RELEASES = ("0.0.12", "0.0.13", "0.0.15")
CITY = Sample(
    "city",
    user_input="What is the capital of France?",
    retrieved_contexts=[
        "Paris is the capital of France. It lies on the Seine.",
        "France is in Western Europe. Its currency is the euro.",
    ],
    response="Paris.",
    reference="Paris is the capital. It lies on the Seine.",
)
EMPTY = Sample("empty", user_input="", retrieved_contexts=[], response="", reference="")


@dataclass
class Says:
    """Replies in the order asked; sentences end where `cuts` says, else at a full stop and its space."""

    replies: list[str]
    vectors: Mapping[str, list[float]] = field(default_factory=dict)
    similarities: list[list[float]] = field(default_factory=lambda: [[1.0]])
    asked: list[Question[Any]] = field(default_factory=list)

    def __call__(self, question: Question[Any]) -> Verdict:
        self.asked.append(question)
        match question:
            case Completion():
                return CompletionVerdict(self.replies.pop(0))
            case Sentences(text=text):
                return TextsVerdict(tuple(text.replace(". ", ". |").split("|")) if text else ())
            case Embeddings(texts=texts):
                return MatrixVerdict.of([self.vectors[text] for text in texts])
            case Similarities():
                return MatrixVerdict.of(self.similarities)
            case _:
                raise AssertionError(question)


def outcome(text: str, *replies: str, sample: Sample = CITY, **more: Any) -> Score | Undefined:
    return drive(parse_metric(text).plan(sample), Says(list(replies), **more))


def score(text: str, *replies: str, sample: Sample = CITY, **more: Any) -> Score:
    found = outcome(text, *replies, sample=sample, **more)
    assert isinstance(found, Score), found
    return found


def value(text: str, *replies: str, sample: Sample = CITY, **more: Any) -> float:
    return score(text, *replies, sample=sample, **more).value


# -- all of them --------------------------------------------------------------------------------------


def free(question: Question[Any]) -> Verdict | None:
    """Some reply that ends in every verdict at once, now good and now bad."""
    if not isinstance(question, Completion):
        return None
    number = sum(map(ord, "".join(question.values)))
    yes, mark = number % 3 == 0, "Attributed" if number % 2 else "Not Attributed"
    verdicts = f"Final verdict for each statement in order: {'Yes. ' if yes else 'No. No. '}"
    return CompletionVerdict(f"One. So [{mark}]\nTwo.\n{verdicts}\n\n{'Yes' if yes else 'No'}")


@pytest.mark.usefixtures("seeds")
@each_case(
    "text",
    [
        *(metric_text(metric()) for metric in METRICS),
        "ragas-0.0.13:context_relevancy(strictness=3)",
        "ragas-0.0.15:context_relevancy(strictness=2, agreement_metric=jaccard)",
    ],
)
def test_every_metric_keeps_the_law_whatever_the_judge_says(text: str) -> None:
    """Replies of all kinds break no law but the ones named."""
    metric = parse_metric(text)
    assert set(broken_laws(metric, answer=free)) == set(metric.breaks)


@each_case("metric", [metric() for metric in METRICS])
def test_rubrics_say_that_the_texts_are_data(metric: Metric) -> None:
    """Every text of the sample that is shown stands in a fence, and the rubric calls what is fenced data."""
    asked = Says(
        ["One.", "Two.", "Three."], vectors={text: [1.0] for text in (CITY.user_input or "", "One.", "Two.", "Three.")}
    )
    drive(metric.plan(CITY), asked)
    completions = [question for question in asked.asked if isinstance(question, Completion)]
    assert completions
    for question in completions:
        system, user = render(question)
        assert "data" in system
        assert all(f"\n{text}\n" in user for text in question.values if text)


@each_case("kind", ["context_relevancy", "answer_relevancy", "aspect_critique"])
@each_case("strictness", [0, -1])
def test_strictness_is_at_least_one(kind: str, strictness: int) -> None:
    """No metric asks for no reply."""
    with pytest.raises(UsageError, match="takes strictness=a whole number of at least 1"):
        parse_metric(f"ragas-0.0.15:{kind}(strictness={strictness})")


# -- context relevancy --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply", ["Insufficient Information", " Insufficient Information.", '"Insufficient Information."']
)
def test_only_the_exact_phrase_says_that_nothing_was_found(reply: str) -> None:
    """Without its full stop, indented or quoted, the phrase is one copied sentence, and the score says so."""
    found = score("ragas-0.0.12:context_relevancy(strictness=1)", reply)
    assert found.value == pytest.approx(1 / 3)
    assert found.flags == ("a reply that found nothing was counted as a sentence for want of the exact phrase",)


@pytest.mark.parametrize(
    ("agreement", "replies"), [("jaccard", ("", "")), ("bert_score", ("", "A.")), ("bert_score", ("A.", ""))]
)
def test_replies_without_a_sentence_cannot_be_compared(agreement: str, replies: tuple[str, str]) -> None:
    """Where the published code divides by zero, the replies are unreadable."""
    with pytest.raises(AskFailed, match="no sentence to compare"):
        outcome(f"ragas-0.0.15:context_relevancy(strictness=2, agreement_metric={agreement})", *replies)


# -- context recall -----------------------------------------------------------------------------------


# -- faithfulness -------------------------------------------------------------------------------------

FINAL = "Final verdict for each statement in order:"


# -- answer relevancy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("zero", ["What is the capital of France?", "g"])
def test_a_vector_without_length_has_no_cosine(zero: str) -> None:
    """One such vector, whosever it is, and the score is undefined."""
    vectors = {"What is the capital of France?": [1.0], "g": [1.0], "h": [1.0]} | {zero: [0.0]}
    found = outcome("ragas-0.0.15:answer_relevancy(strictness=2)", "h", "g", vectors=vectors)
    assert found == Undefined("a question's vector has no length")


# -- critiques ----------------------------------------------------------------------------------------

YES, NO = "Because.\n\nYes", "Because.\n\nNo"


def test_higher_is_better_follows_the_aspect() -> None:
    """Harm and malice are bad; what you define yourself is taken to be good."""
    better = {
        options: parse_metric(f"ragas-0.0.12:aspect_critique({options})").higher_is_better
        for options in (
            "",
            "aspect=maliciousness",
            "aspect=coherence",
            'definition="Is it kind?"',
        )
    }
    assert list(better.values()) == [False, False, True, True]
    assert METRICS[4].higher_is_better is False


def test_a_definition_of_your_own_is_asked_as_it_stands() -> None:
    """It takes the place of the aspect's question."""
    says = Says([YES, YES])
    drive(parse_metric('ragas-0.0.15:aspect_critique(definition="Is it kind?")').plan(CITY), says)
    assert isinstance(says.asked[0], Completion)
    assert says.asked[0].values[-1] == "Is it kind?"


@pytest.mark.parametrize("wrong", ['definition=" "', 'aspect=coherence, definition="Is it kind?"', "aspect=rudeness"])
def test_a_critique_refuses_what_it_cannot_ask(wrong: str) -> None:
    """A blank definition, an aspect beside a definition, an unknown aspect."""
    with pytest.raises(UsageError, match="aspect_critique"):
        parse_metric(f"ragas-0.0.15:aspect_critique({wrong})")


# -- the ragas score ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("composite", "release"), list(zip(COMPOSITES, RELEASES, strict=True)))
def test_the_score_of_a_run_has_the_four_default_metrics_as_parts(composite: Any, release: str) -> None:
    """Each version combines its own metrics, in the order in which ragas computed them."""
    made = composite()
    assert made.name == f"ragas-{release}:ragas_score"
    assert [metric_text(parse_metric(part)) for part in made.parts] == list(made.parts)
    kinds = [part.partition(":")[2] for part in made.parts]
    assert kinds == ["answer_relevancy", "context_relevancy", "faithfulness", "context_recall"]
