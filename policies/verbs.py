"""What a name says that it does, word by word."""

from __future__ import annotations

import re
from itertools import pairwise

# ------------------------------------------------------------------------------------- verbs in names
READ_VERBS = frozenset({"get", "list", "show", "search", "read", "status", "export"})
"""Words that say that nothing is changed. Believed only of the names of trusted servers' tools."""
_NAMED = "remove delete set add grant revoke update create disable enable"
_WRITING = """
    move copy rename send post run exec execute import restore approve reject install uninstall start stop restart
    new make mkdir touch rm rmdir mv cp del ln dd tee chmod chown kill eval source sudo
    reset clear purge drop truncate wipe erase destroy terminate cancel edit modify change write append insert replace
    patch put apply deploy publish unpublish archive unarchive upload invite assign unassign lock unlock ensure upgrade
    migrate invoke trigger register unregister activate deactivate attach detach transfer share unshare submit close
    reopen rotate regenerate revert rollback provision recycle retract promote demote
    commit push pull merge rebase checkout switch scale drain cordon uncordon taint annotate rollout expose login logout
    connect disconnect sync flush mount umount unmount shutdown reboot halt poweroff suspend resume pause unpause renew
    ban unban block unblock mute unmute unlink bind unbind join leave accept decline abort retry reply forward save
"""
_DESTROYING = """
    remove delete rm rmdir del dd drop truncate wipe erase destroy purge clear reset revoke kill terminate uninstall
"""
WRITE_VERBS = frozenset(_NAMED.split()) | frozenset(_WRITING.split())
"""Words of a command any of which makes it a write, unless a rule says otherwise."""
DESTROYING = frozenset(_DESTROYING.split())
"""Words after which something is gone."""
UNMISTAKABLE = frozenset(_NAMED.split()) | DESTROYING | {"write", "replace"}
"""Words that write wherever they stand: in an option (`--delete`), or beside a word that reads (`read_write_file`)."""
_JOINING = frozenset({"and", "or", "then"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case: `get_or_createUser` → get, or, create, user."""
    return tuple(word.lower() for word in _WORD.findall(name))


def says_that_it_reads(name: str) -> bool:
    """Whether the first word is one that reads and none is joined to it that writes (`get_or_invite`), nor any in it
    that surely does."""
    words = words_of(name)
    joined = {after for word, after in pairwise(words) if word in _JOINING}
    return bool(words) and words[0] in READ_VERBS and not joined & WRITE_VERBS and UNMISTAKABLE.isdisjoint(words)
