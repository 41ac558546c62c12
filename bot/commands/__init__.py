"""What `python app.py` does besides serving: say whether all is well, look into the audit log, try out a policy,
upgrade the records or move them to PostgreSQL, and say who may sign in or send a token. All but that, and the upgrade,
change nothing.

`run` gets what it needs from the outside (`Surroundings`), so that each command is a function from arguments to lines.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from bot.commands import audit, doctor, policy
from bot.commands.arguments import CommandError, parser
from bot.domain import Clock
from bot.findings import Finding
from bot.identity.page_people import PagePeople
from policies.judging import PolicyError
from policies.model import Mode, Tool

if TYPE_CHECKING:
    from bot.records.copying import Tables


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What commands work on. Each is asked for only by the commands that need it."""

    database: Callable[[], str]
    """The address of the records."""
    policy_file: Callable[[], Path]
    mode: Callable[[], Mode]
    further_tables: Callable[[], Tables]
    """The tables that others keep beside the records."""
    key_is_set: Callable[[], bool]
    """Whether there is an ENCRYPTION_KEY."""
    find_tool: Callable[[str], Tool | None]
    """The tool of that name, `{server}__{tool}`, from its server; `None`: there is none, or it is out of reach."""
    page_people: Callable[[], PagePeople]
    """Who there is on the page."""
    clock: Clock
    findings: Callable[[bool], Sequence[Finding]]
    """What is found out about this installation; given whether nobody outside may be asked."""
    chat: Callable[[str, str], int]
    """Talks with the bot at an address (empty: this installation's), in a conversation (empty: a new one)."""


def run(arguments: Sequence[str], around: Surroundings, out: TextIO = sys.stdout, err: TextIO = sys.stderr) -> int:
    """Run one command; its exit code: 0, 1 when what was looked for is wrong, 2 when it was asked wrongly."""
    given = parser().parse_args(arguments)
    try:
        match given.area, given.verb:
            case "chat", _:
                return around.chat(given.url, given.thread)
            case "doctor", _:
                return doctor.report(around.findings(given.offline), out, as_json=given.json)
            case "audit", "verify":
                return audit.verify(around.database(), given.anchor, out)
            case "audit", "export":
                return audit.export(around.database(), given, around.clock(), out)
            case "policy", _:
                return _policy(given, around, out, err)
            case "migrate", _:
                return _migrate(given, around, out)
            case _:
                return _who_comes_in(given, around, out, err)
    except PolicyError as error:
        err.write(f"{error}\n")
        return 1
    except BrokenPipeError:
        return _nobody_reads_on(out)
    except CommandError as error:
        err.write(f"countersign: {error}\n")
        return 2


def _policy(given: argparse.Namespace, around: Surroundings, out: TextIO, err: TextIO) -> int:
    match given.verb:
        case "check":
            return policy.check(given.file, out, err)
        case "explain":
            file, mode = given.file or around.policy_file(), given.mode or around.mode()
            return policy.explain_call(file, mode, given, find_tool=around.find_tool, now=around.clock(), out=out)
        case "suggest":
            return policy.suggest(given.file or around.policy_file(), around.database(), out)
        case _:
            return policy.replay(given.file, around.database(), given, now=around.clock(), out=out)


def _migrate(given: argparse.Namespace, around: Surroundings, out: TextIO) -> int:
    from bot.commands import migrate  # noqa: PLC0415  # both databases' drivers, and LangGraph's savers

    if given.verb == "up":
        return migrate.upgrade_records(around.database(), out)
    further, key_is_set = around.further_tables, around.key_is_set
    return migrate.copy(given.file, given.to, further=further, key_is_set=key_is_set, out=out)


def _who_comes_in(given: argparse.Namespace, around: Surroundings, out: TextIO, err: TextIO) -> int:
    from bot.commands import tokens, users  # noqa: PLC0415  # both databases' drivers

    if given.area == "user":
        return users.run(around.database(), given, around.clock, out=out)
    return tokens.run(around.database(), around.page_people(), given, around.clock, out=out, err=err)


def _nobody_reads_on(out: TextIO) -> int:
    """`… | head` has seen enough. What is still buffered must not be written at exit, where it would be an error."""
    with Path(os.devnull).open("w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), out.fileno())
    return 0
