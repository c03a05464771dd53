"""What a run knows: keys that never move, one look-up for many units, and what is durable when."""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest
from each_case import each_case

from merilo.engine import cache as caches
from merilo.engine.answer_store import AnswerStore, JudgeRoles, WorkUnit, _schema
from merilo.engine.cache import WRITE_ROWS, VerdictCache
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.digests import digest_json, digest_of, digest_text, digest_texts
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict, Support, SupportLabel, SupportVerdict
from merilo.judging.kinds.measured import Similarities
from merilo.judging.kinds.responses import Completion
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import Failure, FailureKind, later_fields
from merilo.providers.base import Reply, ReplyPath, Usage
from merilo.runs import store as stores
from merilo.runs.database import COMMIT_ROWS
from merilo.runs.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from merilo.judging.questions import Question

YES, NO = RelevanceVerdict(2, (0,)), RelevanceVerdict(0)
SUPPORTED = SupportVerdict(SupportLabel.SUPPORTED, (0,))
REPLY = Reply(("{}",), usage=Usage(10, 5), path=ReplyPath.JSON_SCHEMA)
LOCAL = Reply(("{}",), path=ReplyPath.LOCAL)


SCHEMAS = {
    "addresses": "b9881964834a123cb77154aff4f7f075",
    "answered": "b9f8b1286fbb4a07280a4bef500326fb",
    "choice": "f1a8f905e058b36d822040caea2a6d53",
    "completion": "63c6c84659479576c06b0580ace9add3",
    "embeddings": "c00a13c57ca89cb2771ce80a1b97e7bf",
    "entities": "01f52a88e678d84d869852c723d0851f",
    "mentions": "5bbf405cf781deb18946d7e3fe90598b",
    "noncommittal": "dd2a5b37f455fd10ac5599c3adc83dc0",
    "parts": "37a085f90d5a19f066474a9d88e680c9",
    "passage_question": "466eb91ff513bf0b7674f1b331259e03",
    "relevance": "664edb5a695748745ba43200d1201c6f",
    "sentences": "0029df3886643399e48b4a20ea4999ef",
    "similarities": "c00a13c57ca89cb2771ce80a1b97e7bf",
    "statements": "137394b2d64874deee42d0e080a74986",
    "sufficiency": "132adcef40caca65458e013e40c727a6",
    "support": "a606d560a085b0d86269260b43b19348",
    "usefulness": "10062b6d321958ddc7ebbace4adfe320",
}
"""The part of each key that the type of the verdict determines, as in stores and caches of version 0.1.0."""


def test_the_part_of_a_key_for_the_type_of_its_verdict_never_moves() -> None:
    """A class variable or a later field of a verdict must not change keys: stored verdicts would be asked again."""
    assert {name: _schema(kind.verdict).hex() for name, kind in KINDS.items()} == SCHEMAS


def judge(version: str = "1", **arguments: Any) -> ScriptedJudge:
    return ScriptedJudge.by(lambda _: YES, version=version, **arguments)


def relevance(number: int) -> Relevance:
    return Relevance(f"question {number}", ("One.", "Two."))


def supports(count: int) -> tuple[Support, ...]:
    return tuple(Support(f"statement {number}", ("context",)) for number in range(count))


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No commit by time, so that a slow machine changes nothing."""
    monkeypatch.setattr(stores, "COMMIT_SECONDS", 1000.0)
    monkeypatch.setattr(caches, "WRITE_SECONDS", 1000.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(tmp_path / "store.sqlite", create=True)) as opened:
        yield opened


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[VerdictCache]:
    with closing(VerdictCache(tmp_path / "cache.sqlite")) as opened:
        yield opened


def answers(store: Store, cache: VerdictCache | None = None, **arguments: Any) -> AnswerStore:
    return AnswerStore(JudgeRoles({"judge": judge(**arguments)}), store, cache)


def keep(found: AnswerStore, unit: WorkUnit, *given: Any, reply: Reply = REPLY) -> None:
    found.keep(unit, given, [reply], 0.0, 0.1)
    found.commit_if_due()


def test_a_key_is_made_of_what_the_question_is(store: Store) -> None:
    """The key digests content, rubric, judge, schema, draw and place in the pack, as it did in the first format."""
    found = answers(store)
    question = Relevance("Who?", ("Ada.", "Grace."), language="ru", draw=3)
    (unit,) = found.units(((question,),))
    content = digest_of(
        b"relevance", b"ru", b"user_input", digest_text("Who?"), b"sentences", digest_texts(("Ada.", "Grace."))
    )
    later = later_fields(RelevanceVerdict)
    schema = {field.name: str(field.type) for field in fields(RelevanceVerdict) if field.name not in later}
    assert question.content == content
    assert unit.keys == (
        digest_of(
            content,
            digest_text(""),
            digest_json(judge().fingerprint()),
            digest_json({"verdict": "RelevanceVerdict", "fields": schema}),
            (3).to_bytes(4, "little"),
            b"",
            b"",
        ),
    )


@each_case(
    ("question", "digest"),
    [
        (Relevance("q", ("a", "b")), "959f27a8a777915afba234c5a90c282b"),
        (Support("s", ("Ткань",), language="ru", role="x"), "d3c01f094e9be65608dc81deb89febd0"),
        (Completion("r", ("n",), ("v",), temperature=0.3), "23768a90b0c4ef3f58dc37a10460cf37"),
        (Completion("r", ("n",), ("v",), likely="x"), "35fcb0252e466d52e163aa8ea096f7e9"),
        (Similarities(("a",), ("b", "c")), "83396cc7ae036c671b11d67895bf4a01"),
    ],
)
def test_contents_have_not_moved(question: Question[Any], digest: str) -> None:
    """Digests of questions are those of the first release: every cache and every stored run rests on them."""
    assert question.content.hex() == digest


def test_many_units_are_looked_up_at_once(store: Store, cache: VerdictCache) -> None:
    """For each unit in order: what the run or the cache holds, and what is left to ask."""
    found = answers(store, cache)
    units = found.units(tuple((relevance(number),) for number in range(4)))
    keep(found, units[0], YES)
    cache.put([(units[2].keys[0], relevance(2), NO)], "judge", paid=True)
    looked = found.known_all([*units, units[0]])
    assert looked == [
        ({units[0].keys[0]: YES}, None),
        ({}, units[1]),
        ({units[2].keys[0]: NO}, None),
        ({}, units[3]),
        ({units[0].keys[0]: YES}, None),
    ]
    assert [found.known_all([unit])[0] for unit in units] == looked[:4]


def test_what_the_cache_gave_is_in_the_run(store: Store, cache: VerdictCache) -> None:
    """A verdict taken from the cache is the run's own from then on, whatever the cache holds later."""
    found = answers(store, cache)
    (unit,) = found.units(((relevance(1),),))
    cache.put([(unit.keys[0], relevance(1), NO)], "judge", paid=True)
    assert found.known_all([unit])[0] == ({unit.keys[0]: NO}, None)
    assert answers(store).known_all([unit])[0] == ({unit.keys[0]: NO}, None)
    assert store.answer_count(cached=True) == 1


