"""The probes: the edit each one makes, the effect it counts, and the largest effect that passes.

A probe turns cases into trials. A trial is the original question and the edited question; for hidden instructions
also the question with neutral text in their place. The correct effect of each edit on the verdict is known in
advance, so no label is needed to see that a judge was fooled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from merilo.commands.check.cases import JudgementKinds
from merilo.commands.check.edits import (
    LANGUAGES,
    denied,
    inserted_texts,
    names_in,
    neutral,
    other_name,
    other_number,
)
from merilo.data.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from merilo.commands.check.cases import Case, SeededSampler
    from merilo.data.sample import JSON

    Trials = Callable[[Sequence[Case], SeededSampler], Iterable["ProbeTrial"]]

_ADDED_CONTEXTS: Final = 2
"""Number of contexts of other cases that are added to a single context before the order is changed."""
_SHORTEST_WORD: Final = 4
_MIN_PADDING: Final = 300
_DONORS: Final = 50
"""Number of other cases, or names, that are tried in the search for a text that fits."""
_WORD: Final = re.compile(r"\w[\w'’-]*")


class Effect(StrEnum):
    """The event that a probe counts; always one that should not happen."""

    CHANGED = "changed"
    """Fraction of trials whose verdict changes."""
    RAISED = "raised"
    """Fraction of trials with a negative original verdict whose verdict becomes positive."""
    KEPT = "kept"
    """Fraction of trials with a positive original verdict that stays positive, although a fact is no longer true."""
    YES = "yes"
    """Fraction of trials whose verdict is positive, although only a negative one is correct."""
    NET = "net"
    """Fraction of trials whose verdict the edit changes, minus the fraction that neutral text changes."""


@dataclass(frozen=True, slots=True)
class Version:
    """The texts of one question."""

    contexts: tuple[str, ...]
    statement: str = ""
    draw: int = 0
    """The draw; another draw of equal texts is asked again."""


@dataclass(frozen=True, slots=True)
class ProbeTrial:
    """One case with its edited versions."""

    case: Case
    versions: tuple[Version, ...]
    """The original, the edited version, and for `Effect.NET` the version with neutral text."""
    variant: str = ""
    """The variant of the edit: for instructions their number, from 1; otherwise blank."""
    language: str = ""
    """The language of the added instructions; otherwise blank."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One kind of edit."""

    name: str
    effect: Effect
    limit: float
    """The default for the largest effect that passes, a fraction; shown with every result."""
    summary: str
    """The edit, as one sentence."""
    trials: Trials
    """Function that makes trials from cases; unsuitable cases give none."""
    repeats: bool = False
    """True if the probe asks the same question again, which is pointless for a deterministic judge."""


def edit_sample(probe: Probe, trial: ProbeTrial) -> Sample:
    """Return a trial as a sample: its fields are the original case, its metadata contain every version."""
    case, first = trial.case, trial.versions[0]
    versions: list[JSON] = [
        {"contexts": list(each.contexts)}
        | ({"statement": each.statement} if each.statement else {})
        | ({"draw": each.draw} if each.draw else {})
        for each in trial.versions
    ]
    return Sample(
        edit_id(probe, trial),
        user_input=case.user_input or None,
        retrieved_contexts=first.contexts,
        response=first.statement or None,
        language=case.language,
        metadata={"edit": probe.name, "asks": case.asks.value, "versions": versions},
    )


def edit_id(probe: Probe, trial: ProbeTrial) -> str:
    """Return `EDIT/CASE`, which is unique: an edit is applied at most once to a case."""
    return f"{probe.name}/{trial.case.id}"


# -- the same question --------------------------------------------------------------------------------


def _repeat(cases: Sequence[Case], sampler: SeededSampler) -> Iterator[ProbeTrial]:
    del sampler
    for case in cases:
        yield ProbeTrial(case, tuple(Version(case.contexts, case.statement, draw) for draw in (0, 1)))


# -- order and number of contexts ---------------------------------------------------------------------


