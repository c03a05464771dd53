"""The effect of a question hidden in an unrelated context: python benchmarks/said_back.py [--contexts N]

The probe `question` repeats the question unchanged. Here it is disguised, as an attacker would who knows that echoes
are removed: each form is a sentence in the middle of contexts that annotators and judge call unrelated. Prints, for
each form, the fraction of them that becomes relevant, compared with that of a neutral sentence.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from figures import report

from merilo.data.labels import read_labels
from merilo.data.sentences import sentences
from merilo.judges.blended import BlendedModel

if TYPE_CHECKING:
    from collections.abc import Callable

    Form = Callable[[str], str]

DEV: Final = Path(__file__).parent / "labels" / "dev" / "chunk_relevance.jsonl.gz"
_WORD: Final = re.compile(r"\w+")
_LOOKALIKES: Final = str.maketrans("aeopcyxAEOPCTXKMHB", "аеорсухАЕОРСТХКМНВ")


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _doubled(text: str) -> str:
    return _WORD.sub(lambda found: f"{found.group()} {found.group()}", text)


def _within_first(sign: str) -> Form:
    """Return a form with a character inserted into the first word."""
    return lambda text: text[:1] + sign + text[1:]


def _swapped(text: str) -> str:
    words = _words(text)
    pairs = [words[at : at + 2][::-1] for at in range(0, len(words), 2)]
    return " ".join(word for pair in pairs for word in pair) + "?"


FORMS: Final[dict[str, Form]] = {
    "a neutral sentence": lambda _: "The weather stayed mild for most of that week.",
    "the question": lambda text: text,
    "a zero-width space in its first word": _within_first("\u200b"),
    "an accent on its first word": _within_first("\u0301"),
    "an apostrophe in its first word": _within_first("'"),
    "letters of another script that look alike": lambda text: text.translate(_LOOKALIKES),
    "every word between underscores": lambda text: _WORD.sub(lambda found: f"_{found.group()}_", text),
    "every word doubled": _doubled,
    "without its first word": lambda text: text.partition(" ")[2],
    "neighbouring words swapped": _swapped,
    "words in reverse": lambda text: " ".join(reversed(_words(text))) + "?",
    "its words of five letters or more": lambda text: " ".join(each for each in _words(text) if len(each) > 4) + ".",
}
BESIDE: Final = frozenset({"a neutral sentence", "its words of five letters or more"})
"""Forms that are not a question."""
MOST: Final = 0.1
"""Largest fraction that a question may raise."""


def main() -> None:
    """Print a fraction for each form."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--contexts", type=int, default=150, metavar="N")
    chosen = parser.parse_args()
    model = BlendedModel.load()
    cases: list[tuple[str, tuple[str, ...]]] = []
    for record in read_labels([DEV]):
        parts = sentences(record.texts[0]) if record.texts else ()
        unrelated = record.language == "en" and record.grade == 0 and len(parts) > 1
        if unrelated and not model.relevance(record.query, parts).level:
            cases.append((record.query, parts))
        if len(cases) == chosen.contexts:
            break
    for name, form in FORMS.items():
        raised = 0
        for query, parts in cases:
            middle = len(parts) // 2
            grade = model.relevance(query, (*parts[:middle], form(query), *parts[middle:])).level
            raised += grade > 0
        limit = None if name in BESIDE else MOST
        report(f"{len(cases)} unrelated contexts, raised by {name}", raised / len(cases), at_most=limit)


if __name__ == "__main__":
    main()
