"""The embedded judge: typed questions in, typed verdicts out."""

from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import pytest
from each_case import each_case

from merilo import evaluate
from merilo.commands.evaluate.preparation import unread_check
from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import run_page as report_page
from merilo.commands.show.summary import record_of, run_markdown, run_page
from merilo.data.short_answers import stated
from merilo.engine.answer_store import JudgeRoles
from merilo.engine.schedule import Batches
from merilo.judges.blended import BlendedModel
from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.embedded_provider import RULES, EmbeddedProvider
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.ask import Answer
from merilo.judging.kinds.contexts import Relevance, Sufficiency, SufficiencyLabel, Support, Usefulness
from merilo.judging.kinds.measured import Embeddings, Similarities
from merilo.judging.kinds.responses import Addresses, Completion, Noncommittal, Statements
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import DecisionVerdict, Failure, FailureKind, Verdict, probability_of
from merilo.metrics.base import Undefined
from merilo.providers.base import Reply, ReplyPath
from merilo.providers.questions import QuestionRequest

CONTEXT = "The Eiffel Tower stands in Paris. It was designed by Gustave Eiffel. It is 330 metres tall."
SENTENCES = (
    "The Eiffel Tower stands in Paris.",
    "It was designed by Gustave Eiffel.",
    "It is 330 metres tall.",
)
ASKED = "How tall is the Eiffel Tower?"

QUESTIONS: tuple[Question[Any], ...] = (
    Relevance(ASKED, SENTENCES),
    Relevance(ASKED, ()),
    Relevance("", ("",)),
    Usefulness(ASKED, "330 metres", SENTENCES),
    Usefulness("", "", ()),
    Statements(SENTENCES),
    Statements(()),
    Support("It is 330 metres tall.", (CONTEXT, "Bread is baked.")),
    Support("", ()),
    Sufficiency(ASKED, (CONTEXT,)),
    Sufficiency("", ()),
    Addresses("I don't know.", ASKED),
    Noncommittal(ASKED, "I don't know."),
    Embeddings((ASKED, "")),
    Embeddings(()),
    Similarities((ASKED, ""), SENTENCES),
    Similarities((), SENTENCES),
    Similarities((ASKED,), ()),
)


def answers_to(question: Question[Any] | Pack) -> tuple[Answer, ...]:
    """What the judge returns when it is asked this alone."""
    conversation = EmbeddedJudge().answer(question)
    replies: tuple[Reply | Failure, ...] = ()
    try:
        sends = next(conversation)
        replies = tuple(reply for _, reply in sorted(Batches()(sends), key=itemgetter(0)))
        conversation.send(replies)
    except StopIteration as stop:
        found: tuple[Answer, ...] = stop.value
        assert all(reply.path is ReplyPath.LOCAL for reply in replies if isinstance(reply, Reply))
        return found
    raise AssertionError("it asked again")


def batch(*questions: Question[Any]) -> list[tuple[int, str]]:
    """What the judge's provider gives for a batch, in its order."""
    replies = EmbeddedProvider().send_batch([QuestionRequest((), question=question) for question in questions])
    return [(place, reply.text) for place, reply in replies if isinstance(reply, Reply)]


@each_case("question", QUESTIONS)
def test_every_verdict_stands(question: Question[Any]) -> None:
    """Each kind it answers gets a verdict of its type in which the question finds no fault."""
    (verdict,) = answers_to(question)
    assert isinstance(verdict, question.verdict)
    assert question.fault(verdict) is None


def test_it_is_asked_only_what_it_answers() -> None:
    """The kinds it names are the judgements; anything else fails for good instead of being guessed."""
    assert EmbeddedJudge().answers == {type(question) for question in QUESTIONS}
    (failure,) = answers_to(Completion("Say hello.", (), ()))
    assert isinstance(failure, Failure)


def test_statements_are_the_sentences_that_claim() -> None:
    """A statement is a sentence of the text; a question or a refusal claims nothing."""
    (found,) = answers_to(Statements(("The tower is tall.", "Is it?", "I don't know.", "It is in Paris.")))
    assert [(s.text, s.sentence) for s in found.statements] == [
        ("The tower is tall.", 0),
        ("It is in Paris.", 3),
    ]


