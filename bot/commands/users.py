"""`user add`, `user list` and `user remove`. A server that runs on the same records sees at once what they do."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import sys
from datetime import UTC, datetime
from typing import TextIO

from bot.commands.arguments import CommandError
from bot.commands.opening import opened_records
from bot.domain import Clock
from bot.identity.people import WEB, user_person_id
from bot.identity.users import (
    LONGEST_PASSWORD,
    BadUserError,
    NameTakenError,
    Users,
    check_new_password,
    check_user_name,
)
from bot.records import identity
from bot.safe_text import visible_line


def run(address: str, given: argparse.Namespace, clock: Clock, *, out: TextIO) -> int:
    """Run one of them on the records at an address. Raises `CommandError`."""
    return asyncio.run(_run(address, given, clock, out))


async def _run(address: str, given: argparse.Namespace, clock: Clock, out: TextIO) -> int:
    match given.verb:
        case "add":
            await _add(address, given, clock, out)
        case "list":
            await _list(address, clock, out)
        case _:
            await _remove(address, given.name, clock, out)
    return 0


async def _add(address: str, given: argparse.Namespace, clock: Clock, out: TextIO) -> None:
    try:
        check_user_name(given.name)
        password = _new_password()
        check_new_password(password, given.name)
        async with opened_records(address) as database:
            user = await Users(database, clock).add(given.name, password, given.display_name)
    except BadUserError as error:
        raise CommandError(str(error)) from error
    except NameTakenError:
        raise CommandError(f"there is a user {given.name} already") from None
    out.write(f"{user.name} can sign in, as {user.person.person_id}.\n")


async def _list(address: str, clock: Clock, out: TextIO) -> None:
    async with opened_records(address) as database:
        users = await Users(database, clock).all()
        async with database.reading() as tx:
            others = await identity.all_identities(tx)
    for user in users:
        since = datetime.fromtimestamp(user.created_at, UTC).strftime("%Y-%m-%d")
        how = "  registered" if user.registered else ""
        out.write(f"{user.name}  {visible_line(user.display_name, 100)}  since {since}{how}\n")
    for other in others:
        out.write(
            "  ".join(visible_line(said, 200) for said in (other.person_id, other.name, other.email, other.issuer))
        )
        out.write("\n")
    if not users and not others:
        out.write("There are no users.\n")


async def _remove(address: str, name: str, clock: Clock, out: TextIO) -> None:
    person_id = name if name.startswith(f"{WEB}:") else user_person_id(name)
    async with opened_records(address) as database:
        if not await Users(database, clock).remove(person_id):
            raise CommandError(f"there is nobody of that name: {visible_line(name, 100)}")
    out.write(f"{visible_line(person_id, 100)} is signed out everywhere, and is no longer a user here.\n")


def _new_password() -> str:
    """From whoever types it, twice, or the first line of what is piped in. Never an argument: others can read those."""
    if not sys.stdin.isatty():
        return sys.stdin.readline(LONGEST_PASSWORD + 2).rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("The same again: ") != password:
        raise CommandError("these were two different passwords")
    return password
