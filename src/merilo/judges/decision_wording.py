"""Wordings: how a decision model is asked each kind of question. One file is one kind in one language.

`rubrics/<language>/<kind>.d<N>.toml` has the type of the answer, the question, its options with the situation in which
each is right, and the question for the evidence. `{context}` is the only thing that is filled in: a name that merilo
made. Texts of samples are never part of a wording. A released file is never edited (`rubrics.lock`).
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from merilo.errors import RubricError
from merilo.judging.json_types import as_object
from merilo.judging.rubric import FALLBACK_LANGUAGE
from merilo.providers.decision_request import AnswerType, DecisionQuestion, Option

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION: Final = 1
"""Version of the wordings."""
NONE: Final = "none"
"""The option of a question for evidence that names none."""
_DIGITS: Final = 16
_TAG: Final = re.compile("[a-z]{2,8}")


@dataclass(frozen=True)
class Wording:
    """The wording of one kind of question in one language."""

    source: str
    """The whole text of its file."""
    type: AnswerType
    text: str
    options: tuple[Option, ...]
    evidence: str = ""
    """The question for the evidence; empty for kinds without."""
    none: str = ""
    """The situation in which nothing is evidence."""
    language: str = ""
    """The folder of its file; empty for a user's own question."""

    @cached_property
    def digest(self) -> str:
        """Identifies the text of its file: curves and cuts are fitted to one wording."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:_DIGITS]

    def question(self, name: str, context: str, fields: tuple[tuple[str, str], ...]) -> DecisionQuestion:
        """Return the question. `context`: the name of the context that it is about; `fields`: its own texts."""
        return DecisionQuestion(name, self.type, self.text.replace("{context}", context), self.options, fields)

    def for_evidence(
        self, name: str, context: str, fields: tuple[tuple[str, str], ...], units: Sequence[str]
    ) -> DecisionQuestion:
        """Return the question which of these sentences or contexts, by name, is the evidence."""
        options = _named(tuple(units), self.none)
        text = self.evidence.replace("{context}", context)
        return DecisionQuestion(name, AnswerType.CHOICE, text, options, fields)


@lru_cache(maxsize=1_024)
def _named(units: tuple[str, ...], none: str) -> tuple[Option, ...]:
    return (*map(Option, units), Option(NONE, none))


@lru_cache(maxsize=1_024)
def wording_of(kind: str, language: str) -> Wording:
    """Return the wording of a kind of question; the English one if there is none in this language."""
    for folder in (re.split("[-_]", language)[0].lower(), FALLBACK_LANGUAGE):
        path = files("merilo").joinpath("rubrics", folder, f"{kind}.d{VERSION}.toml")
        if _TAG.fullmatch(folder) and path.is_file():
            return _read(path.read_text(encoding="utf-8"), folder)
    raise RubricError(f"There is no wording of '{kind}' for decision models.")


def _read(source: str, language: str) -> Wording:
    fields = tomllib.loads(source)
    options = tuple(Option(value, str(text)) for value, text in (as_object(fields["options"]) or {}).items())
    evidence, none = str(fields.get("evidence", "")), str(fields.get("none", ""))
    return Wording(source, AnswerType(fields["type"]), str(fields["text"]), options, evidence, none, language)
