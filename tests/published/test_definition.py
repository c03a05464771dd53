"""The docstring of a published definition is its card."""

from contextlib import suppress
from typing import Any

import pytest
from each_case import each_case

from merilo.errors import UsageError
from merilo.judging import rubric
from merilo.judging.ask import AskFailed
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Verdict
from merilo.metrics import contract
from merilo.metrics.base import Card, NeedsLibrary, drive, is_composite
from merilo.metrics.registry import find_metric, published_metrics
from merilo.metrics.variants import described
from merilo_published.definition import Published


def test_card_of_docstring() -> None:
    """The summary and the labelled lines become the fields; what follows the second blank line is not in the card."""
    doc = """Share of something
    that counts.

    Formula: this /
        that.
    Undefined: no context | a blank text, with ask_blank=false
    Not: For new work: a lost reply scores 0.

    See: this is for readers of the code.
    """
    assert described(doc, Card("other", when="Always.")) == Card(
        "Share of something that counts.",
        formula="this / that.",
        undefined=("no context", "a blank text, with ask_blank=false"),
        when="Always.",
        when_not="For new work: a lost reply scores 0.",
    )


def test_without_fields() -> None:
    """A docstring without fields, or none at all as under `python -OO`, inherits the card."""
    inherited = Card("A share.", formula="a / b")
    assert described("As `Other`.\n\nIt differs.", inherited) == described("", inherited) == inherited


def test_name_on_the_card() -> None:
    """The family is the system in the name, and a definition is not its own relative."""

    class Base(Published):
        """A share.

        See: system-2:share | other
        """

        name = "system-1:share"

    class Variant(Base):
        """As `Base`."""

        name = "system-2:share"

    assert (Base.card.family, Base.card.relatives) == ("system-1", ("system-2:share", "other"))
    assert (Variant.card.family, Variant.card.relatives) == ("system-2", ("other",))


@each_case(
    "name",
    [each.name for each in published_metrics() if not (is_composite(each) or issubclass(each, NeedsLibrary))],
)
@each_case("readable", [True, False])
def test_requests_fill_their_rubrics(name: str, *, readable: bool) -> None:
    """Each request gives its rubric the fields that it needs, no more and no fewer, re-asks and repairs too."""
    asked: list[Completion] = []

    def answer(question: Question[Any]) -> Verdict:
        if isinstance(question, Completion):
            asked.append(question)
            if not readable:
                return CompletionVerdict("nothing to read")
        return contract.guessed(question)

    metric: Any = find_metric(name)()
    with suppress(AskFailed):
        drive(metric.plan(contract.synthetic_sample(2)), answer)
    for question in asked:
        assert set(question.names) == set(rubric.load(question.rubric).needs)


def test_an_unfinished_name_gets_the_systems_with_this_beginning() -> None:
    """The error names them."""
    with pytest.raises(UsageError, match=r"did you mean ragas-0\.1\.9:\.\.\. or ragas-0\.1\.22:"):
        find_metric("ragas-0.1")
