"""Translates the rules of kingfisher-secret-scanner for RE2: `python -m policies.kingfisher_rules` prints them as JSON.

Runs in a process of its own, since it loads the scanner, which takes 4 s and 62 MB (docs/decisions/0019). What a rule
needs and this data cannot say is left out, and listed under `left_out`.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from policies.patterns import compiled

_NOT_TAKEN = {
    "curl-auth-header": "its group is a header's whole value; our own pattern masks the token alone",
    "curl-auth-user": "its group is the name and the password; our own pattern masks the password alone",
    "generic-credential-uri": "our own pattern knows every scheme",
    "hashicorp-tf-password": "its group includes the quotes; our own fields mask what is between them",
    "kubernetes-secret-yaml": "its group is a whole line",
    "mongodb-connection-string": "its group is a whole address; our own pattern masks the password alone",
    "nuget-config-password": "its group is a whole element",
    "private-key": "any text may stand between its markers; our own pattern looks at what does",
    "sidekiq-sensitive-url": "its group is a whole address",
    "bitbucketcredentials": "its group is a whole address",
    "codecatalystcredentials": "its group is a whole address",
    "codecommitcredentials": "its group is a whole address",
    "gcp-service-account": "matches the word, not the key, which stands in a private key's block",
    "gcp-application-default-credentials": "its group is a whole document; our own fields mask what is secret in it",
}
"""Rules that are not taken, and why."""

_END = r"""(?:\\?['"\x60]|[\s;]|\\[nr]|$)"""
_ANY_END = r"(?:[^0-9A-Za-z_-]|$)"
"""The rules look for secrets in files, where a quote or a space ends them; in prose a comma or a bracket does too."""
_TOO_OFTEN = re.compile(r"\{(\d+),\d{4,}\}")
"""A repetition that RE2 does not count to (its limit: 1,000)."""
_LEADING_WORDS = re.compile(r"^(?:betterleaks\.|veles\.secrets/)|\.\d+$")
_IDS = ("-client-id", "-access-id", "-api-id", "-public-key", "-pub-key", "-public-api-token", "-pub-api-key")
_SHORTEST_NEEDLE = 2
_SHORTEST_MARK = 3
"""Characters that a token has to begin with, or hold, to be a secret by its own shape."""


def main() -> None:
    """Prints the rules."""
    from kingfisher_sdk import Rules  # noqa: PLC0415  # only here, and lazily

    rules = Rules(confidence="low", cache=False)
    details = [rules.detail(entry["id"]) for entry in rules.metadata()]
    taken, left_out = [], {}
    for detail in details:
        name = _LEADING_WORDS.sub("", detail["id"])
        is_id = not detail["visible"] or name.endswith(_IDS)
        why = _NOT_TAKEN.get(name) or ("an id, not a secret" if is_id else None)
        rule = None if why else _rule(name, detail)
        if rule is None:
            left_out[detail["id"]] = why or "no text that every match holds"
        else:
            taken.append(rule)
    common_regexes, common_words = _common(details)
    written = {
        "licences": "kingfisher: Apache-2.0, © MongoDB; betterleaks: MIT, © Zachary Rice; veles: Apache-2.0, © Google",
        "harmless": common_regexes,
        "harmless_words": common_words,
        "rules": taken,
        "left_out": left_out,
    }
    json.dump(written, sys.stdout)


def _rule(name: str, detail: Mapping[str, Any]) -> dict[str, Any] | None:
    regex = _TOO_OFTEN.sub(r"{\1,}", detail["detection_regex"].removeprefix("(?x)").replace(_END, _ANY_END))
    compiled(regex)
    tree = _tree(regex)
    needles = _needles(tree)
    if needles is None or min(map(len, needles)) < _SHORTEST_NEEDLE:
        return None
    group = detail["betterleaks_secret_group"] or 0
    marks = _needles(_group(tree, group) if group or _groups(tree) else tree)
    entropy, harmless = _filters(detail["betterleaks_filter"])
    return {
        "kind": _kind(name),
        "regex": regex,
        "group": group,
        "needles": sorted(needles),
        "entropy": entropy,
        "harmless": harmless,
        "certain": marks is not None and min(map(len, marks)) >= _SHORTEST_MARK,
    }


def _kind(name: str) -> str:
    words = re.sub(r"[^a-z0-9]+", " ", name.removeprefix("secrets/").replace("1password", "onepassword")).strip()
    return words[:40].strip()


def _filters(node: Any) -> tuple[float, list[str]]:
    """The least bits a character that a rule wants, and what its secrets may not look like. The rest of a filter
    (word lists of a tokeniser, other files) is not taken."""
    entropy, harmless = 0.0, []
    for part in _alternatives(node):
        if part.get("kind") == "binary" and part["operator"] in ("<", "<="):
            if _called(part["left"]) == "entropy":
                entropy = max(entropy, float(_value(part["right"])))
        elif _called(part) == "matchesAny" and _of_secret(part) and not _is_common(part):
            harmless += [each["value"] for each in part["arguments"][1]["nodes"]]
    return entropy, [each for each in harmless if _is_regex(each)]


def _common(details: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    regexes: list[str] = []
    words: list[str] = []
    for part in _alternatives(details[0]["betterleaks_filter"]):
        nodes = part["arguments"][1]["nodes"] if part.get("arguments") and len(part["arguments"]) > 1 else []
        (regexes if _called(part) == "matchesAny" else words).extend(each["value"] for each in nodes)
    return [each for each in regexes if _is_regex(each)], words


def _alternatives(node: Any) -> Iterator[Any]:
    if isinstance(node, Mapping):
        if node.get("kind") == "binary" and node["operator"] == "||":
            yield from _alternatives(node["left"])
            yield from _alternatives(node["right"])
        else:
            yield node


def _called(node: Any) -> str:
    return str(node["callee"].get("value", "")) if isinstance(node, Mapping) and node.get("kind") == "call" else ""


def _of_secret(node: Any) -> bool:
    return bool(node["arguments"][0].get("property", {}).get("value") == "secret")


def _is_common(node: Any) -> bool:
    return any(each.get("value") == "(?i)^true|false|null$" for each in node["arguments"][1]["nodes"])


def _value(node: Any) -> Any:
    return node["value"] if "value" in node else node["node"]["value"]


def _is_regex(text: str) -> bool:
    try:
        compiled(text)
    except ValueError:
        return False
    return True


def _tree(regex: str) -> Any:
    """A regular expression of RE2, read by Python's parser, which wants flags to have an end."""
    written = re.sub(r"\\z", r"\\Z", regex).replace("[[:alnum:]]", "[a-zA-Z0-9]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parser.parse(_scoped_flags(written))


def _scoped_flags(regex: str) -> str:
    out: list[str] = []
    open_flags = [0]
    at = 0
    in_class = False
    while at < len(regex):
        flags = re.compile(r"\(\?([a-z-]+)\)").match(regex, at) if not in_class else None
        if regex[at] == "\\":
            out.append(regex[at : at + 2])
            at += 2
            continue
        if flags:
            out.append(f"(?{flags[1]}:")
            open_flags[-1] += 1
            at = flags.end()
            continue
        sign = regex[at]
        if in_class:
            in_class = sign != "]" or regex[at - 1] == "[" or regex[at - 2 : at] == "[^"
        elif sign == "[":
            in_class = True
        elif sign == "(":
            open_flags.append(0)
        elif sign == ")":
            out.append(")" * open_flags.pop())
        out.append(sign)
        at += 1
    return "".join(out) + ")" * open_flags.pop()


def _groups(tree: Any) -> bool:
    return any(op is sre.SUBPATTERN and arg[0] is not None for op, arg in _walk(tree))


def _group(tree: Any, number: int) -> Any:
    """What is in the group of the secret: the one with the number, else the first."""
    for op, arg in _walk(tree):
        if op is sre.SUBPATTERN and arg[0] is not None and (number == 0 or arg[0] == number):
            return arg[3]
    return []


def _walk(tree: Any) -> Iterator[tuple[Any, Any]]:
    for op, arg in tree:
        yield op, arg
        if op is sre.SUBPATTERN:
            yield from _walk(arg[3])
        elif op is sre.BRANCH:
            for branch in arg[1]:
                yield from _walk(branch)
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            yield from _walk(arg[2])


def _needles(tree: Any) -> frozenset[str] | None:
    """Texts in small letters of which every match holds one; `None`: there are none. The longest are taken."""
    best: frozenset[str] | None = None
    run = {""}

    def offer(texts: frozenset[str] | set[str] | None) -> None:
        nonlocal best
        if texts and all(texts) and (best is None or min(map(len, texts)) > min(map(len, best))):
            best = frozenset(texts)

    for op, arg in tree:
        exact = _exact(op, arg)
        if exact is not None and len(run) * len(exact) <= 16:
            run = {head + tail for head in run for tail in exact}
            continue
        offer(run)
        run = {""}
        if exact is not None:
            run = set(exact)
        elif op is sre.SUBPATTERN:
            offer(_needles(arg[3]))
        elif op is sre.BRANCH:
            inner = [_needles(branch) for branch in arg[1]]
            offer(None if None in inner else frozenset().union(*(each for each in inner if each)))
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and arg[0] > 0:
            offer(_needles(arg[2]))
    offer(run)
    return best


def _exact(op: Any, arg: Any) -> set[str] | None:
    """All the texts that a part can be, when they are few."""
    if op is sre.AT:
        return {""}
    if op is sre.LITERAL:
        return {chr(arg).lower()}
    if op is sre.IN and all(each is sre.LITERAL for each, _ in arg) and len(arg) <= 4:
        return {chr(value).lower() for _, value in arg}
    if op is sre.SUBPATTERN:
        return _exact_all(arg[3])
    if op is sre.BRANCH:
        branches = [_exact_all(branch) for branch in arg[1]]
        if None in branches:
            return None
        found: set[str] = set().union(*(each for each in branches if each))
        return found if len(found) <= 40 else None
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and arg[:2] == (0, 1):
        inner = _exact_all(arg[2])
        return None if inner is None else inner | {""}
    return None


def _exact_all(tree: Any) -> set[str] | None:
    run = {""}
    for op, arg in tree:
        exact = _exact(op, arg)
        if exact is None or len(run) * len(exact) > 40:
            return None
        run = {head + tail for head in run for tail in exact}
    return run


if __name__ == "__main__":
    main()
