"""What differs between the judges of two runs is told in few words, and without what may be secret."""

import pytest

from merilo.runs.directory import judge_difference, judges_difference
from merilo.runs.manifest import Manifest


def judge(name: str = "openai:m", **provider: object) -> dict[str, object]:
    return {"name": name, "fingerprint": {"judge": "llm", "provider": provider}}


def test_judges_that_answer_alike_do_not_differ() -> None:
    """Equal fingerprints make no difference, whatever the judges are called."""
    assert judge_difference(judge(base_url="http://a"), judge("other", base_url="http://a")) is None
    assert not judges_difference({"judge": judge()}, {"judge": judge(), "strict": judge(x=1)})


def test_each_mark_that_differs_is_named_with_both_values() -> None:
    """A mark that only one of them has is told as not set."""
    told = judge_difference(judge(base_url="http://a"), judge(base_url="http://b", effort="low"))
    assert told == (
        'openai:m differs in provider.base_url "http://a" there, "http://b" here; '
        'provider.effort not set there, "low" here'
    )
    assert judge_difference(judge(x=1), judge("openai:n", x=2)) == "is openai:m there and openai:n here"


def test_what_a_user_has_sent_besides_is_named_but_not_shown() -> None:
    """A body may hold a key."""
    told = judge_difference(judge(body={"api_key": "SECRET-1"}), judge(body={"api_key": "SECRET-2"}))
    assert told == "openai:m differs in provider.body.api_key"


@pytest.mark.parametrize(("judge_kind", "expected"), [("embedded", ()), ("llm", ("rubrics",))])
def test_rubrics_count_only_for_language_models(judge_kind: str, expected: tuple[str, ...]) -> None:
    """A run that asks no language model can be resumed after its rubrics have a new version."""
    routed = {"name": "r", "fingerprint": {"judge": "routed", "routes": {"rest": {"judge": {"judge": judge_kind}}}}}
    first, second = (
        Manifest("0", "data", "f", 1, (), {}, {}, {"judge": routed}, "s", None, rubrics={"support": version})
        for version in ("v1", "v2")
    )
    assert first.differences(second) == expected
