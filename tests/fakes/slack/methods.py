"""Which methods the fake has."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.slack import methods_apps as apps
from tests.fakes.slack import methods_chat as chat
from tests.fakes.slack import methods_conversations as conversations
from tests.fakes.slack import methods_streams as streams
from tests.fakes.slack import methods_views as views
from tests.fakes.slack.calls import ApiCall, Caller, caller_of
from tests.fakes.slack.refused import Refused
from tests.fakes.slack.world import Json, World

BotMethod = Callable[[World, Caller, Json], Json]
AppMethod = Callable[[World, ApiCall], Json]

OF_BOTS: dict[str, BotMethod] = {
    "auth.test": apps.auth_test,
    "auth.revoke": apps.auth_revoke,
    "bots.info": apps.bot_info,
    "usergroups.users.list": conversations.user_group_members,
    "users.info": conversations.user_info,
    "files.info": conversations.file_info,
    "chat.postMessage": chat.post_message,
    "chat.update": chat.update,
    "chat.delete": chat.delete,
    "chat.postEphemeral": chat.post_ephemeral,
    "chat.getPermalink": chat.get_permalink,
    "chat.startStream": streams.start_stream,
    "chat.appendStream": streams.append_stream,
    "chat.stopStream": streams.stop_stream,
    "conversations.history": conversations.history,
    "conversations.replies": conversations.replies,
    "conversations.info": conversations.info,
    "conversations.members": conversations.members,
    "conversations.open": conversations.open_direct,
    "views.open": views.open_modal,
    "views.push": views.push_modal,
    "views.update": views.update_modal,
    "views.publish": views.publish_home,
    "agents.sessions.setStatus": apps.set_session,
    "assistant.threads.setStatus": apps.set_assistant("status", "status"),
    "assistant.threads.setTitle": apps.set_assistant("title", "title"),
    "assistant.threads.setSuggestedPrompts": apps.set_assistant("prompts", "prompts"),
}
OF_APPS: dict[str, AppMethod] = {
    "oauth.v2.access": apps.oauth_access,
    "apps.connections.open": apps.connections_open,
}


def answer(world: World, call: ApiCall) -> Json:
    """Do what is asked, with the caller's rights. Raises `Refused`."""
    if call.method in OF_APPS:
        return OF_APPS[call.method](world, call)
    if call.method not in OF_BOTS:
        raise Refused("unknown_method")
    return OF_BOTS[call.method](world, caller_of(world, call.token), call.arguments)
