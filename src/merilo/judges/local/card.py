"""The card of a local model: its files, the text it reads, its output, and how a score becomes an answer.

A card is a TOML file. Cards of well-known models ship with merilo (`merilo/judges/cards`); a user's own card is
`judge.toml` in the folder of the model. Unknown keys are refused, and the labels are compared with `config.json`.
"""

from __future__ import annotations

import json
import re
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import as_file, files
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from merilo.data.config_files import MAX_PROBLEMS, read_document, validated
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


# -- questions of the form `options` ------------------------------------------------------------------
# The model reads each option of a question separately.
# The logits of all options, divided by the question's temperature, give a probability to each of them.

SLOT: Final = re.compile(r"\{(\w+)\}")
"""A place in a text of a card that a text of the question fills."""
OWN_SLOTS: Final = ("question", "option")
"""The slots that the form `options` fills itself."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class OptionQuestion(_Part):
    """How the model is asked one kind of question."""

    wording: str
    """The question, which may contain slots."""
    options: tuple[str, ...] = Field(min_length=2)
    yes: tuple[str, ...] = Field(min_length=1)
    """The options that mean yes. The last one is the highest grade."""
    temperature: float = Field(default=1.0, gt=0)

    @model_validator(mode="after")
    def _names_its_options(self) -> Self:
        if len({*self.options}) < len(self.options):
            raise ValueError("options must differ")
        if other := [name for name in self.yes if name not in self.options]:
            raise ValueError(f"{other[0]!r} is not one of the options ({', '.join(self.options)})")
        if {*self.yes} == {*self.options}:
            raise ValueError("at least one option must not mean yes")
        return self

    @property
    def slots(self) -> frozenset[str]:
        """The slots of the wording."""
        return frozenset(SLOT.findall(self.wording))

    def inputs(self, texts: Mapping[str, str]) -> list[Mapping[str, str]]:
        """Return the texts by slot of the input for each option, in order."""
        question = filled(self.wording, texts)
        return [{**texts, "question": question, "option": option} for option in self.options]


def filled(template: str, texts: Mapping[str, str]) -> str:
    """Return a text of the card with the texts of the question in its slots."""
    return SLOT.sub(lambda match: texts[match[1]], template)  # in one pass: a text may contain the name of a slot


# -- the card -----------------------------------------------------------------------------------------

CARD_NAME: Final = "judge.toml"
"""File name of a user's card, next to the model."""
UNDECIDED: Final = "?"
"""Value of a place in a draft that the user has to fill in."""
SLOTS: Final = ("premise", "hypothesis", "query")
NAME_PATTERN: Final = r"[a-z0-9][a-z0-9._-]{0,63}"
"""Names of cards: lower case, so that they are file names everywhere."""

Probability = Annotated[float, Field(ge=0, le=1)]


class Files(_Part):
    """File names, relative to the folder of the model."""

    model: str = "model.onnx"
    tokenizer: str = "tokenizer.json"

    @field_validator("model", "tokenizer")
    @classmethod
    def _is_inside(cls, name: str, info: ValidationInfo) -> str:
        path, suffix = PurePosixPath(name), ".onnx" if info.field_name == "model" else ".json"
        if not path.parts or ".." in path.parts or path.is_absolute() or "\\" in name or PureWindowsPath(name).drive:
            raise ValueError("must be a file below the folder of the model")
        if not name.endswith(suffix):
            raise ValueError(f"must be a file with the suffix {suffix}")
        return name


