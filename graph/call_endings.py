"""How a tool call ends: what the model is told of it, and what the audit log keeps of one that was not made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from langgraph.graph import END
from langgraph.types import Command
from pydantic import BaseModel

from graph.calls import as_returned, tool_message, whole_as_returned
from graph.interrupts import Approved, Expired, Rejected, Superseded, Withdrawn
from graph.json_values import trouble_with
from graph.ports import (
    AttemptUnknown,
    Existing,
    Failed,
    Judged,
    NotMade,
    Ports,
    Recorded,
    SettledByPerson,
    Succeeded,
    Unmade,
    of_last_try,
)
from graph.state import ToolCallState
from policies.masking import Masker, exceeds
from policies.model import canonical_json

AnswerT = TypeVar("AnswerT", bound=BaseModel)
OUTCOME_UNKNOWN = (
    "Outcome unknown: the call was begun, and nobody knows what came of it. It may or may not have taken effect."
)
MOST_NAMES = 20
"""Changed arguments that the model is told of by name."""
LONGEST_NAME = 100
"""Characters of such a name, or of a person's."""
LONGEST_VALUE = 1_000
"""Characters of JSON of a changed value that the model is told. Our own choice."""


async def not_made(
    ports: Ports, state: ToolCallState, status: NotMade, text: str, judged: Judged | None = None
) -> Command[str]:
    """End the branch. `status` and `text` hold if the call was never sent, or certainly did nothing; otherwise the
    model is told what is known of it. `judged`: what the policy said of the call, where it was asked."""
    call, turn, asked = state["call"], state["turn"], state.get("asked")
    await ports.tools.give_up(call["id"])  # it may have been begun, and wait for somebody
    tool = judged.call.tool if judged else await ports.tools.find(call["name"])
    known = await ports.ledger.close(call["id"], repeatable=tool is not None and tool.repeatable)
    if known is not None:
        return answered(state, known)
    text = _of_last_try(state, text)
    await ports.audit.not_made(
        Unmade(
            call_id=call["id"],
            thread_id=turn["thread_id"],
            requester=turn["requester"],
            name=call["name"],
            tool=tool,
            # What JSON cannot carry has no digest and no place in a record.
            arguments={} if trouble_with(call["args"]) else call["args"],
            status=status,
            text=text,
            approval_round=asked["round"] if asked else None,
            judged=judged,
        )
    )
    message = tool_message(call, _under_notes(state, text), failed=True)
    return Command(goto=END, update={"messages": [message]})


def not_found(ports: Ports, name: str) -> str:
    """Why there is no tool of that name to call: after a restart its server may only not be up yet."""
    down = next((each for each in ports.tools.unavailable() if name.startswith(f"{each.server}__")), None)
    if down is not None:
        return f"Failed: {down.server} is unavailable: it {down.reason}. The call was not made."
    return f"Failed: there is no tool called {name} (any more)."


def answered(state: ToolCallState, known: Existing | Succeeded | Failed) -> Command[str]:
    """End the branch with what is known of its call."""
    match known:
        case Recorded(outcome=outcome):
            return answered(state, outcome)
        case Succeeded(text=text, owner=owner, returned=returned):
            # What a tool says of what people said is the tool's: below their words it is introduced as such.
            told = whole_as_returned(text) if notes_in(state) else as_returned(text)
            message = tool_message(state["call"], told, owner=owner, returned=returned)
        case Failed(text=text, owner=owner, returned=returned):
            failed = _of_last_try(state, f"Failed: {text}")
            message = tool_message(state["call"], failed, owner=owner, failed=True, returned=returned)
        case SettledByPerson(was_done=True, by=by, text=text, owner=owner):
            done = f"Done, as {by} confirmed: the call took effect, but its result is not known."
            message = tool_message(state["call"], _with(done, text), owner=owner, failed=True)
        case SettledByPerson(by=by, text=text, owner=owner):
            skipped = f"Skipped by {by}: the outcome of the call is unknown and it shall not be tried again."
            message = tool_message(state["call"], _with(skipped, text), owner=owner, failed=True)
        case AttemptUnknown(text=text, owner=owner):
            message = tool_message(state["call"], _with(OUTCOME_UNKNOWN, text), owner=owner, failed=True)
    message = message.model_copy(update={"content": _under_notes(state, _under_changes(state, message.text))})
    return Command(goto=END, update={"messages": [message]})


