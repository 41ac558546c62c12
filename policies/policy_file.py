"""A policy file to rules, or an error with the line and the reason.

The file's schema is described in `docs/policies.md`. Whatever the reader does not know it refuses: a rule that is
silently half understood would be worse than none.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from policies import yaml_values
from policies.commands import never_in_words
from policies.conditions import (
    DAYS,
    MINUTES_OF_A_DAY,
    AllConditions,
    AllOf,
    AnyOf,
    Between,
    Condition,
    Equals,
    Glob,
    Hours,
    Not,
    OneOf,
    Present,
    Regex,
    is_literal,
)
from policies.judging import Policy, PolicyError, Rule
from policies.model import (
    LONGEST_CLIENT,
    PLACE_ID_FORMS,
    PLATFORMS,
    SERVER_NAME,
    Allow,
    Argument,
    Ask,
    Deny,
    Match,
    Mode,
    is_group,
    normal,
    with_guids_as_platforms_write_them,
)
from policies.values import is_path
from policies.yaml_values import (
    LineError,
    Located,
    child,
    choice,
    flag,
    mapping,
    not_empty,
    only_keys,
    person,
    place,
    read_yaml,
    reference,
    text,
    texts,
    versioned_list,
    whole_number,
)

VERSION = 1
"""The only version of the file there is."""
_ALWAYS = frozenset({"name", "match", "decide"})
_DENY_KEYS = frozenset({"reason"})
_READS = "reads"


def load_policy(path: Path) -> Policy:
    """The policy in a file (UTF-8). Raises `PolicyError`, also when the file cannot be read."""
    try:
        written = path.read_bytes()
        return _parse(written.decode("utf-8-sig"), str(path), written)
    except OSError as error:
        raise PolicyError(str(path), None, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise PolicyError(str(path), line, "is not UTF-8 text") from error


def parse_policy(text: str, source: str) -> Policy:
    """The policy in a text; `source` names it in errors and verdicts. Raises `PolicyError`, and nothing else."""
    return _parse(text, source, text.encode("utf-8", "surrogatepass"))


def _parse(text: str, source: str, written: bytes) -> Policy:
    version = hashlib.sha256(written).hexdigest()[:12]
    try:
        policy = Policy(tuple(_read_rules(read_yaml(text), source, version)), source, version, text)
        policy.prepare()
    except LineError as fault:
        raise PolicyError(source, fault.line, fault.reason) from None
    except ValueError as error:  # RE2 takes each pattern, but not what becomes of it, or of several
        raise PolicyError(source, None, f"a pattern in it cannot be read: {error}") from None
    return policy


def _read_rules(root: Located | None, source: str, version: str) -> list[Rule]:
    if root is None:
        raise LineError(1, f"the policy is empty: write at least “version: {VERSION}” and “rules: []”")
    rules = versioned_list(root, "rules", VERSION, "a policy")
    read: dict[str, Rule] = {}
    for item in rules:
        rule = _read_rule(item, f"{source}:{item.line}", version)
        if rule.name in read:
            raise LineError(item.line, f"the name “{rule.name}” is taken: cards and records tell rules by it")
        read[rule.name] = rule
    return list(read.values())


def _read_rule(node: Located, source: str, version: str) -> Rule:
    entries = mapping(node, "a rule")
    name = text(child(entries, "name", node), "name")
    verdict = choice(child(entries, "decide", node), "decide", ("allow", "ask", "deny"))
    _only_keys_of(verdict, entries)
    match = read_match(child(entries, "match", node))
    if verdict == "allow":
        _refuse_doubtful_allows(match, entries["match"])
    read = _read_verdict(verdict, name, entries, match)
    return Rule(name, match, read.model_copy(update={"source": source, "version": version}))


def _refuse_doubtful_allows(match: Match, node: Located) -> None:
    """`not` fits an argument that is left out, which is right for stricter rules and seldom meant by an allow."""
    written = mapping(mapping(node, "match").get("args", Located({}, node.line, node.line)), "args")
    for argument in match.args:
        at = written[argument.key]
        if argument.condition.fits(()) and not says_something_of_absence(at):
            raise LineError(
                at.line,
                f"{argument.key}: in a rule that allows, “not” has to say whether the argument must be there: write "
                "present: true beside it (or present: false, where it may not)",
            )


def _only_keys_of(verdict: str, entries: Mapping[str, Located]) -> None:
    belongs = {"allow": frozenset({_READS}), "ask": ASK_KEYS.keys() | {_READS}, "deny": _DENY_KEYS}
    for key, entry in entries.items():
        owner = next((which for which, keys in belongs.items() if key in keys), None)
        if owner is not None and key not in belongs[verdict]:
            raise LineError(
                entry.key_line, f"{key} belongs to “decide: {owner}”, and this rule says “decide: {verdict}”"
            )
    only_keys(entries, _ALWAYS | belongs[verdict], f"a rule with “decide: {verdict}”")


def _read_verdict(verdict: str, name: str, entries: Mapping[str, Located], match: Match) -> Allow | Ask | Deny:
    match verdict:
        case "allow":
            return Allow(rule=name, reads=_reads(entries, match))
        case "ask":
            return read_ask(name, entries, match).model_copy(update={"reads": _reads(entries, match)})
        case _:
            reason = text(entries["reason"], "reason") if "reason" in entries else None
            return Deny(rule=name, reason=reason or f"The rule “{name}” does not allow this.")


def _reads(entries: Mapping[str, Located], match: Match) -> bool:
    if _READS not in entries:
        return False
    reads = flag(entries[_READS], _READS)
    if reads and not match.names_tools:
        raise LineError(
            entries[_READS].line,
            "reads says of particular tools that they change nothing: name a server, a tool or a command in match",
        )
    return reads


# ----------------------------------------------------------------- match: which calls a rule is about

_MATCH_KEYS = frozenset(
    {
        *("server", "tool", "command", "args", "reads", "annotations", "mode", "platform", "channel", "client"),
        *("agent", "requester", "time"),
    }
)
_HINTS = frozenset({"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})
_T = TypeVar("_T")


def read_match(node: Located) -> Match:
    """All the fields that are given. Raises `LineError`."""
    entries = mapping(node, "match")
    only_keys(entries, _MATCH_KEYS, "match")

    def given(key: str, read: Callable[[Located, str], _T]) -> _T | None:
        return read(entries[key], key) if key in entries else None

    server = given("server", _server)
    return Match(
        server=server,
        tool=given("tool", lambda node, what: _tool(node, what, server)),
        command=given("command", _command),
        args=given("args", read_arguments) or (),
        reads=given("reads", flag),
        annotations=given("annotations", _annotations) or {},
        mode=given("mode", lambda node, what: Mode(choice(node, what, tuple(Mode)))),
        platform=given("platform", lambda node, what: choice(node, what, PLATFORMS)),
        channel=given("channel", _channel),
        client=_clients(entries),
        agent=_agents(entries),
        requester=given("requester", _requesters) or (),
        time=given("time", read_hours),
    )


# What could never fit is a mistake: a rule that denies, and is never reached, protects nothing.
_OF_A_TOOL = re.compile(r"(?:[A-Za-z0-9._/*?-]|\[[^\]]+\])+")
"""The characters of tools' names, and the signs of a glob."""
_SEVERAL_TOOLS = "several tools take a rule each, or a pattern with *, ? and [abc]"


