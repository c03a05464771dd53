"""Support verdicts of the embedded judge as citations: the sentence, the differences, the reason."""

from __future__ import annotations

import json

import pytest
from each_case import each_case

from merilo.data.language import detect_language
from merilo.data.short_answers import stated
from merilo.judges.blended import BlendedModel
from merilo.judges.embedded_provider import RULES
from merilo.judges.lexical_units import read_sentences, units_of
from merilo.judges.reasons import excerpt
from merilo.judges.support_evidence import P_COPIED
from merilo.judges.word_bags import asks_time, is_word_bag, states_time
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.sufficiency import Sufficiency
from merilo.judging.kinds.support import Support, SupportLabel, SupportVerdict

SESSION = "Users sign in once. The session expires after 4 hours. A supervisor may extend it."
TABLE = "# Towers\n\n| Town | Built | Closed |\n|---|---|---|\n| Lund | 1712 | 1890 |\n| Visby | 1698 | 1850 |"
VALVES = "The pump runs at 40 bar. The valve runs at 25 bar."


def verdict(statement: str, *contexts: str, language: str = "en") -> SupportVerdict:
    """What the judge answers."""
    found = RULES[Support](BlendedModel.load(), Support(statement, contexts, language=language))
    assert isinstance(found, SupportVerdict)
    return found


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


def test_an_echo_of_the_question_supports_no_answer() -> None:
    """A context that repeats the question of a short answer is no evidence for it."""
    asked = "What is the Eiffel Tower made of"
    assert not verdict(f"{asked}?\n\n{asked}", f"{asked}. Bread is baked.").supported


@each_case(
    ("statement", "context", "differs", "language"),
    [
        ("The session expires after 24 hours.", SESSION, "24 hours / 4 hours", "en"),
        ("The pump runs at 25 bar.", VALVES, "25 bar / 40 bar", "en"),
        ("The tower of Lund was built in 1698.", "The tower of Lund was built in 1712.", "1698 / 1712", "en"),
        ("The tower of Visby was built in 1712.", "The tower of Lund was built in 1712.", "Visby / Lund", "en"),
        ("The price rose by 5 % in May.", "The price fell by 5 percent in May.", "rose / fell", "en"),
        ("The files can be restored.", "The files cannot be restored.", "no negation / cannot", "en"),
        ("The Visby tower was built in 1712.", TABLE, "1712 / 1698", "en"),
        ("The Visby tower was closed in 1698.", TABLE, "1698 / 1850", "en"),
        ("Der Umsatz sank um 8 Prozent.", "Der Umsatz stieg um 8 Prozent.", "sank / stieg", "de"),
        ("Билет стоит 530 рублей.", "Билет стоит 350 рублей.", "530 рублей / 350 рублей", "ru"),
    ],
)
def test_another_value_is_named_and_not_supported(statement: str, context: str, differs: str, language: str) -> None:
    """The reason names the slot of the statement and that of its closest sentence."""
    found = verdict(statement, context, language=language)
    assert not found.supported
    assert found.reason.endswith(f"Differs in: {differs}.")
    assert found.probability is not None
    assert found.probability < 0.5


@each_case(
    ("statement", "context"),
    [
        ("The session expires after 240 minutes.", SESSION),
        ("The tower in Visby was built in 1698.", TABLE),
        ("The price fell by 5 % in May.", "The price fell by five percent in May."),
        ("The valve runs at 25 bar.", VALVES),
    ],
)
def test_the_same_value_in_another_form_is_supported(statement: str, context: str) -> None:
    """Neither the form of a number nor a sentence about something else makes a difference."""
    found = verdict(statement, context)
    assert found.supported
    assert "Differs in" not in found.reason


KEPT = "Backups are kept for 21 days."
RESULTS = (("year", "revenue", "profit"), ("2022", "10", "2"), ("2023", "14", "3"))


def answered(asked: str, answer: str, context: str) -> SupportVerdict:
    """What the judge answers about the statement of a response, in the language that its script suggests."""
    language = detect_language(asked)
    return verdict(stated(answer, asked, language) or answer, context, language=language)


