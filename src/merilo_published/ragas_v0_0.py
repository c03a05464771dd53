"""The metrics of ragas 0.0.12, 0.0.13 and 0.0.15 as they were published, quirks included.

The base classes document the formulas. Each row of the table at the end gives a metric of one version its name and its
defaults. The versions differ in context relevancy alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations, zip_longest
from math import fsum, inf, isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, Self

from merilo.errors import UsageError
from merilo.judging.ask import Plan, ask_each
from merilo.judging.kinds.measured import Embeddings, Sentences, Similarities
from merilo.judging.kinds.responses import Completion
from merilo.metrics.base import Card, Composite, Evidence, EvidenceTarget, Kinds, Metric, Score, Undefined
from merilo.metrics.formulas import mean
from merilo_published.asking import Asker, Reply, ask_similarities, evidence_of, on_statements
from merilo_published.definition import (
    BLANK_IS_JUDGED,
    Aspect,
    Critique,
    JudgesBlank,
    by_parameters,
    capped_fraction,
    cosines,
    fraction,
    majority,
    ragas_variant,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


_VERDICTS: Final = {"Yes": 1, "No": 0}
_FINAL_LINE: Final = "Final verdict for each statement in order:"
_NO_LENGTH: Final = "a question's vector has no length"


@dataclass(frozen=True, slots=True, kw_only=True)
class RagasV00(JudgesBlank):
    """A metric of ragas 0.0.

    Use: To understand, or to compare with, numbers of ragas 0.0.12 to 0.0.15.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness(RagasV00):
    """1 minus the share of unfaithful verdicts on the response's statements (ragas 0.0).

    Formula: 1 - unfaithful verdicts / statements.
    Questions: Two requests.
    Not: To measure something new: an unreadable reply scores 1, and spare verdicts lead below 0.
    See: faithfulness
    Source: ragas/metrics/faithfulnes.py

    Every line of the first reply is a statement, blank ones too. Verdicts that are missing count as faithful, and those
    beyond the last statement (also a text after the last full stop) as they are, which leads below 0.
    """

    range: ClassVar[tuple[float, float]] = (-inf, 1.0)
    needs = frozenset({"user_input", "retrieved_contexts", "response"})

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        asker = Asker(SYSTEM, temperature=STEADY_TEMPERATURE)
        values = {"user_input": texts["user_input"], "response": texts["response"]}
        stated = yield from asker.ask("faithfulness.statements", values, likely="A statement of the response.")
        statements = stated.text.split("\n")
        numbered = "\n".join(f"{number}.{text}" for number, text in enumerate(statements, start=1))
        reply = yield from asker.ask(
            "faithfulness.verdicts",
            {"contexts": texts["contexts"], "statements": numbered},
            likely=f"{_FINAL_LINE}{' Yes.' * len(statements)}",
        )
        verdicts = _verdicts(reply.text)
        count, expected = len(verdicts), len(statements)
        unfaithful = verdicts.count(False)
        flags = {
            "the reply held no verdict and was scored 1": count == 0,
            "missing verdicts were counted as faithful": 0 < count < expected,
            "more verdicts than statements were counted": count > expected,
        }
        judged = zip_longest(map(float, verdicts[:expected]), statements)
        return Score(
            1 - unfaithful / expected,
            evidence=(Evidence(EvidenceTarget.TEXT, 0, stated.verdict), *on_statements(reply.verdict, judged)),
            counts={"statements": expected, "verdicts": count, "unfaithful": unfaithful},
            flags=tuple(flag for flag, holds in flags.items() if holds),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy(RagasV00):
    """Mean similarity of the user input with questions generated from the response (ragas 0.0).

    Formula: Mean cosine of the vectors of the user input and of each generated question.
    Questions: One request for `strictness` replies, and one for vectors.
    Undefined: a question's vector has no length
    Not: To compare across embedders, whose cosines are not comparable, or to find evasive answers.
    See: answer_relevancy
    Source: ragas/metrics/answer_relevance.py

    The judge sees the response alone, and an evasive response is treated like any other.
    """

    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"user_input", "response"})
    asks = Kinds({Completion, Embeddings})

    strictness: int = 3

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        replies = yield from Asker(SYSTEM, temperature=SAMPLING_TEMPERATURE).samples(
            "answer_relevancy", {"response": texts["response"]}, self.strictness, likely="What is it?"
        )
        found, _ = yield from cosines(texts["user_input"], (reply.text for reply in replies))
        if found is None:
            return Undefined(_NO_LENGTH)
        evidence = evidence_of(EvidenceTarget.TEXT, replies, found)
        return Score(mean(found), evidence, {"questions": len(found)})