def _server(node: Located, what: str) -> str:
    name = text(node, what)
    if not SERVER_NAME.fullmatch(name) or "__" in name:
        raise LineError(
            node.line,
            f"{what} must be the name of one server in mcp.json, not “{name[:60]}”: patterns are for tool, and several "
            "servers take a rule each",
        )
    return name


def _tool(node: Located, what: str, server: str | None) -> str:
    pattern = text(node, what)
    if not _OF_A_TOOL.fullmatch(pattern):
        raise LineError(
            node.line,
            f"“{pattern[:60]}” fits no {what}: names have letters, digits, . _ / and - only; {_SEVERAL_TOOLS}",
        )
    if server is not None and pattern.startswith(f"{server}__"):
        raise LineError(
            node.line,
            f"{what} is the name that the server itself gives it: write “{pattern.removeprefix(f'{server}__')[:60]}”",
        )
    return pattern


def _command(node: Located, what: str) -> str:
    pattern = text(node, what)
    wrong = never_in_words(pattern)
    if wrong is not None:
        raise LineError(
            node.line,
            f"{what} compares a command's words, which never hold “{wrong[:60]}”: leave out options and the "
            "signs of shells, and write a rule for each of several commands",
        )
    return pattern


def _annotations(node: Located, what: str) -> dict[str, bool]:
    entries = not_empty(node, what)
    only_keys(entries, _HINTS, what)
    return {hint: flag(value, hint) for hint, value in entries.items()}


