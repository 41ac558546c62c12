"""`manifest.yml` can be pasted as it is, and asks for what the code uses: no scope, event or name more or less."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.slack.actions import COMMAND, SHORTCUT
from adapters.slack.config import SCOPES
from adapters.slack.inbound.events import suggested_prompts
from bot.accounts.sign_ins import CALLBACK
from tests.slack.local.packages import NODE, PACKAGES, WITHOUT_PACKAGES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "manifest.yml").read_text()
ADAPTER = ROOT / "adapters" / "slack"

HISTORY = frozenset({"channels:history", "groups:history", "im:history", "mpim:history"})
READ = frozenset({"channels:read", "groups:read"})
NOTHING: frozenset[str] = frozenset()

SCOPES_OF_METHODS = {
    "agents.sessions.setStatus": frozenset({"chat:write", "assistant:write"}),
    "apps.connections.open": NOTHING,  # by the app-level token, connections:write
    "assistant.threads.setStatus": frozenset({"assistant:write"}),
    "assistant.threads.setSuggestedPrompts": frozenset({"assistant:write"}),
    "assistant.threads.setTitle": frozenset({"assistant:write"}),
    "auth.test": NOTHING,
    "auth.revoke": NOTHING,
    "chat.appendStream": frozenset({"chat:write"}),
    "chat.delete": frozenset({"chat:write"}),
    "chat.getPermalink": NOTHING,
    "chat.postEphemeral": frozenset({"chat:write"}),
    "chat.postMessage": frozenset({"chat:write"}),
    "chat.startStream": frozenset({"chat:write"}),
    "chat.stopStream": frozenset({"chat:write"}),
    "chat.update": frozenset({"chat:write"}),
    "conversations.history": HISTORY,
    "conversations.info": READ,
    "conversations.members": READ,
    "conversations.open": frozenset({"im:write"}),
    "conversations.replies": HISTORY,
    "oauth.v2.access": NOTHING,
    "files.info": frozenset({"files:read"}),
    "usergroups.users.list": frozenset({"usergroups:read"}),
    "users.info": frozenset({"users:read", "users:read.email"}),
    "views.open": NOTHING,
    "views.publish": NOTHING,
    "views.push": NOTHING,
    "views.update": NOTHING,
}
"""docs.slack.dev/reference/methods, for bots."""

SCOPES_OF_EVENTS = {
    "agent_session_stopped": frozenset({"assistant:write"}),
    "app_home_opened": NOTHING,
    "app_mention": frozenset({"app_mentions:read"}),
    "app_uninstalled": NOTHING,
    "message.channels": frozenset({"channels:history"}),
    "message.groups": frozenset({"groups:history"}),
    "message.im": frozenset({"im:history"}),
    "message.mpim": frozenset({"mpim:history"}),
    "tokens_revoked": NOTHING,
    "user_change": frozenset({"users:read"}),
}
"""docs.slack.dev/reference/events, for bots."""

FOR_FEATURES = frozenset({"commands", "assistant:write"})
"""Shortcuts and slash commands; `agent_view`."""

OLDER_APPS = {"assistant_thread_started", "assistant_thread_context_changed"}
"""Sent to apps made before `agent_view`; not to new ones (docs.slack.dev/ai/migrating-to-agent-messaging)."""

UNKNOWN_TO_THE_SDK = {"assistant:write", "agent_session_stopped"}
"""Documented by Slack, and missing from the lists in @slack/web-api 8.2.0."""


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    return dict(yaml.safe_load(TEXT))


def uncommented(text: str) -> dict[str, Any]:
    """The manifest after the steps that its first lines describe."""
    text = re.sub(r"^(\s*)# (.*) # HTTP.*$", r"\1\2", text, flags=re.MULTILINE)
    text = text.replace("https://bot.example.com", "https://bot.acme.org")
    return dict(yaml.safe_load(text.replace("socket_mode_enabled: true", "socket_mode_enabled: false")))


def texts(within: object, path: str = "") -> Iterator[tuple[str, str]]:
    match within:
        case dict():
            for key, value in within.items():
                yield from texts(value, f"{path}.{key}" if path else str(key))
        case list():
            for value in within:
                yield from texts(value, path)
        case str():
            yield path, within


LENGTHS = {
    "display_information.name": (1, 35),
    "display_information.description": (1, 140),
    "display_information.long_description": (175, 4000),
    "features.bot_user.display_name": (1, 80),
    "features.agent_view.agent_description": (1, 300),
    "features.agent_view.suggested_prompts.title": (1, 75),
    "features.agent_view.suggested_prompts.message": (1, 300),
    "features.shortcuts.name": (1, 24),
    "features.shortcuts.description": (1, 150),
    "features.shortcuts.callback_id": (1, 255),
    "features.slash_commands.command": (2, 32),
    "features.slash_commands.description": (1, 2000),
    "features.slash_commands.usage_hint": (1, 1000),
}
"""Slack's manifest schema (github.com/slackapi/manifest-schema), and what its composer shows of a suggested prompt."""


