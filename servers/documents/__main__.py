"""`python -m servers.documents`."""

from __future__ import annotations

import os

from servers.documents.server import build
from servers.start import start_server, without_last_line_breaks

if __name__ == "__main__":
    given = without_last_line_breaks(os.environ)
    start_server("documents", database_variable="DOCUMENTS_DB", build=lambda address: build(address, given))
