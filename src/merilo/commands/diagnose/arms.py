"""The questions of a diagnosis with their evidence, and the contexts of each arm."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.commands.label.run import drawn
from merilo.data.corpus import load_documents
from merilo.data.sample import BadRecord, Dataset, Sample, matching_id
from merilo.data.sentences import dense
from merilo.data.span_view import overlap
from merilo.errors import DataError
from merilo.numbers import count
from merilo.runs.ingest import taken
from merilo.stats.diagnosis import ARMS, LOOKS, Arm, Form

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.commands.evaluate.options import Reading

_NEAREST: Final = 5
"""Passages of about the same length among which the placebo is drawn."""
_NEAR: Final = 30
"""Passages, shorter and longer, among which the passages of other questions are drawn."""
_SHARED: Final = 20
"""Minimum characters, without white space, that a chunk shares with evidence that it cuts."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its evidence, and passages of other questions."""

    sample: Sample
    evidence: tuple[str, ...]
    ids: frozenset[str]
    """The ids of the evidence, if the data has no texts of it."""
    placebo: str
    neutral: tuple[str, ...]
    """Passages for the end of the contexts, one for each draw; fewer if there are not enough other questions."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The contexts that the application retrieved for a question, compared with the evidence."""

    form: Form
    contexts: tuple[str, ...]
    touched: frozenset[int]
    """The positions of the contexts that hold or overlap the evidence."""

    def contexts_of(self, arm: Arm, question: Question, neutral: int | None = None) -> tuple[str, ...]:
        """Return the contexts of an arm. `neutral`: the number of the passage at their end."""
        own = [each for at, each in enumerate(self.contexts) if at in self.touched]
        rest = [each for at, each in enumerate(self.contexts) if at not in self.touched]
        found: Mapping[Arm, Sequence[str]] = {
            Arm.UNCHANGED: self.contexts,
            Arm.PLACEBO: [question.placebo, *self.contexts],
            Arm.FIRST: [*(own if self.form is Form.WHOLE else question.evidence), *rest],
            Arm.CHUNK: [*own, *rest],
            Arm.ONLY: question.evidence,
            Arm.NONE: (),
        }
        return (*found[arm], *([] if neutral is None else [question.neutral[neutral]]))

    def idle(self, question: Question) -> frozenset[Arm]:
        """Return the arms that cannot heal: their contexts are byte by byte those of an arm before them."""
        found = [(arm, self.contexts_of(arm, question)) for arm in ARMS[self.form]]
        return frozenset(arm for at, (arm, own) in enumerate(found) if own in [each for _, each in found[:at]])


def retrieved(question: Question, contexts: Sequence[str], ids: Sequence[str]) -> Retrieved:
    """Compare retrieved contexts with the evidence: its text in a chunk, or its id, means that it was retrieved."""
    chunks, evidence = [dense(each) for each in contexts], [dense(each) for each in question.evidence]
    holding = [{at for at, chunk in enumerate(chunks) if each in chunk} for each in evidence]
    touching = [{at for at, chunk in enumerate(chunks) if _cuts(chunk, each)} for each in evidence]
    named = {at for at, each in enumerate(ids[: len(chunks)]) if matching_id(each) in question.ids}
    if all(holding) or (question.ids and frozenset(matching_id(ids[at]) for at in named) == question.ids):
        return Retrieved(Form.WHOLE, tuple(contexts), frozenset(named.union(*holding)))
    touched = frozenset(named.union(*holding, *touching))
    form = Form.CUT if all(one or two for one, two in zip(holding, touching, strict=True)) else Form.MISSING
    return Retrieved(form, tuple(contexts), touched)


def _cuts(chunk: str, evidence: str) -> bool:
    """Return True if a chunk shares an end or a beginning with evidence, or is a part of it."""
    shared = overlap(chunk, evidence)
    return shared is not None and shared[1] >= min(_SHARED, len(evidence))


def questions_in(dataset: Dataset, reading: Reading, *, reference: bool) -> tuple[list[Question], str]:
    """Return the questions of a data set that can be diagnosed, and how many records are left out, by reason.

    `reading.documents`: has the texts of evidence that is given as ids. `reference`: the judge needs one; otherwise
    only questions without one are left out where others have one. Raises DataError for invalid records and repeated
    ids, and if fewer than two questions are left.
    """
    corpus = None if reading.documents is None else load_documents(reading.documents)
    found: list[tuple[Sample, tuple[str, ...]]] = []
    records: list[Sample] = []
    lacking, numbers = Counter[str](), dict[str, int]()
    for number, each in enumerate(dataset, 1):
        if isinstance(each, BadRecord):
            if not reading.skip_invalid:
                raise DataError.of(*each.problems)
        elif (earlier := numbers.setdefault(each.id, number)) != number:
            raise DataError.of(taken(each.id, earlier, dataset, number))
        elif each.metadata.get("answerable") is not False:  # `merilo questions` adds questions without an answer
            records.append(each)
    reference = reference or any(each.reference for each in records)
    for each in records:
        names = () if each.reference_contexts or corpus is None else each.reference_context_ids or ()
        evidence = [context.text for context in each.reference_contexts or ()]
        known = [corpus[name].text for name in names if corpus is not None and name in corpus]
        texts = tuple(text for text in dict.fromkeys([*evidence, *known]) if dense(text))
        needed = {
            "without question": each.user_input,
            "without reference": each.reference or not reference,
            "with ids that the documents lack": len(known) == len(names),
            "without evidence": texts,
        }
        missing = [name for name, there in needed.items() if not there]
        if missing:
            lacking[missing[0]] += 1
        else:
            found.append((each, texts))
    why = ", ".join(f"{count(number, 'record')} {reason}" for reason, number in lacking.items())
    if len({texts for _, texts in found}) < 2:
        raise DataError(
            "A diagnosis needs two questions with a reference and different evidence: reference_contexts, or ids with "
            f"--documents; found {count(len(found), 'question')}{f' ({why})' if why else ''}."
        )
    return [*_with_others(found)], why


def _with_others(found: Sequence[tuple[Sample, tuple[str, ...]]]) -> Iterator[Question]:
    """Yield the questions, each with passages of others, of about the same length, that share nothing with its own."""
    passages = sorted({(len(text), text) for _, texts in found for text in texts})
    for sample, texts in found:
        at, length, own = bisect_left(passages, (len(texts[0]), texts[0])), len(texts[0]), [*map(dense, texts)]
        near = sorted(passages[max(0, at - _NEAR) : at + _NEAR], key=lambda each: (abs(each[0] - length), each))
        fit = [text for _, text in near if not any(_cuts(dense(text), each) for each in own)]
        if not fit:
            raise DataError(f"No other question has evidence that can be a placebo for {sample.id!r}.")
        (placebo,) = drawn(fit[:_NEAREST], 1, key=f"placebo {sample.id}")
        neutral = drawn([each for each in fit if each != placebo], LOOKS[1], key=f"neutral {sample.id}")
        ids = frozenset(map(matching_id, () if sample.reference_contexts else sample.reference_context_ids or ()))
        yield Question(sample, texts, ids, placebo, tuple(neutral))