@pytest.mark.parametrize("text", [TEXT, None], ids=["as it is", "for HTTP"])
def test_every_text_is_as_long_as_slack_wants_it(text: str | None) -> None:
    for path, value in texts(yaml.safe_load(text) if text else uncommented(TEXT)):
        shortest, longest = LENGTHS.get(path, (1, 3000))
        assert shortest <= len(value) <= longest, path


def test_names_are_made_of_the_characters_slack_allows(manifest: dict[str, Any]) -> None:
    assert re.fullmatch(r"[a-z0-9_.-]+", manifest["features"]["bot_user"]["display_name"])
    assert re.fullmatch(r"#[0-9a-fA-F]{6}", manifest["display_information"]["background_color"])
    assert len(manifest["features"]["agent_view"]["suggested_prompts"]) <= 4


def test_a_new_app_is_an_agent_since_slack_refuses_assistant_view(manifest: dict[str, Any]) -> None:
    assert "agent_view" in manifest["features"]
    assert "assistant_view" not in manifest["features"]
    assert not OLDER_APPS & set(manifest["settings"]["event_subscriptions"]["bot_events"])


def test_it_works_by_pasting_through_socket_mode(manifest: dict[str, Any]) -> None:
    settings = manifest["settings"]
    assert settings["socket_mode_enabled"]
    assert settings["interactivity"] == {"is_enabled": True}
    assert not any(value.startswith("http") for _, value in texts(manifest)), "nothing that has to be filled in first"
    app_home = manifest["features"]["app_home"]
    assert app_home == {
        "home_tab_enabled": True,
        "messages_tab_enabled": True,
        "messages_tab_read_only_enabled": False,
    }


def test_its_comments_lead_from_socket_mode_to_http() -> None:
    changed = uncommented(TEXT)
    events = "https://bot.acme.org/slack/events"
    assert changed["settings"]["event_subscriptions"]["request_url"] == events
    assert changed["settings"]["interactivity"]["request_url"] == events
    assert changed["settings"]["interactivity"]["message_menu_options_url"] == events
    assert changed["features"]["slash_commands"][0]["url"] == events
    browsers_come_back_to = ("/slack/oauth_redirect", CALLBACK)  # after installing, and to sign in with Slack
    assert changed["oauth_config"]["redirect_urls"] == [f"https://bot.acme.org{path}" for path in browsers_come_back_to]
    assert not changed["settings"]["socket_mode_enabled"]
    assert TEXT.count("# HTTP") == 5, "as many lines as its first comment says"


def test_the_names_are_those_that_the_code_listens_to(manifest: dict[str, Any]) -> None:
    assert [s["callback_id"] for s in manifest["features"]["shortcuts"]] == [SHORTCUT]
    assert [c["command"] for c in manifest["features"]["slash_commands"]] == [COMMAND]


def test_it_asks_for_the_scopes_that_an_install_asks_for(manifest: dict[str, Any]) -> None:
    assert tuple(manifest["oauth_config"]["scopes"]["bot"]) == SCOPES


def test_every_scope_is_explained() -> None:
    told = (ROOT / "docs" / "slack.md").read_text()
    assert [scope for scope in SCOPES if f"`{scope}`" not in told] == []


def test_every_event_is_explained(manifest: dict[str, Any]) -> None:
    told = (ROOT / "docs" / "slack.md").read_text()
    events = manifest["settings"]["event_subscriptions"]["bot_events"]
    assert [event for event in events if f"`{event}`" not in told] == []


