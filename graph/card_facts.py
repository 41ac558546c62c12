"""What is read for the card of a call: what its ids stand for, and what it would change.

The operator names the tools for it (`lookupTools`, `previewTools` in `mcp.json`), and they only read. They are called
as the requester would call them, over their own connection; nobody is asked to sign in for that. A card never waits for
it longer than `CARD_SECONDS`, and what cannot be read is left out.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from graph.json_values import not_kept, storable
from graph.judging import judged
from graph.known_ids import documents_in, ids_in, known_id, title_and_time
from graph.ports import Caller, Failed, Looked, Ports, Ready, Succeeded
from graph.presentation import LONGEST_SAID, AskedAgain, CallPresentation, KnownId, Preview
from graph.state import RunContext, ToolCallState
from policies.model import Deny, Tool, canonical_json, tool_name_for_model
from policies.trust import believed
from translations import gettext as _

log = structlog.get_logger(__name__)
CARD_SECONDS = 2.0
"""Seconds that a card waits for all that is read for it together. Our own choice."""
CHECK_SECONDS = 10.0
"""Seconds that a call which was approved waits to learn whether what its preview showed is still so. Our own choice."""
MOST_LOOKUPS = 3
"""Ids of one call that are looked up. Our own choice."""
LARGEST_SIDE = 8_000
"""Characters of JSON that are kept of what is there before, and of what is there after: both are in the state of the
graph and in every card. Our own choice."""
LARGEST_ANSWER = 200_000
"""Characters of an answer that is read as JSON; a longer one says nothing. Our own choice."""
_SMALL = 20_000
"""Characters of an answer that are read in the event loop."""


def may_read(tool: Tool) -> bool:
    """Returns whether a tool may be called for a card: the operator says that it only reads (`readOnlyTools`), or its
    server does, and is trusted."""
    return tool.reads_only or believed(tool).read_only


async def with_facts(
    ports: Ports, state: ToolCallState, tool: Tool, presentation: CallPresentation, context: RunContext
) -> CallPresentation:
    """Returns the presentation of a call that is about to be asked about with what its ids stand for, and what it would
    change."""
    known, preview = await asyncio.gather(
        _known_ids(ports, state, tool, context), _preview(ports, state, tool, context, CARD_SECONDS)
    )
    facts: dict[str, Any] = {"known_ids": known, "preview": preview, "again": state.get("again", "")}
    # What would stand in the title was not given: the file says what the call is about.
    if not state["call"]["args"].get(presentation.main) and any(each.argument == tool.file_argument for each in known):
        facts["main"] = tool.file_argument
    return presentation.model_copy(update=facts) if any(facts.values()) else presentation


async def changed_since(ports: Ports, state: ToolCallState, tool: Tool, context: RunContext) -> AskedAgain:
    """Returns why an approved call has to be asked about again: what its preview showed as before is another now, or
    that cannot be found out. Empty: it need not be, or there was no preview."""
    shown = shown_preview(state)
    if not shown.get("digest"):
        return ""
    now = await _preview(ports, state, tool, context, CHECK_SECONDS)
    if now is None or now.problem in {"unavailable", "unreadable"}:
        return "not found out"
    return "" if now.digest == shown["digest"] else "changed"


def shown_preview(state: ToolCallState) -> Mapping[str, Any]:
    """Returns the preview on the card of a call, as JSON; empty where it had none, or was not asked about."""
    asked = state.get("asked") or {}
    return asked.get("presentation", {}).get("preview") or {}


# ------------------------------------------------------------------------------------------------ ids


async def _known_ids(ports: Ports, state: ToolCallState, tool: Tool, context: RunContext) -> tuple[KnownId, ...]:
    wanted = ids_in(state["call"]["args"], tool.input_schema)
    read = [*map(KnownId.model_validate, state.get("known_before", [])), *await _of_the_turn(ports, state)]
    known = {each.argument: each for each in read if wanted.get(each.argument) == each.value}
    # Also of what the turn has read: an object with that id may stand in words that a stranger wrote.
    named = [name for name in tool.lookups if wanted_id(state, name)][:MOST_LOOKUPS]
    looked_up = await asyncio.gather(*(_looked_up(ports, state, tool, name, context) for name in named))
    looked_up.append(await _file(ports, state, tool))
    found = {**known, **{each.argument: each for each in looked_up if each is not None}}
    return tuple(found[name] for name in state["call"]["args"] if name in found)


async def _file(ports: Ports, state: ToolCallState, tool: Tool) -> KnownId | None:
    """Which file of the conversation the call hands over."""
    value = state["call"]["args"].get(tool.file_argument) if tool.file_argument else None
    if not isinstance(value, str):
        return None
    content = await ports.files.of_thread(state["turn"]["thread_id"], value)
    if content is None:
        return None
    about = _("{name} ({size} bytes)").format(name=content.name, size=f"{content.size:,}")
    return known_id(tool.file_argument, value, about, "", source=_("this conversation"), owner=None, looked_up=True)


def wanted_id(state: ToolCallState, argument: str) -> str:
    """Returns the id that the call has as this argument, as text; empty where it has none."""
    value = state["call"]["args"].get(argument)
    return next(iter(ids_in({"id": value}).values()), "")


async def _of_the_turn(ports: Ports, state: ToolCallState) -> list[KnownId]:
    found = []
    for kept in state.get("known_ids", []):
        known = KnownId.model_validate(kept)
        source = await ports.tools.find(known.source)
        if source is not None:
            found.append(known.model_copy(update={"source": in_words(source)}))
    return found


def in_words(tool: Tool) -> str:
    """Returns a tool under the names that the operator knows, as the source of what it said."""
    return f"{tool.server} › {tool.name}"


async def _looked_up(
    ports: Ports, state: ToolCallState, tool: Tool, argument: str, context: RunContext
) -> KnownId | None:
    lookup = tool.lookups[argument]
    reading = await ports.tools.find(tool_name_for_model(tool.server, lookup.tool))
    if reading is None:
        return None
    arguments = {lookup.argument: state["call"]["args"][argument]} | _needed_besides(reading, lookup.argument, state)
    read = await _read(ports, state, reading, arguments, context, CARD_SECONDS)
    if not isinstance(read, Succeeded):
        return None
    about = title_and_time(await _object_in(read))
    if about is None:
        return None
    return known_id(
        argument,
        wanted_id(state, argument),
        *about,
        source=in_words(reading),
        owner=read.owner,
        looked_up=True,
    )


def _needed_besides(reading: Tool, takes_id: str, state: ToolCallState) -> dict[str, Any]:
    """The other arguments that the look-up cannot do without, where the call has some of the same names."""
    required = reading.input_schema.get("required")
    names = required if isinstance(required, Sequence) and not isinstance(required, str) else ()
    given = state["call"]["args"]
    return {name: given[name] for name in names if isinstance(name, str) and name != takes_id and name in given}


# ------------------------------------------------------------------------------------------------ previews


async def _preview(
    ports: Ports, state: ToolCallState, tool: Tool, context: RunContext, seconds: float
) -> Preview | None:
    """What the call would change; `None`: no tool is named that could say so."""
    if not tool.preview_tool:
        return None
    reading = await ports.tools.find(tool_name_for_model(tool.server, tool.preview_tool))
    if reading is None:
        return Preview(source=f"{tool.server} › {tool.preview_tool}", problem="unavailable")
    source = in_words(reading)
    match await _read(ports, state, reading, state["call"]["args"], context, seconds):
        case Succeeded() as read:
            given = await _object_in(read)
            if len(read.text) > _SMALL:
                return await asyncio.to_thread(preview_in, given, source, read.owner)
            return preview_in(given, source, read.owner)
        case Failed(text=text, owner=owner, returned=returned) if returned is not None:
            return Preview(source=source, problem="refused", said=text[:LONGEST_SAID], owner=owner)
        case _:
            return Preview(source=source, problem="unavailable")


def preview_in(given: Any, source: str, owner: str | None) -> Preview:
    """Returns the preview that a tool's answer is: `{"before": {…}, "after": {…}}` or one of these sides, or any other
    object, which is how things are before. An empty one shows nothing, and what is no object cannot be read."""
    if not isinstance(given, Mapping):
        return Preview(source=source, problem="unreadable", owner=owner)
    before, after = _sides(given)
    if not before and not after:
        return Preview(source=source, problem="nothing", owner=owner)
    # What is too long on one side is not shown on the other: it would read as if there were nothing of it here.
    left_out = _too_much(before) | _too_much(after)
    return Preview(
        before={name: value for name, value in before.items() if name not in left_out},
        after={name: value for name, value in after.items() if name not in left_out},
        hidden=len(left_out),
        digest=hashlib.sha256(canonical_json(before).encode("utf-8", "surrogatepass")).hexdigest(),
        source=source,
        owner=owner,
    )


def _sides(given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Before and after. An object whose own entries are called so, and are no objects, is how things are before."""
    if given.keys() <= {"before", "after"} and all(isinstance(each, Mapping | None) for each in given.values()):
        return given.get("before") or {}, given.get("after") or {}
    return given, {}


