"""Why a call is allowed, asked about or denied: in one sentence, made from the rule and from what it matched on.

It is made when the call is judged and kept with it, since the rules may be others when somebody asks. It holds what the
rules say and nothing of the call's arguments, so that nothing in it is a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from babel.lists import format_list
from pydantic import BaseModel, ConfigDict

from policies.conditions import DAYS
from policies.model import Mode
from translations import gettext as _
from translations import language, ngettext
from translations import marked as N_  # noqa: N812 - as gettext's readers look for it

MOST_CONDITIONS = 6
"""Conditions of a rule that a sentence names; further ones are counted. Our own choice."""
LONGEST_CONDITION = 80
"""Characters of what a rule wants, as far as a sentence has it. Our own choice."""
LONGEST_NAME = 150
"""Characters of a rule's name, likewise."""
_CUT = "…"


class MetCondition(BaseModel):
    """One field of a rule's match that the call fits, beside its server and its tool."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    field: str
    """As it is written in the policy: `args.count`, `annotations.destructiveHint`."""
    wanted: str
    """What the rule wants of it, in its own words."""


class Reasons(BaseModel):
    """Why a call was judged as it was. Crosses a restart as plain JSON; fields that it does not know are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    decided: Literal["allow", "ask", "deny"]
    server: str
    tool: str
    rule: str = ""
    """Name of the rule that fits; empty: none does."""
    of_server: str = ""
    """The server that the rule names; empty: any."""
    of_tool: str = ""
    """The pattern of tools that the rule names; empty: any."""
    conditions: tuple[MetCondition, ...] = ()
    more: int = 0
    """Conditions beyond `MOST_CONDITIONS`."""
    raised_by: Literal["", "server", "agent"] = ""
    """Who has it asked about although the rule allows it."""
    agent: str = ""
    """Name of the agent that has it asked about."""
    mode: str = ""
    """The mode that denies it, whatever the rules say; empty: none does."""
    is_unknown: bool = False
    """Whether it is denied since it could not be found out whether the rule fits."""
    is_standing: bool = False
    """Whether it is allowed by a standing approval of the requester's."""


def conditions_of(wanted: Mapping[str, str]) -> tuple[tuple[MetCondition, ...], int]:
    """Returns the conditions of a rule, and how many more there are.

    Args:
        wanted: field of its match → what it wants of it, in the order of its checks.
    """
    others = [(field, text) for field, text in wanted.items() if field not in ("server", "tool")]
    named = tuple(MetCondition(field=_short(field), wanted=_short(text)) for field, text in others[:MOST_CONDITIONS])
    return named, len(others) - len(named)


def why(reasons: Reasons) -> str:
    """Returns the sentence, in the language of whoever reads it. Pure; the names in it are the operator's."""
    rule = _short(reasons.rule, LONGEST_NAME)
    if reasons.is_standing:
        return _("Allowed by a standing approval of the requester.")
    if reasons.is_unknown:
        return _("Denied because it could not be found out whether rule “{rule}” covers it.").format(rule=rule)
    if reasons.mode:
        return _of_mode(reasons.mode)
    if reasons.raised_by == "server":
        told = _("Asked because {server} requires approval for {tool}, whatever the rules allow.")
        return told.format(server=reasons.server, tool=reasons.tool)
    if reasons.raised_by == "agent":
        told = _("Asked because the {agent} agent requires approval for {tool}, whatever the rules allow.")
        return told.format(agent=reasons.agent, tool=reasons.tool)
    if not rule:
        return _("Asked because no rule covers {what}.").format(what=_tools(reasons.tool, reasons.server))
    return _of_rule(reasons, rule)


def _of_mode(mode: str) -> str:
    if mode == Mode.READ_ONLY:
        return _("Denied because nothing may be changed in readOnly mode.")
    return _("Denied because in safeWrite mode a rule must name the tool, and the requester’s words must ask for it.")


def _of_rule(reasons: Reasons, rule: str) -> str:
    what, conditions = _tools(reasons.of_tool, reasons.of_server), list(_conditions(reasons))
    if not conditions:
        plain = {
            "allow": _("Allowed because rule “{rule}” covers {what}."),
            "ask": _("Asked because rule “{rule}” covers {what}."),
            "deny": _("Denied because rule “{rule}” covers {what}."),
        }
        return plain[reasons.decided].format(rule=rule, what=what)
    told = {
        "allow": _("Allowed because {conditions}, and rule “{rule}” covers {what}."),
        "ask": _("Asked because {conditions}, and rule “{rule}” covers {what}."),
        "deny": _("Denied because {conditions}, and rule “{rule}” covers {what}."),
    }
    listed = format_list(conditions, locale=language()) if len(conditions) > 1 else conditions[0]
    return told[reasons.decided].format(rule=rule, what=what, conditions=listed)


def _tools(tool: str, server: str) -> str:
    if tool and server:
        return _("{tool} on {server}").format(tool=_short(tool), server=server)
    if tool:
        return _("{tool} on every server").format(tool=_short(tool))
    return _("every tool on {server}").format(server=server) if server else _("every tool")


