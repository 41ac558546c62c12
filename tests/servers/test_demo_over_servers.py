"""The demo model's calls are made at the real servers, and their real results are fed back."""

from __future__ import annotations

from contextlib import AsyncExitStack

from jsonschema import Draft202012Validator

from tests.demo.chat import Chat
from tests.servers.conftest import Client, Serving


async def carry_out(chat: Chat, servers: dict[str, Client]) -> None:
    """Make all calls, as if everybody approved, until the model has nothing more to call."""
    while chat.calls:
        texts = []
        for call in chat.calls:
            server, _, name = call["name"].partition("__")
            schema = (await servers[server].tools())[name].inputSchema
            Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(call["args"])
            texts.append(await servers[server].text(name, **call["args"]))
        chat.results(*texts)


async def test_whole_conversations_hold_at_the_real_servers(stdio: Serving) -> None:
    chat = Chat()
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(stdio(name)) for name in ("calendar", "tasks")}
        for said, told in (
            ("which calendars do I have", "- **My calendar** (primary)"),
            (
                "create 2 events: Team Meeting at 10am and Lunch with Bob at 3pm",
                "Created **Lunch with Bob**, Sat 21 Nov",
            ),
            ("move the meeting at 3pm to 4pm", "Moved **Lunch with Bob**, Sat 21 Nov, 16:00–17:00."),
            ("move Team Meeting to tomorrow", "Moved **Team Meeting**, Sun 22 Nov, 10:00–11:00."),
            ("what is on my calendar", "- **Lunch with Bob**, Sat 21 Nov, 16:00–17:00\n- **Team Meeting**, Sun 22 Nov"),
            ("delete the event Team Meeting", "Deleted the event **Team Meeting**"),
            ("what is on my calendar tomorrow", "There is nothing on your calendar for tomorrow."),
            ("add a task to buy milk", "Added the task **buy milk**."),
            ("add a task: write report by Friday", "Added the task **write report**, due 2026-11-27."),
            ("complete the task buy milk", "Completed the task **buy milk**."),
            ("list my tasks", "Your open tasks:\n\n- **write report**, due 2026-11-27"),
            ("delete the task buy milk", "Deleted the task **buy milk**."),
            ("show all tasks", "Your tasks:\n\n- **write report**, due 2026-11-27"),
        ):
            chat.says(said)
            await carry_out(chat, servers)
            assert told in chat.text
