from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from adapters.shared.calls import CallFailed
from adapters.slack.web_api.workspaces import Bot, OneToken, Workspaces
from bot.platform import NotConnected
from tests.fakes.slack.server import FakeSlack, fake_slack

ACME = Bot("T1", "xoxb-1", "UBOT", "BBOT", "Acme", "https://acme.slack.com/")


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with fake_slack() as running:
        yield running


class Installed:
    """Tokens by workspace."""

    many = True

    def __init__(self, **tokens: str) -> None:
        self.tokens = tokens
        self.refusals: list[tuple[str, str]] = []

    async def token(self, team: str, enterprise: str) -> str | None:
        return self.tokens.get(team) or self.tokens.get(enterprise)

    async def installed(self) -> Sequence[tuple[str, str]]:
        return [(team, "") for team in self.tokens]

    def refused(self, team: str, token: str) -> None:
        self.refusals.append((team, token))

    async def forget(self, team: str, enterprise: str, before: float) -> None:
        self.tokens.pop(team, None)


@asynccontextmanager
async def workspaces_of(slack: FakeSlack, tokens: OneToken | Installed | None = None) -> AsyncIterator[Workspaces]:
    workspaces = Workspaces(tokens or OneToken("xoxb-1"), slack.api_url)
    try:
        yield workspaces
    finally:
        await workspaces.close()


async def test_one_token_says_which_workspace_it_is_of(slack: FakeSlack) -> None:
    async with workspaces_of(slack) as workspaces:
        assert await workspaces.connect() == (ACME,)
        assert await workspaces.bot("T1") == ACME
        assert await workspaces.token("T1") == "xoxb-1"
    assert "xoxb" not in repr(ACME)


async def test_slack_is_asked_once_however_many_ask(slack: FakeSlack) -> None:
    async with workspaces_of(slack) as workspaces:
        await asyncio.gather(*(workspaces.bot("T1") for _ in range(5)))
        await workspaces.bot("T1")
    assert len(slack.calls_of("auth.test")) == 1


async def test_events_are_authorised_without_the_network_once_we_are_connected(slack: FakeSlack) -> None:
    async with workspaces_of(slack) as workspaces:
        await workspaces.connect()
        slack.fail("auth.test", status=500, times=100)
        result = await workspaces.authorize(None, "T1", "U1")
    assert result is not None
    assert (result.team_id, result.bot_token, result.bot_user_id, result.bot_id) == ("T1", "xoxb-1", "UBOT", "BBOT")


async def test_events_of_a_workspace_that_did_not_install_us_are_not_authorised(slack: FakeSlack) -> None:
    async with workspaces_of(slack) as workspaces:
        assert await workspaces.authorize(None, "T9", "U1") is None
    async with workspaces_of(slack, Installed(T1="xoxb-1")) as workspaces:
        assert await workspaces.authorize(None, "T9", "U1") is None


async def test_events_are_to_be_sent_again_when_slack_cannot_be_reached(slack: FakeSlack) -> None:
    slack.fail("auth.test", status=503)
    async with workspaces_of(slack) as workspaces:
        with pytest.raises(CallFailed):
            await workspaces.authorize(None, "T1", "U1")
        assert await workspaces.authorize(None, "T1", "U1") is not None


