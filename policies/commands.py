"""Tools that take one command line: what such a call does is said by the words of the command."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import Any
from unicodedata import name

from policies.known_commands import reads
from policies.patterns import of_glob
from policies.verbs import DESTROYING, UNMISTAKABLE, WRITE_VERBS, words_of

NAMES = frozenset({"command", "cmd", "command_line", "commandLine", "cli"})
"""What the one argument of a command-shaped tool may be called."""

LONGEST = 4_000
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
class Command:
    """A command line, as far as it can be read without running it."""

    words: tuple[str, ...] = ()
    """Its words before the first option."""
    later: tuple[str, ...] = ()
    """Words after it: whether they are an option's value or go on with the command is not known."""
    doubtful: tuple[str, ...] = ()
    """Words that write, among the later ones and in the options themselves (`--method=delete`), in lower case."""
    readable: bool = True
    """False: shell metacharacters, substitutions, line breaks, quotes that do not close, letters that look alike, or
    a program that runs another one."""
    known_to_read: bool = False
    """It is on the list of those that change nothing (`policies.known_commands`)."""

    @property
    def effect(self) -> Effect:
        """One word that writes makes it a write, and so does whatever could not be read."""
        if not self.readable or self.doubtful or any(map(_writes, self.words)):
            return Effect.WRITES
        return Effect.READS if self.known_to_read else Effect.UNCLEAR

    @property
    def destroys(self) -> bool:
        """Whether something may be gone afterwards."""
        words = {part for word in (*self.words, *self.doubtful) for part in (word.lower(), *words_of(word))}
        return not self.readable or not DESTROYING.isdisjoint(words)

    @property
    def readings(self) -> tuple[str, ...]:
        """Its words in lower case, once more with the doubtful ones where there are any; empty when unreadable."""
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


UNREADABLE = Command(readable=False)


def argument_of_command(schema: Mapping[str, Any]) -> str | None:
    """The name of the one argument of a command-shaped tool; `None` where a tool is not command-shaped: exactly one
    argument, required, text, and called by one of `NAMES`."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping) or len(properties) != 1 or not isinstance(required, list | tuple):
        return None
    ((name, described),) = properties.items()
    is_text = isinstance(described, Mapping) and described.get("type") == "string"
    return name if name in NAMES and is_text and list(required) == [name] else None


def command_of(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Command | None:
    """The command of a call to a command-shaped tool, else `None`. Raises nothing."""
    name = argument_of_command(schema)
    if name is None:
        return None
    written = arguments.get(name)
    return read_command(written) if isinstance(written, str) and len(arguments) == 1 else UNREADABLE


def read_command(written: str) -> Command:
    """A command line, read as a shell would split it, as long as a shell would do nothing else with it."""
    line = unicodedata.normalize("NFKC", written)
    if len(written) > LONGEST or not written.isprintable() or not _METACHARACTERS.isdisjoint(line):
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
    return Command(words, later, doubtful, known_to_read=line == written and reads(tokens, words))


def folded(pattern: str) -> str:
    """A pattern over the words of a command as it is compared."""
    return " ".join(unicodedata.normalize("NFKC", pattern).lower().split())


def within(pattern: str) -> str:
    """The regular expression of lines that have the words of a pattern in its order, perhaps with others between."""
    return "(?:.* )?" + " (?:.* )?".join(map(of_glob, folded(pattern).split())) + "(?: .*)?"


MOST_APART = 6
"""Words after the first option of which every selection is tried."""
_METACHARACTERS = frozenset("|&;<>()$`\\{}^%!#‘’‚‛“”„‟")
"""Of POSIX shells, of Windows' own, and of PowerShell, to which typographic quotes are quotes. In quotes too: which
shell it is, and what quotes mean to it, is not known."""
_DASHES = tuple("‐‑‒–—―−")
"""PowerShell takes them for hyphens."""
_OPTION = ("-", "/")
_PROGRAM = frozenset("/=.:@~*?")
"""In the name of a program: a path, a script, an assignment, or something that a shell replaces."""


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


def _writes(word: str) -> bool:
    return not WRITE_VERBS.isdisjoint((word.lower(), *words_of(word)))
