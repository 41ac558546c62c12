"""SIGHUP: a new policy holds at once, a bad one is refused and the old one stays."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot import policy_in_force
from bot.policy_in_force import PolicyInForce
from policies.judging import Policy, PolicyError
from tests.support.product import ProductFolder, product_process
from tests.support.tools import Workshop
from tests.support.visitor import visiting

DENIED = 'version: 1\nrules:\n  - {name: no making, match: {tool: "make*"}, decide: deny, reason: Not today.}\n'
ALLOWED = 'version: 1\nrules:\n  - {name: making, match: {tool: "make*"}, decide: allow}\n'
ASKED = 'version: 1\nrules:\n  - {name: making, match: {tool: "make*"}, decide: ask}\n'
BAD = "version: 1\nrules:\n  - {name: making, match: {tool: make}, decide: perhaps}\n"


async def test_a_bad_file_at_the_start_is_an_error(home: ProductFolder) -> None:
    home.policy(BAD)
    with pytest.raises(PolicyError, match="line 3"):
        PolicyInForce(home.folder / "policy.yaml", ["shop"])


async def test_a_bad_file_changes_nothing_and_a_good_one_is_read(home: ProductFolder) -> None:
    home.policy(ALLOWED)
    in_force = PolicyInForce(home.folder / "policy.yaml", ["shop"])
    before = in_force()
    home.policy(BAD)
    assert not await in_force.reload()
    (home.folder / "policy.yaml").unlink()
    assert not await in_force.reload()
    assert in_force() is before
    home.policy(DENIED)
    assert await in_force.reload()
    assert [rule.name for rule in in_force().rules] == ["no making"]


async def test_a_rule_about_a_server_that_there_is_not_is_warned_of(home: ProductFolder) -> None:
    """Rule 9: it denies nothing, and nobody would know."""
    home.policy(
        "version: 1\nrules:\n  - {name: a, match: {server: shop, tool: make}, decide: deny}\n"
        "  - {name: b, match: {server: shopp}, decide: deny}\n  - {name: c, match: {tool: shop__make}, decide: deny}\n"
    )
    with capture_logs() as logged:
        in_force = PolicyInForce(home.folder / "policy.yaml", ["shop"])
    assert [(entry["event"], entry["rule"]) for entry in logged] == [
        ("policy_rule_fits_no_server", "b"),
        ("policy_rule_fits_no_tool", "c"),
    ]
    with capture_logs() as logged:
        assert await in_force.reload()
    assert [entry["rule"] for entry in logged if entry["log_level"] == "warning"] == ["b", "c"]


async def test_rules_that_permit_something_to_a_name_that_a_program_gives_itself_are_warned_of(
    home: ProductFolder,
) -> None:
    home.policy(
        "version: 1\nrules:\n  - {name: a, match: {client: x}, decide: allow}\n"
        "  - {name: b, match: {client: x}, decide: deny}\n"
        "  - {name: c, match: {client: x, tool: y}, decide: ask, reads: true}\n"
        "  - {name: d, match: {client: x}, decide: ask}\n  - {name: e, match: {platform: mcp}, decide: allow}\n"
    )
    with capture_logs() as logged:
        PolicyInForce(home.folder / "policy.yaml", ["shop"])
    assert [(entry["event"], entry["rule"]) for entry in logged] == [
        ("policy_rule_believes_a_client", "a"),
        ("policy_rule_believes_a_client", "c"),
    ]


async def test_each_call_for_a_reload_is_answered_also_after_a_defect(
    home: ProductFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def defective(path: Path) -> Policy:
        read.append(path)
        raise RecursionError

    home.policy(ALLOWED)
    in_force, wanted = PolicyInForce(home.folder / "policy.yaml", ["shop"]), asyncio.Event()
    before = in_force()
    async with in_force.reloading_whenever(wanted):
        with monkeypatch.context() as broken:
            broken.setattr(policy_in_force, "load_policy", defective)
            wanted.set()
            await _becomes(lambda: bool(read))
        assert in_force() is before
        for written, name in ((DENIED, "no making"), (ALLOWED, "making"), (DENIED, "no making")):
            home.policy(written)
            wanted.set()
            wanted.set()
            await _becomes(lambda name=name: in_force().rules[0].name == name)


async def test_a_call_that_was_approved_does_not_run_once_a_reloaded_policy_denies_it(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.policy(ASKED)
    async with product_process(workshop_home) as product, visiting(product.url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp; make what=chair")
        lamp, chair = await thread.waiting(2)
        workshop_home.policy(DENIED)
        product.send(signal.SIGHUP)
        await _becomes(lambda: '"message": "policy_reloaded"' in product.log())
        await thread.approve(lamp["id"])
        await thread.approve(chair["id"])
        await thread.says("Blocked by policy: Not today.")
    assert shop.done == []


async def test_a_product_takes_a_new_policy_on_sighup_and_refuses_a_bad_one(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.policy(DENIED)
    async with product_process(workshop_home) as product, visiting(product.url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp")
        await thread.says("Blocked by policy: Not today.")
        workshop_home.policy(ALLOWED)
        product.send(signal.SIGHUP)
        await _becomes(lambda: '"message": "policy_reloaded"' in product.log())
        await thread.send("use make what=chair")
        await thread.says("made chair")
        workshop_home.policy(BAD)
        product.send(signal.SIGHUP)
        await _becomes(lambda: '"message": "policy_refused"' in product.log())
        refused = next(line for line in product.log().splitlines() if "policy_refused" in line)
        assert '"line": 3' in refused
        assert "perhaps" in refused
        await thread.send("use make what=table")
        await thread.says("made table")
    assert shop.done == ["make chair 1", "make table 1"]


async def _becomes(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)
