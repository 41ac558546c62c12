"""Our words → Slack messages. Pure.

Text from models, tools and people stands in `rich_text` and `plain_text`, which are literal; `mrkdwn` holds our own
words, times, and mentions built from ids. Modals are in `forms`, the App Home in `home`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import assert_never

from adapters.shared.plans import plan_text, plan_title, task_result, task_state, task_title
from adapters.shared.wording import (
    LONGEST_NAME,
    call_source,
    line,
    more_in_list,
    passage,
    said_by,
    source_lines,
    sources_title,
)
from adapters.slack.actions import COMMAND, FEEDBACK
from adapters.slack.render.blocks import (
    LONGEST_TASK_TITLE,
    LONGEST_TEXT,
    Block,
    SlackMessage,
    context,
    flow,
    header,
    mrkdwn,
    piece,
    plain,
    plan,
    quote,
    rich_text,
    run,
    section,
    sentence,
    task_card,
)
from adapters.slack.render.cards import approval_card, change_card, clarification_card, outcome_card, sign_in_card
from adapters.slack.render.markdown import pages, parts
from bot.domain import (
    ApprovalView,
    ChangeView,
    ClarificationView,
    ConversationReference,
    Notice,
    OutcomeView,
    PlanView,
    Post,
    Said,
    SignInView,
)
from bot.safe_text import visible_passage
from bot.usage import OwnUsage, own_usage_in_words, own_usage_title
from translations import gettext as _

LONGEST_ANSWER = 40_000
"""Characters of an answer; more is cut with a count. It makes four messages or so, and takes 20 ms at most."""
_TONES = {"info": "", "warning": "⚠️ ", "error": "❗ "}
_LONGEST_SOURCES = 1_900
"""Characters of the lines of sources: Slack takes 2,000 in a text of a context block."""
_MOST_CALLS = 6
"""Names of calls below an answer; they take two lines or so."""
_TASK_STATUS = {
    "blocked": "pending",
    "running": "in_progress",
    "waiting": "in_progress",
    "done": "complete",
    "failed": "error",
    "not_run": "error",
    "stopped": "error",
}
_STATES = {"running": "⏳", "waiting": "⏳", "done": "✓", "failed": "❌", "unknown": "⚠️"}


def pieces(post: Post) -> tuple[SlackMessage, ...]:
    """A post as one Slack message, or several for a long answer. Never empty; raises nothing."""
    match post.content:
        case Said():
            return _said(post.content, post.post_id)
        case Notice():
            text = _TONES[post.content.tone] + passage(post.content.text, LONGEST_TEXT - 10)
            return (piece([section(plain(text))], text),)
        case ApprovalView():
            return (approval_card(post.content, team_of(post.place)),)
        case ClarificationView():
            return (clarification_card(post.content, team_of(post.place)),)
        case SignInView():
            return (sign_in_card(post.content),)
        case OutcomeView():
            return (outcome_card(post.content),)
        case ChangeView():
            return (change_card(post.content),)
        case PlanView():
            return (_plan(post.content),)
        case _:
            assert_never(post.content)


def note(text: str) -> SlackMessage:
    """A sentence for one person."""
    shown = passage(text, LONGEST_TEXT)
    return piece([sentence(shown)], shown)


def thread_start(name: str, text: str, quoted: str = "") -> SlackMessage:
    """The bot's own message that a thread begins with: what somebody asks, and the message that it is about."""
    who, question = line(name, LONGEST_NAME), passage(text, LONGEST_TEXT)
    said = [flow([run(_("{name} asks:").format(name=who), "bold")]), quote(question)]
    about = [flow([run(_("About this message:"))]), quote(passage(quoted, LONGEST_TEXT))] if quoted.strip() else []
    return piece([rich_text(*said, *about)], _("{name} asks: {question}").format(name=who, question=question))


def beginning(text: str) -> str:
    """The first message of an answer, as somebody reads it who is shown no blocks."""
    return _said(Said(text), "")[0].text


