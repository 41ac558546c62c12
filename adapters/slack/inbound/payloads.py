"""What people do in Slack besides writing: clicks, modals, commands, shortcuts. Pure: payloads → our words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from adapters.shared.untrusted_json import part, parts, words
from adapters.slack.actions import MENU, Origin, chosen_in_menu, load_origin
from adapters.slack.ids import SlackLocation, click_key, form_key, our_id, slack_id, slack_ts, token, within_team
from bot.accounts.codes import code_in
from bot.domain import CodeEntry, Person

Payload = Mapping[str, Any]

NOWHERE = SlackLocation("", "")
CommandVerb = Literal["ask", "approvals", "connections", "memory", "usage", "agent", "stop", "help"]
"""What the slash command can do."""


@dataclass(frozen=True, slots=True)
class SlackVisitor:
    """Who does something, where, and by which ways they can be answered."""

    team: str
    """The workspace whose installation is used."""
    user: str
    home_team: str = ""
    """The workspace they belong to; empty: Slack does not say."""
    location: SlackLocation = NOWHERE
    """Where the person is; `NOWHERE` on the App Home, which is in no channel."""
    trigger_id: str = ""
    """Opens a modal, within 3 s."""
    response_url: str = ""
    """Takes 5 messages within 30 minutes."""
    home: bool = False
    """Whether that is the App Home, where no ephemeral message can be shown."""


@dataclass(frozen=True, slots=True)
class SlackClick:
    """A click on a button of ours."""

    visitor: SlackVisitor
    action: str
    value: str
    """Id of what it is about; empty when it is none of ours."""
    key: str
    message_ts: str = ""
    view: Payload = field(default_factory=dict)
    """The modal the button is in; empty: a message's or the App Home's."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A submitted modal."""

    visitor: SlackVisitor
    form: str
    """The form's `callback_id`."""
    origin: Origin | None
    """Where it was opened; `None`: its metadata is not ours."""
    values: Payload
    """`view.state.values`."""
    view: Payload
    key: str


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A slash command."""

    visitor: SlackVisitor
    verb: CommandVerb
    text: str
    """What is asked, as Slack writes it."""
    direct: bool
    """Whether it came in a direct message."""


@dataclass(frozen=True, slots=True)
class Shortcut:
    """The shortcut on a message."""

    visitor: SlackVisitor
    message: Payload


def read_click(payload: Payload, team: str) -> SlackClick | None:
    """A `block_actions` payload; `None` when nobody did something. Slack sends one action at a time."""
    action = next(parts(payload, "actions"), {})
    user = slack_id(payload, "user", "id")
    if not payload.get("team"):
        # An installation of a whole organisation: `team` is then the clicker's, and the card may be another's.
        team = slack_id(payload, "message", "team") or team
    if not user or not team:
        return None
    view = part(payload, "view")
    message_ts = slack_ts(payload, "container", "message_ts") or slack_ts(payload, "message", "ts")
    in_modal = view if words(view, "type") != "home" else {}
    origin = origin_of_view(in_modal)
    channel = slack_id(payload, "channel", "id") or slack_id(payload, "container", "channel_id")
    thread_ts = slack_ts(payload, "message", "thread_ts") or slack_ts(payload, "container", "thread_ts")
    if not channel and origin is not None:
        channel, thread_ts = origin.channel, origin.thread_ts
    visitor = SlackVisitor(
        team,
        user,
        slack_id(payload, "user", "team_id"),
        SlackLocation(team, channel, thread_ts if channel else ""),
        token(payload, "trigger_id"),
        web_address(payload, "response_url"),
        home=origin.home if origin is not None else not (message_ts or in_modal),
    )
    container = message_ts or slack_id(view, "id") or slack_id(payload, "container", "view_id") or "home"
    key = click_key(team, container, token(action, "action_ts"), user)
    name, value = words(action, "action_id"), our_id(action, "value")
    if name == MENU:
        name, value = chosen_in_menu(our_id(action, "selected_option", "value"))
    return SlackClick(visitor, name, value, key, message_ts, in_modal)


def read_submission(payload: Payload, team: str) -> Submission | None:
    """A `view_submission` payload; `None` when nobody did something."""
    user, view = slack_id(payload, "user", "id"), part(payload, "view")
    view_id = slack_id(view, "id")
    if not user or not team or not view_id:
        return None
    origin = origin_of_view(view)
    location = SlackLocation(team, origin.channel, origin.thread_ts) if origin else SlackLocation(team, "")
    home = origin is not None and origin.home
    trigger_id = token(payload, "trigger_id")
    visitor = SlackVisitor(team, user, slack_id(payload, "user", "team_id"), location, trigger_id, home=home)
    key = form_key(team, view_id, token(view, "hash"))
    return Submission(visitor, words(view, "callback_id"), origin, part(view, "state", "values"), view, key)


def read_command(payload: Payload, team: str) -> SlashCommand | None:
    """A slash command's payload; `None` when nobody did something."""
    user, channel = slack_id(payload, "user_id"), slack_id(payload, "channel_id")
    if not user or not team or not channel:
        return None
    response_url = web_address(payload, "response_url")
    visitor = SlackVisitor(
        team,
        user,
        location=SlackLocation(team, channel),
        trigger_id=token(payload, "trigger_id"),
        response_url=response_url,
    )
    verb, text = command_words(words(payload, "text"))
    return SlashCommand(visitor, verb, text, direct=channel.startswith("D"))


