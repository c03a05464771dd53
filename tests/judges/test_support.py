"""Support verdicts of the embedded judge: what is copied, what differs, what is not judged, and the reason."""

import json
from collections import Counter
from pathlib import Path

from each_case import each_case

from merilo.data.sentences import sentences
from merilo.data.short_answers import stated
from merilo.judges.blended import BlendedModel, CannotJudge
from merilo.judges.copied import P_COPIED, excerpt, noncommittal
from merilo.judges.embedded_provider import RULES
from merilo.judging.kinds.contexts import Relevance, Support, SupportLabel, SupportVerdict

SESSION = "Users sign in once. The session expires after 4 hours. A supervisor may extend it."
VALVES = "The pump runs at 40 bar. The valve runs at 25 bar."


def verdict(statement: str, *contexts: str, language: str = "en") -> SupportVerdict:
    """What the judge answers."""
    found = RULES[Support](BlendedModel.load(), Support(statement, contexts, language=language))
    assert isinstance(found, SupportVerdict)
    return found


def judged(question: Support | Relevance) -> bool | None:
    """Whether the judge says yes; None if it cannot judge."""
    try:
        return RULES[type(question)](BlendedModel.load(), question).positive
    except CannotJudge:
        return None


@each_case(
    ("statement", "context"),
    [
        ("Steel.", "Materials:\n\n- Glass\n- Steel\n- Brick"),
        ("THE SESSION “expires”  after 4 hours", SESSION),
        ("What is it made of?\n\nGauge steel", "Gauge steel. It is old."),
        ("The pump runs at 40 bar. The valve runs at 25 bar.", VALVES),
        ("x = f(1)", "```\ny = 2\nx = f(1)\n```"),
    ],
)
def test_a_copied_sentence_is_supported(statement: str, context: str) -> None:
    """Whatever its length and the question, a whole sentence, item or line of a context is supported."""
    found = verdict(statement, "Bread is baked.", context)
    assert found.supported
    assert found.evidence == (1,)
    assert {at for at, _ in found.sentences} == {1}


@each_case("line", ["***", "- - -", "m) |", "…"])
def test_a_line_without_words_supports_nothing(line: str) -> None:
    """A rule or an empty cell is no copy of every statement."""
    found = verdict("The tower of Lund was built in 1712.", f"{line}\n\nThe tower of Lund was built in 1698.")
    assert not found.supported


def test_an_echo_of_the_question_supports_no_answer() -> None:
    """A context that repeats the question of a short answer is no evidence for it."""
    asked = "What is the Eiffel Tower made of"
    assert judged(Support(f"{asked}?\n\n{asked}", (f"{asked}. Bread is baked.",))) is None


@each_case(
    ("statement", "context"),
    [
        ("The trail is 1.5 km long.", "The trail is 1,500 m long."),
        ("The contract ends on 3 March 2024 at 12:00.", "The contract ends on March 3, 2024 at noon."),
        ("In der Region leben 1234567 Menschen.", "In der Region leben 1.234.567 Menschen."),
        ("票价是250万元。", "票价是2500000元。"),
        ("Lund | 990", "| Town | Founded |\n|---|---|\n| Lund | 990 |"),
    ],
)
def test_a_copy_is_found_in_any_form(statement: str, context: str) -> None:
    """Numbers, dates and rows of a table are the same however they are written."""
    assert verdict(statement, context).probability == P_COPIED


@each_case(
    ("statement", "supported"),
    [
        ("In 2023 the North region had 80 and the South region had 150.", None),
        ("In 2022 the North region had 150.", None),
        ("In 2022 the North region had 175.", False),
        ("The South region had 80 in 2023.", True),
    ],
)
def test_a_value_of_a_table_belongs_to_its_row_and_column(statement: str, supported: bool | None) -> None:
    """A value in another row or column leaves a statement open; a value that the table lacks does not support it."""
    table = "| Region | 2022 | 2023 |\n|---|---|---|\n| North | 120 | 150 |\n| South | 90 | 80 |"
    assert judged(Support(statement, (table,))) is supported


def test_exchanged_names_are_not_judged() -> None:
    """The words are those of the context, but another one bought the other."""
    bought = "In 2019 the firm {} bought its rival {} for 40 million dollars after long talks."
    assert judged(Support(bought.format("Beta", "Alpha"), (bought.format("Alpha", "Beta"),))) is None


