"""Tools that need a person's own account: the link, the browser, and the same call goes on, once."""

from __future__ import annotations

import asyncio
import re

from yarl import URL

from tests.fakes.oauth import Browser
from tests.product.accounts import AccountStage, stage
from tests.support.notes import asked_for_link, asked_to_sign_in, browser_of, link_of, signs_in
from tests.support.product import product_here
from tests.support.visitor import visiting

__all__ = ["stage"]


async def test_a_first_sign_in_lets_the_same_call_go_on_once(stage: AccountStage) -> None:
    async with product_here(stage.home) as url:
        await stage.learn_the_tools(url)
        async with stage.writing(url, "ana") as ana:
            await ana.send("use notes__write what=milk")
            (sign_in,) = await asked_to_sign_in(ana)
            assert (sign_in["owner"], sign_in["service"]) == ("Ana", "notes")
            shown = await signs_in(stage.notes, ana, "ana-at-notes")
            assert "is connected" in shown.words
            await ana.says("ana-at-notes wrote milk")
            stage.look_into_the_records()
            await asked_to_sign_in(ana, "done")
            await ana.send("use notes__write what=bread")
            await ana.says("ana-at-notes wrote bread")
            assert len(ana.contents("sign_in")) == 1
            health = (await ana.visitor.get("/health-check")).body
            assert health["connections"] == {"notes": 2}
    assert stage.notes.written == [("ana-at-notes", "milk"), ("ana-at-notes", "bread")]


async def test_two_people_at_once_act_with_their_own_accounts(stage: AccountStage) -> None:
    async with product_here(stage.home) as url:
        await stage.learn_the_tools(url)
        async with stage.writing(url, "ana") as ana, stage.writing(url, "ben") as ben:
            await asyncio.gather(ana.send("use notes__write what=one"), ben.send("use notes__write what=two"))
            await asyncio.gather(signs_in(stage.notes, ana, "a-notes"), signs_in(stage.notes, ben, "b-notes"))
            await asyncio.gather(ana.says("a-notes wrote one"), ben.says("b-notes wrote two"))
            for n in range(3):
                await asyncio.gather(ana.send(f"use notes__write what=a{n}"), ben.send(f"use notes__write what=b{n}"))
                await asyncio.gather(ana.says(f"a-notes wrote a{n}"), ben.says(f"b-notes wrote b{n}"))
    assert sorted(stage.notes.written) == sorted(
        [("a-notes", "one"), ("b-notes", "two"), *((f"{who}-notes", f"{who}{n}") for who in "ab" for n in range(3))]
    )


async def test_an_approvers_account_is_never_used(stage: AccountStage) -> None:
    stage.home.policy(
        "version: 1\nrules:\n  - {name: sign in, match: {tool: sign_in}, decide: allow}\n"
        '  - {name: others decide, match: {}, decide: ask, approvers: ["web:chloe"], selfApproval: fourEyes}\n'
    )
    async with product_here(stage.home) as url:
        await stage.learn_the_tools(url)
        async with stage.writing(url, "ana") as ana, visiting(url, "chloe") as chloe:
            await ana.send("use notes__write what=lamp")
            (card,) = await ana.waiting()
            async with chloe.thread(ana.thread_id) as seen:
                await seen.approve(card["id"])
                (sign_in,) = await asked_to_sign_in(ana)
                assert sign_in["owner"] == "Ana"
                assert (await asked_for_link(chloe, sign_in)).status == 404
            await signs_in(stage.notes, ana, "ana-at-notes")
            await ana.says("ana-at-notes wrote lamp")
    assert stage.notes.written == [("ana-at-notes", "lamp")]


async def test_an_account_that_was_connected_before_is_used_without_asking(stage: AccountStage) -> None:
    async with product_here(stage.home) as url:
        await stage.learn_the_tools(url)
        async with stage.writing(url, "ana") as ana, browser_of(ana.visitor, "ana-at-notes") as browser:
            known = (await ana.visitor.get("/api/connections")).body
            assert [each["provider"] for each in known["services"]] == ["notes"]
            link = (await ana.visitor.post("/api/connections/notes/link", {})).body["url"]
            shown = await stage.notes.consents(browser, link)
            assert "is connected for Ana" in shown.words
            assert "goes on" not in shown.words
            await ana.send("use notes__write what=milk")
            await ana.says("ana-at-notes wrote milk")
            assert ana.contents("sign_in") == []
            known = (await ana.visitor.get("/api/connections")).body
            assert ([each["status"] for each in known["connections"]], known["services"]) == (["active"], [])