class Input(_Part):
    """The text of one pair, with the slots `{premise}`, `{hypothesis}` and `{query}`.

    The form `options` is a pair for each option of a question, with the slots `{question}` and `{option}` too.
    """

    form: Literal["pair", "text", "options"]
    first: str = ""
    """Forms `pair` and `options`: the first text."""
    second: str = ""
    """Forms `pair` and `options`: the second text."""
    text: str = ""
    """Form `text`: the only text."""
    special: tuple[str, ...] = ()
    """The tokens of an input in order: the name of a special token, or `text:` and a text. If empty, the tokenizer's
    own special tokens surround the texts."""
    max_tokens: int = Field(ge=16, le=1_000_000)

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts with slots."""
        if self.special:
            return tuple(piece.removeprefix("text:") for piece in self.special if piece.startswith("text:"))
        return (self.text,) if self.form == "text" else (self.first, self.second)

    @property
    def slots(self) -> frozenset[str]:
        """The slots in the texts."""
        return frozenset(slot for text in self.texts for slot in SLOT.findall(text))

    @model_validator(mode="after")
    def _fits_its_form(self) -> Self:
        if self.special and (self.first or self.second or self.text):
            raise ValueError("special replaces first, second and text; give one or the other")
        if not self.special and self.form != "text" and not (self.first and self.second and not self.text):
            raise ValueError(f'form "{self.form}" needs first and second, and no text')
        if not self.special and self.form == "text" and (not self.text or self.first or self.second):
            raise ValueError('form "text" needs text, without first and second')
        own = frozenset(OWN_SLOTS if self.form == "options" else ())
        if missing := sorted(own - self.slots):
            raise ValueError(f'form "options" needs the slot {{{missing[0]}}}')
        if unknown := sorted(self.slots - {*SLOTS} - own):
            raise ValueError(f"unknown slot {{{unknown[0]}}}; slots: {{premise}}, {{hypothesis}}, {{query}}")
        if len(self.slots) < 2:
            raise ValueError("two slots are needed, such as {premise} and {hypothesis}")
        return self


class Output(_Part):
    """The output of the model: one logit per label."""

    head: Literal["softmax", "sigmoid"]
    labels: tuple[str, ...] = Field(min_length=1)
    """Names of the outputs in order, as in `id2label` of `config.json`."""
    yes: str
    """The label that means yes: supported, relevant."""
    contradiction: str | None = None
    """The label that means contradicted; only if human labels showed that it can be relied on."""

    @model_validator(mode="after")
    def _names_its_labels(self) -> Self:
        if len({*map(str.casefold, self.labels)}) < len(self.labels):
            raise ValueError("labels must differ")
        for name in (self.yes, self.contradiction):
            if name is not None and name not in self.labels:
                raise ValueError(f"{name!r} is not one of the labels ({', '.join(self.labels)})")
        if self.yes == self.contradiction:
            raise ValueError("yes and contradiction must be different labels")
        if self.head == "softmax" and len(self.labels) < 2:
            raise ValueError("a softmax over one label is always 1; use sigmoid")
        return self


class Windows(_Part):
    """How a long text is divided: whole sentences up to a number of words and of tokens."""

    words: int | None = Field(default=None, ge=8)
    """Maximum words of a window; None: only the tokens count."""
    joined_by: str = " "
    overlap: int = Field(default=0, ge=0, le=20)
    """Sentences that a window repeats from the one before."""
    take: Literal["max", "mean"] = "max"
    """How the scores of windows are combined."""


class _Answer(_Part):
    use: dict[str, str]
    """The field of the question for each slot."""


class YesNo(_Answer):
    """How a question with a yes or no is answered."""

    cut: Probability = 0.5
    """Lowest probability that counts as yes."""


class Graded(_Answer):
    """How a question with three grades is answered."""

    cuts: tuple[Probability, Probability]
    """Lowest probabilities of the middle and of the highest grade."""

    @field_validator("cuts")
    @classmethod
    def _ascend(cls, cuts: tuple[float, float]) -> tuple[float, float]:
        if cuts[0] > cuts[1]:
            raise ValueError("the cut of the middle grade must not be above that of the highest grade")
        return cuts


FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "support": frozenset({"context", "statement"}),
    "relevance": frozenset({"user_input", "context"}),
    "usefulness": frozenset({"reference", "context"}),
    "sufficiency": frozenset({"user_input", "context"}),
    "addresses": frozenset({"user_input", "statement"}),
    "similarities": frozenset({"left", "right"}),
}
"""The fields of each kind of question that `use` maps to slots."""


class Answers(_Part):
    """The kinds of question that the model answers."""

    support: YesNo | None = None
    relevance: Graded | None = None
    usefulness: YesNo | None = None
    sufficiency: Graded | None = None
    addresses: YesNo | None = None
    similarities: _Answer | None = None

    @property
    def given(self) -> Mapping[str, _Answer]:
        """The kinds that are answered."""
        return {kind: answer for kind in FIELDS if (answer := getattr(self, kind)) is not None}

    @model_validator(mode="after")
    def _use_fields(self) -> Self:
        if not self.given:
            raise ValueError(f"at least one kind is needed: {', '.join(FIELDS)}")
        for kind, answer in self.given.items():
            if FIELDS[kind].symmetric_difference(answer.use.values()) or len(answer.use) != len(FIELDS[kind]):
                fields = " and ".join(sorted(FIELDS[kind]))
                raise ValueError(f"use of {kind} must give a slot to each of {fields}")
        return self


class Calibration(_Part):
    """The curve p = 1 / (1 + exp(-(scale * logit + shift))), fitted to labelled records."""

    scale: float = Field(gt=0)
    shift: float
    records: int = Field(default=0, ge=0)
    source: str = ""


class Golden(_Part):
    """One input with the logits that the original implementation gave for it."""

    premise: str | None = None
    hypothesis: str | None = None
    query: str | None = None
    question: str | None = None
    option: str | None = None
    logits: tuple[float, ...]

    @property
    def texts(self) -> Mapping[str, str]:
        """The text of each slot."""
        return {slot: text for slot in (*SLOTS, *OWN_SLOTS) if (text := getattr(self, slot)) is not None}


_ONE_LOGIT: Final = Output(head="sigmoid", labels=("option",), yes="option")


class Card(_Part):
    """Everything that merilo needs to know about a model file."""

    card: Literal[1]
    """Version of the format."""
    name: str = Field(pattern=f"^{NAME_PATTERN}$")
    model: str = Field(default="", pattern=r"^$|^[\w.-]+/[\w.-]+$")
    """ORG/NAME on the Hugging Face hub; empty for a model that is not there."""
    also: tuple[str, ...] = ()
    """Other models with the same inputs and labels: names, or patterns such as `ORG/*`."""
    revision: str = Field(default="", pattern=r"^$|^[0-9a-f]{40}$")
    licence: str = "unknown"
    languages: tuple[str, ...] = Field(min_length=1)
    """Codes such as `en`; `multi` for many."""
    trained_on: tuple[str, ...] = ()
    """Data sets the model was trained on; its agreement there says little."""
    proved: bool = False
    """True if merilo ran the real weights and compared the logits with the original implementation."""
    sources: tuple[str, ...] = ()
    """Where the facts of the card were read."""
    files: Files = Files()
    input: Input
    output: Output = _ONE_LOGIT
    """Form `options`: one logit for each input, so the card gives none."""
    questions: dict[str, OptionQuestion] = {}
    """Form `options`: how the model is asked each kind that it answers."""
    windows: Windows = Windows()
    answers: Answers
    calibration: dict[str, Calibration] = {}
    golden: tuple[Golden, ...] = Field(default=(), max_length=50)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        options = self.input.form == "options"
        if options == ("output" in self.model_fields_set):
            raise ValueError('output is needed, except in form "options", which has none')
        if wrong := sorted({*self.questions} ^ ({*self.answers.given} if options else set[str]())):
            raise ValueError(f'questions.{wrong[0]} and answers.{wrong[0]} need each other, in form "options" alone')
        if options and self.calibration:
            raise ValueError('form "options" has a temperature for each question, and no calibration')
        for kind, answer in self.answers.given.items():
            slots = self.input.slots
            if kind in self.questions:
                slots = (slots - {*OWN_SLOTS}) | self.questions[kind].slots
            if slots.symmetric_difference(answer.use):
                raise ValueError(f"use of {kind} must name the slots of the input: {', '.join(sorted(slots))}")
        slots = self.input.slots
        for place, golden in enumerate(self.golden, start=1):
            if slots.symmetric_difference(golden.texts) or len(golden.logits) != len(self.output.labels):
                raise ValueError(f"golden pair {place} needs {', '.join(sorted(slots))} and one logit per label")
        if unanswered := sorted({*self.calibration} - {*self.answers.given}):
            raise ValueError(f"calibration.{unanswered[0]} is for a kind that the card does not answer")
        return self

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the parts that affect a verdict, as hex digits."""
        parts = self.model_dump(mode="json", include={"input", "output", "windows", "answers", "calibration"})
        if self.questions:  # the digests of other forms stay as they were
            parts |= self.model_dump(mode="json", include={"questions"})
        return sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def forbids_commercial_use(licence: str) -> bool:
    """Return True if the name of a licence says that it forbids commercial use."""
    return re.search(r"(?:^|[^a-z])nc(?:$|[^a-z])|non-?commercial|research-only", licence, re.IGNORECASE) is not None