_OF_SLACK = re.compile(r"(?:[A-Z0-9*?]|\[[^\]]+\])+(?::(?:[A-Z0-9*?]|\[[^\]]+\])+)?")
"""A pattern over the workspace and channel of a place in Slack; `T1:general*` fits none."""


def _channel(node: Located, what: str) -> str:
    pattern = text(node, what)
    platform, colon, rest = pattern.partition(":")
    may_be_one = pattern.startswith("*") or (colon and rest and platform in PLACE_ID_FORMS)
    if is_literal(pattern):
        may_be_one = normal(pattern, PLACE_ID_FORMS) is not None
    elif platform == "slack":
        may_be_one = _OF_SLACK.fullmatch(rest) is not None
    if not may_be_one or any(character.isspace() for character in pattern):
        raise LineError(
            node.line,
            f"{what} must be a channel as platforms name it (slack:T1:C2, teams:{{tenant}}:{{conversation}}) or a "
            f"pattern over that (*:C2), not “{pattern[:60]}”",
        )
    return with_guids_as_platforms_write_them(pattern)


def _clients(entries: Mapping[str, Located]) -> tuple[str, ...]:
    """Also refuses what stands beside it, or beside its platform, that no call of such a program fits."""
    node, platform = entries.get("client"), entries.get("platform")
    is_a_program = node is not None or (platform is not None and platform.value == "mcp")
    if is_a_program and "channel" in entries:
        raise LineError(
            entries["channel"].line, "channel: programs (client, and platform: mcp) call from no channel: take it out"
        )
    if node is None:
        return ()
    if platform is not None and platform.value != "mcp":
        raise LineError(
            node.line, f"client: only calls on platform mcp have one, and this rule is about {platform.value}"
        )
    items = texts(node, "client") if isinstance(node.value, list) else (node,)
    if not items:
        raise LineError(node.line, "client is empty: take it out, or name a program")
    return tuple(map(_client, items))


def _client(node: Located) -> str:
    what = "client"
    pattern = text(node, what)
    wrong = next((c for c in pattern if unicodedata.category(c) in ("Cc", "Zl", "Zp")), None)
    if wrong is not None:
        raise LineError(node.line, f"{what}: names of programs have one line, and U+{ord(wrong):04X} is in this one")
    if pattern != pattern.strip() or (is_literal(pattern) and len(pattern) > LONGEST_CLIENT):
        raise LineError(
            node.line,
            f"“{pattern[:60]}” fits no {what}: names of programs have at most {LONGEST_CLIENT} characters, without "
            "blanks around them",
        )
    return pattern


_OF_AN_AGENT = re.compile(r"(?:[a-z0-9*?-]|\[[^\]]+\])+")
"""The characters of agents' names, and the signs of a glob."""


