"""What a terminal says at the end of the start."""

from __future__ import annotations

from bot.settings import DEMO, Settings


def first_steps(settings: Settings, url: str) -> str:
    """Returns where the product is, and what is not connected yet with the way to connect it.

    Args:
        url: where people reach it.
    """
    page = "Open it in your browser" if settings.web_enabled else "Running"
    missing = [step for is_missing, step in _steps(settings) if is_missing]
    connect = ["", "To connect more, do this and start again:", *missing] if missing else []
    return "\n".join(["", f"{page}: {url}", *connect, "", "Press Ctrl-C to stop.", ""])


def _steps(settings: Settings) -> list[tuple[bool, str]]:
    """What can be connected: whether it is missing, and how to connect it, in lines of 80 characters at most."""
    return [
        (settings.model_name == DEMO, "  A language model\n    Put OPENAI_API_KEY into the file .env."),
        (
            not settings.slack_configured,
            "  Slack (docs/slack.md)\n"
            "    Create an app from manifest.yml.\n"
            "    Put SLACK_BOT_TOKEN and SLACK_APP_TOKEN into .env.",
        ),
        (
            not settings.teams_configured,
            "  Microsoft Teams (docs/teams.md)\n"
            "    Register a bot. Put MICROSOFT_APP_ID, MICROSOFT_APP_PASSWORD,\n"
            "    MICROSOFT_APP_TENANT_ID and PUBLIC_URL into .env.\n"
            "    Run make teams-package, and upload what it writes to Teams.",
        ),
    ]