async def test_two_calls_wait_for_one_sign_in_and_each_goes_on_once(stage: AccountStage) -> None:
    async with product_here(stage.home) as url:
        await stage.learn_the_tools(url)
        async with stage.writing(url, "ana") as ana, stage.writing(url, "ana") as elsewhere:
            await ana.send("use notes__write what=one; notes__write what=two")
            await elsewhere.send("use notes__write what=three")
            both = await asked_to_sign_in(ana, count=2)
            (third,) = await asked_to_sign_in(elsewhere)
            links = {await link_of(stage.notes, ana.visitor, each) for each in (*both, third)}
            assert len(links) == 1
            async with browser_of(ana.visitor, "ana-at-notes") as browser:
                await stage.notes.consents(browser, links.pop())
            await ana.says("wrote one", "wrote two")
            await elsewhere.says("wrote three")
    assert sorted(stage.notes.written) == [("ana-at-notes", what) for what in ("one", "three", "two")]


async def test_a_preview_of_the_link_uses_nothing_up(stage: AccountStage) -> None:
    async with product_here(stage.home) as url:
        await stage.learn_the_tools(url)
        async with stage.writing(url, "ana") as ana:
            await ana.send("use notes__write what=milk")
            (sign_in,) = await asked_to_sign_in(ana)
            link = await link_of(stage.notes, ana.visitor, sign_in)
            asked = len(stage.notes.server.asked)
            async with Browser() as preview:
                for _ in range(3):
                    assert (await preview.open(link)).status == 200
                async with preview.session.head(link) as head:
                    assert head.status == 405
            assert len(stage.notes.server.asked) == asked
            async with browser_of(ana.visitor, "ana-at-notes") as browser:
                await stage.notes.consents(browser, link)
            await ana.says("ana-at-notes wrote milk")
    assert stage.notes.written == [("ana-at-notes", "milk")]


async def test_somebody_else_who_opens_the_link_connects_nothing(stage: AccountStage) -> None:
    async with product_here(stage.home) as url:
        await stage.learn_the_tools(url)
        async with stage.writing(url, "ana") as ana, visiting(url, "ben") as ben:
            await ana.send("use notes__write what=milk")
            (sign_in,) = await asked_to_sign_in(ana)
            link = await link_of(stage.notes, ana.visitor, sign_in)
            registered = len(stage.notes.server.asked)
            async with browser_of(ben, "ben-at-notes") as victim, Browser("nobody") as stranger:
                shown = await stage.notes.consents(victim, link)
                assert shown.status == 403, shown.words
                assert "This link is for someone other than who is signed in" in shown.words
                assert len(stage.notes.server.asked) == registered
                # Whoever has no session there may be its owner: the code that their browser shows tells.
                assert (await stage.notes.consents(stranger, link)).code
            assert stage.notes.written == []
            await signs_in(stage.notes, ana, "ana-at-notes")
            await ana.says("ana-at-notes wrote milk")
    assert stage.notes.written == [("ana-at-notes", "milk")]


async def test_a_callback_in_another_browser_and_one_that_comes_twice_connect_nothing(stage: AccountStage) -> None:
    async with product_here(stage.home) as url:
        await stage.learn_the_tools(url)
        async with stage.writing(url, "ana") as ana, browser_of(ana.visitor, "ana-at-notes") as browser:
            await ana.send("use notes__write what=milk")
            (sign_in,) = await asked_to_sign_in(ana)
            browser.stop_at = f"{url}/oauth/callback"
            stopped = await stage.notes.consents(browser, await link_of(stage.notes, ana.visitor, sign_in))
            browser.stop_at = ""
            stage.look_into_the_records()
            for cookies in ({}, {"countersign-oauth": "x" * 43}):
                async with browser_of(ana.visitor, "ben-at-notes") as other:
                    other.session.cookie_jar.update_cookies(cookies, URL(url))
                    shown = await other.open(stopped.url)
                    assert (shown.status, "another browser" in shown.words) == (403, True)
            forged = re.sub(r"state=[^&]*", "state=of-nobody", stopped.url)
            assert "This sign-in is no longer open" in (await browser.open(forged)).words
            assert stage.notes.written == []
            assert "is connected" in (await browser.open(stopped.url)).words
            again = await browser.open(stopped.url)
            assert (again.status, "This link was already used" in again.words) == (409, True)
            await ana.says("ana-at-notes wrote milk")
    assert stage.notes.written == [("ana-at-notes", "milk")]


async def test_whoever_denies_consent_can_still_change_their_mind(stage: AccountStage) -> None:
    async with product_here(stage.home) as url:
        await stage.learn_the_tools(url)
        async with stage.writing(url, "ana") as ana:
            await ana.send("use notes__write what=milk")
            stage.notes.server.denying = True
            shown = await signs_in(stage.notes, ana, "ana-at-notes")
            assert "Nothing was connected You declined." in shown.words
            assert (await ana.visitor.get("/api/connections")).body["connections"] == []
            await asked_to_sign_in(ana)
            stage.notes.server.denying = False
            await signs_in(stage.notes, ana, "ana-at-notes")
            await ana.says("ana-at-notes wrote milk")
    assert stage.notes.written == [("ana-at-notes", "milk")]
