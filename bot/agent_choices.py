"""Which agent works on a message: the one its author names in it or has picked, else the one that the place is given
to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.domain import Clock
from bot.records import agent_choices
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from graph.agents import DEFAULT, AgentConfig, Agents
from translations import NAMES, in_language
from translations import gettext as _

if TYPE_CHECKING:
    from graph.state import Turn

AGENT = "agent"
"""In the body of a message: the agent that its author has picked for it, beside its text."""


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """An agent among which somebody can pick."""

    name: str
    description: str
    """May be empty for the default one."""
    is_current: bool
    """Whether it is the one that would work on what they write there now."""


class AgentChoices:
    """Picks of agents, and what follows from them."""

    def __init__(self, database: Database, agents: Agents, clock: Clock) -> None:
        self._database = database
        self._agents = agents
        self._clock = clock
        self._words = _words_for(agents)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all agents, the default one's first."""
        return self._agents.names

    async def listed(self, person_id: str, channel: str) -> tuple[AgentChoice, ...]:
        """All agents, the default one first.

        Args:
            channel: `ConversationReference.channel`; empty in a direct chat.
        """
        current = await self._here(person_id, channel)
        return tuple(AgentChoice(each.name, each.description, each == current) for each in self._agents.all)

    async def pick(self, person_id: str, channel: str, name: str) -> AgentConfig | None:
        """Have an agent work on what somebody writes in a channel, until they pick another one; the default one is
        picked by picking none. Returns it; `None`: there is none of that name."""
        agent = self._agents.named(name.strip().lower())
        if agent is None:
            return None
        async with self._database.writing_urgently(UNLOCKED) as tx:  # a person clicks one after the other
            if agent.name == DEFAULT and self._agents.for_place(channel, person_id).name == DEFAULT:
                await agent_choices.forget(tx, person_id, channel)
            else:
                await agent_choices.pick(tx, person_id, channel, agent.name, self._clock())
        return agent

    async def command(self, person_id: str, channel: str, name: str) -> str:
        """Do what somebody says with a command, and return what they are told.

        Args:
            channel: as for `listed`.
            name: which agent they pick; empty: they want to see which there are.
        """
        if not name:
            return in_a_list(await self.listed(person_id, channel))
        agent = await self.pick(person_id, channel, name)
        return is_unknown(name, self.names) if agent is None else is_picked(agent)

    async def for_message(self, body: Mapping[str, object], channel: str) -> str:
        """Name of the agent that works on a message.

        Args:
            body: of its delivery.
            channel: as for `listed`.
        """
        if not self._agents.specialists:
            return DEFAULT
        if named := str(body.get(AGENT, "")):
            return named  # also where it was taken out of the file since: another one may be allowed more
        return (self._said(str(body["text"])) or await self._here(str(body["person"]), channel)).name

    def _said(self, text: str) -> AgentConfig | None:
        """The agent that somebody names; lines that they quote are others' words."""
        own = (line for line in text.partition(">>>")[0].splitlines() if not line.lstrip().startswith(">"))
        found = self._words.search("\n".join(own))
        return self._agents.named(next(filter(None, found.groups())).lower()) if found else None

    def timeout_of(self, turn: Turn) -> float | None:
        """Seconds that one run of a turn may take; `None`: no limit of its agent's own."""
        agent = self._agents.of(turn)
        return None if agent is None else agent.timeout

    async def _here(self, person_id: str, channel: str) -> AgentConfig:
        given = self._agents.for_place(channel, person_id)
        if not self._agents.specialists:
            return given
        async with self._database.reading() as tx:
            picked = await agent_choices.picked(tx, person_id, channel)
        return self._agents.named(picked or "") or given  # what was picked may be gone from the file


def in_a_list(choices: tuple[AgentChoice, ...]) -> str:
    """Returns the agents as lines for people, with the one that would answer them now marked."""
    return "\n".join(map(_line, choices))


def _line(choice: AgentChoice) -> str:
    about = choice.description or _("Everything else")
    sign = "•" if not choice.is_current else "→"
    return _("{sign} {name}: {description}").format(sign=sign, name=choice.name, description=about)


def is_unknown(name: str, names: tuple[str, ...]) -> str:
    """Returns what somebody is told who picks an agent that there is not."""
    return _("There is no agent “{name}”. There are: {names}.").format(name=name, names=", ".join(names))


def is_picked(agent: AgentConfig) -> str:
    """Returns what somebody is told who has picked an agent."""
    if agent.name == DEFAULT:
        return _("The default agent answers you here from now on.")
    return _("The {name} agent answers you here from now on.").format(name=agent.name)


def _words_for(agents: Agents) -> re.Pattern[str]:
    """Words by which a message says whose it is, in each language: "as the finance agent"."""
    # Longest first, or `tax` would be found in "as the tax-law agent" where its end is another word.
    names = "|".join(re.escape(agent.name) for agent in sorted(agents.all, key=lambda each: -len(each.name)))
    said = dict.fromkeys(_in(language) for language in NAMES)
    each = (re.escape(words).replace(re.escape(_HOLE), f"({names})").replace(r"\ ", r"\s+") for words in said)
    return re.compile("|".join(rf"(?<!\w){words}(?!\w)" for words in each), re.IGNORECASE)


_HOLE = "\ue000"
"""Stands where the name does: a character of no script."""


def _in(language: str) -> str:
    with in_language(language):
        return _("as the {name} agent").format(name=_HOLE)
