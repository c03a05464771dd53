"""The options of `merilo lineage`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from merilo.commands.evaluate.options import Options
from merilo.commands.option import OptionGroup, call_option, repeatable_option

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, kw_only=True)
class LineageOptions(Options):
    """The options of an evaluation by several definitions of one name; `metrics` must be None."""

    families: Sequence[str] = field(
        default=(),
        metadata=repeatable_option(
            'names of "context_relevance", "context_precision", "context_recall", "faithfulness" and '
            '"answer_relevancy". Empty: all of them.',
            help="Only this family of definitions. Repeatable.",
            metavar="NAME",
            name="--family",
            group=OptionGroup.JUDGES,
        ),
    )
    as_published: bool = field(
        default=False,
        metadata=call_option(
            "ask the questions of each definition, as its system does.",
            help="Ask each definition's own questions.",
            name="--as-published/--same-verdicts",
            type=bool,
            default=False,
            group=OptionGroup.JUDGES,
        ),
    )