def test_statements_of_a_list_are_its_items_without_their_numbers() -> None:
    """What leads in a list claims nothing, and the number of an item stands in no context."""
    (found,) = answers_to(Statements(("Do the following:", "1. Open the lid first.", "2) Close it after an hour.")))
    assert [(s.text, s.sentence) for s in found.statements] == [
        ("Open the lid first.", 1),
        ("Close it after an hour.", 2),
    ]
    (alone,) = answers_to(Statements(("2. Weltkrieg und Kalter Krieg haben viele Familien getrennt.",), language="de"))
    assert alone.statements[0].text.startswith("2. Weltkrieg")


@each_case(
    ("sentences", "expected"),
    [
        (("In 1889.",), ["When was it built?\n\nIn 1889."]),
        (("Thanks for asking!", "In 1889."), ["When was it built?\n\nIn 1889."]),
        (
            ("Gustave Eiffel.", "In 1889."),
            ["When was it built?\n\nGustave Eiffel.", "When was it built?\n\nIn 1889."],
        ),
        (("It was late.", "In 1889."), ["It was late.", "In 1889."]),
        (("It was built in 1889.",), ["It was built in 1889."]),
    ],
)
def test_short_answers_alone_stand_behind_their_question(sentences: tuple[str, ...], expected: list[str]) -> None:
    """By itself it says nothing; what is a sentence, or stands beside one, is left."""
    (found,) = answers_to(Statements(sentences, "When was it built?"))
    assert [each.text for each in found.statements] == expected


@pytest.mark.parametrize("asked", ["When was it built?", "???", "Read this:\n\n```\nprint(1)"])
def test_two_short_answers_to_one_question_are_compared(asked: str) -> None:
    """The same answer is supported, and another is left open, whatever the question is: it says nothing of either."""
    reference = stated("Gustave Eiffel", asked, "en")
    assert reference is not None
    (same,) = answers_to(Support(reference, (reference,)))
    (other,) = answers_to(Support(stated("Mary Ash", asked, "en") or "", (reference,)))
    assert same.supported
    assert isinstance(other, Failure)


@pytest.mark.parametrize(("answer", "supported"), [("Yes, they can.", True), ("Yep!", True), ("No.", False)])
def test_a_yes_is_a_yes_in_whatever_words(answer: str, supported: bool) -> None:
    """Held against the reference "Yes", what counts is what is said, not how."""
    mine, reference = (stated(each, "Can bats fly?", "en") or "" for each in (answer, "Yes"))
    (found,) = answers_to(Support(mine, (reference,)))
    assert found.supported is supported


def statements_in(*sentences: str) -> list[str]:
    (found,) = answers_to(Statements(sentences))
    return [each.text for each in found.statements]


@each_case(
    "courtesy",
    [
        "Great question!",
        "Thanks for asking!",
        "Thank you very much for your question.",
        "I hope this helps.",
        "Let me know if you need anything else!",
        "I’m happy to help with that.",
        "Спасибо за вопрос!",
        "Надеюсь, это поможет.",
        "Ich hoffe, das hilft Ihnen weiter.",
    ],
)
def test_a_courtesy_claims_nothing(courtesy: str) -> None:
    """It is no statement that contexts would have to support; the same words within a claim stay."""
    assert statements_in(courtesy, "The tower is tall.") == ["The tower is tall."]
    assert statements_in(courtesy) == []


@pytest.mark.parametrize("text", ["Sure footing is needed on the stairs.", "Thanks to Eiffel the tower is stable."])
def test_what_only_begins_like_a_courtesy_is_a_claim(text: str) -> None:
    """A sentence has to be a courtesy from end to end."""
    assert statements_in(text) == [text]


def test_a_yes_or_no_counts_where_it_is_all() -> None:
    """Before a whole sentence it says nothing more; alone it is the answer."""
    assert statements_in("No.", "The cache is safe to delete.") == ["The cache is safe to delete."]
    assert statements_in("No.") == ["No."]
    assert statements_in("Нет.", "Кэш можно удалить.") == ["Кэш можно удалить."]


def test_levels_of_sufficiency_have_their_labels() -> None:
    """Contexts with the answer are sufficient; only known passages make contexts insufficient."""
    assert answers_to(Sufficiency(ASKED, (CONTEXT,)))[0].label is SufficiencyLabel.SUFFICIENT
    assert answers_to(Sufficiency(ASKED, ("Bread is baked.",), gold=-1))[0].label is SufficiencyLabel.INSUFFICIENT
    assert answers_to(Sufficiency(ASKED, ("Bread is baked.",), gold=1))[0].label is SufficiencyLabel.SUFFICIENT
    assert isinstance(answers_to(Sufficiency(ASKED, ("Bread is baked.",)))[0], Failure)


def test_equal_questions_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each different question of a batch is judged once, and every place gets its reply."""
    judged: list[str] = []
    rule = RULES[Noncommittal]

    def counted(model: BlendedModel, question: Noncommittal) -> Verdict:
        judged.append(question.response)
        return rule(model, question)

    monkeypatch.setitem(cast("dict[Any, Any]", RULES), Noncommittal, counted)
    told = batch(*(Noncommittal(ASKED, text) for text in ("Yes.", "I don't know.", "Yes.", "Yes.")))
    assert sorted(place for place, _ in told) == [0, 1, 2, 3]
    assert sorted(judged) == ["I don't know.", "Yes."]


def test_a_fault_in_one_question_fails_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the reading of one text breaks, its question fails as broken; the others of the batch are answered."""

    def broken(model: BlendedModel, question: Noncommittal) -> Verdict:
        raise ZeroDivisionError(f"at {question.response}")

    monkeypatch.setitem(cast("dict[Any, Any]", RULES), Noncommittal, broken)
    (failure,) = answers_to(Noncommittal(ASKED, "Yes."))
    assert failure == Failure(FailureKind.BROKEN, "the embedded judge raised ZeroDivisionError: at Yes.")
    assert len(batch(Noncommittal(ASKED, "Yes."), Addresses(ASKED, ASKED))) == 2


def test_half_a_character_fails_its_question() -> None:
    """A verdict that quotes half a surrogate pair cannot be kept, so there is none."""
    (failure,) = answers_to(Statements(("The tower is \ud83d tall.",)))
    assert isinstance(failure, Failure)
    assert "surrogates not allowed" in failure.message


def test_the_fingerprint_names_the_model_file() -> None:
    """The fingerprint holds the SHA-256 of the model file, the rules and the splitter."""
    marks = EmbeddedJudge().fingerprint()
    assert len(str(marks["sha256"])) == 64
    assert {"rules", "splitter"} <= set(marks)


RUSSIAN = {"user_input": "Когда построена башня?", "retrieved_contexts": ["Башня построена в 1889 году."]}
GERMAN = {"user_input": "Wann wurde der Turm gebaut?", "retrieved_contexts": ["Der Turm wurde im Jahr 1889 gebaut."]}
ENGLISH = {"user_input": ASKED, "retrieved_contexts": [CONTEXT]}


def test_every_page_says_which_samples_it_does_not_read(tmp_path: Path) -> None:
    """The screen, the report and JSON count them for each metric, since a metric reads only some of the texts."""
    rows = [
        RUSSIAN | {"response": "В 1889 году."},
        ENGLISH | {"response": "Der Turm wurde im Jahr 1889 gebaut."},
        ENGLISH | {"response": "It was built in 1889.", "language": "nl"},
        ENGLISH | {"response": "It was built in 1889."},
        GERMAN | {"response": "1889", "language": "en"},
        {"user_input": " ", "retrieved_contexts": [], "response": "1889"},
    ]
    run = evaluate(
        rows, metrics=["context_relevance", "faithfulness"], out=tmp_path / "mixed", storage={"cache": False}
    )
    line = "4 rows are German, Dutch or Russian: the embedded judge compares only words there."
    wide = str(run_page(run, 400, full=True)), report_page(report_run(run))
    assert all(line in page for page in (" ".join(str(run).split()), *wide, run_markdown(run)))
    record = record_of(run)
    assert [each["sentence"] for each in record["caveats"]] == [line.removesuffix(".")]
    assert record["unread"]["faithfulness"] == {
        "judge": "embedded",
        "samples": 4,
        "first": ["1", "2", "3", "5"],
        "languages": {"de": 2, "nl": 1, "ru": 1},
    }


