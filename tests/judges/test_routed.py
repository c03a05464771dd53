"""A judge per kind of question: what users write, and the judge that it makes."""

from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

from merilo.commands.evaluate.options import Model, Options
from merilo.commands.evaluate.preparation import judges_of
from merilo.errors import UsageError
from merilo.judges.base import Judge, JudgeLike
from merilo.judges.llm import LLMJudge
from merilo.judges.routed import Routed, part_for, recorded_parts
from merilo.judges.scripted import ScriptedJudge
from merilo.judges.spec import judge_from
from merilo.judging.kinds.contexts import Relevance, Support, Usefulness
from merilo.judging.kinds.responses import Entities
from merilo.judging.registry import KINDS

URL = "http://127.0.0.1:9/v1"


def judges_from(specs: Any, *, base_url: str | None = None) -> dict[str, Judge]:
    """The judges of these texts, without the models that compare and split texts."""
    judges = judges_of(Options(judge=Model(specs, base_url=base_url)))
    return {role: judge for role, judge in judges.items() if role not in {"embedder", "similarity", "splitter"}}


def routed(*specs: JudgeLike) -> Routed:
    """The judge that these texts make; it must have routes."""
    found = judges_from(specs, base_url=URL)["judge"]
    assert isinstance(found, Routed)
    return found


def test_each_kind_goes_to_its_judge() -> None:
    """Kinds with a route go to its judge, all others to the judge without a name."""
    judge = routed("relevance, usefulness=embedded", "openai:m", "support=openai:strict")
    kinds = (Relevance, Usefulness, Support, Entities)
    names = [getattr(part_for(judge, kind), "name", None) for kind in kinds]
    assert names == ["embedded", "embedded", "openai:strict", "openai:m"]
    assert judge.name == "relevance,usefulness=embedded; support=openai:strict; rest=openai:m"
    assert {Relevance, Entities} <= judge.answers
    assert judge.together == frozenset({Support}) | (judge.part(Entities) or judge).together - {Relevance, Usefulness}


def test_without_a_rest_only_the_named_kinds_are_answered() -> None:
    """There is no default judge behind the routes."""
    judge = routed("support=openai:m")
    assert judge.answers == {Support}
    assert part_for(judge, Relevance) is None


@each_case(
    "specs",
    [
        ["usefulness=embedded", "relevance=embedded", "rest=openai:m"],
        ["openai:m", "usefulness,relevance=embedded"],
        {"relevance": "embedded", "usefulness": "embedded", "rest": "openai:m"},
        ["relevance,usefulness=embedded", "support=openai:m", "openai:m"],
    ],
)
def test_equal_routings_make_equal_judges(specs: Any) -> None:
    """Neither the order nor the way of writing counts, so a run can be resumed with any of them."""
    judge = judges_from(specs, base_url=URL)["judge"]
    expected = routed("relevance,usefulness=embedded", "rest=openai:m")
    assert (judge.name, judge.fingerprint()) == (expected.name, expected.fingerprint())


def test_a_route_to_the_judge_of_the_rest_is_no_route() -> None:
    """If every kind goes to one judge, it is that judge, with its own name and fingerprint."""
    judges = judges_from(["support=openai:m", "openai:m"], base_url=URL)
    assert isinstance(judges["judge"], LLMJudge)
    assert list(judges) == ["openai:m", "judge"]


def test_other_names_are_judges_with_a_role() -> None:
    """A named judge beside routes is asked only by metrics that name it."""
    judges = judges_from(["second=openai:large", "support=embedded", "openai:m"], base_url=URL)
    assert list(judges) == ["support=embedded; rest=openai:m", "second", "judge"]
    assert judges["second"].name == "openai:large"


