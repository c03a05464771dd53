"""Modules of ragas that merilo does not have: importing one raises an ImportError that says what to use."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_PACKAGE: Final = "merilo.compat.ragas"
_LINES: Final = ("v0_1", "v0_2", "v0_3")
_RUBRIC: Final = "write a rubric, see docs/extend.md"
_METRIC: Final = "write a metric, see docs/extend.md"
_RUNS: Final = "use merilo.evaluate and merilo.compare, see docs/compare.md"
_PIPELINE: Final = "use merilo.evaluate_pipeline, see docs/frameworks.md"
_NOTHING: Final = "it has no effect on scores here; remove the import"
MISSING_MODULES: Final[Mapping[str, str]] = {
    "testset": "load your own questions, see docs/data.md",
    "integrations": _PIPELINE,
    "optimizers": "prompts are not optimized; correct the scores with human labels, see docs/label.md",
    "losses": "prompts are not optimized; correct the scores with human labels, see docs/label.md",
    **dict.fromkeys(("experiment", "experimental", "dataset", "backends"), _RUNS),
    **dict.fromkeys(("prompt", "adaptation"), f"the wording of the prompts is merilo's own; {_RUBRIC}"),
    "messages": "give each turn as a SingleTurnSample",
    "cache": "answers are cached without it, see docs/cost.md",
    "cost": "each run records its tokens and cost, see docs/cost.md",
    **dict.fromkeys(("callbacks", "executor", "async_utils"), _NOTHING),
    "metrics.base": _METRIC,
    "metrics.critique": "use AspectCritic, or merilo.compat.ragas.v0_1, which has it",
    "metrics.collections": "use merilo.compat.ragas.metrics.collections",
    **dict.fromkeys(("metrics.discrete", "metrics.numeric", "metrics.ranking"), _RUBRIC),
}
"""Name of a module in ragas → what to use."""


class MissingModules:
    """A finder that finds nothing. It comes last, so Python asks it only for modules that do not exist."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise ImportError for a module of ragas that merilo does not have; return None for any other."""
        del path, target
        name = fullname.removeprefix(f"{_PACKAGE}.")
        first, _, rest = name.partition(".")
        name = rest if first in _LINES else name
        if fullname.startswith(f"{_PACKAGE}.") and name in MISSING_MODULES:
            raise ImportError(f"merilo does not have ragas' module {name}: {MISSING_MODULES[name]}.", name=fullname)
        return None


def install() -> None:
    """Make Python ask the finder; repeated calls change nothing."""
    if MissingModules not in sys.meta_path:
        sys.meta_path.append(MissingModules)
