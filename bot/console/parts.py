"""The parts that a running installation is made of, as operators see them at any replica: tool servers, replicas and
people's accounts."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from bot.audit.log import AuditLog
from bot.console.access import OperatorAccess
from bot.domain import ClickResult, Person, Settled, Unknown
from bot.records import connections, threads
from bot.records.connections import AccountSummary
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from translations import gettext as _

MOST_ACCOUNTS = 100
"""Of one answer."""
Facts = Mapping[str, Any]
Told = Callable[[], Sequence[tuple[Facts, Facts]]]
"""Returns the processes that are there, and how each says it is (`facts_of`)."""


class RetriesToolServers(Protocol):
    """Connects to tool servers anew, in all processes."""

    def retry(self, name: str) -> bool:
        """Returns at once; false: there is no server of this name."""
        ...


@dataclass(frozen=True, slots=True)
class ToolServerHere:
    """How a tool server is, as one process sees it."""

    name: str
    state: str
    """`starting`, `up`, `down`, `misconfigured`, `closed` or `unsupported`."""
    tools: int
    """How many of its tools can be called now."""
    reason: str
    """Ends a sentence that begins with the server's name; empty while it is up."""
    withheld: Sequence[str]
    """Sentences: which of its tools are not offered, and why."""
    replica: Facts
    """The process, as `/health-check` names it."""


@dataclass(frozen=True, slots=True)
class AccountOfSomebody:
    """An account that a person has connected."""

    account: AccountSummary
    person: str
    """Name of its owner."""


@dataclass(frozen=True, slots=True)
class AccountPage:
    """Accounts, those that were connected last first."""

    accounts: Sequence[AccountOfSomebody]
    following: str
    """After what the next page begins; empty: this is the last one."""


def facts_of(servers: Sequence[Facts], *, is_stopped: bool) -> Facts:
    """How a process says it is: JSON.

    Args:
        servers: `server`, `state`, `tools`, `reason` and `withheld` of each.
        is_stopped: whether an operator has stopped everything, as far as it knows.
    """
    return {"tool_servers": list(servers), "stopped": is_stopped}


def only_process(version: str, started_at: float, policy: str) -> Facts:
    """This process, where there is no other, as `/health-check` names several.

    Args:
        version: of the program.
        policy: version of the policy in force.
    """
    return {
        "id": "",
        "host": socket.gethostname(),
        "process": os.getpid(),
        "here": True,
        "version": version,
        "started": datetime.fromtimestamp(started_at, UTC).isoformat(timespec="seconds"),
        "seen_seconds_ago": 0.0,
        "policy": policy,
        "policy_differs": False,
    }


class InstallationParts:
    """Reads them, for operators, and has tool servers tried again.

    Args:
        told: the processes that are there.
        tool_servers: connects to tool servers.
    """

    def __init__(
        self,
        database: Database,
        access: OperatorAccess,
        audit: AuditLog,
        *,
        told: Told,
        tool_servers: RetriesToolServers,
    ) -> None:
        self._database = database
        self._access = access
        self._audit = audit
        self._told = told
        self._tool_servers = tool_servers

    async def tool_servers(self, operator: Person) -> Sequence[ToolServerHere] | None:
        """How each tool server is at each replica; `None`: this is no operator."""
        if not await self._access.includes(operator):
            return None
        return [
            ToolServerHere(
                name=str(each.get("server", "")),
                state=str(each.get("state", "")),
                tools=int(each.get("tools", 0)),
                reason=str(each.get("reason", "")),
                withheld=[str(sentence) for sentence in each.get("withheld", ())],
                replica=replica,
            )
            for replica, facts in self._told()
            for each in facts.get("tool_servers", ())
        ]

    async def replicas(self, operator: Person) -> Sequence[tuple[Facts, bool | None]] | None:
        """The processes that are there, and whether each has stopped everything (`None`: an older version does not
        say); `None`: this is no operator."""
        if not await self._access.includes(operator):
            return None
        return [(replica, facts.get("stopped")) for replica, facts in self._told()]

    async def retry_tool_server(self, operator: Person, name: str) -> ClickResult | None:
        """Connect to a tool server anew, at all replicas; `None`: this is no operator."""
        if not await self._access.includes(operator):
            return None
        if not self._tool_servers.retry(name):
            return Unknown(_("There’s no such tool server."))
        async with self._database.writing_urgently(UNLOCKED) as tx:
            await self._audit.acted(tx, operator, "had a tool server connected again", of=name)
        return Settled(_("Connecting again."))

    async def accounts(self, operator: Person, after: str = "", limit: int = MOST_ACCOUNTS) -> AccountPage | None:
        """People's accounts, by their ids; `None`: this is no operator.

        Args:
            after: as `AccountPage.following` of the page before.
        """
        if not await self._access.looks(operator, "everybody's accounts"):
            return None
        async with self._database.reading() as tx:
            found = await connections.summaries(tx, after, limit + 1)
            names = await threads.names(tx, {each.person_id for each in found})
        shown = found[:limit]
        following = shown[-1].connection_id if len(found) > limit else ""
        return AccountPage([AccountOfSomebody(each, names[each.person_id]) for each in shown], following)
