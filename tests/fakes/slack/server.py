"""A Slack on loopback: it keeps what apps post, checks it against Slack's limits, and lets tests look and interfere.

async with fake_slack() as slack:
    ... slack.api_url ... slack.messages("C1") ... slack.fail("chat.postMessage", status=429, retry_after=1)
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.fakes.faults import Fault, Faults, Held
from tests.fakes.oauth.identity import IdentityFake
from tests.fakes.slack import methods_streams
from tests.fakes.slack.calls import ApiCall
from tests.fakes.slack.clock import Clock
from tests.fakes.slack.people import made_user
from tests.fakes.slack.sockets import Sockets
from tests.fakes.slack.web import routes
from tests.fakes.slack.world import Channel, Json, Token, Workspace, World

__all__ = ["ApiCall", "FakeSlack", "fake_slack"]


class FakeSlack:
    """The running server: where it is, what it was asked, what it knows."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.world = World(self.clock)
        self.faults = Faults()
        self.sockets = Sockets()
        self.calls: list[ApiCall] = []
        """Every call in the order it came, those that failed too."""
        self.api_url = ""
        self.add_workspace(team="T1", name="Acme", token="xoxb-1", bot_user="UBOT", bot_id="BBOT")
        for user, name in (("U1", "Ana"), ("U2", "Ben"), ("U3", "Chloe")):
            self.add_user(user, name=name)
        self.add_channel("C1", name="general", members=["U1", "U2", "U3", "UBOT"])
        self.add_channel("C2", name="elsewhere", members=["U1", "U2", "U3"])
        self.add_channel("D1", kind="im", members=["U1", "UBOT"])
        self.add_channel("D2", kind="im", members=["U2", "UBOT"])

    # ------------------------------------------------------------------------------------------- preparing

    def add_workspace(self, team: str, name: str, token: str, bot_user: str, bot_id: str) -> None:
        """A workspace with our app in it. Without a `token` the app is not installed yet."""
        self.world.workspaces[team] = Workspace(team, name, bot_user, bot_id)
        if token:
            self.world.tokens[token] = Token(team)

    def add_user(self, user: str, *, team: str = "T1", name: str = "", tz: str = "Europe/Berlin", **facts: Any) -> None:
        """Somebody whom that workspace sees. `team_id`: their own workspace, if it is another one."""
        self.world.users[team, user] = made_user(user, team, name or user, tz, facts)

    def add_channel(
        self,
        channel: str,
        *,
        team: str = "T1",
        members: Collection[str] = (),
        kind: str = "channel",
        name: str = "",
        is_archived: bool = False,
        is_ext_shared: bool = False,
    ) -> None:
        """A channel (`channel`, `group`, `im`, `mpim`); the bot is in it when its user is among the members."""
        self.world.channels[channel] = Channel(
            channel, team, set(members), kind, name or channel.lower(), is_archived, is_ext_shared
        )

    def add_file(self, file: str, name: str, content: bytes, **facts: Any) -> Json:
        """Somebody has uploaded a file; what an event says of it."""
        url = f"{self.world.base_url}/files-pri/{file}"
        said = {"id": file, "name": name, "size": len(content), "mode": "hosted", "url_private_download": url, **facts}
        self.world.files[file] = content, said
        return copy.deepcopy(said)

    def issue_trigger(self, user: str, *, team: str = "T1", view_id: str = "") -> str:
        """A trigger id, good for 3 s of `clock`."""
        return self.world.issue_trigger(team, user, view_id)

    def issue_code(
        self, team: str, *, user: str = "U1", rotating: bool = False, redirect_uri: str | None = None
    ) -> str:
        """The code with which Slack sends somebody back from an install. `rotating`: for a token that expires."""
        code = self.world.next_id("code")
        facts = {"team": team, "user": user, "rotating": rotating, "redirect_uri": redirect_uri, "used": False}
        self.world.codes[code] = facts
        return code

    def revoke(self, token: str) -> None:
        """The token is no longer good."""
        self.world.tokens[token].revoked = True

    def archive(self, channel: str) -> None:
        """Nobody can post in it any more."""
        self.world.channels[channel].is_archived = True

    # ------------------------------------------------------------------------------------------- interfering

    def fail(
        self,
        method: str,
        *,
        error: str = "",
        status: int = 0,
        retry_after: float | None = None,
        drop: bool = False,
        times: float = 1,
        when: Callable[[Json], bool] = lambda _arguments: True,
    ) -> None:
        """Let the next calls of a method fail, only those whose arguments satisfy `when`.

        `error`: Slack's word, nothing is done. `status`: 429 or 5xx, nothing is done. `drop`: it is done, and then
        the connection is cut. `times` may be `math.inf`.
        """
        self.faults.add(Fault(method, error, status, retry_after, drop, times, when))

    def hold(self, method: str) -> Held:
        """Hold the method's calls back until `release()`."""
        return self.faults.hold(method)

    def end_stream(self, ts: str) -> None:
        """A stream dies on Slack's side."""
        methods_streams.end_stream(self.world, ts)

    # ------------------------------------------------------------------------------------------- looking

    def calls_of(self, method: str) -> list[ApiCall]:
        """The calls of one method."""
        return [call for call in self.calls if call.method == method]

    def messages(self, channel: str) -> list[Json]:
        """All messages there, replies too, oldest first, with metadata, `channel`, and whether they still stream."""
        return [
            {**copy.deepcopy(m), "channel": channel, "streaming": m.get("streaming_state") == "in_progress"}
            for m in self.world.channels[channel].messages.values()
        ]

    def ephemerals(self, user: str) -> list[Json]:
        """What only this person sees, oldest first: `channel`, `thread_ts`, `text`, `blocks`, `ts`."""
        return [copy.deepcopy(e) for e in self.world.ephemerals if e["user"] == user]

    def views(self, user: str, *, team: str = "T1") -> list[Json]:
        """The modals this person has open, the visible one last."""
        return copy.deepcopy(self.world.modals.get((team, user), []))

    def home(self, user: str, *, team: str = "T1") -> Json | None:
        """The app's home tab as this person sees it."""
        return copy.deepcopy(self.world.homes.get((team, user)))

    def statuses(self, channel: str, thread_ts: str) -> list[str]:
        """The statuses of a thread, oldest first."""
        return [s["status"] for s in self._assistant("status", channel, thread_ts)]

    def sessions(self, channel: str, thread_ts: str) -> list[str]:
        """The states of a thread's session, oldest first."""
        return [s["status"] for s in self._assistant("session", channel, thread_ts)]

    def prompts(self, channel: str, thread_ts: str) -> list[Json]:
        """The suggested prompts of a thread, as they were set last."""
        found = self._assistant("prompts", channel, thread_ts)
        return list(found[-1]["prompts"]) if found else []

    def _assistant(self, kind: str, channel: str, thread_ts: str) -> list[Json]:
        place = (kind, channel, thread_ts)
        return [a for a in self.world.assistant if (a["kind"], a["channel"], a["thread_ts"]) == place]

    @property
    def product_mistakes(self) -> list[str]:
        """What Slack would let pass and our product does not: assert that it is empty."""
        return self.world.product_mistakes

    async def until(self, condition: Callable[[], Any], within: float = 10.0) -> Any:
        """Wait until something is so, and return it. Raises `AssertionError` with what there is instead."""
        try:
            async with asyncio.timeout(within):
                while not (found := condition()):
                    await asyncio.sleep(0.01)
        except TimeoutError:
            recent = "\n".join(f"{call.method} {call.arguments}" for call in self.calls[-20:])
            raise AssertionError(f"did not come within {within} s; the last calls were\n{recent}") from None
        return found


@asynccontextmanager
async def fake_slack(login: IdentityFake | None = None) -> AsyncIterator[FakeSlack]:
    """Run one. `login`: what its Sign in with Slack is, at the same address; without it there is none."""
    slack = FakeSlack()
    app = web.Application(client_max_size=4 * 1024 * 1024)
    app.add_routes(routes(slack.world, slack.faults, slack.sockets, slack.calls))
    if login is not None:
        app.add_routes(login.routes())
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        slack.world.base_url = f"http://{host}:{port}"
        slack.api_url = f"{slack.world.base_url}/api/"
        if login is not None:
            login.base = slack.world.base_url
        yield slack
    finally:
        slack.faults.release_all()
        await slack.sockets.cut()
        await runner.cleanup()