def _agents(entries: Mapping[str, Located]) -> tuple[str, ...]:
    """Also refuses what stands beside it that no call of an agent of ours fits."""
    node, platform = entries.get("agent"), entries.get("platform")
    if node is None:
        return ()
    if "client" in entries or (platform is not None and platform.value == "mcp"):
        raise LineError(
            node.key_line,
            "agent: calls of programs (client, and platform: mcp) are no agent's of ours: take it out",
        )
    items = texts(node, "agent") if isinstance(node.value, list) else (node,)
    if not items:
        raise LineError(node.line, "agent is empty: take it out, or name one")
    return tuple(map(_agent, items))


def _agent(node: Located) -> str:
    pattern = text(node, "agent")
    if not _OF_AN_AGENT.fullmatch(pattern):
        raise LineError(
            node.line,
            f"“{pattern[:60]}” fits no agent: names in agents.yaml have lower-case letters, digits and hyphens, and a "
            "pattern may have *, ? and [abc]",
        )
    return pattern


def _requesters(node: Located, what: str) -> tuple[str, ...]:
    if not isinstance(node.value, list):
        return (reference(node, what),)
    items = texts(node, what)
    if not items:
        raise LineError(node.line, f"{what} is empty: take it out, or name someone")
    return tuple(reference(item, f"each {what}") for item in items)


# ---------------------------------------------------------------------- args: conditions on arguments

_OF_ONE = frozenset({"equals", "glob", "regex", "in", "min", "max", "present", "not"})
_OF_AN_ITEM = _OF_ONE - {"present"}
_OF_SEVERAL = frozenset({"any", "all", "present", "not"})
_LIKE_A_PATH = re.compile(r"[.\[\]]")
_LIKE_A_CONDITION = re.compile(r"[:=<>\s]")
_LINE_BREAKS = frozenset("\u2028\u2029")


def read_arguments(node: Located, what: str) -> tuple[Argument, ...]:
    """All that `args` says. Raises `LineError`."""
    return tuple(_argument(key, value) for key, value in not_empty(node, what).items())


def says_something_of_absence(node: Located) -> bool:
    """Whether a condition is explicit about arguments that are left out."""
    return isinstance(node.value, dict) and "present" in node.value


def _argument(key: str, node: Located) -> Argument:
    if not is_path(key) and _LIKE_A_PATH.search(key):
        raise LineError(
            node.key_line,
            f"args: “{key[:60]}” looks like a path, and paths begin with $: write “$.{key[:60]}”, or “$['{key[:60]}']” "
            "for an argument of that very name",
        )
    if node.value is None and not is_path(key) and _LIKE_A_CONDITION.search(key):
        raise LineError(
            node.key_line,
            f"args: “{key[:60]}” is read as the name of an argument: write a colon and a space between the name and "
            "what it is compared with (“amount: 5”), or “equals: null” for an argument of that very name",
        )
    _refuse_control_characters(key, node)
    try:
        argument = Argument.of(key, Present(wanted=True))
    except ValueError as error:
        raise LineError(node.key_line, f"args: “{key[:60]}”: {error}") from None
    several = argument.path is not None and argument.path.several
    condition = _of_several(key, node) if several else _of_one(key, node)
    return Argument(key, condition, argument.path)


def _refuse_control_characters(key: str, node: Located) -> None:
    """Those in what an argument is compared with are there by mistake, and then nothing ever fits: YAML makes one of
    `\\b` in double quotes, and of the end of a block (`|`, `>`) a line break."""
    match node.value:
        case str() as written:
            found = next((c for c in written if unicodedata.category(c) == "Cc" or c in _LINE_BREAKS), None)
            if found is not None:
                raise LineError(
                    node.line,
                    f"{key}: U+{ord(found):04X} is among what it is compared with: write |- or >- for a block without "
                    "a line break at its end, keep a pattern on one line, and put backslashes in single quotes "
                    "('\\b'), since they are YAML's own in double ones; regex: '\\n' fits a line break itself",
                )
        case list() as items:
            for item in items:
                _refuse_control_characters(key, item)
        case dict() as entries:
            for item in entries.values():
                _refuse_control_characters(key, item)


