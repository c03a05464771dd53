"""Samples to judge, verdicts for them by the words of the question, and a run's canonical bytes."""

from collections.abc import Callable
from typing import Any

import merilo
from merilo.judging.kinds.contexts import Mentions, Relevance, Sufficiency, Support, Usefulness
from merilo.judging.kinds.responses import Addresses, Answered, Entities, Noncommittal, Parts, Statements
from merilo.judging.questions import Question


def verdict_for(question: Question[Any]) -> dict[str, Any]:  # noqa: C901  one case a kind
    """A verdict that depends on the words of the question alone."""
    match question:
        case Relevance():
            named = [i for i, text in enumerate(question.sentences) if "river" in text]
            return {"grade": min(2, len(named)), "evidence": named, "reason": "about a river" if named else "no river"}
        case Usefulness():
            named = [i for i, text in enumerate(question.sentences) if "long" in text]
            return {"useful": bool(named), "evidence": named}
        case Statements():
            return {"statements": [{"text": text, "sentence": i} for i, text in enumerate(question.sentences)]}
        case Support():
            named = [i for i, text in enumerate(question.contexts) if question.statement[:12] in text]
            return {"label": "supported" if named else "not_stated", "evidence": named}
        case Sufficiency():
            return {"label": "sufficient" if len(question.contexts) > 1 else "partly"}
        case Addresses():
            return {"addresses": "long" in question.statement}
        case Noncommittal():
            return {"noncommittal": "know" in question.response}
        case Parts():
            return {"parts": [question.user_input]}
        case Answered():
            named = [i for i, text in enumerate(question.sentences) if "long" in text]
            return {"answered": bool(named), "evidence": named}
        case Entities():
            found = [(text.split()[0], i) for i, text in enumerate(question.sentences) if text.strip()]
            return {"entities": [{"text": text, "sentence": i} for text, i in found]}
        case Mentions():
            named = [i for i, text in enumerate(question.contexts) if question.name in text]
            return {"mentioned": bool(named), "evidence": named}
    raise AssertionError(question.kind)


def rows(count: int) -> list[dict[str, Any]]:
    """Samples with every field, all different, with contexts that some of them share."""
    return [
        {
            "id": f"s{i}",
            "user_input": f"How long is river {i}?",
            "retrieved_contexts": [
                f"River {i} is a river. It is {i} km long. Fish live in it.",
                f"The town of {i % 3} has a market.",
                "",
            ],
            "response": f"River {i} is {i} km long. It is blue." if i % 5 else "I do not know.",
            "reference": f"It is {i} km long.",
        }
        for i in range(count)
    ]


Evaluate = Callable[..., merilo.Run]


def canonical(run: merilo.Run) -> bytes:
    """The bytes of a run that equal input must reproduce."""
    return b"".join((run.path / name).read_bytes() for name in ("manifest.json", "outcomes.jsonl", "summary.json"))
