"""Commands that only read, where DATABASE_URL names several servers: they read the one that the processes write to."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa

from bot.findings import Health, HeardTimes
from bot.records.checkup import record_findings
from tests.replicas.cluster import Cluster
from tests.replicas.standby import standby_of
from tests.support.commands import run_command

pytestmark = [pytest.mark.kills, pytest.mark.timeout(120)]


def faults(address: str) -> list[str]:
    """What `doctor` says of the records that is not fine."""
    found = record_findings(address, None, HeardTimes(time.time))
    return [each.where for each in found if each.status is not Health.FINE]


async def test_of_several_servers_the_one_that_takes_writes_is_read(cluster: Cluster, address: str) -> None:
    async with standby_of(cluster) as standby:
        both = sa.make_url(standby.address_of_both(address))
        first, second = str(both.query["host"]).split(",")
        for hosts in (f"{first},{second}", f"{second},{first}"):
            named = both.update_query_dict({"host": hosts})
            for url in (named, named.difference_update_query(["target_session_attrs"])):
                several = url.render_as_string(hide_password=False)
                assert faults(several) == []
                code, _, errors = run_command("audit", "verify", database=several)
                assert (code, errors) == (0, "")
        alone = sa.make_url(address).set(query={"host": second}).render_as_string(hide_password=False)
        assert faults(alone) == ["DATABASE_URL: leads to a server that takes no writes"]
        assert run_command("audit", "verify", database=alone)[0] == 0