def test_nothing_is_said_where_it_reads_everything_or_answers_nothing(tmp_path: Path) -> None:
    """Not of English samples or texts without letters; not if another judge answers."""
    digits = {"user_input": "2 + 2?", "retrieved_contexts": ["4"]}
    english = evaluate(
        [ENGLISH, digits], metrics=["context_relevance"], out=tmp_path / "english", storage={"cache": False}
    )
    assert record_of(english)["unread"] == {}
    assert unread_check(["faithfulness"], JudgeRoles({"judge": ScriptedJudge.of([])})) is None


def test_what_it_cannot_judge_is_undefined(tmp_path: Path) -> None:
    """A bare yes, and whether a statement addresses the question, give no score but the reason and the way out."""
    rows = [ENGLISH | {"response": "The tower stands in Paris."}, ENGLISH | {"response": "Yes."}]
    metrics = ["faithfulness", "answer_relevancy"]
    run = evaluate(rows, metrics=metrics, out=tmp_path / "run", storage={"cache": False})
    found = {name: (each.scored, each.undefined, each.failed) for name, each in run.metrics.items()}
    assert found == {"faithfulness": (1, 1, 0), "answer_relevancy": (0, 2, 0)}
    reasons = {name: [*each.reasons] for name, each in run.metrics.items()}
    assert reasons["faithfulness"] == ["values and words leave them open"]
    assert reasons["answer_relevancy"] == [
        "the embedded judge cannot judge whether a statement addresses a question: use another judge"
    ]


def test_a_score_is_undefined_if_a_statement_is_open(tmp_path: Path) -> None:
    """The verdicts that were given are its evidence."""
    between = "A person might well think that the Eiffel Tower is about as tall as a hill or so."
    (answer,) = answers_to(Support(between, (CONTEXT,)))
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.NOT_JUDGED
    assert answer.probability is not None
    row = ENGLISH | {"response": f"The Eiffel Tower stands in Paris. {between}"}
    run = evaluate([row], metrics=["faithfulness"], out=tmp_path / "run", storage={"cache": False})
    (sample,) = run.samples
    outcome = sample.outcomes["faithfulness"]
    assert isinstance(outcome, Undefined)
    assert outcome.reason == "1 of 2 statements is not judged"
    assert [piece.text for piece in outcome.evidence] == ["The Eiffel Tower stands in Paris."]


@each_case(
    "question",
    [
        Relevance("When was the tower built?", ("The tower was built in 1889.", "It is tall.")),
        Usefulness("When was the tower built?", "In 1889.", ("The tower was built in 1889.",)),
        Sufficiency("When was the tower built?", ("The tower was built in 1889.",)),
        Support("The tower was built in 1889.", ("The tower was built in 1889.",)),
        Support("The tower was painted in 1890.", ("The tower was built in 1889.",)),
    ],
)
def test_metrics_average_its_probabilities(question: Question[Any]) -> None:
    """Each decision with a probability counts as that probability."""
    (answer,) = answers_to(question)
    assert isinstance(answer, DecisionVerdict)
    assert answer.averaged
    assert answer.credit == probability_of(answer)


@pytest.mark.parametrize(
    "question",
    [
        Addresses("I do not know.", "When was the tower built?"),
        Noncommittal("When was the tower built?", "I do not know."),
        Noncommittal("When was the tower built?", "The tower was built in 1889."),
    ],
)
def test_decisions_by_rule_are_counted(question: Question[Any]) -> None:
    """A refusal is certain, whatever the probability of its words."""
    (answer,) = answers_to(question)
    assert isinstance(answer, DecisionVerdict)
    assert not answer.averaged
    assert answer.credit == float(answer.positive)
