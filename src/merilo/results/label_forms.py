"""The forms for annotators: the same texts that the judge reads, a closed list of labels, and their verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from merilo.judging.decisions import is_positive
from merilo.judging.kinds.addresses import Addresses, AddressesVerdict
from merilo.judging.kinds.answered import Answered, AnsweredVerdict
from merilo.judging.kinds.choice import Choice, ChoiceVerdict
from merilo.judging.kinds.mentions import Mentions, MentionsVerdict
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.judging.kinds.sufficiency import Sufficiency, SufficiencyLabel, SufficiencyVerdict
from merilo.judging.kinds.support import Support, SupportLabel, SupportVerdict
from merilo.judging.kinds.usefulness import Usefulness, UsefulnessVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict

NO, YES = "no", "yes"
_TRUE: Final = frozenset({"yes", "y", "true", "1"})
_FALSE: Final = frozenset({"no", "n", "false", "0"})


@dataclass(frozen=True, slots=True)
class LabelForm:
    """One question in the form that annotators answer."""

    kind: str
    asked: str
    """The question itself."""
    texts: tuple[tuple[str, str], ...]
    """The texts to read, each with its name, such as ("context", "...")."""
    labels: tuple[str, ...]
    """The possible answers; in ascending order if they are ordered."""
    meanings: tuple[str, ...]
    """The meaning of each label; blank if the label is clear by itself."""
    ordered: bool = True
    """True if the labels are in ascending order."""

    def label(self, given: str) -> str | None:
        """Return the label that a text means, ignoring case; None if it is not one of the labels."""
        text = given.strip().casefold()
        if {*self.labels} == {NO, YES}:
            return YES if text in _TRUE else NO if text in _FALSE else None
        if self.kind == Relevance.kind and text.endswith(".0"):  # some spreadsheets write 2 as 2.0
            text = text[:-2]
        return next((each for each in self.labels if each.casefold() == text), None)

    def explained(self) -> str:
        """Return the labels with their meanings, in one line."""
        pairs = zip(self.labels, self.meanings, strict=True)
        return "; ".join(f"{label}: {meaning}" if meaning else label for label, meaning in pairs)


def form_of(question: Question[Any]) -> LabelForm | None:
    """Return the form of a question; None for kinds that a label cannot answer (statements, free text, ...)."""
    maker = _MAKERS.get(type(question))
    return None if maker is None else maker(question)


def verdict_of(question: Question[Any], label: str, *, evidence: bool = False) -> Verdict:
    """Return the verdict that a label means. It names no evidence, unless `evidence`; then it names everything.

    `label`: one of the form's labels. Raises ValueError for a question without a form.
    """
    if type(question) not in _MAKERS:
        raise ValueError(f"a {question.kind} question has no label form")
    named = _everything(question) if evidence and label not in _NAMES_NOTHING else ()
    match question:
        case Relevance():
            return RelevanceVerdict(int(label), named)
        case Usefulness():
            return UsefulnessVerdict(label == YES, named)
        case Support():
            supported = label == YES
            return SupportVerdict(
                SupportLabel.SUPPORTED if supported else SupportLabel.UNSUPPORTED, named, tells_contradicted=False
            )
        case Sufficiency():
            return SufficiencyVerdict(SufficiencyLabel(label))
        case Addresses():
            return AddressesVerdict(label == YES)
        case Answered():
            return AnsweredVerdict(label == YES, named)
        case Mentions():
            return MentionsVerdict(label == YES, named)
        case _:
            return ChoiceVerdict(label)


def label_of(verdict: Verdict) -> str:
    """Return a judge's verdict as a label. Raises ValueError for a verdict without a label."""
    match verdict:
        case RelevanceVerdict():
            return str(verdict.grade)
        case SufficiencyVerdict():
            return verdict.label.value
        case ChoiceVerdict():
            return verdict.label
        case UsefulnessVerdict() | SupportVerdict() | AddressesVerdict() | AnsweredVerdict() | MentionsVerdict():
            return YES if is_positive(verdict) else NO
        case _:
            raise ValueError(f"a {type(verdict).__name__} has no label")


