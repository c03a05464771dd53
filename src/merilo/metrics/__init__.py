"""Write a metric: outcomes, questions to ask, and the plan that asks them.

The names in `__all__` are public. Each is imported when it is first used.
"""

from typing import TYPE_CHECKING

from merilo.lazy import exports

if TYPE_CHECKING:
    from merilo.judging.ask import AskFailed, Plan, ask, ask_each, attempt, attempt_each, both, draws, together
    from merilo.judging.kinds.contexts import (
        Mentions,
        Relevance,
        Sufficiency,
        SufficiencyLabel,
        Support,
        SupportLabel,
        Usefulness,
    )
    from merilo.judging.kinds.measured import Embeddings, Sentences, Similarities
    from merilo.judging.kinds.responses import (
        Addresses,
        Answered,
        Choice,
        Completion,
        Entities,
        Noncommittal,
        Parts,
        PassageQuestion,
        Statements,
    )
    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Failure, Verdict
    from merilo.metrics.base import (
        Card,
        Composite,
        Evidence,
        EvidenceTarget,
        Failed,
        Family,
        Kinds,
        Metric,
        MetricDefaults,
        Score,
        Undefined,
    )
    from merilo.metrics.registry import parse_metric, register

__all__ = [
    "Addresses",
    "Answered",
    "AskFailed",
    "Card",
    "Choice",
    "Completion",
    "Composite",
    "Embeddings",
    "Entities",
    "Evidence",
    "EvidenceTarget",
    "Failed",
    "Failure",
    "Family",
    "Kinds",
    "Mentions",
    "Metric",
    "MetricDefaults",
    "Noncommittal",
    "Parts",
    "PassageQuestion",
    "Plan",
    "Question",
    "Relevance",
    "Score",
    "Sentences",
    "Similarities",
    "Statements",
    "Sufficiency",
    "SufficiencyLabel",
    "Support",
    "SupportLabel",
    "Undefined",
    "Usefulness",
    "Verdict",
    "ask",
    "ask_each",
    "attempt",
    "attempt_each",
    "both",
    "draws",
    "parse_metric",
    "register",
    "together",
]

_get, __dir__ = exports(__name__)


def __getattr__(name: str) -> object:
    """Return a public name. Raises ImportError for the class of a metric: it says what to write."""
    if name not in __all__ and not name.startswith("_"):
        from merilo.metrics.registry import also_called

        if metrics := also_called(name):
            raise ImportError(f'merilo.metrics has no {name}: write metrics="{metrics[0]}".')
    return _get(name)
