"""How a call was judged, as plain JSON and back: what `policy replay` needs to judge the same call by other rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter

from policies.commands import argument_of_command
from policies.defaults import plain, with_defaults
from policies.model import Annotations, Call, Facts, Mode, Tool, Verdict

_verdict: TypeAdapter[Verdict] = TypeAdapter(Verdict)


def judgement(call: Call, facts: Facts, verdict: Verdict) -> dict[str, Any]:
    """A judgement as plain JSON: what was said, and all that it was said on but the arguments of the call."""
    tool = call.tool
    filled = plain(with_defaults(tool.input_schema, call.arguments))
    return {
        "verdict": verdict.model_dump(mode="json"),
        "mode": facts.mode.value,
        "requester": facts.requester,
        "platform": facts.platform,
        "place": facts.place,
        "at": facts.at.timestamp(),
        "groups": dict(facts.groups),
        "quote": call.quote,
        "tool": {
            "server": tool.server,
            "name": tool.name,
            "annotations": asdict(tool.annotations),
            "trusted": tool.annotations_trusted,
            "requires_approval": tool.requires_approval,
            "reads_only": tool.reads_only,
            "command": argument_of_command(tool.input_schema),
            # Left out by the call and filled in by the schema: rules are held against these too.
            "defaults": {name: value for name, value in filled.items() if name not in call.arguments},
        },
    }


def judged_again(kept: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[Call, Facts, Verdict]:
    """The call, the facts and the verdict of then. Raises `KeyError`, `ValueError` or `TypeError` for what is no
    judgement."""
    about = kept["tool"]
    tool = Tool(
        server=about["server"],
        name=about["name"],
        input_schema=_schema(about["command"]),
        annotations=Annotations(**about["annotations"]),
        annotations_trusted=about["trusted"],
        requires_approval=about["requires_approval"],
        reads_only=about.get("reads_only", False),  # older entries do not say
    )
    facts = Facts(
        mode=Mode(kept["mode"]),
        requester=kept["requester"],
        platform=kept["platform"],
        place=kept["place"],
        at=datetime.fromtimestamp(kept["at"], UTC),
        groups=kept["groups"],
        said=(kept["quote"],) if kept["quote"] else (),
    )
    call = Call(tool, {**about["defaults"], **arguments}, quote=kept["quote"])
    return call, facts, _verdict.validate_python(kept["verdict"])


def _schema(command: str | None) -> dict[str, Any]:
    """As much of the schema as judging looks at: whether the tool takes one command line."""
    if command is None:
        return {}
    return {"type": "object", "properties": {command: {"type": "string"}}, "required": [command]}
