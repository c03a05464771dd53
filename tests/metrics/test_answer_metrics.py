"""Completeness, correctness, noise, critique and entities: what each counts, and what each asks."""

from dataclasses import replace

import pytest
from each_case import each_case
from metrics.saying import Says, outcome, value

from merilo.data.sample import Sample
from merilo.errors import UsageError
from merilo.judging.kinds.contexts import Mentions, Support, SupportLabel, SupportVerdict
from merilo.judging.kinds.measured import Embeddings
from merilo.judging.kinds.responses import Answered, Choice, ChoiceVerdict, Entities, Parts, Statements
from merilo.judging.questions import Question
from merilo.judging.verdicts import Verdict
from merilo.metrics.answer_metrics import AnswerCompleteness, AnswerCorrectness
from merilo.metrics.base import EvidenceTarget, Score, Undefined
from merilo.metrics.choice_metrics import ASPECTS, Critique
from merilo.metrics.statement_metrics import (
    ContextEntityRecall,
    ContextRecall,
    Faithfulness,
    NoiseSensitivity,
    NoiseSource,
)

EARTH = "The Earth is round."
SUN = "The Sun is a star."
MOON = "The Moon is far."
MARS = "Mars is red."
ASKED = "What is there, and how big is it?"
THERE, BIG = "What is there?", "How big is it?"
SAMPLE = Sample(
    "s",
    user_input=ASKED,
    retrieved_contexts=["First context.", "Second context."],
    response=f"{EARTH} {SUN}",
    reference=f"{SUN} {MOON}",
)


class Supports(Says):
    """Supports a statement where one of the texts held against it is named with it."""

    def __init__(self, *pairs: tuple[str, str]) -> None:
        super().__init__()
        self.pairs = set(pairs)

    def _verdict(self, question: Question) -> Verdict:
        if not isinstance(question, Support):
            return super()._verdict(question)
        found = tuple(at for at, text in enumerate(question.contexts) if (question.statement, text) in self.pairs)
        return SupportVerdict(SupportLabel.SUPPORTED if found else SupportLabel.NOT_STATED, found)


# -- answer_completeness ------------------------------------------------------------------------------


def test_completeness_is_the_answered_share() -> None:
    """One of two parts answered gives a half; the evidence holds each part with its verdict."""
    found = outcome(AnswerCompleteness(), SAMPLE, Says(parts=(THERE, BIG), answered={THERE: (1,)}))
    assert isinstance(found, Score)
    assert (found.value, found.counts) == (0.5, {"parts": 2, "answered": 1})
    assert [(each.about, each.index, each.text) for each in found.evidence] == [
        (EvidenceTarget.STATEMENT, 0, THERE),
        (EvidenceTarget.STATEMENT, 1, BIG),
    ]


def test_completeness_asks_about_the_sentences_of_the_response() -> None:
    """The parts go in one group over the numbered response and the whole input, a repeated part once."""
    says = Says(parts=(THERE, f" {THERE} "))
    outcome(AnswerCompleteness(), SAMPLE, says)
    assert says.asked == [Parts(ASKED), Answered(THERE, (EARTH, SUN), ASKED)]


# -- answer_correctness -------------------------------------------------------------------------------


def test_correctness_is_f1_over_both_texts() -> None:
    """P = 1/2 (the reference supports one of two), R = 1/3 (the response supports one of three): F1 = 0.4."""
    sample = replace(SAMPLE, reference=f"{SUN} {MOON} {MARS}")
    says = Supports((SUN, sample.require("reference")), (SUN, sample.require("response")))
    found = outcome(AnswerCorrectness(), sample, says)
    assert isinstance(found, Score)
    assert found.value == pytest.approx(0.4)
    assert found.counts == {"statements": 2, "supported": 1, "reference_statements": 3, "covered": 1}
    assert [each.text for each in found.evidence] == [EARTH, SUN, SUN, MOON, MARS]


