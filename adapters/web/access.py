"""Who may talk to us: pure checks of a request's headers. Each raises `RefusalError` or returns nothing.

Without a password the page is for this machine alone (docs/operations.md). A loopback socket alone does not prove
that: a proxy on the same machine may carry strangers in (hence no `PUBLIC_URL`, no forwarding headers), and a page
elsewhere may point its own name at 127.0.0.1 (hence a loopback `Host`).
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from adapters.shared.requests import FORWARDING_HEADERS, host_name, is_loopback
from adapters.web.bodies import RefusalError
from adapters.web.config import WebConfig

_ONLY_HERE = "Without a password this page is for the machine it runs on: set WEB_PASSWORD to serve it beyond."


def refuse_beyond_loopback(config: WebConfig, headers: Mapping[str, str], remote: str | None) -> None:
    """Refuse (403) whatever does not provably come from this machine, unless a password guards the page.

    `headers` are looked up case-insensitively; `remote` is the address at the other end of the socket.
    """
    if config.needs_password:
        return
    if not is_loopback(config.host):
        raise RefusalError(403, f"The server listens on {config.host}. {_ONLY_HERE}")
    if config.public_url is not None:
        raise RefusalError(403, f"PUBLIC_URL is set. {_ONLY_HERE}")
    if remote is not None and not is_loopback(remote):
        raise RefusalError(403, _ONLY_HERE)
    if not is_loopback(host_name(headers.get("Host", ""))):
        raise RefusalError(403, f"The request's Host is not this machine's own name. {_ONLY_HERE}")
    forwarded = next((name for name in FORWARDING_HEADERS if name in headers), None)
    if forwarded is not None:
        raise RefusalError(403, f"The request came through a proxy ({forwarded}). {_ONLY_HERE}")


def refuse_other_sites(config: WebConfig, headers: Mapping[str, str]) -> None:
    """Refuse (403) a request that another site's page made.

    `SameSite=Strict` is not enough by itself: another port of the same host is another site to us, but not to it.
    """
    if headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
        raise RefusalError(403, "This request came from another site's page.")
    origin = headers.get("Origin")
    if origin is None:
        return
    ours = {headers.get("Host", "").lower()}
    if config.public_url is not None:
        ours.add(urlsplit(config.public_url).netloc.lower())
    if _netloc(origin) not in ours:
        raise RefusalError(403, "This request came from another site's page.")


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
