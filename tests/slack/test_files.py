"""Files of messages in Slack: what an event says of them, and what is fetched from where."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.slack.web_api.client import WebApi
from adapters.slack.web_api.files import SlackFiles, files_in
from bot.domain import ConversationReference, FileReference
from bot.files import LARGEST_FILE, MOST_REFERENCES
from bot.platform import FetchedFile, FileNotFetched, PostFailed
from graph.json_values import storable
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.support.examples import examples

HERE = ConversationReference("slack", "slack:T1:C1:1.000001", {})
NOT_ALLOWED = "I may not read files here. An admin has to allow it (files:read)"


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with fake_slack() as running:
        yield running


@asynccontextmanager
async def files_of(slack: FakeSlack) -> AsyncIterator[SlackFiles]:
    async def token(team: str) -> str:
        return {"T1": "xoxb-1", "T2": "xoxb-2"}[team]

    api = WebApi(token, slack.api_url)
    files = SlackFiles(api, token, slack.api_url)
    try:
        yield files
    finally:
        await files.close()
        await api.close()


async def fetched(
    slack: FakeSlack, said: dict[str, Any], *, limit: int = LARGEST_FILE, team: str = "T1"
) -> FetchedFile:
    (file,) = files_in({"files": [said]}, team)
    assert not file.refused
    async with files_of(slack) as files:
        return await files.fetch_file(file, HERE, limit)


async def refusal(slack: FakeSlack, said: dict[str, Any], **how: Any) -> FileNotFetched:
    with pytest.raises(FileNotFetched) as refused:
        await fetched(slack, said, **how)
    return refused.value


def without_permission(slack: FakeSlack) -> None:
    workspace = slack.world.workspaces["T1"]
    workspace.scopes = workspace.scopes.replace("files:read,", "")


# -------------------------------------------------------------------------------------- what an event says


def reference(**said: Any) -> FileReference:
    return files_in({"files": [{"id": "F1", "name": "a.txt", "mode": "hosted", **said}]}, "T1")[0]


def test_what_slack_no_longer_has_or_never_had_is_not_asked_for() -> None:
    assert reference(mode="tombstone").refused == "it isn’t available any more"
    assert reference(mode="hidden_by_limit").refused.startswith("Slack hides it")
    assert reference(is_external=True).refused == reference(mode="external").refused == "it isn’t kept in Slack"
    assert reference(mode="external", url_private_download="https://drive.example/x").source == {}


def test_of_many_files_only_so_many_are_named() -> None:
    assert len(files_in({"files": [{"id": f"F{number}"} for number in range(50)]}, "T1")) == MOST_REFERENCES


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
SAID = st.dictionaries(
    st.sampled_from(
        ["id", "name", "title", "mimetype", "size", "mode", "is_external", "url_private_download", "url_private"]
    ),
    JSON | st.sampled_from(["F1", "tombstone", "external", "quip", "https://[", "https://files.slack.com/x", 10**400]),
)


@settings(max_examples=examples(100))
@given(st.fixed_dictionaries({"files": st.lists(SAID | JSON, max_size=4) | JSON}))
def test_no_files_make_the_reader_fail(event: dict[str, Any]) -> None:
    for file in files_in(event, "T1"):
        assert file.size is None or 0 <= file.size < 2**53
        assert len(storable(file.name)) <= 200
        assert bool(file.refused) != bool(file.source)


# ------------------------------------------------------------------------------------------ what is fetched


async def test_each_workspace_is_asked_with_its_own_token(slack: FakeSlack) -> None:
    slack.add_workspace(team="T2", name="Other", token="xoxb-2", bot_user="UBOT2", bot_id="BBOT2")
    file = slack.add_file("F1", "a.txt", b"hello", mimetype="text/plain")
    assert (await fetched(slack, file)).content == b"hello"
    without_permission(slack)
    assert (await fetched(slack, file, team="T2")).content == b"hello"
    assert (await refusal(slack, file)).reason == NOT_ALLOWED


async def test_of_a_file_of_another_company_slack_says_everything_only_when_it_is_asked(slack: FakeSlack) -> None:
    """Slack Connect: the event has nothing but the id."""
    slack.add_file("F1", "plan.csv", b"a,b", mimetype="text/csv")
    slack.add_file("F2", "drive.docx", b"", is_external=True)
    slack.add_file("F3", "film.txt", b"", size=10**12)
    said = {"mode": "file_access", "file_access": "check_file_info", "created": 0, "timestamp": 0, "user": ""}
    assert await fetched(slack, {"id": "F1", **said}) == FetchedFile(b"a,b", "plan.csv", "text/csv")
    outside, large = await refusal(slack, {"id": "F2", **said}), await refusal(slack, {"id": "F3", **said})
    assert (outside.name, outside.reason) == ("drive.docx", "it isn’t kept in Slack")
    assert (large.name, large.reason) == ("film.txt", "it is larger than 20 MB")
    assert (await refusal(slack, {"id": "F4", **said})).reason == "it isn’t available any more"
    without_permission(slack)
    assert (await refusal(slack, {"id": "F1", **said})).reason == NOT_ALLOWED


async def test_what_is_larger_than_it_was_said_to_be_is_not_read_to_its_end(slack: FakeSlack) -> None:
    file = slack.add_file("F1", "a.txt", b"x" * 1_000_000, size=5)
    assert (await refusal(slack, file, limit=100_000)).reason == "it is larger than 20 MB"


@pytest.mark.parametrize(
    "address",
    [
        "https://files.slack.com.evil.example/x",
        "https://evilslack.com/x",
        "https://files.slack.com@evil.example/x",
        "https://evil.example/?https://files.slack.com/",
        "https://evil.example#.slack.com",
        "https://evil.example\\.slack.com/x",
        "http://files.slack.com/x",
        "ftp://files.slack.com/x",
        "//files.slack.com/x",
        "https://[::1/x",
        "https://",
        "x",
    ],
)
async def test_nobody_but_slack_is_asked(slack: FakeSlack, address: str) -> None:
    file = slack.add_file("F1", "a.txt", b"x", url_private_download=address)
    assert (await refusal(slack, file)).reason in {"it isn’t kept in Slack", "it isn’t available any more"}


async def test_the_token_goes_nowhere_else(slack: FakeSlack) -> None:
    """Whoever may not see a file is sent elsewhere, which is not followed."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(text="caught")

    app = web.Application()
    app.router.add_get("/{any:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        elsewhere = f"http://127.0.0.1:{runner.addresses[0][1]}/caught"
        slack.world.moved["F1"] = elsewhere
        file = slack.add_file("F1", "a.txt", b"x")
        assert (await refusal(slack, file)).reason == NOT_ALLOWED
        bait = {**file, "url_private_download": elsewhere}
        assert (await refusal(slack, bait)).reason == "it isn’t kept in Slack"
        assert asked == []
    finally:
        await runner.cleanup()


async def test_a_page_where_people_sign_in_is_never_read_as_the_file(slack: FakeSlack) -> None:
    page = slack.add_file("F1", "a.html", b"<h1>Leave</h1>", mimetype="text/html", size=0)
    canvas = slack.add_file("F2", "Plan v2.1", b"<h1>Plan</h1>", mode="quip", mimetype="application/vnd.slack-docs")
    slack.world.files["F2"][1]["mimetype"] = "text/html"  # as it is handed out
    assert (await fetched(slack, page)).content == b"<h1>Leave</h1>"
    assert await fetched(slack, canvas) == FetchedFile(b"<h1>Plan</h1>", "Plan v2.1", "text/html")
    without_permission(slack)
    for file in (page, canvas, slack.add_file("F3", "a.txt", b"x", mimetype="text/plain")):
        assert (await refusal(slack, file)).reason == NOT_ALLOWED


async def test_when_slack_asks_to_wait_it_is_tried_again_later(slack: FakeSlack) -> None:
    file = slack.add_file("F1", "a.txt", b"x")
    slack.fail("download", status=429, retry_after=30)
    with pytest.raises(PostFailed) as put_off:
        await fetched(slack, file)
    assert put_off.value.retry_after == 30
    slack.fail("download", status=503)
    with pytest.raises(PostFailed):
        await fetched(slack, file)
    assert (await fetched(slack, file)).content == b"x"
