"""What a call may do to the world, as far as its tool's annotations and names, and its command, can be believed.

MCP's own defaults fill the gaps (specification 2025-11-25, `ToolAnnotations`): a tool that says nothing writes,
destroys, and reaches outside. They are hints of the server, so only a trusted server's count at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from policies.commands import Effect, argument_of_command, command_of, says_that_it_reads
from policies.model import Allow, Ask, Call, Deny, Risk, Tool


@dataclass(frozen=True, slots=True)
class Believed:
    """A tool's annotations without gaps."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


WORST = Believed(read_only=False, destructive=True, idempotent=False, open_world=True)
"""What is believed of a tool of which nothing is known."""


def believed(tool: Tool) -> Believed:
    """A tool's annotations where the operator trusts them, else the worst.

    A tool that claims both to read only and to destroy is believed the worse of the two.
    """
    if not tool.annotations_trusted:
        return WORST
    said = tool.annotations
    read_only = said.read_only is True and said.destructive is not True
    return Believed(
        read_only=read_only,
        destructive=not read_only and said.destructive is not False,
        idempotent=read_only or said.idempotent is True,
        open_world=said.open_world is not False,
    )


def known_to_read(tool: Tool) -> bool:
    """Whether the operator says that this tool changes nothing, or a trusted server does: by its annotation or, where
    it says neither that nor the contrary, by the first word of the tool's name. A command-shaped tool's name says
    nothing."""
    if tool.reads_only or believed(tool).read_only:
        return True
    said = tool.annotations
    silent = said.read_only is None and said.destructive is not True
    named = silent and argument_of_command(tool.input_schema) is None and says_that_it_reads(tool.name)
    return tool.annotations_trusted and named


def call_known_to_read(call: Call) -> bool:
    """Whether this call changes nothing: its tool is known to read, or its command is.

    A command that writes is a write even where its tool is said to read: only a rule says otherwise.
    """
    command = command_of(call.tool.input_schema, call.arguments)
    if command is None or command.effect is Effect.UNCLEAR:
        return known_to_read(call.tool)
    return command.effect is Effect.READS


def risks(tool: Tool) -> tuple[Risk, ...]:
    """What a tool may do, mildest first; never empty."""
    facts = believed(tool)
    return _warnings(known_to_read(tool), facts.destructive, facts.open_world)


def risks_of(call: Call, verdict: Allow | Ask | Deny) -> tuple[Risk, ...]:
    """What the card of a call warns of, mildest first; never empty. `verdict` may say by rule that it only reads."""
    facts = believed(call.tool)
    by_rule = not isinstance(verdict, Deny) and verdict.reads
    command = command_of(call.tool.input_schema, call.arguments)
    destroys = facts.destructive or (command is not None and command.destroys)
    return _warnings(by_rule or call_known_to_read(call), destroys, facts.open_world)


def warned_of(shown: Iterable[Risk], may: Iterable[Risk]) -> bool:
    """Whether a card that showed the risks `shown` warned of all that a call may do. That it reads needs no warning.

    A tool's annotations are in no digest, so that what is approved may become worse without being another call.
    """
    return {*shown, Risk.READS}.issuperset(may)


def _warnings(reads: bool, destroys: bool, reaches_outside: bool) -> tuple[Risk, ...]:  # noqa: FBT001 - three facts
    warned = [Risk.READS] if reads else [Risk.WRITES]
    if destroys and not reads:
        warned.append(Risk.DESTROYS)
    if reaches_outside:
        warned.append(Risk.REACHES_OUTSIDE)
    return tuple(warned)