def test_it_suggests_the_same_prompts_as_the_code(manifest: dict[str, Any]) -> None:
    suggested = manifest["features"]["agent_view"]["suggested_prompts"]
    assert tuple((prompt["title"], prompt["message"]) for prompt in suggested) == suggested_prompts()


def test_every_event_is_listened_to_and_every_listener_gets_its_event(manifest: dict[str, Any]) -> None:
    subscribed = {event.split(".")[0] for event in manifest["settings"]["event_subscriptions"]["bot_events"]}
    assert subscribed == set(events_listened_to()) - OLDER_APPS


def test_every_event_has_its_scope(manifest: dict[str, Any]) -> None:
    for event in manifest["settings"]["event_subscriptions"]["bot_events"]:
        assert SCOPES_OF_EVENTS[event] <= set(SCOPES), event


def test_every_method_that_the_code_calls_has_its_scope() -> None:
    called = set(methods_called())
    assert {"chat.postMessage", "views.open", "users.info", "conversations.replies"} <= called, "the search finds calls"
    for method in called:
        assert SCOPES_OF_METHODS[method] <= set(SCOPES), method


def test_no_scope_is_asked_for_that_nothing_needs(manifest: dict[str, Any]) -> None:
    events = manifest["settings"]["event_subscriptions"]["bot_events"]
    needed = FOR_FEATURES.union(
        *(SCOPES_OF_METHODS[method] for method in methods_called()), *(SCOPES_OF_EVENTS[event] for event in events)
    )
    assert set(SCOPES) - needed == set()


def methods_called() -> Iterator[str]:
    """Names of Web API methods in the adapter's code, apart from sets of methods that are only written about."""
    families = {method.split(".")[0] for method in SCOPES_OF_METHODS}
    for file in ADAPTER.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text())))
        in_sets = {id(element) for node in nodes if isinstance(node, ast.Set) for element in node.elts}
        for node in nodes:
            match node:
                case ast.Constant(value=str(text)) if id(node) not in in_sets:
                    if re.fullmatch(r"[a-z]+(\.[A-Za-z0-9]+)+", text) and text.split(".")[0] in families:
                        yield text


def events_listened_to() -> Iterator[str]:
    """Events that `adapters/slack` registers a listener of its own for."""
    for file in ADAPTER.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(attr="event"), args=[ast.Constant(value=str(name))]):
                    yield name


@pytest.mark.node
@pytest.mark.skipif(not PACKAGES, reason=WITHOUT_PACKAGES)
@pytest.mark.parametrize("text", [TEXT, None], ids=["as it is", "for HTTP"])
@pytest.mark.imports
def test_it_is_of_the_type_that_slacks_own_library_has_for_manifests(text: str | None, tmp_path: Path) -> None:
    manifest = yaml.safe_load(text) if text else uncommented(TEXT)
    for names in (manifest["oauth_config"]["scopes"]["bot"], manifest["settings"]["event_subscriptions"]["bot_events"]):
        names[:] = [name for name in names if name not in UNKNOWN_TO_THE_SDK]
    assert type_errors(manifest, tmp_path) == ""


@pytest.mark.node
@pytest.mark.skipif(not PACKAGES, reason=WITHOUT_PACKAGES)
@pytest.mark.imports
def test_slacks_type_tells_a_wrong_manifest_from_a_right_one(manifest: dict[str, Any], tmp_path: Path) -> None:
    wrong = json.loads(json.dumps(manifest).replace('"app_mention"', '"app_mentioned"'))
    assert "app_mentioned" in type_errors(wrong, tmp_path)


def type_errors(manifest: dict[str, Any], folder: Path) -> str:
    """What TypeScript has against it as the argument of `apps.manifest.create`."""
    assert PACKAGES is not None
    assert NODE is not None
    (folder / "node_modules").symlink_to(PACKAGES)
    source = folder / "manifest.ts"
    source.write_text(
        'import type { AppsManifestCreateArguments } from "@slack/web-api";\n'
        f'export const manifest: AppsManifestCreateArguments["manifest"] = {json.dumps(manifest)};\n'
    )
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext"]
    compiler = PACKAGES / "typescript" / "bin" / "tsc"
    command = [NODE, str(compiler), *options, str(source)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
