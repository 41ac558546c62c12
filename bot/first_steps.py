"""What a terminal says at the end of the start."""

from __future__ import annotations

from bot.settings import DEMO, Settings


def first_steps(settings: Settings, url: str) -> str:
    """Returns where the product is, and what is not connected yet with the way to connect it.

    Args:
        url: where people reach it.
    """
    page = "Open it in your browser" if settings.web_enabled else "Running"
    steps = [
        ("A language model", settings.model_name == DEMO, "put OPENAI_API_KEY into .env"),
        (
            "Slack",
            not settings.slack_configured,
            "create an app from manifest.yml, put SLACK_BOT_TOKEN and SLACK_APP_TOKEN into .env (docs/slack.md)",
        ),
        (
            "Microsoft Teams",
            not settings.teams_configured,
            "put MICROSOFT_APP_ID, _PASSWORD and _TENANT_ID into .env, then make teams-package (docs/teams.md)",
        ),
    ]
    missing = [f"  {name}: {how}" for name, is_missing, how in steps if is_missing]
    connect = ["", "Connect, and start again:", *missing] if missing else []
    return "\n".join(["", f"{page}: {url}", *connect, "", "Stop with Ctrl-C.", ""])
