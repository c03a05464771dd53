"""A judge that gives scripted replies to the requests of published definitions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from merilo.judging.kinds.measured import Embeddings, MatrixVerdict, Similarities
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.judging.rubric import render
from merilo.judging.verdicts import Failure, FailureKind, Verdict

NO_REPLY = Failure(FailureKind.TEMPORARY, "boom")
"""A request that gets no reply."""


@dataclass
class Script:
    """Replies in the order asked: a text as it is, a failure as one, anything else as JSON; vectors by text."""

    replies: list[Any]
    vectors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    asked: list[Question[Any]] = field(default_factory=list)

    def __call__(self, question: Question[Any]) -> Verdict | Failure:
        self.asked.append(question)
        match question:
            case Embeddings(texts=texts):
                return MatrixVerdict.of([list(self.vectors[text]) for text in texts])
            case Similarities(right=right):
                return MatrixVerdict.of([[self.vectors[text][0] for text in right]])
        assert isinstance(question, Completion)
        render(question)
        reply = self.replies.pop(0)
        if isinstance(reply, Failure):
            return reply
        return CompletionVerdict(reply if isinstance(reply, str) else json.dumps(reply))

    @property
    def requests(self) -> list[Completion]:
        """Return the questions that were requests to a model."""
        return [each for each in self.asked if isinstance(each, Completion)]

    @property
    def rubrics(self) -> list[str]:
        """Return the name of each request's rubric, without its folder and version."""
        return [each.rubric.rpartition("/")[2].removesuffix(".v1") for each in self.requests]

    @property
    def filled(self) -> list[dict[str, str]]:
        """Return what each request was filled with, by name."""
        return [dict(zip(each.names, each.values, strict=True)) for each in self.requests]


def scripted(*replies: Any) -> Script:
    """Return a judge that gives these replies."""
    return Script(list(replies))
