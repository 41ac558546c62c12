"""Two replicas push one audit log: when the one that sends is killed, the other one goes on, and nothing is missing."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from bot.audit.pushing import HELD_SECONDS
from tests.fakes.siem import Trouble, fake_siem
from tests.kills.people import PATIENCE, Ana
from tests.replicas.processes import replicas
from tests.replicas.visitors import roaming
from tests.support.commands import run_command
from tests.support.forks import ROOT
from tests.support.product import ProductFolder
from tests.support.visitor import Answer

pytestmark = [pytest.mark.kills, pytest.mark.waits, pytest.mark.timeout(240)]


async def test_what_a_killed_replica_was_sending_another_one_sends(home: ProductFolder, address: str) -> None:
    refused: list[Answer] = []
    async with fake_siem() as siem, replicas(home, address, AUDIT_PUSH_URL=siem.url) as (one, other):
        siem.hold()
        siem.troubles.append(Trouble(503))  # what the killed one has sent does not count
        await one.up()
        async with roaming([one.url], refused) as here, here.thread(within=PATIENCE) as thread:
            ana = Ana(thread, here, random.Random(0))
            await ana.say("do this")
            await ana.click(here, await ana.cards("this"), "approve")
            await ana.hears("done this")
        await siem.asked(1)
        await other.up()
        await one.kill()
        siem.go_on()
        code, exported, _ = run_command("audit", "export", database=address)
        assert code == 0
        await siem.has(len(exported.splitlines()), within=HELD_SECONDS + 60)
    verifier = [sys.executable, "-I", str(ROOT / "deploy/verify_audit.py"), "-", "--whole"]
    done = subprocess.run(
        verifier, input="\n".join(siem.lines), check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout
