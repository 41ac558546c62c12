"""How Teams reaches a bot: requests that carry a token of the Bot Connector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp

from tests.fakes.teams.answer_rules import MESSAGE
from tests.fakes.teams.inputs import CARD
from tests.fakes.teams.server import FakeTeams

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the bot answered."""

    status: int
    """0: Teams had nothing to tell it."""
    json: Any = None
    """The body, if it is JSON."""
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    activity: Json = field(default_factory=dict)
    """What was sent, to be sent again."""

    @property
    def card(self) -> Json:
        """The card that it answered with: to a click or a refresh, or the dialog's. Raises `AssertionError`: none."""
        body = self.json if isinstance(self.json, dict) else {}
        if body.get("type") == CARD:
            return dict(body["value"])
        task = body.get("task", {})
        assert task.get("type") == "continue", f"no card was answered but {self.status} {self.text}"
        return dict(task["value"]["card"]["content"])

    @property
    def message(self) -> str:
        """The sentence that only the clicker sees; empty: none was answered."""
        body = self.json if isinstance(self.json, dict) else {}
        if body.get("type") == MESSAGE:
            return str(body["value"])
        task = body.get("task", {})
        return str(task["value"]) if task.get("type") == "message" else ""

    @property
    def title(self) -> str:
        """The dialog's title; empty: no dialog was answered."""
        task = self.json.get("task", {}) if isinstance(self.json, dict) else {}
        return str(task["value"]["title"]) if task.get("type") == "continue" else ""


@dataclass(frozen=True, kw_only=True)
class Said(Answer):
    """A message was written."""

    id: str
    conversation: str
    """With the thread, in a channel: what is said there next is a reply."""


class Transport(Protocol):
    """Where a bot takes what Teams sends."""

    async def activity(self, activity: Json, *, token: str | None = None) -> Answer:
        """An activity. `token`: another than a good one."""
        ...


class HttpTransport:
    """The messaging endpoint (`…/api/messages`): every activity comes with a token for its service URL."""

    def __init__(self, url: str, teams: FakeTeams) -> None:
        self.url = url
        self._teams = teams

    async def activity(self, activity: Json, *, token: str | None = None) -> Answer:
        """An activity. `token`: another than a good one; empty: none."""
        token = self._teams.issue_token() if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = await self.post(json.dumps(activity), headers=headers)
        return Answer(
            status=answer.status, json=answer.json, text=answer.text, headers=answer.headers, activity=activity
        )

    async def post(
        self, body: str | bytes, content_type: str = "application/json", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Any body, with a good token unless `headers` say otherwise."""
        usual = {"Authorization": f"Bearer {self._teams.issue_token()}"} if headers is None else headers
        sent = {"User-Agent": "Microsoft-SkypeBotApi (Microsoft-BotFramework/3.0)", **usual}
        content = body.encode() if isinstance(body, str) else body
        return await posted(self.url, content, {"Content-Type": f"{content_type}; charset=utf-8", **sent})


class LocalTransport:
    """As local clients (the Agents Playground) come: on loopback, without a token."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def activity(self, activity: Json, *, token: str | None = None) -> Answer:
        """An activity. `token`: one all the same."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers["Content-Type"] = "application/json"
        answer = await posted(self.url, json.dumps(activity).encode(), headers)
        return Answer(
            status=answer.status, json=answer.json, text=answer.text, headers=answer.headers, activity=activity
        )


async def posted(url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    """Post something and read the answer."""
    timeout = aiohttp.ClientTimeout(total=10)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.post(url, data=body, headers=headers) as response,
    ):
        text = await response.text()
        is_json = response.content_type == "application/json" and text
        return Answer(
            status=response.status, json=json.loads(text) if is_json else None, text=text, headers=response.headers
        )