def test_a_pack_is_taken_whole_or_asked_whole(store: Store, cache: VerdictCache) -> None:
    """Where the cache lacks one verdict of a pack, none of them is taken."""
    found = answers(store, cache, packs=frozenset({Support}))
    whole, torn = found.units((supports(3), supports(4)))
    for unit in (whole, torn):
        asked = zip(unit.keys[:3], unit.questions[:3], strict=True)
        cache.put([(key, question, SUPPORTED) for key, question in asked], "judge", paid=True)
    looked = found.known_all([whole, torn])
    assert looked == [(dict.fromkeys(whole.keys, SUPPORTED), None), ({}, torn)]


def test_a_failure_is_not_cached(store: Store, cache: VerdictCache) -> None:
    """The run stores a failure, the cache does not."""
    found = answers(store, cache)
    (second,) = found.units(((relevance(2),),))
    failure = Failure(FailureKind.REFUSED, "no")
    assert found.keep(second, (failure,), [REPLY], 0.0, 0.1) == {second.keys[0]: failure}
    assert not cache.find({second.keys[0]: second.questions[0]})


def test_paid_answers_are_committed_by_the_batch(store: Store, cache: VerdictCache, tmp_path: Path) -> None:
    """Answers that cost a request are on disk once so many of them wait: soon in the run, later in the cache."""
    found = answers(store, cache)
    units = found.units(tuple((relevance(number),) for number in range(WRITE_ROWS)))
    with (
        closing(Store.read(tmp_path / "store.sqlite")) as reader,
        closing(VerdictCache(tmp_path / "cache.sqlite")) as other,
    ):
        for number, unit in enumerate(units, start=1):
            assert found.due_in() is not None or unit is units[0]
            keep(found, unit, YES)
            assert len(list(reader.keys())) == number - number % COMMIT_ROWS
            cached = len(other.find({unit.keys[0]: unit.questions[0] for unit in units}))
            assert cached == (WRITE_ROWS if number == WRITE_ROWS else 0)
    assert found.due_in() is None  # nothing waits


def test_what_was_answered_here_is_no_request(store: Store) -> None:
    """A reply of a program on this machine is not recorded, and costs nothing."""
    found = answers(store)
    (unit,) = found.units(((relevance(1),),))
    keep(found, unit, YES, reply=LOCAL)
    assert found.due_in() is not None
    conversation = store.conversation(unit.keys[0])
    assert conversation is not None
    assert conversation.replies == ()


def test_nothing_waits_after_a_commit(store: Store, cache: VerdictCache) -> None:
    """A commit leaves nothing due; with nothing kept nothing is."""
    found = answers(store, cache)
    assert found.due_in() is None
    (unit,) = found.units(((relevance(1),),))
    keep(found, unit, YES)
    waits = found.due_in()
    assert waits is not None
    assert 900 < waits <= 1000
    found.commit()
    assert found.due_in() is None
    found.commit_if_due()
    assert found.notices() == ()


def test_a_later_field_of_a_verdict_is_stored_only_if_it_is_set() -> None:
    """Verdicts of version 0.1.0 keep their bytes, and those with the new field are read back equal."""
    plain, cited = (
        SupportVerdict(SupportLabel.SUPPORTED, (0,)),
        SupportVerdict(SupportLabel.SUPPORTED, (0,), sentences=((0, 1),)),
    )
    assert "sentences" not in plain.to_json()
    assert "sentences" not in plain.to_fields()
    for verdict in (plain, cited):
        assert SupportVerdict.from_json(verdict.to_json()) == verdict
        assert SupportVerdict.from_fields(verdict.to_fields()) == verdict
