"""Accounts in Slack, the whole way: a real OAuth server, real browsers, and a channel in which others read along."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.fakes.oauth import Browser, ProtectedServer, Shown, protected_server
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, fake_openai
from tests.fakes.slack.server import FakeSlack
from tests.slack.product.conftest import as_
from tests.slack.product.scanned import scanned
from tests.slack.product.talk import Talk, buttons, words
from tests.support.brain import obedient
from tests.support.product import ProductFolder
from tests.support.product_records import all_that_is_kept
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import Transport

__all__ = ["scanned"]

Json = dict[str, Any]

ALLOWED = "version: 1\nrules: [{name: notes are free, match: {server: notes}, decide: allow}]"
LINK = re.compile(r"http://127\.0\.0\.1:\d+/oauth/start\?s=[\w-]+")
EVERYBODY = tuple(f"U1{n}" for n in range(4))


@pytest.fixture
async def notes() -> AsyncIterator[ProtectedServer]:
    """A tool server that wants everybody's own account."""
    async with protected_server() as server:
        yield server


@pytest.fixture
def home(home: ProductFolder, notes: ProtectedServer) -> ProductFolder:
    """The product with that server, which needs no approvals."""
    home.tool_servers({"notes": {"url": notes.url, "auth": "oauth"}})
    home.policy(ALLOWED)
    return home


@pytest.fixture
def may_end() -> asyncio.Event:
    """Set it, and the model has thought for long enough about what is to be done slowly."""
    return asyncio.Event()


@pytest.fixture
async def model(may_end: asyncio.Event) -> AsyncIterator[FakeOpenAI]:
    """A model service that does what the message says, and takes its time where it says so."""

    def brain(request: Request) -> Reply:
        if str(request["messages"][-1]["content"]).endswith("slowly"):
            return Reply(text="At last.", wait_for=may_end)
        return obedient(request)

    async with fake_openai(brain) as server:
        yield server


def links_of(slack: FakeSlack, user: str) -> list[str]:
    """The links that one person was shown, each once."""
    return list(dict.fromkeys(LINK.findall(str(slack.ephemerals(user)))))


async def link_for(slack: FakeSlack, user: str) -> str:
    """Wait for a person's link."""
    return str((await slack.until(lambda: links_of(slack, user)))[-1])


async def signs_in(link: str, user: str) -> Shown:
    """Open a link and consent, in the browser of somebody who is known to the service as `user`."""
    async with Browser(user) as browser:
        return await browser.press(await browser.open(link))


async def has_got_it_again_and_been_refused(slack: FakeSlack, user: str) -> None:
    """Wait until somebody was given their own link twice, and told that another is not for them."""
    await slack.until(lambda: len(LINK.findall(str(slack.ephemerals(user)))) >= 2)
    await slack.until(lambda: "is for some" in str(slack.ephemerals(user)))


async def wants_a_code(talk: Talk) -> Json:
    """Wait until the card waits for a code."""
    return dict(
        await talk.slack.until(lambda: next((m for m in talk.of_the_bot() if "enter_code" in buttons(m)), None))
    )


# --------------------------------------------------------------------------------------------------- one person


async def test_from_the_card_to_the_result_with_the_code_in_its_form(
    talk: Talk, ben: SlackPerson, slack: FakeSlack
) -> None:
    await talk.mentions("use notes__sign_in")
    card = await talk.says("Waiting for Ana to sign in to notes")
    await as_(ben, talk).clicks(card, "get_link")
    await as_(ben, talk).told("is for some")
    shown = await signs_in(await link_for(slack, "U1"), "ana")
    card = await wants_a_code(talk)
    await as_(ben, talk).clicks(card, "enter_code")
    await as_(ben, talk).told("Only the person signing in")
    view = await talk.opens(card, "enter_code")
    wrong = await talk.submits(view, code="CCCC-CCCC")
    assert "not the code" in str(wrong.errors)
    right = await talk.submits(view, code=shown.code)
    assert "is connected" in words(right.view)
    await talk.says("Results:")
    await talk.says("Ana connected their notes account.")
    await talk.mentions("use notes__whoami")
    await talk.says("Results: ana")


