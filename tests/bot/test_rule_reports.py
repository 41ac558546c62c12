"""The rules for operators: how often each decided, what would happen if, what another file would have done, and which
rules history speaks for."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest
import sqlalchemy as sa

from bot.approvals.directory import PeopleDirectory
from bot.console.access import OperatorAccess
from bot.domain import Person
from bot.records import audit, tables
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from bot.rules.counting import RuleCounts
from bot.rules.reports import (
    MADE_ANEW,
    MOST_LOOKED_UP,
    NobodyWaitsError,
    ReplayBusyError,
    RuleQuestion,
    RuleQuestionError,
    RuleReports,
    SuggestedRules,
)
from graph.agents import AgentConfig, Agents, ToolPattern
from policies.judging import Policy
from policies.model import Deny, Mode, Tool
from policies.policy_file import parse_policy
from tests.bot.conftest import RecordingPlatform, SetClock
from tests.bot.logbook import Logbook
from tests.policies.builders import READS, WRITES

RULES = """
version: 1
rules:
  - name: reading
    match: {annotations: {readOnlyHint: true}}
    decide: allow
  - name: for finance
    match: {tool: pay, requester: "slack-group:T1:S1"}
    decide: ask
  - name: never
    match: {tool: pay}
    decide: deny
    reason: Finance pays.
  - name: making
    match: {tool: make}
    decide: ask
    approvers: [any]
