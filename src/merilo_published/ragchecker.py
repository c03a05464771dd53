"""RAGChecker: claims of the response and of the reference, checked against each other and against the passages.

Four tables of labels lie behind all eleven metrics. A metric asks for the tables that it reads; the same questions
asked by several metrics are one answer in a run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import Plan, both, together
from merilo.metrics.base import Evidence, EvidenceTarget, Metric, Score, Undefined
from merilo.metrics.formulas import f_measure
from merilo.metrics.variants import variant
from merilo_published.asking import Asker, Reply, ReplyFault, RequestTemplate, numbered, object_in, texts_in
from merilo_published.definition import Published, by_parameters, fraction, noisy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Formula = Callable[["Tables"], float]
    from merilo.data.sample import Sample, TextField

# The computation of RAGChecker: eleven metrics as pure functions of four tables of labels.
#
# Source: RAGChecker (amazon-science), git 6091f08.


class Label(StrEnum):
    """The label of a claim and a text."""

    ENTAILMENT = "Entailment"
    NEUTRAL = "Neutral"
    CONTRADICTION = "Contradiction"


@dataclass(frozen=True, slots=True)
class Tables:
    """The claims that each text entails; a table without claims is empty."""

    answer2response: tuple[bool, ...] = ()
    """For each claim of the response: by the reference?"""
    response2answer: tuple[bool, ...] = ()
    """For each claim of the reference: by the response?"""
    retrieved2answer: tuple[tuple[bool, ...], ...] = ()
    """For each claim of the reference, for each passage: by the passage?"""
    retrieved2response: tuple[tuple[bool, ...], ...] = ()
    """For each claim of the response, for each passage: by the passage?"""

    @property
    def useful(self) -> tuple[bool, ...]:
        """For each passage: does it entail some claim of the reference?"""
        return tuple(any(column) for column in zip(*self.retrieved2answer, strict=True))


def _share(flags: Sequence[bool]) -> float:
    """Return the fraction of true flags; 0 for none."""
    return fraction(sum(flags), len(flags))


def _precision(tables: Tables) -> float:
    return _share(tables.answer2response)


def _recall(tables: Tables) -> float:
    return _share(tables.response2answer)


def _context_utilization(tables: Tables) -> float:
    pairs = zip(tables.retrieved2answer, tables.response2answer, strict=True)
    return _share([used for row, used in pairs if any(row)])


def _noise(tables: Tables, *, from_useful: bool) -> float:
    if not tables.retrieved2answer:
        return 0.0
    by_passage = [*zip(*tables.retrieved2response, strict=True)]
    return _share(noisy(tables.answer2response, tables.useful, by_passage, from_relevant=from_useful))


def _baseless(tables: Tables, *, right: bool) -> float:
    rows = zip(tables.answer2response, tables.retrieved2response, strict=True)
    return _share([correct is right and bool(row) and not any(row) for correct, row in rows])  # no passage: none


FORMULAS: Final[Mapping[str, Formula]] = {
    "precision": _precision,
    "recall": _recall,
    "f1": lambda tables: f_measure(_precision(tables), _recall(tables)),
    "claim_recall": lambda tables: _share([any(row) for row in tables.retrieved2answer]),
    "context_precision": lambda tables: _share(tables.useful),
    "context_utilization": _context_utilization,
    "noise_sensitivity_in_relevant": partial(_noise, from_useful=True),
    "noise_sensitivity_in_irrelevant": partial(_noise, from_useful=False),
    "hallucination": partial(_baseless, right=False),
    "self_knowledge": partial(_baseless, right=True),
    "faithfulness": lambda tables: _share([any(row) for row in tables.retrieved2response]),
}
"""Each metric as a function of the tables, in [0, 1]; 0 where a table that it reads has no claims or no passages."""


_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "answer2response": frozenset({"response", "reference"}),
    "response2answer": frozenset({"response", "reference"}),
    "retrieved2answer": frozenset({"reference", "retrieved_contexts"}),
    "retrieved2response": frozenset({"response", "retrieved_contexts"}),
}
_TEXTS: Final[tuple[TextField, ...]] = ("user_input", "response", "reference")
_OF_RESPONSE: Final = frozenset({"answer2response", "retrieved2response"})
_OF_REFERENCE: Final = frozenset({"response2answer", "retrieved2answer"})
_LIKELY_CLAIMS: Final = json.dumps({"claims": ["A claim.", "Another claim."]})
_LETTERS_PER_CLAIM: Final = 4
_ALWAYS_CLAIMS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked(Published):
    """A metric of RAGChecker: claims are extracted, then checked text by text.

    Questions: One request for the claims of each text, then one for each five claims and each text they are checked
        against: the other text, or each passage.
    Use: To compare with numbers of RAGChecker, or to tell where an error comes from.
    Not: For a first look: eleven numbers, of which several are shares of the same few claims.
    Source: RAGChecker (amazon-science), git 6091f08: extraction, joint checking, computation

    A claim and a text get one of the labels Entailment, Neutral and Contradiction; only the first counts. A
    reply that is not a list of claims or does not label each claim makes the outcome Failed. 0 where there is no claim
    or no passage to count.

    - `claims_per_prompt`: claims checked in one request, at least 1.
    """

    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "nothing to count scores 0"})
    tables: ClassVar[frozenset[str]]
    """The tables that it reads."""
    needs = by_parameters(
        lambda metric: frozenset({"user_input"}).union(*(_FIELDS[table] for table in metric.tables)), frozenset[str]()
    )

    claims_per_prompt: int = 5

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        texts = {name: sample.require(name) for name in _TEXTS if name in self.needs}
        passages = [context.text for context in sample.contexts] if "retrieved_contexts" in self.needs else []
        asker, user_input = Asker("ragchecker"), texts["user_input"]
        response, reference = yield from both(
            _claims(asker, user_input, texts["response"] if self.tables & _OF_RESPONSE else None),
            _claims(asker, user_input, texts["reference"] if self.tables & _OF_REFERENCE else None),
        )
        against = {
            "answer2response": (response, [texts.get("reference", "")]),
            "response2answer": (reference, [texts.get("response", "")]),
            "retrieved2answer": (reference, passages),
            "retrieved2response": (response, passages),
        }
        names = [name for name in against if name in self.tables]
        checked = yield from together([self._table(asker, *against[name]) for name in names])
        rows = {name: rows for name, (rows, _) in zip(names, checked, strict=True)}
        tables = Tables(
            answer2response=tuple(row[0] for row in rows.get("answer2response", ())),
            response2answer=tuple(row[0] for row in rows.get("response2answer", ())),
            retrieved2answer=rows.get("retrieved2answer", ()),
            retrieved2response=rows.get("retrieved2response", ()),
        )
        return Score(
            FORMULAS[self.name.partition(":")[2]](tables),
            evidence=tuple(piece for _, evidence in checked for piece in evidence),
            counts={"response_claims": len(response), "reference_claims": len(reference), "passages": len(passages)},
        )

    def _table(
        self, asker: Asker, claims: Sequence[str], texts: Sequence[str]
    ) -> Plan[tuple[tuple[tuple[bool, ...], ...], list[Evidence]]]:
        """Return the labels of the claims against each of the texts, one row for each claim, and their replies."""
        columns = yield from together([self._column(asker, claims, text) for text in texts])
        rows = [tuple(column[at] for column in columns) for at in range(len(claims))]
        evidence = [
            reply.evidence(EvidenceTarget.STATEMENT, at, float(entailed), claims[at])
            for at, row in enumerate(rows)
            for entailed, reply in row
        ]
        return tuple(tuple(entailed for entailed, _ in row) for row in rows), evidence

    def _column(self, asker: Asker, claims: Sequence[str], text: str) -> Plan[list[tuple[bool, Reply]]]:
        size = self.claims_per_prompt
        packs = [claims[start : start + size] for start in range(0, len(claims), size)]
        shown = [{"claims": numbered([" ".join(each.split()) for each in pack]), "text": text} for pack in packs]
        plans = [asker.read(_labels_of(len(pack)), values) for pack, values in zip(packs, shown, strict=True)]
        checked = yield from together(plans)
        return [(label is Label.ENTAILMENT, pack.reply) for pack in checked for label in pack.value]


def _claims(asker: Asker, user_input: str, text: str | None) -> Plan[tuple[str, ...]]:
    """Return the claims of a text; none if there is no text to ask about."""
    if text is None:
        return ()
    return (yield from asker.read(_claims_of(text), {"question": user_input, "text": text})).value


def _claims_of(text: str) -> RequestTemplate[tuple[str, ...]]:
    """Return the request for the claims of a text; a reply with more claims than it can make is unreadable."""

    def read(reply: Reply) -> tuple[str, ...]:
        claims = texts_in(object_in(reply.text), "claims")
        if len(claims) > _max_claims(text):
            raise ReplyFault(f"The reply lists {len(claims)} claims of a text that cannot make so many.")
        return claims

    return RequestTemplate("claims", _LIKELY_CLAIMS, read)


def _labels_of(count: int) -> RequestTemplate[list[Label]]:
    """Return the request for the labels of this many claims; a reply with another number of labels is unreadable."""

    def read(reply: Reply) -> list[Label]:
        labels = [Label(label.strip().capitalize()) for label in texts_in(object_in(reply.text), "labels")]
        if len(labels) != count:
            raise ReplyFault(f"The reply gives {len(labels)} labels to {count} claims.")
        return labels

    return RequestTemplate("labels", json.dumps({"labels": [Label.ENTAILMENT] * count}), read)


def _max_claims(text: str) -> int:
    """Return the maximum number of claims of a text, one for every four characters, and some always for terse texts."""
    return max(_ALWAYS_CLAIMS, len(text) // _LETTERS_PER_CLAIM)


def _row(
    name: str, tables: str, summary: str, formula: str, relatives: str, *, lower_is_better: bool = False
) -> type[_Checked]:
    """Return one of the eleven metrics: `_Checked` with its tables and its card."""
    doc = f"{summary} (RAGChecker).\n\nFormula: {formula}\nSee: {relatives}\n\nFor the rest see `_Checked`."
    return variant(_Checked, name, doc, tables=frozenset(tables.split()), higher_is_better=not lower_is_better)


METRICS: Final[tuple[type[Metric], ...]] = (
    _row(
        "ragchecker:precision",
        "answer2response",
        "Share of the response's claims that the reference entails",
        "Entailed claims of the response / claims of the response.",
        "ragchecker:recall | ragchecker:f1",
    ),
    _row(
        "ragchecker:recall",
        "response2answer",
        "Share of the reference's claims that the response entails",
        "Entailed claims of the reference / claims of the reference.",
        "ragchecker:precision | ragchecker:f1",
    ),
    _row(
        "ragchecker:f1",
        "answer2response response2answer",
        "Agreement of the response with the reference, claim by claim",
        "Harmonic mean of precision and recall; 0 when either is 0.",
        "ragchecker:precision | ragchecker:recall",
    ),
    _row(
        "ragchecker:claim_recall",
        "retrieved2answer",
        "Share of the reference's claims that were retrieved",
        "Claims of the reference entailed by some passage / claims of the reference.",
        "context_recall",
    ),
    _row(
        "ragchecker:context_precision",
        "retrieved2answer",
        "Share of the passages that hold something of the reference",
        "Passages that entail some claim of the reference / passages; the rank does not count.",
        "context_precision",
    ),
    _row(
        "ragchecker:context_utilization",
        "retrieved2answer response2answer",
        "Share of what was retrieved of the reference that the response says",
        "Claims of the reference both retrieved and in the response / those retrieved; 0 when none was.",
        "context_utilization",
    ),
    _row(
        "ragchecker:noise_sensitivity_in_relevant",
        "answer2response retrieved2answer retrieved2response",
        "Share of the response's claims that are wrong and occur in a relevant passage",
        "Claims not entailed by the reference but by a passage that entails some claim of it / claims.",
        "ragchecker:noise_sensitivity_in_irrelevant | ragchecker:hallucination",
        lower_is_better=True,
    ),
    _row(
        "ragchecker:noise_sensitivity_in_irrelevant",
        "answer2response retrieved2answer retrieved2response",
        "Share of the response's claims that are wrong and occur in irrelevant passages only",
        "Claims not entailed by the reference but by a passage, and by none that entails a claim of it / claims.",
        "ragchecker:noise_sensitivity_in_relevant | ragchecker:hallucination",
        lower_is_better=True,
    ),
    _row(
        "ragchecker:hallucination",
        "answer2response retrieved2response",
        "Share of the response's claims that are wrong and occur in no passage",
        "Claims entailed neither by the reference nor by any passage / claims.",
        "ragchecker:faithfulness | ragchecker:self_knowledge",
        lower_is_better=True,
    ),
    _row(
        "ragchecker:self_knowledge",
        "answer2response retrieved2response",
        "Share of the response's claims that are right and occur in no passage",
        "Claims entailed by the reference and by no passage / claims.",
        "ragchecker:faithfulness | ragchecker:hallucination",
    ),
    _row(
        "ragchecker:faithfulness",
        "retrieved2response",
        "Share of the response's claims that some passage entails",
        "Claims entailed by some passage / claims; with hallucination and self_knowledge 1, given a passage.",
        "faithfulness",
    ),
)
