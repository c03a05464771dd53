"""Write a metric: outcomes, questions to ask, and the plan that asks them.

The names that are imported for type checkers are public. Each is imported when it is first used.
"""

from typing import TYPE_CHECKING

from merilo.lazy import exports

if TYPE_CHECKING:
    from merilo.judging.ask import AskFailed as AskFailed
    from merilo.judging.ask import Plan as Plan
    from merilo.judging.ask import ask as ask
    from merilo.judging.ask import ask_each as ask_each
    from merilo.judging.ask import attempt as attempt
    from merilo.judging.ask import attempt_each as attempt_each
    from merilo.judging.ask import both as both
    from merilo.judging.ask import draws as draws
    from merilo.judging.ask import together as together
    from merilo.judging.kinds.contexts import Mentions as Mentions
    from merilo.judging.kinds.contexts import Relevance as Relevance
    from merilo.judging.kinds.contexts import Sufficiency as Sufficiency
    from merilo.judging.kinds.contexts import SufficiencyLabel as SufficiencyLabel
    from merilo.judging.kinds.contexts import Support as Support
    from merilo.judging.kinds.contexts import SupportLabel as SupportLabel
    from merilo.judging.kinds.contexts import Usefulness as Usefulness
    from merilo.judging.kinds.measured import Embeddings as Embeddings
    from merilo.judging.kinds.measured import Sentences as Sentences
    from merilo.judging.kinds.measured import Similarities as Similarities
    from merilo.judging.kinds.responses import Addresses as Addresses
    from merilo.judging.kinds.responses import Answered as Answered
    from merilo.judging.kinds.responses import Choice as Choice
    from merilo.judging.kinds.responses import Completion as Completion
    from merilo.judging.kinds.responses import Entities as Entities
    from merilo.judging.kinds.responses import Noncommittal as Noncommittal
    from merilo.judging.kinds.responses import Parts as Parts
    from merilo.judging.kinds.responses import PassageQuestion as PassageQuestion
    from merilo.judging.kinds.responses import Statements as Statements
    from merilo.judging.questions import Question as Question
    from merilo.judging.verdicts import Failure as Failure
    from merilo.judging.verdicts import Verdict as Verdict
    from merilo.metrics.base import Card as Card
    from merilo.metrics.base import Composite as Composite
    from merilo.metrics.base import Evidence as Evidence
    from merilo.metrics.base import EvidenceTarget as EvidenceTarget
    from merilo.metrics.base import Failed as Failed
    from merilo.metrics.base import Family as Family
    from merilo.metrics.base import Kinds as Kinds
    from merilo.metrics.base import Metric as Metric
    from merilo.metrics.base import MetricDefaults as MetricDefaults
    from merilo.metrics.base import Score as Score
    from merilo.metrics.base import Undefined as Undefined
    from merilo.metrics.registry import parse_metric as parse_metric
    from merilo.metrics.registry import register as register

_get, __dir__ = exports(__name__)


def __getattr__(name: str) -> object:
    """Return a public name. Raises ImportError for the class of a metric: it says what to write."""
    try:
        return _get(name)
    except AttributeError:
        from merilo.metrics.registry import also_called

        if not name.startswith("_") and (metrics := also_called(name)):
            raise ImportError(f'merilo.metrics has no {name}: write metrics="{metrics[0]}".') from None
        raise