def test_beta_weighs_recall() -> None:
    """With P = 1 and R = 1/2, F2 is 5 / (1/1 + 4/0.5) and F0.5 is 1.25 / (1/1 + 0.25/0.5)."""
    sample = replace(SAMPLE, response=SUN)
    says = Supports((SUN, sample.require("reference")), (SUN, SUN))
    assert value(AnswerCorrectness(beta=2.0), sample, says) == pytest.approx(5 / 9)
    assert value(AnswerCorrectness(beta=0.5), sample, says) == pytest.approx(1.25 / 1.5)


def test_the_whole_other_text_is_the_only_context() -> None:
    """Statements are held against the other text as one context, in one step, and no vector is asked for."""
    says = Says()
    outcome(AnswerCorrectness(), SAMPLE, says)
    reference, response = SAMPLE.require("reference"), SAMPLE.require("response")
    assert says.asked[:2] == [Statements((EARTH, SUN), ASKED), Statements((SUN, MOON), ASKED)]
    assert says.asked[2:] == [
        *(Support(text, (reference,)) for text in (EARTH, SUN)),
        *(Support(text, (response,)) for text in (SUN, MOON)),
    ]


def test_similarity_counts_by_its_weight() -> None:
    """With F = 0 and a cosine of 0.6, a weight of 0.25 gives 0.15, and a weight of 1 gives 0.6 without statements."""
    reference, response = SAMPLE.require("reference"), SAMPLE.require("response")
    vectors = {reference: [1.0, 0.0], response: [0.6, 0.8]}
    assert value(AnswerCorrectness(similarity_weight=0.25), SAMPLE, Says(vectors=vectors)) == pytest.approx(0.15)
    says = Says(vectors=vectors)
    assert value(AnswerCorrectness(similarity_weight=1.0), SAMPLE, says) == pytest.approx(0.6)
    assert says.asked == [Embeddings((reference, response))]


def test_unlike_texts_have_no_negative_similarity() -> None:
    """A cosine below 0 counts as 0; a vector without direction gives no value at all."""
    metric = AnswerCorrectness(similarity_weight=1.0)
    reference, response = SAMPLE.require("reference"), SAMPLE.require("response")
    assert value(metric, SAMPLE, Says(vectors={reference: [1.0], response: [-1.0]})) == 0
    blind = Says(vectors={reference: [1.0], response: [0.0]})
    assert isinstance(outcome(metric, SAMPLE, blind), Undefined)


@pytest.mark.parametrize("options", [{"beta": 0.0}, {"beta": float("inf")}, {"similarity_weight": 1.5}])
def test_numbers_out_of_range_are_refused(options: dict[str, float]) -> None:
    """Beta must be above 0 and finite, a weight lies in [0, 1]."""
    with pytest.raises(UsageError, match=r"takes (beta|similarity_weight)="):
        AnswerCorrectness(**options)


# -- noise_sensitivity --------------------------------------------------------------------------------

REFERENCE = SAMPLE.require("reference")
FIRST, SECOND = "First context.", "Second context."


def test_noise_from_relevant_and_irrelevant_contexts() -> None:
    """The first context holds a reference statement, so what is wrong and stands there is noise of a relevant one."""
    sample = replace(SAMPLE, response=f"{EARTH} {SUN} {MARS} {MOON}")
    says = Supports((SUN, FIRST), (EARTH, FIRST), (MARS, SECOND), (SUN, REFERENCE))
    found = outcome(NoiseSensitivity(), sample, says)
    assert isinstance(found, Score)
    assert (found.value, found.counts) == (
        0.25,
        {"statements": 4, "supported": 1, "noise": 1, "relevant_contexts": 1},
    )
    assert value(NoiseSensitivity(of=NoiseSource.IRRELEVANT), sample, says) == 0.25


def test_a_statement_in_both_kinds_of_context_comes_from_the_relevant() -> None:
    """Noise is of an irrelevant context only where no relevant one says it too; what nobody says is not noise."""
    says = Supports((SUN, FIRST), (EARTH, FIRST), (EARTH, SECOND), (SUN, REFERENCE))
    assert value(NoiseSensitivity(), SAMPLE, says) == 0.5
    assert value(NoiseSensitivity(of=NoiseSource.IRRELEVANT), SAMPLE, says) == 0
    assert value(NoiseSensitivity(of=NoiseSource.IRRELEVANT), SAMPLE, Supports()) == 0


