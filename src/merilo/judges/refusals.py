"""Detection of text that states nothing: refusals to answer, courtesies, questions and introductions of a list."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Final

from merilo.cancellation import check_cancelled
from merilo.judges.words import stems

_REFUSING_SHARE: Final = 0.4
"""Fraction of a response's characters in clauses that refuse, from which it declines to answer."""
_CONCESSIONS: Final = ("while", "although", "though", "even if", "хотя", "пусть")
"""Openings of a clause that precedes an answer, even if the clause itself says what is not known."""
_CLAUSE_END: Final = re.compile(
    rf"[.,;:!?。！？，\n]+|\b(?:but|however|yet|но|однако)\b|(?=\b(?:{'|'.join(_CONCESSIONS)})\b)", re.IGNORECASE
)
_LEADS_IN: Final = re.compile(r"[:：][\s*_]*\Z")
_ENDS_QUESTION: Final = re.compile(r"(?:[?？؟\u037e]|[\u0370-\u03ff\u1f00-\u1fff][»\"”)]?;)[\s\"'»”)\]]*\Z")


def is_question(text: str) -> bool:
    """Return True if a text ends like a question, in any script."""
    return _ENDS_QUESTION.search(text[-40:]) is not None


def noncommittal(response: str) -> bool:
    """Return True if a response declines to answer: it consists mostly of phrases of refusal."""
    clauses = [clause.strip() for clause in _CLAUSE_END.split(response.replace("’", "'"))]
    refusing = sum(len(clause) for clause in clauses if _refuses(clause))
    return refusing > 0 and refusing >= _REFUSING_SHARE * sum(map(len, clauses))


def claims(sentence: str) -> bool:
    """Return True if a sentence makes a statement: not a question, courtesy, refusal or introduction of a list."""
    check_cancelled()
    plain = sentence.strip().replace("’", "'")
    if (
        not stems(sentence)
        or is_question(sentence)
        or _LEADS_IN.search(plain)
        or _pattern("courtesies").fullmatch(plain)
    ):
        return False
    return not noncommittal(sentence)


def _refuses(clause: str) -> bool:
    return not clause.lower().startswith(_CONCESSIONS) and _pattern("refusals").search(clause) is not None


@cache
def _pattern(name: str) -> re.Pattern[str]:
    patterns: list[str] = tomllib.loads(files("merilo.judges").joinpath("refusals.toml").read_text("utf-8"))[name]
    found = "|".join(f"(?:{each})" for each in patterns)
    return re.compile(rf"(?:{found})\W*" if name == "courtesies" else found, re.IGNORECASE)
