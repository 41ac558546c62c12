"""Tool calls under our own names: ids, digests, and the ToolMessages that answer them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from graph.agents import shown_name
from graph.citations import CITED, Source, sources_of
from graph.citations import as_kept as sources_as_kept
from graph.files import READ_FILE
from graph.interrupts import Answered, Approved, Expired, FieldType, FormField, Rejected, Superseded, Withdrawn
from graph.json_values import storable
from graph.plans import DELEGATE
from graph.ports import Spoken

if TYPE_CHECKING:
    from graph.state import Turn

GIVEN_CALL = "call"
"""Under which the message of a person who has a call made carries it, in its `additional_kwargs`: a `GivenCall`."""
CLARIFICATION = "request_clarification"
"""A tool of ours: it asks the requester."""
_OURS = frozenset({CLARIFICATION, DELEGATE, READ_FILE})

FOREIGN_RESULT = "[result for that person only]"
"""What the model sees, in another person's turn, of a result fetched through a personal connection."""

WITHOUT_TOOLS = "Failed: this turn has no tools. The call was not made."
"""What the model is told of a call that it makes where it was offered none."""
REJECTED = "Rejected by "
"""How what a model is told of a rejected call begins; nothing that a tool returned begins so (`as_returned`)."""
SKIPPED = "hitl_skipped_non_streaming"
"""How it begins what the model is told of a call that would be asked about where nobody is asked."""


class GivenCall(TypedDict):
    """A tool call that a turn begins with, in the place of the model's first message."""

    name: str
    """`{server}__{tool}`."""
    args: dict[str, Any]
    quote: str
    """The requester's own words that asked for it, as they were found when it was made first; may be empty."""
    told: NotRequired[dict[str, Any]]
    """The arguments as models may read them, where an approver put in something that they may not; else all of
    them."""
    known: NotRequired[list[dict[str, Any]]]
    """What its ids stood for on the card where it was approved first, as `KnownId`s; the model does not read it."""


TakingOut = Callable[[str, dict[str, Any]], tuple[dict[str, Any], str]]
"""Splits what a model gives a tool (its name, its arguments) into the tool's own arguments and a quote."""


def own_ids(
    message: AIMessage,
    delivery: str,
    step: int,
    take_out: TakingOut | None = None,
    sources: Sequence[Source] = (),
) -> AIMessage:
    """The model's message under our ids: `{delivery}.{step}`, its calls `{delivery}.{step}.{index}`.

    Models reuse theirs (`call_0`), and the ledger is keyed by them. Calls whose arguments were not JSON are kept as
    calls that carry their `error`, so that each is answered rather than lost. `take_out`: where calls carry a quote.
    `sources`: what the message cites.
    """
    calls: list[dict[str, Any]] = [_own(_name(c["name"]), storable(c["args"]), take_out) for c in message.tool_calls]
    calls += [
        {"name": _name(c["name"] or "unnamed"), "args": {}, "error": c["error"] or "the arguments were not valid JSON"}
        for c in message.invalid_tool_calls
    ]
    named = [{**call, "id": f"{delivery}.{step}.{index}"} for index, call in enumerate(calls)]
    return AIMessage(
        content=storable(message.content),
        id=f"{delivery}.{step}",
        tool_calls=[{"name": c["name"], "args": c["args"], "id": c["id"], "type": "tool_call"} for c in named],
        additional_kwargs={
            "errors": {c["id"]: c["error"] for c in named if "error" in c},
            "quotes": {c["id"]: c["quote"] for c in named if c.get("quote")},
            **carrying(sources),
        },
        usage_metadata=message.usage_metadata,
    )


def carrying(sources: Sequence[Source]) -> dict[str, Any]:
    """What a message of the model keeps of the sources that it cites, among its `additional_kwargs`."""
    return {CITED: sources_as_kept(sources)} if sources else {}


def _name(written: str) -> str:
    """The name with a question mark for each half of a character, which nothing can keep: what names no tool still does
    not."""
    return written.encode("utf-8", "replace").decode()


