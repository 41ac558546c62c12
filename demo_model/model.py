"""The demo model as LangChain sees it: a chat model that takes tools and streams."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from demo_model.memory import is_memory_request, memory_answer, small_talk
from demo_model.steps import next_message
from demo_model.turn import DemoTurn, read_turn, system_text
from graph.judging import QUOTE
from policies.quoting import own_words

SUMMARY_REQUEST = "summarise the conversation"
LONGEST_LINE = 160
LONGEST_SUMMARY = 2000
"""Characters. Our own choices."""

_REQUESTER = re.compile(r"^The requester is (.+)\.$", re.MULTILINE)
_FREE = UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)
"""It is no language model, so that no limit on the use of one counts it."""


class DemoChatModel(BaseChatModel):
    """A rule-based chat model: no network, no state, the same answer to the same messages.

    It looks after a calendar, a task list and documents through tools called `calendar__…`, `tasks__…` and
    `documents__…`, and says plainly that it is no language model when it does not understand. It calls only tools that
    are bound to it.
    """

    tool_names: frozenset[str] = frozenset()
    """Full names of the tools that it may call; see `bind_tools`."""
    quoted_in: Mapping[str, str] = Field(default_factory=dict)
    """By full name, the argument in which a tool wants the requester's own words (`safeWrite`)."""

    @property
    def _llm_type(self) -> str:
        return "countersign-demo"

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool | str], **kwargs: Any
    ) -> DemoChatModel:
        """The same model, which may call exactly these tools: names, OpenAI-style definitions, or LangChain tools."""
        definitions: list[dict[str, Any]] = [
            {"name": t} if isinstance(t, str) else convert_to_openai_tool(t)["function"] for t in tools
        ]
        required = {str(tool["name"]): tool.get("parameters", {}).get("required") for tool in definitions}
        # Ours is the last one, and longer by an underscore than any the tool has itself.
        quoted_in = {name: names[-1] for name, names in required.items() if names and names[-1].startswith(QUOTE)}
        return self.model_copy(update={"tool_names": frozenset(required), "quoted_in": quoted_in})

    def answer(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """The next message of the conversation. Pure, but for the clock where no message tells the time."""
        # Only the first line of the prompt asks for a summary: further down it may quote people.
        first_line = system_text(messages).lstrip().partition("\n")[0]
        if SUMMARY_REQUEST in first_line.casefold():
            return AIMessage(_summary(messages))
        if is_memory_request(first_line):
            return AIMessage(memory_answer(messages))
        turn = read_turn(messages)
        if talk := small_talk(_without_name(messages, turn), messages):
            return AIMessage(talk)
        text, wanted = next_message(turn, self.tool_names)
        calls = []
        for index, call in enumerate(wanted):
            quote = self.quoted_in.get(call.tool)
            arguments = call.arguments | ({quote: _own_words(messages, turn)} if quote else {})
            calls.append(ToolCall(name=call.tool, args=arguments, id=f"demo_{len(messages)}_{index}", type="tool_call"))
        return AIMessage(text, tool_calls=calls)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages))])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return self._generate(messages)  # at once: LangChain's own would take a thread

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


def _own_words(messages: Sequence[BaseMessage], turn: DemoTurn) -> str:
    """The longest passage of the request that its author wrote, without their name before it and what they quoted."""
    return max(own_words(_without_name(messages, turn)), key=len, default="")


def _without_name(messages: Sequence[BaseMessage], turn: DemoTurn) -> str:
    named = _REQUESTER.search(system_text(messages))
    return turn.request.removeprefix(f"{named[1]}: ") if named else turn.request


def _summary(messages: Sequence[BaseMessage]) -> str:
    """The newest lines of what people and the assistant said, each cut short, oldest first."""
    said = [message.text.splitlines() for message in messages if isinstance(message, HumanMessage | AIMessage)]
    lines = [" ".join(line.split()) for text in said for line in text if line.strip()]
    kept: list[str] = []
    for line in reversed([line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…" for line in lines]):
        if len("\n".join([line, *kept])) > LONGEST_SUMMARY:
            break
        kept.insert(0, line)
    return "\n".join(kept) or "Nothing was said yet."


def _pieces(message: AIMessage) -> Iterator[AIMessageChunk]:
    """The message word by word, then each call in two halves, as providers stream them; together they are it again."""
    for number, word in enumerate(message.text.split(" ")):
        yield AIMessageChunk(content=f" {word}" if number else word)
    for index, call in enumerate(message.tool_calls):
        arguments = json.dumps(call["args"], ensure_ascii=False)
        half = len(arguments) // 2
        first = tool_call_chunk(name=call["name"], args=arguments[:half], id=call["id"], index=index)
        yield AIMessageChunk(content="", tool_call_chunks=[first])
        yield AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(args=arguments[half:], index=index)])
    ended = {"finish_reason": "stop"}
    yield AIMessageChunk(content="", chunk_position="last", usage_metadata=_FREE, response_metadata=ended)
