"""Calls to a well-behaved server over stdio: what goes there, what comes back."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.tool_servers.servers import ToolServers
from graph.ports import Failed, OutcomeUnknown, QuestionPut, SignInNeeded, Succeeded
from policies.model import Annotations

from .conftest import CALLER, Heard, call, made, running, server, until_found

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ToolServers]:
    entry = server(
        "friendly.py",
        "stdio",
        category="office",
        trustAnnotations=True,
        env={"MY_TOKEN": "${DRIVE_TOKEN}", "PLACE": "the office"},
    )
    folder = tmp_path_factory.mktemp("stdio")
    with pytest.MonkeyPatch.context() as own:
        own.setenv("SLACK_BOT_TOKEN", "xoxb-of-the-bot")
        async with running(folder, {"friendly": entry}, environ={"DRIVE_TOKEN": "hunter2hunter2"}) as started:
            yield started


async def test_its_tools_are_there_with_what_it_says_of_them(servers: ToolServers) -> None:
    echo = await servers.find("friendly__echo")
    assert echo in await servers.available()
    assert echo is not None
    assert (echo.title, echo.description, echo.category) == ("Say it again", "Repeats a text.", "office")
    assert echo.annotations == Annotations(read_only=True, open_world=False)
    assert echo.repeatable
    assert servers.unavailable() == []
    assert [(each.server, each.state, each.reason) for each in servers.status()] == [("friendly", "up", "")]


async def test_its_tools_are_declared_as_it_lists_them(servers: ToolServers) -> None:
    echo, person = await servers.find("friendly__echo"), await servers.find("friendly__person")
    assert echo is not None
    assert person is not None
    declared = servers.declared(echo)
    assert declared is not None
    assert (declared["name"], declared["title"]) == ("echo", "Say it again")
    assert declared["annotations"] == {"readOnlyHint": True, "openWorldHint": False}
    assert declared["inputSchema"] == echo.input_schema
    declared = servers.declared(person)
    assert declared is not None
    assert declared["outputSchema"]["required"] == ["name", "age"]
    assert servers.declared(replace(echo, name="other")) is None


async def test_a_call_returns_what_the_tool_returns(servers: ToolServers) -> None:
    assert await call(servers, "friendly__echo", text="äb", times=2) == Succeeded("äbäb")


async def test_structured_content_comes_once(servers: ToolServers) -> None:
    got = await call(servers, "friendly__person")
    assert isinstance(got, Succeeded)
    assert got.text.count("Ana") == 1


async def test_a_program_gets_what_the_server_returned_besides(servers: ToolServers) -> None:
    program = replace(CALLER, keeps_returned=True)
    person = await call(servers, "friendly__person", caller=program)
    assert isinstance(person, Succeeded)
    assert person.returned is not None
    assert person.returned["structuredContent"] == {"name": "Ana", "age": 7}
    assert [json.loads(block["text"]) for block in person.returned["content"]] == [{"name": "Ana", "age": 7}]
    picture = await call(servers, "friendly__picture", caller=program)
    assert isinstance(picture, Succeeded)
    assert picture.text == "[image: image/png, 30 kB, left out]"
    assert picture.returned is not None
    (image,) = picture.returned["content"]
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(image["data"]) == b"\x89PNG" + bytes(30_000)
    broken = await call(servers, "friendly__broken", caller=program, text="hunter2hunter2 is it")
    assert isinstance(broken, Failed)
    assert broken.returned is not None
    assert broken.returned["content"][0]["text"].endswith("[redacted] is it")
    secret = await call(servers, "friendly__environment", caller=program, name="MY_TOKEN")
    assert isinstance(secret, Succeeded)
    assert "hunter2" not in str(secret.returned)


async def test_many_calls_at_once_get_their_own_answers(servers: ToolServers) -> None:
    got = await asyncio.gather(*(call(servers, "friendly__echo", text=str(i)) for i in range(50)))
    assert got == [Succeeded(str(i)) for i in range(50)]


async def test_wrong_arguments_are_not_sent(servers: ToolServers) -> None:
    got = await call(servers, "friendly__echo", times="x")
    assert isinstance(got, Failed)
    assert '"text" is missing' in got.text
    assert "\"times\": 'x' is not of type 'integer'" in got.text
    assert got.text.endswith("Nothing was called.")


async def test_progress_is_passed_on_while_the_tool_runs(servers: ToolServers) -> None:
    heard = Heard()
    assert await call(servers, "friendly__slow", heard, steps=4) == Succeeded("done")
    assert heard.steps == [("step 1", 0.25), ("step 2", 0.5), ("step 3", 0.75), ("step 4", 1.0)]


async def test_a_tools_own_error_is_told_without_secrets(servers: ToolServers) -> None:
    got = await call(servers, "friendly__broken", text="\x1b[31mkaboom\x1b[0m password=swordfish hunter2hunter2")
    assert isinstance(got, Failed)
    assert got.text.startswith("friendly reported an error: ")
    assert "kaboom password=[redacted] [redacted]" in got.text


async def test_a_picture_is_named(servers: ToolServers) -> None:
    assert await call(servers, "friendly__picture") == Succeeded("[image: image/png, 30 kB, left out]")


async def test_a_server_gets_its_environment_and_cannot_give_its_secrets_away(
    servers: ToolServers,
) -> None:
    assert await call(servers, "friendly__environment", name="PLACE") == Succeeded("the office")
    assert await call(servers, "friendly__environment", name="MY_TOKEN") == Succeeded("[redacted]")


async def test_a_server_gets_no_variable_of_the_bots_that_is_not_named_for_it(servers: ToolServers) -> None:
    assert await call(servers, "friendly__environment", name="SLACK_BOT_TOKEN") == Succeeded(
        "Done. The tool returned nothing."
    )


async def test_a_link_to_be_opened_first_is_a_sign_in(servers: ToolServers) -> None:
    got = await call(servers, "friendly__link_needed")
    assert got == SignInNeeded("https://drive.test/connect?e=1", "Connect your drive", "e1")


async def test_a_form_to_be_filled_in_is_a_question(servers: ToolServers) -> None:
    got = await call(servers, "friendly__form_needed")
    assert isinstance(got, QuestionPut)
    assert got.message == "Which size?"


async def test_a_huge_result_is_cut_for_the_model_and_whole_for_the_record(servers: ToolServers) -> None:
    got = await call(servers, "friendly__echo", text="0123456789", times=100_000)
    assert isinstance(got, Succeeded)
    assert len(got.text.encode()) <= 16_000
    assert len(got.whole) == 1_000_000


async def test_a_tool_that_no_server_has_is_not_found(servers: ToolServers) -> None:
    assert await servers.find("friendly__nothing") is None
    assert await servers.find("nobody__echo") is None


async def test_new_tools_are_listed_when_the_server_says_so(servers: ToolServers) -> None:
    assert await servers.find("friendly__grown") is None
    assert await call(servers, "friendly__grow") == Succeeded("changed")
    await until_found(servers, "friendly__grown")
    assert await call(servers, "friendly__grown") == Succeeded("grown")


async def test_a_server_that_dies_in_mid_call_breaks_off_that_call_and_comes_back(servers: ToolServers) -> None:
    assert isinstance(await call(servers, "friendly__die"), OutcomeUnknown)
    assert await call(servers, "friendly__echo", text="back") == Succeeded("back")


async def test_calls_have_a_time_limit(tmp_path: Path) -> None:
    async with running(tmp_path, {"friendly": server("friendly.py", "stdio", timeoutSeconds=2)}) as impatient:
        got = await call(impatient, "friendly__hang")
        assert isinstance(got, OutcomeUnknown)
        assert "none within 2 seconds" in got.text
        assert await call(impatient, "friendly__echo", text="still there") == Succeeded("still there")


async def test_a_cancelled_call_is_cancelled(servers: ToolServers) -> None:
    hang = await servers.find("friendly__hang")
    assert hang is not None
    calling = asyncio.create_task(made(servers, hang, {}))
    assert await call(servers, "friendly__echo", text="meanwhile") == Succeeded("meanwhile")
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
