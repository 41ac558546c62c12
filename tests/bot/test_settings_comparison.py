"""Processes on one PostgreSQL that are configured differently say so in their logs, and repeat no value there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.records.notifications import LONGEST_KEY, Notifications
from bot.settings import Settings
from bot.settings_comparison import KEY, SettingsComparison, differing, settings_facts
from tests.bot.conftest import until
from tests.support import postgres_cluster

ONE, OTHER = "A" * 43 + "=", "B" * 42 + "A="
SAME = {"public_url": "https://bot.example.com", "web_password": "open sesame", "llm_model": "demo"}


def facts(key: str = ONE, files: Mapping[str, Any] | None = None, **changed: Any) -> Mapping[str, str]:
    settings = Settings(_env_file=None, **{**SAME, "encryption_key": key, **changed})
    return settings_facts(settings, key.encode(), files or {"MCP_CONFIG": ["calendar"]})


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({}, []),
        ({"port": 4000, "host": "0.0.0.0", "log_level": "debug", "turn_concurrency": 3}, []),
        ({"public_url": "https://other.example.com"}, ["PUBLIC_URL"]),
        ({"web_password": "open barley"}, ["WEB_PASSWORD"]),
        ({"WEB_ENABLED": True, "redact_patterns": '{"badge": "B-[0-9]{6}"}'}, ["REDACT_PATTERNS", "WEB_ENABLED"]),
        ({"files": {"MCP_CONFIG": ["tasks"]}}, ["MCP_CONFIG"]),
        ({"llm_model": "google:any", "google_api_key": "any"}, ["GOOGLE_API_KEY", "LLM_MODEL"]),
        ({"key": OTHER}, [KEY]),
        ({"key": f"{ONE},{OTHER}"}, [KEY]),
        ({"key": OTHER, "web_password": "open barley"}, [KEY]),
    ],
)
def test_what_differs_is_named_unless_each_may_have_its_own(changed: Mapping[str, Any], names: Iterable[str]) -> None:
    assert differing(facts(), facts(**changed)) == names
    assert differing(facts(**changed), facts()) == names


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"slack_allowed_teams": "T1,T2"}, {"slack_allowed_teams": "T2,T1,T2"}),
        ({"slack_install_teams": "T1,T2"}, {"slack_install_teams": "T2,T1"}),
        ({"teams_allowed_tenants": "a,b"}, {"teams_allowed_tenants": "b,a"}),
        ({"redact_patterns": '{"a": "A-[0-9]", "b": "B-[0-9]"}'}, {"redact_patterns": '{"b":"B-[0-9]","a":"A-[0-9]"}'}),
        ({"llm_model": "demo"}, {"llm_model": None}),
        ({}, {"openai_base_url": "https://api.openai.com/v1/"}),
        ({"files": {"MCP_CONFIG": [{"a": 1, "b": 2}]}}, {"files": {"MCP_CONFIG": [{"b": 2, "a": 1}]}}),
    ],
)
def test_what_means_the_same_does_not_differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    assert differing(facts(**one), facts(**other)) == []


def test_what_another_version_does_not_know_is_not_compared() -> None:
    mine = facts()
    assert differing(mine, {name: value for name, value in mine.items() if name != "PUBLIC_URL"}) == []


def test_whoever_does_not_know_the_key_cannot_tell_whether_a_password_is_right() -> None:
    assert facts()["WEB_PASSWORD"] != facts(key=OTHER)["WEB_PASSWORD"]


def test_all_of_it_can_be_told_at_once() -> None:
    assert len(str(facts()).encode()) < LONGEST_KEY


@pytest.mark.postgres
async def test_each_says_once_where_the_other_differs() -> None:
    address = postgres_cluster.emptied_database()
    heard: list[str] = []
    with capture_logs() as logs:
        async with AsyncExitStack() as stack:
            made: list[tuple[SettingsComparison, Notifications]] = []
            for mine in (facts(), facts(), facts(public_url="https://other.example.com")):
                notifications = Notifications(address)
                made.append((SettingsComparison(mine, notifications), notifications))
                notifications.subscribe("told_again", heard.append, lambda: None)
                await notifications.start()
                stack.push_async_callback(notifications.stop)
            await until(lambda: len(told(logs)) >= 4)
            for comparison, notifications in made:
                comparison._tell()
                notifications.tell("told_again", notifications.name)
            await until(lambda: len(heard) == len(made) ** 2)  # in order: after what was told before it
    assert told(logs) == [["PUBLIC_URL"]] * 4


def told(logs: Iterable[Mapping[str, Any]]) -> list[Any]:
    return [line["settings"] for line in logs if line["event"] == "settings_differ"]
