"""Judges from what a user wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from merilo.errors import UsageError
from merilo.judges.callables import CallableJudge
from merilo.judges.llm import Judged, LLMJudge
from merilo.judges.scripted import ScriptedJudge
from merilo.judges.spec import judge_from, judges_from
from merilo.providers.openai import OpenAIProvider

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://127.0.0.1:9/v1"


def test_openai_names_the_model_and_the_address() -> None:
    """All after the first colon is the model, colons and slashes too."""
    judge = judge_from("openai:org/model:8b", base_url=URL, api_key_env="MY_KEY", judged="each")
    expected = OpenAIProvider("org/model:8b", base_url=URL, api_key_env="MY_KEY")
    assert judge == LLMJudge(expected, judged=Judged.EACH)
    assert judge.name == "openai:org/model:8b"


def test_scripted_names_a_file(tmp_path: Path) -> None:
    """The file is read when the judge is made."""
    path = tmp_path / "script.jsonl"
    path.write_text('{"kind": "relevance", "verdict": {"grade": 0}}', encoding="utf-8")
    assert judge_from(f"scripted:{path}").name == f"scripted:{path}"


def test_a_judge_is_itself_and_a_callable_becomes_one() -> None:
    """Objects need no text."""
    judge = ScriptedJudge.of([])

    async def call(_: Any) -> None: ...

    assert judge_from(judge) is judge
    assert judge_from(call) == CallableJudge(call)


@pytest.mark.parametrize("spec", ["", "gpt-4.1", "openai:", "openai", "scripted:", "anthropic:x", "embedded:x"])
def test_an_unknown_form_names_the_known_ones(spec: str) -> None:
    """The error says what may be written."""
    with pytest.raises(UsageError, match="A judge is one of embedded, openai:MODEL, scripted:FILE"):
        judge_from(spec)


def test_options_that_fit_nothing_are_errors() -> None:
    """A base URL for a judge that has none would be silently lost."""
    with pytest.raises(UsageError, match="base_url can be given for 'openai:MODEL' only"):
        judge_from("embedded", base_url=URL)
    with pytest.raises(UsageError, match="judged is one of each, together"):
        judge_from("openai:m", base_url=URL, judged="all")
    with pytest.raises(UsageError, match="or a callable, but got int"):
        judge_from(7)  # type: ignore[arg-type]  # what is tested


def test_the_first_judge_has_the_role_judge() -> None:
    """Named judges stand under their names, unnamed ones under their own; the first also as `judge`."""
    judges = judges_from(["openai:small", "second=openai:large"], base_url=URL)
    assert list(judges) == ["openai:small", "second", "judge"]
    assert judges["judge"] is judges["openai:small"]
    assert judges["second"].name == "openai:large"


def test_roles_are_told_apart() -> None:
    """Two judges of one name, a later one called `judge`, or none at all are errors."""
    with pytest.raises(UsageError, match="Two judges are called 'openai:m'"):
        judges_from(["openai:m", "openai:m"], base_url=URL)
    with pytest.raises(UsageError, match="Only the first judge may be called 'judge'"):
        judges_from(["a=openai:m", "judge=openai:n"], base_url=URL)
    with pytest.raises(UsageError, match="At least one judge is needed"):
        judges_from([])
    assert list(judges_from(["judge=openai:m"], base_url=URL)) == ["judge"]
