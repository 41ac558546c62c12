"""The rules for operators: how often each decided and what came of it, what would happen if, what another file would
have done, and which rules history speaks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, Literal, TypeVar

import structlog

from bot.approvals.directory import PeopleDirectory
from bot.console.access import OperatorAccess
from bot.dates import day_of
from bot.domain import Clock, Person
from bot.records import audit, rule_counts
from bot.records.database import Database, is_outage
from bot.records.rule_counts import LogEntry, RuleSum, ToolSum
from bot.rules.counting import RuleCounts, ends_among, read_outcomes
from bot.rules.outcomes import MOST_UNAPPROVED, LoggedEnd, median_of
from bot.rules.past import past_calls
from bot.rules.replay import Replay
from graph.agents import AgentConfig, Agents
from policies.approvers import may_be_one_human
from policies.judging import Explanation, Policy, PolicyError, describe_approvers, explain
from policies.model import PERSON_ID_FORMS, PLATFORMS, Ask, Call, Facts, Mode, Tool, is_group, normal
from policies.patterns import as_sent
from policies.policy_file import parse_policy
from policies.suggestions import (
    LEAST_APPROVED,
    LEAST_REJECTED,
    HistoricCall,
    Suggestion,
    suggestions,
)
from translations import gettext as _

log = structlog.get_logger(__name__)
RECENT_DAYS = 30
"""Days that are counted unless others are asked for, today among them."""
MOST_DAYS = 365
MOST_REPLAYED = 20_000
"""Entries of the audit log that one replay reads, the newest of its time: some ten seconds of CPU, beside everything
else."""
MOST_PAST = 10_000
"""Entries that suggestions are made from, the newest; calls that people did not approve as they were are looked at
beyond them."""
MADE_ANEW = 600.0
"""Seconds for which suggestions are shown without being made anew."""
_READ_AT_ONCE = 200
TRYING_SECONDS = 120.0
"""How long a policy that somebody sends may take to be read, and to judge calls. A replay takes half a minute; regular
expressions of a hundred thousand signs take hours."""
AT_A_TIME_SECONDS = 0.5
"""So long calls are judged by rules that somebody sends, until it is looked whether they are still waited for."""
MOST_LOOKED_UP = 100
"""People and groups that only a policy that somebody sends names as requesters: each costs a platform a request."""
_CHANGED = "the changed policy"
_Result = TypeVar("_Result")


class RuleQuestionError(Exception):
    """What is asked cannot be answered.

    `what` names the part that is wrong, as the API calls it, and `reason` says what is.
    """

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(reason)
        self.what = what
        self.reason = reason


class ReplayBusyError(Exception):
    """This process is judging calls by a policy that somebody has sent already."""


class NobodyWaitsError(Exception):
    """The client that sent a policy has gone away."""


@dataclass(frozen=True, slots=True)
class Decided:
    """How many calls a rule, or what else decided, has decided how."""

    allowed: int = 0
    asked: int = 0
    denied: int = 0


@dataclass(frozen=True, slots=True)
class RuleInForce:
    """A rule, and how often it decided."""

    name: str
    source: str
    decides: Literal["allow", "ask", "deny"]
    match: Sequence[tuple[str, str]]
    """Field → what it wants, in words."""
    approvers: str
    """Who is asked, in words; empty: nobody."""
    reason: str
    """Of a deny, for people."""
    reads: bool
    decided: Decided


@dataclass(frozen=True, slots=True)
class DecidedBesides:
    """What decided, and is no rule in force."""

    decided_by: Literal["none", "mode", "standing", "former"]
    """No rule fitted; the mode denied; a standing approval allowed; a rule that there is no more."""
    rule: str
    """Of a former one."""
    decided: Decided


@dataclass(frozen=True, slots=True)
class RulesInForce:
    """The policy, and how often each rule decided."""

    source: str
    version: str
    mode: Mode
    text: str
    since: str
    is_counted: bool
    """Whether all of the audit log is counted."""
    rules: Sequence[RuleInForce]
    besides: Sequence[DecidedBesides]


@dataclass(frozen=True, slots=True)
class RuleQuestion:
    """What would happen if."""

    tool: str
    """`{server}__{tool}`."""
    person: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    platform: str | None = None
    agent: str | None = None
    """Name; `None`: the one that was given that place, or else the default one."""
    client: str = ""
    at: float | None = None
    mode: Mode | None = None
    quote: str = ""
    groups: Mapping[str, bool] = field(default_factory=dict)
    """Of groups that are not to be looked up."""
    policy: str | None = None
    """Text of other rules than those in force."""


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """What would."""

    explanation: Explanation
    facts: Facts
    version: str
    knows_tool: bool
    """Otherwise it was judged without annotations and schema."""


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a changed file would have decided."""

    version: str
    since: float
    until: float
    is_cut: bool
    """Whether there were more entries than are read: the older ones were not."""
    replay: Replay


