"""Tools that take one command line: what such a call does is said by the words of the command."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations, pairwise
from typing import Any
from unicodedata import name

from policies.patterns import Likeness, compiled, of_glob, whole
from policies.spellings import composed
from policies.values import Blank, is_document

NAMES = frozenset({"command", "cmd", "command_line", "commandLine", "cli"})
"""What the one argument of a command-shaped tool may be called."""
PARAMETERS = frozenset({"args", "arguments", "argv", "params", "parameters"})
"""What further words of a command may be called where they stand beside it."""
LONGEST_COMMAND = 4_000
"""Characters of a command that is still looked into; a longer one counts as a write."""
_RUNNERS = re.compile(
    r"(?:(?:ba|z|da|k|c|fi)?sh|python|pypy|node|deno|bun|perl|ruby|php|lua|pwsh|powershell|cmd|su|doas|env|xargs|nohup"
    r"|nice|ionice|time|timeout|watch|ssh|awk|sed|curl|wget|npx|bunx|uvx|pipx|make|command|builtin|exec|call|at|cron|java"
    r"|busybox|parallel|setsid|stdbuf|chroot|nsenter|pkexec|runuser|taskset|strace|ltrace|gdb|flock|script|expect|tclsh"
    r"|osascript|wsl|[cw]script|rundll32|mshta|iex)[0-9]*"
)
"""Programs that run another one, or a file: their words say nothing about what happens."""


class Effect(Enum):
    """What the words of a command say about it."""

    READS = "reads"
    WRITES = "writes"
    UNCLEAR = "unclear"
    """No word that writes, and not known to read."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line, as far as it can be read without running it."""

    words: tuple[str, ...] = ()
    """The command's words before the first option."""
    later: tuple[str, ...] = ()
    """Words after it: whether they are an option's value or go on with the command is not known."""
    doubtful: tuple[str, ...] = ()
    """Words that write, among the later ones and in the options themselves (`--method=delete`), in lower case."""
    readable: bool = True
    """False: shell metacharacters, substitutions, line breaks, quotes that do not close, letters that look alike, or
    a program that runs another one."""
    known_to_read: bool = False
    """Whether it is on the list of commands that change nothing."""

    @property
    def effect(self) -> Effect:
        """One word that writes makes it a write, and so does whatever could not be read."""
        if (
            not self.readable
            or self.doubtful
            or any(not WRITE_VERBS.isdisjoint((word.lower(), *words_of(word))) for word in self.words)
        ):
            return Effect.WRITES
        return Effect.READS if self.known_to_read else Effect.UNCLEAR

    @property
    def destroys(self) -> bool:
        """Whether something may be gone afterwards."""
        words = {part for word in (*self.words, *self.doubtful) for part in (word.lower(), *words_of(word))}
        return not self.readable or not DESTROYING.isdisjoint(words)

    @property
    def readings(self) -> tuple[str, ...]:
        """The command's words in lower case, once more with the doubtful ones where there are any; empty when
        unreadable."""
        if not self.readable:
            return ()
        plain = " ".join(self.words).lower()
        return (plain, " ".join((*self.words, *self.doubtful)).lower()) if self.doubtful else (plain,)

    @property
    def line(self) -> str:
        """All its words in lower case, without the options."""
        return " ".join((*self.words, *self.later)).lower()

    @property
    def longer_readings(self) -> Iterator[str]:
        """What it may be when some of the later words go on with it; of many only the first ones are tried apart."""
        apart, rest = self.later[:MOST_APART], self.later[MOST_APART:]
        for length in range(len(apart) + 1):
            for chosen in combinations(apart, length):
                yield " ".join((*self.words, *chosen, *rest)).lower()


UNREADABLE = CommandLine(readable=False)


