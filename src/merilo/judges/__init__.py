"""Use or write a judge.

The names in `__all__` are public. Each is imported when it is first used.
"""

from typing import TYPE_CHECKING

from merilo.lazy import exports

if TYPE_CHECKING:
    from merilo.judges.base import Conversation, Judge, OutgoingRequest, Packing
    from merilo.judges.callables import CallableJudge
    from merilo.judges.embedded import EmbeddedJudge
    from merilo.judges.llm import LLMJudge
    from merilo.judges.scripted import ScriptedJudge
    from merilo.judges.spec import judge_from

__all__ = [
    "CallableJudge",
    "Conversation",
    "EmbeddedJudge",
    "Judge",
    "LLMJudge",
    "OutgoingRequest",
    "Packing",
    "ScriptedJudge",
    "judge_from",
]

__getattr__, __dir__ = exports(__name__)
