"""The history of a sample, and conversations as samples."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.data.history import MAX_CHARACTERS, MAX_TURNS, READ_CHARACTERS, READ_TURNS, Turn, shown_history
from merilo.data.load import load
from merilo.data.sample import BadRecord, Sample
from merilo.errors import DataError


@dataclass
class Message:
    """A message as frameworks have it."""

    type: str
    content: object


TURNS = (Turn("user", "When was it built?"), Turn("assistant", "In 1889."))
FORMS = {
    "texts": ["When was it built?", "In 1889."],
    "openai": [
        {"role": "user", "content": [{"type": "text", "text": "When was it built?"}, {"type": "image_url"}]},
        {"role": "assistant", "content": "In 1889."},
    ],
    "langchain": [{"type": "human", "content": "When was it built?"}, {"type": "ai", "content": "In 1889."}],
    "langchain, stored": [
        {"type": "human", "data": {"content": "When was it built?", "additional_kwargs": {}}},
        {"type": "ai", "data": {"content": "In 1889."}},
    ],
    "objects": [Message("human", "When was it built?"), Message("ai", "In 1889.")],
    "turns": TURNS,
    "a call of a tool between": [
        {"role": "user", "content": "When was it built?"},
        {"role": "assistant", "content": None, "tool_calls": [{}]},
        {"role": "assistant", "content": "In 1889."},
    ],
}


@each_case("form", FORMS)
def test_each_form_gives_the_same_turns(form: str) -> None:
    """Texts, messages of OpenAI and LangChain as objects and records, and turns are read alike."""
    sample = Sample("a", user_input="How tall?", history=FORMS[form])  # type: ignore[arg-type]  # other forms on purpose
    assert sample.history == TURNS
    assert Sample.from_record(json.loads(json.dumps(sample.to_record()))) == sample


def test_a_sample_without_history_keeps_its_digest() -> None:
    """The record and the digest of a sample without earlier turns are those of earlier releases."""
    sample = Sample("a", user_input="How tall?")
    assert sample.to_record() == {"id": "a", "user_input": "How tall?"}
    assert sample.digest == Sample("a", user_input="How tall?", history=[]).digest
    assert sample.digest == "8dba6c90cd9fbd1d5be3c8ef58bfd342"
    assert sample.digest != Sample("a", user_input="How tall?", history=["Hi"]).digest


@each_case(
    ("given_", "message"),
    [
        ("user: hi", "expected a list of turns"),
        ([3], "a turn: a text, or an object"),
        ([{"role": "admin", "content": "x"}], "a role: user, assistant, system or tool"),
        ([{"content": "x"}], "a role"),
        ([{"role": "user", "content": 3}], "content"),
        ([{"role": "user", "content": "a\0b"}], "NUL"),
        (["x"] * (MAX_TURNS + 1), "at most 1,000 turns"),
        (["x" * (MAX_CHARACTERS // 2 + 1)] * 2, "characters in all turns"),
    ],
)
def test_what_is_no_history_is_refused(given_: object, message: str) -> None:
    """Wrong values are refused with the problem, and sizes have a limit."""
    with pytest.raises(DataError, match=message):
        Sample("a", user_input="How tall?", history=given_)  # type: ignore[arg-type]  # wrong on purpose


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda each: st.lists(each) | st.dictionaries(st.text(), each),
        max_leaves=8,
    )
)
def test_any_json_is_a_history_or_a_problem(value: object) -> None:
    """No value raises anything but DataError."""
    try:
        sample = Sample("a", user_input="How tall?", history=value)  # type: ignore[arg-type]  # wrong on purpose
    except DataError:
        return
    assert sample.history is None or all(isinstance(turn, Turn) for turn in sample.history)


def test_a_judge_reads_the_last_turns_shortened() -> None:
    """Turns of system and tools are not read; of the others the last ones are, each up to a length."""
    turns = [{"role": "system", "content": "Be nice."}, *["x" * 5_000] * 30]
    read = Sample("a", user_input="?", history=turns).read_history
    assert len(read) == READ_TURNS
    assert all(len(each) < READ_CHARACTERS + 20 for each in read)
    assert not any("nice" in each for each in read)
    assert "25 earlier turns" in (shown_history(Sample("a", user_input="?", history=turns).history) or "")


CHAT = {
    "id": "c1",
    "team": "blue",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "When was it built?"},
        {"role": "assistant", "content": "In 1889.", "contexts": ["It was completed in 1889."]},
        {"role": "user", "content": "How tall is it?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "It is 330 m tall."},
        {"role": "assistant", "content": "330 m."},
    ],
}


def samples_of(tmp_path: Path, *lines: object) -> list[Sample | BadRecord]:
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return list(load(path))


def test_a_conversation_is_one_sample_for_each_answer(tmp_path: Path) -> None:
    """Each answer has its question, its contexts, the turns before it, and the conversation in the metadata."""
    first, second = samples_of(tmp_path, CHAT)
    assert isinstance(first, Sample)
    assert isinstance(second, Sample)
    assert (first.id, first.user_input, first.response) == ("c1/1", "When was it built?", "In 1889.")
    assert [each.text for each in first.contexts] == ["It was completed in 1889."]
    assert (second.id, second.user_input, second.response) == ("c1/2", "How tall is it?", "330 m.")
    assert [each.text for each in second.contexts] == ["It is 330 m tall."]
    assert second.history == (Turn("system", "Be brief."), *TURNS)
    assert second.metadata == {"conversation_id": "c1", "team": "blue"}


def test_lines_apart_from_their_conversation_are_a_problem(tmp_path: Path) -> None:
    """Lines of a conversation with others in between are refused with the reason, not read as a second one."""
    lines = [
        {"conversation_id": name, "role": role, "content": role}
        for role in ("user", "assistant")
        for name in ("a", "b")
    ]
    *_, first, second = samples_of(tmp_path, *lines)
    for bad in (first, second):
        assert isinstance(bad, BadRecord)
        assert "expected adjacent lines of each conversation, got others in between" in str(bad.problems[0])


@each_case(
    ("messages", "message"),
    [
        ([], "a text of the user and an answer"),
        ([{"role": "user", "content": "Hi"}], "a text of the user and an answer"),
        ([{"role": "user", "content": "Hi"}, {"role": "wizard", "content": "Hi"}], "a role"),
        ([3], "a turn"),
        (["Hi", "Hello"] * 501, "at most 1,000 turns"),
    ],
)
def test_a_conversation_that_cannot_be_read_is_a_problem(messages: object, message: str, tmp_path: Path) -> None:
    """The problem names the line and what is wrong, and the other conversations are read."""
    bad, *good = samples_of(tmp_path, {"messages": messages}, CHAT)
    assert isinstance(bad, BadRecord)
    assert message in str(bad.problems[0])
    assert "line 1" in str(bad.problems[0])
    assert len(good) == 2


def test_a_long_conversation_keeps_the_last_turns_of_each_answer() -> None:
    """The histories of 400 answers grow no further than 50 turns, so that they are not stored again and again."""
    turns = [{"role": role, "content": f"{role} {number}"} for number in range(400) for role in ("user", "assistant")]
    found = list(load([{"messages": turns}]))
    assert len(found) == 400
    last = found[-1]
    assert isinstance(last, Sample)
    assert last.history is not None
    assert [turn.text for turn in (last.history[0], last.history[-1])] == ["user 374", "assistant 398"]
    assert len(last.history) == 50