def _of_one(key: str, node: Located, keys: frozenset[str] = _OF_ONE) -> Condition:
    if isinstance(node.value, str):
        return Glob(node.value)
    if not isinstance(node.value, dict):
        return Equals(node.plain())
    entries = not_empty(node, f"the condition on {key}")
    for word in ("any", "all"):
        if word in entries:
            where = entries[word].key_line
            raise LineError(where, f"{word} is for paths that yield several values, such as “$.{key}[*]”")
    unknown = next((entry for name, entry in entries.items() if name not in keys), None)
    if unknown is not None and not any(name in keys for name in entries):
        known = ", ".join(sorted(keys))
        raise LineError(
            unknown.key_line, f"{key} must be {known}; to compare it with this very mapping write equals: {{…}}"
        )
    only_keys(entries, keys, f"the condition on {key}")
    return _together(key, entries, lambda inner: _of_one(key, inner, keys))


def _of_several(key: str, node: Located) -> Condition:
    if not isinstance(node.value, dict) or not any(name in _OF_SEVERAL for name in node.value):
        raise LineError(node.line, f"{key} can yield several values: write “any: …” or “all: …”")
    only_keys(node.value, _OF_SEVERAL, f"the condition on {key}")
    return _together(key, node.value, lambda inner: _of_several(key, inner))


def _together(key: str, entries: Mapping[str, Located], negated: Callable[[Located], Condition]) -> Condition:
    read = [_READERS[name](key, entry) for name, entry in entries.items() if name in _READERS]
    if "min" in entries or "max" in entries:
        read.append(_between(entries))
    if "not" in entries:
        read.append(Not(negated(entries["not"])))
    return read[0] if len(read) == 1 else AllConditions(tuple(read))


def _item(key: str, node: Located) -> Condition:
    return _of_one(key, node, _OF_AN_ITEM)


def _regex(key: str, node: Located) -> Condition:
    pattern = _pattern(key, "regex", node)
    try:
        condition = Regex(pattern)
        condition.fits(("",))  # prepared now, so that a mistake in it is found now
    except ValueError as error:
        raise LineError(node.line, f"{key}: not a regular expression that RE2 knows: {error}") from None
    return condition


def _pattern(key: str, what: str, node: Located) -> str:
    if not isinstance(node.value, str):
        raise LineError(node.line, f"{key}: {what} must be text (put it in quotes)")
    return node.value


def _one_of(key: str, node: Located) -> Condition:
    if not isinstance(node.value, list) or not node.value:
        raise LineError(node.line, f"{key}: in must be a list of values, with at least one")
    return OneOf(tuple(item.plain() for item in node.value))


def _between(entries: Mapping[str, Located]) -> Between:
    low, high = (_number(entries[end], end) if end in entries else None for end in ("min", "max"))
    if low is not None and high is not None and low > high:
        raise LineError(entries["max"].line, f"max ({high}) is below min ({low}): nothing could ever fit")
    return Between(low, high)


def _number(node: Located, what: str) -> Any:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise LineError(node.line, f"{what} must be a number")
    return node.value


_READERS: Mapping[str, Callable[[str, Located], Condition]] = {
    "equals": lambda _, node: Equals(node.plain()),
    "glob": lambda key, node: Glob(_pattern(key, "glob", node)),
    "regex": _regex,
    "in": _one_of,
    "present": lambda key, node: Present(flag(node, f"present of {key}")),
    "any": lambda key, node: AnyOf(_item(key, node)),
    "all": lambda key, node: AllOf(_item(key, node)),
}


# -------------------------------------------- decide: ask, and combinations that nobody could satisfy

_OPEN_ENDED = frozenset({"channel", "any"})
_KEYWORDS = _OPEN_ENDED | {"requester"}


