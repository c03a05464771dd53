"""Scripted judges: answers from a list, a function or a file."""

import json
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

from merilo.errors import UsageError
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.ask import Answer
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict, Support, SupportLabel, SupportVerdict
from merilo.judging.kinds.responses import Noncommittal, NoncommittalVerdict, Statements
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Failure, FailureKind

QUESTION = Relevance("Who?", ("One.", "Two."))
VERDICT = RelevanceVerdict(1, evidence=(0,), probability=0.7)


def answer_of(judge: ScriptedJudge, question: Question[Any] | Pack = QUESTION) -> tuple[Answer, ...]:
    """What the judge returns at its first step; it must not ask for anything."""
    with pytest.raises(StopIteration) as stopped:
        next(judge.answer(question))
    answers: tuple[Answer, ...] = stopped.value.value
    return answers


def script(folder: Path, *entries: object) -> Path:
    path = folder / "script.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in entries), encoding="utf-8")
    return path


def test_a_list_answers_in_ask_order() -> None:
    """Verdicts, mappings and failures are given in order, without a request; then there is no answer left."""
    failure = Failure(FailureKind.REFUSED, "No.")
    judge = ScriptedJudge.of([VERDICT, {"grade": 0}, failure])
    assert [answer_of(judge) for _ in range(3)] == [(VERDICT,), (RelevanceVerdict(0),), (failure,)]
    (last,) = answer_of(judge)
    assert isinstance(last, Failure)
    assert last.kind is FailureKind.PERMANENT
    assert "has no answer to this " in last.message


def test_a_function_answers_by_the_question() -> None:
    """A function sees each question of a pack; its probabilities are kept."""
    judge = ScriptedJudge.by(
        lambda question: {"label": "not_stated", "probability": 0.1 * len(question.statement)}, version="1"
    )
    answers = answer_of(judge, Pack((Support("a", ("c",)), Support("bb", ("c",)))))
    assert answers == (
        SupportVerdict(SupportLabel.NOT_STATED, probability=0.1),
        SupportVerdict(SupportLabel.NOT_STATED, probability=0.2),
    )


@each_case(
    ("given", "fault"),
    [
        ({"grade": 1}, "has the grade 1 but names no evidence sentence"),
        ({"grade": 1, "evidence": [2]}, "names sentence 3, but there are 2, numbered from 1"),
        ({"grade": 1, "evidnce": [0]}, "has fields that are not valid for RelevanceVerdict (evidnce: "),
        ({}, "has fields that are not valid for RelevanceVerdict (grade: "),
        (NoncommittalVerdict(noncommittal=True), "must be a RelevanceVerdict"),
        (7, "but is of type int"),
    ],
)
def test_a_script_is_held_to_the_question(given: Any, fault: str) -> None:
    """A verdict that the question does not accept becomes a failure that says why."""
    (answer,) = answer_of(ScriptedJudge.of([given]))
    assert isinstance(answer, Failure)
    assert fault in answer.message


def test_the_first_entry_that_fits_answers(tmp_path: Path) -> None:
    """Entries are tried in order; fields are compared as they are, or looked into with `contains`."""
    path = script(
        tmp_path,
        {"kind": "relevance", "match": {"user_input": "Who?", "draw": 1}, "verdict": {"grade": 0}},
        {"kind": "relevance", "match": {"sentences": {"contains": "wo."}}, "verdict": {"grade": 1, "evidence": [1]}},
        {"kind": "relevance", "match": {"sentences": ["Three."]}, "verdict": {"grade": 2, "evidence": [0]}},
        {"kind": "noncommittal", "failure": {"kind": "refused", "message": "No."}},
        {"kind": "relevance", "verdict": {"grade": 0, "reason": "never reached"}},
    )
    judge = ScriptedJudge.from_file(path)
    assert answer_of(judge) == (RelevanceVerdict(1, evidence=(1,)),)
    assert answer_of(judge, QUESTION.at(1)) == (RelevanceVerdict(0),)
    assert answer_of(judge, Relevance("What?", ("Three.",))) == (RelevanceVerdict(2, evidence=(0,)),)
    assert answer_of(judge, Noncommittal("?", "!")) == (Failure(FailureKind.REFUSED, "No."),)


def test_a_file_answers_the_kinds_it_names(tmp_path: Path) -> None:
    """Questions of other kinds are not sent to it at all."""
    path = script(tmp_path, {"kind": "relevance", "verdict": {"grade": 0}})
    assert ScriptedJudge.from_file(path).answers == frozenset({Relevance})


def test_one_list_or_one_entry_a_line(tmp_path: Path) -> None:
    """JSON and JSON Lines hold the same script, with the same fingerprint."""
    entries = [{"kind": "relevance", "verdict": {"grade": 0}}, {"kind": "statements", "verdict": {"statements": []}}]
    lines = script(tmp_path, *entries)
    whole = tmp_path / "script.json"
    whole.write_text(json.dumps(entries, indent=2), encoding="utf-8")
    first, second = ScriptedJudge.from_file(lines), ScriptedJudge.from_file(whole)
    assert first.fingerprint() == second.fingerprint()
    assert answer_of(second, Statements(())) == answer_of(first, Statements(()))


def test_fingerprints_tell_scripts_apart() -> None:
    """Another answer, or another version of a function, is another judge."""
    prints = [
        ScriptedJudge.of([VERDICT]).fingerprint(),
        ScriptedJudge.of([RelevanceVerdict(0)]).fingerprint(),
        ScriptedJudge.of([VERDICT, VERDICT]).fingerprint(),
        ScriptedJudge.by(answer_of, version="1").fingerprint(),
        ScriptedJudge.by(answer_of, version="2").fingerprint(),
    ]
    assert len({json.dumps(print_, sort_keys=True) for print_ in prints}) == len(prints)


@each_case(
    ("text", "fault"),
    [
        ("", "has no entries"),
        ("{", "line 1: not valid JSON"),
        ('{"kind": "relevance"}', "line 1: an entry is an object"),
        ('\n{"kind": "relevant", "verdict": {}}', "line 2: the kind must be one of relevance, "),
        ('{"kind": "relevance", "match": {"context": "x"}, "verdict": {}}', "'match' must name fields of relevance"),
        ('{"kind": "relevance", "match": {"draw": {"has": "x"}}, "verdict": {}}', 'or {"contains": text}, got'),
        ('{"kind": [], "verdict": {}}', "the kind must be one of"),
        ('{"kind": "relevance", "verdict": 2}', "'verdict' must be an object"),
        ('{"kind": "relevance", "failure": {"kind": "bad", "message": "x"}}', "'failure' needs 'kind'"),
        ('[{"kind": "relevance", "verdict": {"grade": 0}}, 7]', "entry 2: an entry is an object"),
    ],
)
def test_a_bad_script_is_refused_with_its_place(tmp_path: Path, text: str, fault: str) -> None:
    """A script is checked when it is loaded, not when a question happens to meet the entry."""
    path = tmp_path / "script.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="script") as caught:
        ScriptedJudge.from_file(path)
    assert fault in str(caught.value)
