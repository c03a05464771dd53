"""A judge held against labels: what it is asked, how its verdicts become labels, and what comes out."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from merilo.commands.check.items import CheckedVerdicts, clusters_of, items_of, label_sample
from merilo.commands.check.options import CheckOptions
from merilo.commands.check.page import JudgeCheck, check_page, check_record
from merilo.commands.check.run import run_check, run_checks
from merilo.commands.evaluate.options import Limits, Storage
from merilo.data.labels import Labelled, Task, read_labels
from merilo.errors import UsageError
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
from merilo.judging.kinds.responses import Addresses, AddressesVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.metrics.base import Evidence, EvidenceTarget, Failed, Score, Undefined, drive
from merilo.stats.resampling import Resampling

QUICK = Resampling(resamples=200)
CONTEXT = "The tower stands in Paris. It was completed in 1889."


def record(task: Task, **fields: Any) -> Labelled:  # Any: whatever the field holds
    """A labelled record with this task."""
    usual: dict[str, Any] = {
        "id": "r",
        "task": task,
        "source": "s",
        "language": "en",
        "query": "When was the tower completed?",
        "texts": (CONTEXT,),
        "response": "",
        "label01": 1.0,
        "grade": None,
        "sentence_labels": (),
        "constructed": False,
    }
    return Labelled(**{**usual, **fields})


def asked(of: Labelled) -> list[Question[Any]]:
    """The questions that are asked about a record."""
    found: list[Question[Any]] = []

    def answer(question: Question[Any]) -> Verdict:
        found.append(question)
        return question.guess()

    drive(CheckedVerdicts().plan(label_sample(of)), answer)
    return found


def test_what_is_asked_about_texts() -> None:
    """Contexts are asked about as metrics do; sentences stay as people saw them, all in one question."""
    query = "When was the tower completed?"
    split = ("The tower stands in Paris.", "It was completed in 1889.")
    assert asked(record(Task.CHUNK_RELEVANCE)) == [Relevance(query, split)]
    assert asked(record(Task.SUFFICIENCY)) == [Sufficiency(query, (CONTEXT,))]
    uncut = record(Task.SENTENCE_RELEVANCE, texts=("One. Two.", "Three."), sentence_labels=(True, False))
    assert asked(uncut) == [Relevance(query, ("One. Two.", "Three."))]


def test_what_is_asked_about_responses() -> None:
    """A response is judged sentence by sentence; a statement is judged as it stands."""
    response = "The tower was completed in 1889, they say. It is made of iron and very tall indeed."
    first, second = "The tower was completed in 1889, they say.", "It is made of iron and very tall indeed."
    grounded = asked(record(Task.GROUNDEDNESS, response=response))
    assert grounded == [Support(first, (CONTEXT,)), Support(second, (CONTEXT,))]
    addressed = asked(record(Task.ANSWER_RELEVANCE, response=response, texts=()))
    assert [each.statement for each in addressed if isinstance(each, Addresses)] == [first, second]
    assert asked(record(Task.NLI, query="", response="One. Two.")) == [Support("One. Two.", (CONTEXT,))]


@pytest.mark.parametrize(
    ("response", "language", "joined"),
    [
        ("In 1889.", "en", True),
        ("In the year of 1889 it was done.", "en", False),
        ("1889年。", "zh", True),
        ("它于1889年完工，当时是世界上最高的建筑物。", "zh", False),
    ],
)
def test_a_short_answer_is_judged_with_its_question(response: str, language: str, joined: bool) -> None:
    """Fewer than eight words (sixteen signs without blanks) are no statement alone; without a query they stay."""
    (question,) = asked(record(Task.GROUNDEDNESS, response=response, language=language))
    assert isinstance(question, Support)
    assert question.statement == (f"When was the tower completed?\n\n{response}" if joined else response)
    (alone,) = asked(record(Task.GROUNDEDNESS, response=response, language=language, query=""))
    assert isinstance(alone, Support)
    assert alone.statement == response


@pytest.mark.parametrize(
    "blank",
    [
        record(Task.CHUNK_RELEVANCE, texts=(" ",)),
        record(Task.CHUNK_RELEVANCE, query=""),
        record(Task.SENTENCE_RELEVANCE, texts=("", " ")),
        record(Task.SUFFICIENCY, texts=("",)),
        record(Task.GROUNDEDNESS, response=" "),
        record(Task.NLI, response=""),
        record(Task.ANSWER_RELEVANCE, response="", texts=()),
    ],
)
def test_a_blank_text_is_undefined(blank: Labelled) -> None:
    """Nothing is asked about nothing."""
    found = drive(CheckedVerdicts().plan(label_sample(blank)), lambda question: question.guess())
    assert found == Undefined("a text to be judged is blank")


def test_a_judge_never_sees_the_label() -> None:
    """Records that differ in label, votes and source alone make equal samples."""
    one = record(Task.GROUNDEDNESS, response="Yes.")
    other = record(Task.GROUNDEDNESS, response="Yes.", label01=0.0, source="t", constructed=True)
    assert label_sample(one).digest == label_sample(other).digest


def support(*labels: bool, chances: Sequence[float | None] = ()) -> Score:
    """The outcome on a response with these verdicts on its sentences."""
    verdicts = [
        SupportVerdict(SupportLabel.SUPPORTED, (0,), probability=chance)
        if yes
        else SupportVerdict(SupportLabel.NOT_STATED, probability=chance)
        for yes, chance in zip(labels, chances or [None] * len(labels), strict=True)
    ]
    return Score(0.0, tuple(Evidence(EvidenceTarget.STATEMENT, index, each) for index, each in enumerate(verdicts)))


def test_a_response_is_supported_when_every_sentence_is() -> None:
    """One unsupported sentence makes it a no; the probability is the mean, and none where one has none."""
    whole = record(Task.GROUNDEDNESS, response="One. Two.")
    (found,) = items_of([whole], {"r": support(True, False, chances=(0.9, 0.4))})
    assert (found.judge, found.probability) == (0.0, pytest.approx(0.65))
    (found,) = items_of([whole], {"r": support(True, True, chances=(0.9, None))})
    assert (found.judge, found.probability) == (1.0, None)


def test_a_response_answers_when_one_sentence_does() -> None:
    """One sentence to the point is enough, and the highest probability counts."""
    verdicts = (AddressesVerdict(addresses=False, probability=0.2), AddressesVerdict(addresses=True, probability=0.7))
    outcome = Score(0.5, tuple(Evidence(EvidenceTarget.STATEMENT, index, each) for index, each in enumerate(verdicts)))
    (found,) = items_of([record(Task.ANSWER_RELEVANCE, response="One. Two.", texts=())], {"r": outcome})
    assert (found.judge, found.probability) == (1.0, 0.7)


def test_sentences_named_as_evidence_are_the_judges_yes() -> None:
    """Each labelled sentence is an item."""
    labelled = record(Task.SENTENCE_RELEVANCE, texts=("a", "b", "c"), sentence_labels=(True, False, True))
    named = Score(1.0, (Evidence(EvidenceTarget.STATEMENT, 0, RelevanceVerdict(2, (0, 1))),))
    assert [(each.people, each.judge) for each in items_of([labelled], {"r": named})] == [(1, 1), (0, 1), (1, 0)]
    failed = Failed(Failure(FailureKind.REFUSED, "no"))
    assert [(item.judge, item.failed) for item in items_of([labelled], {"r": failed})] == [(None, True)] * 3


def test_records_that_share_a_text_are_one_case() -> None:
    """Sharing goes from one to the next, within a source and not across sources."""
    chain = [
        record(Task.NLI, same=("text a", "query x")),
        record(Task.NLI, same=("text b", "query x")),
        record(Task.NLI, same=("text b",)),
        record(Task.NLI, same=("text c",)),
        record(Task.NLI, same=("text a",), source="other"),
    ]
    first, second, third, fourth, fifth = clusters_of(chain)
    assert first == second == third
    assert len({first, fourth, fifth}) == 3


def test_evidence_names_what_it_is_about() -> None:
    """A page of a check shows the statements, and marks the sentences of a context."""
    response = drive(
        CheckedVerdicts().plan(label_sample(record(Task.GROUNDEDNESS, response="One is odd. Two is even."))),
        lambda question: question.guess(),
    )
    assert isinstance(response, Score)
    assert [(piece.about, piece.text) for piece in response.evidence] == [
        (EvidenceTarget.STATEMENT, "One is odd."),
        (EvidenceTarget.STATEMENT, "Two is even."),
    ]
    context = drive(
        CheckedVerdicts().plan(label_sample(record(Task.CHUNK_RELEVANCE))),
        lambda question: question.guess(),
    )
    assert isinstance(context, Score)
    assert [(piece.about, piece.index, piece.text) for piece in context.evidence] == [(EvidenceTarget.CONTEXT, 0, "")]


# -- whole checks -------------------------------------------------------------------------------------


def written(path: Path, records: Sequence[dict[str, Any]]) -> Path:
    """A file of labels."""
    file = path / "ours.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return file


def sufficiency(number: int, *, label: float, **more: Any) -> dict[str, Any]:
    """A labelled record; its query carries its label, for a judge that peeks."""
    return {
        "id": f"n{number}",
        "source": "ours",
        "task": "sufficiency",
        "query": f"Question {number} that is {'easy' if label else 'hard'}?",
        "context": f"Context {number}.",
        "label": label,
        **more,
    }


RECORDS = [sufficiency(number, label=float(number % 2)) for number in range(80)]


def peeking(question: Question[Any]) -> Verdict | Failure:
    """Right for nine questions in ten, sure of itself; refuses number 7."""
    assert isinstance(question, Sufficiency)
    number = int(question.user_input.split()[1])
    if number == 7:
        return Failure(FailureKind.REFUSED, "It will not.")
    yes = ("easy" in question.user_input) is not (number % 10 == 0)
    label = SufficiencyLabel.SUFFICIENT if yes else SufficiencyLabel.INSUFFICIENT
    return SufficiencyVerdict(label, probability=0.9 if yes else 0.1)


JUDGE = CallableJudge(peeking, answers=frozenset({Sufficiency}), title="peeking")


async def checked(wanted: CheckOptions, judge: object = JUDGE, **options: Any) -> JudgeCheck:
    """A check without a cache."""
    tasks = wanted.tasks or [*Task]
    return await run_check(replace(wanted, judge=judge, tasks=tasks, storage=Storage(cache=False), **options), QUICK)


async def test_figures_of_a_check(tmp_path: Path) -> None:
    """Counts, kappa, rates and AUROC are those of the judge's answers; what failed is counted beside them."""
    found = check_record(await checked(CheckOptions(labels=[written(tmp_path, RECORDS)])))
    figures = found["tasks"]["sufficiency"]["sources"]["ours"]
    assert (figures["n"], figures["agree"], figures["yes"]) == (79, 71, 39)
    assert figures["balanced_accuracy"]["value"] == 0.9
    assert figures["without"] == figures["failed"] == 1
    assert figures["in_mean"] is True
    for name in ("kappa", "balanced_accuracy", "auroc"):
        low, high = figures[name]["interval"]
        assert low <= figures[name]["value"] <= high
    assert found["judge"]["name"] == "peeking"