def argument_of_command(schema: Mapping[str, Any]) -> str | None:
    """The name of the one argument of a command-shaped tool; `None` where a tool is not command-shaped: exactly one
    argument, required, text, and called by one of `NAMES`."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping) or len(properties) != 1 or not isinstance(required, list | tuple):
        return None
    ((name, described),) = properties.items()
    is_text = isinstance(described, Mapping) and described.get("type") == "string"
    return name if name in NAMES and is_text and list(required) == [name] else None


def command_of(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> CommandLine | None:
    """The command of a call to a command-shaped tool, else `None`. Raises nothing."""
    name = argument_of_command(schema)
    if name is None:
        return None
    written = arguments.get(name)
    return read_command(written) if isinstance(written, str) and len(arguments) == 1 else UNREADABLE


def command_among(arguments: Mapping[str, Any]) -> CommandLine | None:
    """The command that a call gives among other arguments: by a name of `NAMES`, as one text or as a list of words, and
    the words that it gives beside it (`PARAMETERS`). `None` when there is none. A list that is written as JSON within a
    text cannot be read: many servers take it for a list (FastMCP does). Raises nothing."""
    given, beside = (
        [value for name in sorted(names & arguments.keys()) if (value := arguments[name]) not in (None, Blank.UNSET)]
        for names in (NAMES, PARAMETERS)
    )
    if not given:
        return None
    lines = [_as_line(value) for value in (*given, *beside)]
    if len(given) > 1 or None in lines:
        return UNREADABLE
    return read_command(" ".join(filter(None, lines)))


def _as_line(value: Any) -> str | None:
    match value:
        case str():
            return None if is_document(value) else value
        case list() | tuple() if all(isinstance(word, str) for word in value):
            return shlex.join(value)
        case _:
            return None


def read_command(written: str) -> CommandLine:
    """A command line, read as a shell would split it, as long as a shell would do nothing else with it."""
    if len(written) > LONGEST_COMMAND or not written.isprintable() or is_document(written):
        return UNREADABLE
    line = composed(written)
    if not _METACHARACTERS.isdisjoint(line):
        return UNREADABLE
    try:
        tokens = shlex.split(line)
    except ValueError:
        return UNREADABLE
    first_option = next((at for at, token in enumerate(tokens) if _is_option(token, at)), len(tokens))
    words = tuple(" ".join(tokens[:first_option]).split())
    if words and (_RUNNERS.fullmatch(words[0].lower()) or not _PROGRAM.isdisjoint(words[0])):
        return UNREADABLE
    if any(token.startswith(_DASHES) for token in tokens) or any(map(_looks_alike, tokens)):
        return UNREADABLE
    rest = tokens[first_option:]
    later = tuple(word for token in rest if not token.startswith("-") for word in token.split())
    doubtful = tuple(word for token in rest for word in _writing_in(token))
    # As it was written: a character that only looks like another is an option of another name.
    return CommandLine(words, later, doubtful, known_to_read=line == written and reads(tokens, words))


def folded(pattern: str) -> str:
    """A pattern over the words of a command as it is compared."""
    return " ".join(unicodedata.normalize("NFKC", pattern).lower().split())


def never_in_words(pattern: str) -> str | None:
    """What a pattern over the words of a command has that no words do: an option, or a sign of a shell; else `None`."""
    for at, word in enumerate(folded(pattern).split()):
        if word.startswith(("-", *_DASHES)) or "--" in word or (at > 0 and word.startswith("/")):
            return word
        for sign in word:
            if sign in _METACHARACTERS - {"!"}:
                return sign
    return None


def within(pattern: str) -> str:
    """The regular expression of lines that have the words of a pattern in its order, perhaps with others between."""
    return "(?:.* )?" + " (?:.* )?".join(map(of_glob, folded(pattern).split())) + "(?: .*)?"


MOST_APART = 6
"""Words after the first option of which every selection is tried."""
_METACHARACTERS = frozenset("|&;<>()$`\\{}^%!#‘’‚‛“”„‟")
"""Metacharacters of POSIX shells, of Windows' own, and of PowerShell, to which typographic quotes are quotes. In quotes
too: which shell it is, and what quotes mean to it, is not known."""
_DASHES = tuple("‐‑‒–—―−")
"""PowerShell takes them for hyphens."""
_OPTION = ("-", "/")
_PROGRAM = frozenset("/=.:@~*?")
"""Characters in the name of a program: a path, a script, an assignment, or something that a shell replaces."""


def _is_option(token: str, at: int) -> bool:
    return token.startswith("-") or (at > 0 and token.startswith("/"))


def _writing_in(token: str) -> Iterator[str]:
    """The words of an option, or of a value, that write."""
    if not token.startswith(_OPTION):
        yield from (word.lower() for word in token.split() if word.lower() in WRITE_VERBS)
        return
    name, _, value = token.lstrip("-/").replace(":", "=").partition("=")
    yield from (word for word in words_of(name) if word in UNMISTAKABLE)
    yield from (word.lower() for word in (name, name[1:], value) if word.lower() in UNMISTAKABLE)


def _looks_alike(word: str) -> bool:
    """Whether letters of other scripts stand among plain ones, as in “rеmove” with a Cyrillic е."""
    foreign = (c for c in word if c.isalpha() and not c.isascii())
    return any(c.isascii() and c.isalpha() for c in word) and any("LATIN" not in name(c, "") for c in foreign)


# ----------------------------------------------------- command lines that are known to change nothing
# Exact programs, subcommands and options, and nothing else: no word says by itself that a command reads:
# `gh api … -XPUT` changes, `git show --output=FILE` writes, `rg --pre sh` runs another program. Whatever is not on this
# list is not known to read. A rule with `reads: true` says more.
#
# All patterns are RE2's: a model writes the command, and `re` took time that doubled with each letter of an option.
@dataclass(frozen=True, slots=True)
class _Program:
    """What of a program is known to change nothing."""

    subcommands: Likeness
    """The words between the program and its first option; with their values, where it takes any."""
    switches: frozenset[str] = frozenset()
    """Options without a value."""
    options: frozenset[str] = frozenset()
    """Options with a value, as the next word or after `=`."""
    filters: Likeness | None = None
    """Further options with a value, by their names."""
    formats: frozenset[str] = frozenset()
    """What `-o` and `--output` may be."""
    addresses: Likeness | None = None
    """Addresses that a value may be; `None`: none. A program that is given one may send its account's token there."""


