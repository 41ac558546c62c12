"""A call of another agent that is decided by a click in Slack."""

from __future__ import annotations

import asyncio

import pytest

from app import ConfigurationError
from tests.fakes.slack.server import fake_slack
from tests.gateway.agents import agent, texts
from tests.slack.product.conftest import SECRET, connected
from tests.slack.product.talk import buttons, words
from tests.support.product import ProductFolder, product_here
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport
from tests.support.tools import Workshop

IN_A_CHANNEL = """
version: 1
rules:
  - {name: making is for the channel to decide, match: {tool: make, client: "cur*"}, decide: ask, approvers: [channel]}
"""


async def test_somebody_in_the_channel_of_the_gateway_decides(agents_home: ProductFolder, shop: Workshop) -> None:
    agents_home.policy(IN_A_CHANNEL)
    agents_home.variables["GATEWAY_PLACE"] = "slack:T1:C1"
    async with fake_slack() as slack:
        agents_home.variables |= connected(slack)
        async with product_here(agents_home) as url, agent(url) as cursor:
            ben = SlackPerson(slack, "T1", "U2", HttpTransport(f"{url}/slack/events", SECRET))
            call = asyncio.create_task(cursor.call_tool("workshop__make", {"what": "lamp"}))
            (card,) = await slack.until(lambda: [m for m in slack.messages("C1") if "approve" in buttons(m)])
            assert "through cursor" in words(card)
            assert (await ben.clicks(card, "approve")).status == 200
            assert texts(await call) == ["made lamp"]
        assert slack.product_mistakes == []
    assert shop.done == ["make lamp 1"]


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("slack:T1:C1", "Slack is not connected"),
        ("teams:t1:19:x@thread.tacv2", "Teams is not connected"),
        ("web:nobody", "no one signs in on the page under that id"),
    ],
)
async def test_where_nobody_can_be_asked_is_no_place_for_the_gateway(
    agents_home: ProductFolder, place: str, why: str
) -> None:
    agents_home.variables["GATEWAY_PLACE"] = place
    with pytest.raises(ConfigurationError, match=f"GATEWAY_PLACE: nobody can be asked at {place}: {why}"):
        async with product_here(agents_home):
            pass


async def test_nor_is_the_page_where_it_is_off(agents_home: ProductFolder) -> None:
    async with fake_slack() as slack:
        agents_home.variables |= connected(slack) | {"GATEWAY_PLACE": "web:ana", "WEB_ENABLED": "false"}
        with pytest.raises(ConfigurationError, match=r"the page is off\. Take out WEB_ENABLED=false"):
            async with product_here(agents_home):
                pass
