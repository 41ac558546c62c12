"""A Teams on loopback: it keeps what bots post, checks it against Teams' limits, and lets tests look and interfere.

async with fake_teams() as teams:
    ... teams.config() ... teams.messages(teams.channel) ... teams.fail("send", status=429, retry_after=1)
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from adapters.teams.config import Cloud, TeamsConfig
from tests.fakes.faults import Fault, Faults, Held
from tests.fakes.teams.calls import ApiCall
from tests.fakes.teams.clock import Clock
from tests.fakes.teams.refused import CODES, STATUSES
from tests.fakes.teams.streams import Streams, shown_stream
from tests.fakes.teams.tokens import ISSUER, Issuer, Signer
from tests.fakes.teams.web import SERVICE, Services, routes
from tests.fakes.teams.world import (
    ANA,
    APP_ID,
    BEN,
    BOT,
    BOT_NAME,
    CHANNEL,
    CHLOE,
    GROUP,
    GUS,
    OTHER_TENANT,
    TEAM,
    TENANT,
    Json,
    World,
    address_of,
    personal_of,
    populate,
)

__all__ = [
    "ANA",
    "BEN",
    "BOT",
    "BOT_NAME",
    "CHLOE",
    "GUS",
    "OTHER_TENANT",
    "TENANT",
    "ApiCall",
    "FakeTeams",
    "fake_teams",
]

SECRET = "teams-app-password"
IDENTITY_SECRET = "identity-header"


class FakeTeams:
    """The running server: where it is, what it was asked, what it knows."""

    app_id, app_password = APP_ID, SECRET
    tenant = TENANT
    channel, group, team = CHANNEL, GROUP, TEAM
    """Ids of conversations: all four people are in them, and the bot is."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.world = World(self.clock)
        self.faults = Faults()
        self.issuer = Issuer(self.clock, APP_ID)
        self._streams = Streams(self.world)
        self.services = Services(self.world, self.issuer, self._streams, self.faults, SECRET, IDENTITY_SECRET)
        self.base_url = ""
        self.rsc = False
        """Whether the installation lets the bot hear what is said in channels and groups without mentioning it."""
        self.add_user = self.world.add_user
        self.add_channel = self.world.add_channel
        self.add_group = self.world.add_group
        populate(self.world)

    # ------------------------------------------------------------------------------------------- where it is

    @property
    def service_url(self) -> str:
        """The Bot Connector."""
        return f"{self.base_url}{SERVICE}/"

    @property
    def login_url(self) -> str:
        """Where bots get their tokens."""
        return f"{self.base_url}/login"

    @property
    def metadata_url(self) -> str:
        """Where it says with which keys it signs."""
        return f"{self.base_url}/v1/.well-known/openidconfiguration"

    @property
    def identity_endpoint(self) -> str:
        """`IDENTITY_ENDPOINT` of a managed identity; `IDENTITY_SECRET` is its `IDENTITY_HEADER`."""
        return f"{self.base_url}/msi/token"

    @property
    def graph_url(self) -> str:
        """Microsoft Graph."""
        return f"{self.base_url}/graph"

    def config(self, **changes: Any) -> TeamsConfig:
        """A bot's settings that point here, with some of them changed."""
        cloud = Cloud(
            login_url=self.login_url,
            openid_metadata_url=self.metadata_url,
            token_issuer=ISSUER,
            token_scope=ISSUER,
            service_url=self.service_url,
            graph_url=self.graph_url,
        )
        config = TeamsConfig(
            app_id=self.app_id,
            app_password=self.app_password,
            app_type="SingleTenant",
            tenant=self.tenant,
            allowed_tenants=frozenset({self.tenant}),
            cloud=cloud,
        )
        return dataclasses.replace(config, **changes)

    # ------------------------------------------------------------------------------------------- preparing

    def personal(self, user: str) -> str:
        """Id of somebody's chat with the bot, whether they have the app or not."""
        return personal_of(user)

    def address(self, user: str) -> str:
        """What the bot calls a user: `29:…`."""
        return address_of(user)

    def issue_token(
        self,
        *,
        key: Signer = "current",
        kid: str | None = "",
        alg: str = "RS256",
        headers: Json | None = None,
        **claims: Any,
    ) -> str:
        """A token as the Bot Connector sends it, with something changed: claims (`None`: left out), the key that
        signs, its name in the header (`None`: none), the algorithm, other headers."""
        return self.issuer.token(claims, key=key, kid=kid, alg=alg, headers=headers or {})

    def rotate_keys(self) -> None:
        """From now on a new key signs; the one before stays published."""
        self.issuer.generation += 1

    def revoke_tokens(self) -> None:
        """The tokens that bots have got are no longer good."""
        self.issuer.revoke_all()

    @property
    def targeted(self) -> bool:
        """Whether the tenant has targeted messages."""
        return self.world.targeted

    @targeted.setter
    def targeted(self, value: bool) -> None:
        self.world.targeted = value

    # ------------------------------------------------------------------------------------------- interfering

    def fail(
        self,
        verb: str,
        *,
        status: int = 0,
        code: str = "",
        retry_after: float | None = None,
        drop: bool = False,
        times: float = 1,
        when: Callable[[Json], bool] = lambda _body: True,
    ) -> None:
        """Let the next calls of a verb (see `ApiCall.verb`) fail, only those whose body satisfies `when`.

        `status` and `code`: one gives the other, nothing is done. `drop`: it is done, and then the connection is cut.
        `times` may be `math.inf`.
        """
        if not (status or code or drop):
            raise ValueError("a fault has a status, a code, or drops the connection")
        status = status or STATUSES.get(code, 400)
        self.faults.add(Fault(verb, code or CODES.get(status, "ServiceError"), status, retry_after, drop, times, when))

    def hold(self, verb: str) -> Held:
        """Hold the verb's calls back until `release()`."""
        return self.faults.hold(verb)

    def limit(self, most: int, seconds: float) -> None:
        """From now on a conversation takes so many of the bot's messages within so many seconds."""
        self.world.limit = (most, seconds)

    def cancel_stream(self, stream_id: str) -> None:
        """The person presses Stop."""
        self._streams.cancel(stream_id)

    # ------------------------------------------------------------------------------------------- looking

    @property
    def calls(self) -> list[ApiCall]:
        """Every call of the Bot Connector in the order it came, those that failed too."""
        return self.services.calls

    @property
    def login_calls(self) -> list[ApiCall]:
        """The calls for tokens (`token`, `managed_identity`), metadata (`metadata`) and keys (`keys`)."""
        return self.services.login_calls

    def calls_of(self, verb: str, path: str = "") -> list[ApiCall]:
        """The calls with a verb or an HTTP method, of both kinds, whose path contains `path`."""
        everything = [*self.calls, *self.login_calls] if verb.islower() else self.calls
        return [call for call in everything if verb in (call.verb, call.method) and path in call.path]

    def messages(self, conversation: str) -> list[Json]:
        """All messages there, people's too, deleted ones too, oldest first: of a chat, a channel, or one thread.

        `id`, `conversation`, `author` (object id; empty: the bot), `text`, `attachments`, `entities`, `channelData`,
        `edited`, `deleted`, `only_for` (address), `streaming`, `status` (of a stream), and what else was sent.
        """
        self._streams.expire()
        place = self.world.conversation(conversation)
        return [
            message.shown() for message in place.messages.values() if conversation in (place.id, message.conversation)
        ]

    def posts(self, conversation: str) -> list[Json]:
        """Of the messages, the bot's that are still there."""
        return [m for m in self.messages(conversation) if not m["author"] and not m["deleted"]]

    def streams(self, conversation: str) -> list[Json]:
        """The streams of a conversation, oldest first: `id`, `state` (`informative`, `streaming`, `final`,
        `cancelled`), `streaming` (not over yet), `updates` ((type, text) as they were taken)."""
        self._streams.expire()
        return [
            shown_stream(stream, self.world.message(stream.id))
            for stream in self._streams.all.values()
            if stream.conversation == conversation
        ]

    def typings(self, conversation: str) -> int:
        """How often the bot said there that it is typing."""
        return self.world.conversation(conversation).typings

    @property
    def product_mistakes(self) -> list[str]:
        """What Teams refused, and what it would let pass and our product does not: assert that it is empty."""
        return self.world.product_mistakes

    async def until(self, condition: Callable[[], Any], within: float = 10.0) -> Any:
        """Wait until something is so, and return it. Raises `AssertionError` with what there is instead."""
        try:
            async with asyncio.timeout(within):
                while not (found := condition()):
                    await asyncio.sleep(0.01)
        except TimeoutError:
            recent = "\n".join(f"{call.method} {call.path} {call.body}" for call in self.calls[-20:])
            raise AssertionError(f"did not come within {within} s; the last calls were\n{recent}") from None
        return found


@asynccontextmanager
async def fake_teams() -> AsyncIterator[FakeTeams]:
    """Run one."""
    teams = FakeTeams()
    app = web.Application(client_max_size=4 * 1024 * 1024)
    app.add_routes(routes(teams.services))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        teams.base_url = f"http://{host}:{port}"
        teams.world.service_url = teams.issuer.service_url = teams.service_url
        yield teams
    finally:
        teams.faults.release_all()
        await runner.cleanup()
