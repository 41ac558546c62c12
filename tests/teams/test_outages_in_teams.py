"""Rule 1: while the records are away, Teams is told that nothing was taken, and whoever waits that they have to try
again."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from adapters.shared.outages import AWAY as SENTENCE
from tests.fakes.teams.server import BEN
from tests.support.outage import AWAY, GONE
from tests.teams.serving import Served, a_card, a_sign_in, serving

LIKED = {"actionName": "feedback", "actionValue": {"reaction": "like"}}


@pytest.fixture
async def product() -> AsyncIterator[Served]:
    async with serving() as product:
        yield product


@pytest.mark.parametrize("fault", AWAY.values(), ids=AWAY)
async def test_what_is_not_kept_is_refused_until_it_is_and_said_once(product: Served, fault: Exception) -> None:
    ana = product.person()
    product.services.broken = fault
    with capture_logs() as logged:
        said = await ana.says(product.teams.channel, "delete the stand-up")
        again = await ana.again(said)
        installed = await ana.installs()
    assert {said.status, again.status, *(each.status for each in installed)} == {503}
    assert said.json == {"error": SENTENCE}
    told = [line for line in logged if line["log_level"] in {"warning", "error"}]
    assert [(line["event"], line["what"]) for line in told] == [("requests_refused", "POST /api/messages")]
    assert not any(line.get("exc_info") for line in logged)
    product.services.broken = None
    with capture_logs() as logged:
        assert (await ana.again(said)).status == 200
    assert [message.text for message in product.services.messages] == ["delete the stand-up"]
    assert "requests_taken_again" in [line["event"] for line in logged]


async def test_who_clicks_or_sends_a_form_reads_it(product: Served) -> None:
    card = await a_card(product)
    link = await product.card(a_sign_in(code_wanted=True), await product.thread())
    product.services.broken = product.services.unreadable = GONE
    ben = product.person(BEN)
    with capture_logs() as logged:
        for _ in range(3):
            clicked = await ben.clicks(card, "approve")
            opened = await product.person().opens(link, "code_dialog")
            rated = await ben.invokes("message/submitAction", LIKED, card["conversation"], card["id"])
    assert clicked.json == {
        "statusCode": 200,
        "type": "application/vnd.microsoft.activity.message",
        "value": SENTENCE,
    }
    assert SENTENCE in str(opened.json)
    assert rated.status == 503  # nobody reads its answer
    assert product.services.approvals["call-1.1"].status == "pending"
    assert [line["event"] for line in logged if line["log_level"] in {"warning", "error"}] == ["requests_refused"]