async def test_equal_checks_have_equal_bytes(tmp_path: Path) -> None:
    """But for what stands under usage, two checks of the same labels and judge are the same, also resumed."""
    wanted = CheckOptions(labels=[written(tmp_path, RECORDS)])
    records = [check_record(await checked(wanted, out=out)) for out in (None, tmp_path / "kept", tmp_path / "kept")]
    for each in records:
        del each["usage"]
    assert json.dumps(records[0]) == json.dumps(records[1]) == json.dumps(records[2])


async def test_a_check_with_a_directory_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """A check that was stopped says so; the next one asks the rest, and one after that asks nothing."""
    asked_for: list[str] = []

    def counting(question: Question[Any]) -> Verdict | Failure:
        assert isinstance(question, Sufficiency)
        asked_for.append(question.user_input)
        return peeking(question)

    judge = CallableJudge(counting, answers=frozenset({Sufficiency}), title="counting")
    wanted = CheckOptions(labels=[written(tmp_path, RECORDS)])
    first = await checked(wanted, judge, out=tmp_path / "out", limits=Limits(max_seconds=0.0))
    assert first.stopped is not None
    assert first.tables == {}
    asked_for.clear()
    whole = await checked(wanted, judge, out=tmp_path / "out")
    assert whole.stopped is None
    assert whole.tables["sufficiency"].labels == 79
    asked_for.clear()
    again = await checked(wanted, judge, out=tmp_path / "out")
    assert asked_for == []
    assert again.tables == whole.tables


