"""Documents are found by whom they are kept for, and where: over two people, two channels of each of two platforms,
their own chats, the gateway and the API."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from tests.both.conftest import Both
from tests.both.test_calls_of_programs import IN_SLACK, IN_TEAMS, signed_in
from tests.fakes.openai_server import Reply, Request, ToolUse, fake_openai
from tests.fakes.teams.server import ANA, BEN
from tests.slack.product.talk import Talk as SlackTalk
from tests.slack.product.talk import words as slack_words
from tests.support.product import product_here
from tests.support.slack_people import SlackPerson
from tests.support.teams_people import TeamsPerson
from tests.teams.product.talk import Talk as TeamsTalk
from tests.teams.product.talk import words as teams_words

POLICY = """
version: 1
rules:
  - {name: here without asking, match: {server: documents}, decide: allow}
"""


def librarian(request: Request) -> Reply:
    """A model that keeps what it is told to, for whom it is told to, and says what it finds."""
    last = [m for m in request["messages"] if m["role"] in {"user", "tool"}][-1]
    text = str(last["content"])
    if last["role"] == "tool":
        return Reply("found: " + " ".join(sorted(set(re.findall(r'"name": "(of \w+ \w+)"', text)))) + ".")
    if keep := re.search(r"keep (of \w+ \w+) for (\w+)", text):
        given = {"name": keep[1], "text": f"The colour {keep[1]} is green.", "keep_for": keep[2]}
        return Reply(calls=[ToolUse("documents__add_document", given)])
    return Reply(calls=[ToolUse("documents__search_documents", {"query": "colour"})])


def names_in(text: str) -> set[str]:
    return set(re.findall(r"of \w+ \w+", text.rpartition("found: ")[2]))


async def test_documents_are_found_where_they_are_kept_and_nowhere_else(both: Both) -> None:
    async with fake_openai(librarian) as model:
        both.home.variables |= {"OPENAI_BASE_URL": model.base_url}
        both.home.bundled_tool_servers("documents")
        both.home.policy(POLICY)
        async with product_here(both.home) as url:
            places = _places(both, url)
            for name, kept_for in KEPT.items():
                await places[name](f"keep {name} for {kept_for}")
            await places["of ana slack"]("keep of all everybody for everybody")
            assert {name: names_in(await ask("find")) for name, ask in places.items()} == {
                name: {name, "of all everybody"} for name in places
            }
            for person_id, own in ((IN_SLACK, "of ana slack"), (IN_TEAMS, "of ana teams")):
                async with signed_in(both, url, person_id) as (session, token):
                    result = await session.call_tool("documents__search_documents", {"query": "colour"})
                    assert set(re.findall(r'"name": "(of \w+ \w+)"', str(result.content))) == {own, "of all everybody"}
                    said = await _run(url, token)
                    assert names_in(said) == {own, "of all everybody"}


KEPT = {
    "of ana slack": "me",
    "of ben slack": "me",
    "of first slack": "channel",
    "of second slack": "channel",
    "of ana teams": "me",
    "of ben teams": "me",
    "of group teams": "channel",
    "of channel teams": "channel",
}


async def _run(url: str, token: str) -> str:
    """What a program of somebody's is answered."""
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http,
        http.post(f"{url}/run", json={"thread_id": "t1", "user_request": "find"}) as response,
    ):
        said: dict[str, Any] = await response.json()
        assert response.status == 200, said
        return str(said)


def _places(both: Both, url: str) -> dict[str, Callable[[str], Awaitable[str]]]:
    """Name of the document that is kept there → what the bot answers to whom it is kept for, there."""
    slack, teams = both.transports(url)

    def in_slack(user: str, channel: str) -> Callable[[str], Awaitable[str]]:
        async def ask(text: str) -> str:
            talk = SlackTalk(both.slack, SlackPerson(both.slack, "T1", user, slack), channel)
            before = len(both.slack.messages(channel))
            await talk.mentions(text)
            found = await both.slack.until(
                lambda: next((m for m in both.slack.messages(channel)[before:] if "found: " in slack_words(m)), None)
            )
            return slack_words(found)

        return ask

    def in_teams(user: str, conversation: str) -> Callable[[str], Awaitable[str]]:
        async def ask(text: str) -> str:
            talk = TeamsTalk(both.teams, TeamsPerson(both.teams, user, teams), conversation)
            before = [m["id"] for m in talk.of_the_bot()]
            await talk.mentions(text)
            found = await both.teams.until(
                lambda: next(
                    (m for m in talk.of_the_bot() if m["id"] not in before and "found: " in teams_words(m)), None
                )
            )
            return teams_words(found)

        return ask

    both.slack.add_channel("C3", name="third", members=["U1", "U2", "UBOT"])
    return {
        "of ana slack": in_slack("U1", "D1"),
        "of ben slack": in_slack("U2", "D2"),
        "of first slack": in_slack("U1", "C1"),
        "of second slack": in_slack("U2", "C3"),
        "of ana teams": in_teams(ANA, both.teams.personal(ANA)),
        "of ben teams": in_teams(BEN, both.teams.personal(BEN)),
        "of group teams": in_teams(BEN, both.teams.group),
        "of channel teams": in_teams(ANA, both.teams.channel),
    }