_VALUE = r"[A-Za-z0-9._:/+,](?:[A-Za-z0-9._:/@+,-]*[A-Za-z0-9._:/+,-])?"
"""A word that is no option and means no file, to whatever program: many read the file that is named after an @."""
_OF_GITHUB = r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)?"
_is_of_github = whole(_OF_GITHUB)
_is_naming = whole(r"(?i)--[a-z]+(?:-[a-z]+)*-?(?:id|ids|name|names|identifier|arn|arns|url|title|type|email)")
_is_sending = whole(r"(?i)--(?:.*-)?(?:endpoint|proxy|host|server)(?:-.*)?")
"""Options that say where a request goes, and the account's signature with it (`aws --endpoint-url`)."""
_FORMATS = frozenset({"json", "jsonc", "yaml", "yamlc", "text", "table", "tsv", "csv", "wide", "name", "md", "none"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PROGRAMS = {
    # CLI for Microsoft 365: every command ends in its verb. `--path` and the like write files.
    "m365": _Program(
        whole(r"(?:[a-z][a-z0-9]* )+(?:list|get)|status|version"),
        _words("--debug --verbose --help -h --joined"),
        _words("--id -i --name -n --title -t --url -u --query --fields --properties --filter --pageSize --pageNumber"),
        _is_naming,
        _FORMATS,
        # Microsoft gives no token for a site outside of the tenant.
        whole(r"https://[A-Za-z0-9./_-]+"),
    ),
    "kubectl": _Program(
        whole(rf"(?:get|describe|top|explain)(?: {_VALUE})+|logs {_VALUE}|version|api-resources"),
        _words("-A --all-namespaces --show-labels --no-headers --previous --all-containers --timestamps"),
        _words("-n --namespace -l --selector --field-selector --sort-by --tail --since -c --container"),
        None,
        frozenset({"json", "yaml", "wide", "name"}),
    ),
    # `--jq` and `--template` read the environment, `--web` opens a browser. A repository with three parts, or with a
    # scheme, is on a host of its own, which is sent a token.
    "gh": _Program(
        whole(
            rf"(?:pr|issue|run|release|workflow|label) list|repo list(?: {_OF_GITHUB})?|issue status"
            rf"|(?:pr|issue|run|release|repo|workflow) view(?: {_OF_GITHUB})?|pr (?:diff|checks|status)(?: [0-9]+)?"
        ),
        _words("--comments --log --log-failed"),
        _words("-R --repo -L --limit -s --state --json -a --assignee -A --author -l --label -S --search -b --branch"),
    ),
    # A value that begins with @ is a file.
    "az": _Program(
        whole(r"(?:[a-z][a-z0-9-]* )+(?:list|show)|version"),
        _words("--only-show-errors"),
        _words("--query --resource-group -g --name -n --subscription --ids --location -l --tag"),
        _is_naming,
        _FORMATS,
    ),
    # A value that begins with file:// or http:// is fetched.
    "aws": _Program(
        whole(r"[a-z][a-z0-9-]* (?:describe|list)-[a-z0-9-]+|s3 ls(?: s3://[A-Za-z0-9._/-]+)?|sts get-caller-identity"),
        _words("--no-paginate"),
        _words("--region --query --max-items --page-size --starting-token --filters"),
        _is_naming,
        _FORMATS,
    ),
    "git": _Program(
        whole(rf"(?:status|log|show|diff|rev-parse|ls-files|blame|describe|shortlog)(?: {_VALUE})*"),
        _words("--oneline --stat --name-only --name-status --graph --decorate --all --no-color --short --no-ext-diff"),
        _words("-n --max-count --since --until --author --grep"),
    ),
    "docker": _Program(
        whole(rf"ps|images|version|info|logs {_VALUE}|(?:container|image|volume|network) ls"),
        _words("-a --all -q --quiet --no-trunc --timestamps"),
        _words("--tail --since --until --filter"),
    ),
}
_HANDS_OUT = compiled(
    r"(?:^|[^a-z])(?:access)?(?:secrets?|tokens?|passwords?|credentials?|keys?|kubeconfig|connection-?strings?"
    r"|functions|launch-(?:template-versions|configurations)|(?:app-?)?settings|publishing|auth|user-pool-client"
    r"|(?:identity-provider|(?:task|job)-definition|vpn-connection)s?|device-identity|iot hub policy|sas)(?:$|[^a-z])"
    r"|(?:^|[ /])\.\.(?:[ /]|$)|(?:^| )[a-z]:/",
    case_counts=False,  # kubectl takes `Secrets` for `secrets`
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
    if not program.subcommands(called) or _HANDS_OUT.search(called):
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
        named = program.filters is not None and program.filters(option) and not _is_sending(option)
        if not (formats or named or option in program.options) or (is_given and not option.startswith("--")):
            return False
        if not is_given:
            if not rest:
                return False
            value = rest.pop(0)
        is_address = program.addresses is not None and program.addresses(value)
        if not (value in program.formats if formats else is_address or _is_harmless(value)):
            return False
        if option in ("-R", "--repo") and not _is_of_github(value):
            return False
    return True


def _is_harmless(value: str) -> bool:
    """Whether a value is one for every program, also for one that splits it again at spaces: no option, no file."""
    pieces = re.split(r"[\s,'\"=]+", value)
    return not any(piece.startswith(("-", "@", "/")) or "://" in piece for piece in pieces)


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