async def test_records_made_by_rule_are_left_out(tmp_path: Path) -> None:
    """They are neither asked about nor counted among people's."""
    made = [sufficiency(100 + n, label=0.0, meta={"constructed": "by rule"}) for n in range(40)]
    file = written(tmp_path, [*RECORDS, *made])
    found = await checked(CheckOptions(labels=[file]))
    assert (found.tables["sufficiency"].labels, found.constructed) == (79, 40)
    with pytest.raises(UsageError, match="labels: all are rule-generated"):
        await checked(CheckOptions(labels=[written(tmp_path, made)]))


async def test_a_sample_is_always_the_same_and_grows(tmp_path: Path) -> None:
    """The larger sample holds the smaller one, whatever the order of the file."""
    forward = await checked(CheckOptions(labels=[written(tmp_path, RECORDS)], number=20))
    small = {item.record.id for item in forward.items["sufficiency"]}
    backward = await checked(CheckOptions(labels=[written(tmp_path, RECORDS[::-1])], number=30))
    large = {item.record.id for item in backward.items["sufficiency"]}
    assert (len(small), len(large)) == (20, 30)
    assert small < large


GRADED = [
    {
        "id": f"{grade}-{number}",
        "source": source,
        "task": "chunk_relevance",
        "query": f"Question {number} of {source}?",
        "context": f"Context {grade} {number} of {source}.",
        "label": grade,
    }
    for source in ("one", "two")
    for grade in (0, 1, 2)
    for number in range(35)
    if source == "one" or grade != 0
]
GRADED = [{**each, "id": f"{each['source']}-{each['id']}"} for each in GRADED]


