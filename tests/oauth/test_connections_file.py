"""`connections.yaml`: what may stand in it, and what is said of what may not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.oauth.connections import AccountFields, ConnectionsError, Provider, load_providers, parse_providers

ENVIRON = {"ID": "the-id", "SECRET": "the-secret-of-ours", "EMPTY": ""}
TRACKER = """
version: 1
connections:
  tracker:
    label: Acme Tracker
    clientId: ${ID}
    clientSecret: ${SECRET}
    authorizeUrl: https://tracker.example.com/authorize
    tokenUrl: https://tracker.example.com/token
    userInfoUrl: https://tracker.example.com/me
    revokeUrl: https://tracker.example.com/revoke
    issuer: https://tracker.example.com
    scopes: [read, write]
    scopeSeparator: ","
    clientAuthentication: client_secret_basic
    authorizeParameters: {audience: api}
    account: {label: [login], email: mail, verified: mail_ok}
"""


def test_a_provider_by_its_addresses() -> None:
    found = parse_providers(TRACKER, "connections.yaml", ENVIRON)
    assert found.by_name["tracker"] == Provider(
        "tracker",
        "Acme Tracker",
        client_id="the-id",
        client_secret="the-secret-of-ours",
        authorize_url="https://tracker.example.com/authorize",
        token_url="https://tracker.example.com/token",
        revoke_url="https://tracker.example.com/revoke",
        userinfo_url="https://tracker.example.com/me",
        issuer="https://tracker.example.com",
        scopes=("read", "write"),
        scope_separator=",",
        authentication="client_secret_basic",
        authorize_parameters={"audience": "api"},
        account=AccountFields(("login",), "mail", "mail_ok"),
    )
    assert found.secrets == {"the-secret-of-ours"}
    assert "the-secret-of-ours" not in repr(found)


@pytest.mark.parametrize("name", ["google", "microsoft", "github", "slack"])
def test_a_preset_needs_a_client_and_nothing_else(name: str) -> None:
    written = f"version: 1\nconnections:\n  {name}: {{clientId: a, clientSecret: b}}"
    made = parse_providers(written, "c", {}).by_name[name]
    assert (made.connection, made.client_id, made.client_secret) == (name, "a", "b")
    assert made.authorize_url.startswith("https://")


def test_a_preset_under_another_name_with_a_tenant_and_more_scopes() -> None:
    written = (
        "version: 1\nconnections:\n  work:\n    preset: microsoft\n    clientId: a\n    clientSecret: b\n"
        "    tenant: acme.example\n    label: Acme\n    scopes: [Mail.Read]\n"
    )
    made = parse_providers(written, "c", {}).by_name["work"]
    assert made.label == "Acme"
    assert "/acme.example/" in made.token_url
    assert made.scopes[-1] == "Mail.Read"
    assert "offline_access" in made.scopes


def test_a_client_without_a_secret_is_a_public_one() -> None:
    made = parse_providers("version: 1\nconnections: {google: {clientId: a}}", "c", {}).by_name["google"]
    assert (made.client_secret, made.authentication) == (None, "none")


def test_a_file_that_is_not_there_has_no_providers(tmp_path: Path) -> None:
    assert load_providers(tmp_path / "connections.yaml", {}).by_name == {}
    (tmp_path / "empty.yaml").write_text("# nothing yet\n")
    assert load_providers(tmp_path / "empty.yaml", {}).by_name == {}


def test_a_file_that_is_no_text_stops_the_start(tmp_path: Path) -> None:
    file = tmp_path / "connections.yaml"
    file.write_bytes(b"version: 1\n\xff\xfe")
    with pytest.raises(ConnectionsError, match="line 2"):
        load_providers(file, {})
    with pytest.raises(ConnectionsError, match="cannot be read"):
        load_providers(tmp_path, {})


def one(line: str, *, instead_of: str = "") -> str:
    """The file with another line, or with one more."""
    if not instead_of:
        return TRACKER + f"    {line}\n"
    before = next(each for each in TRACKER.splitlines() if each.strip().startswith(instead_of))
    return TRACKER.replace(before, f"    {line}")


@pytest.mark.parametrize(
    ("written", "line", "reason"),
    [
        ("version: 2\nconnections: {}", 1, "version"),
        ("connections: {}", 1, "version"),
        ("version: 1\nconnections: []", 2, "mapping"),
        ("version: 1\nother: 1\nconnections: {}", 2, "no key"),
        (one("clientID: x"), 18, "did you mean"),
        (one("authorizeUrl: http://tracker.example.com/", instead_of="authorizeUrl"), 8, "https"),
        (one("tokenUrl: javascript:alert(1)", instead_of="tokenUrl"), 9, "https"),
        (one("tokenUrl: https://a:b@tracker.example.com/", instead_of="tokenUrl"), 9, "https"),
        (one("clientId: ${NOT_SET}", instead_of="clientId"), 6, "NOT_SET is not set"),
        (one("clientSecret: ${EMPTY}", instead_of="clientSecret"), 7, "EMPTY is not set"),
        (one("authorizeParameters: {redirect_uri: x}", instead_of="authorizeParameters"), 16, "set by the program"),
        (one("authorizeParameters: {State: x}", instead_of="authorizeParameters"), 16, "set by the program"),
        (one("clientAuthentication: none", instead_of="clientAuthentication"), 15, "go together"),
        (one("account: {verified: ok}", instead_of="account"), 17, "email"),
        (one("tenant: x"), 18, "microsoft"),
        (one("preset: yahoo"), 18, "one of"),
        (one("scopes: [a, a]", instead_of="scopes"), 13, "twice"),
        ("version: 1\nconnections:\n  'a b': {clientId: x}", 3, "name"),
        ("version: 1\nconnections:\n  new: {clientId: x}", 3, "authorizeUrl"),
        ("version: 1\nconnections:\n  google: {}", 3, "clientId"),
        ("version: 1\nconnections: {microsoft: {clientId: x, tenant: 'a/b'}}", 2, "tenant"),
    ],
)
def test_what_cannot_be_is_said_with_its_line(written: str, line: int, reason: str) -> None:
    with pytest.raises(ConnectionsError) as refused:
        parse_providers(written, "connections.yaml", ENVIRON)
    assert str(refused.value).startswith(f"connections.yaml, line {line}: "), refused.value
    assert reason in str(refused.value)
    assert "the-secret-of-ours" not in str(refused.value)


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        parse_providers(text, "c", {})
    except ConnectionsError as refused:
        assert str(refused).startswith("c, line ")


def test_the_example_can_be_used_as_it_is() -> None:
    example = Path(__file__).parents[2] / "connections.example.yaml"
    names = set(re.findall(r"\$\{(\w+)\}", example.read_text()))
    found = load_providers(example, dict.fromkeys(names, "x")).by_name
    assert set(found) == {"github", "google", "work", "tracker"}
    assert found["tracker"].account == AccountFields(("login", "email"), "email", "email_verified")
    assert found["work"].scopes[-1] == "Calendars.Read"
