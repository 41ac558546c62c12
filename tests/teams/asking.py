"""Asks the fake Bot Connector without any client of ours in between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp

from tests.fakes.teams.server import FakeTeams

Json = dict[str, Any]
CARD = "application/vnd.microsoft.card.adaptive"


@dataclass
class Asking:
    """A bot with a good token."""

    teams: FakeTeams
    session: aiohttp.ClientSession
    token: str

    async def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, query: str = ""
    ) -> tuple[int, Any]:
        """Status and body of a call; `path` is relative to `/v3/conversations`."""
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        url = f"{self.teams.service_url}v3/conversations{path}{query}"
        async with self.session.request(method, url, json=body, headers=headers) as response:
            is_json = response.content_type == "application/json"
            return response.status, await response.json() if is_json else await response.text()

    async def send(self, conversation: str, activity: Any, query: str = "") -> tuple[int, Any]:
        """Post an activity."""
        return await self.ask("POST", f"/{quote(conversation, safe='')}/activities", activity, query=query)

    async def sent(self, conversation: str, text: str) -> str:
        """Post a text; its id."""
        status, body = await self.send(conversation, message(text))
        assert status == 201, body
        return str(body["id"])

    async def refusal(self, conversation: str, activity: Any, query: str = "") -> str:
        """Why an activity is not taken."""
        status, body = await self.send(conversation, activity, query)
        assert status >= 400, (status, body)
        return f"{status} {body['error']['code']}"


@asynccontextmanager
async def asking(teams: FakeTeams) -> AsyncIterator[Asking]:
    """A bot that has just got its token."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
        status, body = await token_for(teams, session)
        assert status == 200
        yield Asking(teams, session, body["access_token"])


async def token_for(teams: FakeTeams, session: aiohttp.ClientSession, **changes: str) -> tuple[int, Any]:
    """Ask for a token with client credentials, some of them changed."""
    form = {
        "grant_type": "client_credentials",
        "client_id": teams.app_id,
        "client_secret": teams.app_password,
        "scope": "https://api.botframework.com/.default",
    }
    tenant = changes.pop("tenant", teams.tenant)
    async with session.post(f"{teams.login_url}/{tenant}/oauth2/v2.0/token", data={**form, **changes}) as response:
        return response.status, await response.json()


def message(text: str, **facts: Any) -> Json:
    """A message of text."""
    return {"type": "message", "text": text, **facts}


def with_card(card: Any, **facts: Any) -> Json:
    """A message with a card."""
    attachment = {"contentType": CARD, "content": card}
    return {"type": "message", "attachments": [attachment], "summary": "A card", **facts}


def update(kind: str, text: str, sequence: int | None, stream_id: str = "", **facts: Any) -> Json:
    """An update of a stream, or its final message."""
    info: Json = {"type": "streaminfo", "streamType": kind}
    info |= {"streamId": stream_id} if stream_id else {}
    info |= {"streamSequence": sequence} if sequence is not None else {}
    return {"type": "message" if kind == "final" else "typing", "text": text, "entities": [info], **facts}
