"""Collects the tests once, then forks a worker of pytest-xdist for each request: see `forks.collected`.

`python -m tests.support.collected_server SOCKET ARGUMENT…` takes the arguments of pytest. What is collected is thrown
away, but every module that it needs stays imported, and its assertions rewritten.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest

from tests.support.fork_server import fork_until_input_ends

if __name__ == "__main__":
    # Whatever is wrong is said by the workers, which collect, too.
    with Path(os.devnull).open("w") as nobody, contextlib.redirect_stdout(nobody), contextlib.redirect_stderr(nobody):
        pytest.main([*sys.argv[2:], "--numprocesses=0", "--collect-only", "--quiet"])

    fork_until_input_ends(sys.argv[1])
