"""An OpenID issuer that nobody here wrote (`oidc-provider` from npm), and somebody who signs in at it.

async with openid_issuer(redirect_uri="http://127.0.0.1:1/oidc/callback") as issuer:
    ... issuer.url, CLIENT, SECRET ...
    address = await issuer.signs_in("ana", begun.url)   # where their browser is sent back to
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

CLIENT, SECRET = "countersign", "a secret: with + and % and &"
PUBLIC_CLIENT = "countersign-public"
ALGORITHMS = ("PS256", "ES256", "EdDSA")
"""For each there is a client of that name, whose ID tokens are signed so; those of the others are with RS256."""
PROGRAM = "nightly"
"""A client that gets access tokens for itself."""
AUDIENCE = "https://countersign.example/api"
_PROGRAM = Path(__file__).parents[1] / "npm" / "openid_issuer.mjs"
_NODE = shutil.which("node")
_ACTION = re.compile(r'<form [^>]*action="([^"]*)"')
needs_openid_issuer = pytest.mark.skipif(
    not (_NODE and (_PROGRAM.parent / "node_modules" / "oidc-provider").exists()),
    reason="needs node, and: npm install --no-package-lock --prefix tests/npm",
)


@dataclass(frozen=True)
class OpenIdIssuer:
    """It, as tests see it."""

    url: str

    async def signs_in(self, user: str, address: str) -> str:
        """Signs in as somebody on its pages, and consents; the address to which their browser is sent in the end."""
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as browser:
            form: dict[str, str] | None = None
            for _ in range(12):
                if not address.startswith(self.url):
                    return address
                method = "POST" if form else "GET"
                url = URL(address, encoded=True)
                async with browser.request(method, url, data=form, allow_redirects=False) as response:
                    onward, text = response.headers.get("Location"), await response.text()
                form = None
                if onward is None:
                    action = _ACTION.search(text)
                    assert action is not None, text
                    onward = action.group(1)
                    form = {"prompt": "login", "login": user, "password": "any"}
                    if 'value="consent"' in text:
                        form = {"prompt": "consent"}
                address = str(url.join(URL(onward, encoded=True)))
        raise AssertionError("too many redirects")

    async def access_token(self, scope: str) -> str:
        """An access token (a JWT) that a program got for itself, for our API."""
        form = {"grant_type": "client_credentials", "resource": AUDIENCE, "scope": scope}
        form |= {"client_id": PROGRAM, "client_secret": SECRET}
        async with aiohttp.ClientSession() as session, session.post(f"{self.url}/token", data=form) as response:
            said = await response.json()
        assert response.status == 200, said
        return str(said["access_token"])


@asynccontextmanager
async def openid_issuer(*, redirect_uri: str) -> AsyncIterator[OpenIdIssuer]:
    """The issuer while it runs. Anybody can sign in as who they like; the address of `ben` is not vouched for.

    Args:
        redirect_uri: to which browsers may be sent back.
    """
    common: dict[str, Any] = {"redirect_uris": [redirect_uri], "client_secret": SECRET}
    clients: list[dict[str, Any]] = [
        {**common, "client_id": CLIENT},
        {**common, "client_id": PUBLIC_CLIENT, "token_endpoint_auth_method": "none"},
        *({**common, "client_id": name, "id_token_signed_response_alg": name} for name in ALGORITHMS),
        {
            "client_id": PROGRAM,
            "client_secret": SECRET,
            "redirect_uris": [],
            "response_types": [],
            "grant_types": ["client_credentials"],
        },
    ]
    said = json.dumps({"clients": clients, "audience": AUDIENCE})
    process = await asyncio.create_subprocess_exec(
        _NODE or "node", str(_PROGRAM), said, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        assert process.stdout is not None
        line = await process.stdout.readline()
        assert line, (await process.communicate())[1].decode()
        yield OpenIdIssuer(line.decode().strip())
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
