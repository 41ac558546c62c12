"""A whole product pushes its audit log, and what a SIEM has of it can be verified without the product."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.siem import TOKEN, FakeSiem, Trouble, fake_siem
from tests.support.certificates import certificate_of
from tests.support.forks import ROOT
from tests.support.product import ProductFolder, product_here, product_process
from tests.support.visitor import visiting

HEALTH = "a-token-for-health"
ALLOWED = {"Authorization": f"Bearer {HEALTH}"}
RULES = """
version: 1
rules:
  - {name: looking is free, match: {tool: look}, decide: allow}
"""


@pytest.fixture
async def siem() -> AsyncIterator[FakeSiem]:
    async with fake_siem() as running:
        yield running


@pytest.fixture
def home(workshop_home: ProductFolder, siem: FakeSiem) -> ProductFolder:
    workshop_home.policy(RULES)
    workshop_home.variables |= {
        "AUDIT_PUSH_URL": siem.url,
        "AUDIT_PUSH_TOKEN": TOKEN,
        "HEALTH_TOKEN": HEALTH,
        "METRICS": "true",
    }
    return workshop_home


def verified(siem: FakeSiem) -> tuple[int, str]:
    """What the verifier says of all that was taken."""
    done = subprocess.run(
        [sys.executable, "-I", str(ROOT / "deploy/verify_audit.py"), "-", "--whole"],
        input="\n".join(siem.lines),
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout


async def up_to_date(url: str) -> dict[str, Any]:
    """How far operators see that it is, once nothing waits."""
    async with asyncio.timeout(20), aiohttp.ClientSession() as http:
        while True:
            async with http.get(f"{url}/health-check", headers=ALLOWED) as response:
                standing: dict[str, Any] = (await response.json())["audit_push"]
            if standing["waiting"] == 0:
                return standing
            await asyncio.sleep(0.05)


async def test_calls_are_pushed_while_it_runs_and_operators_see_how_far_it_is(
    home: ProductFolder, siem: FakeSiem
) -> None:
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use look what=lamp; look what=table")
        await thread.says("looks fine")
        await siem.has(2)
        standing = await up_to_date(url)
        async with aiohttp.ClientSession() as http, http.get(f"{url}/metrics", headers=ALLOWED) as response:
            metrics = await response.text()
        assert "countersign_audit_push_waiting 0.0" in metrics
        assert "countersign_audit_push_failing_seconds 0.0" in metrics
        assert (standing["pushed"], standing["problem"]) == (2, None)
    assert siem.tokens == {f"Bearer {TOKEN}"}
    assert [event["api"]["operation"] for event in siem.events] == ["look", "look"]
    assert verified(siem)[0] == 0


async def test_a_service_that_does_not_answer_holds_up_no_turn(home: ProductFolder, siem: FakeSiem) -> None:
    siem.hold()
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use look what=lamp")
        await thread.says("looks fine")
        await siem.asked(1)
        await thread.send("use look what=table")
        await thread.until(lambda: len(thread.said) == 2)


async def test_a_product_that_is_killed_while_it_pushes_leaves_no_gap_and_its_log_has_neither_address_nor_token(
    home: ProductFolder, siem: FakeSiem
) -> None:
    async with product_process(home) as product:
        async with visiting(product.url) as ana, ana.thread() as thread:
            siem.hold()
            siem.troubles.append(Trouble(503))  # what the killed one has sent does not count
            await thread.send("use look what=lamp; look what=table; look what=chair")
            await thread.says("looks fine")
            await siem.asked(1)
        await product.kill()
        siem.go_on()
        await product.start()
        await siem.has(3)
        log = product.log()
    code, said = verified(siem)
    assert (code, "from 1 to 3" in said) == (0, True), said
    assert TOKEN not in log
    assert siem.url not in log


PUSH = """
import asyncio, sys
from adapters.siem.collector import EventCollector

async def push():
    collector = EventCollector(sys.argv[1], "a-token-of-the-siem")
    await collector.push(b'{"unmapped": {"chain": {"seq": 1}}}\\n')
    await collector.close()

asyncio.run(push())
"""


async def test_an_authority_of_ones_own_is_trusted_where_the_environment_names_it(tmp_path: Path) -> None:
    certificate = certificate_of("localhost", tmp_path)
    async with fake_siem(certificate) as siem:
        environment = {**os.environ, "SSL_CERT_FILE": str(certificate)}
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", PUSH, siem.url, env=environment, cwd=ROOT)
        assert await process.wait() == 0
    assert siem.numbers == [1]
