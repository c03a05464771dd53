"""A decision model in this process, for tests: it answers by the texts that a question is about, and keeps requests."""

import hashlib
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from merilo.providers.base import Reply, Request, Usage
from merilo.providers.decision_request import DecisionQuestion, DecisionRequest
from merilo.providers.decisions import DecisionSizes

ROOMY = DecisionSizes(400, 250_000, 250_000)


@dataclass(frozen=True, eq=False)
class Decider:
    """A provider of the model. `fault`: coupled or ordered, as in `decision_server`."""

    fault: str = ""
    reads_names: bool = False  # answer by the name of a context instead of its text
    model: str = "mock"
    sizes: DecisionSizes = ROOMY
    requests: list[DecisionRequest] = field(default_factory=list[DecisionRequest])

    def fingerprint(self) -> Mapping[str, object]:
        return {"provider": "decisions", "model": self.model, "base_url": "http://127.0.0.1:1"}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncIterator["Decider"]:
        del known
        yield self

    def adaptations(self) -> Mapping[str, str]:
        return {}

    def notices(self) -> Sequence[str]:
        return ()

    async def send(self, request: Request) -> Reply:
        assert isinstance(request, DecisionRequest)
        self.requests.append(request)
        count = len(request.questions)
        contexts: dict[str, object] = json.loads(request.state).get("contexts", {})
        asked = enumerate(request.questions)
        answers = {each.name: self._answer(each, contexts, place, count) for place, each in asked}
        return Reply((json.dumps(answers),), usage=Usage(100, 0))

    def price_usd(self, usage: Usage) -> float:
        del usage
        return 0.0001

    def _answer(
        self, question: DecisionQuestion, contexts: Mapping[str, object], place: int, count: int
    ) -> list[float]:
        text = question.text
        if not self.reads_names:
            text = re.sub(r"`(c\d+)`", lambda name: str(contexts[name[1]]), text)
        seed = hashlib.sha256(repr((text, question.fields)).encode()).digest()
        weights = [1 + seed[n % 32] for n in range(len(question.options))]
        shift = {"": 0.0, "coupled": 0.05 * (count - 1), "ordered": 0.03 * place}[self.fault]
        last = min(0.99, weights[-1] / sum(weights) + shift)
        rest = (1 - last) / sum(weights[:-1])
        return [*(rest * weight for weight in weights[:-1]), last]