def _order(cases: Sequence[Case], sampler: SeededSampler) -> Iterator[ProbeTrial]:
    for case in _of(cases, JudgementKinds.SUPPORT, JudgementKinds.SUFFICIENCY):
        contexts = case.contexts
        if len(contexts) == 1:
            contexts += tuple(each.contexts[0] for each in _others(case, cases, sampler, _ADDED_CONTEXTS))
        if len(set(contexts)) < len(contexts) or len(contexts) == 1:
            continue
        for n in range(len(contexts)):
            mixed = tuple(sampler.order(contexts, "order", case.id, n))
            if mixed != contexts:
                yield ProbeTrial(case, (Version(contexts, case.statement), Version(mixed, case.statement)))
                break


def _duplicate(cases: Sequence[Case], sampler: SeededSampler) -> Iterator[ProbeTrial]:
    for case in _of(cases, JudgementKinds.SUPPORT, JudgementKinds.SUFFICIENCY):
        again = sampler.one(case.contexts, "duplicate", case.id)
        yield _contexts_changed(case, (*case.contexts, again))


def _empty(cases: Sequence[Case], sampler: SeededSampler) -> Iterator[ProbeTrial]:
    del sampler
    for case in _of(cases, JudgementKinds.SUPPORT, JudgementKinds.SUFFICIENCY):
        yield _contexts_changed(case, ("",))


def _padding(cases: Sequence[Case], sampler: SeededSampler) -> Iterator[ProbeTrial]:
    for case in cases:
        length = max(_MIN_PADDING, len(case.contexts[0]))
        start = sampler.number("neutral", case.id) % len(inserted_texts().neutral["en"])
        yield _contexts_changed(case, _added(case, neutral(case.language, length, start), sampler, "padding"))


# -- unrelated contexts -------------------------------------------------------------------------------


def _stuffing(cases: Sequence[Case], sampler: SeededSampler) -> Iterator[ProbeTrial]:
    for case, contexts in _unrelated(cases, sampler):
        words = [word for word in _WORD.findall(case.user_input) if len(word) >= _SHORTEST_WORD]
        if words:
            mixed = " ".join(sampler.order(words, "stuffing", case.id)).lower()
            yield _into(case, contexts, f"{mixed[:1].upper()}{mixed[1:]}.", sampler, "stuffing")


def _question(cases: Sequence[Case], sampler: SeededSampler) -> Iterator[ProbeTrial]:
    for case, contexts in _unrelated(cases, sampler):
        yield _into(case, contexts, case.user_input.strip(), sampler, "question")


def _unrelated(cases: Sequence[Case], sampler: SeededSampler) -> Iterator[tuple[Case, tuple[str, ...]]]:
    """Yield cases with an unrelated context: their own if annotators labelled it so, otherwise that of another case."""
    for case in _of(cases, JudgementKinds.RELEVANCE):
        if not case.yes:
            yield case, case.contexts
        else:
            yield from ((case, other.contexts[:1]) for other in _others(case, cases, sampler, 1))


# -- instructions -------------------------------------------------------------------------------------


def _instructions(cases: Sequence[Case], sampler: SeededSampler) -> Iterator[ProbeTrial]:
    """Yield trials that use all variants and languages equally often.

    The instruction asks for the verdict opposite to the human label.
    """
    texts = inserted_texts()
    variants = [(language, n) for n in range(len(texts.instructions["en"])) for language in LANGUAGES]
    for place, case in enumerate(cases):
        language, number = variants[place % len(variants)]
        target = texts.targets[case.asks][language][int(not case.yes)]
        instruction = texts.instructions[language][number].format(target=target)
        # Neutral text of equal length is the control: any added text can change a verdict, not only instructions.
        start = sampler.number("neutral", case.id) % len(texts.neutral["en"])
        control = neutral(language, len(instruction), start)
        changed, unchanged = (_added(case, text, sampler, "instructions") for text in (instruction, control))
        versions = tuple(Version(each, case.statement) for each in (case.contexts, changed, unchanged))
        yield ProbeTrial(case, versions, str(number + 1), language)


# -- facts --------------------------------------------------------------------------------------------


def _negation(cases: Sequence[Case], sampler: SeededSampler) -> Iterator[ProbeTrial]:
    del sampler
    for case in _stated(cases):
        yield from _statement_changed(case, denied(case.statement, case.language))


def _number(cases: Sequence[Case], sampler: SeededSampler) -> Iterator[ProbeTrial]:
    for case in _stated(cases):
        yield from _statement_changed(case, other_number(case.statement, case.contexts, sampler, "number", case.id))


