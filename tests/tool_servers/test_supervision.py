"""Servers that die, hang, lie and refuse: each is kept running, and none of them is anybody else's problem."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from adapters.tool_servers import stdio
from adapters.tool_servers.config import ToolServersConfig, load_config
from adapters.tool_servers.servers import ToolServers, pause_after
from adapters.tool_servers.sessions import Timings
from graph.ports import Failed, OutcomeUnknown, Succeeded, ToolOutcome, Tools
from tests.support.waiting import at_most_waiting

from .conftest import PROGRAMS, QUICK, bare_server, call, is_running, lines, made, running, until, until_found


def odd(folder: Path, **more: Any) -> dict[str, Any]:
    return bare_server("odd.py", folder, **more)


def begun(servers: ToolServers, full_name: str, **arguments: Any) -> asyncio.Task[ToolOutcome]:
    return asyncio.create_task(call(servers, full_name, **arguments))


def status(servers: ToolServers, name: str = "odd") -> tuple[str, str]:
    (found,) = [each for each in servers.status() if each.server == name]
    return found.state, found.reason


# ---------------------------------------------------------------------------------------------- dying and coming back


async def test_a_dead_server_is_started_again_before_anybody_calls(tmp_path: Path) -> None:
    async with running(tmp_path, {"odd": odd(tmp_path)}) as servers:
        os.kill(int(lines(tmp_path / "starts")[0]), signal.SIGKILL)
        await until(lambda: len(lines(tmp_path / "starts")) == 2, "the second start")
        assert await call(servers, "odd__echo", text="back") == Succeeded("back")


async def test_a_call_to_a_server_that_has_just_died_waits_for_its_return(tmp_path: Path) -> None:
    unhurried = Timings(first_pause=0.5)
    async with running(tmp_path, {"odd": odd(tmp_path)}, timings=unhurried) as servers:
        os.kill(int(lines(tmp_path / "starts")[0]), signal.SIGKILL)
        await until(lambda: status(servers)[0] == "starting", "the notice")
        assert await call(servers, "odd__echo", text="back") == Succeeded("back")
        assert lines(tmp_path / "calls") == ["echo"]


async def test_a_death_in_mid_call_breaks_off_every_call_in_flight_there_and_none_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with running(tmp_path, {"odd": odd(tmp_path), "other": odd(tmp_path / "other")}) as servers:
        elsewhere = begun(servers, "other__hang")
        hanging = begun(servers, "odd__hang")
        await until(lambda: lines(tmp_path / "calls") == ["hang"], "the call's arrival")
        await until(lambda: lines(tmp_path / "other" / "calls") == ["hang"], "the other call's arrival")
        dying = await call(servers, "odd__die")
        assert isinstance(dying, OutcomeUnknown)
        assert "it’s unknown whether" in dying.text
        assert isinstance(await hanging, OutcomeUnknown)
        assert await call(servers, "odd__echo", text="back") == Succeeded("back")
        assert lines(tmp_path / "calls") == ["hang", "die", "echo"]
        assert not elsewhere.done()
        assert len(lines(tmp_path / "other" / "starts")) == 1
        elsewhere.cancel()


async def test_its_tools_are_found_while_it_is_being_started_again(tmp_path: Path) -> None:
    slow_restart = Timings(first_pause=30, longest_pause=30, patience=0.05)
    async with running(tmp_path, {"odd": odd(tmp_path)}, timings=slow_restart) as servers:
        await call(servers, "odd__die")
        await until(lambda: status(servers)[0] == "starting", "the restart")
        assert await servers.available() == []
        assert [each.server for each in servers.unavailable()] == ["odd"]
        got = await call(servers, "odd__echo", text="x")
        assert isinstance(got, Failed)
        assert "odd is unavailable" in got.text
        assert "Nothing was called" in got.text


async def test_a_server_that_cannot_start_is_tried_again_until_it_can(tmp_path: Path) -> None:
    (tmp_path / "no-start").touch()
    (tmp_path / "other").mkdir()
    async with running(tmp_path, {"odd": odd(tmp_path), "other": odd(tmp_path / "other")}) as servers:
        assert status(servers)[0] == "down"
        assert "ended while it was being started" in status(servers)[1]
        assert await call(servers, "other__echo", text="here") == Succeeded("here")
        await until(lambda: len(lines(tmp_path / "starts")) >= 3, "the third try")
        (tmp_path / "no-start").unlink()
        await until(lambda: status(servers) == ("up", ""), "the start")
        assert await call(servers, "odd__echo", text="at last") == Succeeded("at last")


async def test_a_server_that_is_down_is_started_at_once_when_somebody_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "no-start").touch()
    async with running(
        tmp_path, {"odd": odd(tmp_path)}, timings=Timings(first_pause=600, longest_pause=600)
    ) as servers:
        assert status(servers)[0] == "down"
        (tmp_path / "no-start").unlink()
        assert servers.retry("odd")
        await until(lambda: status(servers) == ("up", ""), "the start")
        assert not servers.retry("unknown")


async def test_a_server_that_is_up_is_connected_anew_and_calls_in_flight_go_on(tmp_path: Path) -> None:
    async with running(tmp_path, {"odd": odd(tmp_path)}) as servers:
        hanging = begun(servers, "odd__hang")
        await until(lambda: lines(tmp_path / "calls") == ["hang"], "the call's arrival")
        servers.retry("odd")
        await until(lambda: len(lines(tmp_path / "starts")) == 2, "the second start")
        assert await call(servers, "odd__echo", text="new") == Succeeded("new")
        assert not hanging.done()
        hanging.cancel()


async def test_a_server_that_ends_again_and_again_is_reported_as_down(tmp_path: Path) -> None:
    patient = Timings(first_pause=0.01, longest_pause=30)
    async with running(tmp_path, {"odd": odd(tmp_path)}, timings=patient) as servers:
        for _ in range(8):
            await call(servers, "odd__die")
            await until(lambda: status(servers)[0] != "starting", "the restart")
            if status(servers)[0] == "down":
                break
        assert status(servers) == ("down", "ended by itself")


async def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    async with running(tmp_path, {"a": {"command": "no-such-program"}, "b": odd(tmp_path, cwd="nowhere")}) as servers:
        assert status(servers, "a") == ("down", "cannot be started: no-such-program was not found")
        assert status(servers, "b")[1].endswith("nowhere was not found")


async def test_a_server_that_never_answers_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "no-answer").touch()
    short = Timings(start=0.3, first_pause=0.05)
    async with running(tmp_path, {"odd": odd(tmp_path)}, timings=short) as servers:
        assert status(servers) == ("down", "did not answer in time")
        (tmp_path / "no-answer").unlink()


async def test_an_idle_server_that_stops_answering_is_replaced(tmp_path: Path) -> None:
    strict = Timings(ping_every=0.1, ping=1, first_pause=0.02)
    async with running(tmp_path, {"odd": odd(tmp_path)}, timings=strict) as servers:
        (tmp_path / "no-answer").touch()
        await until(lambda: status(servers)[0] != "up", "the failed health check")
        (tmp_path / "no-answer").unlink()
        await until(lambda: status(servers) == ("up", ""), "the return")
        assert not is_running(int(lines(tmp_path / "starts")[0]))


async def test_a_busy_server_is_left_in_peace(tmp_path: Path) -> None:
    eager = Timings(ping_every=0.02)
    async with running(tmp_path, {"odd": odd(tmp_path, timeoutSeconds=1)}, timings=eager) as servers:
        hanging = begun(servers, "odd__hang")
        await until(lambda: lines(tmp_path / "calls"), "the call's arrival")
        (tmp_path / "no-answer").touch()
        pings = len(lines(tmp_path / "pings"))
        assert "none within 1 seconds" in str(await hanging)
        assert len(lines(tmp_path / "pings")) <= pings + 1  # one may have been on its way
        assert len(lines(tmp_path / "starts")) == 1


async def test_a_call_that_begins_during_a_health_check_is_not_broken_off_by_it(tmp_path: Path) -> None:
    eager = Timings(ping_every=0.02, ping=1)
    async with running(tmp_path, {"odd": odd(tmp_path, timeoutSeconds=2)}, timings=eager) as servers:
        (tmp_path / "no-answer").touch()
        pings = len(lines(tmp_path / "pings"))
        await until(lambda: len(lines(tmp_path / "pings")) > pings, "a health check")
        assert "none within 2 seconds" in str(await call(servers, "odd__hang"))
        assert len(lines(tmp_path / "starts")) == 1


def test_pauses_double_up_to_a_limit_and_are_spread() -> None:
    pauses = [pause_after(failures, Timings(), 1.0) for failures in (1, 2, 3, 7, 8, 10_000)]
    assert pauses == [0.5, 1.0, 2.0, 32.0, 60.0, 60.0]
    assert pause_after(8, Timings(), 0.0) == 30.0


# ---------------------------------------------------------------------------------------------- calls that go wrong


async def test_a_call_that_takes_too_long_breaks_off_and_the_server_is_told(tmp_path: Path) -> None:
    async with running(tmp_path, {"odd": odd(tmp_path, timeoutSeconds=1)}) as servers:
        got = await call(servers, "odd__hang")
        assert isinstance(got, OutcomeUnknown)
        await until(lambda: len(lines(tmp_path / "cancelled")) == 1, "the cancellation's arrival")
        assert await call(servers, "odd__echo", text="next") == Succeeded("next")


async def test_a_cancelled_call_is_cancelled_at_the_server_too(tmp_path: Path) -> None:
    async with running(tmp_path, {"odd": odd(tmp_path)}) as servers:
        calling = begun(servers, "odd__hang")
        await until(lambda: lines(tmp_path / "calls"), "the call's arrival")
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await until(lambda: len(lines(tmp_path / "cancelled")) == 1, "the cancellation's arrival")


@pytest.mark.parametrize("code", [-32601, -32602, -32603, -32000, 408])
async def test_an_error_of_the_protocol_is_a_failure(tmp_path: Path, code: int) -> None:
    async with running(tmp_path, {"odd": odd(tmp_path)}) as servers:
        got = await call(servers, "odd__fail", code=code, message="No way.")
        assert got == Failed("odd reported an error: No way.")


async def test_noise_between_the_messages_does_no_harm_and_is_logged_once(tmp_path: Path) -> None:
    """Rule 13: a server may send nothing but noise for ever."""
    with capture_logs() as logs:
        async with running(tmp_path, {"odd": odd(tmp_path)}) as servers:
            assert await call(servers, "odd__noise") == Succeeded("after the noise")
    said = [each["server"] for each in logs if each["event"] == "tool_server_sent_no_message"]
    assert said == ["odd"]


async def test_an_answer_that_makes_no_sense_leaves_the_call_open(tmp_path: Path) -> None:
    async with running(tmp_path, {"odd": odd(tmp_path)}) as servers:
        assert isinstance(await call(servers, "odd__nonsense"), OutcomeUnknown)
        assert await call(servers, "odd__echo", text="fine") == Succeeded("fine")


# ---------------------------------------------------------------------------------------------- tools that change


def listed(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "inputSchema": {"type": "object"}} for name in names]


async def test_tools_are_listed_anew_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path, {"odd": odd(tmp_path)}) as servers:
        (tmp_path / "tools.json").write_text(json.dumps(listed("die", "new")))
        await call(servers, "odd__die")
        await until_found(servers, "odd__new")
        assert await servers.find("odd__echo") is None


async def test_a_tool_that_has_gone_or_changed_is_not_called(tmp_path: Path) -> None:
    async with running(tmp_path, {"odd": odd(tmp_path)}) as servers:
        echo, hang = await servers.find("odd__echo"), await servers.find("odd__hang")
        assert echo
        assert hang
        changed = {"name": "echo", "inputSchema": {"type": "object", "required": ["text"]}}
        await call(servers, "odd__swap", tools=[changed])
        await until(lambda: servers.status()[0].tools == 1, "the new listing")
        assert "has changed" in str(await made(servers, echo, {"text": "x"}))
        assert "no longer has" in str(await made(servers, hang, {}))
        assert lines(tmp_path / "calls") == ["swap"]


async def test_an_approval_for_an_unknown_tool_withholds_the_server_until_it_has_the_tool(tmp_path: Path) -> None:
    async with running(tmp_path, {"odd": odd(tmp_path, requireApproval=["wipe"])}) as servers:
        assert status(servers)[0] == "misconfigured"
        assert "does not have: wipe" in servers.unavailable()[0].reason
        assert await servers.available() == []
        assert await servers.find("odd__echo") is None


async def test_a_listed_approval_and_the_choice_of_tools_are_kept(tmp_path: Path) -> None:
    entry = odd(tmp_path, tools=["echo", "fail"], requireApproval=["fail"])
    async with running(tmp_path, {"odd": entry}) as servers:
        assert [(each.name, each.requires_approval) for each in await servers.available()] == [
            ("echo", False),
            ("fail", True),
        ]


async def test_a_server_cannot_make_more_of_itself_than_it_may(tmp_path: Path) -> None:
    hostile = [*listed("ok", "<!channel>", "ok"), {"name": "list", "inputSchema": {"type": "array"}}, "no tool"]
    (tmp_path / "tools.json").write_text(json.dumps(hostile))
    with capture_logs() as logs:
        async with running(tmp_path, {"odd": odd(tmp_path)}) as servers:
            assert [each.full_name for each in await servers.available()] == ["odd__ok"]
    assert len([entry for entry in logs if entry["event"] == "tool_server_tool_skipped"]) == 4


async def test_forms_and_links_are_promised_to_servers(tmp_path: Path) -> None:
    async with running(tmp_path, {"odd": odd(tmp_path)}):
        assert lines(tmp_path / "capabilities") == ['{"elicitation": {"form": {}, "url": {}}}']


async def test_the_log_names_the_tools_that_a_server_starts_with(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with running(tmp_path, {"odd": odd(tmp_path, tools=["echo", "talk"])}):
            pass
    (up,) = [each for each in logs if each["event"] == "tool_server_up"]
    assert (up["server"], up["tools"], up["names"]) == ("odd", 2, ["echo", "talk"])


# ---------------------------------------------------------------------------------------------- standard error


async def test_what_a_server_writes_to_standard_error_is_logged_without_secrets(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    entry = odd(tmp_path, env={"API_TOKEN": "hunter2hunter2"})
    with capture_logs() as logs:
        async with running(tmp_path, {"odd": entry}) as servers:
            await call(servers, "odd__talk", text="one\x1b[31m two\nkey hunter2hunter2\n" + "x" * 50_000 + "\nlast")
            await until(lambda: len([each for each in logs if each["event"] == "tool_server_stderr"]) >= 3, "the lines")
    said = [each["line"] for each in logs if each["event"] == "tool_server_stderr"]
    assert said[:2] == ["one two", "key [redacted]"]
    assert len(said[2]) == 1_000
    assert said[3] == "last"
    assert capfd.readouterr().err == ""


async def test_a_server_that_floods_its_standard_error_is_cut_short(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with running(tmp_path, {"odd": odd(tmp_path)}) as servers:
            assert await call(servers, "odd__talk", text="noise\n" * 50_000) == Succeeded("said")
    assert len([each for each in logs if each["event"] == "tool_server_stderr"]) == 100


async def test_standard_error_is_read_no_faster_than_what_a_server_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 13: a program that writes without end kept a core busy without end."""
    taken: list[int] = []

    class Counting(stdio.Intake):
        def pause(self, taken_now: int) -> float:
            taken.append(taken_now)
            return super().pause(taken_now)

    monkeypatch.setattr(stdio, "Intake", Counting)
    async with running(tmp_path, {"odd": odd(tmp_path)}) as servers:
        await call(servers, "odd__talk", text="noise\n" * 50_000)
        await until(lambda: sum(each for each in taken if each <= stdio.STDERR_PIECE) >= 300_000, "all of it")


