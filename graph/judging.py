"""The judgement of a call with everything that has to be looked up for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from graph.ports import Ports
from graph.state import ToolCallState
from policies.approvers import Decider, covered, groups_to_look_up, under_grants
from policies.judging import judge
from policies.model import Ask, Call, Facts, Tool, Verdict, is_group
from policies.quoting import is_quoted, sentence_around
from policies.redaction import exceeds
from policies.rules import Policy

_LARGE = 2_000
"""Characters of arguments, and 50 for each text and name, up to which judging takes a millisecond or so."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A call, what the policy says of it, and on what grounds."""

    call: Call
    facts: Facts
    verdict: Verdict

    @property
    def quote(self) -> str:
        """The requester's words, with the rest of their sentence, where the model quotes what they wrote; else nothing.

        People see it on the card: whether a few words of a sentence ask for the call, only its whole says.
        """
        quote, said = self.call.quote, self.facts.said
        return sentence_around(quote, said) if is_quoted(quote, said) else ""


def call_of(state: ToolCallState, tool: Tool) -> Call:
    """The call as the policy knows it."""
    return Call(tool, state["call"]["args"], quote=state["call"].get("quote", ""))


async def judged(ports: Ports, state: ToolCallState, tool: Tool, now: float) -> Judged:
    """What the policy in force says of a call now, and what the requester always allows themselves.

    `now`: seconds since the epoch. Only what the rules about this tool depend on is looked up.
    """
    policy, call = ports.policy(), call_of(state, tool)
    facts = await facts_of(ports, policy, state, tool, now)
    # The rules that read a long argument, or many, take tens of milliseconds.
    is_large = exceeds(call.arguments, _LARGE)
    verdict: Verdict = await asyncio.to_thread(judge, policy, call, facts) if is_large else judge(policy, call, facts)
    if isinstance(verdict, Ask):
        verdict = await _under_grants(ports, call, facts, verdict, now)
    return Judged(call, facts, verdict)


async def facts_of(ports: Ports, policy: Policy, state: ToolCallState, tool: Tool, now: float) -> Facts:
    """What a call is judged on."""
    turn = state["turn"]
    references = {r for rule in policy.candidates(tool.server, tool.name) for r in rule.match.requester if is_group(r)}
    return Facts(
        mode=ports.mode,
        requester=turn["requester"],
        platform=turn["platform"],
        place=turn["channel"],
        at=datetime.fromtimestamp(now, UTC),
        groups=await ports.directory.groups_of(turn["requester"], references) if references else {},
        said=tuple(state.get("said", ())),
    )


async def _under_grants(ports: Ports, call: Call, facts: Facts, ask: Ask, now: float) -> Verdict:
    person = facts.requester
    grants = await ports.grants.grants_of(person)
    if covered(grants, call, person, now) is None:
        return ask
    references = groups_to_look_up(ask)
    in_channel = "channel" in ask.approvers and await ports.directory.in_channel(person, facts.place)
    decider = Decider(
        person,
        requesters=(person,),
        groups=await ports.directory.groups_of(person, references) if references else {},
        in_channel=in_channel,
    )
    return under_grants(ask, call, grants, decider, now)
