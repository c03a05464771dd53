"""Probes: what they change, what they count, and which judges they let pass."""

import json
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

from merilo.commands.check.edits import (
    EDITED_KINDS,
    LANGUAGES,
    Case,
    SeededSampler,
    denied,
    inserted_texts,
    labelled_cases,
    names_in,
    neutral,
    other_name,
    other_number,
)
from merilo.commands.check.items import questions_of
from merilo.commands.check.options import CheckOptions
from merilo.commands.check.page import JudgeCheck, check_page
from merilo.commands.check.probes import BY_NAME, PROBES, edit_sample, verdict_of
from merilo.commands.check.run import estimate_check, run_check
from merilo.commands.evaluate.options import Storage
from merilo.data.labels import Labelled, Task
from merilo.judges.callables import CallableJudge
from merilo.judging.kinds.contexts import (
    Relevance,
    RelevanceVerdict,
    Sufficiency,
    SufficiencyLabel,
    SufficiencyVerdict,
    Support,
    SupportLabel,
    SupportVerdict,
)
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.stats.gate import GateVerdict as Reading

PLACES = ("Leeds", "Turin", "Porto", "Ghent", "Lyon", "Bergen", "Krakow", "Graz")
COUNT = 130


def lines() -> list[dict[str, Any]]:
    """Labelled records: towers with a place and a year, each context with all that its question needs."""
    found: list[dict[str, Any]] = []
    for n in range(COUNT):
        context = f"Tower T{n}x was built in {PLACES[n % len(PLACES)]} in 1{200 + n}. It is tall."
        query = f"Where was tower T{n}x built?"
        statement = f"Tower T{n}x was built in {PLACES[n % len(PLACES)]} in 1{200 + n}."
        usual = {"source": "towers", "query": query, "lang": "en"}
        found += [
            {**usual, "id": f"r{n}", "task": "chunk_relevance", "context": context, "label": 2},
            {**usual, "id": f"u{n}", "task": "chunk_relevance", "context": f"Lake {n} is deep.", "label": 0},
            {**usual, "id": f"s{n}", "task": "sufficiency", "context": context, "label": 1},
            {**usual, "id": f"g{n}", "task": "nli", "context": context, "statement": statement, "label": 1},
        ]
    return found


def file_of(folder: Path) -> Path:
    path = folder / "towers.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines()), encoding="utf-8")
    return path


def right(question: Question[Any]) -> Verdict:
    """What a judge says that reads texts and follows none."""
    match question:
        case Relevance():
            tower = question.user_input.split()[3]
            holds = any(f"Tower {tower} was built in" in sentence for sentence in question.sentences)
            return RelevanceVerdict(2 if holds else 0, (0,) if holds else ())
        case Support():
            place = next((n for n, text in enumerate(question.contexts) if question.statement in text), None)
            if place is None:
                return SupportVerdict(SupportLabel.NOT_STATED)
            return SupportVerdict(SupportLabel.SUPPORTED, (place,))
        case Sufficiency():
            tower = question.user_input.split()[3]
            holds = any(f"Tower {tower} was built in" in text for text in question.contexts)
            return SufficiencyVerdict(SufficiencyLabel.SUFFICIENT if holds else SufficiencyLabel.INSUFFICIENT)
        case _:
            raise AssertionError(question)


def obedient(question: Question[Any]) -> Verdict:
    """What a judge says that does as an English context tells it, and else what is right."""
    texts = question.sentences if isinstance(question, Relevance) else getattr(question, "contexts", ())
    told = " ".join(texts)
    if isinstance(question, Relevance) and "grade 2" in told:
        return RelevanceVerdict(2, (0,))
    if isinstance(question, Relevance) and "grade 0" in told:
        return RelevanceVerdict(0)
    if isinstance(question, Support) and "not supported" in told:
        return SupportVerdict(SupportLabel.NOT_STATED)
    return right(question)


def by_words(question: Question[Any]) -> Verdict:
    """What a judge says that only looks for words of the question or statement, and at the first context alone."""
    if isinstance(question, Relevance):
        words = set(question.user_input.lower().strip("?").split())
        found = words & set(" ".join(question.sentences).lower().replace(".", " ").replace("?", " ").split())
        return RelevanceVerdict(2, (0,)) if len(found) > 2 else RelevanceVerdict(0)
    if isinstance(question, Support):
        same = set(question.statement.split()) & set(question.contexts[0].split())
        return (
            SupportVerdict(SupportLabel.SUPPORTED, (0,)) if len(same) > 4 else SupportVerdict(SupportLabel.NOT_STATED)
        )
    return right(question)


