"""The noise sensitivity of ragas 0.1: wrong statements that a context supports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.sentences import Sentences
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.formulas import mean
from merilo_published.asking import UnreadableReply, on_statements
from merilo_published.definition import Published, bound
from merilo_published.ragas_v0_1.asking import SUPPORT, JsonAsker, Voting, elected, statements_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo_published.asking import Reply
    from merilo_published.ragas_v0_1.asking import MaybeRead

Flags = tuple[bool, ...]
"""For each statement, True if it is supported."""

_NO_CONTEXT: Final = "nothing was retrieved"
_NO_STATEMENT: Final = "the judge found no statement to judge"


class Focus(StrEnum):
    """The contexts that the wrong statements come from."""

    RELEVANT = "relevant"
    """Contexts that support a statement of the reference."""
    IRRELEVANT = "irrelevant"
    """Contexts that support no statement of the reference."""


@dataclass(frozen=True, slots=True)
class _List:
    """The verdicts on one list of statements; None if no reply could be read."""

    reply: Reply
    verdicts: Flags | None
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Lists:
    """All verdicts: of each context on the statements of both texts, and of the reference on the response's."""

    reference: tuple[_List, ...]
    response: tuple[_List, ...]
    right: _List


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSensitivity(Voting):
    """Share of the response's statements that are wrong and that a context supports (ragas 0.1).

    Formula: Mean over statements of (not supported by the reference and supported by a context of the focus).
    Questions: Three requests and two for each context, one more for each reply that cannot be read; sentences are cut
        by pysbd.
    Undefined: nothing was retrieved | the judge found no statement to judge | ...
    Not: Where references are not complete: what they leave out counts as wrong.
    See: faithfulness | context_relevance
    Source: ragas/metrics/_noise_sensitivity.py

    A context is relevant if it supports a statement of the reference. With the irrelevant focus: supported by an
    irrelevant context and by no relevant one. The lower the better. Requests, in this order: statements of the
    reference and of the response; for each context its verdicts on both; the reference's verdicts on the response.
    Failed where lists of verdicts on the same statements differ in length.

    Statements that cannot be read are shown as NaN; lists of verdicts that cannot be read, all of them for the same
    statements, are taken as one yes. Where one verdict on the response's statements meets several, it counts for each.

    - `focus`: as the name of the metric says.
    - `reproducibility`: as for faithfulness.
    """

    higher_is_better: ClassVar[bool] = False
    needs = frozenset({"user_input", "retrieved_contexts", "response", "reference"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({})
    asks = Kinds({Completion, Sentences})

    focus: Focus = Focus.RELEVANT

    def __post_init__(self) -> None:
        Published.__post_init__(self)
        base, _, own = self.name.rpartition("_")
        if own != self.focus:
            raise UsageError(
                f"Metric {self.name!r} takes focus={own}, got {self.focus!s}; take '{base}_{self.focus}' for that."
            )

    def max_questions(self, sample: Sample) -> int:
        lists = 2 * len(sample.retrieved_contexts or ()) + 1
        return bound(sample, self.needs, 6 + lists * 2 * self.replies)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, response = sample.require("user_input"), sample.require("response")
        reference = sample.require("reference")
        if not sample.contexts:
            return Undefined(_NO_CONTEXT)
        asker = JsonAsker()
        of_reference = yield from statements_of(asker, user_input, reference)
        of_response = yield from statements_of(asker, user_input, response)
        pairs: list[tuple[_List, _List]] = []
        for context in sample.contexts:
            on_reference = yield from self._judged(asker, context.text, of_reference)
            pairs.append((on_reference, (yield from self._judged(asker, context.text, of_response))))
        right = yield from self._judged(asker, reference, of_response)
        first, second = zip(*pairs, strict=True)
        return self._scored((of_reference, of_response), _Lists(first, second, right))

    def _judged(self, asker: JsonAsker, text: str, stated: MaybeRead[tuple[tuple[str, ...], ...]]) -> Plan[_List]:
        """Return the verdicts of a text on statements; unreadable statements are shown as NaN, as JSON writes it."""
        shown = "NaN"
        if stated.value is not None:
            shown = json.dumps([each for group in stated.value for each in group], ensure_ascii=False)
        read = yield from asker.samples(SUPPORT, {"contexts": text, "statements": shown}, self.replies)
        ballot = elected(read)
        if isinstance(ballot, UnreadableReply):
            return _List(read[0].reply, None, ("verdicts that could not be read were taken as yes",))
        return _List(ballot.reply, tuple(item.value != 0 for item in ballot.items), ballot.flags)

    def _scored(self, stated: Sequence[MaybeRead[tuple[tuple[str, ...], ...]]], lists: _Lists) -> Score | Undefined:
        on_reference, on_response = _even(lists.reference), _even(lists.response)
        right = _even((lists.right,))[0]
        if all(each.verdicts is None for each in (*lists.reference, *lists.response)):
            raise lists.response[0].reply.unreadable("No list of the contexts' verdicts can be read.")
        if not on_reference[0]:
            return Undefined(_NO_STATEMENT)
        given, expected = len(on_response[0]), len(right)
        if given != expected and 1 not in {given, expected}:
            raise lists.right.reply.unreadable(
                f"The reference has verdicts on {expected} statements, the contexts on {given}."
            )
        total = 0 if 0 in {given, expected} else max(given, expected)
        if not total:
            return Undefined(_NO_STATEMENT)
        relevant = [any(verdicts) for verdicts in on_reference]
        noisy = [
            not right[at % expected] and self._from_focus(relevant, [verdicts[at % given] for verdicts in on_response])
            for at in range(total)
        ]
        flags = [] if given == expected else ["one verdict was taken for several statements"]
        flags += ["statements that could not be read were shown as NaN"] * any(read.value is None for read in stated)
        for each in (*lists.reference, *lists.response, lists.right):
            flags += each.flags
        return Score(
            mean(map(float, noisy)),
            evidence=_evidence(stated, lists, noisy),
            counts={"statements": total, "noisy": sum(noisy), "relevant": sum(relevant), "contexts": len(relevant)},
            flags=tuple(dict.fromkeys(flags)),
        )

    def _from_focus(self, relevant: Sequence[bool], supporting: Sequence[bool]) -> bool:
        """Return True if a statement is supported by contexts of the focus; relevant contexts take precedence."""
        by_relevant = any(use and support for use, support in zip(relevant, supporting, strict=True))
        return by_relevant if self.focus is Focus.RELEVANT else any(supporting) and not by_relevant


def _even(lists: Sequence[_List]) -> tuple[Flags, ...]:
    """Return lists of one length, one for each context; a single yes each if no list could be read.

    Raises AskFailed.
    """
    known = [each.verdicts for each in lists if each.verdicts is not None]
    if not known:
        return ((True,),) * len(lists)
    for each in lists:
        if each.verdicts is None or len(each.verdicts) != len(known[0]):
            raise each.reply.unreadable("The contexts have verdicts on different numbers of statements.")
    return tuple(known)


def _evidence(
    stated: Sequence[MaybeRead[tuple[tuple[str, ...], ...]]], lists: _Lists, noisy: Sequence[bool]
) -> tuple[Evidence, ...]:
    of_reference, of_response = stated
    texts = [text for group in of_response.value or () for text in group]
    texts += [""] * (len(noisy) - len(texts))
    return (
        Evidence(EvidenceTarget.TEXT, 0, of_reference.reply.verdict),
        Evidence(EvidenceTarget.TEXT, 0, of_response.reply.verdict),
        *(
            Evidence(EvidenceTarget.CONTEXT, at, each.reply.verdict)
            for at, pair in enumerate(zip(lists.reference, lists.response, strict=True))
            for each in pair
        ),
        *on_statements(lists.right.reply.verdict, zip(map(float, noisy), texts, strict=False)),
    )
