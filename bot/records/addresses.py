"""Addresses of the records: `sqlite:///{file}`, or `postgresql://{user}:{password}@{host}/{database}`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

_SQLITE = "sqlite:///"


def sqlite_file(address: str) -> Path | None:
    """The file of an address; `None`: it is one of PostgreSQL."""
    return Path(address.removeprefix(_SQLITE)) if address.startswith(_SQLITE) else None


def shown_address(address: str) -> str:
    """The address as people may see it: the file, or host and database without who connects and how."""
    file = sqlite_file(address)
    if file is not None:
        return str(file)
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def passwords_in(address: str) -> frozenset[str]:
    """The passwords that an address gives PostgreSQL: beside the user, or among its parameters."""
    if sqlite_file(address) is not None:
        return frozenset()
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415  # SQLite has no use for it

    named = conninfo_to_dict(address)
    return frozenset(str(named[each]) for each in ("password", "sslpassword") if named.get(each))
