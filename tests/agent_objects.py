"""Agents of each framework, made by the package itself: they search once, and answer.

An OpenAI endpoint on this machine stands for the model: nothing else is replaced, and nothing leaves the machine. Each
function returns results by name, and what is asked under names that begin with `agent` or `engine`. Each of the two
replies costs 50 tokens of input and 3 of output.
"""

import asyncio
import json
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TEXT = "The tower was completed in 1889."
OTHER = "Rome has seven hills."
QUESTION = "When was the tower completed?"
SAID = "I will search."
ANSWER = "In 1889."
TOKENS = {"input_tokens": 100, "output_tokens": 6}
FOUND = f'[{{"text": "{TEXT}", "id": "d1"}}, {{"text": "{OTHER}", "id": "d2"}}]'
DOCUMENTS = [{"text": TEXT, "id": "d1"}, {"text": OTHER, "id": "d2"}]
KEY = "sk-none"
FEW = {"llama_index.core", "haystack"}
"""Frameworks whose index finds the first document only."""


class _Endpoint(BaseHTTPRequestHandler):
    """It calls a tool if the conversation has no result yet, otherwise it answers, by a tool if there is one."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = json.dumps(self._completion(asked) if "messages" in asked else self._response(asked)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass

    @staticmethod
    def _completion(asked: dict[str, Any]) -> dict[str, Any]:
        is_found = any("tool" in each["role"] or "Observation:" in str(each) for each in asked["messages"][1:])
        tools = [each["function"]["name"] for each in asked.get("tools") or ()]
        name = next((each for each in tools if (each == "final_answer") is is_found), None)
        message: dict[str, Any] = {"role": "assistant", "content": ANSWER if is_found else SAID}
        if name is not None:
            given = {"answer": ANSWER} if is_found else {"input" if "LlamaIndex" in str(asked) else "query": "tower"}
            function = {"name": name, "arguments": json.dumps(given)}
            message["tool_calls"] = [{"id": f"c{is_found}", "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if name else "stop"}
        usage = {"prompt_tokens": 50, "completion_tokens": 3, "total_tokens": 53}
        about = {"id": "r", "object": "chat.completion", "created": 1, "model": "gpt-4.1"}
        return {**about, "choices": [choice], "usage": usage}

    @staticmethod
    def _response(asked: dict[str, Any]) -> dict[str, Any]:
        is_found = "function_call_output" in str(asked["input"])
        content = [{"type": "output_text", "text": ANSWER if is_found else SAID, "annotations": []}]
        said = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
        call = {"type": "function_call", "id": "f", "call_id": "1", "arguments": '{"query": "tower"}'}
        call |= {"name": next((each["name"] for each in asked.get("tools") or ()), "")}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        usage = {"input_tokens": 50, "output_tokens": 3, "total_tokens": 53, **details}
        about = {
            "id": "r",
            "object": "response",
            "created_at": 1,
            "model": "gpt-4.1",
            "tools": [],
            "tool_choice": "auto",
        }
        output = [said] if is_found else [said, call]
        return {
            **about,
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "status": "completed",
            "output": output,
            "usage": usage,
        }


@cache
def address() -> str:
    """Return the address of the endpoint, which is started once."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


def langgraph() -> dict[str, Any]:
    from langchain.agents import create_agent
    from langchain_core.documents import Document
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    @tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, list[Document]]:
        """Search the archive."""
        found = [Document(TEXT, id="d1"), Document(OTHER, id="d2")]
        return "\n".join(each.page_content for each in found), found

    model = ChatOpenAI(model="gpt-4.1", base_url=address(), api_key=KEY)
    agent, other = create_agent(model, [search]), create_react_agent(model, [search])
    asked = {"messages": [("user", QUESTION)]}
    return {
        "state": agent.invoke(asked),
        "stream": agent.stream(asked, stream_mode="updates"),
        "values": agent.stream(asked, stream_mode="values"),
        "agent": agent,
        "agent of langgraph": other,
        "state of langgraph": other.invoke(asked),
    }


