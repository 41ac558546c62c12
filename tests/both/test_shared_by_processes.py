"""What processes share reaches both platforms: the clock by which signatures and tokens are judged, and how long a
platform has asked any of them to wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

import aiohttp
import pytest

from adapters.platforms import PlatformSetup, make_senders
from adapters.slack.receiver import SlackReceiver
from adapters.slack.sender import SlackSender
from adapters.teams.receiver import TeamsReceiver
from adapters.teams.sender import TeamsSender
from tests.bot.stubs import KEY
from tests.slack.serving import served
from tests.support.product import GivenSettings
from tests.support.slack_transports import signed
from tests.teams.serving import stand_in_services

SECRET = "shh"  # of nobody
SLOW = 3_600.0
"""Seconds by which the clock of this machine is slow."""


class Exchange:
    """Writes down who hears of pauses."""

    def __init__(self) -> None:
        self.hearing: set[str] = set()

    def asked(self, service: str, line: str, seconds: float) -> None:
        raise AssertionError(line)

    def hears(self, service: str, paused: Callable[[str, float], None]) -> None:
        self.hearing.add(service)


def right_time() -> float:
    return time.time() + SLOW


@pytest.fixture
def setup() -> PlatformSetup:
    given: dict[str, Any] = {
        "slack_bot_token": "xoxb-1",
        "slack_signing_secret": SECRET,
        "microsoft_app_id": "11111111-2222-3333-4444-555555555555",
        "microsoft_app_password": "secret",
        "microsoft_app_tenant_id": "66666666-7777-8888-9999-000000000000",
    }
    links = cast("Any", stand_in_services())
    return PlatformSetup(GivenSettings(**given), KEY, links, right_time, Exchange())


async def test_both_hear_what_others_were_asked_to_wait(setup: PlatformSetup) -> None:
    senders = make_senders(setup)
    assert cast("Exchange", setup.exchange).hearing == {"slack", "teams"}
    await senders.close()


async def test_both_go_by_the_clock_that_processes_share(setup: PlatformSetup) -> None:
    """Rule 10: a right request is taken, on a machine whose clock is wrong, too; one that was caught then is not."""
    senders = make_senders(setup)
    slack, teams = (chat.sender for chat in senders.chats)
    assert isinstance(slack, SlackSender)
    assert isinstance(teams, TeamsSender)
    services = stand_in_services().services
    assert TeamsReceiver(teams, services)._verifier._clock is right_time
    body = '{"type": "url_verification", "challenge": "x"}'
    async with served(SlackReceiver(slack, services)) as url, aiohttp.ClientSession() as http:
        answers = []
        for at in (right_time(), time.time()):
            headers = {"Content-Type": "application/json", **signed(SECRET, body, at)}
            async with http.post(f"{url}/slack/events", data=body, headers=headers) as response:
                answers.append(response.status)
    assert answers == [200, 401]
    await senders.close()
