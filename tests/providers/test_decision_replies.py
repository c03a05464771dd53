"""Replies of decision models: equal answers give equal texts, and nothing that a server sends gets further."""

import json
import math
from typing import Any

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Message
from merilo.providers.decision_request import (
    AnswerType,
    DecisionQuestion,
    DecisionRequest,
    Option,
    answers_in,
    answers_text,
)

Distribution = tuple[AnswerType, list[float]]


def read(text: str, request: DecisionRequest) -> list[tuple[float, ...] | Failure]:
    """The answers to the questions of a request, in order."""
    return [*answers_in(text, request.questions).values()]


def request_for(answers: list[Distribution]) -> DecisionRequest:
    """A request with a question of each type and number of options."""
    questions = [
        DecisionQuestion(f"q{n}", kind, "?", tuple(Option(f"o{k}") for k in range(len(ps))))
        for n, (kind, ps) in enumerate(answers)
    ]
    return DecisionRequest((Message("user", "{}"),), max_tokens=0, questions=tuple(questions))


def over_openai(answers: list[Distribution], *, names: bool = True) -> list[dict[str, Any]]:
    """The answers as OpenAI's wire has them."""
    found = []
    for n, (kind, ps) in enumerate(answers):
        row: dict[str, Any] = {"name": f"q{n}" if names else None}
        if kind is AnswerType.YES_NO:
            row |= {"type": "predicate", "probability": ps[1]}
        else:
            values = [f"o{k}" if kind is AnswerType.CHOICE else k for k in range(len(ps))]
            rows = [{"value": value, "probability": p} for value, p in zip(values, ps, strict=True)]
            row |= {"type": kind.value, "confidence": 7, "probabilities": rows}
        found.append(row)
    return found


def over_system_one(answers: list[Distribution]) -> dict[str, Any]:
    """The answers as System One has them."""
    found: dict[str, Any] = {}
    for n, (kind, ps) in enumerate(answers):
        if kind is AnswerType.YES_NO:
            found[f"q{n}"] = {"type": "noul", "noul": ps[1]}
        else:
            prefix = "o" if kind is AnswerType.CHOICE else ""
            found[f"q{n}"] = {"type": kind.value, "probabilities": {f"{prefix}{k}": p for k, p in enumerate(ps)}}
    return found


def text_of(answers: object, request: DecisionRequest) -> str:
    return answers_text(json.dumps({"answers": answers}), request)


@st.composite
def distributions(draw: st.DrawFn) -> Distribution:
    kind = draw(st.sampled_from(AnswerType))
    if kind is AnswerType.YES_NO:
        p = draw(st.floats(0, 1))
        return kind, [1 - p, p]
    weights = draw(st.lists(st.floats(0, 1), min_size=2, max_size=9).filter(lambda ws: sum(ws) > 0.01))
    off = draw(st.floats(0.951, 1 / 0.951))
    return kind, [min(1.0, weight / sum(weights) * off) for weight in weights]


@given(st.lists(distributions(), min_size=1, max_size=6), st.randoms())
def test_equal_answers_give_equal_texts(answers: list[Distribution], shuffled: Any) -> None:
    """Over either wire, in any order, with or without names, the text is the same and has what was answered."""
    request = request_for(answers)
    text = text_of(over_system_one(answers), request)
    rows = over_openai(answers)
    shuffled.shuffle(rows)
    assert text == text_of(rows, request) == text_of(over_openai(answers, names=False), request)
    for found, (_, ps) in zip(read(text, request), answers, strict=True):
        if abs(math.fsum(ps) - 1) < 0.05:
            assert found == pytest.approx([p / math.fsum(ps) for p in ps], abs=1e-8)


QS = ("q0", "q1")
YES: Distribution = (AnswerType.YES_NO, [0.4, 0.6])
CHOICE: Distribution = (AnswerType.CHOICE, [0.4, 0.6])
SCORE: Distribution = (AnswerType.SCORE, [0.4, 0.6])


def pairs(*given: tuple[object, object], kind: str = "choice") -> dict[str, Any]:
    """An answer of OpenAI's wire to the question `q0`."""
    rows = [{"value": value, "probability": p} for value, p in given]
    return {"type": kind, "name": "q0", "probabilities": rows}