def _too_much(side: Mapping[str, Any]) -> set[str]:
    """The names of the entries for which there is no space."""
    left_out = set()
    space_left = LARGEST_SIDE
    for name, value in side.items():
        size = len(name) + len(json.dumps(value, ensure_ascii=False))
        if size <= space_left:
            space_left -= size
        else:
            left_out.add(name)
    return left_out


async def _object_in(read: Succeeded) -> Any:
    """The object that a result is: its structured content, or the only one in its text; `None`: it is none."""
    text = read.whole or read.text
    if len(text) > LARGEST_ANSWER:
        return None
    return await asyncio.to_thread(_only_object, read) if len(text) > _SMALL else _only_object(read)


def _only_object(read: Succeeded) -> Any:
    structured = (read.returned or {}).get("structuredContent")
    documents = [structured] if isinstance(structured, Mapping) else documents_in(read.whole or read.text)
    return storable(documents[0]) if len(documents) == 1 and not not_kept(documents[0]) else None


# ------------------------------------------------------------------------------------------------ reading


async def _read(  # noqa: PLR0917 - each is one fact of the call
    ports: Ports,
    state: ToolCallState,
    reading: Tool,
    arguments: Mapping[str, Any],
    context: RunContext,
    seconds: float,
) -> Succeeded | Failed | None:
    """What a tool that only reads says; `None`: nothing, in time. It is no call of the model's: the audit log knows it,
    and the ledger does not."""
    if not may_read(reading):
        log.warning("card_not_read", server=reading.server, tool=reading.name, reason="it may do more than read")
        return None
    call = state["call"]
    reading_id = f"{call['id']}:{reading.name}"
    given = dict(arguments)
    own: ToolCallState = {**state, "call": {**call, "id": reading_id, "name": reading.full_name, "args": given}}
    try:
        judgement = await judged(ports, own, reading, context.clock(), ports.policy())
        if isinstance(judgement.verdict, Deny):
            log.info("card_not_read", server=reading.server, tool=reading.name, reason="a rule denies it")
            return None
        async with asyncio.timeout(seconds):
            read = await _called(ports, own, reading, given)
        if read is not None:
            await ports.audit.read_for_card(_looked(own, reading, read))
    except TimeoutError:
        log.warning("card_not_read", server=reading.server, tool=reading.name, reason=f"no answer in {seconds:g} s")
        return None
    except Exception as fault:
        if ports.is_outage(fault):
            raise
        log.warning("card_not_read", server=reading.server, tool=reading.name, exc_info=fault)
        return None
    finally:
        await ports.tools.give_up(reading_id)
    return read


async def _called(
    ports: Ports, own: ToolCallState, reading: Tool, arguments: dict[str, Any]
) -> Succeeded | Failed | None:
    turn = own["turn"]
    call_id = own["call"]["id"]
    caller = Caller(turn["requester"], turn["thread_id"], call_id, keeps_returned=True, channel=turn["channel"])
    async with ports.tools.prepared(reading, arguments, caller) as prepared:
        outcome = await prepared.send(_not_shown) if isinstance(prepared, Ready) else prepared
    if isinstance(outcome, Succeeded | Failed):
        return outcome
    log.info("card_not_read", server=reading.server, tool=reading.name, reason=type(outcome).__name__)
    return None


def _looked(own: ToolCallState, reading: Tool, read: Succeeded | Failed) -> Looked:
    turn, call = own["turn"], own["call"]
    return Looked(
        call_id=call["id"],
        thread_id=turn["thread_id"],
        requester=turn["requester"],
        tool=reading,
        arguments=call["args"],
        output=read.text,
        failed=isinstance(read, Failed),
    )


def _not_shown(message: str, fraction: float | None) -> None:
    """How far it is, nobody is told."""
