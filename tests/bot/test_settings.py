from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from hypothesis import HealthCheck, given, settings
from hypothesis import example as for_example
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.settings import MODEL_WITH_A_KEY, Settings, SettingsError, load_settings, variable
from bot.settings_example import example
from policies.model import Mode
from tests.support.examples import examples
from tests.support.rights import refused_by_rights

ROOT = Path(__file__).parents[2]

Load = Callable[..., Settings]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Load:
    """Loads settings from exactly the variables given, whatever the machine has set."""
    for field in Settings.model_fields:
        monkeypatch.delenv(variable(field), raising=False)

    def load(**variables: str) -> Settings:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            return load_settings(tmp_path / ".env")

    return load


def problems(load: Load, **variables: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(**variables)
    return list(caught.value.problems)


def test_nothing_set_gives_the_defaults_of_the_contract(load: Load) -> None:
    s = load()
    assert (s.host, s.port, s.public_url) == ("127.0.0.1", 3978, None)
    assert s.database_url.get_secret_value() == "sqlite:///data/countersign.db"
    assert (s.mcp_config, s.policy_file) == (Path("mcp.json"), Path("policies/default.yaml"))
    assert (s.agent_mode, s.agent_strict_readonly) == (Mode.DEFAULT, False)
    assert s.slack_api_url == "https://slack.com/api/"
    assert s.microsoft_app_type == "SingleTenant"
    assert (s.log_level, s.log_format) == ("info", "console")
    assert (s.model_timeout_seconds, s.model_retries, s.turn_concurrency) == (60.0, 3, 64)


def test_without_a_key_the_model_is_the_demo_and_with_a_key_openais(load: Load) -> None:
    assert load().model_name == "demo"
    assert load(OPENAI_API_KEY="sk-test-key").model_name == MODEL_WITH_A_KEY
    assert load(OPENAI_API_KEY="sk-test-key", LLM_MODEL="demo").model_name == "demo"


def test_the_router_uses_the_same_model_unless_told_otherwise(load: Load) -> None:
    assert load(OPENAI_API_KEY="sk-test-key").router_spec.name == MODEL_WITH_A_KEY
    s = load(OPENAI_API_KEY="sk-test-key", ROUTER_MODEL="demo")
    assert (s.model_spec.name, s.router_spec.name) == (MODEL_WITH_A_KEY, "demo")


def test_a_local_service_needs_no_key(load: Load) -> None:
    spec = load(LLM_MODEL="qwen3", OPENAI_BASE_URL="http://127.0.0.1:11434/v1").model_spec
    assert (spec.name, spec.base_url, spec.api_key) == ("qwen3", "http://127.0.0.1:11434/v1", None)


def test_openais_own_service_needs_a_key_also_with_a_slash_at_its_end(load: Load) -> None:
    with pytest.raises(SettingsError, match="OPENAI_API_KEY: is not set"):
        load(LLM_MODEL="gpt", OPENAI_BASE_URL="https://api.openai.com/v1/")


def test_googles_models_get_googles_key_and_no_address(load: Load) -> None:
    spec = load(LLM_MODEL="google:gemini-3", GOOGLE_API_KEY="g-key", OPENAI_API_KEY="sk-test-key").model_spec
    assert spec.base_url is None
    assert spec.api_key is not None
    assert spec.api_key.get_secret_value() == "g-key"


def test_anthropics_models_get_anthropics_key_and_no_address(load: Load) -> None:
    spec = load(LLM_MODEL="anthropic:claude", ANTHROPIC_API_KEY="a-key").model_spec
    assert spec.base_url is None
    assert spec.api_key is not None
    assert spec.api_key.get_secret_value() == "a-key"


def test_a_gateway_may_need_no_key_and_the_router_may_be_elsewhere(load: Load) -> None:
    s = load(
        LLM_MODEL="anthropic:claude",
        ANTHROPIC_BASE_URL="http://gate/",
        ROUTER_MODEL="google:gemini",
        GOOGLE_API_KEY="g",
    )
    assert (s.model_spec.base_url, s.model_spec.api_key) == ("http://gate", None)
    assert (s.router_spec.base_url, s.router_spec.api_key) == (None, s.google_api_key)


def test_an_empty_variable_counts_as_not_set(load: Load) -> None:
    assert load(PORT="", SLACK_BOT_TOKEN="", AGENT_MODE="") == load()


def test_the_line_break_at_the_end_of_a_secrets_file_is_no_part_of_the_secret(load: Load) -> None:
    """Kubernetes hands over a file with it, and Slack's signatures would never be right."""
    token, signing, key = "xoxb-1", "0123456789abcdef0123456789abcdef", Fernet.generate_key().decode()
    s = load(
        SLACK_BOT_TOKEN=f"{token}\n", SLACK_SIGNING_SECRET=f"{signing}\r\n", ENCRYPTION_KEY=f"{key}\n", PORT="80\n"
    )
    given = [s.slack_bot_token, s.slack_signing_secret, s.encryption_key]
    assert [each.get_secret_value() for each in given if each] == [token, signing, key]
    assert load(OPENAI_API_KEY="\n").model_name == "demo"


def test_a_dot_env_file_is_read_and_the_environment_wins(load: Load, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PORT=4000\nHOST=::1\nSOMETHING_ELSE=1\n")
    s = load(PORT="5000")
    assert (s.host, s.port) == ("::1", 5000)


def test_a_dot_env_file_that_is_not_text_is_one_clear_problem(load: Load, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"PORT=\xff\xfe")
    assert "UTF-8" in problems(load)[0]


def test_a_dot_env_file_that_belongs_to_another_user_is_one_clear_problem(load: Load, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PORT=4000")
    (tmp_path / ".env").chmod(0o000)
    with refused_by_rights():
        found = problems(load)
    assert found == [f"{tmp_path}/.env: cannot be read: Permission denied."]


def test_the_web_page_is_on_while_no_other_platform_is(load: Load) -> None:
    slack = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": "s"}
    assert load().web_enabled
    assert not load(**slack).web_enabled
    assert load(**slack, WEB_ENABLED="true").web_enabled
    assert not load(WEB_ENABLED="false").web_enabled


def test_a_platform_is_on_when_its_variables_are_set(load: Load) -> None:
    assert not load().slack_configured
    assert not load().teams_configured
    assert load(SLACK_BOT_TOKEN="xoxb-1", SLACK_APP_TOKEN="xapp-1").slack_configured
    assert load(SLACK_CLIENT_ID="1.2", SLACK_CLIENT_SECRET="s", SLACK_SIGNING_SECRET="s").slack_configured
    assert load(MICROSOFT_APP_ID="app", MICROSOFT_APP_PASSWORD="p", MICROSOFT_APP_TENANT_ID="t").teams_configured
    assert load(TEAMS_LOCAL_UNAUTHENTICATED="true").teams_configured


def test_lists_are_separated_by_commas(load: Load) -> None:
    assert load(TEAMS_ALLOWED_TENANTS="a, b,,c ").teams_allowed_tenants == ("a", "b", "c")
    assert load(SLACK_INSTALL_TEAMS="T1, E2,*").slack_install_teams == ("T1", "E2", "*")
    assert load().slack_install_teams == ()


@pytest.mark.parametrize(
    ("variables", "named", "says"),
    [
        ({"PORT": "http"}, "PORT", "whole number"),
        ({"SLACK_INSTALL_TEAMS": "acme"}, "SLACK_INSTALL_TEAMS", "not the id of a workspace"),
        ({"SLACK_INSTALL_TEAMS": "T1,acme.slack.com"}, "SLACK_INSTALL_TEAMS", "number 2 is"),
        ({"PORT": "70000"}, "PORT", "at most 65535"),
        ({"HOST": "http://localhost"}, "HOST", "127.0.0.1"),
        ({"HOST": "a host"}, "HOST", "127.0.0.1"),
        ({"PUBLIC_URL": "http://bot.example.com"}, "PUBLIC_URL", "https"),
        ({"PUBLIC_URL": "bot.example.com"}, "PUBLIC_URL", "https://"),
        ({"PUBLIC_URL": "https://bot.example.com/bot"}, "PUBLIC_URL", "host and a port"),
        ({"PUBLIC_URL": "https://bot.example.com:port"}, "PUBLIC_URL", "port"),
        ({"DATABASE_URL": "mysql://localhost/x"}, "DATABASE_URL", "postgresql://"),
        ({"DATABASE_URL": "sqlite://data.db"}, "DATABASE_URL", "three slashes"),
        ({"DATABASE_URL": "postgresql://localhost"}, "DATABASE_URL", "names no database"),
        ({"DATABASE_URL": "postgresql://first:5432,second:port/x"}, "DATABASE_URL", "port"),
        ({"DATABASE_URL": "postgresql://first:5432,second:70000/x"}, "DATABASE_URL", "port"),
        *(
            ({"DATABASE_URL": f"postgresql://bot:{password}@first/x"}, "DATABASE_URL", "in a password write % as %25")
            for password in ("100%", "p@ss", "12/ab", "a?b", "a#b")
        ),
        ({"AGENT_MODE": "readonly"}, "AGENT_MODE", "readOnly"),
        ({"AGENT_STRICT_READONLY": "maybe"}, "AGENT_STRICT_READONLY", "true nor false"),
        ({"ENCRYPTION_KEY": "too-short"}, "ENCRYPTION_KEY", "Fernet"),
        ({"WEB_PASSWORD": "short"}, "WEB_PASSWORD", "8 characters"),
        ({"LOG_LEVEL": "loud"}, "LOG_LEVEL", "warning"),
        ({"LOG_FORMAT": "xml"}, "LOG_FORMAT", "json"),
        ({"MODEL_TIMEOUT_SECONDS": "0"}, "MODEL_TIMEOUT_SECONDS", "more than 0"),
        ({"MODEL_TIMEOUT_SECONDS": "soon"}, "MODEL_TIMEOUT_SECONDS", "number"),
        ({"TURN_CONCURRENCY": "0"}, "TURN_CONCURRENCY", "at least 1"),
        ({"OPENAI_BASE_URL": "localhost:8000"}, "OPENAI_BASE_URL", "http"),
        ({"MICROSOFT_APP_TYPE": "Single"}, "MICROSOFT_APP_TYPE", "SingleTenant"),
        ({"WEB_ENABLED": "perhaps"}, "WEB_ENABLED", "true nor false"),
        ({"LLM_MODEL": "gpt-5.5"}, "OPENAI_API_KEY", "LLM_MODEL=demo"),
        ({"ROUTER_MODEL": "gpt-5.5"}, "OPENAI_API_KEY", "ROUTER_MODEL=demo"),
        ({"LLM_MODEL": "google:gemini-3"}, "GOOGLE_API_KEY", "Set it"),
        ({"LLM_MODEL": "google:", "GOOGLE_API_KEY": "k"}, "LLM_MODEL", "google:{model}"),
        ({"LLM_MODEL": "anthropic:claude", "OPENAI_API_KEY": "k"}, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        ({"ROUTER_MODEL": "anthropic:"}, "ROUTER_MODEL", "anthropic:{model}"),
        ({"ANTHROPIC_BASE_URL": "localhost:8000"}, "ANTHROPIC_BASE_URL", "http"),
        ({"GOOGLE_BASE_URL": "localhost:8000"}, "GOOGLE_BASE_URL", "http"),
        ({"SLACK_BOT_TOKEN": "xoxb-1"}, "SLACK_SIGNING_SECRET", "Socket Mode"),
        ({"SLACK_SIGNING_SECRET": "s"}, "SLACK_BOT_TOKEN", "remove"),
        ({"MICROSOFT_APP_PASSWORD": "s"}, "MICROSOFT_APP_ID", "remove"),
        ({"MICROSOFT_APP_ID": "a", "MICROSOFT_APP_PASSWORD": "s"}, "MICROSOFT_APP_TENANT_ID", "tenant"),
        ({"TEAMS_LOCAL_UNAUTHENTICATED": "1", "HOST": "0.0.0.0"}, "TEAMS_LOCAL_UNAUTHENTICATED", "127.0.0.1"),
        (
            {"TEAMS_LOCAL_UNAUTHENTICATED": "1", "PUBLIC_URL": "https://x.example"},
            "TEAMS_LOCAL_UNAUTHENTICATED",
            "PUBLIC_URL",
        ),
        ({"LANGFUSE_PUBLIC_KEY": "p"}, "LANGFUSE_SECRET_KEY", "Set both"),
        ({"AUDIT_PUSH_TOKEN": "long enough"}, "AUDIT_PUSH_URL", "remove the token"),
        ({"AUDIT_PUSH_URL": "siem.example.com"}, "AUDIT_PUSH_URL", "https"),
        ({"AUDIT_PUSH_URL": "http://siem.example.com"}, "AUDIT_PUSH_URL", "loopback"),
        ({"AUDIT_PUSH_URL": "https://me:pw@siem.example.com"}, "AUDIT_PUSH_URL", "https"),
        (
            {"AUDIT_PUSH_URL": "https://siem.example", "AUDIT_PUSH_TOKEN": "a\nheader: b"},
            "AUDIT_PUSH_TOKEN",
            "one line",
        ),
        ({"WEB_LOGIN": "ldap"}, "WEB_LOGIN", "oidc"),
        ({"WEB_LOGIN": "oidc", "OIDC_CLIENT_ID": "c"}, "OIDC_ISSUER", "Set it"),
        (
            {"WEB_LOGIN": "oidc", "OIDC_ISSUER": "https://id.example", "OIDC_CLIENT_ID": "c", "HOST": "0.0.0.0"},
            "PUBLIC_URL",
            "beyond this machine",
        ),
        ({"OIDC_CLIENT_ID": "c"}, "WEB_LOGIN", "remove"),
        ({"WEB_LOGIN": "password", "WEB_PASSWORD": "long enough"}, "WEB_PASSWORD", "Remove it"),
        ({"WEB_REGISTER": "true"}, "WEB_REGISTER", "WEB_LOGIN=password"),
        ({"API_JWT_SECRET": "31 bytes are one too few for it"}, "API_JWT_SECRET", "32 bytes"),
        ({"API_JWT_ISSUER": "http://id.example.com", "API_JWT_AUDIENCE": "a"}, "API_JWT_ISSUER", "https"),
        ({"API_JWT_ISSUER": "https://id.example.com"}, "API_JWT_AUDIENCE", "other services"),
        ({"API_JWT_AUDIENCE": "a"}, "API_JWT_ISSUER", "remove both"),
        ({"OIDC_ALLOWED_DOMAINS": "example.com"}, "OIDC_ALLOWED_DOMAINS", "neither"),
        ({"OIDC_ALLOWED_DOMAINS": "@example.com"}, "OIDC_ALLOWED_DOMAINS", "no domain"),
        *(
            ({"WEB_LOGIN": "oidc", "OIDC_CLIENT_ID": "c", "OIDC_ISSUER": issuer}, "OIDC_ALLOWED_DOMAINS", "OIDC_ISSUER")
            for issuer in (
                "https://accounts.google.com",
                "https://slack.com",
                "https://login.microsoftonline.com/common/v2.0",
                "https://login.microsoftonline.com/Organizations/v2.0",
            )
        ),
        (
            {"API_JWT_ISSUER": "https://appleid.apple.com", "API_JWT_AUDIENCE": "a"},
            "OIDC_ALLOWED_DOMAINS",
            "anybody in the world can sign in at API_JWT_ISSUER",
        ),
        ({"API_CORS_ORIGINS": "https://app.example.com/"}, "API_CORS_ORIGINS", "origin"),
        ({"HITL_TIMEOUT_SECONDS": "0"}, "HITL_TIMEOUT_SECONDS", "more than 0"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_wrong_and_what_to_do(
    load: Load, variables: dict[str, str], named: str, says: str
) -> None:
    lines = problems(load, **variables)
    assert len(lines) == 1
    assert lines[0].startswith(f"{named}: ")
    assert says in lines[0]
    assert "\n" not in lines[0]


def test_all_problems_are_told_at_once(load: Load) -> None:
    named = [line.split(":")[0] for line in problems(load, PORT="x", LOG_LEVEL="y", ENCRYPTION_KEY="z")]
    assert sorted(named) == ["ENCRYPTION_KEY", "LOG_LEVEL", "PORT"]


def test_a_password_among_the_parameters_of_an_address_is_known_to_the_logs_too(load: Load) -> None:
    address = "postgresql://bot@db/countersign?password=hunter%40database&sslpassword=hunter-key"
    loaded = load(DATABASE_URL=address, ENCRYPTION_KEY=Fernet.generate_key().decode(), PUBLIC_URL="https://x.example")
    assert {each for each in loaded.secret_values if "hunter" in each} == {"hunter@database", "hunter-key"}


def test_a_password_is_known_to_the_logs_as_it_is_and_as_the_address_has_it(load: Load) -> None:
    key = Fernet.generate_key().decode()
    address = "postgresql://bot:hunter%40database@first:5432,second:5433/countersign"
    loaded = load(DATABASE_URL=address, ENCRYPTION_KEY=key, PUBLIC_URL="https://x.example")
    assert {each for each in loaded.secret_values if "hunter" in each} == {"hunter@database", "hunter%40database"}


@pytest.mark.parametrize("hosts", ["first:5432,second:5433", "first,second:5433"])
def test_several_postgresql_servers_are_named_as_libpq_reads_them(load: Load, hosts: str) -> None:
    address = f"postgresql://bot:pw@{hosts}/countersign"
    key = Fernet.generate_key().decode()
    assert load(DATABASE_URL=address, ENCRYPTION_KEY=key, PUBLIC_URL="https://x.example").records_address == address


def test_good_values_are_taken(load: Load) -> None:
    key = Fernet.generate_key().decode()
    s = load(
        PUBLIC_URL="https://bot.example.com/",
        DATABASE_URL="postgresql://bot:pw@db:5432/countersign",
        ENCRYPTION_KEY=key,
        LOG_LEVEL="DEBUG",
        AGENT_MODE="safeWrite",
        PORT="0",
    )
    assert s.public_url == "https://bot.example.com"
    assert s.encryption_key is not None
    assert s.encryption_key.get_secret_value() == key
    assert (s.log_level, s.agent_mode, s.port) == ("debug", Mode.SAFE_WRITE, 0)
    assert load(PUBLIC_URL="http://127.0.0.1:3978").public_url == "http://127.0.0.1:3978"


SECRETS = {
    "DATABASE_URL": "postgresql://bot:hunter2-database@db/countersign",
    "OPENAI_API_KEY": "hunter2-openai",
    "OPENAI_BASE_URL": "https://me:hunter2-proxy@models.example/v1",
    "ANTHROPIC_API_KEY": "hunter2-anthropic",
    "GOOGLE_API_KEY": "hunter2-google",
    "GOOGLE_BASE_URL": "https://me:hunter2-gateway@models.example",
    "SLACK_BOT_TOKEN": "hunter2-bot",
    "SLACK_SIGNING_SECRET": "hunter2-signing",
    "WEB_PASSWORD": "hunter2-web",
    "AUDIT_PUSH_URL": "https://siem.example.com/hunter2-way",
    "AUDIT_PUSH_TOKEN": "Splunk hunter2-siem",
}


@pytest.mark.parametrize(
    ("issuer", "domains", "taken"),
    [
        ("https://accounts.google.com", "Example.com, example.org", ("example.com", "example.org")),
        ("https://slack.com", "*", ("*",)),
        ("https://login.microsoftonline.com/6babcaad-604b-40ac-a9d7-9fd97c0b779f/v2.0", "", ()),
        ("https://id.example.com/common", "", ()),
    ],
)
def test_where_not_everybody_has_an_account_nothing_has_to_be_said_of_who_may_sign_in(
    load: Load, issuer: str, domains: str, taken: tuple[str, ...]
) -> None:
    loaded = load(WEB_LOGIN="oidc", OIDC_CLIENT_ID="c", OIDC_ISSUER=issuer, OIDC_ALLOWED_DOMAINS=domains)
    assert loaded.oidc_allowed_domains == taken


def test_no_secret_shows_when_settings_are_shown(load: Load) -> None:
    s = load(**{name: value for name, value in SECRETS.items() if not name.endswith("_BASE_URL")})
    assert "hunter2" not in f"{s!r} {s}"


def test_every_secret_is_known_to_the_logs(load: Load) -> None:
    known = load(**SECRETS).secret_values
    assert {v for v in known if v.startswith("hunter2")} == {
        "hunter2-database",
        "hunter2-openai",
        "hunter2-proxy",
        "hunter2-anthropic",
        "hunter2-google",
        "hunter2-gateway",
        "hunter2-bot",
        "hunter2-signing",
        "hunter2-siem",
        "hunter2-web",
    }


def test_not_even_the_error_below_ours_repeats_a_value(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "hunter2-in-the-wrong-place")
    with pytest.raises(ValidationError) as caught:
        Settings(_env_file=None)
    assert "hunter2" not in str(caught.value)


SECRET_FIELDS = ["ENCRYPTION_KEY", "DATABASE_URL", "WEB_PASSWORD", "PUBLIC_URL", "OPENAI_BASE_URL", "PORT"]


@for_example(name="PUBLIC_URL", value="x://host:port")
@given(name=st.sampled_from(SECRET_FIELDS), value=st.text("abcXYZ0129:/@?#[]%._-", min_size=5, max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(65))
def test_no_value_is_repeated_in_an_error_whatever_it_is(load: Load, name: str, value: str) -> None:
    secret = f"q{value}q"
    try:
        load(**{name: secret})
    except SettingsError as error:
        assert secret not in str(error)
        assert error.__cause__ is None


def test_the_example_file_is_current() -> None:
    assert (ROOT / ".env.example").read_text() == example(), "run: python -m bot.settings_example > .env.example"


def test_the_example_names_every_variable_and_changes_nothing_when_copied(load: Load, tmp_path: Path) -> None:
    text = example()
    for field, info in Settings.model_fields.items():
        assert f"# {variable(field)}=" in text
        assert info.description
    (tmp_path / ".env").write_text(text)
    assert load() == Settings(_env_file=None)


def test_the_example_uncommented_is_the_defaults(load: Load, tmp_path: Path) -> None:
    lines = example().splitlines()
    (tmp_path / ".env").write_text("\n".join(line[2:] for line in lines if line[2:].split("=")[0].isupper()))
    assert load() == Settings(_env_file=None)


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("bot.settings", "langchain_core openai aiohttp langgraph sqlalchemy cryptography mcp"),
        (
            "app",
            "langchain_openai openai langgraph.graph langsmith sqlalchemy.dialects.postgresql cryptography mcp a2a",
        ),
    ],
)
@pytest.mark.imports
def test_it_imports_only_what_every_start_needs(module: str, heavy: str) -> None:
    """Messages are taken before the graph and its libraries are imported, which takes longer than all else."""
    code = f"import sys, {module}; sys.exit(' '.join(set({heavy!r}.split()) & set(sys.modules)) or 0)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_of_headers_for_a_collector_the_keys_are_secrets_and_the_names_of_places_are_words(load: Load) -> None:
    """Else each `environment=production` would be masked on its card."""
    places = "X-Scope-OrgID=production,x-honeycomb-dataset=countersign,stream-name=everything,x_tenant_id=customer-7"
    keys = "x-honeycomb-team=a-key-of-theirs,Authorization=Bearer of-the-collector,organisation-key=also-a-key"
    known = load(OTEL_EXPORTER_OTLP_HEADERS=f"{places},{keys}").secret_values
    assert {"a-key-of-theirs", "of-the-collector", "also-a-key"} <= known
    assert not {"production", "countersign", "everything", "customer-7"} & known
