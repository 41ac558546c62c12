"""What settings have to be, and how it is said when they are not: variable, what is wrong, what to do."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from pydantic import SecretStr, ValidationError

from policies.redaction import SecretPattern

if TYPE_CHECKING:
    from bot.settings import Settings


OPENAI = "https://api.openai.com/v1"


class SettingsError(Exception):
    """The settings cannot be used. `problems`: one readable line each, never with the value of a secret."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


# ------------------------------------------------------------------------------------------------ one value


def is_loopback(host: str) -> bool:
    """Whether a host name or address can be reached from this machine only."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_name(value: str) -> str:
    """An address or a host name to listen on: no scheme, no port."""
    if not re.fullmatch(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?", value):
        raise ValueError("is not a host name or address. Write it like 127.0.0.1.")
    return value.strip("[]")


def service_address(value: str) -> str:
    """An http or https address."""
    parts = _split(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("is not an http or https address. Write it like https://example.com/v1.")
    return value


def public_address(value: str) -> str:
    """An https address, or http on loopback; without path, so that ours can be added. Any trailing slash goes."""
    parts = _split(value)
    if not parts.hostname or parts.scheme not in {"http", "https"}:
        raise ValueError("is not an address. Write it like https://bot.example.com.")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError("is not safe over http. Use https; http is for loopback only.")
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError("has more than a host and a port. Write it like https://bot.example.com.")
    return value.rstrip("/")


def database_address(value: SecretStr) -> SecretStr:
    """`sqlite:///{file}` or `postgresql://…`; the value is never repeated, for it may hold a password."""
    parts = _split(value.get_secret_value())
    if parts.scheme == "sqlite":
        if parts.netloc or len(parts.path) < 2:
            raise ValueError("names no file. Write sqlite:///data/countersign.db (three slashes; four: absolute).")
    elif parts.scheme != "postgresql":
        raise ValueError("has an unknown scheme. Write sqlite:///{file} or postgresql://{user}@{host}/{database}.")
    elif not parts.path.strip("/"):
        raise ValueError("names no database. Write postgresql://{user}:{password}@{host}/{database}.")
    return value


def fernet_keys(value: SecretStr) -> SecretStr:
    """Fernet keys separated by commas: each 32 bytes, URL-safe base64 (https://github.com/fernet/spec)."""
    keys = [key.strip() for key in value.get_secret_value().split(",")]
    for number, key in enumerate(keys, start=1):
        if not _is_fernet_key(key):
            which = "is" if len(keys) == 1 else f"has {len(keys)} keys, and number {number} is"
            raise ValueError(
                f"{which} not a Fernet key. Make one: python -c "
                "'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'"
            )
    return SecretStr(",".join(keys))


def _is_fernet_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, altchars=b"-_", validate=True)) == 32
    except (binascii.Error, ValueError):
        return False


def long_enough(value: SecretStr) -> SecretStr:
    """Long enough not to be guessed by hand, and to be recognised in a log."""
    if len(value.get_secret_value()) < 8:
        raise ValueError("is too short. Use at least 8 characters.")
    return value


def lower_case(value: Any) -> Any:
    """Text in lower case, so that `INFO` is fine too."""
    return value.strip().lower() if isinstance(value, str) else value


def split_list(value: Any) -> Any:
    """Text separated by commas, as a tuple."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def slack_teams(value: tuple[str, ...]) -> tuple[str, ...]:
    """Ids of Slack's workspaces and organisations, or `*` for all of them: a name would match nobody."""
    for number, team in enumerate(value, start=1):
        if not re.fullmatch(r"[TE][A-Z0-9]+|\*", team):
            which = "is" if len(value) == 1 else f"has {len(value)} entries, and number {number} is"
            raise ValueError(f"{which} not the id of a workspace or organisation. Write it like T024BE7LD,E0123ABCD.")
    return value


