"""A server on the bare protocol that misbehaves on request: `odd.py FOLDER`.

It starts in no time, and leaves what happened in the folder: `starts` (a line for each start, with the process id),
`calls` (a line for each call), `cancelled` and `pings` (the ids of the requests). What it reads there: `tools.json`
(what to list), `no-start` (exit at once), `no-answer` (ignore everything but calls), `stubborn` (ignore the end of
its input and SIGTERM).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
TOOLS: list[dict[str, Any]] = [
    {"name": name, "inputSchema": {"type": "object"}}
    for name in ("echo", "die", "hang", "fail", "swap", "noise", "nonsense", "talk", "endless", "large", "parts", "ask")
]


def note(file: str, line: str) -> None:
    with (FOLDER / file).open("a") as notes:
        notes.write(line + "\n")


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(request_id: int, said: str) -> None:
    say({"id": request_id, "result": {"content": [{"type": "text", "text": said}]}})


def tools() -> list[dict[str, Any]]:
    chosen = FOLDER / "tools.json"
    return json.loads(chosen.read_text()) if chosen.exists() else TOOLS


def call(request_id: int, name: str, arguments: dict[str, Any]) -> None:
    note("calls", name)
    match name:
        case "echo" if "result" in arguments:
            say({"id": request_id, "result": json.loads(arguments["result"])})
        case "echo" if "changes" in arguments:
            sys.stdout.write('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n' * arguments["changes"])
            text(request_id, "changed")
        case "echo":
            text(request_id, arguments.get("text", ""))
        case "die":
            os._exit(3)
        case "hang":
            pass
        case "fail" if "error" in arguments:
            say({"id": request_id, "error": json.loads(arguments["error"])})
        case "fail":
            say({"id": request_id, "error": arguments})
        case "swap":
            (FOLDER / "tools.json").write_text(json.dumps(arguments["tools"]))
            say({"method": "notifications/tools/list_changed"})
            text(request_id, "swapped")
        case "ask":
            say({"id": "asked", **arguments})
            for answer in map(json.loads, sys.stdin):
                if answer.get("id") == "asked":
                    text(request_id, str(answer["error"]["code"]))
                    break
        case "endless":
            try:
                while True:
                    sys.stdout.write("a" * 1_000_000)
            except BrokenPipeError:
                os._exit(0)
        case "large" if arguments.get("id") == "first":
            say({"id": request_id, "result": {"content": [], "structuredContent": [[]] * 100_000}})
        case "large":
            large = json.dumps({"content": [{"type": "text", "text": "a" * 10_000_000}]})
            sys.stdout.write(f'{{"result": {large}, "jsonrpc": "2.0", "id": {request_id}}}\n')
            sys.stdout.flush()
        case "parts":
            say({"id": request_id, "result": {"content": [{"type": "text", "text": "a"}] * 5_000}})
        case "noise":
            sys.stdout.write("this is no JSON\n{\n")
            text(request_id, "after the noise")
        case "nonsense":
            say({"id": request_id, "result": {"content": "not a list"}})
        case "talk":
            sys.stderr.write(arguments["text"])
            sys.stderr.flush()
            text(request_id, "said")


def handle(message: dict[str, Any]) -> None:
    request_id, method = message.get("id"), message.get("method")
    if method == "ping":
        note("pings", str(request_id))
    if method == "notifications/cancelled":
        note("cancelled", str(message["params"]["requestId"]))
    if request_id is None:
        return
    if method == "tools/call":
        call(request_id, message["params"]["name"], message["params"].get("arguments") or {})
    elif (FOLDER / "no-answer").exists():
        return
    elif method == "initialize":
        version = message["params"]["protocolVersion"]
        about = {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
        note("capabilities", json.dumps(message["params"]["capabilities"]))
        say({"id": request_id, "result": about})
    elif method == "tools/list":
        say({"id": request_id, "result": {"tools": tools()}})
    else:  # ping included: an error is an answer as well
        say({"id": request_id, "error": {"code": -32601, "message": "Method not found"}})


note("starts", str(os.getpid()))
if (FOLDER / "no-start").exists():
    sys.exit("I do not want to start: token=hunter2hunter2")
if (FOLDER / "stubborn").exists():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    handle(json.loads(line))
while (FOLDER / "stubborn").exists():
    time.sleep(0.05)
