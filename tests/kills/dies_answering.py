"""`python -m tests.kills.dies_answering`: the product, which dies when a program's call is answered.

`KILLS_WHEN`: `wait` — the result is on disk, and nothing of it is written to the program; `delivered` — all of it is
written, and that is not on disk.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import app
from bot.gateway.calls import GatewayCalls
from tests.kills.crash_points import DIED

DIES_ANSWERING = ("-m", "tests.kills.dies_answering")
"""Its command line."""
WHEN = "KILLS_WHEN"


def install(when: str) -> None:
    """Have it die there."""
    wait = GatewayCalls.wait

    async def waits(calls: GatewayCalls, gateway_call_id: str, *how_long: Any) -> Any:
        view = await wait(calls, gateway_call_id, *how_long)
        if view is not None and view.status == "ended":
            os._exit(DIED)
        return view

    async def delivered(*_of: Any) -> None:
        os._exit(DIED)

    if when == "wait":
        GatewayCalls.wait = waits  # type: ignore[method-assign]
    else:
        GatewayCalls.delivered = delivered  # type: ignore[assignment]


if __name__ == "__main__":
    install(os.environ[WHEN])
    sys.exit(app.main())
