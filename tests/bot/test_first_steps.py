"""What a terminal says at the end of the start."""

from __future__ import annotations

from bot.first_steps import first_steps
from bot.settings import Settings

URL = "http://127.0.0.1:3978"


def test_it_says_where_it_is_and_what_can_be_connected() -> None:
    said = first_steps(Settings(_env_file=None), URL)
    assert f"Open it in your browser: {URL}" in said
    assert "A language model\n    Put OPENAI_API_KEY into the file .env." in said
    assert "Slack (docs/slack.md)\n    Create an app from manifest.yml." in said
    assert "Microsoft Teams (docs/teams.md)\n    Register a bot. Put MICROSOFT_APP_ID," in said
    assert said.endswith("\nPress Ctrl-C to stop.\n")


def test_it_fits_a_terminal_of_80_columns() -> None:
    assert max(map(len, first_steps(Settings(_env_file=None), URL).splitlines())) <= 80


def test_what_is_connected_is_not_mentioned() -> None:
    connected = {"slack_bot_token": "xoxb-1", "slack_app_token": "xapp-1", "llm_model": "a-model"}
    teams = {"microsoft_app_id": "1", "microsoft_app_password": "2", "microsoft_app_tenant_id": "3"}
    settings = Settings(_env_file=None, openai_api_key="key", **connected, **teams)
    assert first_steps(settings, URL) == f"\nRunning: {URL}\n\nPress Ctrl-C to stop.\n"
