"""What events do: messages, edits and deletions reach the services once, and what cannot be kept comes again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.slack.serving import serving


@pytest.mark.parametrize("first", ["app_mention", "message"])
async def test_a_mention_is_kept_once_whichever_event_comes_first(first: Any) -> None:
    async with serving() as product:
        said = await product.person().says("C1", "<@UBOT> hello", first=first)
        again = await product.person().again(said)
        assert (said.status, again.status) == (200, 200)
        assert [m.text for m in product.services.messages] == ["hello"]
        assert product.services.messages[0].key == f"slack:T1:C1:{said.ts}"


async def test_idle_talk_never_reaches_the_services() -> None:
    async with serving() as product:
        assert (await product.person().says("C1", "who wants cake?")).status == 200
        assert product.services.asked_to_keep == 0


async def test_a_message_that_cannot_be_kept_is_sent_again() -> None:
    async with serving() as product:
        product.services.broken = RuntimeError("the disk is full")
        said = await product.person().says("C1", "<@UBOT> hello")
        assert said.status == 503
        product.services.broken = None
        assert (await product.person().again(said)).status == 200
        assert len(product.services.messages) == 1


async def test_an_edit_an_unfurl_and_a_deletion_reach_the_desk_as_what_they_are() -> None:
    async with serving() as product:
        ana = product.person()
        said = await ana.says("C1", "<@UBOT> see https://example.com")
        await ana.unfurls(said.ts)
        assert product.services.amended == []
        await ana.edits(said.ts, "<@UBOT> never mind")
        assert product.services.amended == [(f"slack:T1:C1:{said.ts}", "never mind")]
        await ana.deletes(said.ts)
        assert product.services.withdrawn == [f"slack:T1:C1:{said.ts}"]


async def test_an_edit_that_adds_the_mention_is_kept_as_a_message() -> None:
    async with serving() as product:
        said = await product.person().says("C1", "hello")
        await product.person().edits(said.ts, "<@UBOT> hello")
        assert [m.text for m in product.services.messages] == ["hello"]
        assert product.services.amended == []


async def test_an_edit_that_adds_the_mention_amends_what_is_kept_already() -> None:
    async with serving() as product:
        root = await product.person().says("C1", "<@UBOT> hello")
        reply = await product.person().says("C1", "and one more", thread_ts=root.ts)
        await product.person().edits(reply.ts, "<@UBOT> and two more")
        assert product.services.amended == [(f"slack:T1:C1:{reply.ts}", "and two more")]


async def test_the_agent_container_suggests_how_to_begin() -> None:
    async with serving() as product:
        opened = await product.person().opens_assistant("C1")
        prompts = await product.slack.until(lambda: product.slack.prompts(opened.channel, opened.ts))
        assert 1 <= len(prompts) <= 4
        said = await product.person().says(opened.channel, "hi", thread_ts=opened.ts)
        assert [m.place.key for m in product.services.messages] == [f"slack:T1:{said.channel}:{opened.ts}"]


async def test_a_workspace_that_has_not_installed_us_is_answered_and_not_listened_to() -> None:
    async with serving() as product:
        product.slack.add_workspace(team="T2", name="Other", token="", bot_user="UBOT2", bot_id="BBOT2")
        product.slack.add_user("U9", team="T2", name="Zoe")
        product.slack.add_channel("C9", team="T2", members=["U9", "UBOT2"])
        said = await product.person("U9", "T2").says("C9", "<@UBOT2> hello")
        assert said.status == 200
        assert product.services.messages == []


async def test_a_name_is_looked_up_anew_when_it_changes() -> None:
    async with serving() as product:
        await product.person().commands("help", "C1")
        await product.person().says("C1", "<@UBOT> a")
        await product.person().renames("Anna")
        await product.person().commands("help", "C1")
        await product.person().says("C1", "<@UBOT> b")
        assert [m.author.name for m in product.services.messages] == ["Ana", "Anna"]


async def test_slacks_stop_button_ends_that_persons_turn() -> None:
    async with serving() as product:
        product.services.turns = {"slack:T1:C1:1700000000.000100": "slack:T1:U1"}
        event = {"type": "agent_session_stopped", "channel": "C1", "thread_ts": "1700000000.000100", "user": "U2"}
        for user in ("U2", "U1"):
            body = {"type": "event_callback", "team_id": "T1", "event": {**event, "user": user, "event_ts": "1.1"}}
            assert (await product.http.event(body)).status == 200
        assert product.services.stopped == [("slack:T1:C1:1700000000.000100", "slack:T1:U1")]


async def test_the_agent_views_messages_tab_suggests_how_to_begin() -> None:
    async with serving(agent_view=True) as product:
        assert (await product.person().opens_home(tab="messages")).status == 200
        (call,) = await product.slack.until(lambda: product.slack.calls_of("assistant.threads.setSuggestedPrompts"))
        assert call.arguments["channel_id"] == product.person().dm
        assert "thread_ts" not in call.arguments, "with one, Slack shows nothing in the agent view"


@pytest.mark.parametrize(("agent_view", "tail"), [(True, ":{ts}"), (False, "")])
async def test_a_direct_message_is_a_thread_only_in_the_agent_view(agent_view: Any, tail: str) -> None:
    async with serving(agent_view=agent_view) as product:
        dm = product.person().dm
        said = await product.person().says(dm, "hi")
        assert [m.place.key for m in product.services.messages] == [f"slack:T1:{dm}{tail.format(ts=said.ts)}"]
