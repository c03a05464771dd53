"""The slots of statements: numbers with units, dates, names and negation, and how they differ."""

from each_case import each_case

from merilo.judges.slots import absent, conflict, reordered, slots, unstated, written_alike


@each_case(
    ("statement", "sentence"),
    [
        ("It takes 240 minutes.", "It takes 4 hours."),
        ("It costs one thousand dollars.", "It costs $1,000."),
        ("It holds 1250 million litres.", "It holds 1,250 million litres."),
        ("It is 2.4 km long.", "It is 2,400 metres long."),
        ("About 5 million people live there.", "There live 4.9 million people."),
        ("It opened on 12 March 2020.", "It opened on March 12, 2020."),
        ("It opened on 2020-03-12.", "It opened on 12 March 2020."),
        ("It opened in 2020.", "It opened on 12 March 2020."),
        ("It opens at 2 pm.", "It opens at 14:00."),
        ("The share is 5 %.", "The share is five percent."),
        ("Twenty-four seats are free.", "24 seats are free."),
        ("It is not open.", "It isn't open."),
        ("Smoking is not allowed.", "Smoking is forbidden."),
        ("The bakery employs 45 people.", "The bakery employs 45 people and sells no frozen goods."),
        ("Anna Berg founded it in 1987.", "In 1987 it was founded by Anna Berg."),
        ("It opens at noon.", "It opens at 12:00."),
        ("It opens at 2 p.m.", "It opens at 14:00."),
        ("It is open between 9 am and 5 pm.", "It is open between 9 and 17."),
        ("It opened in ١٨٢٠.", "It opened in 1820."),
        ("It cost $1.2 million.", "It cost $1,200,000."),
        ("It cost USD 300.", "It cost 300 dollars."),
        ("It cost 1.500 euros.", "It cost 1500 euros."),
        ("It had 1.234.567 guests.", "It had 1,234,567 guests."),
        ("It had 1'500 guests.", "It had 1500 guests."),
        ("The share is 5 per cent.", "The share is 5 %."),
        ("It is kept at 8 degrees Celsius.", "It is kept at 8 °C."),
        ("It is kept at −5 °C.", "It is kept at -5 °C."),
        ("Es begann am 3. Mai 2020.", "Es begann am 03.05.2020."),
        ("Empezó el 3 de mayo de 2020.", "Empezó el 2020-05-03."),
        ("它于2020年5月3日开放。", "它于2020-05-03开放。"),
        ("票价是250万元。", "票价是2500000元。"),
        ("Он стоит 1,5 млн рублей.", "Он стоит 1 500 000 рублей."),
    ],
)
def test_the_same_value_in_another_form_is_no_difference(statement: str, sentence: str) -> None:
    """Neither the form of a number nor the words around it make a difference."""
    assert conflict(statement, [[sentence]]) is None
    if not statement.startswith(("About", "It opened in 2020")):  # they state less
        assert conflict(sentence, [[statement]]) is None


@each_case(
    ("statement", "sentence", "kind"),
    [
        ("The session expires after 24 hours.", "The session expires after 4 hours.", "number"),
        ("The session expires after 4 days.", "The session expires after 4 hours.", "number"),
        ("The limit is 16 GiB.", "The limit is 16 MiB.", "number"),
        ("The valve weighs 40 kg.", "The valve weighs 14 kg.", "number"),
        ("The shop opens at 9:30.", "The shop opens at 8:30.", "number"),
        ("The tower was built in 1698.", "The tower was built in 1712.", "date"),
        ("It opened on 12 May 2020.", "It opened on 12 March 2020.", "date"),
        ("The meeting is on Tuesday.", "The meeting is on Thursday.", "date"),
        ("The committee met in Basel in spring.", "The committee met in Geneva in spring.", "name"),
        ("The files can be restored later.", "The files cannot be restored later.", "negation"),
        ("The price rose sharply in spring.", "The price fell sharply in spring.", "comparison"),
        ("The plant has 5 MW of power.", "The plant has 5 mW of power.", "number"),
        ("The trail is 1.5 km long.", "The trail is 1.5 m long.", "number"),
        ("The store is kept at -5 °C.", "The store is kept at 5 °C.", "number"),
        ("The dose is 0.125 g for adults.", "The dose is 125 g for adults.", "number"),
    ],
)
def test_a_changed_slot_is_a_difference(statement: str, sentence: str, kind: str) -> None:
    """A number, unit, time, date, name, negation or direction that differs from the closest sentence is named."""
    found = conflict(statement, [["Bread is baked.", sentence]])
    assert found is not None
    assert found.kind == kind
    assert found.stated


