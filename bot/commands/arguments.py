"""The commands' arguments, and how moments and ranges are written."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bot.identity.principal import ALL_SCOPES
from bot.records.addresses import sqlite_file
from bot.settings import database_address
from graph.agents import DEFAULT
from graph.json_values import parse_strictly
from policies.model import PLATFORMS, Mode

_AGO = re.compile(r"([0-9]{1,5})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_SCOPES = tuple(sorted(ALL_SCOPES, reverse=True))
_ANCHOR = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


class CommandError(Exception):
    """A command cannot do what it was asked; the message is a sentence about why."""


def parser() -> argparse.ArgumentParser:
    """All commands."""
    top = argparse.ArgumentParser(
        prog="python app.py",
        description="Without arguments: serve. With them: talk, look into the records, or change them.",
    )
    areas = top.add_subparsers(
        dest="area", required=True, metavar="doctor | chat | audit | policy | migrate | token | user"
    )
    _doctor(areas.add_parser("doctor", help="whether all that it needs is there; changes nothing"))
    _audit(areas.add_parser("audit", help="the log of every tool call"))
    _policy(areas.add_parser("policy", help="the rules about who may do what"))
    _migrate(areas.add_parser("migrate", help="upgrade the records, or move them from SQLite to PostgreSQL"))
    _chat(areas.add_parser("chat", help="talk with the bot in the terminal, over the HTTP API of a server that runs"))
    _token(areas.add_parser("token", help="the tokens with which programs act for people"))
    _user(areas.add_parser("user", help="who signs in on the page (WEB_LOGIN=password)"))
    return top


def _audit(area: argparse.ArgumentParser) -> None:
    verbs = area.add_subparsers(dest="verb", required=True)
    verify = verbs.add_parser("verify", help="find entries that were changed, taken out or moved")
    verify.add_argument(
        "--anchor", type=_anchor, help="an entry that was there before, NUMBER:HASH, as an earlier run printed it"
    )
    export = verbs.add_parser("export", help="write the entries of a time range")
    _range(export)
    export.add_argument("--format", choices=("jsonl", "csv"), default="jsonl")
    export.add_argument("--output", type=Path, help="file to write (default: standard output)")


def _policy(area: argparse.ArgumentParser) -> None:
    verbs = area.add_subparsers(dest="verb", required=True)
    check = verbs.add_parser("check", help="whether a policy file can be used")
    check.add_argument("file", type=Path)
    explain = verbs.add_parser("explain", help="how a call would be judged, and why")
    explain.add_argument("--tool", required=True, help="{server}__{tool}, as the model calls it")
    explain.add_argument("--args", type=_object, default={}, help="the arguments, a JSON object", dest="arguments")
    explain.add_argument("--as", required=True, dest="person", help="who asks: slack:T1:U2, web:ana …")
    explain.add_argument("--file", type=Path, help="another policy file than the one in force")
    explain.add_argument("--platform", choices=PLATFORMS, help="default: that of the person")
    explain.add_argument("--client", default="", help="the program that calls through the gateway (platform mcp)")
    explain.add_argument("--agent", default=DEFAULT, help="our agent that calls; default: default")
    explain.add_argument("--channel", default="", help="where it is asked; default: in a direct chat")
    explain.add_argument("--mode", type=Mode, choices=tuple(Mode), help="default: the one in force")
    explain.add_argument("--at", help="when: 2026-11-21T09:30+01:00, or 2h (ago); default: now")
    explain.add_argument("--group", action="append", default=[], help="a group that the person is in; all others: not")
    explain.add_argument("--quote", default="", help="the person's words that ask for it (safeWrite)")
    replay = verbs.add_parser("replay", help="what another policy would have decided about the recorded calls")
    replay.add_argument("file", type=Path)
    _range(replay)
    suggest = verbs.add_parser("suggest", help="rules that the recorded calls speak for, with proof")
    suggest.add_argument("--file", type=Path, help="another policy file than the one in force")


def _doctor(area: argparse.ArgumentParser) -> None:
    area.set_defaults(verb="")
    area.add_argument("--offline", action="store_true", help="ask nobody outside this machine, but for the database")
    area.add_argument("--json", action="store_true", help="write JSON")


def _chat(area: argparse.ArgumentParser) -> None:
    area.set_defaults(verb="")
    area.add_argument("--url", default="", help="default: PUBLIC_URL, or http://127.0.0.1:{PORT}")
    area.add_argument("--thread", default="", help="a conversation to go on with; default: a new one")


def _migrate(area: argparse.ArgumentParser) -> None:
    verbs = area.add_subparsers(dest="verb", required=True)
    verbs.add_parser("up", help="upgrade the records at DATABASE_URL to what this version needs, as a start does")
    copy = verbs.add_parser("copy", help="copy an installation from a SQLite file to an empty PostgreSQL database")
    copy.add_argument("--from", type=_sqlite, required=True, help="sqlite:///data/countersign.db", dest="file")
    copy.add_argument("--to", type=_postgresql, required=True, help="postgresql://{user}@{host}/{database}")


def _user(area: argparse.ArgumentParser) -> None:
    verbs = area.add_subparsers(dest="verb", required=True)
    add = verbs.add_parser("add", help="make an account; its password is asked for, or read from standard input")
    add.add_argument("name", help="small letters, digits, dots, dashes and underscores")
    add.add_argument("--display-name", default="", help="what others read; default: the name")
    verbs.add_parser("list", help="who has an account, and who has signed in at an issuer")
    remove = verbs.add_parser("remove", help="end an account and all its sessions")
    remove.add_argument("name", help="of a user; or a person id (web:oidc.…), whose sessions end")


def _token(area: argparse.ArgumentParser) -> None:
    verbs = area.add_subparsers(dest="verb", required=True)
    create = verbs.add_parser("create", help="make one; it is shown only this once")
    create.add_argument("--name", required=True, help="what it is for")
    create.add_argument("--for", required=True, help="for whom it acts: slack:T1:U2, web:ana …", dest="person")
    create.add_argument(
        "--scopes", required=True, type=_scopes, help=f"what it may do, separated by commas: {', '.join(_SCOPES)}"
    )
    create.add_argument("--expires", required=True, help="30d (from now), 2027-01-31, or never")
    verbs.add_parser("list", help="all that were ever made")
    revoke = verbs.add_parser("revoke", help="revoke one")
    revoke.add_argument("id", help="as `token list` shows it")


def _range(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--since", help="2026-11-01, 2026-11-01T08:00Z, or 30d (ago); default: the beginning")
    verb.add_argument("--until", help="likewise, not included; default: now")


def parse_moment(written: str | None, now: float) -> float | None:
    """Seconds since the epoch of a moment as people write it; without a zone it is UTC. Raises `CommandError`."""
    if written is None:
        return None
    if ago := _AGO.fullmatch(written):
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        read = datetime.fromisoformat(written)
    except ValueError:
        raise CommandError(
            f"“{written}” is no moment: write 2026-11-01, 2026-11-01T08:00Z, or 30d for 30 days ago"
        ) from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def parse_end(written: str, now: float) -> float | None:
    """Seconds since the epoch of when something is to end; `None`: never. Raises `CommandError`."""
    if written == "never":
        return None
    if until := _AGO.fullmatch(written):
        return now + int(until[1]) * _SECONDS[until[2]]
    try:
        read = datetime.fromisoformat(written)
    except ValueError:
        raise CommandError(f"“{written}” is no end: write 30d for 30 days from now, 2027-01-31, or never") from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def time_range(given: argparse.Namespace, now: float) -> tuple[float | None, float | None]:
    """`--since` and `--until`. Raises `CommandError`, also for a range in which nothing can be."""
    since, until = parse_moment(given.since, now), parse_moment(given.until, now)
    if since is not None and until is not None and since >= until:
        raise CommandError(f"nothing is since {given.since} and before {given.until}: the range ends before it begins")
    return since, until


def _object(written: str) -> dict[str, Any]:
    try:
        value = parse_strictly(written)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('must be a JSON object, like \'{"what": "lamp"}\'')
    return value


def _scopes(written: str) -> tuple[str, ...]:
    given = tuple(dict.fromkeys(each.strip() for each in written.split(",")))
    if not set(given) <= set(_SCOPES):
        raise argparse.ArgumentTypeError(f"must be of {', '.join(_SCOPES)}, separated by commas")
    return given


def _sqlite(written: str) -> Path:
    file = sqlite_file(_address(written))
    if file is None:
        raise argparse.ArgumentTypeError("must be a SQLite file: sqlite:///{file}")
    return file


def _postgresql(written: str) -> str:
    address = _address(written)
    if sqlite_file(address) is not None:
        raise argparse.ArgumentTypeError("must be a PostgreSQL database: postgresql://{user}@{host}/{database}")
    return address


def _address(written: str) -> str:
    """Raises what argparse shows without the address, which may hold a password."""
    try:
        return database_address(SecretStr(written)).get_secret_value()
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _anchor(written: str) -> tuple[int, str]:
    read = _ANCHOR.fullmatch(written)
    if read is None:
        raise argparse.ArgumentTypeError("must be NUMBER:HASH, as `audit verify` prints it")
    return int(read[1]), read[2]
