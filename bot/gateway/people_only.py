"""What was asked through `/mcp` is decided and answered by people alone: an agent that holds its user's token must not
approve its own calls."""

from __future__ import annotations

from typing import Literal

from bot.domain import Refused
from bot.gateway.thread_ids import is_gateway_thread
from translations import gettext as _


def refused_to_programs(thread_id: str, via: Literal["", "api"]) -> Refused | None:
    """Returns why a program may not decide or answer what was asked in a thread; `None`: a person does, or it may.

    Args:
        via: how the decision came, as `Decision.via` has it.
    """
    only_people = Refused(_("Requested through /mcp: only a person can decide it, in Slack, Teams or on the page."))
    return only_people if via == "api" and is_gateway_thread(thread_id) else None