def read_card(path: Path) -> Card:
    """Return the card in a file. Raises UsageError that names the file and the wrong places."""
    return card_of(read_document(path), str(path))


def card_of(fields: Mapping[str, object], source: str) -> Card:
    """Return the card with these fields. Raises UsageError that starts with `source`."""
    if undecided := list(_undecided(fields)):
        places = ", ".join(undecided[:MAX_PROBLEMS])
        raise UsageError(f'{source}: the card is a draft. Replace "{UNDECIDED}" in {places}.')
    return validated(Card, fields, source)


def _undecided(value: object, place: str = "") -> Iterator[str]:
    if value == UNDECIDED:
        yield place
    elif isinstance(value, dict):
        for key, each in cast("dict[str, object]", value).items():
            yield from _undecided(each, f"{place}.{key}".lstrip("."))
    elif isinstance(value, list):
        for index, each in enumerate(cast("list[object]", value)):
            yield from _undecided(each, f"{place}[{index}]")


@cache
def builtin_cards() -> Mapping[str, Card]:
    """Return the cards that ship with merilo, by name."""
    found: dict[str, Card] = {}
    with as_file(files("merilo.judges").joinpath("cards")) as folder:
        for path in sorted(folder.glob("*.toml")):
            found[path.stem] = read_card(path)
    return found


def builtin_card_for(model: str) -> Card | None:
    """Return the shipped card for a model ORG/NAME; None if there is none. Exact names go before patterns."""
    cards = builtin_cards().values()
    exact = (each for each in cards if model == each.model or model in each.also)
    similar = (each for each in cards if any(_matches(model, pattern) for pattern in each.also))
    return next(exact, None) or next(similar, None)


def _matches(model: str, pattern: str) -> bool:
    return "*" in pattern and PurePosixPath(model).match(pattern)
