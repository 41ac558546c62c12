"""Every call of a whole product is in the audit log, once."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from mcp.types import ToolAnnotations

from tests.support.commands import run_command
from tests.support.product import ProductFolder, product_here
from tests.support.product_records import change_records
from tests.support.tools import Workshop, entry
from tests.support.visitor import Thread, visiting

RULES = """
version: 1
rules:
  - {name: looking is free, match: {tool: look}, decide: allow}
  - {name: no deleting, match: {tool: delete}, decide: deny, reason: Nothing is deleted here.}
  - {name: makers ask, match: {tool: "make*"}, decide: ask, approvers: [requester], expiresIn: 24h}
"""


def audit(home: ProductFolder, *arguments: str) -> tuple[int, str]:
    """What `python app.py …` says of the product's records, while it runs."""
    code, out, err = run_command(*arguments, database=home.database, policy_file=home.folder / "policy.yaml")
    return code, out + err


def log_of(home: ProductFolder) -> list[dict[str, Any]]:
    """The entries; that they are in order is seen to."""
    assert audit(home, "audit", "verify")[0] == 0
    return [json.loads(line) for line in audit(home, "audit", "export")[1].splitlines()]


@pytest.fixture
def home(home: ProductFolder) -> ProductFolder:
    home.policy(RULES)
    return home


async def test_a_call_that_is_allowed_is_written_down_with_its_rule_and_its_output(
    at_work: Thread, home: ProductFolder
) -> None:
    await at_work.send("use look what=lamp")
    await at_work.says("looks fine")
    (entry,) = log_of(home)
    assert (entry["status"], entry["decision"], entry["rule"]) == ("done", "allow", "looking is free")
    assert (entry["requester"], entry["tool"], entry["input"]) == ("web:ana", "look", '{"what":"lamp"}')
    assert entry["thread"] == at_work.thread_id
    assert entry["source"].endswith(":4")
    assert len(entry["output"]) == 64
    assert entry["duration"] >= 0


async def test_the_approval_that_has_a_call_always_allowed_is_written_down_as_what_decided_it(
    workshop_home: ProductFolder,
) -> None:
    home = workshop_home
    home.policy(RULES.replace("expiresIn: 24h", "alwaysAllow: true"))
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as first, ana.thread() as second:
        await first.send("use make what=lamp")
        (card,) = await first.waiting()
        always = {"id": "a", "approvals": [card["id"]], "verb": "approve", "always_for": "8 h"}
        assert (await ana.post("/api/approvals/decisions", always)).status == 200
        await first.says("made lamp")
        await second.send("use make what=lamp")
        await second.says("made lamp")
    approved, standing = log_of(home)
    assert (approved["decision"], approved["rule"], standing["decision"]) == ("ask", "makers ask", "allow")
    assert approved["why"] == "Asked because rule “makers ask” covers make* on every server."
    assert standing["why"] == "Allowed by a standing approval of the requester."


async def test_a_call_that_is_approved_is_written_down_with_who_approved_it(
    at_work: Thread, home: ProductFolder
) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"])
    await at_work.says("made lamp")
    (entry,) = log_of(home)
    assert (entry["status"], entry["decision"], entry["approval"]) == ("done", "ask", card["id"])
    ((person, verb),) = [(vote["person"], vote["verb"]) for vote in entry["votes"]]
    assert (person, verb) == ("web:ana", "approve")


async def test_calls_that_were_not_made_are_written_down_with_the_reason(at_work: Thread, home: ProductFolder) -> None:
    await at_work.send("use delete what=lamp; fly what=lamp; make what=lamp")
    (card,) = await at_work.waiting()
    await at_work.reject(card["id"], "too many lamps")
    await at_work.says("Results")
    entries = {entry["status"]: entry for entry in log_of(home)}
    assert set(entries) == {"denied", "failed", "rejected"}
    assert "Nothing is deleted here." in entries["denied"]["note"]
    assert entries["failed"]["tool"] == "workshop__fly"
    (vote,) = entries["rejected"]["votes"]
    assert (vote["verb"], vote["reason"]) == ("reject", "too many lamps")
    assert entries["rejected"]["approval"] == card["id"]
    assert entries["rejected"]["why"] == card["why"] == "Asked because rule “makers ask” covers make* on every server."


