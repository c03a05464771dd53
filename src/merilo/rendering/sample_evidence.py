"""The evidence for one metric's score of one sample in short, to show two runs side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from merilo.judging.verdicts import DecisionVerdict, listed
from merilo.metrics.base import EvidenceTarget, Score
from merilo.metrics.text import FOREIGN
from merilo.rendering.page import cut
from merilo.rendering.wording import counts_text, said, without_score

if TYPE_CHECKING:
    from merilo.judging.verdicts import Verdict
    from merilo.metrics.base import Evidence
    from merilo.rendering.page import Page
    from merilo.results.sample_detail import SampleDetail

_QUOTED: Final = 200
_SHOWN_PIECES: Final = 6


@dataclass(frozen=True, slots=True)
class EvidenceGroup:
    """Equal verdicts on one or several contexts, on a statement, or on the sample as a whole."""

    about: str
    """For example `context 1`, `contexts 2, 3`, `statement 4`; empty for the sample as a whole."""
    said: str
    text: str = ""
    """The statement; empty for contexts."""
    quotes: tuple[str, ...] = ()
    """The sentences that the verdict names as evidence."""


def evidence_groups(case: SampleDetail, metric: str) -> tuple[EvidenceGroup, ...]:
    """Return the verdicts behind the value, or why there is none. Contexts without a quoted sentence are grouped."""
    outcome = case.result.outcomes.get(metric)
    if outcome is None:
        return (EvidenceGroup("", "not computed"),)
    if not isinstance(outcome, Score):
        return (EvidenceGroup("", without_score(outcome)),)
    if found := _pieces(case, outcome):
        return found
    counted = counts_text({name: each for name, each in outcome.counts.items() if each is not None})
    # a comparison also lists an imported score under the definition that computed it
    imported = any(text.startswith(FOREIGN) and each is outcome for text, each in case.result.outcomes.items())
    own = "the score was imported" if imported else "the score is computed from the data"
    return (EvidenceGroup("", counted or f"no verdict: {own}"),)


def add_evidence(page: Page, case: SampleDetail, metric: str, *, indent: int = 4) -> None:
    """Add the verdicts behind the value, each with the sentences that it names; at most six."""
    pieces = evidence_groups(case, metric)
    for piece in pieces[:_SHOWN_PIECES]:
        about = f"{piece.about}: " if piece.about else ""
        page.text(f"{about}{piece.said}", indent=indent)
        for quote in (*((piece.text,) if piece.text else ()), *piece.quotes):
            page.entry(">", cut(quote, _QUOTED), column=indent + 5, indent=indent + 2)
    if len(pieces) > _SHOWN_PIECES:
        page.text(f"... and {len(pieces) - _SHOWN_PIECES:,} more", indent=indent)


def _pieces(case: SampleDetail, outcome: Score) -> tuple[EvidenceGroup, ...]:
    found: list[EvidenceGroup] = []
    alike: dict[str, list[int]] = {}
    for evidence in outcome.evidence:
        words, quotes = said(_bare(evidence.verdict)), _quotes(case, evidence)
        match evidence.about:
            case EvidenceTarget.CONTEXT if quotes:
                found.append(EvidenceGroup(listed([evidence.index], "context"), words, quotes=quotes))
            case EvidenceTarget.CONTEXT:
                alike.setdefault(words, []).append(evidence.index)
            case EvidenceTarget.STATEMENT:
                found.append(EvidenceGroup(listed([evidence.index], "statement"), words, text=evidence.text))
            case EvidenceTarget.TEXT:
                found.append(EvidenceGroup("", words))
    return (*found, *(EvidenceGroup(listed(indices, "context"), words) for words, indices in alike.items()))


def _bare(verdict: Verdict) -> Verdict:
    """Return the verdict without its probability, which may differ between verdicts that read the same.

    The probability stays if metrics average it, since the scores then follow from it.
    """
    if isinstance(verdict, DecisionVerdict) and verdict.averaged:
        return verdict
    return replace(verdict, probability=None) if hasattr(verdict, "probability") else verdict  # type: ignore[call-arg]  # looked for on the line


def _quotes(case: SampleDetail, evidence: Evidence) -> tuple[str, ...]:
    if evidence.about is not EvidenceTarget.CONTEXT:
        return ()
    views = case.contexts
    if evidence.index >= len(views):
        return ()
    sentences = views[evidence.index].sentences
    return tuple(sentences[at] for at in evidence.verdict.context_evidence if at < len(sentences))
