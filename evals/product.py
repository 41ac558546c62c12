"""The product as it is tried: a process of its own, as `python app.py` starts it, with an empty folder, the bundled
tool servers and the policy of the set."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import jwt

from bot.settings import Settings, variable
from evals.data import ROOT, database_variables
from evals.reading import POLICY

STARTS_WITHIN = 60.0
ENDS_WITHIN = 15.0
_POLL_SECONDS = 0.02
_VALID_SECONDS = 24 * 3600
"""Of a token: longer than a run takes."""
_LONGEST_LOG = 3_000
"""Characters of the log that are shown when it does not start."""


class StartError(Exception):
    """The product does not start; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class RunningProduct:
    """The product, and how a person asks it."""

    url: str
    secret: str

    def headers(self, name: str) -> Mapping[str, str]:
        """With which a request acts for the person of this name, `web:{name}`."""
        now = time.time()
        # A deletion needs a second person, and only a verified address shows that it is one.
        address = {"email": f"{name}@example.com", "email_verified": True}
        claims = {"sub": name, "iat": now, "exp": now + _VALID_SECONDS, **address}
        return {"Authorization": f"Bearer {jwt.encode(claims, self.secret, algorithm='HS256')}"}


@asynccontextmanager
async def started_product(
    folder: Path, policies: Path, model: Mapping[str, str], python: Sequence[str]
) -> AsyncIterator[RunningProduct]:
    """The product while it runs. Raises `StartError`.

    Args:
        folder: an empty one, for all that it keeps.
        policies: the folder of the set.
        model: the variables that say which model it asks, and how.
        python: what begins the command lines of its processes.
    """
    secret = secrets.token_hex(32)
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": _tool_servers(folder, python)}))
    environment = {
        **_without_settings(os.environ),
        "HOST": "127.0.0.1",
        "PORT": "0",
        "DATABASE_URL": f"sqlite:///{folder}/countersign.db",
        "MCP_CONFIG": str(config),
        "POLICY_FILE": str((policies / POLICY).resolve()),
        "API_JWT_SECRET": secret,
        "WEB_ENABLED": "true",
        "MEMORY": "false",  # a model is asked once more after a turn, and one conversation is not to know of another
        "LIMIT_TURNS_PER_MINUTE": "0",
        "LIMIT_THREAD_TURNS_PER_MINUTE": "0",
        "LOG_FORMAT": "json",
        "TZ": "UTC",
        **model,
    }
    log = folder / "log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *python, str(ROOT / "app.py"), cwd=folder, env=environment, stdout=output, stderr=output
        )
    try:
        yield RunningProduct(await _listening(process, log), secret)
    finally:
        await _end(process)


def _tool_servers(folder: Path, python: Sequence[str]) -> Mapping[str, Any]:
    """Those of the project's own `mcp.json`, on files in a folder."""
    bundled = json.loads((ROOT / "mcp.json").read_text())["mcpServers"]
    return {
        name: {
            **bundled[name],
            "command": python[0],
            "args": [*python[1:], *bundled[name]["args"]],
            "cwd": str(ROOT),
            "env": variables,
        }
        for name, variables in database_variables(folder).items()
    }


def _without_settings(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The environment without the product's settings, so that a result does not depend on whose machine it is from."""
    settings = {variable(name) for name in Settings.model_fields}
    return {name: value for name, value in environment.items() if name.upper() not in settings}


async def _listening(process: Process, log: Path) -> str:
    """Where it listens, when it is ready. Its log is the only place that has the port, so it is read until it does."""
    try:
        async with asyncio.timeout(STARTS_WITHIN), aiohttp.ClientSession() as http:
            while not (found := re.search(r'"url": ?"(http[^"]+)"', _read(log))):
                if process.returncode is not None:
                    raise StartError(f"the product did not start:\n{_read(log)[-_LONGEST_LOG:]}")
                await asyncio.sleep(_POLL_SECONDS)
            url = found[1]
            while True:
                async with http.get(f"{url}/health-check") as response:
                    if response.status == 200:
                        return url
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise StartError(
            f"the product did not start within {STARTS_WITHIN:g} s:\n{_read(log)[-_LONGEST_LOG:]}"
        ) from None


def _read(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDS_WITHIN):
                await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
