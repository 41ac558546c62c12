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
