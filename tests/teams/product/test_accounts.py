"""Tools that need a person's own account, from Teams: the link, the browser, the code, and the call goes on, once."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.teams.server import ANA, BEN
from tests.support.notes import SERVER
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import HttpTransport
from tests.teams.product.accounts import AccountStage, card_with, enters, entra, links_to, stage, with_client
from tests.teams.product.conftest import as_
from tests.teams.product.talk import Talk, buttons, words

__all__ = ["stage"]

WRITE = f"use {SERVER}__write what="


def talk_of(stage: AccountStage, transport: HttpTransport, user: str, where: str = "group") -> Talk:
    """A conversation of somebody's, in a place of each kind."""
    person = TeamsPerson(stage.teams, user, transport)
    places = {"personal": person.chat, "group": stage.teams.group, "channel": stage.teams.channel}
    return Talk(stage.teams, person, places[where])


async def test_link_browser_and_form_for_the_code_let_the_call_go_on_once(stage: AccountStage) -> None:
    async with stage.open() as transport:
        ana, ben = talk_of(stage, transport, ANA), talk_of(stage, transport, BEN)
        await ana.mentions(f"{WRITE}milk")
        card = await ana.says("Waiting for Ana Alvarez to connect their notes account")
        assert buttons(card) == ["get_link"]
        shown = await stage.visits(ana, "ana-at-notes")
        waiting = await card_with(ana, "code_dialog")
        assert "your browser shows a code" in words(waiting)
        wrong = await enters(ana, "CCCC-CCCC")
        assert "That’s not the code in your browser." in str(wrong.card)
        dialog = await ben.person.opens(ben.person.sees(waiting), "code_dialog")
        assert "for someone else" in str(dialog.card)
        assert stage.notes.written == []
        right = await enters(ana, shown.code.lower().replace("-", " "))
        assert "Your notes account is connected." in str(right.card)
        await ana.says("ana-at-notes wrote milk")
        done = await ana.says("Ana Alvarez connected their notes account.")
        assert buttons(done) == []
        assert links_to(ana) == [], "the message with the link is gone"
        await ana.mentions(f"{WRITE}bread")
        await ana.says("ana-at-notes wrote bread")
    assert stage.notes.written == [("ana-at-notes", "milk"), ("ana-at-notes", "bread")]


@pytest.mark.parametrize("where", ["personal", "group", "channel"])
async def test_a_code_may_be_a_message_and_no_model_sees_it(stage: AccountStage, where: str) -> None:
    async with stage.open() as transport:
        ana = talk_of(stage, transport, ANA, where)
        await ana.mentions(f"{WRITE}milk")
        await ana.says("Waiting for Ana Alvarez")
        code = (await stage.visits(ana, "ana-at-notes")).code
        said = await ana.person.says(ana.conversation, code)
        await ana.told("Your notes account is connected.")
        await ana.says("ana-at-notes wrote milk")
        await ana.person.says(ana.conversation, "and what was this?", quoting=said.id)
        await ana.says("You said: and what was this?")
    assert stage.notes.written == [("ana-at-notes", "milk")]


async def test_a_code_in_a_reply_needs_no_mention_where_everything_is_heard(stage: AccountStage) -> None:
    stage.teams.rsc = True
    async with stage.open() as transport:
        ana = talk_of(stage, transport, ANA, "channel")
        await ana.mentions(f"{WRITE}milk")
        await ana.says("Waiting for Ana Alvarez")
        await ana.replies(f" **{(await stage.visits(ana, 'ana-at-notes')).code}** ")
        await ana.says("ana-at-notes wrote milk")


async def test_whoever_is_talked_into_using_somebody_elses_link_connects_nothing(stage: AccountStage) -> None:
    """Ana sends Ben her own link. Ben goes along, and sees a code; neither of them can do anything with it."""
    async with stage.open() as transport:
        ana, ben = talk_of(stage, transport, ANA), talk_of(stage, transport, BEN, "personal")
        await ana.mentions(f"{WRITE}milk")
        link = await stage.link(ana)
        code = (await stage.visits(ana, "ben-at-notes", link)).code
        await ben.mentions(code)
        await ben.told("This code isn’t yours to give")
        await ana.mentions(f"it was {code}, he says")
        await ana.told("This code has expired")
        assert stage.notes.written == []
        assert not any("connected their notes account" in words(m) for m in ana.of_the_bot())
    assert stage.notes.written == []


