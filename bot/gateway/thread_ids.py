"""The threads of other agents' calls: each call has one of its own, whose id no conversation can have."""

from __future__ import annotations

from policies.model import home_of

GATEWAY_MARK = ":mcp."
"""Stands in the ids of these threads, and in no others."""


def gateway_thread_id(person_id: str, gateway_call_id: str) -> str:
    """Returns the id of a call's thread. It begins with where its caller is asked (`slack:T1`, `web`), which is where
    the call belongs when it is judged who may decide about it.

    Args:
        person_id: the account of the caller's in whose direct chat, or list on the page, they are asked.
    """
    return f"{home_of(person_id)}{GATEWAY_MARK}{gateway_call_id}"


def within_gateway(person_id: str) -> str:
    """Returns what the ids of the threads of all calls begin with whose callers are asked where this person is."""
    return gateway_thread_id(person_id, "")


def is_gateway_thread(thread_id: str) -> bool:
    """Returns whether it is a call's: ids on the page have no dot, Slack's channels no lower case, and conversations
    of Teams do not begin so."""
    return GATEWAY_MARK in thread_id


def gateway_call_of(thread_id: str) -> str:
    """Returns the id of the call that a thread belongs to; empty: it is a conversation's."""
    return thread_id.rpartition(GATEWAY_MARK)[2] if is_gateway_thread(thread_id) else ""


def delivery_key(gateway_call_id: str) -> str:
    """Returns the key of the delivery with which a call begins: the turn of its thread."""
    return f"mcp:{gateway_call_id}"
