"""Metrics without a judge in ragas 0.2 to 0.4: ids, and the spelling of contexts and responses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from merilo.errors import UsageError
from merilo.lazy import optional_module
from merilo.metrics.base import Kinds, Score, Undefined
from merilo_published.definition import Published, smoothed_average_precision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.context import Context
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

_PREFIX_WEIGHT: Final = 0.1
_MAX_PREFIX: Final = 4
_PREFIX_FROM: Final = 0.7


class Distance(StrEnum):
    """A measure of how far apart two texts are."""

    LEVENSHTEIN = "levenshtein"
    """Fewest insertions, deletions and replacements, of the longer length."""
    HAMMING = "hamming"
    """Places with different letters, what one text has more than the other included, of the longer length."""
    JARO = "jaro"
    """By letters in common that stand near each other, and how many of them change places."""
    JARO_WINKLER = "jaro_winkler"
    """As Jaro, nearer for a common beginning."""


def similarity(distance: Distance, left: str, right: str) -> float:
    """Return 1 minus the distance, in [0, 1]; 1.0 for two empty texts."""
    longer = max(len(left), len(right))
    if distance is Distance.LEVENSHTEIN:
        return 1 - edit_distance(left, right) / longer if longer else 1.0
    if distance is Distance.HAMMING:
        differing = longer - sum(a == b for a, b in zip(left, right, strict=False))
        return 1 - differing / longer if longer else 1.0
    found = _jaro(left, right)
    if distance is Distance.JARO or found <= _PREFIX_FROM:
        return found
    common = takewhile(lambda pair: pair[0] == pair[1], zip(left[:_MAX_PREFIX], right, strict=False))
    return found + len([*common]) * _PREFIX_WEIGHT * (1 - found)


def edit_distance(left: str, right: str) -> int:
    """Return the fewest insertions, deletions and replacements of a letter that make one text the other.

    A column of the usual table is held as two integers, one bit a row: where it goes up by one, and where down
    (Myers, "A fast bit-vector algorithm for approximate string matching", J. ACM 46 (1999), in the form of Hyyrö).
    """
    if not left or not right:
        return max(len(left), len(right))
    places: dict[str, int] = {}
    for at, letter in enumerate(left):
        places[letter] = places.get(letter, 0) | 1 << at
    every, last = (1 << len(left)) - 1, 1 << (len(left) - 1)
    up, down, distance = every, 0, len(left)
    for letter in right:
        same = places.get(letter, 0)
        diagonal = (((same & up) + up) ^ up) | same | down
        rises, falls = down | (every & ~(diagonal | up)), up & diagonal
        distance += bool(rises & last) - bool(falls & last)
        rises, falls = (rises << 1 | 1) & every, (falls << 1) & every
        up, down = falls | (every & ~(same | down | rises)), rises & (same | down)
    return distance


def _jaro(left: str, right: str) -> float:
    if not left or not right:
        return float(left == right)
    reach = max(len(left), len(right)) // 2 - 1
    taken = [False] * len(right)
    matched: list[str] = []
    for at, letter in enumerate(left):
        for other in range(max(0, at - reach), min(len(right), at + reach + 1)):
            if not taken[other] and right[other] == letter:
                taken[other] = True
                matched.append(letter)
                break
    if not matched:
        return float(left == right)
    others = [letter for letter, is_taken in zip(right, taken, strict=True) if is_taken]
    moved = sum(a != b for a, b in zip(matched, others, strict=True)) // 2
    common = len(matched)
    return (common / len(left) + common / len(right) + (common - moved) / common) / 3


_NO_REFERENCE: Final = "there is no reference context"
_NOTHING_RETRIEVED: Final = "nothing was retrieved"


class _Unasked(Published):
    """A metric that asks nothing.

    Questions: None.
    """

    __slots__ = ()

    asks = Kinds()


@dataclass(frozen=True, slots=True, kw_only=True)
class _ByLetters(_Unasked):
    """Compares retrieved and reference contexts by their letters.

    `distance`: the measure; similarity is 1 minus it. `threshold`: which similarities count.
    """

    needs = frozenset({"retrieved_contexts", "reference_contexts"})

    distance: Distance = Distance.LEVENSHTEIN
    threshold: float = 0.5

    def _best(self, context: Context, among: Sequence[Context]) -> float:
        """Return the similarity to the most similar one of these contexts, at least one."""
        return max(similarity(self.distance, context.text, other.text) for other in among)


@dataclass(frozen=True, slots=True, kw_only=True)
class NonLLMPrecision(_ByLetters):
    """Ranking: contexts spelled like reference contexts should come before the others, as ragas scores it.

    Formula: Sum over ranks k of v_k (v_1 + ... + v_k) / k, divided by (sum of all v + 1e-10).
    Undefined: there is no reference context
    Use: Where the reference contexts are the very texts of the index.
    Not: Where texts were cut differently: spelling is all that counts.
    See: context_precision | ragas-0.4.3:id_based_context_precision
    Source: ragas 0.4.3, metrics/_context_precision.py

    In full: as `PrecisionWithReference`, v is 1 where the best similarity to a reference context is at least
    `threshold`. 0 when nothing was retrieved; undefined without reference contexts (upstream raises).

    Quirk: at the threshold itself a context counts, which in the recall it does not.
    """

    name: ClassVar[str] = "ragas-0.4.3:non_llm_context_precision_with_reference"
    ranked: ClassVar[bool] = True
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "nothing retrieved scores 0"})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        yield from ()
        contexts, references = sample.contexts, sample.require("reference_contexts")
        if contexts and not references:
            return Undefined(_NO_REFERENCE)
        found = [self._best(context, references) >= self.threshold for context in contexts]
        return Score(smoothed_average_precision(found), counts={"contexts": len(found), "found": sum(found)})


@dataclass(frozen=True, slots=True, kw_only=True)
class NonLLMRecall(_ByLetters):
    """Which share of the reference contexts was retrieved, by spelling, as ragas scores it.

    Formula: Reference contexts with a similar retrieved one / reference contexts.
    Undefined: there is no reference context | nothing was retrieved
    Use: Where the reference contexts are the very texts of the index.
    Not: Where texts were cut differently: spelling is all that counts.
    See: context_recall | ragas-0.4.3:id_based_context_recall
    Source: ragas 0.4.3, metrics/_context_recall.py

    Quirk: at the threshold itself a context does not count, which in the precision it does.
    """

    name: ClassVar[str] = "ragas-0.4.3:non_llm_context_recall"

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        yield from ()
        contexts, references = sample.contexts, sample.require("reference_contexts")
        if not references:
            return Undefined(_NO_REFERENCE)
        if not contexts:
            return Undefined(_NOTHING_RETRIEVED)
        found = sum(self._best(reference, contexts) > self.threshold for reference in references)
        return Score(found / len(references), counts={"references": len(references), "found": found})


@dataclass(frozen=True, slots=True, kw_only=True)
class _ByIds(_Unasked):
    """The ids that were retrieved and are reference ids.

    Use: Where contexts have ids that stay.
    Not: Where the same text has several ids.
    """

    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    whole: ClassVar[Literal["retrieved", "references"]]
    """The ids of which the share is computed."""
    none: ClassVar[str]
    """The reason for no value, if there are none."""

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        yield from ()
        retrieved = set(sample.require("retrieved_context_ids"))
        references = set(sample.require("reference_context_ids"))
        whole, found = len(retrieved if self.whole == "retrieved" else references), len(retrieved & references)
        return Score(found / whole, counts={self.whole: whole, "found": found}) if whole else Undefined(self.none)


@dataclass(frozen=True, slots=True, kw_only=True)
class IDBasedPrecision(_ByIds):
    """Which share of the retrieved ids are reference ids.

    Formula: |retrieved and reference| / |retrieved|, over sets.
    Undefined: nothing was retrieved
    See: context_precision | ragas-0.4.3:id_based_context_recall
    Source: ragas 0.4.3, metrics/_context_precision.py
    """

    name: ClassVar[str] = "ragas-0.4.3:id_based_context_precision"
    whole = "retrieved"
    none = _NOTHING_RETRIEVED


@dataclass(frozen=True, slots=True, kw_only=True)
class IDBasedRecall(_ByIds):
    """Which share of the reference ids was retrieved.

    Formula: |retrieved and reference| / |reference|, over sets.
    Undefined: there is no reference id
    See: context_recall | ragas-0.4.3:id_based_context_precision
    Source: ragas 0.4.3, metrics/_context_recall.py
    """

    name: ClassVar[str] = "ragas-0.4.3:id_based_context_recall"
    whole = "references"
    none = "there is no reference id"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared(_Unasked):
    """A metric that compares response and reference."""

    needs = frozenset({"response", "reference"})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        yield from ()
        return Score(self.overlap(sample.require("response"), sample.require("reference")))

    def overlap(self, response: str, reference: str) -> float:
        """Return the score of two texts."""
        raise NotImplementedError  # each metric has its own


@dataclass(frozen=True, slots=True, kw_only=True)
class StringSimilarity(_Compared):
    """How alike response and reference are spelled.

    Formula: 1 - distance / longest possible distance.
    Use: Where the response should be the reference to the letter, apart from slips.
    Not: To compare meanings.
    See: ragas-0.4.3:exact_match | ragas-0.4.3:semantic_similarity
    Source: ragas 0.4.3, metrics/_string.py
    """

    name: ClassVar[str] = "ragas-0.4.3:non_llm_string_similarity"
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "two empty texts are alike"})

    distance: Distance = Distance.LEVENSHTEIN

    def overlap(self, response: str, reference: str) -> float:
        return similarity(self.distance, reference, response)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Overlap(_Compared):
    """A metric of the words or letters that response and reference have in common, computed by a library."""

    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "a blank text scores 0"})
    module: ClassVar[str]

    def load_library(self) -> Any:  # Any: the library may be absent
        """Import and return the library. Raises UsageError if it is not installed."""
        return optional_module(self.module, wanted_by=f"The metric {self.name}", install="merilo[overlap]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sacrebleu(_Overlap):
    """A metric of sacrebleu. `options`: a JSON object of its further arguments."""

    module: ClassVar[str] = "sacrebleu"

    options: str = "{}"

    def __post_init__(self) -> None:
        Published.__post_init__(self)
        self.given()

    def given(self) -> dict[str, Any]:  # Any: what sacrebleu takes
        """Return the options. Raises UsageError unless they are a JSON object."""
        try:
            return {**json.loads(self.options)}
        except (ValueError, TypeError):
            raise UsageError(f"{self.name} takes options as a JSON object, got {self.options!r}.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bleu(Sacrebleu):
    """BLEU of the response's sentences, as sacrebleu computes it for ragas.

    Formula: sacrebleu's corpus BLEU / 100, of texts split at ". ".
    Use: To compare with published BLEU scores of ragas.
    Not: To compare meanings, or texts of several sentences: see the quirk.
    See: ragas-0.4.3:rouge_score | ragas-0.4.3:non_llm_string_similarity
    Source: ragas 0.4.3, metrics/_bleu_score.py

    Quirk: every sentence of the reference is passed as another reference of the first sentence of the response, so
    the response's other sentences do not count.
    """

    name: ClassVar[str] = "ragas-0.4.3:bleu_score"

    def overlap(self, response: str, reference: str) -> float:
        references = [[sentence] for sentence in reference.split(". ")]
        return min(
            1.0, float(self.load_library().corpus_bleu(response.split(". "), references, **self.given()).score) / 100
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chrf(Sacrebleu):
    """Character n-grams that response and reference have in common, as sacrebleu computes it for ragas.

    Formula: sacrebleu's chrF2 / 100; 0 if a text is blank.
    Use: For languages with many forms of a word.
    Not: To compare meanings.
    See: ragas-0.4.3:bleu_score | ragas-0.4.3:non_llm_string_similarity
    Source: ragas 0.4.3, metrics/_chrf_score.py
    """

    name: ClassVar[str] = "ragas-0.4.3:chrf_score"

    def overlap(self, response: str, reference: str) -> float:
        if not (response.strip() and reference.strip()):
            return 0.0
        return min(1.0, float(self.load_library().corpus_chrf([response], [[reference]], **self.given()).score) / 100)


RougeType = StrEnum("RougeType", {"WORDS": "rouge1", "SEQUENCE": "rougeL"})
"""The units that ROUGE compares: words, or the longest common subsequence of words."""
RougeMode = StrEnum("RougeMode", {"F1": "fmeasure", "PRECISION": "precision", "RECALL": "recall"})
"""The number that is taken from ROUGE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rouge(_Overlap):
    """Words that response and reference have in common, as rouge-score computes it for ragas, with stems.

    Formula: The F1, precision or recall of ROUGE-1 or ROUGE-L.
    Use: To compare with published ROUGE scores.
    Not: To compare meanings; or for scripts other than Latin, of which it reads no word.
    See: ragas-0.4.3:bleu_score | ragas-0.4.3:non_llm_string_similarity
    Source: ragas 0.4.3, metrics/_rouge_score.py
    """

    name: ClassVar[str] = "ragas-0.4.3:rouge_score"
    module: ClassVar[str] = "rouge_score.rouge_scorer"

    rouge_type: RougeType = RougeType.SEQUENCE
    mode: RougeMode = RougeMode.F1

    def overlap(self, response: str, reference: str) -> float:
        scorer = self.load_library().RougeScorer([str(self.rouge_type)], use_stemmer=True)
        return float(getattr(scorer.score(reference, response)[str(self.rouge_type)], self.mode))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactMatch(_Compared):
    """Tests that response and reference are the same, character by character.

    Formula: 1 if response = reference, else 0.
    Use: For answers of one word or number.
    Not: Where case or spaces may differ: nothing is folded.
    See: ragas-0.4.3:string_presence
    Source: ragas 0.4.3, metrics/_string.py
    """

    name: ClassVar[str] = "ragas-0.4.3:exact_match"
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "two empty texts are equal"})

    def overlap(self, response: str, reference: str) -> float:
        return float(reference == response)


@dataclass(frozen=True, slots=True, kw_only=True)
class StringPresence(_Compared):
    """Tests that the response contains the reference, character by character.

    Formula: 1 if the reference is a part of the response, else 0.
    Use: For references of one word or number.
    Not: Where case or spaces may differ: nothing is folded.
    See: ragas-0.4.3:exact_match
    Source: ragas 0.4.3, metrics/_string.py
    """

    name: ClassVar[str] = "ragas-0.4.3:string_presence"
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "an empty text occurs in any"})

    def overlap(self, response: str, reference: str) -> float:
        return float(reference in response)