async def edited(answer: Any, folder: Path, *tasks: str, number: int = 400) -> JudgeCheck:  # Any: a callable
    judge = CallableJudge(answer, title="judge")
    tasks = tasks or ("edits",)
    return await run_check(
        CheckOptions(labels=[file_of(folder)], judge=judge, storage=Storage(cache=False), tasks=tasks, number=number)
    )


def readings(found: JudgeCheck) -> dict[str, Reading]:
    return {result.probe.name: result.verdict for result in found.edits}


async def test_a_judge_that_is_not_deceived_fails_no_edit(tmp_path: Path) -> None:
    """The effects of all eleven are 0."""
    found = await edited(right, tmp_path)
    assert [*readings(found)] == [*BY_NAME]
    assert Reading.FAIL not in readings(found).values()
    assert {result.value for result in found.edits} == {0.0}
    assert found.failed == (0, sum(each.trials for each in found.edits))


async def test_a_judge_that_obeys_fails_the_instructions_alone(tmp_path: Path) -> None:
    """Obeying instructions in English fails that probe and no other; the other two languages show no effect."""
    found = await edited(obedient, tmp_path)
    assert [name for name, reading in readings(found).items() if reading is Reading.FAIL] == ["instructions"]
    (result,) = (each for each in found.edits if each.probe.name == "instructions")
    assert result.by_language is not None
    assert result.by_language["en"].value > 0.5
    assert result.by_language["ru"].value == result.by_language["es"].value == 0.0
    assert result.neutral == 0.0
    assert result.lower is not None
    assert result.lower > 0.01
    assert verdict_of(found.edits) is Reading.FAIL


async def test_a_judge_by_words_fails_where_words_deceive(tmp_path: Path) -> None:
    """Words of the question in an unrelated context, changed facts and the order of contexts lead it astray."""
    found = readings(await edited(by_words, tmp_path))
    failed = {name for name, reading in found.items() if reading is Reading.FAIL}
    assert failed == {"order", "stuffing", "question", "negation", "number", "name"}


async def test_questions_without_a_verdict_are_counted(tmp_path: Path) -> None:
    """A judge that fails at supports leaves their pairs without a verdict, and they keep the result open."""

    def failing(question: Question[Any]) -> Verdict | Failure:
        if isinstance(question, Support):
            return Failure(FailureKind.REFUSED, "it will not")
        return right(question)

    found = await edited(failing, tmp_path, "duplicate", "negation")
    duplicate, negation = found.edits
    assert duplicate.failed == negation.trials == negation.failed == COUNT
    assert duplicate.counted == COUNT
    assert duplicate.verdict is Reading.CANNOT_TELL
    assert (duplicate.lower, duplicate.upper) == duplicate.interval.ends
    assert negation.value is None
    assert found.failed == (2 * COUNT, 3 * COUNT)
    row = next(
        line.split() for line in str(check_page(found, width=100, full=True)).splitlines() if "duplicate  " in line
    )
    assert row[1:4] == [f"{COUNT}", "-", f"{COUNT}"]


async def test_kinds_that_are_not_answered_are_left_out(tmp_path: Path) -> None:
    """A judge of relevance alone is probed where that is asked, and the rest is left out with the reason."""
    judge = CallableJudge(right, answers=frozenset({Relevance}), title="judge")
    wanted = CheckOptions(labels=[file_of(tmp_path)], judge=judge, storage=Storage(cache=False), tasks=["edits"])
    found = await run_check(wanted)
    assert {result.probe.name for result in found.edits} == {
        "repeat",
        "padding",
        "stuffing",
        "question",
        "instructions",
    }
    assert found.left_out["support"].endswith("cannot answer 'support' questions")
    assert found.left_out["order"] == "no case fits it"


async def test_a_dry_call_asks_nothing(tmp_path: Path) -> None:
    """What asking would take is said, and nobody is asked; a question of two probes counts once."""

    def never(question: Question[Any]) -> Verdict:
        raise AssertionError(question)

    judge = CallableJudge(never, title="judge")
    options = CheckOptions(
        labels=[file_of(tmp_path)], tasks=["negation", "number"], number=400, judge=judge, storage=Storage(cache=False)
    )
    found = await estimate_check(options)
    assert found.samples == 2 * COUNT
    assert found.typical.requests == 3 * COUNT


def a_case(asks: str, **fields: Any) -> Case:  # Any: fields of a case
    usual: dict[str, Any] = {
        "id": "c",
        "asks": asks,
        "language": "en",
        "user_input": "Where was tower T1x built?",
        "contexts": ("Tower T1x was built in Leeds in 1201.",),
        "statement": "Tower T1x was built in Leeds in 1201." if asks == "support" else "",
        "yes": True,
        "cluster": "s",
    }
    return Case(**usual | fields)


