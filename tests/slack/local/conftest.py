"""A workspace of local-slack and the product in it, once for each way that Slack and the product can be connected."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from tests.slack.local.packages import LOCAL_SLACK, WITHOUT_LOCAL_SLACK
from tests.slack.local.person import LocalPerson
from tests.slack.local.transport import transport
from tests.slack.local.workspace import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, Mode, Workspace, local_slack
from tests.support.product import ProductFolder, product_here


@asynccontextmanager
async def product_in(folder: Path, mode: Mode) -> AsyncIterator[Workspace]:
    """The product with the demo model and the bundled tool servers, connected to a workspace of its own."""
    async with transport() as opened, local_slack(folder, mode, opened.url) as workspace:
        home = ProductFolder(folder)
        home.variables |= {"SLACK_API_URL": workspace.api_url, "SLACK_BOT_TOKEN": BOT_TOKEN}
        if mode == "events":
            home.variables["SLACK_SIGNING_SECRET"] = SIGNING_SECRET
        else:
            home.variables["SLACK_APP_TOKEN"] = APP_TOKEN
        async with product_here(home) as url:
            opened.leads_to = f"{url}/slack/events"
            if mode == "socket":
                await workspace.until(lambda: workspace.connected, "the connection of Socket Mode")
            yield workspace
        assert set(opened.statuses) <= {200}, "everything that local-slack sent was taken"
        assert bool(opened.statuses) == (mode == "events")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workspace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Workspace]:
    """A workspace with the bot in it, connected as the module says; its tests share it, each in a thread of its own."""
    if LOCAL_SLACK is None:
        pytest.skip(WITHOUT_LOCAL_SLACK)
    async with product_in(tmp_path_factory.mktemp(request.param), request.param) as workspace:
        yield workspace


@pytest.fixture
def ana(workspace: Workspace) -> LocalPerson:
    return LocalPerson(workspace, "U1")


@pytest.fixture
def ben(workspace: Workspace) -> LocalPerson:
    return LocalPerson(workspace, "U2")
