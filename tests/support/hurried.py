"""`python -m tests.support.hurried`: the product, with a second where it waits several for the sake of caution."""

from __future__ import annotations

import sys
from functools import partial

import app
from adapters.teams import receiver

HURRIED = ("-m", "tests.support.hurried")
"""Its command line."""

if __name__ == "__main__":
    app.SHUTDOWN_SECONDS = 1.0
    receiver.Patience = partial(receiver.Patience, duplicate=1.0)  # type: ignore[misc,assignment]  # called alike
    sys.exit(app.main())
