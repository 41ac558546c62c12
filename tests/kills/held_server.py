"""A tool server on the bare protocol that can be kept from coming up: `held_server.py FOLDER`.

A line in `FOLDER/starts` for each start, with the process id; it says nothing while `FOLDER/hold` exists. Every act is
a line in `FOLDER/acts`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
SCHEMA = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}


def note(file: str, line: str) -> None:
    """Append a line."""
    with (FOLDER / file).open("a") as notes:
        notes.write(line + "\n")


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """The result of a request."""
    match message["method"]:
        case "initialize":
            about = {"name": "effects", "version": "1"}
            version = message["params"]["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            reads = {"readOnlyHint": True, "openWorldHint": False}
            look = {"name": "look", "inputSchema": SCHEMA, "annotations": reads}
            return {"tools": [{"name": "act", "inputSchema": SCHEMA}, look]}
        case "tools/call":
            name, key = message["params"]["name"], message["params"]["arguments"]["key"]
            note("acts" if name == "act" else "looks", key)
            return {"content": [{"type": "text", "text": f"{name} {key}"}]}
        case _:
            return {}


note("starts", str(os.getpid()))
while (FOLDER / "hold").exists():
    time.sleep(0.01)
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer(request)}) + "\n")
        sys.stdout.flush()
