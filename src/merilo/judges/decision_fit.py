"""Fit files: curves and cuts of a decision model, fitted to human labels by `merilo judge check --fit`.

A fit belongs to one judge and to the wordings that were asked. The file is checked like a stranger's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from merilo.data.config_files import read_document, validated
from merilo.errors import UsageError
from merilo.judges.decision_forms import wording_of
from merilo.judges.decisions import GRADED, KindFit
from merilo.stats.platt import LogisticCurve

if TYPE_CHECKING:
    from os import PathLike

    from merilo.judges.decisions import DecisionJudge

FORMAT: Final = "merilo-fit-1"
_Kind = Literal["support", "relevance", "sufficiency", "addresses"]
"""The kinds of question with a task of labels."""
_Cut = Annotated[float, Field(gt=0, lt=1)]
_Text = Annotated[str, Field(max_length=300)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class FittedKind(_Part):
    """The fit of one kind of question."""

    wordings: Annotated[dict[_Text, _Text], Field(min_length=1, max_length=100)]
    """Language → digest of the wording in it."""
    records: Annotated[int, Field(ge=1)]
    positive: Annotated[int, Field(ge=0)]
    scale: Annotated[float, Field(gt=0, le=1_000)]
    shift: Annotated[float, Field(ge=-1_000, le=1_000)]
    cuts: Annotated[list[_Cut], Field(min_length=1, max_length=2)]
    before: dict[_Text, float]
    held_out: dict[_Text, float]


class FitFile(_Part):
    """A fit file."""

    format: Literal["merilo-fit-1"]
    judge: _Text
    labels: dict[_Text, _Text]
    """Label file → SHA-256."""
    kinds: Annotated[dict[_Kind, FittedKind], Field(min_length=1)]

    @model_validator(mode="after")
    def _cuts_ascend(self) -> Self:
        for kind, each in self.kinds.items():
            count = 2 if kind in GRADED else 1
            if len(each.cuts) != count or each.cuts != sorted(each.cuts):
                raise ValueError(f"{kind} needs {count} cut{'s' * (count - 1)}, lowest first")
        return self


def fitted(judge: DecisionJudge, source: str | PathLike[str]) -> DecisionJudge:
    """Return the judge with the curves and cuts in a fit file.

    Raises UsageError for a file that is invalid, or of another judge or wording.
    """
    found = validated(FitFile, read_document(source), str(source))
    again = f"Fit again: merilo judge check {judge.name} --fit --labels FILE --out FIT.json."
    if found.judge != judge.name:
        raise UsageError(f"{source} is the fit of {found.judge!r}, not of {judge.name!r}. {again}")
    for kind, each in found.kinds.items():
        if any(wording_of(kind, language).digest != digest for language, digest in each.wordings.items()):
            raise UsageError(f"{source} is the fit of another wording of {kind!r}. {again}")
    return replace(judge, fits={kind: _fit(each) for kind, each in found.kinds.items()})


def _fit(kind: FittedKind) -> KindFit:
    curve = LogisticCurve(kind.scale, kind.shift)
    return KindFit(curve, tuple(kind.cuts), kind.records, frozenset(kind.wordings.values()))
