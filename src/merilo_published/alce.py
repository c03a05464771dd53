"""ALCE: recall and precision of the citations of a response, sentence by sentence, by entailment."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import Plan, ask, together
from merilo.judging.kinds.contexts import Support, SupportLabel, SupportVerdict
from merilo.judging.verdicts import counting_only
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Metric, Score, Undefined
from merilo.metrics.formulas import mean
from merilo_published.definition import Published, fraction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.data.sample import Sample


_NUMBER: Final = re.compile(r"\[(\d{1,9})")
_MARKER: Final = re.compile(r" ?\[\d+")
_UNCITED: Final = "The sentence cites no context, or a number that no context has."
_BLANK: Final = "The sentence, or every cited context, is blank."


@dataclass(frozen=True, slots=True)
class _Sentence:
    """The result for one sentence."""

    verdict: SupportVerdict
    """Support of the sentence by all contexts that it cites."""
    citations: int = 0
    """The number of its citations that count."""
    right: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _ALCE(Published):
    """The sentences of a response and their citations, as in ALCE's evaluation.

    Use: To compare with numbers of ALCE, which are percentages: multiply by 100.
    Not: If responses have several lines, or markers in other forms than [1][2].
    Source: ALCE (Gao et al. 2023, arXiv 2305.14627): its eval.py, git 3fdc2ed

    Citations are the numbers after an opening bracket: `[1][2]` are two, `[1, 2]` is one. A number counts from 1 and as
    often as it occurs. ALCE asks an entailment model; here the judge answers Support questions. A context with a
    `title` in its metadata is preceded by it. ALCE splits sentences by NLTK; here they are merilo's, which is the one
    step that is not as published. A sentence without text, or whose contexts are blank, is unsupported unasked.

    The response ends at its first line break. A sentence that cites a number without a context is unsupported, and none
    of its citations counts. `[0]` is the last context.

    - `max_citations`: only the first citations of a sentence count, here and in its support.
    """

    ranked: ClassVar[bool] = True
    needs = frozenset({"response", "retrieved_contexts"})
    asks = Kinds({Support})
    each: ClassVar[bool]
    """True if each citation is judged, and not only those of a sentence together."""

    max_citations: int = 3

    def _sentences(self, sample: Sample) -> tuple[str, ...]:
        response = sample.require("response").strip().replace("<|im_end|>", "")
        return replace(sample, response=response.partition("\n")[0]).sentences("response")

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("retrieved_contexts")
        sentences = self._sentences(sample)
        texts = [_MARKER.sub("", each).replace(" |", "").replace("]", "").strip() for each in sentences]
        plans = [self._of_sentence(sample, *pair) for pair in zip(sentences, texts, strict=True)]
        judged = yield from together(plans)
        if not judged:
            return Undefined("the response has no sentence")
        pairs = enumerate(zip(texts, judged, strict=True))
        evidence = [Evidence(EvidenceTarget.STATEMENT, at, each.verdict, text) for at, (text, each) in pairs]
        value, counts = self.counted(judged)
        return Score(value, tuple(evidence), counts)

    def counted(self, judged: Sequence[_Sentence]) -> tuple[float, dict[str, int | None]]:
        """Return the value for the sentences, at least one, and its counts."""
        raise NotImplementedError  # each metric has its own

    def _of_sentence(self, sample: Sample, sentence: str, text: str) -> Plan[_Sentence]:
        cited, count = [int(number) for number in _NUMBER.findall(sentence)], len(sample.contexts)
        if not cited or not count or max(cited) > count:
            return _Sentence(SupportVerdict(SupportLabel.NOT_STATED, reason=_UNCITED))
        known = [(number - 1) % count for number in cited[: self.max_citations]]
        verdict = yield from _support(sample, text, known)
        if not verdict.supported or not self.each:
            return _Sentence(verdict, len(known))
        if len(known) == 1:
            return _Sentence(verdict, 1, 1)
        right = yield from together([_needed(sample, text, known, place) for place in range(len(known))])
        return _Sentence(verdict, len(known), sum(right))


def _needed(sample: Sample, text: str, cited: Sequence[int], place: int) -> Plan[bool]:
    """Return False for an irrelevant citation: it does not support the sentence, and the others do without it."""
    alone = yield from _support(sample, text, [cited[place]])
    if alone.supported:
        return True
    removed = cited.index(cited[place])
    others = yield from _support(sample, text, [*cited[:removed], *cited[removed + 1 :]])
    return not others.supported


def _support(sample: Sample, text: str, cited: Sequence[int]) -> Plan[SupportVerdict]:
    """Judge whether these contexts together support a sentence; the verdict has the sample's indices."""
    titles = [sample.contexts[index].metadata.get("title") for index in cited]
    passages = tuple(
        f"Title: {title}\n{sample.contexts[index].text}" if isinstance(title, str) else sample.contexts[index].text
        for index, title in zip(cited, titles, strict=True)
    )
    if not text or not any(passage.strip() for passage in passages):
        return SupportVerdict(SupportLabel.NOT_STATED, reason=_BLANK)
    verdict = yield from ask(Support(text, passages, language=sample.resolved_language))
    evidence = tuple(dict.fromkeys(cited[index] for index in verdict.evidence))
    return replace(verdict, reason=counting_only(cited, verdict.reason), evidence=evidence, sentences=())


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationRecall(_ALCE):
    """Share of the sentences that the contexts they cite support (ALCE).

    Formula: Sentences supported by the contexts they cite together / sentences.
    Questions: One Support question for each sentence that cites a context.
    Undefined: the response has no sentence
    See: citation_recall | alce:citation_precision

    A sentence without a citation is unsupported. For citations, sentences and parameters see `_ALCE`.
    """

    name: ClassVar[str] = "alce:citation_recall"
    each: ClassVar[bool] = False

    def counted(self, judged: Sequence[_Sentence]) -> tuple[float, dict[str, int | None]]:
        supported = [each.verdict.supported for each in judged]
        return mean(supported), {"sentences": len(judged), "attributed": sum(supported)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationPrecision(_ALCE):
    """Share of the citations that are needed to support their sentence, or support it alone (ALCE).

    Formula: Citations of supported sentences that are not irrelevant / citations.
    Questions: One Support question for each sentence that cites; if several contexts support it, one or two for each
        of them.
    Undefined: the response has no sentence
    See: citation_precision | alce:citation_recall

    A citation is irrelevant if its context does not support the sentence alone, and the other cited contexts support
    it without it. All citations of an unsupported sentence are wrong. The only citation of a supported sentence is
    right. A response without a citation that counts scores 0. For citations, sentences and parameters see `_ALCE`.
    """

    name: ClassVar[str] = "alce:citation_precision"
    not_monotone_in: ClassVar[Kinds] = Kinds({Support})
    each: ClassVar[bool] = True

    def counted(self, judged: Sequence[_Sentence]) -> tuple[float, dict[str, int | None]]:
        count, right = sum(each.citations for each in judged), sum(each.right for each in judged)
        return fraction(right, count), {"citations": count, "right": right}


METRICS: Final[tuple[type[Metric], ...]] = (CitationRecall, CitationPrecision)
