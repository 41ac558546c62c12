// Above the conversation: what one may decide in conversations of others, and what waits for the calls of one's own
// other agents. Conversations of the page are opened there; what was asked elsewhere has its card here.

import { approvalCard } from "./approval_card.js";
import * as deciding from "./deciding.js";
import { byId, h } from "./dom.js";
import { clarificationCard, outcomeCard } from "./other_cards.js";
import { signInCard } from "./sign_in_card.js";
import { addressOf } from "./sidebar.js";

const CARDS = { approval: approvalCard, clarification: clarificationCard, sign_in: signInCard, outcome: outcomeCard };
const PLACES = { slack: " in Slack", teams: " in Teams" };

/** Draws the list. It is not drawn again while it stays the same, so that focus and opened cards stay. */
export class AskedList {
  #drawn = "";
  #memory = new Map();

  /** `openId`: the thread that is open, whose card says it; `around`: me and people. */
  draw(asked, more, throughPrograms, openId, around) {
    const elsewhere = asked.filter((approval) => approval.thread_id !== openId);
    const key = JSON.stringify([elsewhere, more, throughPrograms, around.me]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    const list = byId("asked");
    const opened = new Set([...list.querySelectorAll("details[open]")].map((details) => details.dataset.of));
    const hadFocus = list.contains(document.activeElement);
    const lines = elsewhere.map((approval) => (approval.card ? this.#card(approval, mayDecide(approval), opened, around, new Set([approval.id])) : link(approval)));
    lines.push(...throughPrograms.map((waiting) => this.#card(waiting, whatWaits(waiting.card), opened, around, new Set())));
    if (more) lines.push(h("li", { className: "muted" }, `and ${more} more`));
    list.hidden = lines.length === 0;
    list.replaceChildren(...lines);
    if (hadFocus) (list.querySelector("summary, a") ?? byId("message")).focus({ preventScroll: true });
  }

  #card({ id, card }, summary, opened, { me, people }, decides) {
    const memory = { id, remembered: this.#memory.get(id), remember: (result) => this.#memory.set(id, result) };
    const view = CARDS[card.kind](card, { me, people, can: deciding, decides, memory });
    const details = h("details", { dataset: { of: id } }, h("summary", {}, summary), view);
    details.open = opened.has(id);
    return h("li", {}, details);
  }
}

function mayDecide(approval) {
  const { requester, client, thread_id } = approval;
  const where = client ? [" through ", h("bdi", {}, client)] : (PLACES[thread_id.split(":")[0]] ?? "");
  return [`You may decide what ${requester} asks for`, where, ": ", named(approval)];
}

/** What waits for a call that one's own agent makes. */
function whatWaits(card) {
  const through = h("bdi", {}, card.client);
  switch (card.kind) {
    case "approval":
      return ["You asked through ", through, ", and it waits for a decision: ", named(card)];
    case "clarification":
      return [`${card.server} has a question about what you asked through `, through];
    case "sign_in":
      return [`${card.service || card.server} needs you to sign in for what you asked through `, through];
    default:
      return ["Nobody knows what came of what you asked through ", through, ": ", named(card)];
  }
}

function link(approval) {
  return h("li", {}, `You may decide what ${approval.requester} asks for: `, h("a", { href: addressOf(approval.thread_id) }, named(approval)));
}

function named({ server, tool }) {
  return `${server} › ${tool}`;
}
