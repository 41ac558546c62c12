from __future__ import annotations
import pytest
from tests.both.conftest import Both
from tests.fakes.teams.server import TENANT
from tests.support.product import product_here
from tests.slack.product.talk import words as slack_words
from tests.teams.product.talk import words as teams_words
from tests.support.product import ProductProcess

SELF = """
version: 1
rules:
  - name: decided by colleagues
    match: {{tool: make}}
    decide: {decide}
    {rest}
"""
DENY = """
version: 1
rules:
  - name: never
    match: {tool: make}
    decide: deny
    reason: "Nothing *may* be <!channel> made @everyone [x](http://evil.example) from chat."
"""
@pytest.mark.parametrize("how", ["deny", "gone", "readonly"])
async def test_routed_then_denied(both: Both, how: str) -> None:
    both.policy(f"teams:{TENANT}:{both.teams.group}")
    async with both.running() as (slack, teams):
        await slack.mentions("use make what=lamp")
        here, there = await slack.card(), await teams.card()
    if how == "deny":
        both.home.policy(DENY)
    elif how == "gone":
        from tests.support.tools import entry
        both.home.tool_servers({"workshop": entry(both.shop, tools=["look"])})
    else:
        both.home.variables["AGENT_MODE"] = "readOnly"
    async with both.running() as (slack, teams):
        await teams.clicks(there, "approve")
        try:
            await both.teams.until(lambda: "Nothing was done" in teams_words([m for m in teams.of_the_bot() if m["id"]==there["id"]][0]), within=15)
        except Exception as e:
            print("TIMEOUT teams", e)
        print("TEAMS", [teams_words(m) for m in teams.of_the_bot()])
        import asyncio
        await asyncio.sleep(2)
        print("SLACK", [slack_words(m) for m in both.slack.messages("C1")])
        import json
        print(json.dumps([m for m in teams.of_the_bot() if m["id"]==there["id"]][0])[:3000])
        print(json.dumps([m for m in both.slack.messages("C1")])[:6000])
    print(both.shop.done)
