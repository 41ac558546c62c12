"""Being taken out of a workspace, at awkward moments."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet

from adapters.slack.config import SlackConfig
from adapters.slack.receiver import SlackReceiver
from adapters.slack.web_api.installing import Installations
from bot.crypto import Sealer
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.slack.serving import SECRET, receiving, served
from tests.support.installations import address_for, connected, rows_of
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport


@dataclass
class Many:
    """The platform for many workspaces, installed in T2."""

    slack: FakeSlack
    receiver: SlackReceiver
    zoe: SlackPerson
    address: str

    def tokens(self) -> int:
        """How many tokens are kept."""
        return sum(len(rows_of(self.address, f"slack_{table}")) for table in TABLES)


TABLES = ("installations", "bots")


@pytest.fixture
async def many(tmp_path: Path) -> AsyncIterator[Many]:
    async with fake_slack() as slack:
        slack.add_workspace(team="T2", name="Other", token="", bot_user="UBOT2", bot_id="BBOT2")
        slack.add_user("U9", team="T2", name="Zoe")
        config = SlackConfig(
            signing_secret=SECRET,
            client_id=slack.world.client_id,
            client_secret=slack.world.client_secret,
            install_teams=frozenset("*"),
            api_url=slack.api_url,
        )
        address = address_for(tmp_path / "records.db")
        kept = Installations(address, config, Sealer(Fernet.generate_key()))
        async with receiving(config, installations=kept) as receiver, served(receiver) as url:
            await receiver.start()
            zoe = SlackPerson(slack, "T2", "U9", HttpTransport(f"{url}/slack/events", SECRET))
            assert (await zoe.installs()).answers[-1].status == 200
            yield Many(slack, receiver, zoe, address)


async def test_news_of_an_uninstall_count_although_the_token_is_dead_by_then(many: Many) -> None:
    assert many.tokens() == 2
    # Nothing has come from there yet, so that Slack is asked only now whose token it is, and does not say.
    assert (await many.zoe.uninstalls()).status == 200
    assert many.tokens() == 0


async def test_news_of_an_uninstall_that_cannot_be_kept_are_sent_again(many: Many) -> None:
    with connected(many.address) as connection:
        connection.execute(sa.text("DROP TABLE slack_bots"))
    assert (await many.zoe.uninstalls()).status == 503