async def test_events_are_to_be_sent_again_when_slack_is_too_slow(
    slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.slack.web_api.workspaces.AT_ONCE", 0.1)
    held = slack.hold("auth.test")
    async with workspaces_of(slack) as workspaces:
        with pytest.raises(CallFailed) as failed:
            await workspaces.authorize(None, "T1", "U1")
        assert (failed.value.error, failed.value.permanent) == ("timeout", False)
        held.release()
        assert (await workspaces.bot("T1")).bot_user == "UBOT"
    assert len(slack.calls_of("auth.test")) == 1


async def test_bolt_finds_the_arguments_that_it_has_to_fill(slack: FakeSlack) -> None:
    from slack_bolt.util.utils import get_arg_names_of_callable

    async with workspaces_of(slack) as workspaces:
        assert get_arg_names_of_callable(workspaces.authorize) == ["enterprise_id", "team_id", "user_id"]


async def test_each_workspace_has_its_own_bot(slack: FakeSlack) -> None:
    slack.add_workspace(team="T2", name="Beta", token="xoxb-2", bot_user="UBOT2", bot_id="BBOT2")
    async with workspaces_of(slack, Installed(T1="xoxb-1", T2="xoxb-2")) as workspaces:
        assert [bot.name for bot in await workspaces.connect()] == ["Acme", "Beta"]
        assert (await workspaces.bot("T1")).bot_user == "UBOT"
        assert (await workspaces.bot("T2")).bot_user == "UBOT2"


async def test_a_workspace_that_threw_us_out_does_not_stop_the_others(slack: FakeSlack) -> None:
    slack.add_workspace(team="T2", name="Beta", token="xoxb-2", bot_user="UBOT2", bot_id="BBOT2")
    slack.revoke("xoxb-1")
    async with workspaces_of(slack, Installed(T1="xoxb-1", T2="xoxb-2")) as workspaces:
        assert [bot.name for bot in await workspaces.connect()] == ["Beta"]
        assert await workspaces.authorize(None, "T1", "U1") is None


async def test_a_workspace_whose_token_another_process_may_still_renew_does_not_stop_the_others(
    slack: FakeSlack,
) -> None:
    class Renewing(Installed):
        async def token(self, team: str, enterprise: str) -> str | None:
            if team == "T2":
                raise CallFailed("oauth.v2.access", "invalid_refresh_token")
            return await super().token(team, enterprise)

    async with workspaces_of(slack, Renewing(T1="xoxb-1", T2="xoxb-2")) as workspaces:
        assert [bot.name for bot in await workspaces.connect()] == ["Acme"]
        with pytest.raises(CallFailed):  # Slack sends the event again
            await workspaces.authorize(None, "T2", "U1")


async def test_nobody_has_installed_us_yet(slack: FakeSlack) -> None:
    async with workspaces_of(slack, Installed()) as workspaces:
        assert await workspaces.connect() == ()


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("invalid_auth", "Bot User OAuth Token"),
        ("not_authed", "Bot User OAuth Token"),
        ("account_inactive", "Install the app into the workspace again"),
        ("token_revoked", "Install the app into the workspace again"),
        ("token_expired", "SLACK_CLIENT_ID"),
        ("something_new", "Bot User OAuth Token"),
    ],
)
async def test_the_operator_is_told_why_and_what_to_do(slack: FakeSlack, error: str, advice: str) -> None:
    slack.fail("auth.test", error=error)
    async with workspaces_of(slack) as workspaces:
        with pytest.raises(NotConnected) as refused:
            await workspaces.connect()
    assert refused.value.sentence.startswith("SLACK_BOT_TOKEN: ")
    assert error in refused.value.sentence
    assert advice in refused.value.sentence


async def test_a_token_of_a_person_is_no_bots_token(slack: FakeSlack) -> None:
    slack.world.workspaces["T1"].bot_id = ""
    async with workspaces_of(slack) as workspaces:
        with pytest.raises(NotConnected, match="no bot's token"):
            await workspaces.connect()


async def test_not_reaching_slack_is_not_being_refused(slack: FakeSlack, unused_tcp_port: int) -> None:
    slack.api_url = f"http://127.0.0.1:{unused_tcp_port}/api/"
    async with workspaces_of(slack) as workspaces:
        with pytest.raises(CallFailed) as failed:
            await workspaces.connect()
    assert not failed.value.permanent


async def test_a_refused_token_is_asked_about_anew(slack: FakeSlack) -> None:
    tokens = Installed(T1="xoxb-1")
    async with workspaces_of(slack, tokens) as workspaces:
        await workspaces.bot("T1")
        workspaces.refused("T1", "xoxb-1")
        await workspaces.bot("T1")
    assert tokens.refusals == [("T1", "xoxb-1")]
    assert len(slack.calls_of("auth.test")) == 2


async def test_after_an_uninstall_nobody_speaks_there_any_more(slack: FakeSlack) -> None:
    async with workspaces_of(slack, Installed(T1="xoxb-1")) as workspaces:
        await workspaces.bot("T1")
        await workspaces.forget("T1")
        with pytest.raises(CallFailed) as failed:
            await workspaces.token("T1")
    assert (failed.value.error, failed.value.permanent) == ("not_installed", True)
