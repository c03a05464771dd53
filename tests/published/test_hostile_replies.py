"""Every metric, published and native, on odd samples and on replies that no honest judge would send."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from time import process_time
from typing import Any, Final, TypeVar, cast

import pytest
from each_case import each_case

from merilo.data.sample import Sample
from merilo.errors import MissingField, UsageError
from merilo.judging.ask import Answer, AskFailed
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict, Sentences, Similarities, TextsVerdict
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Metric, NeedsLibrary, Score, Undefined, drive, is_composite
from merilo.metrics.contract import SyntheticAnswers
from merilo.metrics.formulas import cosine, f_measure
from merilo.metrics.registry import native, parse_metric, published_metrics
from merilo_published.asking import ask_similarities

T = TypeVar("T")

ROUNDS: Final = 40
LONG: Final = 20_000
SECONDS: Final = 2.0
"""What one plan may take on a reply of LONG characters, on a busy machine; what is quadratic takes far longer."""
CHOSEN: Final = {
    "hit_rate": "hit_rate@1",
    "precision": "precision@2",
    "recall": "recall@2",
    "critique": "critique(aspect=conciseness)",
    "context_precision": "context_precision(against=reference)",
}
VALUES: Final[tuple[object, ...]] = (
    *(None, True, False, 0, 1, -1, 2, 3, 5, 10**18, 10**400, 0.5, 1.5, -0.0, 1e308, 5e-324),
    *(float("nan"), float("inf"), float("-inf"), "", " ", "1", "٣", "²", "−1", "1e999", "NaN", "9" * 5000),
    *("yes", "idk", "TP", "\0", "\ud800", "\u202e", [], {}, [[]], [{}], [None], {"verdict": None}, ["1", 2, None]),
)
TEXTS: Final = (
    *("", " ", "\n\n", "null", "0", "1", "3", "٣", "²", "½", "−1", "1e999", "NaN", "9" * 400),
    *("[]", "{}", "[[]]", "[{}]", "3.9", "1e400"),
    *('{"a":', "[", "]", '"', "```", "```json", "<think>", "\0", "yes", "Insufficient Information.", "[Attributed]"),
    *("[" * 5000, '{"a":[' * 5000, "[" * 900 + "]" * 900, '{"verdict": ' + "9" * 5000 + "}", '{"a": "\\ud800"}'),
    *('{"score": 1, "score": 2}', "\ufeff{}", "##final score: ٣", "1\n2\n3", "['\\ud83d\\ude00', '\\ud800']"),
)
PIECES: Final = (
    "",
    " ",
    "\n",
    "a",
    "Paris is big. It is old.",
    "٣ −1",
    "\u202eevil",
    "\x1b[31mred",
    "。！？",
    "{{ x }}",
)
IDS: Final = ("a", "A", "а", "1", "01", " a", "é", "e\u0301")


@dataclass
class Liar:
    """A judge that answers free text by a function and everything else with made-up verdicts; it remembers.

    Without `chance` it is sober: it loses nothing, takes each text as one sentence and gives the last number.
    """

    reply: Callable[[Completion], str]
    chance: random.Random | None = None
    numbers: Sequence[float] = (0.0, 1.0, -1.0, 0.5, 3e38, -7.0, 1e-45)
    asked: list[Question[Any]] = field(default_factory=list)

    def __call__(self, question: Question[Any]) -> Answer:
        """What this judge says; one answer in fifty is lost."""
        self.asked.append(question)
        assert len(self.asked) < 5000, "the plan asks without an end"
        if self.chance is not None and self.chance.random() < 0.02:
            return Failure(FailureKind.TEMPORARY, "lost")
        match question:
            case Completion():
                "".join(question.values).encode()  # what no request could carry is not asked
                return self._storable(self.reply(question))
            case Sentences():
                return TextsVerdict(self._one([(), tuple(question.text.split(". ")), (question.text,)]))
            case Embeddings():
                columns = self._one([0, 1, 3])
                return MatrixVerdict.of([self._row(columns) for _ in question.texts])
            case Similarities():
                return MatrixVerdict.of([self._row(len(question.right)) for _ in question.left])
            case _:
                return SyntheticAnswers(len(self.asked))(question)

    def _row(self, columns: int) -> list[float]:
        return [self._one(self.numbers) for _ in range(columns)]

    def _one(self, options: Sequence[T]) -> T:
        return options[-1] if self.chance is None else self.chance.choice(options)

    @staticmethod
    def _storable(text: str) -> Answer:
        try:
            text.encode()
        except UnicodeEncodeError:  # as the engine does
            return Failure(FailureKind.BROKEN, "half a character")
        return CompletionVerdict(text)


def metric(text: str) -> Metric:
    """The metric that a text names."""
    found = parse_metric(text)
    assert not is_composite(found)
    return cast("Metric", found)  # a guard says nothing of what it is not


METRICS: Final = tuple(
    metric(CHOSEN.get(each.name, each.name))
    for each in (*published_metrics(), *native())
    if hasattr(each, "plan") and each.name != "rubric_metric" and not issubclass(each, NeedsLibrary)
)
"""One of each class, at its defaults where it has them all."""


def damaged(chance: random.Random, value: object) -> object:
    """A JSON value of which parts are lost, repeated or of another type."""
    if chance.random() < 0.15:
        return chance.choice(VALUES)
    if isinstance(value, dict):
        return {name: damaged(chance, each) for name, each in value.items() if chance.random() < 0.95}
    if isinstance(value, list):
        return [damaged(chance, each) for each in value] * chance.choice([1, 1, 1, 2, 5])
    return value


def hostile(chance: random.Random) -> Callable[[Completion], str]:
    """Replies that look like those asked for, damaged in one way or another."""

    def reply(question: Completion) -> str:
        try:
            text = json.dumps(damaged(chance, json.loads(question.likely)), ensure_ascii=chance.random() < 0.5)
        except ValueError:
            text = question.likely
        at = chance.randrange(len(text) + 1)
        return chance.choice(
            [
                *(text, text, text, chance.choice(TEXTS), text[:at], text[:at] + chance.choice(TEXTS) + text[at:]),
                *(f"```json\n{text}\n```", f"Sure!\n{text}\nDone {{", f"<think>{text}</think>{text}", text.upper()),
            ]
        )

    return reply


def odd_sample(chance: random.Random) -> Sample:
    """A sample whose fields are missing, blank, strange, or say different things about how much there is."""

    def text() -> str | None:
        return None if chance.random() < 0.05 else " ".join(chance.choices(PIECES, k=chance.randrange(4)))

    def texts() -> list[str] | None:
        return None if chance.random() < 0.05 else chance.choices(PIECES, k=chance.choice([0, 1, 2, 5]))

    def ids() -> list[str | int] | None:
        return None if chance.random() < 0.2 else [*chance.choices(IDS, k=chance.choice([0, 1, 2, 5])), 1]

    return Sample(
        "odd",
        user_input=text(),
        response=text(),
        reference=text(),
        retrieved_contexts=texts(),
        reference_contexts=texts(),
        retrieved_context_ids=ids(),
        reference_context_ids=ids(),
    )


_MOST = 1_000


def check(tried: Metric, sample: Sample, liar: Liar) -> None:
    """The plan ends in one of the ways in which it may, within its bound, with a number that can stand."""
    outcome: object
    try:
        outcome = drive(tried.plan(sample), liar)
    except (AskFailed, MissingField) as error:
        outcome = Undefined(str(error))
    assert len(liar.asked) <= _MOST
    assert isinstance(outcome, Score | Undefined)
    if isinstance(outcome, Undefined):
        assert outcome.reason.strip()
        return
    low, high = tried.range
    assert not isinstance(outcome.value, bool)
    assert isfinite(outcome.value)
    assert low - 1e-9 <= outcome.value <= high + 1e-9
    assert all(count is None or isinstance(count, int) for count in outcome.counts.values())
    for piece in outcome.evidence:
        assert piece.value is None or isfinite(piece.value)
        piece.text.encode()


@each_case("tried", METRICS)
def test_no_reply_makes_a_number_that_lies(tried: Metric) -> None:
    """Damaged replies end as a finite score in the range, as Undefined or as a failure, within 1,000 questions."""
    for seed in range(ROUNDS):
        chance = random.Random(f"{tried.name} {seed}")
        check(tried, odd_sample(chance), Liar(hostile(chance), chance))


ENDLESS: Final[dict[str, Callable[[str], str]]] = {
    "white space after an open fence": lambda likely: f"```json\n{likely[:-1]}" + "\n" * LONG,
    "a fence around white space": lambda _: "```" + " " * LONG + "x",
    "white space in the middle": lambda likely: likely.replace(":", ":" + " " * LONG).replace("1", ""),
    "white space after a score": lambda _: "##final score" + "\n" * LONG + "x",
    "white space after a letter": lambda _: "o:" + " " * LONG + "x relevance score" + " " * LONG,
    "thoughts without an end": lambda _: "<think>" * LONG,
    "commas": lambda likely: likely[:-1] + ", " * LONG,
    "brackets": lambda _: '{"a":[' * LONG,
    "quotation marks": lambda _: '"' * LONG,
    "digits": lambda _: "9" * LONG,
    "halves of characters": lambda _: "\\ud800" * LONG,
}


@each_case("endless", ENDLESS.values())
def test_a_judge_that_never_stops_does_not_stop_the_run(endless: Callable[[str], str]) -> None:
    """A reply of endless white space, brackets or digits is read in a time that grows as it does."""
    full = Sample(
        "full",
        user_input="Where is Paris?",
        response="Paris is in France.",
        reference="Paris is in France.",
        retrieved_contexts=["Paris is in France."],
        reference_contexts=["Paris is in France."],
        retrieved_context_ids=["a"],
        reference_context_ids=["a"],
    )
    families = {each.name.partition(":")[0]: each for each in METRICS if Completion in each.asks}
    for tried in families.values():
        began = process_time()
        check(tried, full, Liar(lambda question: endless(question.likely)))
        assert process_time() - began < SECONDS, tried.name


def test_half_a_character_in_a_reply_goes_no_further() -> None:
    """An escape that is half of a character is replaced before it gets into a question; a whole pair stays."""
    sample = Sample("s", user_input="q", response="r.", reference="r.", retrieved_contexts=["c"])
    liar = Liar(lambda _: '{"statements": ["\\ud83d\\ude00 \\ud83d \\\\ud83d"]}')
    check(metric("ragas-0.4.3:faithfulness"), sample, liar)
    completions = [question for question in liar.asked if isinstance(question, Completion)]
    assert json.loads(dict(zip(completions[1].names, completions[1].values, strict=True))["statements"]) == [
        "\U0001f600 \ufffd \\ud83d"
    ]


def test_half_a_character_within_a_repaired_reply_goes_no_further() -> None:
    """A repaired reply is a text that is read as JSON once more, and its halves are replaced too."""
    sample = Sample("s", user_input="q", response="r.", reference="r.", retrieved_contexts=["c"])
    repaired = json.dumps({"text": '{"statements": ["\\ud83d"]}'})
    liar = Liar(lambda question: repaired if "repair" in question.rubric else "bad")
    check(metric("ragas-0.4.3:faithfulness"), sample, liar)
    assert any("\ufffd" in "".join(each.values) for each in liar.asked if isinstance(each, Completion))


@pytest.mark.parametrize(
    "name",
    [
        "ragas-0.0.12:context_relevancy(strictness=2)",
        "ragas-0.1.22:faithfulness_with_hhem",
        "ragas-0.4.3:faithfulness_with_hhem",
    ],
)
def test_similarities_that_are_no_share_are_told(name: str) -> None:
    """A classifier's number outside 0 to 1 fails the metric in a sentence, and is not averaged into a share."""
    sample = Sample("s", user_input="q", response="r.", retrieved_contexts=["c."])
    stated = '[{"sentence_index": 0, "simpler_statements": ["r"]}]'
    replies = {"ragas-0.1": stated, "ragas-0.4": '{"statements": ["r"]}'}
    liar = Liar(lambda _: replies.get(name[:9], "c."), numbers=(0.0, -7.0))
    with pytest.raises(AskFailed, match="gave -7, where a number from 0 to 1"):
        drive(metric(name).plan(sample), liar)