async def test_further_tries_in_the_same_form_are_counted(talk: Talk, slack: FakeSlack) -> None:
    await talk.mentions("use notes__sign_in")
    shown = await signs_in(await link_for(slack, "U1"), "ana")
    view = await talk.opens(await wants_a_code(talk), "enter_code")
    for letter, left in zip("CDF", (4, 3, 2), strict=True):
        assert f"{left} tries left" in str((await talk.submits(view, code=f"CCCC-CCC{letter}")).errors)
    assert "1 try left" in str((await talk.submits(view, code="CCCC-CCCG")).errors)
    last = await talk.submits(view, code="CCCC-CCCH")
    assert "last try" in words(last.view)
    right = await talk.person.submits(view, {"code": shown.code})
    assert "is connected" not in words(right.view)
    await slack.until(lambda: not any("enter_code" in buttons(m) for m in talk.of_the_bot()))


async def test_my_accounts_are_listed_and_disconnected(
    talk: Talk, ben: SlackPerson, slack: FakeSlack, notes: ProtectedServer
) -> None:
    await talk.mentions("use notes__sign_in")
    shown = await signs_in(await link_for(slack, "U1"), "ana")
    await talk.replies(shown.code)
    await talk.says("Results:")
    await ben.commands("connections", "C1")
    await as_(ben, talk).told("No connected accounts")
    await talk.person.commands("connections", "C1")
    listed = await talk.told("Connected accounts", "notes")
    await talk.person.opens_home()
    await slack.until(lambda: "Connected accounts" in words(slack.home("U1")))
    await talk.clicks(listed, "disconnect")
    await talk.told("Your notes account is disconnected")
    await slack.until(lambda: notes.count("POST /revoke"))
    assert notes.tokens == {}
    await talk.person.opens_home()
    await slack.until(lambda: "Connected accounts" not in words(slack.home("U1")))
    before = links_of(slack, "U1")
    await talk.mentions("use notes__whoami")
    await slack.until(lambda: len(links_of(slack, "U1")) > len(before))


async def test_somebody_whom_no_ephemeral_message_reaches_gets_the_link_directly(talk: Talk, slack: FakeSlack) -> None:
    slack.fail("chat.postEphemeral", error="user_not_in_channel", times=1)
    await talk.mentions("use notes__sign_in")
    await slack.until(lambda: LINK.search(str(slack.messages("D1"))))
    assert not LINK.search(str(slack.messages("C1")))


# --------------------------------------------------------------------------------------------------- codes


@pytest.mark.parametrize("written", ["{code}", "{bot} {code}", "`{lower}`"])
async def test_a_code_written_in_the_thread_is_taken_and_stands_nowhere_else(
    talk: Talk, slack: FakeSlack, home: ProductFolder, model: FakeOpenAI, ben: SlackPerson, written: str
) -> None:
    with capture_logs() as logs:
        await talk.mentions("use notes__sign_in")
        link = await link_for(slack, "U1")
        shown = await signs_in(link, "ana")
        code = shown.code
        await talk.replies(written.format(code=code, bot=talk.person.bot, lower=code.lower()))
        await talk.told("Your notes account", "connected")
        await talk.says("Results:")
        await as_(ben, talk).mentions("what was said here?")  # with what was said before it as its background
        await talk.says("what was said here?")
    seen = {
        "posts": str([m for m in slack.messages("C1") if m.get("bot_id")]) + str(slack.ephemerals("U2")),
        "told": str(slack.ephemerals("U1")),
        "model requests": str(model.requests),
        "logs": str(logs),
        **dict(all_that_is_kept(home)),
    }
    token = link.partition("?s=")[2]
    for where, text in seen.items():
        assert code not in text.upper(), where
        assert where == "told" or token not in text, where


async def test_a_code_amid_other_words_is_taken_too_and_told_no_model(
    talk: Talk, ben: SlackPerson, slack: FakeSlack, model: FakeOpenAI
) -> None:
    await talk.mentions("use notes__sign_in")
    shown = await signs_in(await link_for(slack, "U1"), "ana")
    await talk.replies(f"it says {shown.code.lower()}, is that right?")
    await talk.told("Your notes account", "connected", "read the rest")
    await talk.says("Results:")
    await as_(ben, talk).mentions("what was said here?")  # with what was said before it as its background
    await talk.says("what was said here?")
    assert "is that right" not in str(model.requests)


async def test_a_code_in_a_direct_message_is_taken(slack: FakeSlack, ana: SlackPerson, talk: Talk) -> None:
    await talk.mentions("use notes__sign_in")
    shown = await signs_in(await link_for(slack, "U1"), "ana")
    await ana.says("D1", shown.code)
    await talk.says("Results:")
    assert shown.code not in str([m for m in slack.messages("D1") if m.get("bot_id")])


