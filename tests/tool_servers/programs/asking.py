"""A server whose tools ask before they act: `asking.py FILE stdio`, or `asking.py FILE http|sse` (prints its port).

What the tools did is appended to FILE.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel, Field
from starlette.applications import Starlette

mcp = FastMCP("asking", log_level="ERROR")
done = Path(sys.argv[1])
deaf: set[asyncio.Task[None]] = set()


class Size(BaseModel):
    size: int = Field(ge=1, le=10)


class Colour(BaseModel):
    colour: str


class Login(BaseModel):
    password: str


def did(what: str) -> None:
    with done.open("a") as file:
        file.write(f"{what}\n")


@mcp.tool()
def echo(text: str) -> str:
    """Repeats a text."""
    return text


@mcp.tool()
def process() -> str:
    """Which process this is."""
    return str(os.getpid())


@mcp.tool()
async def order(item: str, ctx: Context) -> str:  # type: ignore[type-arg]  # FastMCP finds it by this annotation
    """Asks for a size, then orders."""
    answer = await ctx.elicit(message=f"Which size of {item}?", schema=Size)
    if answer.action != "accept":
        did(f"{answer.action} {item}")
        return f"no order: {answer.action}"
    did(f"order {item} {answer.data.size}")
    return f"ordered {item} in {answer.data.size}"


@mcp.tool()
async def act_and_ask(item: str, ctx: Context) -> str:  # type: ignore[type-arg]
    """Acts first, and asks then."""
    did(f"acted on {item}")
    answer = await ctx.elicit(message=f"Which size of {item}?", schema=Size)
    return f"{item}: {answer.action}"


@mcp.tool()
async def paint(item: str, ctx: Context) -> str:  # type: ignore[type-arg]
    """Asks twice, then paints."""
    size = await ctx.elicit(message="Which size?", schema=Size)
    colour = await ctx.elicit(message="Which colour?", schema=Colour)
    if size.action != "accept" or colour.action != "accept":
        return "not painted"
    did(f"paint {item} {size.data.size} {colour.data.colour}")
    return f"painted {item} {colour.data.colour}"


@mcp.tool()
async def changing(ctx: Context) -> str:  # type: ignore[type-arg]
    """Asks something else in each process."""
    answer = await ctx.elicit(message=f"Which size in process {os.getpid()}?", schema=Size)
    return answer.action


@mcp.tool()
async def log_in(ctx: Context) -> str:  # type: ignore[type-arg]
    """Asks for a password, which it must not."""
    answer = await ctx.elicit(message="Please log in", schema=Login)
    return f"log in: {answer.action}"


@mcp.tool()
async def insist(times: int, ctx: Context) -> str:  # type: ignore[type-arg]
    """Asks for a password again and again."""
    answers = [(await ctx.elicit(message="Please log in", schema=Login)).action for _ in range(times)]
    return f"declined {answers.count('decline')}, cancelled {answers.count('cancel')}"


@mcp.tool()
async def ask_at_once(times: int, ctx: Context) -> str:  # type: ignore[type-arg]
    """Asks many things at the same time."""

    async def ask(number: int) -> None:
        did((await ctx.elicit(message=f"Which size of {number}?", schema=Size)).action)

    await asyncio.gather(*map(ask, range(times)))
    return "asked"


@mcp.tool()
async def link(ctx: Context) -> str:  # type: ignore[type-arg]
    """Wants a link to be opened in the middle of the call."""
    answer = await ctx.elicit_url(message="Pay here", url="https://pay.test/bill?id=7", elicitation_id="bill-7")
    did(f"link {answer.action}")
    return f"link: {answer.action}"


@mcp.tool()
async def pay_and_paint(item: str, ctx: Context) -> str:  # type: ignore[type-arg]
    """Acts after a link, and asks once more."""
    await ctx.elicit_url(message="Pay here", url="https://pay.test/bill?id=8", elicitation_id="bill-8")
    did(f"charged for {item}")
    colour = await ctx.elicit(message="Which colour?", schema=Colour)
    return f"painted {item}: {colour.action}"


@mcp.tool()
async def log_in_and_paint(item: str, ctx: Context) -> str:  # type: ignore[type-arg]
    """Acts after a question that nobody is asked, and asks once more."""
    await ctx.elicit(message="Please log in", schema=Login)
    did(f"begun {item}")
    colour = await ctx.elicit(message="Which colour?", schema=Colour)
    return f"painted {item}: {colour.action}"


@mcp.tool()
async def deaf_order(item: str, ctx: Context) -> str:  # type: ignore[type-arg]
    """Does not hear that nobody waits any more, and asks when FILE says `ask`."""
    did(f"begun {item}")

    async def ask() -> None:
        while "ask" not in done.read_text().splitlines():
            await asyncio.sleep(0.01)
        answer = await ctx.elicit(message=f"Which size of {item}?", schema=Size)
        did(f"{answer.action} {item}")

    task = asyncio.create_task(ask())
    deaf.add(task)
    await asyncio.shield(task)
    return "ordered"


@mcp.tool()
async def tell_link(ctx: Context) -> str:  # type: ignore[type-arg]
    """Says where to sign in as its progress."""
    await ctx.report_progress(1, 2, "Open https://idp.test/authorize?client_id=c&response_type=code&state=s3cr3t")
    return "told"


@mcp.tool()
async def paid(ctx: Context) -> str:  # type: ignore[type-arg]
    """Says that the link was used."""
    await ctx.session.send_elicit_complete("bill-7")
    return "noted"


@mcp.tool()
async def slow_order(item: str, ctx: Context) -> str:  # type: ignore[type-arg]
    """Says that it has begun, and asks only when FILE says `ask`."""
    did(f"begun {item}")
    while "ask" not in done.read_text().splitlines():
        await asyncio.sleep(0.01)
    return await order(item, ctx)


@mcp.tool()
def please_sign_in() -> str:
    """Gives a link in place of a result."""
    return (
        "Please sign in first: https://accounts.test/oauth/authorize?client_id=c&response_type=code&state=s3cr3t-st4te"
    )


async def serve_http(app: Starlette) -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[2] in {"http", "sse"}:
        asyncio.run(serve_http(mcp.sse_app() if sys.argv[2] == "sse" else mcp.streamable_http_app()))
    else:
        mcp.run("stdio")
