"""The judge that needs no key, no network and no model server: it answers from the words of the texts alone.

It is `merilo.judges.lexical` behind the judge protocol. It follows no instruction hidden in a context, as it
reads none. It tells whether the words of a statement stand in a context; it cannot tell a contradiction from
something not stated, nor see a wrong fact made of the context's own words.

Vectors and similarities are those of `merilo.judges.ngrams`: hashed character n-grams, which know words and parts of
words but no meaning. They make metrics that need vectors run without a model; where the number matters, give a
better embedder, until a stronger model takes their place here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from merilo.data.sentences import SPLITTER_ID, sentences
from merilo.judges.lexical import FORMAT, LexicalModel
from merilo.judges.lexical_match import RULES_VERSION
from merilo.judges.ngrams import NAME, likeness, ngram_vector
from merilo.judging.questions import (
    Addresses,
    Embeddings,
    Noncommittal,
    Pack,
    Question,
    Relevance,
    Similarities,
    Statements,
    Sufficiency,
    Support,
    Usefulness,
)
from merilo.judging.verdicts import (
    AddressesVerdict,
    Failure,
    FailureKind,
    MatrixVerdict,
    NoncommittalVerdict,
    RelevanceVerdict,
    Statement,
    StatementsVerdict,
    SufficiencyLabel,
    SufficiencyVerdict,
    SupportLabel,
    SupportVerdict,
    UsefulnessVerdict,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.judges.base import Conversation
    from merilo.judging.ask import Answer

_LEVELS: Final = (SufficiencyLabel.INSUFFICIENT, SufficiencyLabel.PARTLY, SufficiencyLabel.SUFFICIENT)

_RATED: Final = {
    "sentence": "evidence sentences",
    "answers": "grade 2 of relevance",
    "sufficient": "sufficiency",
    "supported": "support",
    "supported_edited": "support of facts changed on purpose",
    "addresses": "addresses",
}
"""The tasks for which people's labels were held out, as `rates` calls them."""


@dataclass(frozen=True)
class EmbeddedJudge:
    """The default judge. Equal questions get equal verdicts, whatever else was asked."""

    @property
    def name(self) -> str:
        """`embedded`."""
        return "embedded"

    @property
    def answers(self) -> frozenset[type[Question[Any]]]:
        """Judgements, vectors and similarities; no free text and no sentences of other splitters."""
        return frozenset(_ANSWERS)

    @property
    def together(self) -> frozenset[type[Question[Any]]]:
        """None: each statement is judged by itself."""
        return frozenset()

    @property
    def rates(self) -> str | None:
        """Cohen's kappa with people's labels on held-out public data, by task, with 95 % intervals."""
        tables = LexicalModel.load().agreement
        parts = [_rate(called, tables.get(task, {}).get("people")) for task, called in _RATED.items()]
        shown = ", ".join(part for part in parts if part)
        return f"agreement with people on held-out public data, mostly English: {shown}" if shown else None

    @property
    def cacheable(self) -> bool:
        """Yes: the model's digest, the rules' version and the splitter decide every verdict."""
        return True

    def fingerprint(self) -> Mapping[str, object]:
        """The digest of the model file, the version of the reading, the sentence splitter and the vectors."""
        return {
            "judge": "embedded",
            "model": f"lexical.v{FORMAT}",
            "sha256": LexicalModel.load().fingerprint,
            "rules": RULES_VERSION,
            "splitter": SPLITTER_ID,
            "vectors": NAME,
        }

    def rubric(self, question: Question[Any] | Pack) -> str:
        """None: it is asked nothing in words."""
        del question
        return ""

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """One answer for each question, at once and without a request."""
        yield from ()
        questions = question.questions if isinstance(question, Pack) else (question,)
        return tuple(_answer(each) for each in questions)


def _answer(question: Question[Any]) -> Answer:
    rule = _ANSWERS.get(type(question))
    if rule is None:
        return Failure(
            FailureKind.PERMANENT,
            f"The embedded judge does not answer questions of kind {question.kind!r}; ask a language model.",
        )
    return rule(LexicalModel.load(), question)


