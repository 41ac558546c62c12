"""What is known of people, and how much they may use."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from policies.approvers import Grant


class Directory(Protocol):
    """What is known of people beyond their ids. Nothing here raises: what could not be found out is `None`."""

    async def groups_of(self, person_id: str, groups: Collection[str]) -> Mapping[str, bool | None]:
        """Whether somebody is in each of these groups (`slack-group:T1:S1`, `entra-group:…`)."""
        ...

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        """Whether somebody is in a channel (`Place.channel`)."""
        ...


class Grants(Protocol):
    """What people always allow themselves, for a while."""

    async def grants_of(self, person_id: str) -> Sequence[Grant]:
        """The grants that somebody gave themselves and has not revoked; some may be over."""
        ...


class Budget(Protocol):
    """How much of the language model a person may use."""

    async def refusal(self, person_id: str) -> str | None:
        """The sentence that tells somebody that it is used up; `None`: it is not."""
        ...

    async def spent(self, person_id: str, tokens: int) -> None:
        """So many tokens went into an answer for this person."""
        ...