def _own(name: str, arguments: dict[str, Any], take_out: TakingOut | None) -> dict[str, Any]:
    if take_out is None:
        return {"name": name, "args": arguments}
    rest, quote = take_out(name, arguments)
    return {"name": name, "args": rest, "quote": quote}


def given_call(message: AnyMessage) -> GivenCall | None:
    """The call that a turn begins with, by the turn's first message; none: the model is asked what to do."""
    call: GivenCall | None = message.additional_kwargs.get(GIVEN_CALL) if isinstance(message, HumanMessage) else None
    return call


def message_of_given(call: GivenCall, delivery: str) -> AIMessage:
    """The call as if the model had asked for it in its first message. What is made is `as_given`."""
    call_id = f"{delivery}.0.0"
    return AIMessage(
        "",
        id=f"{delivery}.0",
        tool_calls=[{"name": call["name"], "args": call.get("told", call["args"]), "id": call_id, "type": "tool_call"}],
        additional_kwargs={"errors": {}, "quotes": {call_id: call["quote"]} if call["quote"] else {}},
    )


def as_given(call: dict[str, Any], messages: Sequence[AnyMessage]) -> dict[str, Any]:
    """A call of a turn, by its messages, with the arguments that it is made with: those of the call that the turn was
    given, where it is that one."""
    given = _given(call, messages)
    return {**call, "args": given["args"]} if given is not None else call


def known_of_given(call: Mapping[str, Any], messages: Sequence[AnyMessage]) -> list[dict[str, Any]]:
    """What the ids of such a call stood for before, as `KnownId`s; of every other call nothing."""
    given = _given(call, messages)
    return given.get("known", []) if given is not None else []


def _given(call: Mapping[str, Any], messages: Sequence[AnyMessage]) -> GivenCall | None:
    return given_call(messages[0]) if call["id"] == f"{messages[0].id}.0.0" else None


def current_turn(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """The messages since the last person spoke, that person's included."""
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], HumanMessage):
            return messages[index:]
    return messages


def next_step(messages: Sequence[AnyMessage]) -> int:
    """How many times the model has spoken in the current turn."""
    return sum(isinstance(m, AIMessage) for m in current_turn(messages))


def calls_before(messages: Sequence[AnyMessage], call_id: str) -> int:
    """How many tool calls the model made in these messages before this one; those of our own tools do not count."""
    made = _made(messages)
    return next((number for number, c in enumerate(made) if c["id"] == call_id), len(made))


def calls_made(messages: Sequence[AnyMessage]) -> int:
    """How many tool calls the model made in these messages, those that were over the limit included; those of our own
    tools do not count."""
    return len(_made(messages))


def plans_before(messages: Sequence[AnyMessage], call_id: str) -> int:
    """How many plans these messages of a turn hold before this call: those that were carried out, and what is handed
    over in the same message before it."""
    carried_out = sum(isinstance(m, ToolMessage) and m.name == DELEGATE and m.status != "error" for m in messages)
    handed_over = [c["id"] for c in open_calls(messages) if c["name"] == DELEGATE]
    return carried_out + (handed_over.index(call_id) if call_id in handed_over else 0)


