"""What Slack knows of somebody that policies ask for: found out, or not found out, never guessed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from adapters.slack.config import SlackConfig
from adapters.slack.web_api.client import WebApi
from adapters.slack.web_api.people import (
    KEEP_GROUPS,
    MOST_PAGES,
    PAGE,
    REINSTALL,
    SlackPeople,
    SlackPersonFacts,
)
from bot.domain import AccountFacts
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.support.moments import Moments

ANA, GROUP = "slack:T1:U1", "slack-group:T1:S1"


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with fake_slack() as running:
        running.world.user_groups["T1", "S1"] = {"U1"}
        yield running


@asynccontextmanager
async def facts_of(slack: FakeSlack, moments: Moments | None = None, **config: Any) -> AsyncIterator[SlackPersonFacts]:
    async def one_token(_team: str) -> str:
        return "xoxb-1"

    moments = moments or Moments()
    api = WebApi(one_token, slack.api_url)
    people = SlackPeople(api, SlackConfig(**config), moments.clock)
    facts = SlackPersonFacts(api, people, clock=moments.clock, within=0.5)
    try:
        yield facts
    finally:
        for each in (facts, people, api):
            await each.close()


async def test_who_is_in_a_user_group_is_and_who_is_not_is_not(slack: FakeSlack) -> None:
    async with facts_of(slack) as facts:
        assert await facts.in_group(ANA, GROUP) is True
        assert await facts.in_group("slack:T1:U2", GROUP) is False


async def test_a_group_is_asked_for_once_in_a_while_however_many_click(slack: FakeSlack) -> None:
    moments = Moments()
    async with facts_of(slack, moments) as facts:
        await asyncio.gather(*(facts.in_group(f"slack:T1:U{n}", GROUP) for n in range(5)))
        assert len(slack.calls_of("usergroups.users.list")) == 1
        slack.world.user_groups["T1", "S1"].clear()
        moments.now += KEEP_GROUPS + 1
        assert await facts.in_group(ANA, GROUP) is False


NOT_OURS = [
    ("slack:T2:U1", GROUP),
    ("teams:T1:U1", GROUP),
    (ANA, "slack-group:T2:S1"),
    (ANA, "entra-group:T1:S1"),
    (ANA, "slack-group:T1"),
    (ANA, "slack-group:T1:S1:x"),
    (ANA, "slack-group::S1"),
    (ANA, ""),
]


@pytest.mark.parametrize(("person", "group"), NOT_OURS)
async def test_what_is_not_of_this_persons_workspace_could_not_be_found_out(
    slack: FakeSlack, person: str, group: str
) -> None:
    async with facts_of(slack) as facts:
        assert await facts.in_group(person, group) is None
    assert slack.calls == []


async def test_a_group_that_does_not_exist_could_not_be_found_out(slack: FakeSlack) -> None:
    async with facts_of(slack) as facts:
        with capture_logs() as logs:
            assert await facts.in_group(ANA, "slack-group:T1:S404") is None
    assert "no_such_subteam" in logs[0]["error"]


async def test_without_the_scope_a_group_could_not_be_found_out(slack: FakeSlack) -> None:
    slack.world.workspaces["T1"].scopes = "users:read"
    async with facts_of(slack) as facts:
        assert await facts.in_group(ANA, GROUP) is None


@pytest.mark.waits
@pytest.mark.parametrize("trouble", [{"status": 503}, {"error": "missing_scope"}])
async def test_while_slack_does_not_answer_nothing_could_be_found_out(slack: FakeSlack, trouble: Any) -> None:
    for method in ("usergroups.users.list", "conversations.members", "users.info"):
        slack.fail(method, times=math.inf, **trouble)
    async with facts_of(slack) as facts:
        assert await facts.in_group(ANA, GROUP) is None
        assert await facts.in_channel(ANA, "slack:T1:C1") is None
        assert (await facts.account_of(ANA)).email == ""


async def test_nobody_waits_longer_than_a_click_may_take(slack: FakeSlack) -> None:
    held = slack.hold("usergroups.users.list")
    async with facts_of(slack) as facts, asyncio.timeout(5):
        assert await facts.in_group(ANA, GROUP) is None
        held.release()


async def test_members_of_a_channel_are_in_it_and_others_are_not(slack: FakeSlack) -> None:
    slack.add_channel("C7", members=["U1"])
    async with facts_of(slack) as facts:
        assert await facts.in_channel(ANA, "slack:T1:C7") is True
        assert await facts.in_channel("slack:T1:U2", "slack:T1:C7") is False
        assert await facts.in_channel(ANA, "slack:T1:C404") is None
        assert await facts.in_channel(ANA, "slack:T2:C7") is None


async def test_of_a_channel_too_large_to_read_it_is_not_said_who_is_not_in_it(slack: FakeSlack) -> None:
    slack.add_channel("C8", members=[f"U{n:06d}" for n in range(MOST_PAGES * PAGE + 1)])
    async with facts_of(slack) as facts:
        assert await facts.in_channel("slack:T1:U000001", "slack:T1:C8") is True
        assert await facts.in_channel("slack:T1:UX", "slack:T1:C8") is None


def add_with_email(slack: FakeSlack, email: object, **facts: Any) -> None:
    slack.add_user("U9", name="Zoë", **facts)
    slack.world.users["T1", "U9"]["profile"]["email"] = email


async def test_the_address_is_slacks_in_lower_case(slack: FakeSlack) -> None:
    add_with_email(slack, "Zoe@Example.com")
    async with facts_of(slack) as facts:
        assert (await facts.account_of("slack:T1:U9")).email == "zoe@example.com"


NO_ADDRESS: list[tuple[str, object, dict[str, Any]]] = [
    ("none", None, {}),
    ("no address at all", "zoe", {}),
    ("not confirmed", "zoe@example.com", {"is_email_confirmed": False}),
    ("of another company", "zoe@example.com", {"team_id": "T9"}),
    ("a bot's", "zoe@example.com", {"is_bot": True}),
    ("of somebody who has left", "zoe@example.com", {"deleted": True}),
]


@pytest.mark.parametrize(("email", "facts"), [n[1:] for n in NO_ADDRESS], ids=[n[0] for n in NO_ADDRESS])
async def test_an_address_that_nobody_vouches_for_does_not_count(
    slack: FakeSlack, email: object, facts: dict[str, Any]
) -> None:
    add_with_email(slack, email, **facts)
    async with facts_of(slack) as facts:
        assert (await facts.account_of("slack:T1:U9")).email == ""


async def test_partners_are_let_in_but_not_vouched_for(slack: FakeSlack) -> None:
    add_with_email(slack, "boss@example.com", team_id="T9")
    async with facts_of(slack, allowed_teams=frozenset({"T9"})) as facts:
        assert (await facts.account_of("slack:T1:U9")).email == ""


OUTSIDERS: list[tuple[str, dict[str, Any], frozenset[str]]] = [
    ("a guest", {"is_restricted": True}, frozenset()),
    ("a guest of one channel", {"is_ultra_restricted": True}, frozenset()),
    ("of another company", {"is_stranger": True}, frozenset({"T9"})),
    ("of another workspace", {"team_id": "T9"}, frozenset({"T9"})),
]


@pytest.mark.parametrize(("facts", "partners"), [o[1:] for o in OUTSIDERS], ids=[o[0] for o in OUTSIDERS])
async def test_an_outsider_s_address_is_what_they_claim_even_where_they_are_welcome(
    slack: FakeSlack, facts: dict[str, Any], partners: frozenset[str]
) -> None:
    """Rule 9: their account may be a member's second one."""
    add_with_email(slack, "zoe@example.com", **facts)
    async with facts_of(slack, allowed_teams=partners, allow_guests=True) as facts:
        assert await facts.account_of("slack:T1:U9") == AccountFacts("", ("zoe@example.com",), is_member=False)