@each_case(
    ("statement", "context", "missing"),
    [
        ("The session expires after 24 hours.", SESSION, "24 hours"),
        ("The tower of Lund was built in 1698.", "The tower of Lund was built in 1712.", "1698"),
        ("The fee is 30 euros a year.", "The fee is 30 dollars.", "30 euros"),
    ],
)
def test_a_value_that_no_context_has_is_named_and_not_supported(statement: str, context: str, missing: str) -> None:
    """The reason quotes the value, and then the closest sentence."""
    found = verdict(statement, context)
    assert not found.supported
    assert found.reason.startswith(f"No passage has '{missing}'. Closest: ")
    assert found.probability is not None
    assert found.probability < 0.5


@each_case(
    ("statement", "context"),
    [
        ("The pump runs at 25 bar.", VALVES),
        ("The price rose by 5 % in May.", "The price fell by 5 percent in May."),
        ("The files can be restored.", "The files cannot be restored."),
        ("Time that is not used is carried over.", "Time that is not used is not carried over."),
        ("It is false that the tower of Lund was built in 1712.", "The tower of Lund was built in 1712."),
        ("Lund beat Visby in the final.", "Visby beat Lund in the final."),
        ("Der Turm wurde verkauft.", "Der Turm wurde nicht verkauft, sondern an die Stadt vermietet."),
        ("The Halden R210 has six ports at the rear.", "The Halden R310 has six ports at the rear."),
    ],
)
def test_a_difference_of_other_kinds_leaves_a_statement_open(statement: str, context: str) -> None:
    """A value beside other words, a negation, an opposite, an order and a name are neither support nor its absence."""
    assert judged(Support(statement, (context,))) is None


@each_case(
    ("statement", "context"),
    [
        ("The office opened in 1907.", "The office opened in 1907, and it has two doors."),
        ("It costs £390 a year.", "The membership costs 390 pounds per year."),
        ("The oven needs 180 °C.", "The oven needs 180 degrees Celsius."),
        ("The contract ends on May 3.", "Note: the contract ends on 3 May, as agreed."),
        ("The Hudson is a 315-mile river.", "The Hudson River is a 315 - mile ( 507 km ) river in New York."),
    ],
)
def test_equal_values_beside_the_same_words_are_supported(statement: str, context: str) -> None:
    """Values are compared as values, in whatever unit and order they are written."""
    assert verdict(statement, context).supported


def test_an_answer_about_one_product_is_not_supported_by_the_manual_of_another() -> None:
    """The subject of the question must be named where the statement is found."""
    manual = "Halden R310 - Menu. Press the Reset button for ten seconds to restore the factory settings."
    statement = "Press the Reset button for ten seconds to restore the factory settings."
    assert judged(Support(statement, (manual,), user_input="How do I reset the R310?"))
    other = "Press the Reset button for ten seconds, then restore the factory settings."
    assert judged(Support(other, (manual,), user_input="How do I reset the R210?")) is None


@each_case(
    ("statement", "context", "language"),
    [
        ("Билет стоит 530 рублей.", "Билет стоит 350 рублей.", "ru"),
        ("票价是400元。", "票价是250元。", "zh"),
        ("टिकट 400 रुपये का है।", "टिकट २५० रुपये का है।", "hi"),
    ],
)
def test_a_number_that_is_nowhere_is_not_supported_in_any_language(statement: str, context: str, language: str) -> None:
    """Digits are read in every script; what else is stated in another language is not judged."""
    found = verdict(statement, context, language=language)
    assert not found.supported
    assert found.reason.startswith("No passage has ")
    assert judged(Support("Погода была очень хорошая.", (context,), language=language)) is None


def rows(name: str) -> list[dict[str, str]]:
    """Labelled rows of a file beside this one."""
    return [json.loads(line) for line in Path(__file__).with_name(name).read_text("utf-8").splitlines()]