@each_case(
    ("asked", "answer"),
    [
        (YES, {"type": "noul", "noul": True}),
        (YES, {"type": "noul", "noul": None}),
        (YES, {"type": "noul", "probability": 0.5}),
        (YES, {"noul": 0.5}),
        (YES, {"type": ["noul"], "noul": 0.5}),
        (YES, {"type": "noul", "noul": 10**400}),
        (YES, {"type": "noul", "noul": math.inf}),
        (YES, {"type": "noul", "noul": math.nan}),
        (YES, {"type": "noul", "noul": -1e-9}),
        (YES, "refusal"),
        (YES, []),
        (CHOICE, pairs(("o0", 0.5), ("o0", 0.5))),
        (CHOICE, pairs(("o0", 0.7), ("o1", 0.3), ("o0", 0.7))),
        (CHOICE, pairs(("o0", 0.5), (True, 0.5))),
        (CHOICE, pairs((["o0"], 0.5), ({}, 0.5))),
        (CHOICE, pairs(("o0", 0.5), ("o1", 0.5), kind="score")),
        (CHOICE, {"type": "choice", "probabilities": 1}),
        (CHOICE, {"type": "choice", "probabilities": {"o0": 0.5, "o1": 0.4}}),
        (CHOICE, {"type": "choice", "probabilities": {"o0": 0.5, "o1": "0.5"}}),
        (SCORE, pairs(("0", 0.5), ("1", 0.5), kind="score")),
        (SCORE, pairs((False, 0.5), (True, 0.5), kind="score")),
        (SCORE, {"type": "score", "probabilities": {"1": 0.5, "2": 0.5}}),
    ],
)
def test_an_invalid_answer_fails_its_question_alone(asked: Distribution, answer: object) -> None:
    """Types, options and numbers must be those asked for; the question beside it keeps its answer."""
    request = request_for([asked, YES])
    found = read(text_of({"q0": answer, "q1": {"type": "noul", "noul": 0.25}}, request), request)
    assert isinstance(found[0], Failure)
    assert found[0].kind is FailureKind.UNREADABLE
    assert found[1] == (0.75, 0.25)


@each_case(
    "body",
    [
        "",
        "[]",
        "null",
        '{"answers": {}}',
        '{"answers": 3}',
        '{"answers": [{"name": null}]}',
        '{"answers": [{"name": ["q0"], "type": "predicate", "probability": 1}]}',
        '{"answers": [{"name": "q0", "type": "predicate", "probability": 1}, null]}'.replace("q0", "q9"),
        '{"answers": {"q0": {"type": "noul", "noul": 0.5, "noul": 0.9}}}',
        '{"answers": {"q0": {"type": "noul", "noul": 0.5}, "q0": {"type": "noul", "noul": 0.5}}}',
        '{"answers": {"q0": {"type": "noul", "noul": NaN}}}',
        '{"answers": {"q0": {"type": "noul", "noul": -Infinity}}}',
        '{"answers": {"q0": {"type": "noul", "noul": 1e999}}}',
        '{"answers": {"q0": {"type": "noul", "noul": ' + "9" * 5_000 + "}}}",
        '{"answers": {"q0": {"type": "noul", "noul": "\\ud800"}}}',
        '{"answers": {"q0": ' + "[" * 100_000 + "]" * 100_000 + "}}",
        '{"answers": {"q0": ' + '{"type":' * 900 + "1" + "}" * 900 + "}}",
    ],
)
def test_hostile_bodies_are_failures(body: str) -> None:
    """Whatever was received, the text is JSON with one entry, and the question has no answer."""
    request = request_for([YES])
    text = answers_text(body, request)
    assert len(json.loads(text)) == 1
    text.encode()
    (found,) = read(text, request)
    assert isinstance(found, Failure)


@each_case(
    "text",
    [
        "",
        "[",
        "[[0.4,0.6]]",
        '{"q0": 1}',
        '{"q0":[0.4,0.6],"q1":[1]}',
        '{"q0":[0.4,0.6],"q1":[0.4,0.7]}',
        '{"q0":[0.4,0.6],"q1":[NaN,1]}',
        '{"q0":[0.4,0.6],"q1":{}}',
        '{"q0":[0.4,0.6]}',
        "[" * 100_000,
    ],
)
def test_a_damaged_record_is_not_trusted(text: str) -> None:
    """A text that does not fit the request gives failures, one for each question that it does not answer."""
    found = read(text, request_for([YES, CHOICE]))
    assert len(found) == 2
    assert isinstance(found[1], Failure)
    assert found[1].kind is FailureKind.UNREADABLE


def test_answers_belong_to_questions_by_position_only_without_any_name() -> None:
    """One answer with a name, or another number of answers, and those without a name are ignored."""
    request = request_for([YES, YES])
    first, second = over_openai([YES, YES], names=False)
    for rows in ([first, second | {"name": "q1"}], [first | {"name": "q0"}, second, second], [first]):
        found = read(text_of(rows, request), request)
        assert [isinstance(each, Failure) for each in found] == [not any(row["name"] == q for row in rows) for q in QS]


@each_case("key", ["id", "key", "question", "question_id"])
def test_rows_that_name_another_question_are_not_taken_by_position(key: str) -> None:
    """A name in another field counts as one; other texts there do not, and numbers must ascend."""
    request = request_for([YES, YES])
    first, second = over_openai([YES, (YES[0], [0.1, 0.9])], names=False)
    straight = read(text_of([first, second], request), request)
    assert read(text_of([second | {key: "q1"}, first | {key: "q0"}], request), request) == straight
    assert read(text_of([first | {key: "a7"}, second | {key: "a3"}], request), request) == straight
    assert read(text_of([first | {"index": 0, "id": 8}, second | {"index": 1, "id": 9}], request), request) == straight
    for rows in ([second | {"index": 1}, first | {"index": 0}], [second | {key: "q1"}, first | {key: "q1"}]):
        assert all(isinstance(each, Failure) for each in read(text_of(rows, request), request))