async def test_a_call_that_was_approved_and_lacked_an_account_is_written_down_with_the_rule_that_asked(
    at_work: Thread, home: ProductFolder
) -> None:
    await at_work.send("use make_with_account what=lamp")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"])
    (sign_in,) = await at_work.until(lambda: at_work.contents("sign_in"), "a sign-in")
    await at_work.visitor.post(f"/api/sign-ins/{sign_in['id']}", {"id": "click", "done": False})
    await at_work.says("did not want to sign in")
    (entry,) = log_of(home)
    assert (entry["status"], entry["attempt"], len(entry["votes"])) == ("failed", None, 1)
    assert (entry["decision"], entry["rule"]) == ("ask", "makers ask")
    assert entry["why"].startswith("Asked because rule “makers ask” covers")


async def test_a_rejection_is_written_down_with_its_rule_and_keeps_what_is_suggested_also_while_the_tool_is_away(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    harmless = ToolAnnotations(readOnlyHint=False, destructiveHint=False, openWorldHint=False)

    async def build(what: str) -> str:
        return f"built {what}"

    shop.server.tool(title="Build it", annotations=harmless)(build)
    workshop_home.policy("version: 1\nrules:\n  - {name: builders ask, match: {tool: build}, decide: ask}\n")
    async with product_here(workshop_home) as url, visiting(url) as ana:
        for _ in range(10):
            async with ana.thread() as thread:
                await thread.send("use build what=lamp")
                (card,) = await thread.waiting()
                await thread.approve(card["id"])
                await thread.says("built lamp")
        async with ana.thread() as thread:
            await thread.send("use build what=lamp")
            (card,) = await thread.waiting()
    suggested = audit(workshop_home, "policy", "suggest")[1]
    workshop_home.tool_servers({"workshop": {"url": "http://127.0.0.1:9/mcp", "trustAnnotations": True}})
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread.thread_id) as thread:
        await thread.reject(card["id"], "no lamps")
        await thread.says("Rejected by Ana")
    assert "approved unchanged 10 times" in suggested
    assert "LOOSER" not in audit(workshop_home, "policy", "suggest")[1]
    rejected = log_of(workshop_home)[-1]
    assert (rejected["status"], rejected["server"], rejected["tool"]) == ("rejected", "workshop", "build")
    assert (rejected["decision"], rejected["rule"]) == ("ask", "builders ask")


async def test_a_call_that_was_superseded_is_written_down_once(at_work: Thread, home: ProductFolder) -> None:
    await at_work.send("use make what=lamp")
    await at_work.waiting()
    await at_work.send("never mind")
    await at_work.says("you said: never mind")
    (entry,) = log_of(home)
    assert (entry["status"], entry["rule"]) == ("superseded", "makers ask")
    assert entry["why"].startswith("Asked because rule “makers ask”")


async def test_a_call_that_failed_is_written_down_as_failed(at_work: Thread, home: ProductFolder) -> None:
    await at_work.send("use fail what=lamp")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"])
    await at_work.says("is broken")
    assert [entry["status"] for entry in log_of(home)] == ["failed"]


async def test_an_unknown_outcome_and_what_a_person_said_of_it_are_two_entries(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.tool_servers({"workshop": entry(shop, timeoutSeconds=3)})
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make_slowly what=lamp")
        (card,) = await thread.waiting()
        await thread.approve(card["id"])
        (outcome,) = await thread.until(lambda: thread.contents("outcome"))
        assert [entry["status"] for entry in log_of(workshop_home)] == ["unknown"]
        await ana.post(f"/api/outcomes/{quote(outcome['id'], safe='')}", {"id": "click", "choice": "it_was_done"})
        await thread.says("as ana confirmed")
    first, second = log_of(workshop_home)
    assert (first["status"], second["status"], second["settled"]["choice"]) == ("unknown", "done", "it_was_done")
    assert first["call"] == second["call"]


async def test_an_entry_that_is_taken_out_and_one_whose_end_was_never_written_are_missed(
    at_work: Thread, home: ProductFolder
) -> None:
    await at_work.send("use look what=lamp; look what=vase")
    await at_work.says("vase looks fine")
    change_records(home, "DELETE FROM audit WHERE seq = 2")  # the newest: the chain alone does not show it
    code, said = audit(home, "audit", "verify")
    assert code == 1
    assert "the ledger knows how it ended" in said
