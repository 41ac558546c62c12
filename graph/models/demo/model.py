"""The demo model as LangChain sees it: a chat model that takes tools and streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from graph.models.demo.planner import reply
from graph.models.demo.summary import is_summary_request, summarise
from graph.models.demo.turn import own_words_of, read_turn
from graph.quotes import QUOTE

_FREE = UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)
_ENDED = {"finish_reason": "stop"}
"""It is no language model, so that no limit on the use of one counts it."""


class DemoChatModel(BaseChatModel):
    """A rule-based chat model: no network, no state, the same answer to the same messages.

    It looks after a calendar and a task list through tools called `calendar__…` and `tasks__…`, and says plainly that
    it is no language model when it does not understand. It calls only tools that are bound to it.
    """

    tool_names: frozenset[str] = frozenset()
    """Full names of the tools that it may call; see `bind_tools`."""
    quoted_in: Mapping[str, str] = Field(default_factory=dict)
    """By full name, the argument in which a tool wants the requester's own words (`safeWrite`)."""

    @property
    def _llm_type(self) -> str:
        return "countersign-demo"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool | str],
        **kwargs: Any,
    ) -> DemoChatModel:
        """The same model, which may call exactly these tools: names, OpenAI-style definitions, or LangChain tools."""
        quoted_in = {_name(tool): wanted for tool in tools if (wanted := _wants_words(tool))}
        names = frozenset(_name(tool) for tool in tools)
        return self.model_copy(update={"tool_names": names, "quoted_in": quoted_in})

    def answer(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """The next message of the conversation. Pure, but for the clock where no message tells the time."""
        if is_summary_request(messages):
            return AIMessage(summarise(messages))
        turn = read_turn(messages)
        said = reply(turn, self.tool_names)
        words = own_words_of(messages, turn) if self.quoted_in else ""
        calls = [
            ToolCall(
                name=call.tool,
                args=call.arguments | ({name: words} if (name := self.quoted_in.get(call.tool)) else {}),
                id=f"demo_{len(messages)}_{index}",
                type="tool_call",
            )
            for index, call in enumerate(said.calls)
        ]
        return AIMessage(said.text, tool_calls=calls)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, None, **kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for piece in _pieces(self.answer(messages)):
            chunk = ChatGenerationChunk(message=piece)
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def _wants_words(tool: Any) -> str | None:
    parameters = tool.get("function", {}).get("parameters", {}) if isinstance(tool, dict) else {}
    required = parameters.get("required", [])
    # Ours is the last one, and longer by an underscore than any the tool has itself.
    return required[-1] if required and str(required[-1]).startswith(QUOTE) else None


def _name(tool: Any) -> str:
    if isinstance(tool, str):
        return tool
    definition = tool if isinstance(tool, dict) else convert_to_openai_tool(tool)
    return str(definition.get("function", definition).get("name", ""))


def _pieces(message: AIMessage) -> Iterator[AIMessageChunk]:
    """The message word by word, then each call in two halves, as providers stream them; together they are it again."""
    for number, word in enumerate(str(message.content).split(" ")):
        yield AIMessageChunk(content=f" {word}" if number else word)
    for index, call in enumerate(message.tool_calls):
        arguments = json.dumps(call["args"], ensure_ascii=False)
        half = len(arguments) // 2
        first = tool_call_chunk(name=call["name"], args=arguments[:half], id=call["id"], index=index)
        yield AIMessageChunk(content="", tool_call_chunks=[first])
        yield AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(args=arguments[half:], index=index)])
    yield AIMessageChunk(content="", chunk_position="last", usage_metadata=_FREE, response_metadata=_ENDED)
