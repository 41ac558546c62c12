"""What a tool may do to the world, as far as its annotations can be believed.

MCP's own defaults fill the gaps (specification 2025-11-25, `ToolAnnotations`): a tool that says nothing writes,
destroys, and reaches outside. They are hints of the server, so only a trusted server's count at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.model import Risk, Tool


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
    """Whether a trusted server says that this tool changes nothing."""
    return believed(tool).read_only


def risks(tool: Tool) -> tuple[Risk, ...]:
    """What the card warns of, mildest first; never empty."""
    facts = believed(tool)
    warned = [Risk.READS] if facts.read_only else [Risk.WRITES]
    if facts.destructive:
        warned.append(Risk.DESTROYS)
    if facts.open_world:
        warned.append(Risk.REACHES_OUTSIDE)
    return tuple(warned)
