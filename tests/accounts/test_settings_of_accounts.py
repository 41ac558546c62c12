"""What the environment says of keys, addresses and limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from bot.accounts.sign_ins import Address, callback, start_link
from bot.crypto import KEY_FILE, KeyFileError, kept_key
from bot.settings import Settings, SettingsError, load_settings

FIRST, SECOND = (Fernet.generate_key().decode() for _ in range(2))


def settings_of(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return load_settings(None)


def test_several_keys_are_taken_and_each_of_them_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(monkeypatch, ENCRYPTION_KEY=f"{FIRST}, {SECOND}")
    assert settings.encryption_key is not None
    assert settings.encryption_key.get_secret_value() == f"{FIRST},{SECOND}"
    assert {FIRST, SECOND} <= settings.secret_values


@pytest.mark.parametrize("value", [f"{FIRST},nonsense", f"{FIRST},", ","], ids=["nonsense", "one empty", "both empty"])
def test_one_that_is_no_key_stops_the_start_without_being_repeated(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_of(monkeypatch, ENCRYPTION_KEY=value)
    assert "ENCRYPTION_KEY" in str(caught.value)
    assert "number" in str(caught.value)
    assert FIRST not in str(caught.value)
    assert "nonsense" not in str(caught.value)


def test_the_kept_key_is_made_once(tmp_path: Path) -> None:
    assert kept_key(tmp_path) == kept_key(tmp_path)


@pytest.mark.parametrize("damaged", [b"", b"secret-nonsense", b"\xff\xfe"], ids=["empty", "nonsense", "no text"])
def test_a_kept_key_that_is_damaged_is_said_to_be_so_without_being_repeated(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / KEY_FILE).write_bytes(damaged)
    with pytest.raises(KeyFileError, match="not an encryption key") as caught:
        kept_key(tmp_path)
    assert "nonsense" not in str(caught.value)
    assert (tmp_path / KEY_FILE).read_bytes() == damaged


def test_no_key_at_all_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "" not in settings_of(monkeypatch).secret_values


def test_links_lead_to_the_public_address_or_to_where_we_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Address(settings_of(monkeypatch))() == "http://127.0.0.1:3978"
    assert Address(settings_of(monkeypatch, HOST="::1"))() == "http://[::1]:3978"
    public = Address(settings_of(monkeypatch, PUBLIC_URL="https://bot.example.com/"))()
    assert start_link(public, "abc") == "https://bot.example.com/oauth/start?s=abc"
    assert callback(public) == "https://bot.example.com/oauth/callback"
    assert callback(public, "google") == "https://bot.example.com/oauth/callback/google"
    assert callback(public, "a/../b?c") == "https://bot.example.com/oauth/callback/a%2F..%2Fb%3Fc"


def test_a_port_that_the_system_chose_is_in_the_links_and_never_in_a_public_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, public = (
        Address(settings_of(monkeypatch, PORT="0", **more)) for more in ({}, {"PUBLIC_URL": "https://b.example"})
    )
    for address in (here, public):
        address.listens_on(4711)
    assert (here(), public()) == ("http://127.0.0.1:4711", "https://b.example")


def test_where_the_providers_are_and_how_many_links_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(monkeypatch, CONNECTIONS_FILE="/etc/connections.yaml", LIMIT_LINKS_PER_HOUR="5")
    assert (settings.connections_file, settings.limit_links_per_hour) == (Path("/etc/connections.yaml"), 5)