# ---------------------------------------------------------------------------------------------- starting and closing


async def test_starting_returns_at_once_and_the_servers_come_up_behind(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"odd": odd(tmp_path)}}))
    servers = ToolServers(load_config(file, {}), timings=QUICK)
    await servers.start()
    try:
        assert status(servers) == ("starting", "is being started")
        assert not await servers.settled(0)
        assert await servers.settled(60)
        assert status(servers) == ("up", "")
    finally:
        await servers.close()


async def test_closing_ends_every_process_and_every_call(tmp_path: Path) -> None:
    async with running(tmp_path, {"odd": odd(tmp_path)}, timings=Timings(first_pause=60)) as servers:
        calling = begun(servers, "odd__hang")
        await until(lambda: lines(tmp_path / "calls"), "the call's arrival")
        async with at_most_waiting(4):
            await servers.close()
        assert isinstance(await calling, OutcomeUnknown)
        assert status(servers) == ("closed", "is shut down")
        assert not is_running(int(lines(tmp_path / "starts")[0]))
        assert isinstance(await call(servers, "odd__echo", text="x"), Failed)
        assert [task.get_name() for task in asyncio.all_tasks() if "tool" in task.get_name()] == []


async def test_even_a_stubborn_server_is_gone_within_five_seconds(tmp_path: Path) -> None:
    (tmp_path / "stubborn").touch()
    async with running(tmp_path, {"odd": odd(tmp_path)}) as servers:
        async with at_most_waiting(5):
            await servers.close()
        assert not is_running(int(lines(tmp_path / "starts")[0]))