def read_ask(name: str, entries: Mapping[str, Located], match: Match) -> Ask:
    """The verdict of an asking rule. Raises `LineError`, also when no set of people could satisfy it."""
    given: dict[str, Any] = {
        field: read(entries[key], key) for key, (field, read) in ASK_KEYS.items() if key in entries
    }
    ask = Ask(rule=name, **given)
    _refuse_half_an_escalation(entries)
    _refuse_what_comes_too_late(ask, entries)
    _refuse_too_few_people(ask, entries, match)
    _refuse_standing_permission_for_several(ask, entries)
    return ask


def _approvers(node: Located, _: str) -> tuple[str, ...]:
    items = texts(node, "approvers")
    if not items:
        raise LineError(node.line, "approvers is empty: nobody could ever decide")
    return tuple(_approver(item) for item in items)


def _approver(item: Located) -> str:
    if isinstance(item.value, str) and item.value in _KEYWORDS:
        return item.value
    return reference(item, "an approver, unless it is requester, channel or any,")


def _at_least_one(node: Located, what: str) -> int:
    number = whole_number(node, what)
    if number < 1:
        raise LineError(node.line, f"{what} must be at least 1")
    return number


def _duration(node: Located, what: str) -> float:
    if isinstance(node.value, int | float) and not isinstance(node.value, bool):
        raise LineError(node.line, f"{what} needs a unit, such as 30s, 15m, 24h or 7d")
    try:
        return yaml_values.seconds(text(node, what))
    except ValueError as error:
        raise LineError(node.line, f"{what}: {error}") from None


def _people(node: Located, _: str) -> tuple[str, ...]:
    items = texts(node, "escalateTo")
    if not items:
        raise LineError(node.line, "escalateTo is empty: name someone")
    return tuple(person(item, "someone to escalate to") for item in items)


ASK_KEYS: Mapping[str, tuple[str, Callable[[Located, str], Any]]] = {
    "approvers": ("approvers", _approvers),
    "selfApproval": ("self_approval", lambda node, what: choice(node, what, ("confirm", "fourEyes"))),
    "quorum": ("quorum", _at_least_one),
    "rejections": ("rejections", _at_least_one),
    "expiresIn": ("expires_in", lambda node, what: None if node.value == "never" else _duration(node, what)),
    "remindAfter": ("remind_after", _duration),
    "escalateAfter": ("escalate_after", _duration),
    "escalateTo": ("escalate_to", _people),
    "reasonRequired": ("reason_required", flag),
    "editable": ("editable", lambda node, what: tuple(text(item, what) for item in texts(node, what))),
    "routeTo": ("route_to", lambda node, what: tuple(place(item, "a place to route to") for item in texts(node, what))),
    "alwaysAllow": ("always_allow", flag),
}
"""Key of an asking rule → the field of `Ask` and what reads it."""


def _refuse_half_an_escalation(entries: Mapping[str, Located]) -> None:
    for one, other in (("escalateAfter", "escalateTo"), ("escalateTo", "escalateAfter")):
        if one in entries and other not in entries:
            raise LineError(entries[one].key_line, f"{one} needs {other} beside it: when, and to whom")


def _refuse_what_comes_too_late(ask: Ask, entries: Mapping[str, Located]) -> None:
    for key, after in (("remindAfter", ask.remind_after), ("escalateAfter", ask.escalate_after)):
        if after is not None and ask.expires_in is not None and after >= ask.expires_in:
            expiry = "" if "expiresIn" in entries else " (the default)"
            raise LineError(
                entries[key].line,
                f"{key} ({yaml_values.in_words(after)}) comes too late: it expires after "
                f"{yaml_values.in_words(ask.expires_in)}{expiry}",
            )