def test_more_than_a_million_pairs_are_not_compared() -> None:
    """Similarities of two replies of a thousand lines each fail in a sentence: more of them fit into no store."""
    with pytest.raises(AskFailed, match="too many texts to compare: 1,001 and 1,000"):
        drive(ask_similarities([Similarities(("a",) * 1_001, ("b",) * 1_000)]), Liar(lambda _: "c."))


@each_case("told", ["٣", "²", "1" * 5000, 10**16, 1e300])
def test_a_number_that_cannot_be_counted_with_is_no_rating(told: object) -> None:
    """Digits of other scripts and numbers beyond counting make a reply unreadable; none is read as a rating."""
    sample = Sample("s", user_input="q", retrieved_contexts=["c"])
    liar = Liar(lambda _: json.dumps({"score": told, "reasoning": "r"}))
    try:
        outcome = drive(metric("spring-ai-ragas:context_relevance").plan(sample), liar)
    except AskFailed:
        return
    assert isinstance(outcome, Score)
    assert outcome.value == 0
    assert outcome.flags


def test_an_f_measure_that_counts_recall_alone_is_the_recall() -> None:
    """A beta whose square no number holds gives the recall, not NaN."""
    assert f_measure(0.25, 0.75, beta=1e200) == 0.75


def test_vectors_without_a_finite_length_have_no_cosine() -> None:
    """A vector that holds NaN or infinity points nowhere, and is not taken for the same as another."""
    assert cosine((float("nan"), 1.0), (1.0, 1.0)) is None
    assert cosine((float("inf"), 1.0), (float("inf"), 1.0)) is None


def test_a_metric_that_was_chosen_is_in_the_list() -> None:
    """Every class in the registry is tried, but for the one that needs a file."""
    names = {each.name for each in METRICS}
    assert {each.name for each in native()} - names == {"rubric_metric"}
    with pytest.raises(UsageError):
        parse_metric("critique")
