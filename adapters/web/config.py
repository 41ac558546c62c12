"""What the web platform has to be told: where it is served, to whom, and what the page says about the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from bot.domain import Person
from bot.identity.sessions import Login
from bot.safe_text import visible
from bot.settings import Settings, plain
from translations import gettext as _

DEFAULT_PEOPLE = (
    Person(person_id="web:ana", name="Ana"),
    Person(person_id="web:ben", name="Ben"),
    Person(person_id="web:chloe", name="Chloe"),
)

MINIMUM_SECRET = 16
"""Bytes; less could be guessed by trying (NIST SP 800-107: a MAC key has at least 112 bits)."""


@dataclass(frozen=True, slots=True)
class WebConfig:
    """Where the page is served, and to whom.

    Raises `ValueError` when the secret is too short or nobody is named.
    """

    host: str
    """The address the server listens on (`HOST`)."""
    port: int
    public_url: str | None = None
    """What people outside type to reach the page (`PUBLIC_URL`), when a proxy stands in front of it."""
    password: str | None = field(default=None, repr=False)
    """`WEB_PASSWORD`; none (or empty): the page is for this machine alone."""
    secret: bytes = field(default=b"", repr=False)
    """Signs the session cookies; the same on every replica, at least 16 bytes."""
    people: tuple[Person, ...] = DEFAULT_PEOPLE
    """The local names that "You are" offers."""
    login: Login = "local"
    """`WEB_LOGIN`: how people sign in; `local`: they choose one of these names."""
    register: bool = False
    """`WEB_REGISTER`: whether anybody may make themselves an account (`login` is `password`)."""

    def __post_init__(self) -> None:
        if len(self.secret) < MINIMUM_SECRET:
            raise ValueError(f"The secret for the web page's cookies needs at least {MINIMUM_SECRET} bytes.")
        if not self.people:
            raise ValueError("The web page needs at least one person to be.")

    @property
    def needs_password(self) -> bool:
        """Whether a password that all share stands before the page."""
        return bool(self.password)

    @property
    def needs_sign_in(self) -> bool:
        """Whether somebody has to sign in before they can use the page."""
        return self.needs_password or self.login != "local"

    @property
    def is_https(self) -> bool:
        """Whether people reach the page over TLS, so that its cookie may be marked `Secure`."""
        return self.public_url is not None and urlsplit(self.public_url).scheme == "https"

    @property
    def public_port(self) -> int:
        """The port at which people reach the page over TLS."""
        return urlsplit(self.public_url or "").port or 443

    def person(self, person_id: str) -> Person | None:
        """The local person of that id; `None`: there is none (any more)."""
        return next((person for person in self.people if person.person_id == person_id), None)


@dataclass(frozen=True, slots=True)
class ToolServerFacts:
    """How one configured tool server is, for people to read."""

    name: str
    state: str
    """`starting`, `up`, `down`, `misconfigured`, `closed` or `unsupported`."""
    tools: int = 0
    """How many tools it offers now."""
    reason: str = ""
    """Why it is not connected, safe to show."""


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What the page says about the server itself; asked for anew each time."""

    is_demo: bool = False
    """Whether the built-in model answers, which the page says in a banner."""
    slack: bool = False
    """Whether Slack is connected."""
    teams: bool = False
    """Whether Teams is."""
    mode: str = "default"
    tool_servers: tuple[ToolServerFacts, ...] = ()


def config_from(settings: Settings, key: bytes) -> WebConfig:
    """What the environment says of the page. `key`: signs its cookies."""
    return WebConfig(
        settings.host,
        settings.port,
        settings.public_url,
        plain(settings.web_password),
        secret=key,
        login=settings.web_login,
        register=settings.web_register,
    )


def facts_json(facts: PageFacts) -> dict[str, Any]:
    """What the page says about the server."""
    servers = [
        {"name": visible(each.name), "state": visible(each.state), "tools": each.tools, "reason": visible(each.reason)}
        for each in facts.tool_servers
    ]
    return {"model_notice": model_notice(facts), "mode": visible(facts.mode), "tool_servers": servers}


def model_notice(facts: PageFacts) -> str:
    """The banner while the demo model answers; empty: no banner."""
    return _("Demo mode. Set OPENAI_API_KEY for a real model.") if facts.is_demo else ""


def setup_json(facts: PageFacts) -> list[dict[str, Any]]:
    """What an operator connects, and whether it is."""
    steps = {
        "model": not facts.is_demo,
        "tools": any(each.tools for each in facts.tool_servers),
        "slack": facts.slack,
        "teams": facts.teams,
    }
    return [{"step": step, "done": is_done} for step, is_done in steps.items()]
