// Above the conversation: what one may decide in conversations of others. Those of the page are opened there; what was
// asked elsewhere has its card here.

import { approvalCard } from "./approval_card.js";
import * as deciding from "./deciding.js";
import { byId, h } from "./dom.js";
import { addressOf } from "./sidebar.js";

const PLACES = { slack: " in Slack", teams: " in Teams" };

/** Draws the list. It is not drawn again while it stays the same, so that focus and opened cards stay. */
export class AskedList {
  #drawn = "";
  #memory = new Map();

  /** `openId`: the thread that is open, whose card says it; `around`: me and people. */
  draw(asked, more, openId, around) {
    const elsewhere = asked.filter((approval) => approval.thread_id !== openId);
    const key = JSON.stringify([elsewhere, more, around.me]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    const list = byId("asked");
    const opened = new Set([...list.querySelectorAll("details[open]")].map((details) => details.dataset.of));
    const hadFocus = list.contains(document.activeElement);
    const lines = elsewhere.map((approval) => (approval.card ? this.#card(approval, opened.has(approval.id), around) : link(approval)));
    if (more) lines.push(h("li", { className: "muted" }, `and ${more} more`));
    list.hidden = lines.length === 0;
    list.replaceChildren(...lines);
    if (hadFocus) (list.querySelector("summary, a") ?? byId("message")).focus({ preventScroll: true });
  }

  #card(approval, open, { me, people }) {
    const { id, card } = approval;
    const memory = { id, remembered: this.#memory.get(id), remember: (result) => this.#memory.set(id, result) };
    const view = approvalCard(card, { me, people, can: deciding, decides: new Set([id]), memory });
    const place = PLACES[approval.thread_id.split(":")[0]] ?? "";
    const details = h("details", { dataset: { of: id } }, h("summary", {}, `You may decide what ${approval.requester} asks for${place}: `, named(approval)), view);
    details.open = open;
    return h("li", {}, details);
  }
}

function link(approval) {
  return h("li", {}, `You may decide what ${approval.requester} asks for: `, h("a", { href: addressOf(approval.thread_id) }, named(approval)));
}

function named({ server, tool }) {
  return `${server} › ${tool}`;
}