def llamaindex() -> dict[str, Any]:
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
    from llama_index.core.chat_engine import ContextChatEngine
    from llama_index.core.llms import MockLLM
    from llama_index.core.schema import TextNode
    from llama_index.core.tools import QueryEngineTool
    from llama_index.llms.openai_like import OpenAILike

    index = VectorStoreIndex([TextNode(id_="d1", text=TEXT)], embed_model=MockEmbedding(8))
    model = MockLLM(max_tokens=3)
    calling = OpenAILike("gpt-4.1", api_base=address(), api_key=KEY, is_chat_model=True, is_function_calling_model=True)
    engine = ContextChatEngine.from_defaults(index.as_retriever(), llm=model)
    streaming = index.as_query_engine(llm=model, streaming=True)
    tool = QueryEngineTool.from_defaults(index.as_query_engine(llm=model), name="search", description="LlamaIndex")
    agent = FunctionAgent(tools=[tool], llm=calling, streaming=False)

    async def run() -> Any:
        return await agent.run(QUESTION)

    return {
        "chat": engine.chat(QUESTION),
        "streaming chat": engine.stream_chat(QUESTION),
        "streaming query": streaming.query(QUESTION),
        "output": asyncio.run(run()),
        "agent": agent,
        "agent in a workflow": AgentWorkflow(agents=[agent]),
        "engine": engine,
        "engine that streams": streaming,
    }


def pydantic_ai() -> dict[str, Any]:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent = Agent(OpenAIChatModel("gpt-4.1", provider=OpenAIProvider(base_url=address(), api_key=KEY)))

    @agent.tool_plain
    def search(query: str) -> list[dict[str, str]]:
        return json.loads(FOUND)

    return {"result": asyncio.run(agent.run(QUESTION)), "agent": agent}


def openai_agents() -> dict[str, Any]:
    from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
    from agents.tracing import set_trace_processors
    from openai import AsyncOpenAI

    set_trace_processors([])

    @function_tool
    def search(query: str) -> str:
        """Search the archive."""
        return FOUND

    client = AsyncOpenAI(base_url=address(), api_key=KEY)
    agents = [
        Agent(name="a", model=model("gpt-4.1", client), tools=[search])
        for model in (OpenAIResponsesModel, OpenAIChatCompletionsModel)
    ]
    return {
        "result": asyncio.run(Runner.run(agents[0], QUESTION)),
        "result of chat": asyncio.run(Runner.run(agents[1], QUESTION)),
        "agent": agents[0],
        "agent of chat": agents[1],
    }


def smolagents() -> dict[str, Any]:
    from smolagents import OpenAIServerModel, ToolCallingAgent, tool

    @tool
    def search(query: str) -> str:
        """Search the archive.

        Args:
            query: What to search for.
        """
        return FOUND

    model = OpenAIServerModel("gpt-4.1", api_base=address(), api_key=KEY)
    agent = ToolCallingAgent(tools=[search], model=model, return_full_result=True, verbosity_level=0)
    return {"result": agent.run(QUESTION), "agent": agent}


def haystack() -> dict[str, Any]:
    from haystack import Document
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.dataclasses import ChatMessage
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from haystack.tools import ComponentTool
    from haystack.utils import Secret

    store = InMemoryDocumentStore()
    store.write_documents([Document(id="d1", content=TEXT), Document(id="d2", content=OTHER)])
    agent = Agent(
        chat_generator=OpenAIChatGenerator(Secret.from_token(KEY), "gpt-4.1", api_base_url=address()),
        tools=[ComponentTool(InMemoryBM25Retriever(store), "search", "Search the archive.")],
    )
    return {"result": agent.run(messages=[ChatMessage.from_user(QUESTION)]), "agent": agent}


def autogen() -> dict[str, Any]:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    def search(query: str) -> str:
        """Search the archive."""
        return FOUND

    client = OpenAIChatCompletionClient(model="gpt-4.1", base_url=address(), api_key=KEY)
    agent = AssistantAgent("a", client, tools=[search], reflect_on_tool_use=True)
    return {"result": asyncio.run(agent.run(task=QUESTION))}


def crewai() -> dict[str, Any]:
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    @tool("search")
    def search(query: str) -> str:
        """Search the archive."""
        return FOUND

    model = LLM("openai/gpt-4.1", base_url=address(), api_key=KEY)
    agent = Agent(role="a", goal="Answer.", backstory="b", tools=[search], llm=model)
    task = Task(description="{question}", expected_output="An answer.", agent=agent)
    crew = Crew(agents=[agent], tasks=[task])
    return {"result": crew.kickoff({"question": QUESTION}), "agent of a crew": crew}


AGENTS = {
    "langgraph": langgraph,
    "llama_index.core": llamaindex,
    "pydantic_ai": pydantic_ai,
    "agents": openai_agents,
    "smolagents": smolagents,
    "haystack": haystack,
    "autogen_agentchat": autogen,
    "crewai": crewai,
}
"""The module of each framework, and its agents."""
