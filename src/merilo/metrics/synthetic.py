"""Synthetic samples and synthetic verdicts for the contract: seeded, always the same, no two texts equal.

Verdicts are a function of the texts alone, so they do not depend on the position of a context: whether a context
supports a statement depends on the two texts, not on its number.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from merilo.data.sample import Sample
from merilo.judging.digests import digest_of, digest_text
from merilo.judging.kinds.addresses import Addresses, AddressesVerdict
from merilo.judging.kinds.answered import Answered, AnsweredVerdict
from merilo.judging.kinds.choice import Choice, ChoiceVerdict
from merilo.judging.kinds.embeddings import Embeddings
from merilo.judging.kinds.entities import Entities, EntitiesVerdict, Entity
from merilo.judging.kinds.mentions import Mentions, MentionsVerdict
from merilo.judging.kinds.noncommittal import Noncommittal, NoncommittalVerdict
from merilo.judging.kinds.parts import Parts, PartsVerdict
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.judging.kinds.similarities import Similarities
from merilo.judging.kinds.statements import Statement, Statements, StatementsVerdict
from merilo.judging.kinds.sufficiency import Sufficiency, SufficiencyLabel, SufficiencyVerdict
from merilo.judging.kinds.support import Support, SupportLabel, SupportVerdict
from merilo.judging.kinds.usefulness import Usefulness, UsefulnessVerdict
from merilo.judging.matrix import MatrixVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from merilo.judging.questions import Texts

COUNT: Final = 24
_MAX_CONTEXTS: Final = 5
_WORDS: Final = "amber basin copper delta ember fjord glacier harbour island juniper kelp lagoon".split()
_VECTOR_SIZE: Final = 8
_FLOOD: Final = 5_000


def chance(seed: int, *texts: str) -> float:
    """Return a number in [0, 1) that depends on the seed and the texts alone."""
    digest = digest_of(str(seed).encode(), *(digest_text(text) for text in texts))
    return int.from_bytes(digest[:6], "little") / 2**48


def samples() -> Iterator[Sample]:
    """Yield full samples of 1 to 5 contexts; some contexts are blank, some occur twice."""
    for number in range(COUNT):
        yield sample(number)


def sample(number: int) -> Sample:
    """Return the full sample with this number: every field is present, and only a context is ever blank."""
    contexts = [_text(number, f"context {place}", 4) for place in range(1 + number % _MAX_CONTEXTS)]
    if number % 7 == 3:
        contexts[-1] = " \n"
    if number % 7 == 5:
        contexts[-1] = contexts[0]
    return Sample(
        f"specimen-{number}",
        user_input=_text(number, "user input", 1),
        retrieved_contexts=contexts,
        response=_text(number, "response", 3),
        reference=_text(number, "reference", 3),
        reference_contexts=[_text(number, f"reference context {place}", 3) for place in range(2)],
        retrieved_context_ids=[f"c{number}-{place}" for place in range(len(contexts))],
        reference_context_ids=[f"c{number}-{place}" for place in range(0, 4, 2)],
    )


def lacking(full: Sample, name: str) -> Sample:
    """Return the sample without one of its fields."""
    without: dict[str, Any] = {name: None}  # replace takes any field
    return replace(full, **without)


def empty() -> Sample:
    """Return the sample whose fields are all present and empty."""
    return Sample(
        "empty",
        user_input="",
        retrieved_contexts=[],
        response="",
        reference="",
        reference_contexts=[],
        retrieved_context_ids=[],
        reference_context_ids=[],
    )


def in_other_order(full: Sample) -> Sample:
    """Return the sample with its retrieved contexts, and their ids, in reverse order."""
    contexts, ids = full.retrieved_contexts, full.retrieved_context_ids
    return replace(
        full,
        retrieved_contexts=None if contexts is None else contexts[::-1],
        retrieved_context_ids=None if ids is None else ids[::-1],
    )


@dataclass(frozen=True)
class SyntheticAnswers:
    """Synthetic verdicts: a callable that always gives the same verdict on the same question."""

    seed: int = 0
    known: Mapping[Question[Any], Verdict] = field(default_factory=dict[Question[Any], Verdict])
    """Verdicts that take precedence over the synthetic ones."""
    own: Callable[[Question[Any]], Verdict | None] | None = None
    """Verdicts of the metric's author, which replace the synthetic ones; None if there is no replacement."""
    statements_reversed: bool = False
    """Return the statements, parts and entities of a text in reverse order."""
    statements_flood: bool = False
    """Return thousands of statements, parts or entities in every text, as a broken judge may."""

    def __call__(self, question: Question[Any]) -> Verdict:
        """Return the verdict on a question; its guess for kinds without a synthetic verdict."""
        found = self.known.get(question)
        if found is None and self.own is not None:
            found = self.own(question)
        if found is None:
            found = self._made_up(question)
        return _reversed(found) if self.statements_reversed else found

    def _made_up(self, question: Question[Any]) -> Verdict:
        match question:
            case Statements():
                return self._statements(question)
            case Parts():
                size = _FLOOD if self.statements_flood else int(4 * self._chance(question, question.user_input))
                return PartsVerdict(tuple(f"{question.user_input} ({part})" for part in range(size)))
            case Entities():
                return self._entities(question)
            case Support():
                return self._support(question)
            case Relevance():
                grade = int(3 * self._chance(question, *question.sentences))
                return RelevanceVerdict(grade, self._some(question.sentences) if grade else ())
            case Usefulness():
                useful = self._chance(question, *question.sentences) < 0.5
                return UsefulnessVerdict(useful, self._some(question.sentences) if useful else ())
            case Embeddings() | Similarities():
                return self._matrix(question)
            case _:
                return self._label(question)

    def _label(self, question: Question[Any]) -> Verdict:
        match question:
            case Answered():
                answered = self._chance(question, question.part, *question.sentences) < 0.6
                return AnsweredVerdict(answered, self._some(question.sentences) if answered else ())
            case Mentions():
                named = [self._chance(question, question.name, text) for text in question.contexts]
                evidence = tuple(
                    place for place, odd in enumerate(named) if odd < 0.3 and question.contexts[place].strip()
                )
                return MentionsVerdict(bool(evidence), evidence)
            case Choice():
                chosen = self._chance(question, question.instruction, *sorted(question.values))
                return ChoiceVerdict(question.labels[int(len(question.labels) * chosen)])
            case Sufficiency():
                labels = tuple(SufficiencyLabel)
                return SufficiencyVerdict(labels[int(3 * self._chance(question, *sorted(question.contexts)))])
            case Addresses():
                return AddressesVerdict(self._chance(question, question.statement) < 0.6)
            case Noncommittal():
                return NoncommittalVerdict(self._chance(question, question.response) < 0.1)
            case _:
                return guess(question)

    def _statements(self, question: Statements) -> StatementsVerdict:
        found: list[Statement] = []
        for place, sentence in enumerate(question.sentences):
            count = _FLOOD if self.statements_flood else int(3.5 * self._chance(question, sentence))
            found.extend(Statement(f"{sentence} ({part})", place) for part in range(count))
        if len(found) % 4 == 3:
            found.append(found[0])
        return StatementsVerdict(tuple(found))

    def _entities(self, question: Entities) -> EntitiesVerdict:
        if self.statements_flood:
            return EntitiesVerdict(tuple(Entity(f"Entity {place}", 0) for place in range(_FLOOD)))
        words = ((word, place) for place, sentence in enumerate(question.sentences) for word in sentence.split())
        return EntitiesVerdict(tuple(Entity(*found) for found in words if self._chance(question, found[0]) < 0.3))

    def _support(self, question: Support) -> SupportVerdict:
        odds = [self._chance(question, question.statement, text) if text.strip() else 1.0 for text in question.contexts]
        if supporting := tuple(place for place, odd in enumerate(odds) if odd < 0.25):
            return SupportVerdict(SupportLabel.SUPPORTED, supporting)
        if self.seed % 2:
            return SupportVerdict(SupportLabel.UNSUPPORTED, tells_contradicted=False)
        if against := tuple(place for place, odd in enumerate(odds) if 0.25 <= odd < 0.4):
            return SupportVerdict(SupportLabel.CONTRADICTED, against)
        return SupportVerdict(SupportLabel.NOT_STATED)

    def _matrix(self, question: Embeddings | Similarities) -> MatrixVerdict:
        if isinstance(question, Embeddings):
            return MatrixVerdict.of(
                [[chance(self.seed + at, text) for at in range(_VECTOR_SIZE)] for text in question.texts]
            )
        return MatrixVerdict.of([[self._chance(question, a, b) for b in question.right] for a in question.left])

    def _some(self, sentences: Texts) -> tuple[int, ...]:
        odds = [chance(self.seed, "evidence", sentence) for sentence in sentences]
        return tuple(place for place, odd in enumerate(odds) if odd < 0.5 or odd == min(odds))

    def _chance(self, question: Question[Any], *texts: str) -> float:
        return chance(self.seed, question.kind, question.role, str(question.draw), *texts)