async def test_servers_can_be_closed_while_they_start(tmp_path: Path) -> None:
    (tmp_path / "no-answer").touch()
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"odd": odd(tmp_path)}}))
    servers = ToolServers(load_config(file, {}), timings=QUICK)
    await servers.start()
    await until(lambda: lines(tmp_path / "starts"), "the start")
    async with at_most_waiting(5):
        await servers.close()
    assert not is_running(int(lines(tmp_path / "starts")[0]))


async def test_no_servers_are_no_problem() -> None:
    servers = ToolServers(ToolServersConfig())
    await servers.start()
    assert await servers.settled(0)
    tools: Tools = servers
    assert (await tools.available(), tools.unavailable(), servers.status()) == ([], [], [])
    await servers.close()


async def test_a_server_for_which_everybody_must_sign_in_is_honestly_unavailable(tmp_path: Path) -> None:
    async with running(tmp_path, {"drive": {"url": "http://127.0.0.1:9/mcp", "auth": "oauth"}}) as servers:
        assert status(servers, "drive") == (
            "unsupported",
            "needs every person to sign in, and there are no accounts here",
        )
        assert servers.unavailable()[0].server == "drive"


def test_a_result_limit_that_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 256"):
        ToolServers(ToolServersConfig(), result_limit=10)


async def test_the_package_is_light_until_a_server_is_started() -> None:
    script = "import sys, adapters.tool_servers.servers; print([m for m in ('mcp', 'jsonschema') if m in sys.modules])"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, cwd=PROGRAMS.parents[2], stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert output.decode().strip() == "[]"
