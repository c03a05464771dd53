"""Noise sensitivity of spring-ai-ragas: how often the response errs because of what was retrieved."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined, choice
from merilo.metrics.published.spring_ai_ragas.models import ModelRequest, Panel, ScoresEmpty
from merilo.metrics.published.spring_ai_ragas.replies import flag_or_none, objects_in, or_nothing, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.published.asking import ReadReply


_FIELDS: Final = ("user_input", "response", "reference", "retrieved_contexts")
_FEWER: Final = "verdicts are missing and count as not supported"

Statements = tuple[str, ...]
Verdicts = tuple[bool, ...]


class NoiseMode(StrEnum):
    """The contexts that the errors come from."""

    RELEVANT = "relevant"
    """Contexts that support a statement of the reference."""
    IRRELEVANT = "irrelevant"
    """The others; an error that a relevant context supports too is not counted."""


@dataclass(frozen=True, slots=True)
class _Tables:
    """The verdicts of one model on its statements; one row for each context."""

    right: Verdicts
    """Of each statement of the response: does the reference support it?"""
    reference: Sequence[Verdicts]
    response: Sequence[Verdicts]

    def errors(self, mode: NoiseMode) -> Verdicts:
        """Return for each statement of the response whether it is wrong and supported by a context of this mode."""
        relevant = [any(row) for row in self.reference]
        return tuple(not right and self._from(statement, relevant, mode) for statement, right in enumerate(self.right))

    def _from(self, statement: int, relevant: Sequence[bool], mode: NoiseMode) -> bool:
        by = {is_relevant for is_relevant, row in zip(relevant, self.response, strict=True) if row[statement]}
        return True in by if mode is NoiseMode.RELEVANT else by == {False}


def _statements(value: object) -> Statements:
    return texts_of(value, "statements")


def _verdicts(value: object) -> Verdicts:
    found = objects_in(or_nothing(value), "verdicts")
    return tuple(flag_or_none(fields, "verdict") or False for fields in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSensitivity(ScoresEmpty):
    """Share of the response's statements that are wrong and come from a retrieved context.

    Formula: Average over models of statements that are wrong and supported by a relevant context / statements.
    Questions: 3 + 2 N requests for each model, N contexts.
    Undefined: the models' scores lie further apart than the tolerance
    Not: On a budget: it asks twice for each context and model.
    See: spring-ai-ragas:faithfulness | ragas-0.4.3:noise_sensitivity
    Source: spring-ai-ragas 0.3.3, NoiseSensitivityMetric.

    A context is relevant if it supports a statement of the reference. Requests for each model: statements of the
    reference, statements of the response, verdicts on the latter against the reference, and then, side by side,
    verdicts on both lists against each context. A model that fails at one of the first three drops out; failed when
    all do.

    - `mode`: errors from relevant or from irrelevant contexts.
    - `missing_is_unsupported`: a verdict that is missing, also because the call against a context failed, means
      "not supported", flagged; off, the model drops out.
    - `empty_is_zero`: missing or blank fields, and a response or a reference without statements, score 0, the best
      score here.
    """

    name: ClassVar[str] = "spring-ai-ragas:noise_sensitivity"
    version: ClassVar[int] = 2
    higher_is_better: ClassVar[bool] = False
    needs = frozenset(_FIELDS)
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "needs": "empty_is_zero",
            "nothing to judge": "empty_is_zero",
        }
    )

    mode: NoiseMode = NoiseMode.RELEVANT
    missing_is_unsupported: bool = True

    def __post_init__(self) -> None:
        ScoresEmpty.__post_init__(self)
        object.__setattr__(self, "mode", choice(NoiseMode, self.mode.lower(), metric=self.name, parameter="mode"))

    def max_questions(self, sample: Sample) -> int:
        return len(self.names) * (3 + 2 * len(sample.retrieved_contexts or ())) if self.needs <= sample.present else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self.nothing(sample, _FIELDS)) is not None:
            return nothing
        panel, user_input = self.panel(sample), sample.require("user_input")
        response, reference = sample.require("response"), sample.require("reference")
        theirs = yield from self._stated(panel, self.names, user_input, reference)
        mine = yield from self._stated(panel, tuple(theirs), user_input, response)
        asks = [_against(reference, mine[role]) for role in mine]
        judged = {reply.role: reply for reply in (yield from panel.read(asks, _verdicts)) if reply is not None}
        roles = tuple(mine)
        asks = [
            _against(context.text, statements[role])
            for context in sample.contexts
            for statements in (theirs, mine)
            for role in roles
        ]
        replies = yield from panel.read(asks, _verdicts)
        scores: dict[str, float | None] = {}
        evidence: list[Evidence] = []
        for place, role in enumerate(roles):
            rows = replies[place :: len(roles)]
            tables = self._tables(panel, theirs[role], mine[role], judged.get(role), rows)
            if tables is None:
                continue
            if not theirs[role].value:  # then no context is relevant or irrelevant
                scores[role] = self.share(panel, 0, 0, "statement in the reference")
                continue
            errors = tables.errors(self.mode)
            scores[role] = self.share(panel, sum(errors), len(errors), "statement")
            evidence += [
                judged[role].evidence(EvidenceTarget.STATEMENT, index, text=text, value=float(errors[index]))
                for index, text in enumerate(mine[role].value)
            ]
        wrong = sum(piece.value == 1 for piece in evidence)
        return self.judged(panel, scores, evidence, {"statements": len(evidence), "errors": wrong}, what="statement")

    @staticmethod
    def _stated(
        panel: Panel, roles: Sequence[str], user_input: str, text: str
    ) -> Plan[dict[str, ReadReply[Statements]]]:
        values = {"user_input": user_input, "text": text}
        likely = '{"statements": ["A statement."]}'
        return (yield from panel.ask(roles, "noise_sensitivity.statements", values, likely=likely, read=_statements))

    def _tables(
        self,
        panel: Panel,
        theirs: ReadReply[Statements],
        mine: ReadReply[Statements],
        right: ReadReply[Verdicts] | None,
        rows: Sequence[ReadReply[Verdicts] | None],
    ) -> _Tables | None:
        """Return one model's verdicts, with missing ones filled in; None if it drops out.

        `rows`: in the order asked.
        """
        if right is None:
            return None
        wanted = [len(theirs.value), len(mine.value)]
        complete = len(right.value) >= wanted[1] and all(
            row is not None and len(row.value) >= wanted[at % 2] for at, row in enumerate(rows)
        )
        if not complete:
            panel.flags.add(_FEWER if self.missing_is_unsupported else "a model left verdicts out and was left out")
            if not self.missing_is_unsupported:
                return None
        filled = [_filled(row, wanted[at % 2]) for at, row in enumerate(rows)]
        return _Tables(_filled(right, wanted[1]), filled[::2], filled[1::2])


def _filled(reply: ReadReply[Verdicts] | None, size: int) -> Verdicts:
    found = () if reply is None else reply.value[:size]
    return (*found, *(False,) * (size - len(found)))


def _against(text: str, stated: ReadReply[Statements]) -> ModelRequest:
    items = ", ".join('{"statement": "A statement.", "verdict": true, "reason": "A reason."}' for _ in stated.value)
    values = {"context": text, "statements": "\n".join(stated.value)}
    return ModelRequest(stated.role, "noise_sensitivity.verdicts", values, f'{{"verdicts": [{items}]}}')