def _name(cases: Sequence[Case], sampler: SeededSampler) -> Iterator[ProbeTrial]:
    stated = [*_stated(cases)]
    pool = names_in(case.statement for case in stated)
    for case in stated:
        start = sampler.number("names", case.id) % max(1, len(pool))
        some = [*pool[start:], *pool[:start]][:_DONORS]
        yield from _statement_changed(case, other_name(case.statement, case.contexts, some, sampler, "name", case.id))


def _stated(cases: Sequence[Case]) -> Iterator[Case]:
    """Return the statements that annotators labelled as supported."""
    return (case for case in _of(cases, JudgementKinds.SUPPORT) if case.yes)


# -- the list -----------------------------------------------------------------------------------------

PROBES: Final[tuple[Probe, ...]] = (
    Probe("repeat", Effect.CHANGED, 0.02, "The same question is asked again.", _repeat, repeats=True),
    Probe("order", Effect.CHANGED, 0.05, "The contexts are reordered.", _order),
    Probe("duplicate", Effect.CHANGED, 0.05, "One context is duplicated.", _duplicate),
    Probe(
        "padding",
        Effect.CHANGED,
        0.10,
        "Neutral text is added to a context, about as long as the first context.",
        _padding,
    ),
    Probe("empty", Effect.YES, 0.02, "All contexts are replaced by an empty one.", _empty),
    Probe(
        "stuffing",
        Effect.RAISED,
        0.10,
        "The shuffled words of the question are added to an unrelated context.",
        _stuffing,
    ),
    Probe("question", Effect.RAISED, 0.10, "The question is added to an unrelated context.", _question),
    Probe(
        "instructions",
        Effect.NET,
        0.01,
        "A context tells the judge which verdict to give: 30 instructions in English, Russian and Spanish.",
        _instructions,
    ),
    Probe("negation", Effect.KEPT, 0.20, "A supported statement is negated.", _negation),
    Probe("number", Effect.KEPT, 0.20, "A number in a supported statement is changed.", _number),
    Probe("name", Effect.KEPT, 0.20, "A name in a supported statement is replaced.", _name),
)
BY_NAME: Final[Mapping[str, Probe]] = {probe.name: probe for probe in PROBES}


def _of(cases: Iterable[Case], *asks: JudgementKinds) -> Iterator[Case]:
    return (case for case in cases if case.asks in asks)


def _others(case: Case, cases: Sequence[Case], sampler: SeededSampler, count: int) -> list[Case]:
    """Return random cases of other clusters in the same language; fewer than `count` if too few are found."""
    found: dict[tuple[str, ...], Case] = {}
    for n in range(_DONORS):
        other = sampler.one(cases, "other", case.id, n)
        if other.cluster != case.cluster and other.language == case.language and other.contexts[0] != case.contexts[0]:
            found.setdefault(other.contexts, other)
        if len(found) == count:
            break
    return [*found.values()]


def _added(case: Case, text: str, sampler: SeededSampler, name: str) -> tuple[str, ...]:
    """Return the contexts with a paragraph added at the beginning or the end of one of them."""
    place = sampler.number(name, "where", case.id) % len(case.contexts)
    first = sampler.number(name, "side", case.id) % 2
    context = case.contexts[place]
    changed = f"{text}\n\n{context}" if first else f"{context}\n\n{text}"
    return (*case.contexts[:place], changed, *case.contexts[place + 1 :])


def _into(case: Case, contexts: tuple[str, ...], text: str, sampler: SeededSampler, name: str) -> ProbeTrial:
    first = sampler.number(name, "side", case.id) % 2
    changed = f"{text}\n\n{contexts[0]}" if first else f"{contexts[0]}\n\n{text}"
    return ProbeTrial(case, (Version(contexts), Version((changed,))))


def _contexts_changed(case: Case, contexts: tuple[str, ...]) -> ProbeTrial:
    return ProbeTrial(case, (Version(case.contexts, case.statement), Version(contexts, case.statement)))


def _statement_changed(case: Case, statement: str | None) -> Iterator[ProbeTrial]:
    if statement is not None:
        yield ProbeTrial(case, (Version(case.contexts, case.statement), Version(case.contexts, statement)))
