"""How decision models are asked each kind of question, and how their probabilities become verdicts.

One row is one kind: the view that shows its texts, the texts that it adds, what may be evidence, and the verdict.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.data.sentences import judged_sentences
from merilo.errors import RubricError
from merilo.judging.json_types import as_object
from merilo.judging.kinds.contexts import (
    Mentions,
    Relevance,
    RelevanceVerdict,
    Sufficiency,
    SufficiencyLabel,
    SufficiencyVerdict,
    Support,
    SupportLabel,
    SupportVerdict,
    Usefulness,
)
from merilo.judging.kinds.responses import Addresses, Answered, Choice, ChoiceVerdict, Noncommittal
from merilo.judging.rubric import FALLBACK_LANGUAGE
from merilo.judging.verdicts import NO_EVIDENCE, Verdict
from merilo.judging.views import View
from merilo.providers.decision_request import AnswerType, DecisionQuestion, Option

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.questions import Question, Texts, YesNoVerdict


# -- wordings -----------------------------------------------------------------------------------------
# How a decision model is asked each kind of question. One file is one kind in one language.
# `rubrics/<language>/<kind>.d<N>.toml` has the type of the answer, the question, its options with the situation in
# which each is right, and the question for the evidence. `{context}` is the only thing that is filled in: a name that
# merilo made. Texts of samples are never part of a wording. A released file is never edited (`rubrics.lock`).

VERSION: Final = 1
"""Version of the wordings."""
NONE: Final = "none"
"""The option of a question for evidence that names none."""
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
            return _read(path.read_text(encoding="utf-8"))
    raise RubricError(f"There is no wording of '{kind}' for decision models.")


def _read(source: str) -> Wording:
    fields = tomllib.loads(source)
    options = tuple(Option(value, str(text)) for value, text in (as_object(fields["options"]) or {}).items())
    evidence, none = str(fields.get("evidence", "")), str(fields.get("none", ""))
    return Wording(source, AnswerType(fields["type"]), str(fields["text"]), options, evidence, none)


# -- forms --------------------------------------------------------------------------------------------

MAX_OPTIONS: Final = 255
"""Most options of a choice that all servers accept."""
_CUT: Final = 0.5
"""Probability from which a verdict is a yes, or has a grade."""
_CITED: Final = 0.5
"""Share of the highest probability from which a sentence or context is evidence too."""


class SampleViews(NamedTuple):
    """The two views of a sample."""

    contexts: View
    response: View

    @classmethod
    def of(cls, sample: Sample) -> SampleViews:
        """Return the views of a sample."""
        user_input, history, given = sample.user_input, sample.read_history, sample.retrieved_contexts or ()
        contexts = View(
            user_input, history, tuple(each.sentences for each in given), tuple(each.text for each in given)
        )
        answer = sample.response
        response = () if answer is None else sample.sentences("response")
        return cls(contexts, View(user_input, history, response=response, answer=answer))


class Decision(NamedTuple):
    """The probabilities of one question, and the evidence that was named."""

    options: tuple[float, ...]
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """How one kind of question is asked."""

    verdict: Callable[[Any, Decision], Verdict]
    own_view: Callable[[Any], View]
    """Returns the view of a question alone."""
    part: str = ""
    """The view of the sample that may show the question's texts: contexts or response; empty if none does."""
    shown: Callable[[Any, View], bool] = lambda _question, _view: True
    """Returns True if that view has the texts of the question, besides user input and history."""
    fields: tuple[tuple[str, str], ...] = ()
    """Texts of the question that no view has: their names in the wording and in the question."""

    def view(self, question: Question[Any], views: SampleViews) -> View:
        """Return the view of the sample that shows all texts of the question, otherwise the question's own view."""
        shared: View | None = getattr(views, self.part) if self.part else None
        asked: str | None = getattr(question, "user_input", None)
        if shared is None or not self.shown(question, shared):
            return self.own_view(question)
        same = asked is None or (asked == shared.user_input and getattr(question, "history", ()) == shared.history)
        return shared if same else self.own_view(question)


def wording_for(question: Question[Any]) -> Wording:
    """Return the wording of a question; a user's own question is its own wording."""
    if not isinstance(question, Choice):
        return wording_of(question.kind, question.language)
    options = tuple(map(Option, question.labels, question.definitions))
    return Wording(f"d1 {question.kind}", AnswerType.CHOICE, question.instruction, options)


def context_name(question: Question[Any], view: View) -> str:
    """Return the name in the view of the context that a question is about; empty if it is about no single one."""
    own = question.context_sentences
    return "" if own is None else f"c{view.places[own] + 1}"


def unit_names(question: Question[Any]) -> tuple[str, ...]:
    """Return the names of what may be evidence, in order; none for kinds without, and if there are too many."""
    count = question.places
    return _names("c" if question.cited == "contexts" else "s", count) if count < MAX_OPTIONS else ()