def as_told(answer: AnswerT, masker: Masker) -> AnswerT:
    """Returns the answer with the words of people as the model may read them: without anything that may be a secret.
    For whatever takes an answer up: a call that is approved as it was asked is begun before a run comes to it."""
    if isinstance(answer, Approved):
        return answer.model_copy(update={"notes": tuple((name, masker.mask(words)) for name, words in answer.notes)})
    if isinstance(answer, Rejected):
        return answer.model_copy(update={"reason": masker.mask(answer.reason)})
    return answer


def notes_in(state: ToolCallState) -> list[tuple[str, str]]:
    """What those who approved the call added for the model, name and words of each, in whichever round."""
    approved = state.get("approved") or {}
    found: Sequence[Sequence[str]] = [*state.get("notes", ()), *approved.get("notes", ())]
    return [(name, words) for name, words in found]


def asked_again(state: ToolCallState) -> dict[str, Any]:
    """What changes in the state of a call whose approval does not suffice (any more): what was added to that stays."""
    return {"approved": None, "notes": [list(note) for note in notes_in(state)]}


def notes_in_words(state: ToolCallState) -> str:
    """What the model is told of them, each on a line of its own however it was typed. Empty: nothing was added."""
    lines = [
        f"Approved with a note. {' '.join(name.split())[:LONGEST_NAME]} adds: {json.dumps(words, ensure_ascii=False)}"
        for name, words in notes_in(state)
    ]
    return "\n".join(lines)


def _under_notes(state: ToolCallState, text: str) -> str:
    notes = notes_in_words(state)
    return f"{notes}\n\n{text}" if notes else text


def _under_changes(state: ToolCallState, text: str) -> str:
    changes = changes_in_words(state)
    return f"{changes}\n\n{text}" if changes else text


def changes_in_words(state: ToolCallState) -> str:
    """Which arguments an approver has changed, and to what: the model still sees those that it wrote, and would tell
    people of them. Empty: none."""
    wrote, made = state.get("proposed"), state["call"]["args"]
    names = _changed(wrote, made) if wrote is not None else []
    if not names:
        return ""
    given = state.get("given", {})
    told = ", ".join(_change_in_words(name, made, given) for name in names[:MOST_NAMES])
    more = f", and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return (
        f"Approved with changes: an approver gave other values than yours: {told}{more}. Do not report yours as what "
        "was done, and do not propose them again by yourself."
    )


def changed_values(wrote: Mapping[str, Any], made: Mapping[str, Any], masker: Masker) -> dict[str, str]:
    """Returns argument → value, as JSON, of what an approver has changed, as far as a model is told it: without
    anything that may be a secret, and nothing that is longer than `LONGEST_VALUE`."""
    told: dict[str, str] = {}
    for name in _changed(wrote, made)[:MOST_NAMES]:
        if name in made and not exceeds(made[name], LONGEST_VALUE):
            (masked,) = masker.for_audit({name: made[name]}).value.values()
            told[name] = json.dumps(masked, ensure_ascii=False)
    return told


def _changed(wrote: Mapping[str, Any], made: Mapping[str, Any]) -> list[str]:
    return [name for name in {**wrote, **made} if _written(wrote, name) != _written(made, name)]


def _change_in_words(name: str, made: Mapping[str, Any], given: Mapping[str, str]) -> str:
    quoted = json.dumps(name[:LONGEST_NAME], ensure_ascii=False)
    if name not in made:
        return f"{quoted} (left out)"
    return f"{quoted}: {given[name]}" if name in given else f"{quoted} (not repeated here)"


def _written(arguments: Mapping[str, Any], name: str) -> str | None:
    return canonical_json(arguments[name]) if name in arguments else None


def _of_last_try(state: ToolCallState, text: str) -> str:
    """Why a call failed or was not made; with what nobody knows of an earlier try of it, where there was one."""
    return of_last_try(text) if "attempt" in state else text


def _with(sentence: str, text: str) -> str:
    return f"{sentence} {text}" if text else sentence


def status_of(answer: Rejected | Expired | Withdrawn | Superseded) -> NotMade:
    """Why a call that was asked about was not made, as the audit log calls it."""
    return answer.kind
