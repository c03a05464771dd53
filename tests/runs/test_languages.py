"""Languages of samples in runs: identified when a run reads its data, and stored."""

from pathlib import Path
from typing import Any

from judged_rivers import verdict_for

import merilo
from merilo.commands.verify.replay import State, verify_run
from merilo.judging.questions import Question

DATA = [
    {"id": "de", "user_input": "Wie lang ist der Fluss?", "retrieved_contexts": ["Der Fluss ist sehr lang."]},
    {"id": "en", "user_input": "How long is the river?", "retrieved_contexts": ["It is a long river."]},
]


def evaluated(out: Path) -> list[str]:
    """Evaluate the data and return the languages of the questions that were asked."""
    languages: list[str] = []

    def answer(question: Question[Any]) -> object:  # Any: of every kind
        languages.append(question.language)
        return verdict_for(question)

    judge = merilo.ScriptedJudge.by(answer)
    merilo.evaluate(DATA, judge=judge, metrics=["context_relevance"], storage={"cache": False}, out=out)
    return sorted(languages)


def test_questions_are_asked_in_the_identified_language(tmp_path: Path) -> None:
    """The run stores it, so that it verifies without identifying it again."""
    assert evaluated(tmp_path / "run") == ["de", "en"]
    assert [each.sample.language for each in merilo.Run.open(tmp_path / "run").samples] == ["de", None]
    assert verify_run(tmp_path / "run").state is State.VERIFIED
    assert evaluated(tmp_path / "run") == []