@lru_cache(maxsize=1_024)
def _names(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{n}" for n in range(1, count + 1))


def named(units: tuple[str, ...], options: Sequence[float]) -> tuple[int, ...]:
    """Return the units that are evidence: those at least half as probable as the best option, else the best unit."""
    if not units:
        return ()
    own, least = options[: len(units)], _CITED * max(options)
    return tuple(place for place, p in enumerate(own) if p >= least) or (own.index(max(own)),)


# -- verdicts -----------------------------------------------------------------------------------------


def _marks(decision: Decision, *, yes: bool) -> dict[str, Any]:
    """Return evidence and flag of a verdict: a yes needs evidence, a no has none."""
    if not yes:
        return {"evidence": ()}
    return {"evidence": decision.evidence} if decision.evidence else {"evidence": (), "flag": NO_EVIDENCE}


def _relevance(question: Relevance, found: Decision) -> RelevanceVerdict:
    del question
    p = min(1.0, found.options[1] + found.options[2])
    grade = 2 if found.options[2] >= _CUT else 1 if p >= _CUT else 0
    marks = _marks(found, yes=grade > 0)
    return RelevanceVerdict(grade, probability=p, averaged=True, **marks)


def _sufficiency(question: Sufficiency, found: Decision) -> SufficiencyVerdict:
    del question
    enough, some = found.options[2], found.options[1] + found.options[2]
    label = tuple(SufficiencyLabel)[2 - (enough >= _CUT) - (some >= _CUT)]
    return SufficiencyVerdict(label, probability=enough, averaged=True)


def _support(question: Support, found: Decision) -> SupportVerdict:
    del question
    supported, contradicted, open_ = found.options
    if supported >= _CUT:
        label = SupportLabel.SUPPORTED
    else:
        label = SupportLabel.CONTRADICTED if contradicted > open_ else SupportLabel.NOT_STATED
    named_one = label is not SupportLabel.NOT_STATED
    return SupportVerdict(label, probability=supported, averaged=True, **_marks(found, yes=named_one))


def _yes_no(question: Question[Any], found: Decision) -> YesNoVerdict:
    p = found.options[1]
    yes = p >= _CUT
    marks = _marks(found, yes=yes) if question.cited else {}
    verdict: Any = question.verdict
    made: YesNoVerdict = verdict(yes, probability=p, averaged=True, **marks)
    return made


def _choice(question: Choice, found: Decision) -> ChoiceVerdict:
    best = max(range(len(found.options)), key=found.options.__getitem__)
    return ChoiceVerdict(question.labels[best], probability=found.options[best])


# -- views --------------------------------------------------------------------------------------------


def _of_context(question: Relevance | Usefulness) -> View:
    return View(question.user_input, question.history, (question.sentences,))


def _of_contexts(contexts: Texts, language: str, user_input: str | None = None, history: Texts = ()) -> View:
    return View(user_input, history, tuple(judged_sentences(text, language) for text in contexts), contexts)


def _has_context(question: Relevance | Usefulness, view: View) -> bool:
    return question.sentences in view.places


def _has_contexts(question: Sufficiency | Support | Mentions, view: View) -> bool:
    return question.contexts == view.texts


FORMS: Final[dict[type[Question[Any]], Form]] = {
    Relevance: Form(_relevance, _of_context, "contexts", _has_context),
    Usefulness: Form(_yes_no, _of_context, "contexts", _has_context, (("reference", "reference"),)),
    Sufficiency: Form(
        _sufficiency, lambda q: _of_contexts(q.contexts, q.language, q.user_input, q.history), "contexts", _has_contexts
    ),
    Support: Form(
        _support,
        lambda q: _of_contexts(q.contexts, q.language),
        "contexts",
        _has_contexts,
        (("statement", "statement"),),
    ),
    Mentions: Form(
        _yes_no, lambda q: _of_contexts(q.contexts, q.language), "contexts", _has_contexts, (("entity", "name"),)
    ),
    Noncommittal: Form(
        _yes_no,
        lambda q: View(q.user_input, q.history, response=judged_sentences(q.response, q.language), answer=q.response),
        "response",
        lambda q, view: q.response == view.answer,
    ),
    Addresses: Form(_yes_no, lambda q: View(q.user_input, q.history), "response", fields=(("statement", "statement"),)),
    Answered: Form(
        _yes_no,
        lambda q: View(q.user_input, q.history, response=q.sentences),
        "response",
        lambda q, view: q.sentences == view.response,
        (("part", "part"),),
    ),
    Choice: Form(_choice, lambda q: View(named=dict(zip(q.names, q.values, strict=True)))),
}
"""The form of each kind of question that decision models answer."""
