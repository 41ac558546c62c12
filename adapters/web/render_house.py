"""People and the house → JSON for the page. Pure; every text passes `visible`, as in `render`."""

from __future__ import annotations

from adapters.web.config import PageFacts
from adapters.web.render import Json
from bot.domain import Person
from bot.safe_text import visible


def person_json(person: Person) -> Json:
    """A person of the page."""
    return {"person_id": person.person_id, "name": visible(person.name)}


def facts_json(facts: PageFacts) -> Json:
    """What the page says about the house."""
    return {
        "model_notice": visible(facts.model_notice),
        "mode": visible(facts.mode),
        "tool_servers": [
            {
                "name": visible(server.name),
                "state": visible(server.state),
                "tools": server.tools,
                "reason": visible(server.reason),
            }
            for server in facts.tool_servers
        ],
    }
