"""The store of a run: rows gather in memory, are found there, and become durable by a commit alone."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merilo.data.context import Context
from merilo.data.sample import Sample
from merilo.errors import RunError
from merilo.judging.ask import Answer
from merilo.judging.json_types import compact
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict, Support, SupportLabel, SupportVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.providers.base import Reply, Usage
from merilo.runs.database import COMMIT_ROWS, COMMIT_SECONDS
from merilo.runs.records import Exchange, SampleTexts, question_from, question_text
from merilo.runs.store import Store

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
REPLY = Reply(('{"grade": 2}',), usage=Usage(10, 5), model="m-1")
PAID = Exchange("openai:m", "the rubric", (REPLY,), 0.25)
FREE = Exchange("scripted:x", "", (), 0.0)


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def question(number: int) -> Relevance:
    return Relevance(f"question {number}", (f"sentence {number}", "Ткань."))


def verdict(number: int) -> RelevanceVerdict:
    return RelevanceVerdict(2, (0,), f'reason "{number}"\n')


def row(number: int) -> tuple[bytes, Question[Any], Answer]:
    return key(number), question(number), verdict(number)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(path: Path) -> Store:
    return Store.open(path, create=True)


def spent(store: Store, path: Path) -> tuple[int, float]:
    """The stored requests and their cost."""
    store.commit()
    with closing(sqlite3.connect(path)) as db:
        found: tuple[int, float] = db.execute("SELECT total(requests), total(cost_usd) FROM exchanges").fetchone()
        return found


def test_a_look_up_finds_what_is_not_committed_yet(store: Store) -> None:
    """An answer is found from the moment it is kept; pending, committed and unknown keys go into one look-up."""
    store.keep([row(1)], PAID)
    store.commit()
    store.keep([row(2)], None)
    wanted: dict[bytes, type[Verdict]] = dict.fromkeys(map(key, (1, 2, 3)), RelevanceVerdict)
    assert store.answers(wanted) == {key(1): verdict(1), key(2): verdict(2)}
    assert store.answer(key(3), RelevanceVerdict) is None


def test_only_a_commit_is_durable(store: Store, path: Path) -> None:
    """Another connection sees nothing before the commit, and every row after it."""
    store.keep([row(1)], PAID)
    other = sqlite3.connect(path)
    assert other.execute("SELECT count(*) FROM answers").fetchone() == (0,)
    store.commit()
    assert other.execute("SELECT count(*) FROM answers").fetchone() == (1,)
    other.close()


def test_a_commit_is_due_by_paid_rows_or_by_time(store: Store) -> None:
    """Fifty answers that cost money are due at once, any other after 20 ms; nothing is due where nothing waits."""
    assert store.due_in() is None
    assert not store.due()
    for number in range(COMMIT_ROWS):
        store.keep([row(number)], PAID)
    assert store.due()
    assert store.due_in() == 0.0
    store.commit()
    assert store.due_in() is None
    store.keep([row(1000)], FREE)
    waits = store.due_in()
    assert waits is not None
    assert waits <= COMMIT_SECONDS
    time.sleep(COMMIT_SECONDS)
    assert store.due()


def test_failures_are_kept_and_dropped(store: Store) -> None:
    """A failure is an answer until all failures are dropped."""
    failure = Failure(FailureKind.REFUSED, 'It "will" not.')
    store.keep([(key(1), question(1), failure), row(2)], PAID)
    assert store.answer(key(1), RelevanceVerdict) == failure
    assert store.drop_failures() == 1
    assert store.answer(key(1), RelevanceVerdict) is None
    assert store.answer(key(2), RelevanceVerdict) == verdict(2)


def test_a_conversation_is_read_back_whole(store: Store) -> None:
    """All that a conversation answered comes back with any of its keys: in order, with rubric and raw replies."""
    store.keep([row(0)], PAID)
    together: list[tuple[bytes, Question[Any], Answer]] = [
        (key(number), Support(f"statement {number}", ("context",)), SupportVerdict(SupportLabel.NOT_STATED))
        for number in (5, 3, 4)
    ]
    store.keep(together, Exchange("openai:m", "another rubric", (Failure(FailureKind.TEMPORARY, "HTTP 500"), REPLY)))
    store.keep([row(1)], PAID)
    for number in (3, 4, 5):
        found = store.conversation(key(number))
        assert found is not None
        assert [asked.key for asked in found.asked] == [key(5), key(3), key(4)]
        assert [asked.question for asked in found.asked] == [question for _, question, _ in together]
        assert (found.judge, found.rubric, found.cached) == ("openai:m", "another rubric", False)
        assert [*found.replies[0]] == ["failure"]
        assert found.replies[1]["texts"] == ['{"grade": 2}']
    assert store.conversation(key(9)) is None


def test_what_was_not_sent_stands_alone(store: Store) -> None:
    """Answers for which nothing was sent, or that came from the cache, are no conversation with one another."""
    for number in range(3):
        store.keep([row(number)], FREE)
    store.keep([row(3)], None)
    store.keep([row(4)], None)
    for number in range(5):
        found = store.conversation(key(number))
        assert found is not None
        assert [asked.key for asked in found.asked] == [key(number)]
        assert found.replies == ()
        assert found.cached == (number > 2)
    asked = store.asked(key(1))
    assert asked is not None
    assert asked.judge == "scripted:x"


def test_what_was_judged_together_without_a_request_stays_together(store: Store) -> None:
    """A pack that a local judge answered is one conversation."""
    store.keep([row(1), row(2)], FREE)
    found = store.conversation(key(2))
    assert found is not None
    assert [asked.key for asked in found.asked] == [key(1), key(2)]


def test_a_copy_is_one_whole_file(store: Store, tmp_path: Path) -> None:
    """A copy holds what is pending too, and needs no other file beside it."""
    store.keep([row(1)], PAID)
    store.copy(tmp_path / "copy")
    copy = Store.read(tmp_path / "copy")
    assert copy.answer(key(1), RelevanceVerdict) == verdict(1)
    copy.close()
    assert not (tmp_path / "copy-wal").exists()
    with pytest.raises(RunError, match="already exists"):
        store.copy(tmp_path / "copy")


def test_samples_replace_those_before_only_when_accepted(store: Store) -> None:
    """Samples added take the place of the present ones at once and whole; a second of one id names the first."""
    for ids in (["a", "b"], ["c", "b", "a"]):
        store.expect_samples()
        before = [sample.id for sample in store.samples()]
        for each in ids:
            store.add_new(Sample(each, user_input="q?"))
        assert store.positions(("b", "x")) == {"b": ids.index("b") + 1}
        assert [sample.id for sample in store.samples()] == before
        store.accept_samples()
        assert [sample.id for sample in store.samples()] == ids
    assert store.sample("b") == Sample("b", user_input="q?")
    assert store.sample("x") is None
    assert len([*store.sample_ids()]) == 3


def test_reading_needs_no_permission_to_write(store: Store, path: Path) -> None:
    """A closed store is one file, without a log beside it, that a reader leaves as it is."""
    store.keep([row(1)], PAID)
    store.close()
    before = path.read_bytes()
    reader = Store.read(path)
    assert reader.answer(key(1), RelevanceVerdict) == verdict(1)
    reader.close()
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["store.sqlite"]


def test_what_a_broken_off_conversation_heard_is_found_and_counted(store: Store, path: Path) -> None:
    """Its replies and their cost stand in the store until it has gone on; then they are counted with it, once."""
    assert not store.unfinished
    store.leave(key(1), PAID, (None, REPLY))
    store.close()
    store = Store.open(path)
    assert store.unfinished
    assert store.saved_replies(key(2)) is None
    assert store.saved_replies(key(1)) == ((None, REPLY), 0.25)
    assert store.saved_replies(key(1)) is None  # another conversation about the same begins anew
    assert spent(store, path) == (1, 0.25)
    store.leave(key(1), PAID._replace(replies=(REPLY, REPLY), cost_usd=0.5), (REPLY, REPLY))  # broken off again
    store.leave(key(1), PAID, (REPLY,))  # the other one too
    assert spent(store, path) == (3, 0.75)
    store.close()
    store = Store.open(path)
    assert store.saved_replies(key(1)) == ((REPLY, REPLY), 0.5)
    store.forget(key(1))
    store.keep([row(1)], PAID._replace(replies=(REPLY,) * 3, cost_usd=0.75))
    assert spent(store, path) == (4, 1.0)
    assert not store.unfinished


def test_leaving_and_going_on_within_one_commit_leaves_nothing(store: Store, path: Path) -> None:
    """A conversation that was left and has gone on before the next commit has no row."""
    store.leave(key(1), PAID, (None, REPLY))
    store.forget(key(1))
    store.close()
    store = Store.open(path)
    assert not store.unfinished
    assert spent(store, path) == (0, 0.0)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE exchanges SET record = '[]'",
        "UPDATE exchanges SET record = x'00'",
        "UPDATE exchanges SET cost_usd = 'much'",
        "UPDATE exchanges SET cost_usd = 9e999",
        "DELETE FROM exchanges",
        "UPDATE unfinished SET exchange = 7",
        "UPDATE unfinished SET exchange = 'one'",
    ],
)
def test_a_damaged_conversation_is_told(store: Store, path: Path, damage: str) -> None:
    """Whatever became of the rows of a broken-off conversation, it is one sentence."""
    store.leave(key(1), PAID, (REPLY,))
    store.close()
    with sqlite3.connect(path) as db:
        db.execute(damage)
    db.close()
    store = Store.open(path)

    def resume() -> None:
        store.check()
        store.saved_replies(key(1))

    with pytest.raises(RunError, match="is damaged"):
        resume()


WORDS = st.text("abcdefgh .,", min_size=1, max_size=40)


@given(contexts=st.lists(WORDS, min_size=1, max_size=4), cuts=st.lists(st.integers(0, 40), max_size=6), other=WORDS)
def test_a_question_is_read_back_whatever_its_texts(contexts: list[str], cuts: list[int], other: str) -> None:
    """Texts of the sample, parts of them in any order, and texts of another origin come back as they were."""
    sample = SampleTexts(1, compact({"id": "s", "user_input": "Why?", "retrieved_contexts": contexts}))
    parts = tuple(text[cut : cut + 15] for text in contexts for cut in cuts)
    long = other * 20
    for texts in (tuple(contexts), parts, (*contexts, other, long), (long,), ()):
        for query in (contexts[0], other, long, ""):
            asked = Relevance(query, texts, draw=len(texts), language="de")
            assert question_from("relevance", question_text(asked, sample), sample) == asked


def test_a_text_of_the_sample_is_stored_once(store: Store) -> None:
    """The questions about a sample hold places instead of its texts, and no other table holds them."""
    contexts = tuple(f"The river number {n} is long and cold. It has two banks, and they are steep." for n in range(3))
    sample = Sample("s", user_input="How long is it?", retrieved_contexts=tuple(map(Context, contexts)))
    store.expect_samples()
    store.add_new(sample)
    store.accept_samples()
    asked = [Relevance("How long is it?", (each[:38], each[39:])) for each in contexts]
    store.keep([(key(n), each, verdict(n)) for n, each in enumerate(asked)], PAID, sample="s")
    store.commit()
    lines = store.lines([key(n) for n in range(3)])
    assert [json.loads(lines[key(n)][2].question)["sentences"] for n in range(3)] == [
        {"texts": [[n + 2, 0, 38, 39, 74]]} for n in range(3)
    ]
    for n, each in enumerate(asked):
        found = store.asked(key(n))
        assert found is not None
        assert found.question == each