def _made(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    return [c for m in messages if isinstance(m, AIMessage) for c in m.tool_calls if c["name"] not in _OURS]


_GAVE_UP = "gave_up"
"""In what is kept with a message of ours: it says why the turn ends before its end."""


def gave_up(text: str, message_id: str) -> AIMessage:
    """Returns the message that ends a turn before its end, and says why."""
    return AIMessage(text, id=message_id, response_metadata={_GAVE_UP: True})


def spoken_in(messages: Sequence[AnyMessage], turn: Turn | None) -> tuple[Spoken, ...]:
    """What the model said in these messages of a turn."""
    agent = "" if turn is None else shown_name(turn)
    return tuple(
        Spoken(
            m.id or "",
            m.text,
            final=not m.tool_calls,
            agent=agent,
            gave_up=m.response_metadata.get(_GAVE_UP, False),
            sources=() if m.tool_calls else sources_of(m),
        )
        for m in messages
        if isinstance(m, AIMessage) and m.text.strip()
    )


def as_kept(spoken: Spoken) -> dict[str, Any]:
    """What was said as the state of a call keeps it; without what the version before does not know, where it is
    empty."""
    kept = {name: said for name, said in asdict(spoken).items() if said or name not in {"agent", "gave_up"}}
    return {name: said for name, said in kept.items() if name != "sources"}  # which only a turn's end has


def open_calls(messages: Sequence[AnyMessage]) -> list[dict[str, Any]]:
    """The calls of the model's last message that have no ToolMessage yet, in order."""
    answered = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            errors, quotes = (message.additional_kwargs.get(kept, {}) for kept in ("errors", "quotes"))
            return [
                {
                    "id": c["id"],
                    "name": c["name"],
                    "args": c["args"],
                    "error": errors.get(c["id"], ""),
                    "quote": quotes.get(c["id"], ""),
                }
                for c in message.tool_calls
                if c["id"] not in answered
            ]
        else:
            return []
    return []


def tool_message(
    call: Mapping[str, Any],
    text: str,
    *,
    owner: str | None = None,
    failed: bool = False,
    returned: Mapping[str, Any] | None = None,
) -> ToolMessage:
    """The one answer to a call. `owner`: the only person in whose turns the model may see it. `returned`: what the
    server returned, where a program takes it in as it is (`Caller.keeps_returned`)."""
    return ToolMessage(
        content=text,
        tool_call_id=call["id"],
        name=call["name"],
        status="error" if failed else "success",
        additional_kwargs={"owner": owner} if owner else {},
        artifact=returned,
    )


_LIKE_OURS = re.compile(
    r"\W*(?:rejected by|expired:|withdrawn by|superseded:|blocked by policy|limited:|outcome unknown|done, as"
    r"|skipped by|hitl_skipped|failed:|approved)",
    re.IGNORECASE,
)
"""How our own notes about a call begin."""


def as_returned(text: str) -> str:
    """What a tool returned, so that nobody takes it for a note of ours about what people decided."""
    return whole_as_returned(text) if _LIKE_OURS.match(text) else text


def whole_as_returned(text: str) -> str:
    """The same below words of ours: where they end is said, whatever the text looks like."""
    return f"The tool returned:\n{text}"


def answered(call: Mapping[str, Any], answer: Answered, fields: Sequence[FormField]) -> ToolMessage:
    """The requester's answer to a clarification with these fields."""
    told = {"values": answer.values} if answer.values else {"answer": answer.text}
    message = tool_message(call, json.dumps(told, ensure_ascii=False))
    message.additional_kwargs["typed"] = _typed(answer, fields)
    return message


def _typed(answer: Answered, fields: Sequence[FormField]) -> list[str]:
    """What the requester typed in their own words; choices, and what stood in an input already, are the model's."""
    empty = [
        f.name for f in fields if f.default is None and not f.options and f.type in (FieldType.TEXT, FieldType.CHOICE)
    ]
    given = [answer.text, *(answer.values.get(name) for name in empty)]
    return [text for text in given if isinstance(text, str) and text]


def typed_in(message: ToolMessage) -> list[str]:
    """What the requester typed as the answer to a clarification; empty for the results of tools."""
    typed: list[str] = message.additional_kwargs.get("typed", [])
    return typed


def refusal(answer: Approved | Rejected | Expired | Withdrawn | Superseded) -> str:
    """What the model is told when a call was not approved: the truth, so that it can pass it on."""
    match answer:
        case Rejected(by=by, reason=""):
            return f"{REJECTED}{by}. No reason was given."
        case Rejected(by=by, reason=reason):
            return f"{REJECTED}{by}. Reason: {reason}"
        case Expired():
            return "Expired: nobody decided in time. The call was not made."
        case Withdrawn(by=by):
            return f"Withdrawn by {by}, who asked for it. The call was not made."
        case Superseded(reason=reason):
            return superseded(reason)
        case Approved():
            raise ValueError("an approval is not a refusal")


def superseded(reason: str) -> str:
    """What the model is told of a call that was given up before it ran."""
    return f"Superseded: {reason or 'the turn was ended'}. The call was not made."
