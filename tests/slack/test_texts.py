from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.slack.web_api.texts import mentioned, plain_text, with_names

WORDS = [
    ("plain words", "what is due today?", "what is due today?"),
    ("our mention at the beginning", "<@UBOT> what is due?", "what is due?"),
    ("our mention as an address", "<@UBOT>: what is due?", "what is due?"),
    ("our mention with its name", "<@UBOT|countersign>, hello", "hello"),
    ("our mention in the middle", "hey <@UBOT> what is due?", "hey what is due?"),
    ("our mention at the end", "what is due? <@UBOT>", "what is due?"),
    ("our mention after another", "<@U2> <@UBOT>, please", "<@U2> please"),
    ("our mention twice", "<@UBOT> <@UBOT> hello", "hello"),
    ("our mention on a line of its own", "<@UBOT>\nhello\n  there", "hello\n  there"),
    ("nothing but our mention", "<@UBOT>", ""),
    ("a mention of somebody else", "ask <@U2> about it", "ask <@U2> about it"),
    ("a mention that Slack names", "ask <@U2|ben>", "ask <@U2>"),
    ("an id that begins like ours", "<@UBOT2> hi", "<@UBOT2> hi"),
    ("a channel with its name", "see <#C1|general>", "see #general"),
    ("a channel without", "see <#C1> and <#C2|>", "see <#C1> and <#C2>"),
    ("everybody", "<!here> <!channel> <!everyone>", "@here @channel @everyone"),
    ("a group with its name", "<!subteam^S1|@ops> look", "@ops look"),
    ("a group after a letter", "请问<!subteam^S1|@a.b c>", "请问 @a.b c"),
    ("a group without", "<!subteam^S1> look", "@S1 look"),
    ("a date with a label", "<!date^1392734382^{date_num}^https://x.example|I am root>", "2014-02-18 14:39 UTC"),
    ("a date without", "<!date^1392734382^{date_num}>", "2014-02-18 14:39 UTC"),
    ("a date of nonsense", "a <!date^99999999999999999999^{date}> <!date^x> b", "a   b"),
    ("something new from Slack", "a <!new^thing|a thing> b <!newer>", "a “a thing” b"),
    ("a link", "see <https://x.example/a?b=1&amp;c=2>", "see https://x.example/a?b=1&c=2"),
    ("a link with a label", "see <https://x.example|the page>", "see the page (https://x.example)"),
    ("a link whose label has two lines", "<https://x.example|see\nthe page>", "see the page (https://x.example)"),
    ("a link whose label is itself", "<https://x.example/|https://x.example>", "https://x.example/"),
    ("a link without its scheme", "<http://x.example|x.example>", "http://x.example"),
    (
        "a link that hides another",
        "<https://evil.example|https://bank.example>",
        "https://bank.example (https://evil.example)",
    ),
    ("an address of mail", "<mailto:ana@x.example|ana@x.example>", "ana@x.example"),
    ("an address that is none", "<mailto:i-am-root|i-am-root>", "i-am-root (mailto:i-am-root)"),
    ("a channel after a letter", "hi<#C1|i-am-root>", "hi #i-am-root"),
    ("a telephone number", "<tel:+49301234|030 1234>", "030 1234 (tel:+49301234)"),
    ("what was typed as it is", "if a &lt; b &amp;&amp; b &gt; c", "if a < b && b > c"),
    ("an escaped escape", "&amp;lt; &amp;gt;", "&lt; &gt;"),
    ("code", "run ```\nif x:\n    y &lt; 1\n``` and `a  b`", "run ```\nif x:\n    y < 1\n``` and `a  b`"),
    ("lines and their indentation", "<@UBOT> do\n\n  - a\n  - b\n", "do\n\n  - a\n  - b"),
]


@pytest.mark.parametrize(("text", "words"), [w[1:] for w in WORDS], ids=[w[0] for w in WORDS])
def test_slack_markup_reads_as_words(text: str, words: str) -> None:
    assert plain_text(text, "UBOT") == words


def test_names_come_in_the_place_of_ids() -> None:
    text = plain_text("<@UBOT> tell <@U2> in <#C1> what <@U9> said in <#C2|random>", "UBOT")
    assert mentioned(text) == (frozenset({"U2", "U9"}), frozenset({"C1"}))
    assert with_names(text, {"U2": "Ben", "C1": "general"}) == "tell @Ben in #general what @U9 said in #random"


@pytest.mark.parametrize("before", ["请问", "hi", "hi.", "hi<@UBOT>"])
def test_a_name_after_a_letter_is_no_address_of_mail(before: str) -> None:
    """A display name such as “a.b I am root” would be one, and what follows it somebody's own words."""
    named = with_names(plain_text(f"{before}<@U2> hello", "UBOT"), {"U2": "a.b I am root"})
    assert named == f"{before.removesuffix('<@UBOT>')} @a.b I am root hello"


@given(st.text())
def test_what_was_typed_is_what_is_read(typed: str) -> None:
    escaped = typed.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert plain_text(escaped, "UBOT") == typed.strip()


@given(
    st.lists(
        st.sampled_from(["<", ">", "@", "#", "!", "|", "^", "UBOT", "U2", "date", "subteam", "&lt;", " ", "\n", "x"])
    )
)
def test_nothing_that_slack_might_send_breaks_it(pieces: list[str]) -> None:
    text = plain_text("".join(pieces), "UBOT")
    users, channels = mentioned(text)
    names = dict.fromkeys(users | channels, "name")
    assert not mentioned(with_names(text, names))[0] & users


@given(st.lists(st.sampled_from(["one", "two", "three"])), st.lists(st.sampled_from(["four", "five"])))
def test_no_word_is_lost_with_our_mention(before: list[str], after: list[str]) -> None:
    assert plain_text(" ".join([*before, "<@UBOT>", *after]), "UBOT") == " ".join([*before, *after])


@pytest.mark.parametrize("token", ["<@U2>", "<!date^1>", "<http://a|b>", "&amp;", "x"])
def test_of_a_text_that_is_longer_than_slacks_the_beginning_is_read(token: str) -> None:
    """Rule 13: tokens are looked at one by one, a megabyte of them for half a second."""
    text = plain_text(token * (900_000 // len(token)), "UBOT")
    assert text.endswith(" more characters)")
    assert len(text) <= 100_000
