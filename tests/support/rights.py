"""What a user may not read or write, also where tests run as root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

NOBODY = 65534


@contextmanager
def refused_by_rights() -> Iterator[None]:
    """Within it this process has the rights of an ordinary user: root would be above those of files."""
    user = os.geteuid()
    os.seteuid(user or NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