"""
OLGA, ANA = Person("web:olga", "Olga"), Person("web:ana", "Ana")
MAKE = Tool("workshop", "make", annotations=WRITES, annotations_trusted=True)
GROUP = "slack-group:T1:S1"
MAKES = (ToolPattern("workshop", "make"),)
AGENTS = Agents(
    specialists=(
        AgentConfig("clerk", tools=(ToolPattern("tasks", "*"),)),
        AgentConfig("maker", require_approval=MAKES, channels=("slack:T1:C2", "person:slack:T1:U2")),
    )
)


@dataclass
class Console:
    """The reports, and who looked at them."""

    reports: RuleReports
    logbook: Logbook
    clock: SetClock
    policies: list[Policy]
    """The last one is in force."""
    platform: RecordingPlatform
    read: list[tuple[str, str]] = field(default_factory=list)

    async def made(self) -> SuggestedRules:
        """The suggestions, once they are there."""
        async with asyncio.timeout(20):
            while (found := await self.reports.suggested(OLGA)) is None or found.state != "ready":
                await asyncio.sleep(0.01)
        return found


@pytest.fixture
async def console(database: Database, clock: SetClock) -> AsyncIterator[Console]:
    platform = RecordingPlatform("slack")
    directory = PeopleDirectory({"slack": platform}, database, clock)
    policies = [parse_policy(RULES, "rules.yaml")]
    read: list[tuple[str, str]] = []

    async def is_operator(person: Person) -> bool:
        return person == OLGA

    async def note(person: Person, what: str, thread_id: str) -> None:
        read.append((person.name, what))

    async def find(name: str) -> Tool | None:
        return MAKE if name == MAKE.full_name else None

    async def list_all() -> list[Tool]:
        return [MAKE]

    reports = RuleReports(
        database,
        OperatorAccess(is_operator, note),
        directory,
        clock,
        lambda: policies[-1],
        counts=RuleCounts(database),
        agents=AGENTS,
        find_tool=find,
        list_tools=list_all,
        mode=Mode.DEFAULT,
        most_replayed=20,
        most_past=20,
    )
    yield Console(reports, Logbook(database, clock, policies[0]), clock, policies, platform, read)
    await directory.close()


async def test_only_operators_are_shown_anything_and_the_log_says_so(console: Console) -> None:
    reports = console.reports
    assert await reports.in_force(ANA) is None
    assert await reports.fatigue(ANA) is None
    assert await reports.suggested(ANA) is None
    assert await reports.ask(ANA, RuleQuestion("workshop__make", "web:ana")) is None
    assert await reports.replay(ANA, RULES) is None
    assert console.read == []
    assert await reports.in_force(OLGA) is not None
    assert console.read == [("Olga", "the rules")]


# ------------------------------------------------------------------------------------------- in force


async def test_the_rules_are_shown_in_order_with_how_often_each_decided(console: Console) -> None:
    await console.logbook.end("look", says=READS)
    await console.logbook.end(said="approved")
    await console.logbook.end("other", said="approved")
    found = await console.reports.in_force(OLGA)
    assert found is not None
    assert found.is_counted
    told = [(rule.name, rule.decides, rule.decided.allowed, rule.decided.asked) for rule in found.rules]
    assert told == [
        ("reading", "allow", 1, 0),
        ("for finance", "ask", 0, 0),
        ("never", "deny", 0, 0),
        ("making", "ask", 0, 1),
    ]
    assert [(each.decided_by, each.decided.asked) for each in found.besides] == [("none", 1)]
    assert (found.rules[3].match, found.rules[3].approvers) == ([("tool", "make")], "anyone")
    assert found.text == RULES


async def test_what_a_rule_decided_that_there_is_no_more_is_counted_besides(console: Console) -> None:
    await console.logbook.end(said="approved")
    console.policies.append(parse_policy("version: 1\nrules: []\n", "rules.yaml"))
    found = await console.reports.in_force(OLGA)
    assert found is not None
    assert [(each.decided_by, each.rule, each.decided.asked) for each in found.besides] == [("former", "making", 1)]


async def test_only_the_days_that_are_asked_about_are_counted(console: Console) -> None:
    await console.logbook.end(said="approved")
    console.clock.move(3 * 86_400)
    await console.logbook.end(said="approved")
    by_days = {}
    for days in (1, 3, 4):
        found = await console.reports.in_force(OLGA, days)
        assert found is not None
        by_days[days] = found.rules[3].decided.asked
    assert by_days == {1: 1, 3: 1, 4: 2}


# ------------------------------------------------------------------------------- what would happen if


async def test_a_question_is_answered_by_the_rule_with_its_sentence_and_its_approvers(console: Console) -> None:
    answer = await console.reports.ask(OLGA, RuleQuestion("workshop__make", "web:ana", {"n": 1}))
    assert answer is not None
    found = answer.explanation
    assert (found.verdict.verdict, found.decided_by, found.approvers) == ("ask", "making", "anyone")
    assert found.why == "Asked because rule “making” covers make on every server."
    assert [tried.name for tried in found.tried] == ["reading", "for finance", "never", "making"]
    assert answer.knows_tool
    assert (answer.facts.platform, answer.facts.agent) == ("web", "default")


@pytest.mark.parametrize(
    ("person", "place", "agent", "verdict"),
    [
        ("slack:T1:U1", "", None, "allow"),
        ("slack:T1:U2", "", None, "ask"),
        ("slack:T1:U1", "slack:T1:C2", None, "ask"),
        ("slack:T1:U1", "slack:T1:C2", "default", "allow"),
        ("slack:T1:U1", "", "maker", "ask"),
    ],
)
async def test_a_call_is_judged_as_one_of_the_agent_that_answers_there_unless_another_is_named(
    console: Console, person: str, place: str, agent: str | None, verdict: str
) -> None:
    free = "version: 1\nrules:\n  - {name: free, match: {}, decide: allow}\n"
    question = RuleQuestion("workshop__make", person, {}, place, agent=agent, policy=free)
    answer = await console.reports.ask(OLGA, question)
    assert answer is not None
    assert answer.explanation.verdict.verdict == verdict


async def test_groups_are_looked_up_unless_they_are_given(console: Console) -> None:
    console.platform.groups[GROUP] = {"slack:T1:U1": True}
    pay = RuleQuestion("bank__pay", "slack:T1:U1")
    answer = await console.reports.ask(OLGA, pay)
    assert answer is not None
    assert (answer.explanation.decided_by, dict(answer.facts.groups)) == ("for finance", {GROUP: True})
    assert not answer.knows_tool
    answer = await console.reports.ask(OLGA, replace(pay, groups={GROUP: False}))
    assert answer is not None
    assert isinstance(answer.explanation.verdict, Deny)
    assert answer.explanation.verdict.reason == "Finance pays."
    answer = await console.reports.ask(OLGA, replace(pay, person="slack:T1:U2"))
    assert answer is not None
    assert "could not be found out" in answer.explanation.why.lower() or answer.explanation.verdict.verdict == "deny"


async def test_a_question_can_be_put_to_other_rules_and_another_mode(console: Console) -> None:
    other = RuleQuestion("workshop__make", "web:ana", policy="version: 1\nrules: []\n")
    answer = await console.reports.ask(OLGA, other)
    assert answer is not None
    assert answer.explanation.decided_by == ""
    answer = await console.reports.ask(OLGA, RuleQuestion("workshop__make", "web:ana", mode=Mode.READ_ONLY))
    assert answer is not None
    assert answer.explanation.ceiling.startswith("Mode readOnly")


@pytest.mark.parametrize(
    ("question", "what"),
    [
        (RuleQuestion("make", "web:ana"), "tool"),
        (RuleQuestion("workshop__make", "ana"), "person"),
        (RuleQuestion("workshop__make", "web:ana", platform="fax"), "platform"),
        (RuleQuestion("workshop__make", "web:ana", platform="web", client="cursor"), "client"),
        (RuleQuestion("workshop__make", "web:ana", agent="nobody"), "agent"),
        (RuleQuestion("workshop__make", "web:ana", agent="clerk"), "agent"),
        (RuleQuestion("workshop__make", "web:ana", at=1e300), "at"),
        (RuleQuestion("workshop__make", "web:ana", policy="version: 1\nrules: [7]"), "policy"),
    ],
)
async def test_what_is_wrong_with_a_question_is_named(console: Console, question: RuleQuestion, what: str) -> None:
    with pytest.raises(RuleQuestionError) as refusal:
        await console.reports.ask(OLGA, question)
    assert refusal.value.what == what


async def test_rules_that_are_sent_are_tried_apart_from_what_turns_need_and_one_at_a_time(console: Console) -> None:
    other = RuleQuestion("workshop__make", "web:ana", policy="version: 1\nrules: []\n")
    may_end = threading.Event()
    shared = ThreadPoolExecutor(max_workers=1)
    asyncio.get_running_loop().set_default_executor(shared)
    shared.submit(may_end.wait)
    try:
        asked = (console.reports.ask(OLGA, other) for _ in range(3))
        async with asyncio.timeout(20):
            answers = await asyncio.gather(*asked, return_exceptions=True)
    finally:
        may_end.set()
    assert sum(isinstance(each, ReplayBusyError) for each in answers) == 2
    assert await console.reports.ask(OLGA, other) is not None


@pytest.mark.parametrize(
    ("patterns", "reason"),
    [
        ([r"\pL{200}"], "line 3: what: not a regular expression that RE2 knows: pattern too large - compile failed"),
        ([rf"\pL{{30}}{number}" for number in range(40)], "all patterns together are too large"),
    ],
    ids=["one that is large", "many that are large together"],
)
async def test_rules_that_are_sent_have_no_patterns_that_take_long_to_prepare(
    console: Console, patterns: list[str], reason: str
) -> None:
    """Rule 13: while RE2 prepares a pattern, nothing else in the process goes on."""
    rules = "".join(
        f"  - {{name: r{number}, match: {{args: {{what: {{regex: '{pattern}'}}}}}}, decide: ask}}\n"
        for number, pattern in enumerate(patterns)
    )
    sent = f"version: 1\nrules:\n{rules}"
    with pytest.raises(RuleQuestionError, match=re.escape(reason)):
        await console.reports.ask(OLGA, RuleQuestion("workshop__make", "web:ana", policy=sent))
    with pytest.raises(RuleQuestionError, match=re.escape(reason)):
        await console.reports.replay(OLGA, sent)
    assert parse_policy(sent, "the file in force").rules, "who starts the process may wait for them"


async def test_rules_that_are_sent_have_few_people_and_groups_looked_up(console: Console) -> None:
    groups = ", ".join(f'"slack-group:T1:S{number}"' for number in range(MOST_LOOKED_UP + 1))
    sent = f"version: 1\nrules:\n  - {{name: r, match: {{requester: [{groups}]}}, decide: ask}}\n"
    with pytest.raises(RuleQuestionError, match="names more than"):
        await console.reports.ask(OLGA, RuleQuestion("workshop__make", "slack:T1:U1", policy=sent))
    fewer = sent.replace('"slack-group:T1:S0", ', "")
    answer = await console.reports.ask(OLGA, RuleQuestion("workshop__make", "slack:T1:U1", policy=fewer))
    assert answer is not None
    assert len(answer.facts.groups) == MOST_LOOKED_UP


# --------------------------------------------------------------------------------------------- replay


async def test_a_replay_shows_side_by_side_what_a_changed_file_would_have_decided(console: Console) -> None:
    await console.logbook.end("look", says=READS)
    call = await console.logbook.end(said="approved", n=1)
    changed = RULES.replace("tool: make}\n    decide: ask\n    approvers: [any]", "tool: make}\n    decide: deny")
    report = await console.reports.replay(OLGA, changed)
    assert report is not None
    replay = report.replay
    assert (replay.calls, replay.different, replay.different_from_now, report.is_cut) == (2, 1, 1, False)
    assert replay.changes == {("ask", "deny"): 1}
    (found,) = replay.differences
    assert (found.call_id, found.input) == (call, '{"n":1}')
    assert (found.recorded.verdict, found.now.verdict, found.changed.verdict) == ("ask", "ask", "deny")
    assert found.recorded.why == found.now.why == "Asked because rule “making” covers make on every server."
    assert found.changed.why == "Denied because rule “making” covers make on every server."


async def test_what_the_rules_in_force_changed_already_is_told_apart_from_what_the_file_would(console: Console) -> None:
    await console.logbook.end(said="approved")
    changed = "version: 1\nrules: []\n"
    console.policies.append(parse_policy(changed, "rules.yaml"))
    report = await console.reports.replay(OLGA, changed)
    assert report is not None
    assert (report.replay.different, report.replay.different_from_now) == (1, 0)


@pytest.mark.parametrize(
    ("named", "is_doubtful"),
    [("slack:T1:U2", True), ("slack-group:T1:S2", True), ("web:ben", False)],
    ids=["another account, perhaps of hers", "a group", "another person"],
)
async def test_a_replay_says_what_nobody_had_asked_about_a_requester(
    console: Console, named: str, *, is_doubtful: bool
) -> None:
    await console.logbook.end("make", said="approved", what="lamp")
    changed = f"version: 1\nrules: [{{name: not hers, match: {{tool: make, requester: '{named}'}}, decide: deny}}]"
    found = await console.reports.replay(OLGA, changed)
    assert found is not None and found.replay.doubtful == is_doubtful
    (difference,) = found.replay.differences
    assert difference.doubt == (f"nobody asked then whether web:ana is, or is in, {named}" if is_doubtful else "")


async def test_what_a_replay_asks_of_other_tools_leaves_no_doubt(console: Console) -> None:
    await console.logbook.end("make", said="approved", what="lamp")
    found = await console.reports.replay(OLGA, RULES)
    assert found is not None and (found.replay.calls, found.replay.doubtful) == (1, 0)


async def test_a_replay_keeps_to_its_time_and_counts_a_call_once(console: Console) -> None:
    await console.logbook.end(said="approved")
    beginning = console.clock()
    console.clock.move(100)
    call = await console.logbook.end(said="approved", status="unknown")
    await console.logbook.end(call_id=call, attempt=2)
    end = console.clock() + 1
    console.clock.move(100)
    await console.logbook.end(said="approved")
    report = await console.reports.replay(OLGA, RULES, beginning + 1, end)
    assert report is not None
    assert report.replay.calls == 1
    everything = await console.reports.replay(OLGA, RULES)
    assert everything is not None
    assert everything.replay.calls == 3
    nothing = await console.reports.replay(OLGA, RULES, console.clock() + 10, console.clock() + 20)
    assert nothing is not None
    assert nothing.replay.calls == 0


async def test_a_replay_of_more_than_it_reads_says_so(console: Console) -> None:
    for _ in range(21):
        await console.logbook.end(said="approved")
    report = await console.reports.replay(OLGA, RULES)
    assert report is not None
    assert (report.replay.calls, report.is_cut) == (20, True)


async def test_a_file_with_a_mistake_is_refused_with_its_line(console: Console) -> None:
    with pytest.raises(RuleQuestionError, match="line 3"):
        await console.reports.replay(OLGA, "version: 1\nrules:\n  - 7\n")
    with pytest.raises(RuleQuestionError):
        await console.reports.replay(OLGA, RULES, 10.0, 5.0)


async def test_history_is_replayed_for_one_at_a_time(console: Console) -> None:
    for _ in range(3):
        await console.logbook.end(said="approved")
    answers = await asyncio.gather(*(console.reports.replay(OLGA, RULES) for _ in range(3)), return_exceptions=True)
    assert sum(isinstance(each, ReplayBusyError) for each in answers) == 2
    assert await console.reports.replay(OLGA, RULES) is not None


async def test_a_replay_for_which_nobody_waits_any_more_is_given_up(console: Console) -> None:
    await console.logbook.end("make", said="approved")
    with pytest.raises(NobodyWaitsError):
        await console.reports.replay(OLGA, RULES, is_waited_for=lambda: False)
    found = await console.reports.replay(OLGA, RULES)
    assert found is not None and found.replay.calls == 1


# -------------------------------------------------------------------------------------------- fatigue


async def test_fatigue_says_what_became_of_what_was_asked_and_who_is_a_candidate(console: Console) -> None:
    for _ in range(10):
        await console.logbook.end(said="approved", waited=30)
    for _ in range(5):
        await console.logbook.end("other", said="rejected", waited=600)
    await console.logbook.end("third", said="expired")
    await console.logbook.end("look", says=READS)
    found = await console.reports.fatigue(OLGA)
    assert found is not None
    told = [(line.rule, line.tool, line.asked, line.candidate) for line in found.lines]
    assert told == [("making", "make", 10, "allow"), ("", "other", 5, "deny"), ("", "third", 1, "")]
    assert [line.median_wait for line in found.lines] == [
        pytest.approx(30, rel=0.1),
        pytest.approx(600, rel=0.1),
        None,
    ]
    await console.logbook.end(said="approved", edited_by="web:ben")
    found = await console.reports.fatigue(OLGA)
    assert found is not None
    assert found.lines[0].candidate == ""


# ---------------------------------------------------------------------------------------- suggestions


async def test_suggestions_are_made_in_the_background_and_kept_for_a_while(console: Console) -> None:
    for number in range(12):
        await console.logbook.end(said="approved", title=f"t{number}")
    first = await console.reports.suggested(OLGA)
    assert first is not None
    assert (first.state, first.computed_at, first.suggestions) == ("computing", None, [])
    found = await console.made()
    assert [(each.kind, each.decided, each.before) for each in found.suggestions] == [("allow", 12, "making")]
    assert (found.calls, found.computed_at) == (12, console.clock())
    assert await console.reports.suggested(OLGA) == found
    console.clock.move(MADE_ANEW + 1)
    for number in range(2):
        await console.logbook.end(said="approved", title=f"t{number}")
    stale = await console.reports.suggested(OLGA)
    assert stale is not None
    assert (stale.state, len(stale.suggestions)) == ("computing", 1)
    assert [each.decided for each in (await console.made()).suggestions] == [14]


async def test_what_is_rejected_takes_the_allow_for_its_tool_back_at_once(console: Console) -> None:
    for number in range(12):
        await console.logbook.end(said="approved", title=f"t{number}")
    assert len((await console.made()).suggestions) == 1
    await console.logbook.end(said="rejected", title="x")
    found = await console.reports.suggested(OLGA)
    assert found is not None
    assert (found.state, found.suggestions) == ("ready", [])


async def test_other_rules_get_suggestions_of_their_own_at_once(console: Console) -> None:
    for number in range(12):
        await console.logbook.end(said="approved", title=f"t{number}")
    assert len((await console.made()).suggestions) == 1
    console.policies.append(parse_policy(RULES.replace("decide: ask\n    approvers: [any]", "decide: deny"), "other"))
    found = await console.made()
    assert (found.version, found.suggestions) == (console.policies[-1].version, [])


async def test_a_rejection_counts_however_long_ago_it_was(console: Console) -> None:
    await console.logbook.end(said="rejected", title="t")
    for number in range(20):
        await console.logbook.end(said="approved", title=f"t{number}")
    assert (await console.made()).suggestions == []


async def test_a_rejection_that_cannot_be_read_any_more_counts_against_whatever_its_tool_does(
    console: Console, database: Database
) -> None:
    await console.logbook.end(said="rejected", title="x")
    async with database.writing(UNLOCKED) as tx:
        ((link, _at),) = await audit.dated_links(tx, -1, 1)
        entry = json.loads(link.entry)
        del entry["judged"]["tool"]["annotations"]
        await tx.run(sa.update(tables.audit).where(tables.audit.c.seq == link.seq).values(entry=json.dumps(entry)))
    for number in range(12):
        await console.logbook.end(said="approved", title=f"t{number}")
    assert (await console.made()).suggestions == []
