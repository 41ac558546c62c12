"""A company's finance folder, its orders and its mail, as three tool servers: `finance_server.py ROLE FOLDER`.

Everything that changes something is a line in `FOLDER/acts`, in the order in which it took effect.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

ROLE, FOLDER = sys.argv[1], Path(sys.argv[2])
INVOICES = {"INV-7": "Brandt, 120.00, order O-3", "INV-8": "Klee, 75.50, order O-4", "INV-9": "Brandt, 9.90, order O-5"}
ORDERS = {"O-3": "120.00", "O-4": "75.00", "O-5": "9.90"}
READS = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
server = FastMCP(ROLE, log_level="CRITICAL")


def _act(line: str) -> None:
    with (FOLDER / "acts").open("a") as acts:
        acts.write(f"{line}\n")


if ROLE == "folder":

    @server.tool(annotations=READS)
    def list_invoices() -> str:
        """The open invoices."""
        return "\n".join(f"{number}: {about}" for number, about in INVOICES.items())

elif ROLE == "orders":

    @server.tool(annotations=READS)
    def order(number: str) -> str:
        """What an order comes to."""
        return ORDERS[number]

    @server.tool()
    def flag(invoice: str) -> str:
        """Mark an invoice as one to be looked at."""
        _act(f"flag {invoice}")
        return f"flagged {invoice}"

elif ROLE == "mail":

    @server.tool()
    def draft(text: str) -> str:
        """Keep a draft of a mail."""
        _act("draft")
        return "kept as draft 1"


server.run()