def test_short_answers_are_judged_by_their_question() -> None:
    """Of 80 true answers at least 70 are supported, of 80 with another value none, of 44 pairs none both."""
    yes: Counter[str] = Counter()
    accepted: set[str] = set()
    for row in rows("short_answers.jsonl"):
        statement = stated(row["answer"], row["question"], "en") or row["answer"]
        if judged(Support(statement, (row["context"],), user_input=row["question"])):
            yes[f"{row['kind']} {row['label']}"] += 1
            accepted.add(row["id"])
    assert yes["short 1"] >= 70
    assert yes["short 0"] == 0
    assert not any(f"b{number:02}-1" in accepted and f"b{number:02}-0" in accepted for number in range(1, 45))


def test_verdicts_that_are_given_are_mostly_right() -> None:
    """On rows written before any verdict was seen: nine of ten for support, of a fifth of them, and for relevance."""
    found: dict[str, list[tuple[bool | None, bool]]] = {"support": [], "relevance": []}
    for row in rows("judged_rows.jsonl"):
        texts = tuple(row["contexts"])
        is_support = row["kind"] == "support"
        asked = Support(row["text"], texts) if is_support else Relevance(row["text"], tuple(sentences(texts[0])))
        found[row["kind"]].append((judged(asked), bool(row["label"])))
    right = {kind: [one == other for one, other in own if one is not None] for kind, own in found.items()}
    assert sum(right["support"]) >= 0.9 * len(right["support"])
    assert len(right["support"]) >= 0.2 * len(found["support"])
    assert sum(right["relevance"]) >= 0.9 * len(right["relevance"]) == 0.9 * len(found["relevance"])


@each_case(
    ("statement", "context"),
    [
        ("The mill by the river was opened by two broth-\ners.", "The mill by the river was opened by two brothers."),
        (
            "The mill by the river was opened by two brothers.",
            "The mill by the ri-\n  ver was opened by two broth-\ners.",
        ),
        ("The mill is a well-known house by the river.", "The mill is a well-\nknown house by the river."),
        ("The mill is a wellknown house by the river.", "The mill is a well-\nknown house by the river."),
        ("The chapel of Saint-Denis was built in 1820.", "The chapel of Saint-\nDenis was built in 1820."),
    ],
)
def test_a_word_broken_at_a_line_end_is_the_same_word(statement: str, context: str) -> None:
    """A hyphen at a line end counts as part of the word only if the word is written so elsewhere, or before a name."""
    assert verdict(statement, context).probability == P_COPIED


def test_the_reason_names_the_sentence() -> None:
    """What was found, place and sentence; the context only if there are several."""
    found = verdict("The session expires after 4 hours.", "Bread is baked.", SESSION)
    assert found.reason == "Copied from context 2, sentence 2: 'The session expires after 4 hours.'."
    assert found.sentences == ((1, 1),)
    single = verdict("The session expires after 24 hours.", SESSION)
    assert "Closest: sentence 2: 'The session expires after 4 hours.'." in single.reason
    assert single.sentences == ((0, 1),)
    assert single.evidence == ()


def test_a_verdict_of_an_earlier_version_is_read() -> None:
    """The positions are optional in stored verdicts."""
    stored = SupportVerdict(SupportLabel.SUPPORTED, (0,), sentences=((0, 2),)).to_fields()
    assert stored.pop("sentences") == [[0, 2]]
    assert SupportVerdict.from_json(json.dumps(stored)) == SupportVerdict(SupportLabel.SUPPORTED, (0,))


def test_a_long_sentence_is_shortened_around_the_words_of_the_statement() -> None:
    """The words in common are quoted, not the beginning."""
    filler = "much else was written about other things in that long year, " * 6
    found = excerpt(f"{filler}the session expires after 4 hours, {filler}", "The session expires after 24 hours.")
    assert "session expires after 4 hours" in found
    assert found.startswith("... ")
    assert len(found) < 180


@each_case(
    ("response", "expected"),
    [
        ("The fee is 21 euros. The documents do not say where to pay.", False),
        ("The documents do not say where to pay.", True),
        ("The documents do not say where to pay. Let me know if you need anything else!", True),
        ("Where do I pay? I do not know.", True),
        ("The documents do not say where to pay. They only give opening hours.", True),
    ],
)
def test_a_caveat_after_an_answer_does_not_decline(response: str, expected: bool) -> None:
    """What is refused first is the question; courtesies and questions do not count."""
    assert noncommittal(response) is expected
