"""`token create`, `token list` and `token revoke`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TextIO

from bot.commands.arguments import CommandError, parse_end
from bot.commands.opening import opened_records
from bot.domain import Clock
from bot.identity.page_people import PagePeople
from bot.identity.service_tokens import BadTokenError, ServiceTokens
from bot.records.service_tokens import ServiceTokenRow


def run(address: str, people: PagePeople, given: argparse.Namespace, clock: Clock, *, out: TextIO, err: TextIO) -> int:
    """Run one of them on the records at an address. Raises `CommandError`."""
    return asyncio.run(_run(address, people, given, clock, out=out, err=err))


async def _run(
    address: str, people: PagePeople, given: argparse.Namespace, clock: Clock, *, out: TextIO, err: TextIO
) -> int:
    async with opened_records(address) as database:
        tokens = ServiceTokens(database, people, clock)
        match given.verb:
            case "create":
                await _create(tokens, given, clock(), out=out, err=err)
            case "list":
                _write(await tokens.all(), clock(), out)
            case _:
                if not await tokens.revoke(given.id):
                    raise CommandError(f"there is no token {given.id} that counts: see `token list`")
                out.write(f"Token {given.id} no longer counts.\n")
    return 0


async def _create(tokens: ServiceTokens, given: argparse.Namespace, now: float, *, out: TextIO, err: TextIO) -> None:
    """The token alone goes where another program reads it."""
    try:
        token, row = await tokens.create(given.name, given.person, given.scopes, parse_end(given.expires, now))
    except BadTokenError as error:
        raise CommandError(str(error)) from error
    until = "until it is revoked" if row.expires_at is None else f"until {_moment(row.expires_at)}"
    err.write(
        f"Token {row.token_id} for {row.person_id} ({', '.join(row.scopes)}), {until}. It is shown only this once:\n"
    )
    out.write(f"{token}\n")


def _write(rows: Sequence[ServiceTokenRow], now: float, out: TextIO) -> None:
    if not rows:
        out.write("There are no tokens.\n")
    for row in rows:
        used = f"used {_moment(row.used_at)}" if row.used_at is not None else "never used"
        said = (row.token_id, _state(row, now), row.name, row.person_id, ",".join(row.scopes), used)
        out.write("  ".join(said) + "\n")


def _state(row: ServiceTokenRow, now: float) -> str:
    if row.revoked_at is not None:
        return f"revoked {_moment(row.revoked_at)}"
    if row.expires_at is None:
        return "never expires"
    return f"{'expired' if row.expires_at <= now else 'expires'} {_moment(row.expires_at)}"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
