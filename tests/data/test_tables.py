"""Tables in texts: their forms, and what is none."""

import time

from each_case import each_case

from merilo.data.sentences import pieces, sentences

CELLS = ["Region: North; 2022: 120", "Region: North; 2023: 150", "Region: South; 2022: 90", "Region: South; 2023: 80"]


@each_case(
    "table",
    [
        "| Region | 2022 | 2023 |\n|:--|--:|--:|\n| North | 120 | 150 |\n| South | 90 | 80 |",
        "Region | 2022 | 2023\n--- | --- | ---\nNorth | 120 | 150\nSouth | 90 | 80",
        "Region,2022,2023\nNorth,120,150\nSouth,90,80",
        'Region;2022;2023\n"North";120;150\n"South";90;80',
        "Region\t2022\t2023\nNorth\t120\t150\nSouth\t90\t80",
        "Region   2022   2023\nNorth    120    150\nSouth    90     80",
    ],
)
def test_a_table_is_divided_into_cells(table: str) -> None:
    """Each cell has the name of its row and the header of its column, and the place of its sentence."""
    own = sentences(f"Revenue is rising.\n\n{table}\n\nAll in million euros.")
    read = pieces(own)
    assert [each.text for each in read if each.is_cell] == CELLS
    assert read[0] == (0, "Revenue is rising.", False)
    assert read[-1] == (len(own) - 1, "All in million euros.", False)
    assert all(each.text.split(": ")[2] in own[each.place] for each in read if each.is_cell)


@each_case(
    "text",
    [
        "It is 1,230 km\nand 2,400 m wide.",
        "Use a | b here.\n---\nAnd c | d.",
        "One sentence.  Another one.\nA third.  A fourth.",
        "Come, see\nGo, stay",
        "A title\n\n---\n\nA text",
        "12,15\n13,16",
    ],
)
def test_other_texts_are_unchanged(text: str) -> None:
    """Wrapped lines with numbers, rules and enumerations are no tables."""
    own = sentences(text)
    assert [each.text for each in pieces(own)] == list(own)


@each_case("line", ["a,b\n", "|a|b|\n", "a  b\n", "---\n", "|", "x" * 50 + ",1,1,1,1\n"])
def test_a_large_table_takes_linear_time(line: str) -> None:
    """A hundred thousand characters are read at once, and long names of rows do not multiply the text."""
    started = time.process_time()
    read = pieces((line * (100_000 // len(line)),))
    assert sum(len(each.text) for each in read) < 700_000
    assert time.process_time() - started < 2