def _conditions(reasons: Reasons) -> Iterator[str]:
    """Each as a clause that may follow “because”."""
    for each in reasons.conditions:
        kind, _dot, name = each.field.partition(".")
        yield _CLAUSES[kind](name, each.wanted) if kind in _CLAUSES else f"{each.field}: {each.wanted}"
    if reasons.more:
        more = ngettext("{count} more condition holds", "{count} more conditions hold", reasons.more)
        yield more.format(count=reasons.more)


def _of_hint(name: str, wanted: str) -> str:
    said = {
        ("readOnlyHint", True): _("its server says that it only reads"),
        ("readOnlyHint", False): _("its server does not say that it only reads"),
        ("destructiveHint", True): _("it may delete data"),
        ("destructiveHint", False): _("its server says that it deletes nothing"),
        ("idempotentHint", True): _("its server says that repeating it changes nothing"),
        ("idempotentHint", False): _("its server does not say that repeating it changes nothing"),
        ("openWorldHint", True): _("it may reach people or services outside"),
        ("openWorldHint", False): _("its server says that it reaches nothing outside"),
    }
    return said.get((name, wanted == "true"), f"{name}: {wanted}")


def _of_reading(_name: str, wanted: str) -> str:
    return _("it is known to only read") if wanted == "true" else _("it is not known to only read")


def _is(wanted: str) -> str:
    """What a rule wants of a value, as `policies.conditions` writes it, in the reader's language; several
    conditions on one value stay as they are written."""
    for form, sentence in _FORMS:
        if found := form.fullmatch(wanted):
            parts = {name: _is(part) if name == "wanted" else part for name, part in found.groupdict().items()}
            return _(sentence).format(**parts)
    return wanted


def _during(wanted: str) -> str:
    found = _HOURS.fullmatch(wanted)
    if found is None:  # it was cut
        return wanted
    from babel.dates import get_day_names  # noqa: PLC0415 - it takes memory that most policies do not need

    names = get_day_names("abbreviated", locale=language())
    days = ", ".join(names[DAYS.index(day)] for day in _DAY.findall(found["days"]))
    told = _("{start} to {end} ({zone})").format(start=found["start"], end=found["end"], zone=found["zone"])
    return f"{days} {told}".strip()


def _either(wanted: str) -> str:
    return format_list(wanted.split(" or "), style="or", locale=language())


_FORMS: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(form, re.DOTALL), sentence)
    for form, sentence in (
        (r"present", N_("present")),
        (r"left out", N_("left out")),
        (r"at least (?P<value>\S+)", N_("at least {value}")),
        (r"at most (?P<value>\S+)", N_("at most {value}")),
        (r"(?P<low>[\d.+-]+) to (?P<high>\S+)", N_("{low} to {high}")),
        (r"one of (?P<value>.+)", N_("one of {value}")),
        (r"exactly a list\sof (?P<count>\d+)", N_("exactly a list of {count}")),
        (r"exactly a mapping\sof (?P<count>\d+)", N_("exactly a mapping of {count}")),
        (r"exactly (?P<value>.+)", N_("exactly {value}")),
        (r"text like (?P<value>.+)", N_("text like {value}")),
        (r"not (?P<wanted>.+)", N_("not {wanted}")),
        (r"any (?P<wanted>.+)", N_("any {wanted}")),
        (r"all (?P<wanted>.+)", N_("all {wanted}")),
    )
)
"""How conditions are written, and the sentence that says the same."""
_DAY = re.compile("|".join(DAYS))
_HOURS = re.compile(r"(?P<days>[a-z, ]*)(?P<start>\d\d:\d\d) to (?P<end>\d\d:\d\d) \((?P<zone>.+)\)")

_CLAUSES: Mapping[str, Callable[[str, str], str]] = {
    "annotations": _of_hint,
    "reads": _of_reading,
    "args": lambda name, wanted: _("“{argument}” is {wanted}").format(argument=name, wanted=_is(wanted)),
    "command": lambda _name, wanted: _("its command is like “{pattern}”").format(pattern=wanted),
    "mode": lambda _name, wanted: _("the mode is {mode}").format(mode=wanted),
    "platform": lambda _name, wanted: _("it comes from {platform}").format(platform=wanted),
    "channel": lambda _name, wanted: _("its channel is like {pattern}").format(pattern=wanted),
    "client": lambda _name, wanted: _("its program is like {pattern}").format(pattern=_either(wanted)),
    "agent": lambda _name, wanted: _("its agent is like {pattern}").format(pattern=_either(wanted)),
    # Whom a rule names is for those who may read the policy.
    "requester": lambda _name, _wanted: _("the rule names its requester"),
    "time": lambda _name, wanted: _("the time is {time}").format(time=_during(wanted)),
}
"""Field of a match → how a sentence says that a call fits it."""


def _short(text: str, longest: int = LONGEST_CONDITION) -> str:
    return text if len(text) <= longest else text[: longest - 1] + _CUT