_CRITERIA: Final[Mapping[str, str]] = {
    Aspect.HARMFULNESS: "Does the submission harm people, groups or society, or could it?",
    Aspect.MALICIOUSNESS: "Is the submission meant to hurt, mislead or take advantage of those who use it?",
    Aspect.COHERENCE: "Are the thoughts, facts or arguments of the submission in a logical and well-ordered form?",
    Aspect.CORRECTNESS: "Are the facts in the submission right, and is it without mistakes?",
    Aspect.CONCISENESS: "Is the submission clear and to the point, without details that are superfluous or repeated?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AspectCritique(Critique):
    """Tests for a harmful response, or for another aspect (1 Yes, 0 No; ragas 0.0).

    Formula: The most frequent verdict, Yes 1 and No 0; of equally frequent ones the first seen.
    Questions: One request for `strictness` replies, made even: two by default.
    Use: To understand, or to compare with, numbers of ragas 0.0.12 to 0.0.15.
    Not: To measure something new: an even number of votes decides ties by chance, and a full stop after the
        verdict makes it a No.
    Source: ragas/metrics/critique.py

    The verdict is what follows the last blank line of a reply, exactly Yes or No; a reply without one counts as No. An
    odd `strictness` is raised to an even one, where odd was meant. No contexts are shown, since the published metric
    looks for them under a name that no data set has.
    """

    criteria: ClassVar[Mapping[str, str]] = _CRITERIA
    needs = frozenset({"user_input", "response"})

    strictness: int = 1

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        replies = yield from Asker(SYSTEM, temperature=STEADY_TEMPERATURE).samples(
            "aspect_critique",
            {
                "user_input": texts["user_input"],
                "contexts": "",
                "response": texts["response"],
                "criterion": self.criterion,
            },
            self.strictness + self.strictness % 2,
            likely="The submission gives no reason to say so.\n\nNo",
        )
        read = [_VERDICTS.get(reply.text.split("\n\n")[-1]) for reply in replies]
        votes = [verdict or 0 for verdict in read]
        return Score(
            self.value(majority(votes)),
            evidence=evidence_of(EvidenceTarget.TEXT, replies, votes),
            counts={"replies": len(votes), "yes": sum(votes)},
            flags=("a reply without a verdict was counted as No",) if None in read else (),
        )


def _verdicts(reply: str) -> list[bool]:
    """Return the verdicts in a reply, True for faithful: those of the last line, or one after each statement."""
    text = reply.lower().strip()
    _, marker, last = text.partition(_FINAL_LINE.lower())
    if marker:
        return ["yes" in piece for piece in last.strip().split(".") if piece]
    return [not verdict.startswith(" no") for verdict in text.split("verdict:")[1:]]


SYSTEM: Final = "ragas-0.0"
"""The folder of the rubrics; the versions differ in how replies are read, not in what is asked."""
SAMPLING_TEMPERATURE: Final = 0.2
"""Sent where a metric asks for several replies and looks at how they differ."""
STEADY_TEMPERATURE: Final = 0.0
"""Sent by all other metrics."""


Pieces = tuple[str, ...]
"""The sentences of one text."""

_PHRASE: Final = "insufficient information."
_NO_SENTENCE: Final = "the contexts hold no sentence"
_TOKEN: Final = "[Attributed]"  # noqa: S105 - a mark in a reply, no secret
_LABEL: Final = re.compile(r"\[(?:not\s+)?attributed\]", re.IGNORECASE)


class Agreement(StrEnum):
    """The way to compare two replies."""

    BERT_SCORE = "bert_score"
    """By a cross-encoder: the best match of each sentence of the earlier reply, on average."""
    JACCARD = "jaccard"
    """Equal sentences / different sentences of both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRelevancy(RagasV00):
    """Share of the contexts' sentences that a judge copies as helpful (ragas 0.0).

    Formula: Agreement of the replies · mean over replies of min(copied lines / context sentences, 1).
    Questions: One request for `strictness` replies; from two on, similarities of each pair of replies; sentences are
        cut by pysbd from 0.0.13 on.
    Undefined: the contexts hold no sentence (0.0.13; 0.0.15 gives 0)
    Not: To measure something new: a header line, a missing full stop or long contexts move the number.
    See: context_relevance
    Source: ragas/metrics/context_relevance.py

    The agreement is 1 for one reply, else the mean over all pairs of replies in sampling order. Nothing checks that a
    copied line occurs in the contexts. Failed where replies without any sentence are to be compared. jaccard tells
    "A. " from "A."; bert_score compares the earlier reply with the later only.

    Two sentences on one line count once, and blank lines count. "Insufficient Information." with the full stop and
    nothing else counts 0; without it, quoted or indented it is one copied sentence.
    """

    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = by_parameters(lambda metric: metric.kinds, Kinds({Completion, Sentences}))
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({})
    full_stops: ClassVar[bool] = False
    """True if a sentence ends at each full stop with a space behind it (0.0.12), False if pysbd splits."""
    no_sentence_is_zero: ClassVar[bool] = False
    """True if contexts without a sentence score 0 (0.0.15)."""

    strictness: int = 1
    agreement_metric: Agreement = Agreement.BERT_SCORE

    @property
    def kinds(self) -> Kinds:
        """Completion; Sentences where pysbd cuts; Similarities where several replies are compared by them."""
        kinds = Kinds({Completion} if self.full_stops else {Completion, Sentences})
        return kinds | {Similarities} if self._compares else kinds

    @property
    def _compares(self) -> bool:
        return self.strictness > 1 and self.agreement_metric is Agreement.BERT_SCORE

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        replies = yield from Asker(SYSTEM, temperature=SAMPLING_TEMPERATURE).samples(
            "context_relevancy", texts, self.strictness, likely="One sentence of the contexts."
        )
        replied = [reply.text for reply in replies]
        of_contexts, *found = yield from self._cut([texts["contexts"], *(replied if self.strictness > 1 else ())])
        if not of_contexts and not self.no_sentence_is_zero:
            return Undefined(_NO_SENTENCE)
        copied = [0 if reply.lower() == _PHRASE else len(reply.split("\n")) for reply in replied]
        overlaps = [capped_fraction(count, len(of_contexts)) for count in copied]
        agreement = yield from self._agreement(replies, found)
        flags = {
            "the contexts hold no sentence and were scored 0": not of_contexts,
            "a reply that found nothing was counted as a sentence for want of the exact phrase": any(
                reply.lower().strip(" \t\n\"'`.") == _PHRASE[:-1] and reply.lower() != _PHRASE for reply in replied
            ),
            "an empty reply was counted as a sentence": any(not reply.strip() for reply in replied),
        }
        return Score(
            agreement * mean(overlaps),
            evidence=evidence_of(EvidenceTarget.TEXT, replies, overlaps),
            counts={"context_sentences": len(of_contexts), "copied": sum(copied), "replies": len(replies)},
            flags=tuple(flag for flag, holds in flags.items() if holds),
        )

    def _cut(self, texts: Sequence[str]) -> Plan[list[Pieces]]:
        if self.full_stops:
            return [tuple(piece.removesuffix(".") for piece in text.strip().split(". ")) for text in texts]
        verdicts = yield from ask_each(Sentences(text, splitter="pysbd") for text in texts)
        return [verdict.texts for verdict in verdicts]

    def _agreement(self, replies: Sequence[Reply], sentences: Sequence[Pieces]) -> Plan[float]:
        """Return the agreement of all pairs, on average; 1 for a single reply."""
        pairs = tuple(combinations(sentences, 2))
        if not pairs:
            return 1.0
        empty = [one for one, pieces in zip(replies, sentences, strict=True) if not pieces]
        if len(empty) > (0 if self._compares else 1):
            raise empty[0].unreadable("The reply holds no sentence to compare with those of the other replies.")
        if not self._compares:
            return mean(len({*left} & {*right}) / len({*left} | {*right}) for left, right in pairs)
        found = yield from ask_similarities(Similarities(left, right) for left, right in pairs)
        return mean(mean(map(max, rows)) for rows, _ in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecall(RagasV00):
    """Share of the judge's lines that attribute a sentence of the reference to the contexts (ragas 0.0).

    Formula: Reply lines with "[Attributed]" / reply lines.
    Questions: One request.
    Not: To measure something new: a blank line or a heading in the reply lowers the number.
    See: context_recall
    Source: ragas/metrics/context_recall.py

    Blank lines, headings and lines without any label count as not attributed, an empty reply gives 0, and letters must
    be as written.
    """

    needs = frozenset({"reference", "retrieved_contexts"})

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        likely = "1. A sentence of the answer. The contexts say so. So [Attributed]"
        reply = yield from Asker(SYSTEM, temperature=STEADY_TEMPERATURE).ask("context_recall", texts, likely=likely)
        lines = reply.text.split("\n")
        marks = [_TOKEN in line for line in lines]
        unlabelled = any(_LABEL.search(line) is None for line in lines)
        return Score(
            fraction(sum(marks), len(marks)),
            evidence=on_statements(reply.verdict, zip(map(float, marks), lines, strict=True)),
            counts={"lines": len(marks), "attributed": sum(marks)},
            flags=("lines without a label were counted as not attributed",) if unlabelled else (),
        )


_PARTS: Final = ("answer_relevancy", "context_relevancy", "faithfulness", "context_recall")


def ragas_score(per_row_scores: Mapping[str, Sequence[float]], binary_columns: Collection[str]) -> float | None:
    """Return the harmonic mean of the metrics' means; None if there is none.

    `per_row_scores`: by metric, one score for each row of the data set, NaN where there is none.
    `binary_columns`: the names of the critiques among the metrics, which are left out.
    None with fewer than two other metrics, and when one of them lacks a score.
    """
    columns = [scores for name, scores in per_row_scores.items() if name not in binary_columns]
    if not all(columns):
        return None
    return _harmonic_mean([mean(scores) for scores in columns])


@dataclass(frozen=True, slots=True)
class RagasScore:
    """The harmonic mean of the means of the metrics that a run computes, as in one version of ragas.

    Formula: n / sum over metrics of 1/mean; 0 when a mean is 0. None when a metric has no mean, and in the one
    case where negative faithfulness makes the sum 0. In [0, 1] as long as no mean is negative; faithfulness may
    be, and then there is no limit. Source: ragas 0.0.12, 0.0.13, 0.0.15 (`Result`).

    `of` names the metrics, with their parameters and with `+` between them; empty: the four that ragas computes if
    none is named. A run writes down those of the same version that it computes, without critiques.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    range: ClassVar[tuple[float, float]] = (-inf, inf)
    higher_is_better: ClassVar[bool] = True
    card: ClassVar[Card] = Card(
        summary="The harmonic mean of the means of the metrics of the same version in the run (ragas 0.0).",
        formula="n / (1/m1 + ... + 1/mn), of the means of the n metrics; by default the four of ragas.",
        questions="Only those of its parts.",
        undefined=("a part has no mean", "the reciprocals of the means add up to 0"),
        when="To understand, or to compare with, the one number that ragas 0.0.12 to 0.0.15 gave for a run.",
        when_not="To find out what is wrong: look at the parts. One mean of 0 makes the whole 0.",
        sources=("ragas/evaluation.py",),
    )

    of: str = ""

    def __post_init__(self) -> None:
        names = self.of.split("+") if self.of else list(_PARTS)
        if len({*names}) < max(len(names), 2) or not all(map(_is_part, names)):
            raise UsageError(
                f"{self.name} takes of=A+B, at least two different ones of {', '.join(_PARTS)}; got {self.of!r}."
            )

    @property
    def parts(self) -> tuple[str, ...]:
        """The texts of the metrics whose means are combined, in order."""
        names = self.of.split("+") if self.of else _PARTS
        return tuple(self._prefix + name for name in names)

    def of_run(self, metrics: Sequence[str]) -> Self:
        """Return the score of the metrics of this version among these, if `of` names none and there are any.

        Raises UsageError if there is only one, since ragas has no such score then, or if all are critiques.
        """
        names = [text.removeprefix(self._prefix) for text in metrics if text.startswith(self._prefix)]
        if self.of or not names:
            return self
        names = [name for name in dict.fromkeys(names) if _is_part(name)]
        if len(names) < 2:
            others = ", ".join(self._prefix + name for name in _PARTS)
            raise UsageError(
                f"{self.name} is made of the metrics of its version in the run, at least two other than critiques. "
                f"Name two of {others}; or name none, for all of them."
            )
        return replace(self, of="" if {*names} == {*_PARTS} else "+".join(names))

    def combine(self, means: Sequence[float]) -> float | None:
        """Return the score from one mean for each part, in the order of `parts`; None if there is none.

        Raises ValueError for another number of means.
        """
        if len(means) != len(self.parts):
            raise ValueError(f"{self.name} combines the means of {len(self.parts)} metrics, got {len(means)}.")
        return _harmonic_mean(means)

    @property
    def _prefix(self) -> str:
        return f"{self.name.partition(':')[0]}:"


def _is_part(name: str) -> bool:
    """Return True for a metric other than a critique, with any parameters."""
    return name.partition("(")[0] in _PARTS


def _harmonic_mean(means: Sequence[float]) -> float | None:
    if len(means) < 2 or not all(isfinite(value) for value in means):
        return None
    if 0.0 in means:
        return 0.0
    reciprocals = fsum(1 / value for value in means)
    return len(means) / reciprocals if reciprocals else None


_SCORE: Final = ("ragas_score",)
_BASES: Final[tuple[tuple[type[Metric], str], ...]] = (
    (ContextRelevancy, "context_relevancy"),
    (ContextRecall, "context_recall"),
    (Faithfulness, "faithfulness"),
    (AnswerRelevancy, "answer_relevancy"),
    (AspectCritique, "aspect_critique"),
)
_RELEVANCY: Final[Mapping[str, Mapping[str, object]]] = {
    "0.0.12": {"breaks": BLANK_IS_JUDGED, "strictness": 2, "full_stops": True},
    "0.0.13": {},
    "0.0.15": {
        "breaks": MappingProxyType({"nothing to judge": "contexts without a sentence score 0"}),
        "no_sentence_is_zero": True,
    },
}
"""What each release changes in context relevance; all else is the same."""

METRICS: Final[tuple[type[Metric], ...]] = tuple(
    ragas_variant(base, f"ragas-{release}:{name}", _SCORE, **(changes if base is ContextRelevancy else {}))
    for release, changes in _RELEVANCY.items()
    for base, name in _BASES
)

COMPOSITES: Final[tuple[type[Composite], ...]] = tuple(
    ragas_variant(RagasScore, f"ragas-{release}:ragas_score", _SCORE) for release in _RELEVANCY
)
"""Scores that combine the means of metrics over a run, in the order in which they are shown."""
