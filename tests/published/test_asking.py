"""The protocol by which published definitions ask: fail, drop, repair or re-ask, and several replies."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from each_case import each_case

from merilo.judging.ask import Answer, AskFailed
from merilo.judging.kinds.responses import CompletionVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import drive
from merilo_published.asking import (
    Asker,
    ReadReply,
    Reply,
    RequestTemplate,
    UnreadableReply,
    UnrecoverableFault,
    reasks,
)

LOST = Failure(FailureKind.UNREADABLE, "no reply")


@dataclass
class Replies:
    """A judge that gives these replies, one after another."""

    texts: list[str | Failure]
    asked: list[Any] = field(default_factory=list)

    def __call__(self, question: Question[Any]) -> Answer:
        self.asked.append(question)
        text = self.texts[len(self.asked) - 1]
        return text if isinstance(text, Failure) else CompletionVerdict(text)


def whole(reply: Reply) -> int:
    """Read a number, and refuse "never" for good."""
    if reply.text == "never":
        raise UnrecoverableFault("The reply gives up.")
    return int(reply.text)


NUMBER = RequestTemplate("context_relevance", "1", whole)
VALUES = {"query": "q", "document": "d"}


def test_read_returns_the_value_with_its_reply() -> None:
    """The value is what the template reads, and the reply is the evidence."""
    read = drive(Asker("ares").read(NUMBER, VALUES), Replies(["7"]))
    assert (read.value, read.reply.text, read.role) == (7, "7", "judge")


@pytest.mark.parametrize("text", ["seven", LOST])
def test_read_fails_and_try_read_returns_the_failure(text: str | Failure) -> None:
    """A lost or unreadable reply is raised by one, and a value of the other."""
    with pytest.raises(AskFailed):
        drive(Asker("ares").read(NUMBER, VALUES), Replies([text]))
    assert isinstance(drive(Asker("ares").try_read(NUMBER, VALUES), Replies([text])), AskFailed)


@each_case(
    ("texts", "times", "value", "requests"),
    [(["x", "7"], 1, 7, 2), (["x", "y", "7"], 1, None, 2), (["x"], 0, None, 1), (["never", "7"], 3, None, 1)],
)
def test_a_recovery_sends_at_most_so_many_requests(
    texts: list[str | Failure], times: int, value: int | None, requests: int
) -> None:
    """Re-asks stop at the first readable reply, at their limit, and at a fault that ends them."""
    judge, asker = Replies(texts), Asker("ares")
    plan = asker.read(NUMBER, VALUES, recovery=reasks(asker, NUMBER, times))
    if value is None:
        with pytest.raises(UnreadableReply):
            drive(plan, judge)
    else:
        assert drive(plan, judge).value == value
    assert len(judge.asked) == requests


@pytest.mark.parametrize(("texts", "message"), [(["x", LOST], "no reply"), (["x", "y"], "'x'"), (["1", "y"], "'y'")])
def test_a_lost_request_goes_before_an_unreadable_reply(texts: list[str | Failure], message: str) -> None:
    """Of requests sent side by side, the first lost one fails the metric, otherwise the first unreadable one."""
    with pytest.raises(AskFailed, match=message):
        drive(Asker("ares").read_each(NUMBER, [VALUES, {**VALUES, "document": "e"}]), Replies(texts))


def test_a_repeated_request_is_the_next_draw() -> None:
    """An equal request of one plan is another sample, since the published system sends it again."""
    judge, asker = Replies(["1", "2", "3"]), Asker("ares")
    drive(asker.read(NUMBER, VALUES), judge)
    drive(asker.read(NUMBER, VALUES), judge)
    drive(asker.samples("context_relevance", VALUES, 1, likely="1"), judge)
    assert [question.draw for question in judge.asked] == [0, 1, 2]


def test_an_unreadable_reply_has_no_value_and_raises_itself() -> None:
    """Callers that drop a reply can treat both results alike."""
    read = drive(Asker("ares").try_read(NUMBER, VALUES), Replies(["seven"]))
    assert isinstance(read, UnreadableReply)
    assert read.value is None
    with pytest.raises(UnreadableReply):
        read.or_raise()
    assert ReadReply(read.reply, 7).or_raise() == 7