def test_instructions_stand_beside_neutral_text_of_equal_length() -> None:
    """Every variant in every language is used once in ninety cases, at most one word longer than its neighbour."""
    cases = [a_case("relevance", id=f"c{n}", yes=bool(n % 2)) for n in range(90)]
    trials = [*BY_NAME["instructions"].trials(cases, SeededSampler(0))]
    assert len({trial.versions[1].contexts for trial in trials}) == 90
    for trial in trials:
        base, told, plain = (len(version.contexts[0]) for version in trial.versions)
        assert abs(told - plain) <= 12, trial
        assert told > base
    towards = ["grade 0" in trial.versions[1].contexts[0] for trial in trials if trial.language == "en"]
    assert sum(towards) == 15  # where people said yes it asks for no


def test_texts_come_in_three_languages() -> None:
    """Thirty different instructions in each, all with a place for the verdict that they ask for."""
    assert set(inserted_texts().instructions) == set(LANGUAGES)
    for texts in inserted_texts().instructions.values():
        assert len(set(texts)) == 30
        assert all(text.count("{target}") == 1 for text in texts)


@pytest.mark.parametrize("language", [*LANGUAGES, "fi"])
def test_neutral_text_has_the_length_that_is_wanted(language: str) -> None:
    """It is at most one word away, wherever it begins."""
    for length in range(30, 400, 7):
        assert abs(len(neutral(language, length, length)) - length) <= 12


@each_case(
    ("statement", "language", "expected"),
    [
        ("The tower is tall.", "en", "The tower is not tall."),
        ("The tower is not tall.", "en", None),
        ("It isn't tall.", "en", None),
        ("Was it tall? It was.", "en", None),
        ("Towers fall.", "en", None),
        ("Башня была построена в 1889 году.", "ru", "Башня не была построена в 1889 году."),
        ("La torre fue terminada.", "es", "La torre no fue terminada."),
        ("Der Turm ist hoch.", "de", None),
    ],
)
def test_a_statement_is_denied(statement: str, language: str, expected: str | None) -> None:
    """One verb is denied; what is denied, asked or in another language is left alone."""
    assert denied(statement, language) == expected


def test_a_number_becomes_one_that_stands_nowhere() -> None:
    """A number of the contexts is changed in one figure; others are left alone."""
    contexts = ("Built in 1889 with 300 workers.",)
    changed = other_number("It was built in 1889.", contexts, SeededSampler(3), "x")
    assert changed is not None
    assert changed.startswith("It was built in ")
    year = changed[16:20]
    assert year != "1889"
    assert sum(a != b for a, b in zip(year, "1889", strict=True)) == 1
    assert other_number("It was built in 1900.", contexts, SeededSampler(3), "x") is None


def test_a_name_becomes_one_that_stands_nowhere() -> None:
    """A name of the contexts gives way to one of as many words that they do not hold."""
    contexts = ("The tower was built by Gustave Eiffel in Paris.",)
    statement = "It was built by Gustave Eiffel."
    pool = names_in(["Then came Marie Curie to Rome.", "It was Gustave Eiffel."])
    assert pool == ["Marie Curie", "Rome", "Gustave Eiffel"]
    assert other_name(statement, contexts, pool, SeededSampler(0), "x") == "It was built by Marie Curie."
    assert other_name(statement, contexts, ["Rome"], SeededSampler(0), "x") is None


@each_case("probe", PROBES)
def test_a_trial_as_a_sample_asks_what_it_holds(probe: Any) -> None:
    """Each version is one question of the case's kind, and only what the probe changes differs."""
    cases = [
        a_case(asks, id=f"{asks}{n}", cluster=n, contexts=(f"Tower T{n}x was built in {PLACES[n]} in 120{n}.",),
               statement=f"Tower T{n}x was built in {PLACES[n]} in 120{n}." if asks == "support" else "",
               yes=asks != "relevance")
        for asks in EDITED_KINDS for n in range(8)
    ]  # fmt: skip
    trials = [*probe.trials(cases, SeededSampler(0))]
    assert trials
    for trial in trials:
        questions = questions_of(edit_sample(probe, trial))
        assert len(questions) == len(trial.versions)
        assert len({type(each) for each in questions}) == 1
        assert len(set(questions)) == len(questions)


def test_cases_of_labelled_records() -> None:
    """A response of several sentences is a case for each where it is supported, and none where it is not."""

    def record(label01: float, id: str) -> Labelled:
        response = "The tower was built in Leeds in the year 1201. It is very tall and it is made of stone."
        return Labelled(
            id, Task.GROUNDEDNESS, "s", "en", "", ("Text.",), response, label01, None, (), constructed=False
        )

    found = labelled_cases([record(1.0, "a"), record(0.0, "b")])
    assert [case.id for case in found] == ["groundedness:a:1", "groundedness:a:2"]
    assert all(case.yes for case in found)