async def test_entra_proves_who_it_is_without_any_code(stage: AccountStage) -> None:
    async with entra(stage.teams) as login_url:
        with_client(stage, login_url)
        stage.home.variables["LOG_LEVEL"] = "info"
        async with stage.open_without_learning() as transport:
            ana = talk_of(stage, transport, ANA)
            await ana.mentions(f"use {SERVER}__sign_in")
            link = await stage.link(ana)
            refused = await stage.visits(ana, "ben", link)
            assert refused.status == 403, refused.words
            assert 'class="code"' not in refused.text
            assert not any("connected their notes account" in words(m) for m in ana.of_the_bot())
            await ana.clicks(await card_with(ana, "get_link"), "get_link")
            shown = await stage.visits(ana, "ana")
            assert "is connected" in shown.words
            await ana.says("Results:", "write")


SEVERAL = 4


@pytest.mark.parametrize("where", ["group", "channel"])
async def test_several_people_in_one_place_each_see_only_their_own_link(stage: AccountStage, where: str) -> None:
    users = [f"e0000000-0000-4000-8000-0000000000{n:02}" for n in range(SEVERAL)]
    for number, user in enumerate(users):
        stage.teams.add_user(user, name=f"Person {number}")
        for place in (stage.teams.group, stage.teams.channel):
            stage.teams.world.conversations[place].members.add(user)
    async with stage.open() as transport:
        talks = [talk_of(stage, transport, user, where) for user in users]
        cards = []
        for n, talk in enumerate(talks):
            await talk.mentions(f"{WRITE}n{n}")
            cards.append(await talk.says(f"Waiting for Person {n} to"))
        links = [await stage.link(talk) for talk in talks]
        assert len(set(links)) == SEVERAL
        assert [links_to(talk) for talk in talks] == [[link] for link in links]
        for n, card in enumerate(cards):
            others = as_(talks[(n + 1) % SEVERAL].person, talks[n])
            assert "for someone else" in (await others.clicks(card, "get_link")).message
        await asyncio.gather(*(stage.signs_in_here(talk, f"p{n}-at-notes") for n, talk in enumerate(talks)))
        answers = [f"p{n}-at-notes wrote n{n}" for n in range(SEVERAL)]
        await stage.teams.until(lambda: all(map(_is_said, talks, answers)))
    assert sorted(stage.notes.written) == [(f"p{n}-at-notes", f"n{n}") for n in range(SEVERAL)]


def _is_said(talk: Talk, answer: str) -> bool:
    return any(answer in words(message) for message in talk.of_the_bot())


async def test_accounts_are_listed_and_disconnected_by_their_owner(stage: AccountStage) -> None:
    async with stage.open() as transport:
        ana, ben = talk_of(stage, transport, ANA, "personal"), talk_of(stage, transport, BEN, "personal")
        await ana.mentions(f"{WRITE}milk")
        await stage.signs_in(ana, "ana-at-notes")
        await ana.says("ana-at-notes wrote milk")
        await ben.mentions("connections")
        await ben.says("No connected accounts.")
        await ana.mentions("connections")
        listed = await ana.says("Your accounts", "notes", "Last used")
        dialog = await ana.opens(listed, "disconnect_dialog")
        ended = await ana.submits(dialog, "disconnect")
        assert "Your notes account is disconnected." in str(ended.card)
        assert stage.notes.server.count("POST /revoke") > 0
        await ana.mentions("connections")
        await ana.says("No connected accounts.")
        await ana.mentions(f"{WRITE}bread")
        await stage.signs_in(ana, "ana-at-notes")
        await ana.says("ana-at-notes wrote bread")