def grading(question: Question[Any]) -> Verdict:
    """The grade that the context names, but 1 for every seventh."""
    assert isinstance(question, Relevance)
    _, grade, number, *_ = question.sentences[0].split()
    found = 1 if int(number) % 7 == 0 else int(grade)
    return RelevanceVerdict(found, (0,) if found else (), probability=found / 2)


async def test_both_cuts_of_relevance(tmp_path: Path) -> None:
    """Grade 2 against 1, and 1 or 2 against 0."""
    judge = CallableJudge(grading, answers=frozenset({Relevance}), title="grading")
    check = await checked(CheckOptions(labels=[written(tmp_path, GRADED)]), judge)
    found = check_record(check)
    counts = {name: [own["sources"]["one"][each] for each in ("n", "yes")] for name, own in found["tasks"].items()}
    assert counts == {"chunk_relevance": [70, 35], "chunk_relevance>=1": [105, 70]}
    two = found["tasks"]["chunk_relevance>=1"]["sources"]["two"]
    assert two["kappa"] == {"value": None, "interval": None, "note": "cannot tell: the human labels are all equal"}
    assert found["tasks"]["chunk_relevance"]["sources"]["one"]["auroc"]["value"] > 0.9
    assert not two["in_mean"]


async def test_several_judges_share_a_table(tmp_path: Path) -> None:
    """Each judge has a row in each task, with the figures of a check of it alone, and its own run."""

    def worse(question: Question[Any]) -> Verdict | Failure:
        assert isinstance(question, Sufficiency)
        if int(question.user_input.split()[1]) % 5 != 1:
            return peeking(question)
        return SufficiencyVerdict(SufficiencyLabel.INSUFFICIENT, probability=0.1)

    other = CallableJudge(worse, answers=frozenset({Sufficiency}), title="worse")
    options = CheckOptions(labels=[written(tmp_path, RECORDS)], tasks=[*Task], storage=Storage(cache=False))
    found = await run_checks(replace(options, out=tmp_path / "out"), [JUDGE, other], QUICK)
    assert [each.tables for each in found] == [(await checked(options, judge)).tables for judge in (JUDGE, other)]
    page = [line.split()[:4] for line in str(check_page(*found)).splitlines()]
    assert [line for line in page if line[:1] == ["-"]] == [
        ["-", "peeking", "71/79", "0.80"],
        ["-", "worse", "63/79", "0.59"],
    ]
    assert all((tmp_path / "out" / name / "manifest.json").is_file() for name in ("run", "run2"))


async def test_tasks_that_the_judge_does_not_answer(tmp_path: Path) -> None:
    """They are left out with the reason; a judge that answers none of them is refused."""
    other = {"id": "x", "task": "nli", "context": "c", "statement": "s", "label": 1}
    found = await checked(CheckOptions(labels=[written(tmp_path, [*RECORDS, other])]))
    assert found.left_out["nli"] == ("the judge peeking cannot answer 'support' questions")
    with pytest.raises(UsageError, match="Nothing to ask: nli: the judge peeking cannot"):
        await checked(CheckOptions(labels=[written(tmp_path, [other])], tasks=["nli"]))


async def test_the_sample_in_the_package() -> None:
    """It needs no file, and on its statements the embedded judge beats chance."""
    found = await checked(CheckOptions(tasks=[Task.GROUNDEDNESS]), "embedded")
    grounded = found.tables["groundedness"].kappa
    assert grounded.value is not None
    assert grounded.interval.ends is not None
    assert grounded.interval.ends[0] > 0
    assert max(map(len, str(found).splitlines())) <= 80


def test_the_sample_is_drawn_as_its_readme_says() -> None:
    """Five tasks; forty yes and forty no from each source, but where sentences are labelled; 300 kB at most."""
    from importlib.resources import as_file, files

    with as_file(files("merilo").joinpath("examples", "labels")) as folder:
        paths = sorted(Path(folder).glob("*.jsonl.gz"))
        assert sum(path.stat().st_size for path in paths) <= 300_000
        records = read_labels(paths)
        readme = (Path(folder) / "README.md").read_text(encoding="utf-8")
    counts: dict[tuple[str, str], list[bool]] = {}
    assert {each.task for each in records} == {
        "answer_relevance",
        "chunk_relevance",
        "groundedness",
        "sentence_relevance",
        "sufficiency",
    }
    for each in records:
        assert each.source in readme
        if each.task is not Task.SENTENCE_RELEVANCE:
            counts.setdefault((each.task, each.source), []).append(each.yes)
    assert {sum(own) for own in counts.values()} == {40}
    assert {len(own) for own in counts.values()} == {80}