@each_case(
    ("asked", "context", "same", "changed"),
    [
        ("How long are backups kept?", KEPT, "21 days.", "400 days."),
        ("How long are backups kept?", KEPT, "Three weeks.", "Three months."),
        ("How long are backups kept?", KEPT, "For 21 days.", "02:30"),
        ("How long are backups kept?", KEPT, "Twenty-one days.", "Until the end of days."),
        ("What is the limit?", "The limit is 16 MiB. The cache holds 49 MiB.", "16 MiB.", "49 MiB."),
        ("What is the limit?", "The upload limit is 16 MiB.", "The limit is 16 MiB.", "The limit is 16 GiB."),
        ("At what temperature does it melt?", "The alloy melts at -40 °C.", "-40 °C.", "40 °C."),
        ("When was it written?", "It was written by Anna Berg in May 1999.", "In May 1999.", "In May 1998."),
        ("Who wrote it?", "It was written by Anna Berg in May 1999.", "Anna Berg.", "Anna Lind."),
        ("What did the water do?", "The water level rose overnight.", "It rose.", "It fell."),
        ("May dogs enter?", "Dogs may not enter at any time.", "Dogs may not enter.", "Dogs may enter."),
        ("How often is it cleaned?", "The tank is cleaned twice a week.", "Twice a week.", "Twice a month."),
        ("Wie lange dauert es?", "Der Umbau dauert 21 Tage.", "21 Tage.", "400 Tage."),
        ("Quand ouvre le refuge ?", "Le refuge ouvre le 15 juin.", "Le 15 juin.", "Le 15 juillet."),
        ("¿Cuánto cuesta el abono?", "El abono cuesta 35 euros.", "Cuesta 35 euros.", "Cuesta 53 euros."),
        ("Какова длина моста?", "Длина моста 270 метров.", "270 метров.", "270 километров."),
        ("票价多少？", "票价是二百五十元。", "票价是250元。", "票价是400元。"),
        ("水位怎么样了？", "昨夜水位上升了。", "水位上升了。", "水位下降了。"),
        ("定員は何人ですか？", "定員は４５人です。", "45人です。", "54人です。"),
        ("駐車できますか？", "校庭には駐車できません。", "駐車できません。", "駐車できます。"),
        ("كم ثمن التذكرة؟", "ثمن التذكرة ٢٥٠ ريالا.", "250 ريالا.", "400 ريالا."),
        ("टिकट कितने का है?", "टिकट २५० रुपये का है।", "250 रुपये।", "400 रुपये।"),
        ("다리의 길이는 얼마입니까?", "다리의 길이는 270미터입니다.", "270미터입니다.", "270킬로미터입니다."),
    ],
)
def test_a_short_answer_is_supported_only_with_the_slots_of_its_sentence(
    asked: str, context: str, same: str, changed: str
) -> None:
    """Numbers, units, dates, names, negation and direction count in every script, and so do its words."""
    assert answered(asked, same, context).supported
    assert not answered(asked, changed, context).supported


def test_the_reason_of_a_short_answer_states_what_was_compared() -> None:
    """It names a slot that differs, or one that is not there, and never says that a wrong answer occurs."""
    asked = "How long are backups kept?"
    assert "Differs in: 400 days / 21 days." in answered(asked, "400 days.", KEPT).reason
    assert "Not in it: 2:30." in answered(asked, "02:30", KEPT).reason
    assert answered(asked, "21 days.", KEPT).reason.endswith("most of its words are there.")


@pytest.mark.parametrize(("answer", "context"), [("Yes.", "The pool is not heated."), ("No.", "The pool is heated.")])
def test_a_bare_yes_or_no_against_the_negation_of_its_sentence_is_not_supported(answer: str, context: str) -> None:
    """A sentence that denies what is asked supports no yes, and one that says it supports no no."""
    assert not answered("Is the pool heated?", answer, context).supported