def better(question: Question[Any], verdict: Verdict) -> Iterator[Verdict]:
    """Yield better verdicts on the same question; none for kinds without good and bad."""
    match question, verdict:
        case Relevance(), RelevanceVerdict():
            yield from _better_relevance(question, verdict)
        case Support(), SupportVerdict():
            yield from _better_support(question, verdict)
        case Sufficiency(), SufficiencyVerdict():
            yield from _better_sufficiency(verdict)
        case Usefulness(), UsefulnessVerdict(useful=False):
            yield UsefulnessVerdict(useful=True, evidence=(0,))
        case Addresses(), AddressesVerdict(addresses=False):
            yield AddressesVerdict(addresses=True)
        case Noncommittal(), NoncommittalVerdict(noncommittal=True):
            yield NoncommittalVerdict(noncommittal=False)
        case Answered(sentences=(_, *_)), AnsweredVerdict(answered=False):
            yield AnsweredVerdict(answered=True, evidence=(0,))
        case Mentions(), MentionsVerdict(mentioned=False):
            readable = tuple(place for place, text in enumerate(question.contexts) if text.strip())
            yield MentionsVerdict(mentioned=True, evidence=readable[:1])
        case _:
            return


def _better_relevance(question: Relevance, verdict: RelevanceVerdict) -> Iterator[RelevanceVerdict]:
    everything = tuple(range(len(question.sentences)))
    for grade in range(verdict.grade + 1, 3):
        yield RelevanceVerdict(grade, verdict.evidence or everything[:1])
    if verdict.grade and verdict.evidence != everything:
        yield RelevanceVerdict(verdict.grade, everything)


