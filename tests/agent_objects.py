"""Agents of each framework, made by the package itself: they search once, and answer.

Models are scripted, so nothing leaves the machine. Each function returns results by name, and what is asked under names
that begin with `agent` or `engine`.
"""

from typing import Any

TEXT = "The tower was completed in 1889."
OTHER = "Rome has seven hills."
QUESTION = "When was the tower completed?"
SAID = "I will search."
ANSWER = "In 1889."


def langgraph() -> dict[str, Any]:
    from langchain.agents import create_agent
    from langchain_core.documents import Document
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool

    class Model(GenericFakeChatModel):
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    @tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, list[Document]]:
        """Search the archive."""
        found = [Document(TEXT, id="d1"), Document(OTHER, id="d2")]
        return "\n".join(each.page_content for each in found), found

    def agent() -> Any:
        call = {"name": "search", "args": {"query": "tower"}, "id": "1", "type": "tool_call"}
        said = [AIMessage(SAID, tool_calls=[call]), AIMessage(ANSWER)]
        return create_agent(Model(messages=iter(said)), [search])

    asked = {"messages": [("user", QUESTION)]}
    return {
        "state": agent().invoke(asked),
        "stream": list(agent().stream(asked, stream_mode="updates")),
        "values": list(agent().stream(asked, stream_mode="values")),
        "agent": agent(),
    }


def llamaindex() -> dict[str, Any]:
    import asyncio

    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
    from llama_index.core.chat_engine import ContextChatEngine
    from llama_index.core.llms import MockLLM
    from llama_index.core.llms.function_calling import FunctionCallingLLM
    from llama_index.core.llms.llm import ToolSelection
    from llama_index.core.schema import TextNode
    from llama_index.core.tools import QueryEngineTool

    class Model(MockLLM, FunctionCallingLLM):
        """A model that calls the tool first."""

        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(is_function_calling_model=True)

        async def astream_chat_with_tools(self, *_: Any, chat_history: Any = None, **__: Any) -> Any:
            is_called = any(each.role == "tool" for each in chat_history)

            async def said() -> Any:
                text = ANSWER if is_called else SAID
                yield ChatResponse(message=ChatMessage(text, role="assistant"), delta=text)

            return said()

        async def achat_with_tools(self, *_: Any, chat_history: Any = None, **__: Any) -> Any:
            is_called = any(each.role == "tool" for each in chat_history)
            return ChatResponse(message=ChatMessage(ANSWER if is_called else SAID, role="assistant"))

        def get_tool_calls_from_response(self, response: Any, **_: Any) -> Any:
            if response.message.content == ANSWER:
                return []
            return [ToolSelection(tool_id="1", tool_name="search", tool_kwargs={"input": "tower"})]

        def _prepare_chat_with_tools(self, *_: Any, **__: Any) -> Any:
            return {}

    index = VectorStoreIndex([TextNode(id_="d1", text=TEXT)], embed_model=MockEmbedding(8))
    model = MockLLM(max_tokens=3)
    engine = ContextChatEngine.from_defaults(index.as_retriever(), llm=model)
    streaming = index.as_query_engine(llm=model, streaming=True)
    tool = QueryEngineTool.from_defaults(index.as_query_engine(llm=model), name="search", description="Search.")
    agent = FunctionAgent(tools=[tool], llm=Model())

    async def run() -> Any:
        return await agent.run(QUESTION)

    return {
        "chat": engine.chat(QUESTION),
        "streaming chat": engine.stream_chat(QUESTION),
        "streaming query": streaming.query(QUESTION),
        "output": asyncio.run(run()),
        "agent": agent,
        "engine": engine,
        "engine that streams": streaming,
    }