async def test_a_code_after_the_command_is_taken_and_not_posted(slack: FakeSlack, talk: Talk) -> None:
    await talk.mentions("use notes__sign_in")
    shown = await signs_in(await link_for(slack, "U1"), "ana")
    await talk.person.commands(shown.code, "C1")
    await talk.told("Your notes account", "connected")
    await talk.says("Results:")
    assert shown.code not in str(slack.messages("C1"))


async def test_a_message_that_waits_and_is_edited_into_a_code_is_taken_too(
    slack: FakeSlack, talk: Talk, model: FakeOpenAI, home: ProductFolder, may_end: asyncio.Event
) -> None:
    await talk.mentions("use notes__sign_in")
    shown = await signs_in(await link_for(slack, "U1"), "ana")
    busy = Talk(slack, talk.person, "C1")
    await busy.mentions("think slowly")
    await slack.until(lambda: "slowly" in str(model.requests))
    waiting = await talk.person.says("C1", "one moment", thread_ts=busy.thread_ts)
    await talk.person.edits(waiting.ts, shown.code)
    await busy.told("Your notes account", "connected")
    may_end.set()
    await busy.says("At last.")
    await talk.says("Results:")
    await busy.mentions("what now?")
    await busy.says("You said: what now?")
    for text in (str(model.requests), *(text for _, text in all_that_is_kept(home))):
        assert shown.code not in text


async def test_the_code_of_another_is_of_no_use_and_is_told_so(
    talk: Talk, ben: SlackPerson, slack: FakeSlack, notes: ProtectedServer
) -> None:
    """Ana is sent Ben's link and signs in with it: what her browser shows connects nothing, whoever tells it."""
    theirs = Talk(slack, ben, "C1")
    await theirs.mentions("use notes__sign_in")
    shown = await signs_in(await link_for(slack, "U2"), "ana")
    await talk.mentions("hello")
    await talk.says("You said: hello")
    await talk.replies(shown.code)
    await talk.told("isn’t yours to give")
    await theirs.replies(shown.code)  # which Ben could read in the channel
    await theirs.told("This code has expired")
    await ben.commands("connections", "C1")
    await theirs.told("No connected accounts")


# --------------------------------------------------------------------------------------------------- ten people


async def test_several_people_in_one_channel_each_see_only_their_own_link(
    slack: FakeSlack, transport: Transport, home: ProductFolder, model: FakeOpenAI, notes: ProtectedServer
) -> None:
    for user in EVERYBODY:
        slack.add_user(user, name=f"Person {user}")
        slack.world.channels["C1"].members.add(user)
    talks = {user: Talk(slack, SlackPerson(slack, "T1", user, transport), "C1") for user in EVERYBODY}
    await asyncio.gather(*(talk.mentions("use notes__sign_in") for talk in talks.values()))
    links = {user: await link_for(slack, user) for user in EVERYBODY}
    for user, talk in talks.items():  # each asks for it again, and clicks what is somebody else's
        card = await talk.says("Waiting for Person")
        await talk.clicks(card, "get_link")
        await as_(talks[EVERYBODY[EVERYBODY.index(user) - 1]].person, talk).clicks(card, "get_link")
    for user in EVERYBODY:
        await has_got_it_again_and_been_refused(slack, user)
    assert len(set(links.values())) == len(EVERYBODY)
    for user, link in links.items():
        assert links_of(slack, user) == [link]
    assert not LINK.search(str(slack.messages("C1")))
    assert not LINK.search(str(model.requests))
    pages = await asyncio.gather(*(signs_in(link, f"account-of-{user}") for user, link in links.items()))
    for (_, talk), page in zip(talks.items(), pages, strict=True):
        await talk.replies(page.code)
    for talk in talks.values():
        await talk.says("Results:")
    assert {token.subject for token in notes.tokens.values()} == {f"account-of-{user}" for user in EVERYBODY}
    for user in EVERYBODY[:2]:
        await talks[user].mentions("use notes__whoami")
        await talks[user].says(f"Results: account-of-{user}")
    tokens = [link.partition("?s=")[2] for link in links.values()] + [page.code for page in pages]
    for where, text in all_that_is_kept(home):
        assert [secret for secret in tokens if secret in text] == [], where