def _relevance(model: LexicalModel, question: Relevance) -> RelevanceVerdict:
    found = model.relevance(question.user_input, question.sentences)
    reason = f"{_percent(found.coverage)} of the user input, by the weight of its words, stands in the context; "
    reason += _cut(model, "relevant")
    return RelevanceVerdict(found.grade, found.evidence, reason, found.probability)


def _usefulness(model: LexicalModel, question: Usefulness) -> UsefulnessVerdict:
    found = model.usefulness(question.user_input, question.reference, question.sentences)
    reason = f"{_percent(found.coverage)} of the reference, by the weight of its words, stands in the context; "
    reason += _cut(model, "useful")
    return UsefulnessVerdict(found.useful, found.evidence, reason, found.probability)


def _statements(model: LexicalModel, question: Statements) -> StatementsVerdict:
    """One statement for each sentence that claims something: questions and refusals do not."""
    claims = (Statement(text, index) for index, text in enumerate(question.sentences) if model.claims(text))
    return StatementsVerdict(tuple(claims))


def _support(model: LexicalModel, question: Support) -> SupportVerdict:
    contexts = [sentences(context) for context in question.contexts]
    found = model.support(question.statement, contexts)
    label = SupportLabel.SUPPORTED if found.supported else SupportLabel.UNSUPPORTED
    reason = f"{_percent(found.coverage)} of the statement, by the weight of its words, stands in one place; "
    reason += _cut(model, "supported")
    return SupportVerdict(label, found.evidence, reason, found.probability, tells_contradicted=False)


def _sufficiency(model: LexicalModel, question: Sufficiency) -> SufficiencyVerdict:
    found = model.sufficiency(question.user_input, [sentences(context) for context in question.contexts])
    reason = f"{_percent(found.coverage)} of the user input, by the weight of its words, stands in the contexts; "
    reason += _cut(model, "sufficient")
    return SufficiencyVerdict(_LEVELS[found.level], reason=reason, probability=found.probability)


def _addresses(model: LexicalModel, question: Addresses) -> AddressesVerdict:
    found = model.addresses(question.user_input, question.statement)
    return AddressesVerdict(found.addresses, probability=found.probability)


def _noncommittal(model: LexicalModel, question: Noncommittal) -> NoncommittalVerdict:
    declines = model.noncommittal(question.user_input, question.response)
    return NoncommittalVerdict(declines, reason="It holds a phrase of refusal and little else." if declines else "")


def _embeddings(model: LexicalModel, question: Embeddings) -> MatrixVerdict:
    """Vectors of 512 numbers and length 1; of zeros for a text without a word."""
    del model
    return MatrixVerdict.of([ngram_vector(text) for text in question.texts])


def _similarities(model: LexicalModel, question: Similarities) -> MatrixVerdict:
    """The cosine of the same vectors, 0 where it is negative; 0 too for a text without a word."""
    del model
    right = [ngram_vector(text) for text in question.right]
    rows = [[likeness(vector, other) for other in right] for vector in map(ngram_vector, question.left)]
    return MatrixVerdict.of(rows) if rows else MatrixVerdict(0, len(right), b"")


_ANSWERS: Final[Mapping[type[Question[Any]], Callable[[LexicalModel, Any], Verdict]]] = {
    Relevance: _relevance,
    Usefulness: _usefulness,
    Statements: _statements,
    Support: _support,
    Sufficiency: _sufficiency,
    Addresses: _addresses,
    Noncommittal: _noncommittal,
    Embeddings: _embeddings,
    Similarities: _similarities,
}


def _cut(model: LexicalModel, task: str) -> str:
    """From which probability on the answer is yes: the cut was fitted, and is not one half."""
    return f"yes from p = {model.curves[task].thresholds['yes']:.2f}."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _rate(called: str, table: Mapping[str, Any] | None) -> str:  # Any: the model file's tables
    if table is None:
        return ""
    low, high = table["interval"]
    return f"{called} κ {table['kappa']:.2f} [{low:.2f}, {high:.2f}]"
