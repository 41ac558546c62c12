"""The text of `.env.example`: `python -m bot.settings_example > .env.example`."""

from __future__ import annotations

import sys
from typing import Any

from pydantic import SecretStr

from bot.settings import Settings, variable
from policies.model import Mode

_HEADINGS = {
    "host": "Server",
    "llm_model": "Language model",
    "mcp_config": "Tools and policies",
    "limit_turns_per_minute": "Limits",
    "slack_bot_token": "Slack",
    "microsoft_app_id": "Microsoft Teams",
    "metrics": "Metrics, traces and logs",
}


def example() -> str:
    """The text of `.env.example`: every variable with its help and default, commented out."""
    lines = [
        "# Copy to .env and uncomment what you want to change. Variables of the environment win over this file.",
        "# Made by `python -m bot.settings_example`.",
    ]
    for name, info in Settings.model_fields.items():
        if name in _HEADINGS:
            lines += ["", f"# --- {_HEADINGS[name]} ---"]
        lines += ["", f"# {info.description}", f"# {variable(name)}={_shown(info.default)}"]
    return "\n".join(lines) + "\n"


def _shown(default: Any) -> str:
    match default:
        case None | ():
            return ""
        case bool():
            return str(default).lower()
        case SecretStr():
            return default.get_secret_value()
        case Mode():
            return default.value
        case float():
            return f"{default:g}"
        case _:
            return str(default)


if __name__ == "__main__":
    sys.stdout.write(example())
