"""Rule-made changes of a statement: one fact made wrong, or the words changed and the meaning kept.

English only. All choices come from the random generator given, so equal seeds give equal texts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

_NUMBER: Final = re.compile(r"\d[\d,.]*\d|\d")
_NAME: Final = re.compile(r"(?<=[a-z,;] )[A-Z][\w'-]+(?: (?:of |the |de )?[A-Z][\w'-]+)*")
_WORD: Final = re.compile(r"[A-Za-z]+")
_NEGATED: Final = (
    (" is ", " is not "),
    (" was ", " was not "),
    (" are ", " are not "),
    (" were ", " were not "),
    (" has ", " has never "),
    (" had ", " had never "),
    (" can ", " cannot "),
    (" will ", " will not "),
    (" did not ", " did "),
    (" is not ", " is "),
    (" was not ", " was "),
)
_OPPOSITES: Final = dict(
    pair
    for first, second in (
        ("first", "last"), ("increase", "decrease"), ("increased", "decreased"), ("north", "south"), ("east", "west"),
        ("northern", "southern"), ("eastern", "western"), ("before", "after"), ("more", "less"), ("most", "fewest"),
        ("largest", "smallest"), ("oldest", "youngest"), ("early", "late"), ("born", "killed"), ("won", "lost"),
        ("male", "female"), ("older", "younger"), ("higher", "lower"), ("highest", "lowest"), ("same", "different"),
        ("best", "worst"), ("always", "never"), ("began", "ended"), ("begins", "ends"), ("left", "right"),
        ("husband", "brother"), ("father", "uncle"), ("mother", "aunt"), ("son", "nephew"), ("daughter", "niece"),
        ("major", "minor"), ("public", "private"), ("success", "failure"), ("successful", "failed"), ("open", "closed"),
        ("day", "week"), ("month", "year"), ("years", "months"), ("million", "billion"), ("hundred", "thousand"),
        ("black", "white"), ("hot", "cold"), ("long", "short"), ("strong", "weak"), ("upper", "lower"),
        ("supported", "opposed"), ("accepted", "rejected"), ("allowed", "forbade"), ("buy", "sell"), ("bought", "sold"),
    )
    for pair in ((first, second), (second, first))
)  # fmt: skip
_SMALL: Final = 100
_YEAR_DIGITS: Final = 4
_LEADS: Final = re.compile(r"^(However|Additionally|In addition|Furthermore|Moreover|Also|Then|Later|Meanwhile),? ")
_FILLERS: Final = re.compile(r"\b(very|also|then|later|subsequently|originally|currently|well-known|famous|quickly) ")
_REWORDED: Final = (
    (r"\bwas born in\b", "came into the world in"), (r"\blocated in\b", "situated in"), (r"\bbegan\b", "started"),
    (r"\bbecame\b", "turned into"), (r"\bused\b", "employed"), (r"\bwrote\b", "authored"), (r"\bmade\b", "created"),
    (r"\babout\b", "approximately"), (r"\bmany\b", "a lot of"), (r"\blarge\b", "big"), (r"\bfounded\b", "established"),
    (r"\bhelped\b", "assisted"), (r"\bshowed\b", "demonstrated"), (r"\bbecause\b", "since"), (r"\bhowever\b", "but"),
    (r"\bin order to\b", "to"), (r"\bdue to\b", "because of"), (r"\balmost\b", "nearly"), (r"\bended\b", "finished"),
)  # fmt: skip


def corrupted(statement: str, passage: str, names: Sequence[str], random: Random) -> str | None:
    """Return the statement with one fact changed; None if no rule applies.

    A number is changed or replaced by another number of the passage. A name is replaced by another of the passage
    (six times in ten) or of `names`, a word by its opposite, and a verb is negated.
    """
    rules: list[Callable[[], str | None]] = [
        lambda: _other_name(statement, passage, names, random),
        lambda: _other_number(statement, passage, random),
        lambda: _opposite(statement, random),
        lambda: _negated(statement, random),
    ]
    weights = [0.4, 0.3, 0.15, 0.15]
    while rules:
        (at,) = random.choices(range(len(rules)), weights)
        found = rules.pop(at)()
        del weights[at]
        if found is not None and found != statement:
            return found
    return None


def reworded(statement: str, random: Random) -> str:
    """Return the statement in other words if a rule applies, with the same meaning or a part of it."""
    text = re.sub(r"\s*\([^)]*\)", "", statement)
    text = _LEADS.sub("", text)
    if random.random() < 0.3:
        head, comma, _ = text.partition(", ")
        if comma and len(head.split()) >= 6:
            text = f"{head.rstrip('.')}."
    if random.random() < 0.5:
        text = _FILLERS.sub("", text)
        for pattern, other in random.sample(_REWORDED, len(_REWORDED)):
            text, count = re.subn(pattern, other, text, count=1)
            if count:
                break
    return text[:1].upper() + text[1:]


def names_in(passage: str) -> list[str]:
    """Return the names within sentences of the passage, in order."""
    return _NAME.findall(passage)


def _other_number(statement: str, passage: str, random: Random) -> str | None:
    spans = list(_NUMBER.finditer(statement))
    if not spans:
        return None
    span = random.choice(spans)
    old = span.group()
    others = sorted({number for number in _NUMBER.findall(passage) if len(number) == len(old) and number != old})
    if others and random.random() < 0.5:
        new = random.choice(others)
    elif not old.isdigit():
        return None if not others else statement[: span.start()] + random.choice(others) + statement[span.end() :]
    elif len(old) == _YEAR_DIGITS:
        new = str(int(old) + random.choice((-30, -12, -7, -5, -3, -2, -1, 1, 2, 3, 4, 6, 10, 20)))
    elif int(old) < _SMALL:
        new = str(max(0, int(old) + random.choice((-3, -2, -1, 1, 2, 3, 5, 10))))
    else:
        new = str(int(int(old) * random.choice((0.5, 0.8, 1.2, 1.5, 2))))
    return statement[: span.start()] + new + statement[span.end() :]


def _other_name(statement: str, passage: str, names: Sequence[str], random: Random) -> str | None:
    spans = list(_NAME.finditer(statement))
    if not spans:
        return None
    span = random.choice(spans)
    near = random.random() < 0.6
    own = sorted(set(names_in(passage))) if near else []
    others = [name for name in own if name not in statement and span.group() not in name]
    if not others:
        others = [name for name in random.choices(names, k=8) if name not in statement] if names else []
    return statement[: span.start()] + random.choice(others) + statement[span.end() :] if others else None


def _opposite(statement: str, random: Random) -> str | None:
    spans = [span for span in _WORD.finditer(statement) if span.group() in _OPPOSITES]
    if not spans:
        return None
    span = random.choice(spans)
    return statement[: span.start()] + _OPPOSITES[span.group()] + statement[span.end() :]


def _negated(statement: str, random: Random) -> str | None:
    fitting = [pair for pair in _NEGATED if pair[0] in statement]
    if not fitting:
        return None
    old, new = random.choice(fitting)
    return statement.replace(old, new, 1)