async def test_without_the_scope_nobody_has_an_address(slack: FakeSlack) -> None:
    add_with_email(slack, "zoe@example.com")
    slack.world.workspaces["T1"].scopes = "users:read"
    async with facts_of(slack) as facts:
        assert await facts.account_of("slack:T1:U9") == AccountFacts(is_member=True)


@pytest.mark.waits
@pytest.mark.parametrize(("allow_guests", "is_member"), [(False, True), (True, None)])
async def test_who_cannot_be_looked_up_is_a_member_where_only_members_may_use_the_bot(
    slack: FakeSlack, *, allow_guests: bool, is_member: bool | None
) -> None:
    slack.fail("users.info", times=math.inf, status=503)
    async with facts_of(slack, allow_guests=allow_guests) as facts:
        assert await facts.account_of(ANA) == AccountFacts(is_member=is_member)


async def test_what_stays_so_until_it_is_installed_anew_is_in_the_log_once_and_how_to_mend_it(slack: FakeSlack) -> None:
    slack.world.workspaces["T1"].scopes = "users:read"
    async with facts_of(slack) as facts:
        with capture_logs() as logs:
            for _ in range(3):
                assert await facts.in_group(ANA, GROUP) is None
            assert await facts.in_group(ANA, "slack-group:T1:S2") is None
    told = [entry for entry in logs if entry["event"] == "slack_not_found_out"]
    assert [(entry["log_level"], entry["hint"]) for entry in told] == [("warning", REINSTALL)]
    assert "missing_scope" in told[0]["error"]
