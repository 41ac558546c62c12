"""Sign in with Slack: the browser proves whose it is, so that no code is needed and no link is of use to others."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.fakes.oauth import Browser, IdentityFake, ProtectedServer, protected_server, slack_user
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.slack.product.scanned import scanned
from tests.slack.product.talk import Talk, buttons, words
from tests.slack.product.test_accounts import ALLOWED, link_for, signs_in
from tests.support.product import ProductFolder
from tests.support.slack_people import SlackPerson

__all__ = ["scanned"]


@pytest.fixture
def login() -> IdentityFake:
    """Sign in with Slack; Ana and Ben are signed in to Slack in their browsers."""
    people = {"ana": slack_user("T1", "U1"), "ben": slack_user("T1", "U2"), "elsewhere": slack_user("T9", "U1")}
    return IdentityFake("1234.5678", "our-client-secret-0123456789abcdef", people)


@pytest.fixture
async def slack(login: IdentityFake) -> AsyncIterator[FakeSlack]:
    """Slack, with that."""
    async with fake_slack(login) as server:
        yield server
        assert server.product_mistakes == []


@pytest.fixture
async def notes() -> AsyncIterator[ProtectedServer]:
    """A tool server that wants everybody's own account."""
    async with protected_server() as server:
        yield server


@pytest.fixture
def home(home: ProductFolder, notes: ProtectedServer, login: IdentityFake) -> ProductFolder:
    """The product with that server, and with Slack's proof."""
    home.tool_servers({"notes": {"url": notes.url, "auth": "oauth"}})
    home.policy(ALLOWED)
    home.variables |= {"SLACK_CLIENT_ID": login.client_id, "SLACK_CLIENT_SECRET": login.client_secret}
    return home


async def test_whoever_proves_who_they_are_needs_no_code(talk: Talk, slack: FakeSlack, login: IdentityFake) -> None:
    await talk.mentions("use notes__sign_in")
    shown = await signs_in(await link_for(slack, "U1"), "ana")
    assert "is connected" in shown.words
    await talk.says("Results:")
    await talk.says("Ana connected their notes account.")
    assert login.asked[0]["team"] == "T1"
    assert not any("enter_code" in buttons(message) for message in talk.of_the_bot())


@pytest.mark.parametrize("visitor", ["ana", "elsewhere", "nobody"])
async def test_the_link_of_another_ends_before_the_service(
    slack: FakeSlack, ana: SlackPerson, ben: SlackPerson, notes: ProtectedServer, visitor: str
) -> None:
    """Ben's link, in the browser of Ana, of Ana's namesake in another workspace, of somebody who is not in Slack."""
    theirs = Talk(slack, ben, "C1")
    await theirs.mentions("use notes__sign_in")
    link = await link_for(slack, "U2")
    shown = await signs_in(link, visitor)
    assert shown.status == 403, shown.words
    assert notes.asked == []
    assert notes.tokens == {}
    await ben.commands("connections", "C1")
    await theirs.told("No connected accounts")
    await ana.commands("connections", "C1")
    await Talk(slack, ana, "C1").told("No connected accounts")
    assert any("get_link" in buttons(message) for message in theirs.of_the_bot()), "it still waits for Ben"


async def test_its_owner_can_use_it_after_somebody_else_has_tried(
    slack: FakeSlack, ben: SlackPerson, notes: ProtectedServer
) -> None:
    theirs = Talk(slack, ben, "C1")
    await theirs.mentions("use notes__sign_in")
    await signs_in(await link_for(slack, "U2"), "ana")
    card = next(message for message in theirs.of_the_bot() if "get_link" in buttons(message))
    await theirs.clicks(card, "get_link")
    await slack.until(lambda: str(slack.ephemerals("U2")).count("/oauth/start?s=") >= 2)
    assert "is connected" in (await signs_in(await link_for(slack, "U2"), "ben")).words
    await theirs.says("Results:")
    assert {token.subject for token in notes.tokens.values()} == {"ben"}


async def test_previews_of_a_link_use_nothing_up(talk: Talk, slack: FakeSlack, notes: ProtectedServer) -> None:
    await talk.mentions("use notes__sign_in")
    link = await link_for(slack, "U1")
    asked_before = list(notes.asked)
    async with Browser() as preview:
        for _ in range(3):
            assert (await preview.open(link)).status == 200
    assert notes.asked == asked_before
    assert "is connected" in (await signs_in(link, "ana")).words
    assert "/oauth/start" not in words({"text": str(slack.messages("C1"))})
