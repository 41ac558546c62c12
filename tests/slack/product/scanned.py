"""Everything that Slack and the disk were given while accounts were connected, looked through in the end of a test."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest
import structlog

from bot.accounts.tokens import Safe
from bot.crypto import Sealer
from bot.records import authorizations
from tests.fakes.oauth import ProtectedServer
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.slack.calls import ApiCall
from tests.fakes.slack.server import FakeSlack
from tests.support.product import ProductFolder
from tests.support.product_records import all_that_is_kept, opened_records

TOKEN = re.compile(r"/oauth/start\?s=([\w-]+)")
"""What makes a link somebody's."""


@pytest.fixture(autouse=True)
async def scanned(
    home: ProductFolder,
    slack: FakeSlack,
    notes: ProtectedServer,
    model: FakeOpenAI,
    capfd: pytest.CaptureFixture[str],
) -> AsyncIterator[None]:
    """Each link was for one person alone; codes, tokens and verifiers are nowhere at all."""
    home.variables["LOG_LEVEL"] = "debug"
    yield
    links = set(TOKEN.findall(str([call.arguments for call in slack.calls])))
    assert links, "nobody was given a link"
    for link in links:
        readers = readers_of(slack, link)
        assert len(readers) == 1, f"a link was shown to {sorted(readers)}"
    logged = capfd.readouterr()
    elsewhere = [
        ("what the model was sent", json.dumps(model.requests, ensure_ascii=False)),
        ("the log", logged.out + logged.err),
        *all_that_is_kept(home),
    ]
    told = [(f"Slack's {call.method}", json.dumps(call.arguments)) for call in slack.calls]
    assert_nowhere(links, elsewhere)
    assert_nowhere(await codes_of(home) | {each for each in notes.secrets if len(each) > 7}, [*elsewhere, *told])
    structlog.reset_defaults()


def readers_of(slack: FakeSlack, secret: str) -> set[str]:
    """Who could read it in Slack at any time, in what the bot has sent."""
    found = {str(each["user"]) for each in slack.world.ephemerals if secret in str(each)}
    return found.union(*(_readers(slack, call) for call in slack.calls if secret in str(call.arguments)))


def _readers(slack: FakeSlack, call: ApiCall) -> set[str]:
    match call.method, call.arguments:
        case "chat.postEphemeral", {"user": user}:
            return {str(user)}
        case "response_url", {"response_type": "ephemeral"}:
            return set()  # it is among the ephemeral messages, with whoever clicked
        case _, {"channel": channel}:
            bots = {each.bot_user for each in slack.world.workspaces.values()}
            return slack.world.channels[channel].members - bots
        case _:
            return {f"everybody, by {call.method}"}


async def codes_of(home: ProductFolder) -> set[str]:
    """The codes that browsers have shown: sealed in the records, for as long as they are to be recognised."""
    safe = Safe(Sealer(home.key()))
    async with opened_records(home) as records, records.database.reading() as tx:
        rows = await authorizations.with_codes(tx)
    kept = [safe.take(row.person_id, row.connection, row.sealed_code) for row in rows]
    codes = {str(each["code"]) for each in kept if each is not None}
    assert len(codes) == len(rows), "a code cannot be read"
    return {spelling for code in codes for spelling in (code, code.lower(), code.replace("-", ""))}


def assert_nowhere(secrets: set[str], places: list[tuple[str, str]]) -> None:
    """None of them is in any of these texts."""
    for where, text in places:
        for secret in secrets:
            assert secret not in text, f"a secret is in {where}: …{text[max(0, text.find(secret) - 300) :][:200]}"
