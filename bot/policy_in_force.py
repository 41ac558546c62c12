"""The policy that holds now, and how another one takes its place without a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from policies.judging import ONLY_ITS_WORD, Policy, PolicyError
from policies.policy_file import load_policy

log = structlog.get_logger(__name__)


def policy_doubts(policy: Policy, servers: Collection[str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """What is no mistake in a policy, and perhaps not meant: the event of the log, and its facts."""
    for rule in policy.rules:
        server, tool, facts = rule.match.server, rule.match.tool or "", {"rule": rule.name, "at": rule.source}
        if server is not None and server not in servers:
            yield "policy_rule_fits_no_server", {**facts, "server": server}
        elif server is None and any(tool.startswith(f"{name}__") for name in servers):
            # Tools are called so in explanations and logs, but not by rules.
            yield "policy_rule_fits_no_tool", {**facts, "tool": tool}
        if rule.believes_a_client:
            yield "policy_rule_believes_a_client", {**facts, "reason": ONLY_ITS_WORD}


class PolicyInForce:
    """The rules of one file, as they were when it could last be read. Raises `PolicyError` when it never could.

    Args:
        servers: the names of the servers in `mcp.json`. A rule about another one is warned of, for it may be misspelt
            and fits nothing; it is no mistake, since one file may serve several installations.
    """

    def __init__(self, path: Path, servers: Collection[str]) -> None:
        self._path = path
        self._servers = servers
        self._policy = load_policy(path)
        self._one_at_a_time = asyncio.Lock()
        self._hear: list[Callable[[], None]] = []
        self._warn(self._policy)

    def __call__(self) -> Policy:
        """The policy to judge by. Calls that wait are judged again by the one that holds when they are made."""
        return self._policy

    def when_put_in_force(self, tell: Callable[[], None]) -> None:
        """Have somebody told whenever other rules hold, in this process."""
        self._hear.append(tell)

    async def reload(self) -> bool:
        """Read the file again; whether its rules hold now. A file that cannot be used changes nothing and is logged
        with the line and the reason."""
        async with self._one_at_a_time:  # what was read last holds
            return self._put_in_force(await asyncio.to_thread(_read, self._path))

    def _put_in_force(self, read: Policy | PolicyError) -> bool:
        before = self._policy.version
        if isinstance(read, PolicyError):
            log.error("policy_refused", file=read.source, line=read.line, reason=read.reason, still_in_force=before)
            return False
        self._policy = read
        self._warn(read)
        log.info("policy_reloaded", file=read.source, rules=len(read.rules), version=read.version, before=before)
        for tell in self._hear:
            tell()
        return True

    def _warn(self, policy: Policy) -> None:
        for event, facts in policy_doubts(policy, self._servers):
            log.warning(event, **facts)

    @property
    def doubts(self) -> list[tuple[str, Mapping[str, str]]]:
        """What is doubtful about the rules that hold: the event of the log, and its facts."""
        return list(policy_doubts(self._policy, self._servers))

    @asynccontextmanager
    async def reloading_whenever(
        self, wanted: asyncio.Event, also: Callable[[], None] = lambda: None
    ) -> AsyncIterator[None]:
        """While the block runs, reload each time `wanted` is set, and call `also`: others may have to do so, too."""
        task = asyncio.create_task(self._reload_whenever(wanted, also), name="policy reloads")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _reload_whenever(self, wanted: asyncio.Event, also: Callable[[], None]) -> None:
        while True:
            await wanted.wait()
            wanted.clear()
            also()
            try:
                await self.reload()
            except Exception:
                # A defect of the reader. Without this, nothing would ever be reloaded again, and nobody told.
                log.exception("policy_not_reloaded", still_in_force=self._policy.version)


def _read(path: Path) -> Policy | PolicyError:
    try:
        return load_policy(path)
    except PolicyError as error:
        return error
