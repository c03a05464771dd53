"""Completions with turns after the rubric or with a schema, and those of before that had neither."""

from dataclasses import replace

from conversing import Talk
from server import JudgeServer

from merilo.judges.llm import LLMJudge
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.providers.openai import OpenAIProvider
from merilo.runs.records import NO_SAMPLE, question_from, question_text

PLAIN = Completion("en/noncommittal.v1", ("user_input", "response"), ("Why?", "So."), 0.5, likely="{}")
SCHEMA = '{"type": "object"}'


def stored(question: Completion) -> tuple[str, object]:
    """The record of a question, and the question that is read from it."""
    record = question_text(question, NO_SAMPLE)
    return record, question_from(question.kind, record, NO_SAMPLE)


def test_a_completion_without_turns_and_schema_has_its_key_of_before() -> None:
    """Runs and caches of 0.1.0 stay valid: the digest and the record of a plain completion did not change."""
    assert Completion("en/x.v1", ("a",), ("b",), 0.5).content.hex() == "740e11238014c3ee6deac6665cda9d06"
    record, read = stored(PLAIN)
    assert "earlier" not in record
    assert "schema" not in record
    assert read == PLAIN


def test_turns_and_schema_are_content_and_are_stored() -> None:
    """Each of them makes another question, which is read back whole."""
    others = (replace(PLAIN, earlier=("no", "Again.")), replace(PLAIN, schema=SCHEMA))
    assert len({question.content for question in (PLAIN, *others)}) == 3
    for question in others:
        assert stored(question)[1] == question


async def test_turns_and_schema_reach_the_server() -> None:
    """The turns follow the rubric as assistant and user in alternation; a schema is sent as response_format."""
    question = replace(PLAIN, earlier=("no", "Again.", "no", "Once more."), schema=SCHEMA)
    with JudgeServer() as server:
        async with Talk() as talk:
            judge = LLMJudge(OpenAIProvider("test-model", base_url=server.base_url))
            assert await talk.converse(judge, question) == (CompletionVerdict("A free reply."),)
    (asked,) = server.asked
    turns = [(message["role"], message["content"]) for message in asked.messages[-4:]]
    assert turns == [("assistant", "no"), ("user", "Again."), ("assistant", "no"), ("user", "Once more.")]
    assert asked.body["response_format"]["json_schema"]["schema"] == {"type": "object"}