def test_noise_can_grow_when_a_support_verdict_gets_better() -> None:
    """Not monotone: a wrong statement that a relevant context supports after all is one more piece of noise."""
    before = Supports((SUN, FIRST), (SUN, REFERENCE))
    after = Supports((SUN, FIRST), (SUN, REFERENCE), (EARTH, FIRST))
    assert value(NoiseSensitivity(), SAMPLE, before) == 0
    assert value(NoiseSensitivity(), SAMPLE, after) == 0.5


def test_noise_asks_what_others_ask() -> None:
    """Only questions of faithfulness, context recall and answer correctness: a run asks nothing for it alone."""
    asked = []
    for metric in (NoiseSensitivity(), Faithfulness(), ContextRecall(), AnswerCorrectness()):
        says = Says()
        outcome(metric, SAMPLE, says)
        asked.append(set(says.asked))
    noise, *others = asked
    assert noise <= set().union(*others)


# -- context_entity_recall ----------------------------------------------------------------------------


def test_entity_recall_is_the_mentioned_share() -> None:
    """One of two entities mentioned gives a half; entities that differ in case alone are one."""
    says = Says(entities=("Sun", "Moon", "SUN"), mentioned={"SUN": (1,)})
    found = outcome(ContextEntityRecall(), SAMPLE, says)
    assert isinstance(found, Score)
    assert (found.value, found.counts) == (0.5, {"entities": 2, "mentioned": 1})
    contexts = (FIRST, SECOND)
    assert says.asked == [Entities((SUN, MOON)), Mentions("SUN", contexts), Mentions("Moon", contexts)]


# -- critique -----------------------------------------------------------------------------------------


@each_case("aspect", ASPECTS)
@each_case(("language", "yes", "no"), [("en", "yes", "no"), ("ru", "да", "нет"), ("de", "yes", "no")])
def test_yes_is_the_good_answer(aspect: str, language: str, yes: str, no: str) -> None:
    """In every aspect and language, yes is 1 and no is 0; other languages are asked in English."""
    sample = Sample("s", user_input=ASKED, response=EARTH, language=language)
    says = Says(label=yes)
    assert value(Critique(aspect=aspect), sample, says) == 1
    assert value(Critique(aspect=aspect), sample, Says(label=no)) == 0
    (question,) = says.asked
    assert isinstance(question, Choice)
    assert (question.labels, question.names, question.values) == ((yes, no), ("user input", "response"), (ASKED, EARTH))
    assert all(question.definitions)


def test_an_aspect_of_ones_own_is_asked_in_its_words() -> None:
    """The definition is the question; yes and no speak for themselves."""
    says = Says(label="yes")
    outcome(Critique(aspect="politeness", definition="Does it greet?"), SAMPLE, says)
    (question,) = says.asked
    assert isinstance(question, Choice)
    assert (question.instruction, question.definitions) == ("Does it greet?", ("", ""))


@each_case(
    ("aspect", "definition", "message"),
    [
        ("harmfulness", "", "use aspect=harmlessness instead of harmfulness"),
        ("maliciousness", "", "use aspect=goodwill"),
        ("politeness", " ", "takes aspect=harmlessness or goodwill or .*; got 'politeness' alone"),
        ("coherence", "Is it so?", "already defines aspect=coherence"),
    ],
)
def test_what_cannot_be_asked_says_what_can(aspect: str, definition: str, message: str) -> None:
    """Bad answers are asked for by their absence, own aspects need a definition, and ours have one."""
    with pytest.raises(UsageError, match=message):
        Critique(aspect=aspect, definition=definition)


def test_a_label_outside_the_list_is_no_answer() -> None:
    """What is neither yes nor no never reaches the metric: the question refuses it."""
    says = Says(label="yes")
    outcome(Critique(aspect="coherence"), SAMPLE, says)
    (question,) = says.asked
    assert question.fault(ChoiceVerdict("maybe")) == "has the label 'maybe'; it must be one of 'yes', 'no'"