def test_objects_take_routes_in_python() -> None:
    """A mapping may hold judges and callables; one object on two routes makes one route."""
    judge = ScriptedJudge.by(lambda _: None, version="1", answers=frozenset({Support, Relevance}))

    async def call(_: Any) -> None: ...

    found = judges_from({"support": judge, "rest": call, "relevance": judge})["judge"]
    assert isinstance(found, Routed)
    assert [each.label for each in found.routes] == ["relevance,support", "rest"]
    assert part_for(found, Support) is judge


@each_case(
    ("specs", "message"),
    [
        (["supports=embedded"], "'supports' is not a kind of question; did you mean 'support'"),
        (["relevance,supports=embedded"], "Unknown kind of question 'supports' in .* Did you mean 'support'"),
        (["a,b=embedded"], "Unknown kind of question 'a' in a,b=SPEC. Kinds: relevance, usefulness,"),
        ({"truth": "embedded"}, "Unknown kind of question 'truth'"),
        (
            ["support=embedded", "relevance,support=openai:m"],
            "Two judges for 'support' questions: embedded and openai:m",
        ),
        (["support=embedded", "openai:a", "rest=openai:b"], "Two judges answer the rest: openai:a and openai:b"),
        (["support,rest=embedded"], "'rest' stands for all other kinds"),
        (["entities=embedded"], "The judge embedded cannot answer 'entities' questions.* It answers: relevance,"),
        (
            ["embeddings,support=embedded"],
            "'embeddings' questions have their own model. Name it alone: embeddings=SPEC",
        ),
        (["embeddings=embedded", "embeddings=openai:m"], "Two models for 'embeddings' questions"),
        (["sentences=embedded"], "'sentences' questions take no route"),
        (["support=embedded", "judge=openai:m"], "Only the first judge may be named 'judge'"),
        ({}, "At least one judge is needed"),
    ],
)
def test_what_makes_no_routing_is_an_error(specs: Any, message: str) -> None:
    """Each error names what was written and what to write."""
    with pytest.raises(UsageError, match=message):
        judges_from(specs)


def test_an_address_is_for_the_routes_that_have_one() -> None:
    """`base_url` applies to judges at an address, and not to two kinds of provider, as with several judges."""
    assert routed("support=openai:m", "embedded").name == "support=openai:m; rest=embedded"
    with pytest.raises(UsageError, match=r"base_url: only for one kind of provider, but .* anthropic, openai"):
        judges_from(["support=openai:a", "anthropic:b"], base_url=URL)
    with pytest.raises(UsageError, match="base_url: only for judges at an address"):
        judges_from(["support=embedded"], base_url=URL)


def test_a_manifest_shows_the_parts() -> None:
    """Each recorded part has its kinds, also when the manifest comes from JSON."""
    judge = routed("support=embedded", "openai:m")
    parts = recorded_parts({"name": judge.name, "fingerprint": judge.fingerprint()})
    assert [(each.label, each.name, each.fingerprint["judge"]) for each in parts] == [
        ("support", "embedded", "embedded"),
        ("rest", "openai:m", "llm"),
    ]
    assert parts[0].kinds == {"support"}
    assert parts[1].kinds == {*KINDS} - {"support"}
    plain = judge_from("embedded")
    (whole,) = recorded_parts({"name": plain.name, "fingerprint": plain.fingerprint()})
    assert (whole.label, whole.kinds) == ("", {*KINDS})


# ------------------------------------------------------------------------------- judges in files

_FILE = """
class Needs:
    def __init__(self, model): ...

class Provider:
    def fingerprint(self): return {"provider": "mine", "model": "m"}
    def connect(self, *, known=None): ...
    def price_usd(self, usage): return 0.0

OBJECT = Provider()
NUMBER = 7
"""


def test_a_provider_in_a_file_is_the_provider_of_an_llm_judge(tmp_path: Path) -> None:
    """A class without arguments and an object both serve."""
    path = tmp_path / "mine.py"
    path.write_text(_FILE, encoding="utf-8")
    for name in ("Provider", "OBJECT"):
        judge = judge_from(f"{path}:{name}")
        assert isinstance(judge, LLMJudge)
        assert judge.name == "mine:m"
