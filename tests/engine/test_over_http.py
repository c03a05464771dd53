"""The same samples through a real OpenAI-compatible server: the scripted judge's numbers, and how many requests."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judged_rivers import Evaluate, rows, verdict_for
from server import Asked, JudgeServer

import merilo
from merilo.commands.verify.replay import State, verify_run
from merilo.judging.kinds.contexts import Mentions, Relevance, Sufficiency, Support, Usefulness
from merilo.judging.kinds.responses import Addresses, Answered, Entities, Noncommittal, Parts, Statements
from merilo.numbers import spent_text
from merilo.runs.ledger import Ledger

FENCE = re.compile(r"<<<([a-z ]+?)(?: \d+)? (\w{12})\n(.*?)\n\1(?: \d+)? \2>>>", re.DOTALL)
LINE = re.compile(r"^\[\d+\] (.*)$", re.MULTILINE)


def answer(asked: Asked) -> dict[str, Any]:  # noqa: C901  one case a kind
    """The verdict of `verdict_for`, as a model would write it: read from the rendered text, numbered from 1."""
    fenced = [(label, text) for label, _, text in FENCE.findall(asked.user)]

    def texts(label: str) -> tuple[str, ...]:
        return tuple(text for name, text in fenced if name == label)

    lines = tuple(LINE.findall(asked.user))
    contexts = texts("context")
    (question,) = texts("user input") or ("",)
    match asked.kind:
        case "relevance":
            return numbered_from_1(verdict_for(Relevance(question, lines)))
        case "usefulness":
            return numbered_from_1(verdict_for(Usefulness(question, texts("reference")[0], lines)))
        case "statements":
            found = verdict_for(Statements(lines))["statements"]
            return {"statements": [{"text": each["text"], "sentence": each["sentence"] + 1} for each in found]}
        case "support":
            own = tuple(tuple(LINE.findall(each)) for each in contexts)
            found = verdict_for(Support(asked.about, tuple(" ".join(each) for each in own)))
            first = [1 + sum(map(len, own[:index])) for index in found.pop("evidence")]
            return {"reason": "", **found, "sentences": first}
        case "sufficiency":
            return {**verdict_for(Sufficiency(question, contexts)), "reason": "", "missing": ""}
        case "addresses":
            return {**verdict_for(Addresses(asked.about, question)), "reason": ""}
        case "parts":
            return verdict_for(Parts(question))
        case "answered":
            return numbered_from_1(verdict_for(Answered(asked.about, lines, question)))
        case "entities":
            found = verdict_for(Entities(lines))["entities"]
            return {"entities": [{"text": each["text"], "sentence": each["sentence"] + 1} for each in found]}
        case "mentions":
            return numbered_from_1(verdict_for(Mentions(asked.about, contexts)))
    return {**verdict_for(Noncommittal(question, texts("response")[0])), "reason": ""}


def numbered_from_1(verdict: dict[str, Any]) -> dict[str, Any]:
    return {"reason": "", **verdict, "evidence": [index + 1 for index in verdict["evidence"]]}


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(answer) as running:
        yield running


def scores(run: merilo.Run) -> dict[str, Any]:
    return {name: (each.mean, each.interval, each.scored, each.undefined) for name, each in run.metrics.items()}


@pytest.mark.parametrize("judged", ["each", "context", "together"])
def test_the_numbers_of_the_scripted_judge(evaluated: Evaluate, server: JudgeServer, judged: str) -> None:
    """Over HTTP the same verdicts give the same numbers, statements judged one by one or in packs."""
    over_http = evaluated(rows(12), judge="openai:test-model", base_url=server.base_url, judged=judged)
    assert scores(over_http) == scores(evaluated(rows(12)))
    assert over_http.usage["input_tokens"] > 0
    assert over_http.usage["cost_usd"] is None


def test_a_kind_whose_replies_are_never_readable_is_no_longer_asked(evaluated: Evaluate) -> None:
    """After 20 questions in a row, said once with the reply; other kinds are answered, and the run verifies."""
    said: list[str] = []

    class Watch:
        def begin(self, run: Path, samples: int) -> None: ...
        def advance(self, samples: int) -> None: ...
        def note(self, text: str) -> None:
            said.append(text)

        def end(self) -> None: ...

    def replies(asked: Asked) -> dict[str, Any]:
        return {"score": "as I see it"} if asked.kind == "sufficiency" else answer(asked)

    with JudgeServer(replies) as strange:
        run = evaluated(
            rows(80),
            judge="openai:test-model",
            base_url=strange.base_url,
            metrics=["context_sufficiency", "context_relevance"],
            concurrency=4,
            progress=Watch(),
        )
        asked = Counter(each.kind for each in strange.asked)
    assert 60 <= asked["sufficiency"] <= 60 + 3 * 4
    assert run.metrics["context_relevance"].scored == 80
    assert run.metrics["context_sufficiency"].failed == 80
    (warning,) = [each for each in said if "readable" in each]
    assert "20 sufficiency questions in a row" in warning
    assert "as I see it" in warning
    assert json.dumps([*run.records()]).count("Not asked: 20 sufficiency questions") >= 50
    assert verify_run(run.path).state is State.VERIFIED


def test_tokens_from_the_cache_of_a_provider_are_reported(evaluated: Evaluate, server: JudgeServer) -> None:
    """Input tokens that a server reports as cached are in the usage, the line about cost and the ledger."""
    server.reporting = lambda usage: {**usage, "prompt_tokens_details": {"cached_tokens": 8}}
    run = evaluated(rows(2), judge="openai:test-model", base_url=server.base_url, metrics=["faithfulness"])
    cached = 8 * server.count
    assert run.usage["cached_tokens"] == Ledger.open(run.path / "ledger.jsonl").balance.answered.cached_tokens == cached
    assert f"tokens in ({cached} from the provider's cache)" in spent_text(run.usage)


def test_the_raw_reply_is_kept(evaluated: Evaluate, server: JudgeServer) -> None:
    """From an outcome the trail leads to the raw reply, the path it took and the rubric."""
    run = evaluated(rows(1), judge="openai:test-model", base_url=server.base_url, metrics=["context_relevance"])
    (record,) = run.records()
    (asked,) = run.asked(record["trail"][:1])
    assert json.loads(asked.replies[0]["texts"][0])["grade"] == 1
    assert asked.replies[0]["path"] == "json_schema"
    assert "You grade how far one retrieved context" in asked.rubric


RUSSIAN = {
    "id": "ru",
    "user_input": "Что такое машинное обучение?",
    "retrieved_contexts": ["Машинное обучение — раздел искусственного интеллекта.", "Завтра облачно."],
}


@pytest.mark.parametrize(
    ("row", "language", "begins"),
    [
        (RUSSIAN, None, "Ты оцениваешь"),
        ({**RUSSIAN, "language": "en"}, None, "You grade"),
        (rows(1)[0], "ru", "Ты оцениваешь"),
        (rows(1)[0], "de", "You grade"),
    ],
)
def test_the_rubric_speaks_the_language_of_the_sample(
    evaluated: Evaluate, row: dict[str, Any], language: str | None, begins: str
) -> None:
    """The rubric's language is the one asked for, else the sample's, else its script's; English where there is none."""
    with JudgeServer() as server:
        evaluated(
            [row],
            judge="openai:test-model",
            base_url=server.base_url,
            language=language,
            metrics=["context_relevance"],
        )
        assert server.asked[0].messages[0]["content"].startswith(begins)