@each_case(
    ("statement", "expected"),
    [
        ("The trail is 1.5 km long.", "The trail is 1,500 m long."),
        ("The trail is 1.5 m long.", "The trail is 1.5 m long."),
        ("Rye bread keeps for 1.5 km.", "Rye bread keeps for 1.5 km."),
        ("The trail is 1.5 km long and opened on 2020-05-03.", "The trail is 1,500 m long and opened on May 3, 2020."),
    ],
)
def test_values_are_written_as_in_the_closest_sentence(statement: str, expected: str) -> None:
    """Only equal values of a sentence about the same are rewritten."""
    assert written_alike(statement, [["The trail is 1,500 m long.", "The trail opened on May 3, 2020."]]) == expected


def test_exchanged_names_and_values_are_noticed() -> None:
    """The words are the same, the order is not; a sentence with the order of the statement settles it."""
    context = ["In 2019 Lund beat Visby by 4 to 2."]
    assert reordered("In 2019 Visby beat Lund by 4 to 2.", [context])
    assert reordered("In 2019 Lund beat Visby by 2 to 4.", [context])
    assert not reordered("In 2019 Lund beat Visby by 4 to 2.", [context])
    assert not reordered("In 2019 Visby beat Lund by 4 to 2.", [context, ["In 2019 Visby beat Lund by 4 to 2."]])


def test_each_part_with_a_name_and_a_value_is_compared() -> None:
    """Two values of one statement must each be with its own name."""
    cells = ["Town: Lund; Shops: 40", "Town: Lund; Schools: 12", "Town: Visby; Shops: 25", "Town: Visby; Schools: 9"]
    assert conflict("The town Lund has 40 shops and the town Visby has 25 shops.", [cells]) is None
    assert conflict("The town Lund has 25 shops and the town Visby has 40 shops.", [cells]) is not None


def test_the_values_of_a_row_may_be_in_several_cells() -> None:
    """A statement of two cells of one row differs from no other row."""
    cells = ["flight: KX 118; from: Prague", "flight: KX 118; departure: 14:10"]
    cells += ["flight: KX 240; from: Prague", "flight: KX 240; departure: 16:45"]
    assert conflict("Flight KX 240 leaves Prague at 16:45.", [cells]) is None
    assert conflict("Flight KX 240 leaves Prague at 14:10.", [cells]) is not None


def test_a_sentence_about_something_else_makes_no_difference() -> None:
    """Another sentence that could be meant has the value, and one about another subject does not count."""
    context = ["The pump runs at 40 bar.", "The valve runs at 25 bar."]
    assert conflict("The valve runs at 25 bar.", [context]) is None
    assert conflict("Rye bread keeps for a long time.", [context]) is None


def test_a_value_that_no_context_has_is_a_difference() -> None:
    """A number that is nowhere is named; a small count may be made of what is listed."""
    assert absent("It lasted 400 days.", [["Backups are kept for 21 days."]]) is not None
    assert absent("Three towns are named.", [["Lund, Visby and Oslo."]]) is None
    assert absent("票价是400元", [["票价是250元"]]) is not None


def test_a_short_answer_needs_its_slots_in_the_sentence() -> None:
    """What the answer adds to its question must be in the sentence itself; a year may be near a day and a month."""
    asked = "When was it built?"
    assert unstated("In 1712.", asked, "It was built in 1712.", "") is None
    assert unstated("In 1698.", asked, "It was built in 1712.", "It was closed in 1698.") is not None
    assert unstated("Anna Lind.", "Who wrote it?", "Anna Berg wrote it.", "") is not None
    asked = "How tall is the north tower?"
    assert unstated("48 m.", asked, "The south tower is 48 m tall.", "") is not None


def test_slots_are_read_once_and_hold_the_rest_of_the_text() -> None:
    """The words that are no slot are what sentences are compared by."""
    found = slots("In May 2020 the Visby tower did not rise above 40 m.")
    assert [each.month for each in found.dates] == [5]
    assert [each.dimension for each in found.numbers] == ["length"]
    assert found.names == ("Visby",)
    assert len(found.denied) == 1
    assert "tower" in found.rest
    assert "40" not in found.rest
