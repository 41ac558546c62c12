"""Files of messages in Teams: what an activity says of them, and what is fetched from where."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from adapters.teams.connector.files import TeamsFiles, files_in, hidden_in
from adapters.teams.connector.people import Entra
from bot.domain import ConversationReference, Message, Person
from bot.files import LARGEST_FILE
from bot.platform import FileNotFetched, PostFailed
from tests.fakes.teams.server import ANA, BEN, TENANT, FakeTeams, fake_teams
from tests.fakes.teams.web import TEMPORARY
from tests.fakes.teams.world import CHANNEL as CHANNEL_ID
from tests.fakes.teams.world import GROUP, GROUP_OF_TEAM
from tests.support.examples import examples
from tests.support.moments import Moments

UPLOADED = "application/vnd.microsoft.teams.file.download.info"
CHANNEL = ConversationReference("teams", "teams:x", {"tenant": TENANT})
CHAT = ConversationReference("teams", "teams:y", {"tenant": TENANT}, direct=True)
SITE = "https://acme.sharepoint.com/sites/x/Shared%20Documents"
ELSEWHERE = "it isn’t kept where Teams keeps files"
NOT_ALLOWED = "I may not read files here. An admin has to allow it (Files.Read.All)"
Json = dict[str, Any]


@pytest.fixture
async def teams() -> AsyncIterator[FakeTeams]:
    async with fake_teams() as running:
        running.world.graph_permissions = {"Files.Read.All"}
        yield running


@asynccontextmanager
async def files_of(teams: FakeTeams, **config: Any) -> AsyncIterator[TeamsFiles]:
    settings = teams.config(**{"graph_files": True, **config})
    entra = Entra(settings, clock=Moments().clock)
    files = TeamsFiles(settings, entra)
    try:
        yield files
    finally:
        await files.close()
        await entra.close()


def uploaded(teams: FakeTeams, name: str = "a.txt", content: bytes | None = b"hello", token: str = TEMPORARY) -> Json:
    if content is not None:
        teams.world.files[name] = content
    link = f"{teams.base_url}/download/{name}?tempauth={token}"
    return {
        "contentType": UPLOADED,
        "contentUrl": f"{SITE}/{name}",
        "name": name,
        "content": {"downloadUrl": link, "uniqueId": "1150D938-8870-4044-9F2C-5BBDEBA70C9D", "fileType": "txt"},
    }


def shared(teams: FakeTeams, name: str = "a.txt", content: bytes | None = b"hello", **people: str) -> Json:
    if content is not None:
        teams.world.files[name] = content
    teams.world.file_people[name] = people
    return {"contentType": "reference", "name": name, "contentUrl": f"{SITE}/{name}"}


async def fetched(
    teams: FakeTeams,
    said: Json,
    place: ConversationReference = CHANNEL,
    *,
    limit: int = LARGEST_FILE,
    **config: Any,
) -> bytes:
    (file,) = files_in({"attachments": [said]}, ANA)
    async with files_of(teams, **config) as files:
        return (await files.fetch_file(file, place, limit)).content


async def refusal(teams: FakeTeams, said: Json, place: ConversationReference = CHANNEL, **how: Any) -> str:
    with pytest.raises(FileNotFetched) as refused:
        await fetched(teams, said, place, **how)
    return refused.value.reason


# ----------------------------------------------------------------------------------- what an activity says


@pytest.mark.parametrize(
    "kind",
    [
        *("text/html", "image/png", "image/*", "application/vnd.microsoft.card.adaptive", "messageReference"),
        *("forwardedMessageReference", "application/vnd.microsoft.teams.file.consent", ""),
    ],
)
def test_pictures_cards_and_forwarded_messages_are_no_files(kind: str) -> None:
    attached = {"contentType": kind, "name": "x", "contentUrl": f"{SITE}/x", "content": {"downloadUrl": f"{SITE}/x"}}
    assert files_in({"attachments": [attached]}, ANA) == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
SAID = st.fixed_dictionaries(
    {"contentType": st.sampled_from([UPLOADED, "reference"]) | JSON},
    optional={
        "name": JSON,
        "contentUrl": JSON | st.just("x" * 9_000),
        "content": JSON | st.fixed_dictionaries({"downloadUrl": JSON, "fileSize": JSON | st.just(10**400)}),
    },
)


@settings(max_examples=examples(100))
@given(st.fixed_dictionaries({"attachments": st.lists(SAID | JSON, max_size=4) | JSON}))
def test_no_attachments_make_the_reader_fail(activity: Json) -> None:
    for file in files_in(activity, ANA):
        assert file.size is None or 0 <= file.size < 2**53
        assert file.source.keys() in ({"link", "shared", "author"}, {"shared", "author"})


# --------------------------------------------------------------------------- the chat of one person with the bot


async def test_a_link_opens_a_file_without_a_token(teams: FakeTeams) -> None:
    assert await fetched(teams, uploaded(teams), CHAT, graph_files=False) == b"hello"
    assert teams.calls_of("token") == []


async def test_a_link_that_is_over_is_said_to_be(teams: FakeTeams) -> None:
    late, alone = "its link isn’t valid any more. Send it again", {"graph_files": False}
    assert await refusal(teams, uploaded(teams, token="of yesterday"), CHAT, **alone) == late  # of nobody
    assert await refusal(teams, uploaded(teams, "gone.txt", None), CHAT, **alone) == late
    assert "in a chat with me alone" in await refusal(teams, uploaded(teams, token=""), GROUP_CHAT, **alone)


async def test_a_page_to_sign_in_is_not_taken_for_the_file(teams: FakeTeams) -> None:
    """Some links of Teams on a phone lead to one."""
    said = uploaded(teams, "a.html", b"<p>a file")
    assert await fetched(teams, said, CHAT, graph_files=False) == b"<p>a file"
    said["content"]["downloadUrl"] = said["content"]["downloadUrl"].partition("?")[0]
    assert "asks for a sign-in" in await refusal(teams, said, CHAT, graph_files=False)
    teams.world.file_people["a.html"] = {"createdBy": ANA}
    assert await fetched(teams, said, CHAT) == b"<p>a file"


async def test_where_a_link_does_not_open_graph_is_asked(teams: FakeTeams) -> None:
    said = uploaded(teams, token="of yesterday")
    teams.world.file_people["a.txt"] = {"createdBy": ANA}
    assert await fetched(teams, said, CHAT) == b"hello"
    assert await fetched(teams, said, GROUP_CHAT) == b"hello"
    teams.world.file_people["a.txt"] = {"createdBy": BEN}
    assert "someone else put it there" in await refusal(teams, said, GROUP_CHAT)


async def test_what_is_too_large_is_not_read_to_its_end(teams: FakeTeams) -> None:
    large = uploaded(teams, content=b"x" * 1_000_000)
    assert await refusal(teams, large, CHAT, limit=100_000) == "it is larger than 20 MB"


async def test_when_the_service_asks_to_wait_it_is_tried_again_later(teams: FakeTeams) -> None:
    teams.fail("download", status=429, retry_after=30)
    with pytest.raises(PostFailed) as put_off:
        await fetched(teams, uploaded(teams), CHAT)
    assert put_off.value.retry_after == 30
    assert TEMPORARY not in str(put_off.value)


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/x",
        "https://acme.sharepoint.com.evil.example/x",
        "https://evilsharepoint.com/x",
        "https://acme.sharepoint.com@evil.example/x",
        "https://169.254.169.254/latest/meta-data",
        "http://acme.sharepoint.com/x",
        "file:///etc/passwd",
        "https://[::1/x",
        "",
    ],
)
async def test_nobody_but_microsoft_is_asked(teams: FakeTeams, address: str) -> None:
    said = uploaded(teams)
    said["content"]["downloadUrl"] = said["contentUrl"] = address
    assert await refusal(teams, said, CHAT) == ELSEWHERE
    assert await refusal(teams, {**shared(teams, createdBy=ANA), "contentUrl": address}) == ELSEWHERE


# ------------------------------------------------------------------- what Teams does not say, and Graph does

GROUP_CHAT = ConversationReference("teams", "teams:g", {"tenant": TENANT, "kind": "groupChat", "conversation": GROUP})


def thread_of(root: str) -> ConversationReference:
    address = {"tenant": TENANT, "kind": "channel", "conversation": f"{CHANNEL_ID};messageid={root}"}
    return ConversationReference("teams", "teams:t", address)


PLAN = {"contentType": "reference", "name": "plan.txt", "contentUrl": f"{SITE}/plan.txt"}


def message(place: ConversationReference, number: str, **facts: Any) -> Message:
    author, origin = Person(f"teams:{TENANT}:{ANA}", "Ana"), {"team": GROUP_OF_TEAM}
    return Message(f"{place.key}:{number}", place, author, "look", 0.0, **{"origin": origin, **facts})


def written(teams: FakeTeams, conversation: str, attached: list[Json]) -> str:
    """Id of a message that somebody has written."""
    teams.world.graph_permissions = {"ChannelMessage.Read.Group", "ChatMessage.Read.Chat"}
    number = teams.world.post(conversation, ANA, {"text": "look"}).id
    teams.world.unsaid_files[number] = attached
    return number


async def found(teams: FakeTeams, asked: Message, **config: Any) -> tuple[str, ...] | None:
    async with files_of(teams, **config) as files:
        found = await files.of_message(asked)
    return None if found is None else tuple(file.name for file in found)


async def test_graph_says_what_is_attached_to_a_message(teams: FakeTeams) -> None:
    in_chat = message(GROUP_CHAT, written(teams, GROUP, [PLAN, {"contentType": "messageReference"}]))
    assert await found(teams, in_chat) == ("plan.txt",)
    root = written(teams, CHANNEL_ID, [PLAN])
    place = thread_of(root)
    thread = place.address["conversation"]
    assert await found(teams, message(place, root)) == ("plan.txt",)
    reply = written(teams, thread, [{**PLAN, "name": "another.txt"}])
    assert await found(teams, message(place, reply)) == ("another.txt",)
    assert await found(teams, message(place, written(teams, thread, []))) == ()


async def test_graph_is_asked_only_where_that_is_switched_on_and_the_answer_not_known(teams: FakeTeams) -> None:
    number = written(teams, CHANNEL_ID, [PLAN])
    place = thread_of(number)
    known = files_in({"attachments": [PLAN]}, ANA)
    assert await found(teams, message(place, number), graph_files=False) is None
    assert await found(teams, message(place, number, files=known)) is None
    assert await found(teams, message(place, number, origin={})) is None
    assert await found(teams, message(place, "1?$expand=hostedContents")) is None
    assert await found(teams, message(CHAT, number)) is None
    assert teams.login_calls == []


async def test_without_an_answer_a_turn_goes_on_with_what_is_known(teams: FakeTeams) -> None:
    number = written(teams, CHANNEL_ID, [PLAN])
    place = thread_of(number)
    teams.world.graph_permissions = set()
    with capture_logs() as logs:
        assert await found(teams, message(place, number)) is None
    assert "teams_files_not_found_out" in [entry["event"] for entry in logs]
    assert await found(teams, message(place, "1700000000009")) is None


async def test_of_something_that_is_attached_and_not_described_people_are_told_what_is_needed(
    teams: FakeTeams,
) -> None:
    page = {"contentType": "text/html", "content": '<div>look <attachment id="x"></attachment></div>'}
    (hidden,) = hidden_in({"attachments": [page]})
    pasted = {"contentType": "image/png", "contentUrl": "https://smba.example/v3/attachments/1/views/original"}
    assert hidden_in({"attachments": [pasted, page]}) == (hidden,)
    assert hidden_in({"attachments": [page, PLAN]}) == hidden_in({"attachments": [{**page, "content": "x"}]}) == ()
    async with files_of(teams) as files:
        with pytest.raises(FileNotFetched, match=r"ChannelMessage\.Read\.Group, ChatMessage\.Read\.Chat"):
            await files.fetch_file(hidden, CHANNEL, LARGEST_FILE)
    async with files_of(teams, graph_files=False) as files:
        with pytest.raises(FileNotFetched, match="in a chat with me alone"):
            await files.fetch_file(hidden, CHANNEL, LARGEST_FILE)


# ------------------------------------------------------------------------------------- channels and group chats


async def test_without_the_setting_people_are_told_where_files_are_read_and_what_can_be_switched_on(
    teams: FakeTeams,
) -> None:
    said = shared(teams, createdBy=ANA)
    told = await refusal(teams, said, graph_files=False)
    assert "in a chat with me alone" in told
    assert "TEAMS_GRAPH_FILES" in told
    assert await refusal(teams, said, CHAT, graph_files=False) == "it is a link to a file. Upload the file itself"


async def test_without_the_permission_they_are_told_which_one(teams: FakeTeams) -> None:
    teams.world.graph_permissions = set()
    assert await refusal(teams, shared(teams, createdBy=ANA)) == NOT_ALLOWED


@pytest.mark.parametrize("people", [{"createdBy": ANA}, {"createdBy": BEN, "lastModifiedBy": ANA.upper()}])
async def test_what_the_author_put_there_or_wrote_in_is_read(teams: FakeTeams, people: dict[str, str]) -> None:
    assert await fetched(teams, shared(teams, **people)) == b"hello"


@pytest.mark.parametrize("people", [{}, {"createdBy": BEN}, {"createdBy": BEN, "lastModifiedBy": BEN}])
async def test_nobody_reads_by_the_apps_permission_what_they_may_not_read_themselves(
    teams: FakeTeams, people: dict[str, str]
) -> None:
    """Where a file lies can be written by hand, and the app may read every file of the tenant."""
    assert await refusal(teams, shared(teams, **people)) == "someone else put it there. Upload it yourself"
    assert [call.verb for call in teams.login_calls if call.verb.startswith("file")] == ["file_facts"]


async def test_what_is_gone_or_too_large_is_said_before_it_is_fetched(teams: FakeTeams) -> None:
    assert await refusal(teams, shared(teams, "gone.txt", None)) == "it isn’t available any more"
    assert await refusal(teams, shared(teams, createdBy=ANA), limit=4) == "it is larger than 20 MB"
    assert not any(call.verb == "file" for call in teams.login_calls)


async def test_a_place_without_a_tenant_of_ours_is_not_asked_for(teams: FakeTeams) -> None:
    nowhere = ConversationReference("teams", "teams:z", {"tenant": "20000000-0000-4000-8000-000000000002"})
    assert await refusal(teams, shared(teams, createdBy=ANA), nowhere) == NOT_ALLOWED