def _refuse_standing_permission_for_several(ask: Ask, entries: Mapping[str, Located]) -> None:
    if ask.always_allow and (ask.self_approval == "fourEyes" or ask.quorum > 1):
        raise LineError(
            entries["alwaysAllow"].line,
            "alwaysAllow lets one person decide for themselves, which fourEyes and a quorum forbid: take one out",
        )


def _refuse_too_few_people(ask: Ask, entries: Mapping[str, Located], match: Match) -> None:
    most = _most_voters(ask, match)
    if most is None:
        return
    if most == 0:
        raise LineError(
            entries["selfApproval"].line,
            "with fourEyes the requester may not decide, and no one else is among the approvers: add someone",
        )
    for key, needed in (("quorum", ask.quorum), ("rejections", ask.rejections)):
        if needed > most:
            raise LineError(
                entries[key].line,
                f"{key} is {needed}, but at most {most} of the named approvers can ever decide: name more people "
                "or lower it",
            )


def _most_voters(ask: Ask, match: Match) -> int | None:
    """How many people could decide at most, after an escalation; `None` when groups or channels leave it open."""
    named = {*ask.approvers, *ask.escalate_to}
    if named & _OPEN_ENDED or any(map(is_group, named)):
        return None
    four_eyes = ask.self_approval == "fourEyes"
    if len(match.requester) == 1 and not is_group(match.requester[0]):
        # The requester is known by name: they and the word "requester" are one person, who counts once or not at all.
        people = {match.requester[0] if who == "requester" else who for who in named}
        return len(people - set(match.requester) if four_eyes else people)
    return len(named - {"requester"} if four_eyes else named)


# ----------------------------------------------------------------------------------------------- time
# `{days: [mon-fri, sun], from: "08:00", until: "18:00", zone: Europe/Berlin}`

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_TIME_KEYS = frozenset({"days", "from", "until", "zone"})


def read_hours(node: Located, what: str) -> Hours:
    """Reads times of the week. Raises `LineError`."""
    entries = not_empty(node, what)
    only_keys(entries, _TIME_KEYS, what)
    zone = _zone(child(entries, "zone", node))
    if len(entries) == 1:
        raise LineError(node.line, f"{what} names a zone only: say days, from or until")
    start = _minute(entries["from"], "from") if "from" in entries else 0
    end = _minute(entries["until"], "until") if "until" in entries else MINUTES_OF_A_DAY
    if start == end:
        raise LineError(
            entries["until" if "until" in entries else "from"].line,
            f"{what} begins and ends at the same minute: leave from and until out for the whole day",
        )
    days = _days(entries["days"]) if "days" in entries else frozenset(range(len(DAYS)))
    return Hours(zone, days, start, end)


def _zone(node: Located) -> str:
    name = text(node, "zone")
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise LineError(node.line, f"there is no time zone “{name[:60]}”: such as Europe/Berlin or UTC") from None


def _minute(node: Located, what: str) -> int:
    written = text(node, what)
    if written == "24:00" and what == "until":
        return MINUTES_OF_A_DAY
    clock = _CLOCK.fullmatch(written)
    if clock is None:
        raise LineError(node.line, f"{what} must be a time such as “08:00”, not “{written[:60]}”")
    return int(clock[1]) * 60 + int(clock[2])


def _days(node: Located) -> frozenset[int]:
    items = texts(node, "days")
    if not items:
        raise LineError(node.line, "days is empty: take it out, or name some")
    return frozenset(day for item in items for day in _stretch(item))


def _stretch(item: Located) -> tuple[int, ...]:
    first, dash, last = str(item.value).partition("-")
    if first not in DAYS or (last if dash else first) not in DAYS:
        raise LineError(
            item.line, f"“{str(item.value)[:60]}” is no day: write {', '.join(DAYS)}, or a stretch such as mon-fri"
        )
    begin, end = DAYS.index(first), DAYS.index(last if dash else first)
    return tuple(day % len(DAYS) for day in range(begin, end + 1 if begin <= end else end + 1 + len(DAYS)))