@each_case(
    "table",
    [
        "\n".join(f"| {' | '.join(row)} |" for row in (RESULTS[0], ("---",) * 3, *RESULTS[1:])),
        "\n".join("".join(cell.ljust(10) for cell in row) for row in RESULTS),
        *("\n".join(map(each.join, RESULTS)) for each in (" ", "\t", ",", ";")),
        "Results:\n" + "\n".join(map(" ".join, RESULTS)),
        "\n".join(
            f"| {' | '.join(row)} |" for row in (("", "2022", "2023"), *zip(*(row[1:] for row in RESULTS), strict=True))
        ),
    ],
)
@each_case(
    ("asked", "answer", "supported"),
    [
        ("What was profit in 2023?", "Profit in 2023 was 3.", True),
        ("What was profit in 2023?", "Revenue in 2023 was 3.", False),
        ("What was revenue in 2023?", "14.", True),
        ("What was revenue in 2023?", "3.", False),
        ("What was revenue in 2022?", "14.", False),
        ("How was it?", "In 2023 the company made a revenue of 14 and a profit of 3.", True),
        ("How was it?", "In 2023 the company made a revenue of 3 and a profit of 14.", False),
        ("How was it?", "The profit of the company in the year 2022 was 3 in total.", False),
    ],
)
def test_a_value_counts_only_in_the_row_and_below_the_header_that_are_named(
    table: str, asked: str, answer: str, supported: bool
) -> None:
    """A table in any form is read with its header cells, by the statement or by the question that it answers."""
    assert answered(asked, answer, table).supported is supported


@pytest.mark.parametrize(
    ("answer", "supported"), [("The weight is 2 kg.", True), ("The weight is 9.", False), ("The power is 9 W.", True)]
)
def test_a_value_of_another_field_is_not_supported(answer: str, supported: bool) -> None:
    """Lines with a name and a value are read as the cells of a row."""
    assert answered("What is known?", answer, "Weight: 2 kg\nPower: 9 W\nPrice: 40 euros").supported is supported


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
    """Probability, threshold, place and sentence; the context only if there are several."""
    found = verdict("The session expires after 4 hours.", "Bread is baked.", SESSION)
    where = "by context 2, sentence 2: 'The session expires after 4 hours.'."
    assert found.reason == f"Supported (0.99; threshold 0.48) {where}"
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


def test_rows_items_and_fields_are_read_with_what_names_them() -> None:
    """A row has its headers, an item its lead-in, and each line of fields is a unit."""
    row = read_sentences(("| Town | Built |", "|---|---|\n| Lund | 1712 |", "| Visby | 1698 |"))
    assert row[1:] == ("Town: Lund; Built: 1712", "Town: Visby; Built: 1698")
    assert read_sentences(("To reset it:", "- Hold the button."))[1] == "To reset it: Hold the button."
    (lines,) = read_sentences(("Town,Built\nLund,1712\nVisby,1698",))
    assert list(units_of(lines))[1:] == ["Town: Lund; Built: 1712", "Town: Visby; Built: 1698"]
    assert list(units_of("Weight: 2 kg\nPower: 9 W")) == ["Weight: 2 kg", "Power: 9 W"]
    assert read_sentences(("One, two, three.", "Four, five.")) == ("One, two, three.", "Four, five.")


@pytest.mark.parametrize(
    "text", ["harbour tower Lund built 1712 1713 1714", "in the of built was the by a tower and Lund the in 1712 was."]
)
def test_words_in_a_row_are_no_evidence(text: str) -> None:
    """A bag of words is not relevant, not sufficient, and supports nothing but itself."""
    model = BlendedModel.load()
    asked = "When was the harbour tower of Lund built?"
    assert is_word_bag(text)
    assert not RULES[Relevance](model, Relevance(asked, (text,))).positive
    assert not RULES[Sufficiency](model, Sufficiency(asked, (text,))).positive
    assert not verdict("The harbour tower of Lund was built in 1712.", text).supported


@pytest.mark.parametrize(
    "text",
    ["Harbour Tower Museum Lund Old Town", "Башня построена из кирпича местными мастерами города.", "It is old."],
)
def test_titles_and_sentences_are_no_bags(text: str) -> None:
    """A title has capitals, and a sentence has grammar or an end."""
    assert not is_word_bag(text)


def test_a_question_about_a_time_needs_one() -> None:
    """A context on the subject without any time is not sufficient; one with a time may be."""
    model = BlendedModel.load()
    asked = "When was the harbour tower of Lund built?"
    without = "The harbour tower of Lund was built by Marta Holm. It belongs to the town and is made of brick."
    dated = "The harbour tower of Lund was built in 1712 by Marta Holm. It belongs to the town."
    assert asks_time(asked)
    assert not states_time(without)
    assert not RULES[Sufficiency](model, Sufficiency(asked, (without,))).positive
    assert RULES[Sufficiency](model, Sufficiency(asked, (dated,))).positive
    assert not asks_time("What happens when the tower is closed?")