@dataclass(frozen=True, slots=True)
class FatigueLine:
    """What became of the calls of one tool that people were asked about because of one rule."""

    decided_by: str
    rule: str
    server: str
    tool: str
    of: Mapping[str, int]
    """Outcome → how many."""
    median_wait: float | None
    """Seconds until people had decided, right to a tenth; `None`: they never did."""

    @property
    def asked(self) -> int:
        """How many there were."""
        return sum(times for outcome, times in self.of.items() if outcome not in ("allowed", "denied"))

    @property
    def candidate(self) -> Literal["allow", "deny", ""]:
        """For what it is one, as people always decide in the same way."""
        approved, rejected = self.of["unchanged"], self.of["rejected"]
        others = self.of["edited"] + self.of["contested"]
        if approved >= LEAST_APPROVED and not rejected + others:
            return "allow"
        return "deny" if rejected >= LEAST_REJECTED and not approved + others else ""


@dataclass(frozen=True, slots=True)
class Fatigue:
    """What people are asked about, the most first."""

    since: str
    is_counted: bool
    lines: Sequence[FatigueLine]
    is_cut: bool
    """Whether there are more lines."""


@dataclass(frozen=True, slots=True)
class SuggestedRules:
    """What history speaks for."""

    state: Literal["ready", "computing", "counting"]
    """`counting`: the audit log is still being counted, and nothing can be said before; `computing`: what is here is
    from before, or nothing yet."""
    computed_at: float | None
    version: str
    """Of the policy that they are made for; empty: there are none yet."""
    calls: int
    since: str
    """When the first of these calls was; empty: there are none."""
    suggestions: Sequence[Suggestion]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Entries of the audit log, by number."""

    after: int
    last: int
    is_cut: bool
    """Whether there are older ones in the time that was asked about."""


_NEWEST = 2**62
"""Greater than the number of any entry."""
_NOTHING_YET = SuggestedRules("computing", None, "", 0, "", ())


class RuleReports:
    """Says it, to operators. `running` while the process does.

    Args:
        find_tool: the tool that the model calls so; `None`: there is none, or it is out of reach.
        list_tools: all that can be called now.
        mode: the configured one.
        most_replayed: entries of the audit log that one replay reads.
        most_past: entries that suggestions are made from.
    """

    def __init__(
        self,
        database: Database,
        access: OperatorAccess,
        directory: PeopleDirectory,
        clock: Clock,
        policy: Callable[[], Policy],
        *,
        counts: RuleCounts,
        agents: Agents,
        find_tool: Callable[[str], Awaitable[Tool | None]],
        list_tools: Callable[[], Awaitable[Sequence[Tool]]],
        mode: Mode,
        most_replayed: int = MOST_REPLAYED,
        most_past: int = MOST_PAST,
    ) -> None:
        self._database = database
        self._access = access
        self._directory = directory
        self._clock = clock
        self._policy = policy
        self._counts = counts
        self._agents = agents
        self._find_tool = find_tool
        self._list_tools = list_tools
        self._mode = mode
        self._most_replayed = most_replayed
        self._most_past = most_past
        self._trying = asyncio.Lock()
        # One thread of its own: what somebody sends may keep it busy for long, and turns need those that all share.
        self._apart = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sent-policy")
        self._suggested = _NOTHING_YET
        self._suggested_from = _NEWEST  # number of the last entry of the audit log that they surely rest on
        self._suggesting: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the block runs, the audit log is counted."""
        async with self._counts.running():
            try:
                yield
            finally:
                self._apart.shutdown(wait=False, cancel_futures=True)
                if self._suggesting is not None:
                    self._suggesting.cancel()
                    await asyncio.gather(self._suggesting, return_exceptions=True)

    async def in_force(self, operator: Person, days: int = RECENT_DAYS) -> RulesInForce | None:
        """The rules, and how often each decided; `None`: this is no operator."""
        if not await self._access.looks(operator, "the rules"):
            return None
        policy, since = self._policy(), self._since(days)
        is_counted = await self._counts.up_to_date()
        async with self._database.reading() as tx:
            sums = await rule_counts.sums_by_rule(tx, since)
        rules, besides = _rules(policy, sums)
        return RulesInForce(policy.source, policy.version, self._mode, policy.text, since, is_counted, rules, besides)

    async def ask(self, operator: Person, question: RuleQuestion) -> RuleAnswer | None:
        """What would happen if; `None`: this is no operator. Raises `RuleQuestionError`, and `ReplayBusyError` where it
        is about other rules than those in force while such are tried already."""
        if not await self._access.looks(operator, "the rules"):
            return None
        found = await self._find_tool(question.tool)
        tool = found or _unknown(question.tool)
        call = Call(tool, question.arguments, quote=question.quote)
        if question.policy is None:
            policy = self._policy()
            facts = await self._facts(policy, question, tool)
            explanation = await asyncio.to_thread(explain, policy, call, facts)  # many rules, or long arguments
        else:
            async with self._one_trial():
                policy = await self._parsed(question.policy)
                facts = await self._facts(policy, question, tool)
                explanation = await self._in_its_thread(explain, policy, call, facts)
        return RuleAnswer(explanation, facts, policy.version, found is not None)

    async def replay(
        self,
        operator: Person,
        text: str,
        since: float | None = None,
        until: float | None = None,
        *,
        is_waited_for: Callable[[], bool] = lambda: True,
    ) -> ReplayReport | None:
        """What a changed file would have decided about the calls of a time range; `None`: this is no operator. Takes up
        to half a minute, in a thread of its own.

        Args:
            text: of the file.
            since: seconds since the epoch; `None`: `RECENT_DAYS` before the end.
            until: not included; `None`: now.
            is_waited_for: whether anybody still wants to know.

        Raises `RuleQuestionError`, `ReplayBusyError` where one is under way, and `NobodyWaitsError`.
        """
        if not await self._access.looks(operator, "the rules"):
            return None
        async with self._one_trial():
            last = self._clock() if until is None else until
            first = last - RECENT_DAYS * 86_400 if since is None else since
            if first >= last:
                raise RuleQuestionError("until", "must be after the beginning")
            replay = Replay(self._policy(), await self._parsed(text))
            stretch = await self._stretch(first, until, self._most_replayed)
            async for entries in self._entries(stretch):
                ends: Sequence[LoggedEnd] = await self._in_its_thread(ends_among, entries)
                while ends:
                    if not is_waited_for():
                        raise NobodyWaitsError
                    ends = await self._in_its_thread(_go_on, replay, ends)
            return ReplayReport(replay.changed.version, first, last, stretch.is_cut, replay)

    async def fatigue(self, operator: Person, days: int = RECENT_DAYS) -> Fatigue | None:
        """What people are asked about, and what becomes of it; `None`: this is no operator."""
        if not await self._access.looks(operator, "the rules"):
            return None
        since = self._since(days)
        is_counted = await self._counts.up_to_date()
        async with self._database.reading() as tx:
            sums = await rule_counts.sums_by_tool(tx, since, rule_counts.MOST_LINES + 1)
            waits = await rule_counts.waits_by_tool(tx, since)
        lines = [_line(each, waits) for each in sums]
        return Fatigue(since, is_counted, lines[: rule_counts.MOST_LINES], is_cut=len(lines) > rule_counts.MOST_LINES)

    async def suggested(self, operator: Person) -> SuggestedRules | None:
        """The rules that history speaks for, as they were found last, without looser ones for tools of which people did
        not approve a call since; they are computed again in the background, every ten minutes at most, or when other
        rules hold. `None`: this is no operator."""
        if not await self._access.looks(operator, "the rules"):
            return None
        is_counted = await self._counts.up_to_date()
        async with self._database.reading() as tx:
            unapproved = await rule_counts.tools_unapproved_since(tx, self._suggested_from)
        still = [s for s in self._suggested.suggestions if not (s.is_looser and (s.server, s.tool) in unapproved)]
        kept, now = replace(self._suggested, suggestions=still), self._clock()
        is_new = kept.computed_at is not None and now - kept.computed_at < MADE_ANEW
        if is_new and kept.version == self._policy().version:
            return kept
        if self._suggesting is None or self._suggesting.done():
            self._suggesting = asyncio.create_task(self._suggest(), name="rule suggestions")
        return replace(kept, state="computing" if is_counted else "counting")

    def _since(self, days: int) -> str:
        return (day_of(self._clock()) - timedelta(days=days - 1)).isoformat()

    # ------------------------------------------------------------------------------- rules that are sent

    @asynccontextmanager
    async def _one_trial(self) -> AsyncIterator[None]:
        """Within it, no other policy that somebody sends is tried here. Raises `ReplayBusyError`, and
        `RuleQuestionError` when it takes too long."""
        if self._trying.locked():
            raise ReplayBusyError
        async with self._trying:
            try:
                async with asyncio.timeout(TRYING_SECONDS):
                    yield
            except TimeoutError:
                raise RuleQuestionError("policy", "takes too long to judge calls by") from None

    async def _in_its_thread(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        running = copy_context().run  # texts are in the language of the person who asks
        return await asyncio.get_running_loop().run_in_executor(self._apart, running, function, *arguments)

    async def _parsed(self, text: str) -> Policy:
        """A policy file's text. Raises `RuleQuestionError`."""
        try:
            return await self._in_its_thread(_parse_sent, text)
        except PolicyError as error:
            where = "" if error.line is None else f"line {error.line}: "
            raise RuleQuestionError("policy", f"{where}{error.reason}") from None

    # ------------------------------------------------------------------------------- what would happen if

    async def _facts(self, policy: Policy, question: RuleQuestion, tool: Tool) -> Facts:
        person = normal(question.person, PERSON_ID_FORMS)
        if person is None:
            raise RuleQuestionError("person", "must be a person’s id, like slack:T1:U2 or web:ana")
        platform = question.platform or ("mcp" if question.client else person.partition(":")[0])
        if platform not in PLATFORMS:
            raise RuleQuestionError("platform", f"must be one of {', '.join(PLATFORMS)}")
        if question.client and platform != "mcp":
            raise RuleQuestionError("client", f"only calls on platform mcp have a client, not those on {platform}")
        agent = None if platform == "mcp" else self._agent_asked_about(question, person, tool)
        named = policy.requesters_about([tool])
        groups = {each for each in named if is_group(each) and each not in question.groups}
        others = {each for each in named if may_be_one_human(person, each) and each not in question.groups}
        if len((groups | others) - self._policy().requesters_about([tool])) > MOST_LOOKED_UP:
            raise RuleQuestionError("policy", f"names more than {MOST_LOOKED_UP} other people and groups as requesters")
        return Facts(
            mode=question.mode or self._mode,
            requester=person,
            platform=platform,
            place=question.place,
            at=_moment(self._clock() if question.at is None else question.at),
            groups={
                **(await self._directory.groups_of(person, groups) if groups else {}),
                **(await self._directory.is_also(person, others) if others else {}),
                **question.groups,
            },
            client=question.client,
            agent=agent.name if agent is not None else "",
            agent_asks=agent is not None and agent.must_ask_about(tool, await self._list_tools()),
            said=(question.quote,) if question.quote else (),
        )

    def _agent_asked_about(self, question: RuleQuestion, person: str, tool: Tool) -> AgentConfig:
        if question.agent is None:
            agent = self._agents.for_place(question.place, person)
        elif (named := self._agents.named(question.agent)) is not None:
            agent = named
        else:
            raise RuleQuestionError("agent", f"must be one of {', '.join(self._agents.names)}")
        if not agent.has(tool):
            raise RuleQuestionError("agent", f"{agent.name} does not have this tool: what it calls so is not made")
        return agent

    # ----------------------------------------------------------------------------------------- history

    async def _stretch(self, since: float, until: float | None, most: int) -> _Stretch:
        """The newest entries of a time range; `until`: `None`: all that there are by now."""
        async with self._database.reading() as tx:
            first = await rule_counts.first_entry_since(tx, since)
            end = None if until is None else await rule_counts.first_entry_since(tx, until)
            last = await audit.newest_number(tx) if end is None else end - 1
        if first is None:
            return _Stretch(last, last, is_cut=False)
        after = max(first - 1, last - most)
        return _Stretch(after, last, is_cut=after >= first)

    async def _entries(self, stretch: _Stretch) -> AsyncIterator[Sequence[LogEntry]]:
        """Entries in parts, the oldest ones first."""
        after = stretch.after
        while after < stretch.last:
            async with self._database.reading() as tx:
                entries = await rule_counts.entries_after(tx, after, min(_READ_AT_ONCE, stretch.last - after))
            if not entries:
                return
            after = entries[-1].seq
            yield entries

    async def _suggest(self) -> None:
        try:
            policy, now = self._policy(), self._clock()
            await self._counts.count_all()
            async with self._database.reading() as tx:
                counted_to = await rule_counts.counted_to(tx)
            history, not_whole = await self._history()
            not_whole |= await self._add_unapproved(history)
            found = await asyncio.to_thread(suggestions, policy, history, not_whole=not_whole)
            since = history[0].at if history else ""
            self._suggested = SuggestedRules("ready", now, policy.version, len(history), since, found)
            self._suggested_from = counted_to
        except Exception as error:
            if not is_outage(error):
                log.exception("rules_not_suggested")

    async def _history(self) -> tuple[list[HistoricCall], set[tuple[str, str]]]:
        """The newest calls, as `past_calls` returns them."""
        history: list[HistoricCall] = []
        not_whole: set[tuple[str, str]] = set()
        async for entries in self._entries(await self._stretch(0.0, None, self._most_past)):
            some, unreadable = await self._past(entries)
            history += some
            not_whole |= unreadable
        return history, not_whole

    async def _past(self, entries: Sequence[LogEntry]) -> tuple[list[HistoricCall], set[tuple[str, str]]]:
        ends = await asyncio.to_thread(ends_among, entries)
        outcomes = {each.seq: each for each in await read_outcomes(self._database, ends)}
        return await asyncio.to_thread(past_calls, ends, outcomes)

    async def _add_unapproved(self, history: list[HistoricCall]) -> set[tuple[str, str]]:
        """Adds the calls of the same tools, from before, that people did not approve as they were; the tools that have
        more of them than are read, or some that cannot be read."""
        known = {past.call_id for past in history}
        not_whole: set[tuple[str, str]] = set()
        before: list[HistoricCall] = []
        for server, tool in dict.fromkeys(past.about for past in history):
            async with self._database.reading() as tx:
                seqs = await rule_counts.unapproved_of_tool(tx, server, tool, MOST_UNAPPROVED + 1)
            if len(seqs) > MOST_UNAPPROVED:
                not_whole.add((server, tool))
                continue
            for start in range(0, len(seqs), _READ_AT_ONCE):
                async with self._database.reading() as tx:
                    entries = await rule_counts.entries_of(tx, seqs[start : start + _READ_AT_ONCE])
                some, unreadable = await self._past(entries)
                before += [past for past in some if past.call_id not in known]
                not_whole |= unreadable
        history[:0] = before
        return not_whole


def _rules(policy: Policy, sums: Sequence[RuleSum]) -> tuple[list[RuleInForce], list[DecidedBesides]]:
    names = {rule.name for rule in policy.rules}
    by_rule = {name: Decided() for name in names}
    besides: list[DecidedBesides] = []
    for each in sums:
        decided = _decided(each.of)
        if each.decided_by in ("rule", "server", "agent"):
            if each.rule in names:
                by_rule[each.rule] = _together(by_rule[each.rule], decided)
            else:
                besides.append(DecidedBesides("former", each.rule, decided))
        else:
            besides.append(DecidedBesides(each.decided_by, "", decided))  # type: ignore[arg-type]
    rules = [
        RuleInForce(
            name=rule.name,
            source=rule.source,
            decides=rule.verdict.verdict,
            match=[(check.field, check.wanted) for check in rule.checks],
            approvers=_approvers(rule.verdict) if isinstance(rule.verdict, Ask) else "",
            reason=getattr(rule.verdict, "reason", ""),
            reads=getattr(rule.verdict, "reads", False),
            decided=by_rule[rule.name],
        )
        for rule in policy.rules
    ]
    return rules, sorted(besides, key=lambda each: (each.decided_by, each.rule))


def _approvers(ask: Ask) -> str:
    return describe_approvers(ask, (_("the requester"),), str)


def _decided(of: Mapping[str, int]) -> Decided:
    asked = sum(times for outcome, times in of.items() if outcome not in ("allowed", "denied"))
    return Decided(of["allowed"], asked, of["denied"])


def _together(one: Decided, other: Decided) -> Decided:
    return Decided(one.allowed + other.allowed, one.asked + other.asked, one.denied + other.denied)


def _line(each: ToolSum, waits: Mapping[tuple[str, str, str, str], Mapping[int, int]]) -> FatigueLine:
    key = (each.decided_by, each.rule, each.server, each.tool)
    return FatigueLine(*key, of=each.of, median_wait=median_of(waits.get(key, {})))


def _unknown(name: str) -> Tool:
    server, separator, tool = name.partition("__")
    if not (separator and server and tool):
        raise RuleQuestionError("tool", "must be a tool’s name as the model has it, like calendar__create_event")
    return Tool(server, tool)


def _moment(at: float) -> datetime:
    try:
        return datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        raise RuleQuestionError("at", "is too far away") from None


def _parse_sent(text: str) -> Policy:
    with as_sent():
        return parse_policy(text, _CHANGED)


def _go_on(replay: Replay, ends: Sequence[LoggedEnd]) -> Sequence[LoggedEnd]:
    """Judges calls for `AT_A_TIME_SECONDS`; those that are left."""
    until = monotonic() + AT_A_TIME_SECONDS
    for count, end in enumerate(ends, 1):
        replay.go_on([end])
        if monotonic() >= until:
            return ends[count:]
    return ()
