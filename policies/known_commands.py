"""Command lines that are known to change nothing: exact programs, subcommands and options, and nothing else.

No word says by itself that a command reads: `gh api … -XPUT` changes, `git show --output=FILE` writes, `rg --pre sh`
runs another program, and `redis-cli get flushall` is whatever that program makes of it. So this is a list of what is
known, and everything that is not on it is not known to read. A rule with `reads: true` says more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Program:
    """What of a program is known to change nothing."""

    subcommands: re.Pattern[str]
    """The words between the program and its first option; with their values, where it takes any."""
    switches: frozenset[str] = frozenset()
    """Options without a value."""
    options: frozenset[str] = frozenset()
    """Options with a value, as the next word or after `=`."""
    filters: re.Pattern[str] | None = None
    """Further options with a value, by their names."""
    formats: frozenset[str] = frozenset()
    """What `-o` and `--output` may be."""
    addresses: re.Pattern[str] | None = None
    """Addresses that a value may be; `None`: none. A program that is given one may send its account's token there."""


_VALUE = r"[A-Za-z0-9._:/@+,-]*[A-Za-z0-9._:/+,-]"
_OF_GITHUB = r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)?"
_NAMING = re.compile(
    r"--[a-z]+(?:-?[a-z]+)*-?(?:id|ids|name|names|identifier|arn|arns|url|title|type|email)", re.IGNORECASE
)
_SENDS = re.compile(r"--(?:.*-)?(?:endpoint|proxy|host|server)(?:-.*)?", re.IGNORECASE)
"""Options that say where a request goes, and the account's signature with it (`aws --endpoint-url`)."""
_FORMATS = frozenset({"json", "jsonc", "yaml", "yamlc", "text", "table", "tsv", "csv", "wide", "name", "md", "none"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PROGRAMS = {
    # CLI for Microsoft 365: every command ends in its verb. `--path` and the like write files.
    "m365": _Program(
        re.compile(r"(?:[a-z][a-z0-9]* )+(?:list|get)|status|version"),
        _words("--debug --verbose --help -h --joined"),
        _words("--id -i --name -n --title -t --url -u --query --fields --properties --filter --pageSize --pageNumber"),
        _NAMING,
        _FORMATS,
        # Microsoft gives no token for a site outside of the tenant.
        re.compile(r"https://[A-Za-z0-9./_-]+"),
    ),
    "kubectl": _Program(
        re.compile(rf"(?:get|describe|top|explain)(?: (?!-){_VALUE})+|logs (?!-){_VALUE}|version|api-resources"),
        _words("-A --all-namespaces --show-labels --no-headers --previous --all-containers --timestamps"),
        _words("-n --namespace -l --selector --field-selector --sort-by --tail --since -c --container"),
        None,
        frozenset({"json", "yaml", "wide", "name"}),
    ),
    # `--jq` and `--template` read the environment, `--web` opens a browser. A repository with three parts, or with a
    # scheme, is on a host of its own, which is sent a token.
    "gh": _Program(
        re.compile(
            rf"(?:pr|issue|run|release|workflow|label) list|repo list(?: {_OF_GITHUB})?|issue status"
            rf"|(?:pr|issue|run|release|repo|workflow) view(?: {_OF_GITHUB})?|pr (?:diff|checks|status)(?: [0-9]+)?"
        ),
        _words("--comments --log --log-failed"),
        _words("-R --repo -L --limit -s --state --json -a --assignee -A --author -l --label -S --search -b --branch"),
    ),
    # A value that begins with @ is a file.
    "az": _Program(
        re.compile(r"(?:[a-z][a-z0-9-]* )+(?:list|show)|version"),
        _words("--only-show-errors"),
        _words("--query --resource-group -g --name -n --subscription --ids --location -l --tag"),
        _NAMING,
        _FORMATS,
    ),
    # A value that begins with file:// or http:// is fetched.
    "aws": _Program(
        re.compile(
            r"[a-z][a-z0-9-]* (?:describe|list)-[a-z0-9-]+|s3 ls(?: s3://[A-Za-z0-9._/-]+)?|sts get-caller-identity"
        ),
        _words("--no-paginate"),
        _words("--region --query --max-items --page-size --starting-token --filters"),
        _NAMING,
        _FORMATS,
    ),
    "git": _Program(
        re.compile(rf"(?:status|log|show|diff|rev-parse|ls-files|blame|describe|shortlog)(?: (?!-){_VALUE})*"),
        _words("--oneline --stat --name-only --name-status --graph --decorate --all --no-color --short --no-ext-diff"),
        _words("-n --max-count --since --until --author --grep"),
    ),
    "docker": _Program(
        re.compile(rf"ps|images|version|info|logs {_VALUE}|(?:container|image|volume|network) ls"),
        _words("-a --all -q --quiet --no-trunc --timestamps"),
        _words("--tail --since --until --filter"),
    ),
}

_HANDS_OUT = re.compile(
    r"(?:^|[^a-z])(?:access)?(?:secrets?|tokens?|passwords?|credentials?|keys?|kubeconfig|connection-?strings?"
    r"|functions|launch-template-versions|(?:app-?)?settings|publishing|auth|user-pool-client|vpn-connections?|sas)(?:$|[^a-z])"
    r"|(?:^|[ /])\.\./",
    re.IGNORECASE,  # kubectl takes `Secrets` for `secrets`
)
"""Whoever may look at everything may not for that look at credentials, nor at what shows them beside other things, nor
beyond the folder where the program runs."""
_SHELL_PATTERN = frozenset("*?[]~")


def reads(tokens: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a command line, split as a shell splits it, is known to change nothing.

    Args:
        tokens: all of it, the program first.
        words: those before the first option, each token with spaces in it once more split.
    """
    program = _PROGRAMS.get(words[0]) if words else None
    if program is None or list(words) != list(tokens[: len(words)]) or not _SHELL_PATTERN.isdisjoint("".join(tokens)):
        return False
    called = " ".join(words[1:])
    if not program.subcommands.fullmatch(called) or _HANDS_OUT.search(called):
        return False
    return _only_known_options(program, list(tokens[len(words) :]))


def _only_known_options(program: _Program, rest: list[str]) -> bool:
    while rest:
        option, is_given, value = rest.pop(0).partition("=")
        if option in program.switches:
            if is_given:
                return False
            continue
        formats = option in ("-o", "--output") and bool(program.formats)
        named = program.filters is not None and program.filters.fullmatch(option) and not _SENDS.fullmatch(option)
        if not (formats or named or option in program.options) or (is_given and not option.startswith("--")):
            return False
        if not is_given:
            if not rest:
                return False
            value = rest.pop(0)
        is_address = program.addresses is not None and program.addresses.fullmatch(value)
        if not (value in program.formats if formats else is_address or _is_harmless(value)):
            return False
        if option in ("-R", "--repo") and not re.fullmatch(_OF_GITHUB, value):
            return False
    return True


def _is_harmless(value: str) -> bool:
    """Whether a value is one for every program, also for one that splits it again at spaces: no option, no file."""
    pieces = re.split(r"[\s,'\"=]+", value)
    return not any(piece.startswith(("-", "@", "/")) or "://" in piece for piece in pieces)