def _better_sufficiency(verdict: SufficiencyVerdict) -> Iterator[SufficiencyVerdict]:
    if verdict.label is SufficiencyLabel.INSUFFICIENT:
        yield SufficiencyVerdict(SufficiencyLabel.PARTLY)
    if verdict.label is not SufficiencyLabel.SUFFICIENT:
        yield SufficiencyVerdict(SufficiencyLabel.SUFFICIENT)


def _better_support(question: Support, verdict: SupportVerdict) -> Iterator[SupportVerdict]:
    readable = tuple(place for place, text in enumerate(question.contexts) if text.strip())
    if verdict.label is SupportLabel.CONTRADICTED:
        yield SupportVerdict(SupportLabel.NOT_STATED)
    if verdict.label is not SupportLabel.SUPPORTED:
        yield SupportVerdict(SupportLabel.SUPPORTED, readable[:1])
    if verdict.evidence != readable or verdict.label is not SupportLabel.SUPPORTED:
        yield SupportVerdict(SupportLabel.SUPPORTED, readable)


def _reversed(verdict: Verdict) -> Verdict:
    match verdict:
        case StatementsVerdict():
            return replace(verdict, statements=verdict.statements[::-1])
        case PartsVerdict():
            return replace(verdict, parts=verdict.parts[::-1])
        case EntitiesVerdict():
            return replace(verdict, entities=verdict.entities[::-1])
        case _:
            return verdict


def guess(question: Question[Any]) -> Verdict:
    """Return a likely answer, as in dry runs."""
    guessed: Verdict = question.guess()
    return guessed


def _text(number: int, what: str, max_sentences: int) -> str:
    count = 1 + int(max_sentences * chance(number, what))
    return "\n\n".join(_sentence(number, f"{what} {place}") for place in range(count))


def _sentence(number: int, what: str) -> str:
    words = [_WORDS[int(len(_WORDS) * chance(number, what, str(at)))] for at in range(5)]
    return f"The {what} of case {number} has {' '.join(words)}."
