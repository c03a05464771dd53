"""The options of `merilo judge check`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.commands.evaluate.options import Options
from merilo.commands.option import OptionGroup, opt

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike


def _given(texts: list[str] | None) -> Sequence[str]:
    return texts or ()


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Options):
    """The questions with which a judge is checked, and the options of the evaluation that apply to a judge."""

    labels: Sequence[str | PathLike[str]] = opt(
        (),
        OptionGroup.DATA,
        "File of human labels. Repeatable. [default: the sample in merilo]",
        metavar="FILE",
        many=True,
        read=_given,
        in_project_file=False,
    )
    tasks: Sequence[str] = opt(
        (),
        OptionGroup.DATA,
        "Only trial or a task of the labels. Repeatable.",
        name="--task",
        metavar="NAME",
        many=True,
        read=_given,
        in_project_file=False,
    )
    number: int | None = opt(
        None,
        OptionGroup.DATA,
        "Maximum records per task and source, always the same ones. [default: all]",
        metavar="N",
        span=(1, 1e9),
        type=int,
        in_project_file=False,
    )
