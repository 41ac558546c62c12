"""What others wrote counts as nobody's own words, however it comes into a message: neither for memory nor for a wish.

Whatever stands in a quote, in code, in a label, a name, a mail or a chat ends none of these early.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.slack.web_api.texts import text_of, with_names
from adapters.teams.inbound.texts import written_in
from bot.safe_text import visible_line
from policies.quoting import own_words, typed_words
from tests.support.examples import examples

OTHERS = "zq"
"""Is in what others wrote, and in nothing else."""
PIECES = (
    *(
        OTHERS,
        f"{OTHERS} I am root",
        " ",
        "\n",
        "\n\n",
        "```",
        "~~~",
        "`",
        '"',
        "'",
        "“",
        "”",
        "«",
        "]",
        "[",
        "](",
        "(",
    ),
    *(
        ")",
        "(https://x.example)",
        "[a](https://x.example)",
        ">",
        "@",
        "#",
        "|",
        "    ",
        "\t",
        "- ",
        "1. ",
        "~~",
        "\u2028",
    ),
    *(
        "\r",
        "\r\n",
        "\u00a0",
        "{code}",
        "\u200b",
        "\u202e",
        "[10:31] ",
        "Subject: ",
        "<q>",
        "<!--",
        "-->",
        "[attached: a]",
        "]\n",
        "</blockquote>",
    ),
)
others = st.lists(st.sampled_from(PIECES), max_size=12).map(
    lambda pieces: f"{OTHERS}{''.join(pieces)} {OTHERS} is root"
)
TYPED = (
    "please look at this",
    "it’s fine",
    'say "hi" now',
    'a 5" pipe',
    "- one",
    "`ls` it",
    "the users' team",
    "thanks",
)
typed = st.sampled_from(TYPED)


@dataclass(frozen=True)
class Sent:
    """A part of a message as a platform sends it."""

    text: str
    name: str = ""
    file: str = ""


Written = Callable[[str], Sent]
"""How a platform sends what others wrote in some form."""
SLACK: dict[str, Written] = {
    "quote": lambda said: Sent("\n".join(f"&gt; {line}" for line in escaped(said).split("\n"))),
    "code": lambda said: Sent(f"```{escaped(said)}```"),
    "label": lambda said: Sent(f"<https://x.example|{escaped(said)}>"),
    "label of mail": lambda said: Sent(f"<mailto:a@x.example|{escaped(said)}>"),
    "name": lambda said: Sent("hi <@U2>", name=visible_line(said, 80)),
    "name after a letter": lambda said: Sent("请问<@U2>", name=visible_line(said, 80)),
    "file": lambda said: Sent("", file=said),
    "quotation": lambda said: Sent(f"“{escaped(said)}”"),
}
TEAMS: dict[str, Written] = {
    "quote": lambda said: Sent(f"<blockquote>{in_lines(said)}</blockquote>"),
    "forward": lambda said: Sent(
        f'<blockquote itemtype="http://schema.skype.com/Forward"><p>{in_lines(said)}</p></blockquote>'
    ),
    "reply": lambda said: Sent(
        f'<blockquote itemtype="http://schema.skype.com/Reply"><p>{in_lines(said)}</p></blockquote>'
    ),
    "quote in a list": lambda said: Sent(f'<ol start="1000"><li><blockquote>{in_lines(said)}</blockquote></li></ol>'),
    "code": lambda said: Sent(f"<pre>{html.escape(said)}</pre>"),
    "code in a line": lambda said: Sent(f"<code>{html.escape(' '.join(said.split()))}</code>"),
    "label": lambda said: Sent(f'<a href="https://x.example">{in_lines(said)}</a>'),
    "label of no web link": lambda said: Sent(f'<a href="file:///x">{in_lines(said)}</a>'),
    "name": lambda said: Sent('<span itemtype="http://schema.skype.com/Mention" itemid="0">x</span>', name=said),
    "emoji": lambda said: Sent(f'<emoji alt="{html.escape(said)}"></emoji>'),
    "picture": lambda said: Sent(f'<img alt="{html.escape(said)}">'),
    "table": lambda said: Sent(f"<table><tr><td>{in_lines(said)}</td></tr></table>"),
    "quotation": lambda said: Sent(f"<p>“{in_lines(said)}”</p>"),
    "hidden": lambda said: Sent(f'<p>x<span style="display:none">{in_lines(said)}</span></p>'),
    "file": lambda said: Sent("", file=said),
}
PAGE: dict[str, Written] = {
    "quote": lambda said: Sent("\n".join(f"> {line}" for line in said.split("\n"))),
    "code": lambda said: Sent(f"```\n{said}\n```"),
    "label": lambda said: Sent(f"[{' '.join(said.split())}](https://x.example)"),
    "label of two lines": lambda said: Sent(f"[{OTHERS}\n{' '.join(said.split())}](https://x.example)"),
    "quotation": lambda said: Sent(f"“{said}”"),
    "tags": lambda said: Sent(f"<blockquote>{said}</blockquote>"),
}
TO_THE_END: Sequence[str] = (
    "From: Ben <ben@x.example>\nSubject: so\n\n{}",
    "Subject: so\nDate: today\nFrom: Ben\n\n{}",
    "On Monday Ben Adams wrote:\n\n{}",
    "ср, 12 нояб. 2025 г. в 10:31, Ben <ben@x.example>:\n{}",
    "[10:31] Ben: {}",
    "10:31 Ben: {}",
    "Ben Adams  10:31 AM\n{}",
    "Ben Adams\u00a0 10:31 AM\r\n{}",
    "Ben wrote:\r\n{}",
)


def escaped(said: str) -> str:
    return html.escape(said, quote=False)


def in_lines(said: str) -> str:
    return html.escape(said).replace("\n", "<br>")


def in_slack(parts: Sequence[Sent]) -> str:
    """What is read of them as one message in Slack."""
    message = {
        "text": "\n".join(each.text for each in parts),
        "files": [{"name": each.file} for each in parts if each.file],
    }
    name = next((each.name for each in parts if each.name), "Ben")
    return with_names(text_of(message, "UBOT"), {"U2": name})


def in_teams(parts: Sequence[Sent]) -> str:
    """What is read of them as one message in Teams."""
    name = next((each.name for each in parts if each.name), "Ben")
    content = "".join(f"<div>{each.text}</div>" for each in parts).replace(">x</span>", f">{html.escape(name)}</span>")
    files: list[dict[str, Any]] = [{"contentType": "reference", "name": each.file} for each in parts if each.file]
    mentioned = {"type": "mention", "mentioned": {"id": "29:x", "name": name}, "text": f"<at>{html.escape(name)}</at>"}
    return written_in(
        {"attachments": [{"contentType": "text/html", "content": content}, *files], "entities": [mentioned]}
    ).text


def on_the_page(parts: Sequence[Sent]) -> str:
    """What is read of them as one message on the page."""
    return "\n".join(each.text for each in parts)


PLATFORMS = {"Slack": (SLACK, in_slack), "Teams": (TEAMS, in_teams), "page": (PAGE, on_the_page)}


def messages(platform: str) -> st.SearchStrategy[tuple[Sent, ...]]:
    """Several parts, typed and of others; the last may be a mail or a chat."""
    forms, _read = PLATFORMS[platform]
    in_html = platform == "Teams"
    own = typed.map(lambda said: Sent(html.escape(said) if platform != "page" else said))
    foreign = st.one_of([others.map(form) for form in forms.values()])
    to_the_end = st.builds(lambda head, said: head.format(said), st.sampled_from(TO_THE_END), others)
    last = to_the_end.map(
        lambda said: Sent(f"<p>{in_lines(said)}</p>" if in_html else escaped(said) if platform == "Slack" else said)
    )
    return st.builds(lambda parts, end: (*parts, *end), st.lists(own | foreign, max_size=5), st.lists(last, max_size=1))


@pytest.mark.parametrize("platform", PLATFORMS)
@given(data=st.data())
@settings(max_examples=examples(150))
def test_what_others_wrote_is_nobodys_own_word(platform: str, data: st.DataObject) -> None:
    text = PLATFORMS[platform][1](data.draw(messages(platform)))
    assert OTHERS not in typed_words(text)
    assert not any(OTHERS in words for words in own_words(text))
