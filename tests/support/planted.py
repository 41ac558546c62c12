"""Secrets planted in what tools say, and the places that they must not be found in."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Annotated
from urllib.parse import quote

from mcp.server.fastmcp import Context
from mcp.types import TextContent
from pydantic import Field

from tests.support.product import STARTS_WITHIN, ProductFolder
from tests.support.tools import Workshop, entry

TOKEN = "ghp_" + "S3edEd" * 6
PASSWORD = "correct-horse-battery-9"
BADGE = "B-123456"
HANDED = 'handed/to+the "server" 7'
"""What the product itself hands to the tool server, which may say it again in any writing."""
WRITTEN = (json.dumps(HANDED)[1:-1], quote(HANDED, safe=""), b64encode(HANDED.encode()).decode().rstrip("="))
PLANTED = (TOKEN, TOKEN[:22], TOKEN[-18:], PASSWORD, BADGE, HANDED, *WRITTEN)
"""Halves too: a token is cut in two between content blocks."""
ADDRESS = f"postgresql://app:{PASSWORD}@db.example.com/app"

LEAKS = (
    "use leak what=a; leak_structured what=b; leak_at_the_cut what=c; leak_and_fail what=d; leak_in_halves what=e; "
    "leak_what_it_was_given what=f; leak what=7 count=many"
)
COLD = STARTS_WITHIN
"""Seconds for a first answer: the product that has just been started still imports the SDKs of its tool servers and its
model, and on a machine that runs many tests at once that alone has taken 20."""


def plant(home: ProductFolder, shop: Workshop) -> None:
    """Have the tools of the product tell secrets: in results, errors, progress, descriptions."""

    async def leak(what: str, ctx: Context, count: int = 1) -> str:  # type: ignore[type-arg]
        await ctx.report_progress(1, 2, f"signing in with {TOKEN[:9]}\x07{TOKEN[9:]} at {ADDRESS}, badge {BADGE}")
        return f"{what}: token {TOKEN}, {ADDRESS}, badge {BADGE}"

    async def leak_structured(
        what: str,
        password: Annotated[str, Field(description=f"like {TOKEN}", examples=[ADDRESS])] = PASSWORD,
    ) -> dict[str, str]:
        return {"what": what, "password": password, "note": f"{TOKEN} of {BADGE}"}

    async def leak_at_the_cut(what: str) -> str:
        return "x " * 7_970 + f"{TOKEN} {BADGE} {ADDRESS} " + "y " * 9_000

    async def leak_and_fail(what: str) -> str:
        raise ValueError(f"{what}: {ADDRESS} refused {TOKEN} of {BADGE}")

    async def leak_in_halves(what: str) -> list[TextContent]:
        halves = (f"{what} begins {TOKEN[:22]}", f"{TOKEN[22:]} and ends")
        return [TextContent(type="text", text=half) for half in halves]

    async def leak_what_it_was_given(what: str) -> str:
        return f"{what}: {HANDED}, {', '.join(WRITTEN)}"

    for tool in (leak, leak_structured, leak_at_the_cut, leak_and_fail, leak_in_halves, leak_what_it_was_given):
        shop.server.tool(title=f"Tells {TOKEN}", description=f"Signs in with {TOKEN} at {ADDRESS}.")(tool)
    home.tool_servers({"workshop": entry(shop, headers={"X-Api-Key": HANDED})})
    home.variables |= {"REDACT_PATTERNS": json.dumps({"badge": "B-[0-9]{6}"}), "LOG_LEVEL": "debug"}


def assert_nowhere(where: str, text: str) -> None:
    """None of the planted secrets is in a text, as it is or as JSON writes it."""
    for secret in PLANTED:
        assert secret not in text, f"{secret} is in {where}: {text[max(0, text.find(secret) - 200) :][:400]}"