def command_words(text: str) -> tuple[CommandVerb, str]:
    """The verb and its text. Whatever does not begin with a verb is asked; nothing at all gets help."""
    first, _, rest = text.strip().partition(" ")
    match first.lower(), rest.strip():
        case ("", _) | ("help", "") | ("ask", ""):
            return "help", ""
        case ("approvals", ""):
            return "approvals", ""
        case ("connections", ""):
            return "connections", ""
        case ("memory", ""):
            return "memory", ""
        case ("usage", ""):
            return "usage", ""
        case ("stop", ""):
            return "stop", ""
        case ("agent", name) if len(name.split()) <= 1:
            return "agent", name
        case ("ask", asked):
            return "ask", asked
        case _:
            return "ask", text.strip()


def read_shortcut(payload: Payload, team: str) -> Shortcut | None:
    """A `message_action` payload; `None` when it names no message."""
    user, channel = slack_id(payload, "user", "id"), slack_id(payload, "channel", "id")
    message = part(payload, "message")
    ts = slack_ts(message, "ts") or slack_ts(payload, "message_ts")
    if not user or not team or not channel or not ts:
        return None
    visitor = SlackVisitor(
        team,
        user,
        slack_id(payload, "user", "team_id"),
        SlackLocation(team, channel, slack_ts(message, "thread_ts") or ts),
        token(payload, "trigger_id"),
        web_address(payload, "response_url"),
    )
    return Shortcut(visitor, {**message, "ts": ts})


def origin_of_view(view: Payload) -> Origin | None:
    """Where a modal of ours was opened; `None`: its metadata is not ours."""
    try:
        origin = load_origin(words(view, "private_metadata"))
    except (ValueError, RecursionError):
        return None
    texts = (origin.subject, origin.channel, origin.message_ts, origin.thread_ts)
    return origin if all(isinstance(text, str) for text in texts) else None


def web_address(payload: Payload, name: str) -> str:
    """A link to Slack to send an answer to; empty when it is none."""
    found = words(payload, name)
    return found if found.startswith(("https://", "http://")) and found.isprintable() and len(found) < 2_000 else ""


# --------------------------------------------------- one-time codes typed where they are no message
# Into their form, after the command, into the shortcut's form. A code is neither posted nor quoted from a message.


def code_entry(visitor: SlackVisitor, person: Person, code: str) -> CodeEntry:
    """What was typed, as `Connections.enter_code` takes it."""
    return CodeEntry(code_key(visitor), person, code)


def code_key(visitor: SlackVisitor) -> str:
    """Names one try: the trigger of the gesture, which is another one each time. The modal stays the same after a wrong
    code, and by its own key further tries would pass for the first, delivered again, and not be counted."""
    return f"{within_team(visitor.team)}code:{visitor.trigger_id or uuid4().hex}"


def without_code(text: str) -> str:
    """A message that is to be quoted; empty when all of it is a code, whoever it is for."""
    return "" if code_in(text) else text
