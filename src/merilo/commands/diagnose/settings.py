"""The options of `merilo diagnose`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from merilo.commands.evaluate.options import Options
from merilo.commands.option import OptionGroup, opt

if TYPE_CHECKING:
    from collections.abc import Sequence

_opt: Final = partial(opt, in_project_file=False)
_CODE: Final = "FILE.py:NAME"


def _texts(given: list[str] | None) -> Sequence[str]:
    return given or ()


@dataclass(frozen=True, kw_only=True)
class DiagnoseOptions(Options):
    """The experiments with an application, and the options of the evaluation of its answers."""

    each: int = _opt(0, OptionGroup.DATA, "Failing questions to find the cause of.", metavar="N", type=int)
    ids: Sequence[str] = _opt(
        (),
        OptionGroup.DATA,
        "Find the cause of this question. Repeatable.",
        metavar="ID",
        many=True,
        read=_texts,
    )
    right: object = _opt(
        None, OptionGroup.JUDGES, "Function of an answer and its sample that decides if it is right.", metavar=_CODE
    )
    retrieve: object = _opt(
        None, OptionGroup.DATA, "Instead of APP: returns the contexts of a question.", metavar=_CODE
    )
    generate: object = _opt(None, OptionGroup.DATA, "Instead of APP: answers a question from contexts.", metavar=_CODE)
    max_calls: int | None = _opt(
        None, OptionGroup.LIMITS, "Maximum calls of the application in this directory.", metavar="N", type=int
    )
