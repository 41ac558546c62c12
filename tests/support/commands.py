"""The commands of `python app.py …`, in this process."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bot.commands import Surroundings, run
from bot.identity.page_people import PagePeople
from policies.model import Mode, Tool

ANYBODY = PagePeople("local", frozenset({"web:ana", "web:ben"}))


def run_command(
    *arguments: str,
    database: str,
    policy_file: Path = Path("policy.yaml"),
    further_tables: Callable[[], Sequence[Any]] = list,
    key_is_set: bool = False,
    tools: Sequence[Tool] = (),
    page_people: PagePeople = ANYBODY,
    now: float = 0.0,
) -> tuple[int, str, str]:
    """Run a command; its exit code, what it wrote, and its errors.

    Args:
        arguments: of the command.
        database: the address of the records.
        policy_file: of the policy, which some commands read.
        further_tables: tables that the product makes only where they are needed.
        key_is_set: whether `ENCRYPTION_KEY` is.
        tools: those that may be asked about.
        page_people: who there is on the page.
        now: what the clock shows, in seconds since the epoch.
    """
    out, err = io.StringIO(), io.StringIO()
    around = Surroundings(
        database=lambda: database,
        policy_file=lambda: policy_file,
        mode=lambda: Mode.DEFAULT,
        further_tables=further_tables,
        key_is_set=lambda: key_is_set,
        find_tool=lambda name: next((each for each in tools if each.full_name == name), None),
        page_people=lambda: page_people,
        clock=lambda: now,
        findings=lambda offline: [],
        chat=lambda url, thread_id: 0,
    )
    return run(arguments, around, out, err), out.getvalue(), err.getvalue()