def help_piece() -> SlackMessage:
    """What the slash command can do."""
    told = "\n".join(
        [
            _("Countersign works with your tools. It looks things up freely and asks before it changes anything."),
            _("• `{command} ask …` starts a conversation with your question").format(command=COMMAND),
            _("• `{command} approvals` lists requests that need you").format(command=COMMAND),
            _("• `{command} connections` lists your connected accounts").format(command=COMMAND),
            _("• `{command} memory` lists what I remember about you and this channel").format(command=COMMAND),
            _("• `{command} usage` shows what your requests used of the language model").format(command=COMMAND),
            _("• `{command} agent` lists the agents, and `{command} agent NAME` picks one").format(command=COMMAND),
            _("• `{command} stop` stops what I’m doing for you here").format(command=COMMAND),
            _("• `{command} help` shows this").format(command=COMMAND),
            _("You can also mention me in a channel, message me, or use “Ask Countersign about it” on a message."),
        ]
    )
    return piece([header(_("What I can do")), section(mrkdwn(told))], told)


def team_of(place: ConversationReference) -> str:
    """The workspace in which a place is; empty when it is none of Slack's."""
    return str(place.address.get("team", ""))


def _plan(view: PlanView) -> SlackMessage:
    """One block. All that is to be seen of a task without unfolding it is in its title. Its cards stand in that block
    and not by themselves: a message with a card that runs is taken for a draft (`outbound.posting.is_unfinished`)."""
    tasks = []
    for number, task in enumerate(view.tasks):
        state = f" – {task_state(view, task)}"
        title = line(task_title(task), LONGEST_TASK_TITLE - len(state)) + state
        tasks.append(task_card(f"{number}", title, _TASK_STATUS[task.status], task_result(task)))
    return piece([plan(plan_title(view), tasks)], plan_text(view))


# ------------------------------------------------------------------------------------------------ answers


def _said(said: Said, post_id: str) -> tuple[SlackMessage, ...]:
    made = pages(parts(visible_passage(said.text, LONGEST_ANSWER))) or [[sentence(passage(said.text, LONGEST_TEXT))]]
    below = [*sources_of(said), *_calls(said), _feedback(post_id)] if said.final else []
    if said.agent:
        made[0] = [context(plain(said_by(said.agent))), *made[0]]
    *beginning, last = made
    return tuple(piece(blocks, _read(blocks)) for blocks in [*beginning, [*last, *below]])


def sources_of(said: Said) -> list[Block]:
    """Returns what an answer cites; the names are literal."""
    lines = [f"{sources_title()}:", *source_lines(said.sources, _LONGEST_SOURCES)]
    return [context(plain("\n".join(lines)))] if said.sources else []


def _calls(said: Said) -> list[Block]:
    """What was looked up or done for an answer, under the names that the operator knows, each once, with how often it
    was where that is more; nothing where it was not."""
    named = Counter(f"{_STATES[call.state]} {call_source(call)}" for call in said.activity)
    shown = list(named.items())[:_MOST_CALLS]
    told = [_("{call} ×{count}").format(call=call, count=count) if count > 1 else call for call, count in shown]
    if left := said.earlier_calls + len(said.activity) - sum(count for _call, count in shown):
        told.append(more_in_list(left))
    return [context(plain(" · ".join(told)))] if told else []


def _feedback(post_id: str) -> Block:
    return {
        "type": "context_actions",
        "elements": [
            {
                "type": "feedback_buttons",
                "action_id": FEEDBACK,
                "positive_button": {"text": plain(_("Good answer")), "value": f"good:{post_id}"},
                "negative_button": {"text": plain(_("Bad answer")), "value": f"bad:{post_id}"},
            }
        ],
    }


def _read(blocks: Sequence[Block]) -> str:
    """What a reader of rich text and tables reads, without styles."""
    return "\n".join(text for block in blocks for text in _lines(block))


def _lines(block: Block) -> list[str]:
    match block["type"]:
        case "rich_text" | "rich_text_list":
            return [text for element in block["elements"] for text in _lines(element)]
        case "table":
            return [" | ".join(" ".join(_lines(cell)) for cell in row) for row in block["rows"]]
        case "rich_text_section" | "rich_text_quote" | "rich_text_preformatted":
            return ["".join(element["text"] for element in block["elements"])]
        case _:
            return []


def usage_piece(own: OwnUsage) -> SlackMessage:
    """What somebody has used of language models, for them alone."""
    lines = [_("{when}: {what}").format(when=when, what=what) for when, what in own_usage_in_words(own)]
    return piece([header(own_usage_title()), *(section(plain(each)) for each in lines)], "\n".join(lines))