def pydantic_ai() -> dict[str, Any]:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    def model(messages: Any, _: Any) -> Any:
        if any(isinstance(part, ToolReturnPart) for each in messages for part in each.parts):
            return ModelResponse([TextPart(ANSWER)])
        return ModelResponse([TextPart(SAID), ToolCallPart("search", {"query": "tower"})])

    agent = Agent(FunctionModel(model))

    @agent.tool_plain
    def search(query: str) -> list[dict[str, str]]:
        return [{"text": TEXT, "id": "d1"}, {"text": OTHER, "id": "d2"}]

    return {"result": agent.run_sync(QUESTION), "agent": agent}


def openai_agents() -> dict[str, Any]:
    from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    def message(text: str) -> Any:
        content = [ResponseOutputText(text=text, type="output_text", annotations=[])]
        return ResponseOutputMessage(id="m", content=content, role="assistant", status="completed", type="message")

    class Scripted(Model):
        async def get_response(self, *_: Any, input: Any, **__: Any) -> Any:
            if not isinstance(input, str) and any(each.get("type") == "function_call_output" for each in input):
                return ModelResponse(output=[message(ANSWER)], usage=Usage(), response_id=None)
            call = ResponseFunctionToolCall(
                arguments='{"query": "tower"}', call_id="1", name="search", type="function_call"
            )
            return ModelResponse(output=[message(SAID), call], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    @function_tool
    def search(query: str) -> str:
        """Search the archive."""
        return f'[{{"text": "{TEXT}", "id": "d1"}}, {{"text": "{OTHER}", "id": "d2"}}]'

    agent = Agent(name="a", model=Scripted(), tools=[search])
    return {"result": Runner.run_sync(agent, QUESTION), "agent": agent}


def smolagents() -> dict[str, Any]:
    from smolagents import ChatMessage, MessageRole, Model, ToolCallingAgent, tool
    from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

    class Scripted(Model):
        def generate(self, messages: Any, **_: Any) -> Any:
            is_called = any(
                str(each.role).endswith("tool-response") or "TOOL_RESPONSE" in str(each.role) for each in messages
            )
            name, given = ("final_answer", {"answer": ANSWER}) if is_called else ("search", {"query": "tower"})
            call = ChatMessageToolCall(ChatMessageToolCallFunction(given, name), "1", "function")
            return ChatMessage(MessageRole.ASSISTANT, SAID, tool_calls=[call])

    @tool
    def search(query: str) -> str:
        """Search the archive.

        Args:
            query: What to search for.
        """
        return f'[{{"text": "{TEXT}", "id": "d1"}}, {{"text": "{OTHER}", "id": "d2"}}]'

    agent = ToolCallingAgent(tools=[search], model=Scripted(), return_full_result=True, verbosity_level=0)
    return {"result": agent.run(QUESTION), "agent": agent}


def haystack() -> dict[str, Any]:
    from haystack import Document, component
    from haystack.components.agents import Agent
    from haystack.dataclasses import ChatMessage, ToolCall
    from haystack.tools import Tool

    @component
    class Scripted:
        @component.output_types(replies=list[ChatMessage])
        def run(self, messages: list[ChatMessage], tools: Any = None, **_: Any) -> dict[str, Any]:  # noqa: ARG002
            if any(each.tool_call_results for each in messages):
                return {"replies": [ChatMessage.from_assistant(ANSWER)]}
            call = ToolCall("search", {"query": "tower"}, id="1")
            return {"replies": [ChatMessage.from_assistant(SAID, tool_calls=[call])]}

    def search(query: str) -> list[Document]:
        return [Document(id="d1", content=TEXT), Document(id="d2", content=OTHER)]

    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    agent = Agent(
        chat_generator=Scripted(),
        tools=[Tool("search", "Search.", schema, search)],
        state_schema={"documents": {"type": list[Document]}},
    )
    return {"result": agent.run(messages=[ChatMessage.from_user(QUESTION)]), "agent": agent}


AGENTS = {
    "langgraph": langgraph,
    "llama_index.core": llamaindex,
    "pydantic_ai": pydantic_ai,
    "agents": openai_agents,
    "smolagents": smolagents,
    "haystack": haystack,
}
"""The module of each framework, and its agents."""