def read_patterns(value: Any) -> Any:
    """A JSON object of kinds and patterns; each is tried here, so that a bad one stops the start."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError('is not JSON. Write it like {"badge number": "B-[0-9]{6}"}.') from None
    if not isinstance(value, dict) or not all(isinstance(regex, str) for regex in value.values()):
        raise ValueError('is not an object of texts. Write it like {"badge number": "B-[0-9]{6}"}.')
    for kind, regex in value.items():
        try:
            SecretPattern(kind, regex)
        except ValueError as error:
            raise ValueError(f"cannot be used: {error}.") from None
    return value


def _split(value: str) -> SplitResult:
    try:
        parts = urlsplit(value)
        _ = parts.port  # says whether the port is one
    except ValueError:
        # Not chained: the original repeats the value.
        raise ValueError("is not an address. Check its host and port.") from None
    return parts


# ------------------------------------------------------------------------------------------------ several together


def contradictions(settings: Settings) -> list[str]:
    """What is wrong between settings that are right one by one."""
    return [*_model(settings), *_slack(settings), *_teams(settings), *_pairs(settings)]


def _model(s: Settings) -> list[str]:
    models = {"LLM_MODEL": s.model_name} | ({"ROUTER_MODEL": s.router_model} if s.router_model else {})
    lines = []
    for name, value in models.items():
        if value == "google:":
            lines.append(f"{name}: names no model. Write google:{{model}}.")
        elif value.startswith("google:") and not s.google_api_key:
            lines.append(f"GOOGLE_API_KEY: is not set, and {name} is {value}. Set it, or choose another model.")
        elif value != "demo" and not (value.startswith("google:") or s.openai_api_key or s.openai_base_url != OPENAI):
            lines.append(
                f"OPENAI_API_KEY: is not set, and {name} is {value}. Set it, point OPENAI_BASE_URL at a service that "
                f"needs no key, or set {name}=demo."
            )
    return lines


def _slack(s: Settings) -> list[str]:
    lines = []
    if (s.slack_signing_secret or s.slack_app_token) and not s.slack_configured:
        lines.append("SLACK_BOT_TOKEN: is not set, but other SLACK_ variables are. Set it, or remove them.")
    if s.slack_configured and not (s.slack_signing_secret or s.slack_app_token):
        lines.append("SLACK_SIGNING_SECRET: is not set. Set it, or SLACK_APP_TOKEN for Socket Mode.")
    elif s.slack_client_id and not s.slack_bot_token and not s.slack_signing_secret:
        lines.append("SLACK_SIGNING_SECRET: is not set. Installs into many workspaces need the Events API: set it.")
    return lines


def _teams(s: Settings) -> list[str]:
    lines = []
    if s.microsoft_app_id:
        if not s.microsoft_app_password and s.microsoft_app_type != "UserAssignedMSI":
            lines.append("MICROSOFT_APP_PASSWORD: is not set, but MICROSOFT_APP_ID is. Set the app's client secret.")
        if not s.microsoft_app_tenant_id and s.microsoft_app_type != "MultiTenant":
            lines.append(f"MICROSOFT_APP_TENANT_ID: is not set. A {s.microsoft_app_type} app needs its tenant: set it.")
        if s.microsoft_app_type == "MultiTenant" and not (s.teams_allowed_tenants or s.microsoft_app_tenant_id):
            lines.append("TEAMS_ALLOWED_TENANTS: is not set. A MultiTenant app needs to be told whom it may talk to.")
    elif s.microsoft_app_password:
        lines.append("MICROSOFT_APP_ID: is not set, but MICROSOFT_APP_PASSWORD is. Set it, or remove the password.")
    if s.teams_local_unauthenticated and not s.on_loopback:
        lines.append(
            "TEAMS_LOCAL_UNAUTHENTICATED: is only for this machine. Set HOST to 127.0.0.1 and remove PUBLIC_URL, or "
            "turn it off."
        )
    return lines


def _pairs(s: Settings) -> list[str]:
    pairs = (
        ("SLACK_CLIENT_ID", s.slack_client_id, "SLACK_CLIENT_SECRET", s.slack_client_secret),
        ("ENTRA_LOGIN_CLIENT_ID", s.entra_login_client_id, "ENTRA_LOGIN_CLIENT_SECRET", s.entra_login_client_secret),
        ("LANGFUSE_PUBLIC_KEY", s.langfuse_public_key, "LANGFUSE_SECRET_KEY", s.langfuse_secret_key),
    )
    lines = []
    for left, left_value, right, right_value in pairs:
        if bool(left_value) != bool(right_value):
            missing, there = (right, left) if left_value else (left, right)
            lines.append(f"{missing}: is not set, but {there} is. Set both, or neither.")
    return lines


# ------------------------------------------------------------------------------------------------ how it is said


def problems_of(error: ValidationError, variable: Callable[[str], str]) -> list[str]:
    """One line per problem. Values are not repeated: a secret may have been pasted into the wrong variable."""
    return [
        f"{variable(str(e['loc'][0])) if e['loc'] else 'settings'}: {_said(e['type'], e['msg'], e.get('ctx', {}))}"
        for e in error.errors(include_url=False, include_input=False)
    ]


def _said(kind: str, message: str, context: dict[str, Any]) -> str:
    match kind:
        case "value_error":
            return message.removeprefix("Value error, ")
        case "int_parsing" | "int_from_float":
            return "is not a whole number. Write digits only."
        case "float_parsing":
            return "is not a number. Write it like 60 or 0.5."
        case "bool_parsing":
            return "is neither true nor false. Write one of them."
        case "enum" | "literal_error":
            return f"is none of its values. Write {context['expected']}."
        case "greater_than_equal" | "greater_than" | "less_than_equal" | "less_than":
            bounds = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
            key = next(k for k in bounds if k in context)
            return f"is out of range. It has to be {bounds[key]} {context[key]:g}."
        case _:
            return f"cannot be read. {message}."
