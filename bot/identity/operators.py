"""Operators (`OPERATORS`): people and groups who may see what belongs to others."""

from __future__ import annotations

from collections.abc import Callable, Collection

from bot.approvals.directory import PeopleDirectory
from bot.domain import Person
from bot.identity.principal import Principal
from policies.judging import Policy
from policies.model import is_group


def named_by(references: Collection[str], policy: Callable[[], Policy]) -> Callable[[str], bool]:
    """Returns what says whether a reference is among these, or a rule that holds now names it: whoever makes themselves
    an account is none of those."""
    others = frozenset(references)
    return lambda reference: reference in others or reference in policy().people_and_groups


class Operators:
    """Says who is one.

    Args:
        references: person ids and group references.
    """

    def __init__(self, references: Collection[str], directory: PeopleDirectory) -> None:
        self._people = frozenset(each for each in references if not is_group(each))
        self._groups = frozenset(each for each in references if is_group(each))
        self._directory = directory

    async def includes(self, who: Principal | Person) -> bool:
        """Whether they are one with any of their accounts. What cannot be found out means that they are not."""
        if not self._people and not self._groups:
            return False
        person_id = who.person.person_id if isinstance(who, Principal) else who.person_id
        accounts = who.person_ids if isinstance(who, Principal) else frozenset({person_id})
        if self._people & accounts:
            return True
        if self._people and self._people & await self._directory.accounts_of(person_id):
            return True
        return True in (await self._directory.groups_of(person_id, self._groups)).values()