_NAMES_NOTHING: Final = frozenset({"0", NO})
_GRADES: Final = ("0", "1", "2")
_YES_NO: Final = (NO, YES)


def _everything(question: Question[Any]) -> tuple[int, ...]:
    """Return the indices of everything that a verdict on this question may name as evidence."""
    parts: tuple[str, ...] = getattr(question, "sentences", getattr(question, "contexts", ()))
    return tuple(range(len(parts)))


def _relevance(question: Relevance) -> LabelForm:
    return LabelForm(
        question.kind,
        "How far does this context help to answer the user input?",
        (("user_input", question.user_input), ("context", _joined(question.sentences))),
        _GRADES,
        ("nothing useful", "part of the answer", "the whole answer"),
    )


def _usefulness(question: Usefulness) -> LabelForm:
    texts = (("user_input", question.user_input), ("reference", question.reference))
    return _yes_no(
        question.kind,
        "Does this context help to arrive at the reference answer?",
        (*texts, ("context", _joined(question.sentences))),
    )


def _support(question: Support) -> LabelForm:
    return _yes_no(
        question.kind,
        "Do these texts support the statement?",
        (("statement", question.statement), ("contexts", _numbered(question.contexts))),
    )


def _sufficiency(question: Sufficiency) -> LabelForm:
    return LabelForm(
        question.kind,
        "Do these contexts together hold enough to answer the user input?",
        (("user_input", question.user_input), ("contexts", _numbered(question.contexts))),
        tuple(
            label.value
            for label in (SufficiencyLabel.INSUFFICIENT, SufficiencyLabel.PARTLY, SufficiencyLabel.SUFFICIENT)
        ),
        ("no part of the answer can be given", "a part of it can", "all of it can"),
    )


def _addresses(question: Addresses) -> LabelForm:
    texts = (("user_input", question.user_input), ("statement", question.statement))
    return _yes_no(question.kind, "Does this statement address what the user input asks?", texts)


def _answered(question: Answered) -> LabelForm:
    texts = (("user_input", question.user_input), ("part", question.part))
    return _yes_no(
        question.kind,
        "Does the response answer this part of what was asked?",
        (*texts, ("response", _joined(question.sentences))),
    )


def _mentions(question: Mentions) -> LabelForm:
    texts = (("entity", question.name), ("contexts", _numbered(question.contexts)))
    return _yes_no(question.kind, "Do these contexts mention the entity, in whatever form?", texts)


def _choice(question: Choice) -> LabelForm:
    shown = "\n\n".join(f"{name}:\n{text}" for name, text in zip(question.names, question.values, strict=True))
    return LabelForm(
        question.kind, question.instruction, (("texts", shown),), question.labels, question.definitions, ordered=False
    )


def _yes_no(kind: str, asked: str, texts: tuple[tuple[str, str], ...]) -> LabelForm:
    return LabelForm(kind, asked, texts, _YES_NO, ("", ""))


def _joined(sentences: Iterable[str]) -> str:
    return "\n".join(sentences)


def _numbered(contexts: Iterable[str]) -> str:
    return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(contexts, start=1))


_MAKERS: Final[Mapping[type[Question[Any]], Callable[[Any], LabelForm]]] = {  # Any: each takes the type that is its key
    Relevance: _relevance,
    Usefulness: _usefulness,
    Support: _support,
    Sufficiency: _sufficiency,
    Addresses: _addresses,
    Answered: _answered,
    Mentions: _mentions,
    Choice: _choice,
}
ASKED_OF_PEOPLE: Final = frozenset(kind.kind for kind in _MAKERS)
"""The kinds of questions that annotators can answer with a label."""
