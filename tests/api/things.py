"""One of each kind of what there can be for a person, and how addresses name it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.api.serving import ServedApi

THREAD = "web:anas"
PATHS = {
    "threads": "{thread}",
    "approvals": "{approval}",
    "clarifications": "{question}",
    "sign-ins": "{sign_in}",
    "outcomes": "{outcome}",
    "connections": "{account}",
    "standing-approvals": "{grant}",
    "memories": "{memory}",
    "turns": "{message_id}",
    "parked": "{message_id}",
}
"""Part of a path → what its `{id}` stands for."""


@dataclass(frozen=True)
class Things:
    """What is Ana's, by name."""

    ids: dict[str, str] = field(default_factory=dict)

    def filled(self, value: Any) -> Any:
        """The value with ids for names."""
        if isinstance(value, str):
            for name, each in self.ids.items():
                value = value.replace(f"{{{name}}}", each)
            return value
        if isinstance(value, dict):
            return {name: self.filled(each) for name, each in value.items()}
        return [self.filled(each) for each in value] if isinstance(value, list) else value

    def of_path(self, path: str) -> dict[str, str]:
        """What the parts of the path of an operation are, for what is Ana's."""
        found = {name: each for name, each in self.ids.items() if f"{{{name}}}" in path}
        for part, name in PATHS.items():
            if f"/{part}/{{id}}" in path:
                found["id"] = str(self.filled(name))
        return found

    def path(self, path: str) -> str:
        """The path of an operation, to what is Ana's."""
        for part, name in PATHS.items():
            path = path.replace(f"/{part}/{{id}}", f"/{part}/{name}")
        return str(self.filled(path))


async def everything_of_anas(served: ServedApi) -> Things:
    """One of each kind."""
    message = await served.write(THREAD, "the words of Ana")
    approval = await served.wait_for(THREAD, message)
    return Things(
        {
            "thread": THREAD,
            "message_id": message,
            "post": await served.say(THREAD, message),
            "approval": approval,
            "call": f"{message}.0.0",
            "grant": await served.always(approval),
            "question": await served.question(THREAD, message),
            "sign_in": await served.sign_in(THREAD, message),
            "outcome": await served.outcome(THREAD, message),
            "account": await served.account(),
            "memory": "0123456789abcdef0123",
            "provider": "board",
            "name": "kiln",
            "user_id": "ana",
        }
    )
